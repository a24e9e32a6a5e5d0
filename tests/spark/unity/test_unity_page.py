"""The page about Unity Catalog: its code runs against a server, without Spark and with it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py.storage import publication
from tests.support.documents import pages
from tests.support.servers.unity_catalog import UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed


def test_code_of_the_page_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with UnityCatalogServer(tmp_path / "catalog") as server:
        server.state.schemas.add(("main", "sales"))
        create_managed(server, "orders", pa.table({"id": [1, 2]}), schema=("main", "sales"))
        monkeypatch.setenv("UNITY_TOKEN", server.token or "")
        text = pages.ON_UNITY_CATALOG.read_text()
        page = tmp_path / "page.md"
        text = text.replace(pages.CATALOG, f"unity://{server.host}/").replace("https://catalog.example.com", server.uri)
        page.write_text(text.replace("s3://lake", f"file://{tmp_path}/lake"))
        assert pages.run(page, tmp_path) == 5
        publication.finish()
    for setting in ("uri", "token"):
        spark.conf.unset(f"spark.sql.catalog.main.{setting}")
