"""ALTER TABLE, COMMENT ON and TRUNCATE TABLE as Spark's own parser reads them, run by DeltaTable's methods.

    ALTER TABLE shop.sales ADD COLUMNS (note STRING COMMENT 'free text' AFTER price)
    ALTER TABLE pydelta.`/data/events` SET TBLPROPERTIES ('delta.appendOnly' = 'true')

Constraints, features, clustering columns and SYNC IDENTITY are in grammar.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_py.errors import SchemaMismatchError
from delta_py.types.names import split_name
from delta_py.types.schema import ArrayType, DataType, MapType, Path, StructType
from spark_plugin.dml.delete_update import truncate
from spark_plugin.dml.jobs import load_newest
from spark_plugin.options.settings import is_case_sensitive
from spark_plugin.sql.results import nothing
from spark_plugin.sql.targets import find_target
from spark_plugin.sql_definitions import ParsedAlteration, parsed_alteration
from spark_plugin.sql_internals import ParsedPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def alter_table(spark: SparkSession, plan: ParsedPlan, _text: str) -> DataFrame | None:
    """Run the statement, and return a frame without columns, as Spark does. Returns None, and does nothing, for another statement
    and for a table that is not pydelta's. Raises the errors of DeltaTable's methods."""
    alteration = parsed_alteration(plan)
    target = None if alteration is None else find_target(spark, alteration.parts)
    if alteration is None or target is None:
        return None
    if alteration.method == "truncate":
        truncate(spark, target.place)
    else:
        if is_case_sensitive(spark):
            _check_spelling(load_newest(spark, target.place).config.schema, alteration)
        getattr(target.delta_table(spark), alteration.method)(*alteration.arguments, **alteration.keyword_arguments)
    return nothing(spark)


def _check_spelling(schema: StructType, alteration: ParsedAlteration) -> None:
    """Raise SchemaMismatchError for a column or field that exists in another spelling."""
    misspelled_names = [name for name in alteration.required_names if not _is_spelled(schema, split_name(name))]
    if misspelled_names:
        raise SchemaMismatchError(
            f"{', '.join(misspelled_names)}: the table spells it otherwise, and spark.sql.caseSensitive is true. It has "
            f"{', '.join(schema.names)}. Nothing was changed.",
            error_class="UNRESOLVED_COLUMN.WITH_SUGGESTION",
            sql_state="42703",
            columns=misspelled_names,
        )


def _is_spelled(schema: StructType, path: Path) -> bool:
    """Return whether the schema has no part of the path in another case only. A column or field that does not exist counts as
    spelled: other code reports it. path: the parts of the name."""
    kind: DataType = schema
    for part in path:
        match kind:
            case StructType():
                field = kind.find(part)
                if field is None or field.name != part:
                    return field is None
                kind = field.data_type
            case ArrayType():
                kind = kind.element_type
            case MapType():
                kind = kind.key_type if part.lower() == "key" else kind.value_type
    return True
