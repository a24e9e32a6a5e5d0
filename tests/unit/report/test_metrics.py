"""Metrics in Prometheus's text format, parsed as a scraper does."""

from __future__ import annotations

import re

import pytest

from delta_py import DeltaTable
from delta_py.report.metrics import metrics_text, text_of
from tests.support.tables import report_states
from tests.support.tables.report_states import HOSTILE, STATES

_SAMPLE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\\\|\\"|\\n)*",?)*)\} (\S+)')
_LABEL = re.compile(r'(\w+)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')
_ESCAPE = re.compile(r"\\[\\\"n]")
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def scraped(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Samples by name and labels. Raises AssertionError if the text does not have the format."""
    assert text.endswith("\n")
    results: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    family = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {family} gauge"
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample is not None and sample[1] == family, line
            named = _LABEL.findall(sample[2])
            labels = tuple((name, _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], value)) for name, value in named)
            key = (family, labels)
            assert key not in results, f"twice: {key}"
            results[key] = float(sample[3])
    return results


@pytest.mark.parametrize("name", STATES)
def test_metrics_of_a_state_can_be_scraped(name: str) -> None:
    facts = STATES[name]().facts
    samples = scraped(text_of(facts))
    assert samples["pydelta_table_version", (("table", facts.identity.root),)] == facts.identity.version
    assert {dict(labels)["table"] for _, labels in samples} == {facts.identity.root}


def test_metrics_are_the_facts() -> None:
    store = report_states.usual_table()
    table = DeltaTable("/lake/shop/orders", store=store)
    samples = scraped(metrics_text(table))
    assert samples == scraped(table.metrics_text())
    own_label = (("table", "/lake/shop/orders"),)
    assert samples["pydelta_table_files", own_label] == table.snapshot.num_files == 95
    assert samples["pydelta_table_rows", own_label] == 3_040_500
    assert samples["pydelta_table_operation_commits", (*own_label, ("operation", "STREAMING UPDATE"))] == 39
    assert samples["pydelta_table_stream_versions_behind", (*own_label, ("app_id", "9d1c-orders-stream"))] == 2
    assert samples["pydelta_table_log_faults", own_label] == 0 and samples["pydelta_table_log_checksum_agrees", own_label] == 1


def test_what_is_unknown_has_no_sample_and_is_named() -> None:
    facts = report_states.no_statistics().facts
    samples = scraped(text_of(facts))
    names = {name for name, _ in samples}
    assert "pydelta_table_rows" not in names and "pydelta_table_vacuum_files" not in names
    missing = {dict(labels)["metric"] for name, labels in samples if name == "pydelta_table_unknown"}
    assert {"pydelta_table_rows", "pydelta_table_vacuum_files", "pydelta_table_column_point_share_ratio"} <= missing
    assert all(value == 1 for (name, _), value in samples.items() if name == "pydelta_table_unknown")
    assert not missing & names


def test_labels_that_look_alike_stay_two() -> None:
    store = report_states.MemoryStore("/lake/alike")
    builder = report_states.TableBuilder(store)
    builder.create()
    for number, operation in enumerate(("a\u202eb", "a\\u202eb", "a\nb", "a\\nb")):
        builder.commit(report_states.info(report_states.START_MS + number, operation))
    table_report = scraped(text_of(report_states.report(store).facts))
    assert len({labels for name, labels in table_report if name == "pydelta_table_operation_commits"}) >= 4


def test_labels_hold_whatever_a_table_holds() -> None:
    samples = scraped(text_of(report_states.hostile().facts))
    operations = {dict(labels)["operation"] for name, labels in samples if name == "pydelta_table_operation_commits"}
    assert {*HOSTILE[:3], *HOSTILE[6:]} <= operations
    assert any(text.startswith("abc\\u202egnp.exe\\u200f\\u2066 ") for text in operations)
    assert not any(re.search("[\x00-\x1f\x7f-\x9f\u202e\u200f\u2066]", text) for text in operations)
    assert any(text.startswith("very long name") and len(text) < 500 for text in operations)
