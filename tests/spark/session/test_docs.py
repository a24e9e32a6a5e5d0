"""The code in README and docs/ runs, page by page, and returns the values on the pages (tests/support/documents/pages.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.documents import pages
from tests.support.runs.sampling import sampled

PAGES = [page for page in pages.PAGES if page not in pages.PLACES]
WITH_CODE = [page for page in PAGES if any(block.language == "python" for block in pages.blocks(page))]


@pytest.fixture
def clean_session(spark: SparkSession, conf: Callable[[Mapping[str, str]], None]) -> Iterator[None]:
    """After each page its databases and temporary views are dropped, and none of its queries runs. Settings that conftest.py
    makes for other tests have their defaults, as for users."""
    conf({"spark.pydelta.driverReads.enabled": "true"})
    databases = {database.name for database in spark.catalog.listDatabases()}
    yield
    for query in spark.streams.active:
        query.stop()
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
    for database in spark.catalog.listDatabases():
        if database.name not in databases:
            spark.sql(f"DROP DATABASE {database.name} CASCADE")


@pytest.mark.parametrize("page", sampled(WITH_CODE, 8), ids=lambda page: page.name)
def test_code_of_a_page_runs_and_gives_what_the_page_says(page: Path, tmp_path: Path, clean_session: None) -> None:
    assert pages.run(page, tmp_path) > 0, "the page says no value, so that nothing was compared"
