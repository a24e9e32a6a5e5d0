"""What writers leave in a store if they die in the middle of a file: nothing visible, and nothing for long."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from delta_py.definition.request import WriteRequest
from delta_py.object_stores.open_store import open_store
from delta_py.row_changes.write import abort_write, plan_write
from delta_py.row_changes.write_plans import WritePlan
from delta_py.row_rules.write_state import FileLayout
from delta_py.types.schema import DOUBLE, StructField, StructType
from delta_py.write.data_files import write_files
from tests.storage.conftest import CONTAINER, new_url
from tests.support.servers.emulators import Emulator, boto3_client

SCHEMA = StructType((StructField("x", DOUBLE),))


def write_and_die(plan: WritePlan) -> None:
    """The process dies after it has sent some megabytes of a file."""

    def batches() -> Any:
        for seed in range(40):
            yield pa.record_batch({"x": np.random.default_rng(seed).random(65_536)})
        os.kill(os.getpid(), signal.SIGKILL)

    write_files(plan.state, batches())


def begun_by_a_writer_that_died(emulator: Emulator) -> WritePlan:
    store = open_store(new_url(emulator), emulator.options())
    plan = plan_write(store, SCHEMA, WriteRequest("append"))
    assert isinstance(plan, WritePlan)
    plan = replace(plan, state=replace(plan.state, layout=FileLayout(row_group_bytes=1 << 20)))
    writer = multiprocessing.get_context("spawn").Process(target=write_and_die, args=(plan,))
    writer.start()
    writer.join(120)
    assert writer.exitcode == -signal.SIGKILL
    return plan


def test_file_of_a_writer_that_died_is_not_there(emulator: Emulator) -> None:
    plan = begun_by_a_writer_that_died(emulator)
    assert list(plan.state.store.list_recursive("")) == []


def test_upload_of_a_writer_that_died_is_given_up_with_the_write(emulators: Callable[[str], Emulator]) -> None:
    emulator = emulators("s3")
    client: Any = boto3_client("s3", emulator.endpoint)

    def uploads() -> list[str]:
        return [upload["Key"] for upload in client.list_multipart_uploads(Bucket=CONTAINER).get("Uploads", ())]

    before = uploads()
    plan = begun_by_a_writer_that_died(emulator)
    (upload_key,) = [key for key in uploads() if key not in before]
    assert plan.state.write_id in upload_key
    abort_write(plan.state.store, plan)
    assert uploads() == before
