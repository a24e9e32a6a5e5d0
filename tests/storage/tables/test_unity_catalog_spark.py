"""Spark on tables of Unity Catalog in an object store: tasks have the catalog's credentials, and renew them when they expire."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_py.storage import publication
from spark_plugin import register
from spark_plugin.options import registered_catalogs
from tests.storage.conftest import CONTAINER
from tests.support.servers.emulators import Emulator
from tests.support.servers.unity_catalog import Catalog, UnityCatalogServer


def test_tasks_have_credentials_of_the_catalog_and_renew_them(
    spark: SparkSession,
    emulators: Callable[[str], Emulator],
    tmp_path: Path,
    conf: Callable[[dict[str, str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings, root = emulators("s3").settings(), f"s3://{CONTAINER}/{uuid.uuid4().hex}"
    vended = {"s3.access-key-id": settings["s3.access_key_id"], "s3.secret-access-key": settings["s3.secret_access_key"]}
    conf({f"spark.pydelta.{name}": value for name, value in settings.items() if "key" not in name})
    monkeypatch.setattr(registered_catalogs, "_settings", {})
    with UnityCatalogServer(tmp_path, Catalog(root)) as server:

        def vend(life_ms: int, **more: Any) -> None:
            expires_ms = time.time_ns() // 1_000_000 + life_ms
            entry = {"prefix": root, "operation": "READ_WRITE", "config": vended, "expiration-time-ms": expires_ms}
            server.state.credentials = [entry]

        def credential_requests() -> int:
            return sum(request.endswith("/credentials") for request in server.requests)

        vend(3_600_000)
        register(spark, catalogs={"uc": {"uri": server.uri, "token": str(server.token)}})
        spark.range(0, 40, 1, 4).write.format("pydelta").saveAsTable("uc.s.t")
        requested = credential_requests()
        for _ in range(2):
            assert spark.table("uc.s.t").select(F.sum("id")).first()[0] == sum(range(40))
            spark.sql("DELETE FROM uc.s.t WHERE id >= 40")
        assert credential_requests() - requested <= 1, "the driver requests them once, and tasks do not"
        vend(2_000)
        spark.sql("CREATE TABLE uc.s.late AS SELECT id FROM range(0, 8, 1, 4)")
        frame = spark.table("uc.s.late")
        time.sleep(2.1)  # the credentials with which it was opened have expired
        vend(3_600_000)
        assert frame.filter("id >= 0").count() == 8
        publication.finish()
