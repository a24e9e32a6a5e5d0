"""The values of the options replaceUsing and replaceOn, without a session."""

from __future__ import annotations

import pytest

from delta_py.errors import InvalidOptionError
from spark_plugin.merge.matching import Matching, matching_of


def test_options_say_which_rows_the_source_matches() -> None:
    assert matching_of({}) is None
    assert matching_of({"targetalias": "t"}) is None
    assert matching_of({"replaceusing": " id , day ", "targetalias": "t"}) == Matching.using(("id", "day"), " id , day ")
    assert matching_of({"replaceusing": "`a,b`, `c``,d`"}) == Matching.using(("`a,b`", "`c``,d`"), "`a,b`, `c``,d`")
    assert matching_of({"replaceon": "t.id = s.id", "targetalias": "t"}) == Matching.on("t.id = s.id", "t")
    assert matching_of({"replaceon": "true", "overwriteschema": "false", "datachange": "true"}) == Matching.on("true", None)


def test_history_has_columns_or_the_condition() -> None:
    assert Matching.using(("id", "day")).history_parameter() == {"replaceUsingCols": "(id, day)"}
    assert Matching.using(("id", "day"), " id,day ").history_parameter() == {"replaceUsingCols": "( id,day )"}
    assert Matching.on("t.id = s.id", "t").history_parameter() == {"replaceOnCond": "t.id = s.id"}


@pytest.mark.parametrize("value", ["", ",", "id,,day", "id,", ",id", " "])
def test_empty_names_of_columns_are_refused(value: str) -> None:
    with pytest.raises(InvalidOptionError, match="empty column names") as caught:
        matching_of({"replaceusing": value})
    assert caught.value.error_class == "DELTA_ILLEGAL_OPTION"


@pytest.mark.parametrize(
    ("options", "error_class"),
    [
        ({"replaceusing": "id", "replaceon": "true"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"overwriteschema": "TRUE"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"datachange": "false"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"replacewhere": "id = 1"}, "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING"),
        ({"partitionoverwritemode": "dynamic"}, "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, str], error_class: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        matching_of({"replaceon": "true", **options})
    assert (caught.value.error_class, caught.value.sql_state) == (error_class, "42613")
