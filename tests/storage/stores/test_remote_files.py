"""Objects of remote stores as files: ranges return the same bytes as plain reads, and an unclosed file never appears."""

from __future__ import annotations

import gc
import hashlib
import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.errors import StorageError, StoreUnavailableError
from delta_py.object_stores.remote import RemoteStore
from delta_py.storage.arrow_files import ByteRange, discard, expect_ranges
from tests.storage.conftest import CONTAINER, new_url
from tests.support.runs.seeds import seed_of
from tests.support.servers.cutting_proxy import CuttingProxy, FailingFrom, Fault, FaultPlan, Plan, Request
from tests.support.servers.emulators import KINDS, Emulator, boto3_client
from tests.support.servers.gcs_uploads import ResumableUploads

MB = 1024 * 1024
SIZE = 9 * MB + 12_345  # longer than one request


@pytest.fixture(scope="module", params=KINDS)
def large(request: pytest.FixtureRequest, emulators: Callable[[str], Emulator]) -> tuple[RemoteStore, bytes]:
    """A store, and the bytes of its object `large`."""
    emulator, content = emulators(request.param), random.Random(7).randbytes(SIZE)
    store = RemoteStore(new_url(emulator), emulator.options())
    store.put("large", content)
    return store, content


def ranges() -> st.SearchStrategy[ByteRange]:
    """Short ones and long ones; also those that begin or end beyond the object."""
    offsets = st.one_of(st.integers(0, SIZE + MB), st.sampled_from([0, 1, SIZE - 65_536, SIZE - 1, SIZE]))
    return st.tuples(offsets, st.one_of(st.integers(0, 2000), st.integers(0, 5 * MB)))


@hypothesis.settings(max_examples=30)
@hypothesis.given(st.lists(ranges(), max_size=6), st.lists(ranges(), min_size=1, max_size=6), st.booleans())
def test_reads_of_ranges_are_those_of_the_whole(
    large: tuple[RemoteStore, bytes], expected: list[ByteRange], read: list[ByteRange], size_is_known: bool
) -> None:
    store, content = large
    with store.open_input("large", SIZE if size_is_known else None) as source:
        expect_ranges(source, expected)
        for offset, length in [*read, *expected]:
            if offset <= SIZE:
                source.seek(offset)
                assert source.read(length) == content[offset : offset + length]
                assert source.tell() == min(offset + length, SIZE)
            assert store.read_range("large", offset, length) == content[offset : offset + length]


def test_whole_large_object_is_read(large: tuple[RemoteStore, bytes]) -> None:
    store, content = large
    assert store.read("large") == content
    with store.open_input("large") as source:
        assert source.size() == SIZE
        assert source.read() == content


def test_columns_of_a_parquet_file_are_read_in_any_order(remote: RemoteStore) -> None:
    columns = {f"c{number}": pa.array(range(number, number + 50_000)) for number in range(10)}
    table = pa.table(columns)
    with remote.open_output("t.parquet") as sink:
        pq.write_table(table, sink, row_group_size=10_000, compression="none", use_dictionary=False)
    file = pq.ParquetFile(remote.open_input("t.parquet"))
    for name in ("c7", "c0", "c9"):
        assert file.read([name]).equals(table.select([name]))
    assert file.read().equals(table)


def test_object_that_was_replaced_while_it_is_read_is_an_error(remote: RemoteStore) -> None:
    remote.put("a", b"1" * 3 * MB)
    with remote.open_input("a") as source:
        remote.put("a", b"2" * MB)
        source.seek(2 * MB)
        with pytest.raises(OSError, match=r"a has not the 3145728 bytes .* it was replaced"):
            source.read(MB)


# ---------------------------------------------------------------- writing


def pieces(count_bytes: int) -> Iterator[bytes]:
    """Of many lengths, as an encoder writes them."""
    source, remaining = random.Random(11), count_bytes
    while remaining:
        length = min(remaining, source.choice([1, 100, 70_000, 1_500_000, 9 * MB]))
        yield source.randbytes(length)
        remaining -= length


def test_large_object_is_written_in_parts(remote: RemoteStore) -> None:
    with remote.open_output("d/large") as sink:
        for number, piece in enumerate(pieces(30 * MB)):
            sink.write(piece)
            if number % 10 == 0:
                assert list(remote.list_recursive("d")) == [], "nobody sees a part of it"
        assert sink.tell() == 30 * MB
    assert remote.read("d/large") == b"".join(pieces(30 * MB))
    assert [info.size_bytes for info in remote.list_recursive("d")] == [30 * MB]


def test_object_of_exactly_one_part_is_whole(remote: RemoteStore) -> None:
    for length in (8 * MB - 1, 8 * MB, 8 * MB + 1, 16 * MB):
        with remote.open_output("d/file") as sink:
            sink.write(b"x" * length)
        assert [info.size_bytes for info in remote.list_recursive("d")] == [length]
    assert remote.read("d/file") == b"x" * 16 * MB


@pytest.mark.parametrize("emulator", ["s3"], indirect=True)
def test_memory_of_a_writer_does_not_grow_with_the_object(emulator: Emulator) -> None:
    """The store is slower than the writer."""
    with CuttingProxy(emulator.port, latency_seconds=0.3) as proxy:
        store, piece = RemoteStore(new_url(emulator), emulator.options(proxy.endpoint)), b"x" * MB
        most = {}
        for megabytes in (60, 180):
            proxy.exchanges.clear()
            tracemalloc.start()
            with store.open_output("large") as sink:
                for _ in range(megabytes):
                    sink.write(piece)
                    proxy.exchanges = [exchange for exchange in proxy.exchanges if not exchange.request.body]
            most[megabytes] = tracemalloc.get_traced_memory()[1] / MB
            tracemalloc.stop()
        assert most[180] < most[60] + 20


def is_part_of_upload(request: Request) -> bool:
    """Also the requests that begin an upload and end it."""
    return request.method in ("PUT", "POST", "DELETE")


def spoiling(emulator: Emulator, plan: Plan) -> CuttingProxy:
    if emulator.kind.name == "gcs":
        return CuttingProxy(emulator.port, plan=plan, before=ResumableUploads())
    return CuttingProxy(emulator.port, plan=plan)


UPLOAD_FAULTS = [fault for fault in Fault if fault not in (Fault.SILENT_AFTER, Fault.SLOW_AFTER)]  # these take longer


@pytest.mark.parametrize("seed", range(4))
def test_large_object_is_whole_however_many_answers_are_lost(emulator: Emulator, seed: int) -> None:
    """A part that is sent again is in the object once."""
    plan = FaultPlan(seed_of(f"upload {seed}"), 0.5, UPLOAD_FAULTS, is_part_of_upload)
    content = random.Random(seed).randbytes(27 * MB + seed)
    with spoiling(emulator, plan) as proxy:
        options = emulator.options(proxy.endpoint, storage_request_timeout="10", storage_retry_timeout="60")
        store = RemoteStore(new_url(emulator), options)
        with store.open_output("d/file") as sink:
            for start in range(0, len(content), 3 * MB):
                sink.write(content[start : start + 3 * MB])
        assert sum(exchange.fault is not None for exchange in proxy.exchanges) > 0
        assert hashlib.sha256(store.read("d/file")).hexdigest() == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("seed", range(3))
def test_object_whose_upload_fails_for_good_is_not_there(emulator: Emulator, seed: int) -> None:
    """The store stops answering in the middle: the object does not exist, now and after the writer has ended."""
    with spoiling(emulator, FailingFrom(2 + seed)) as proxy:
        options = emulator.options(proxy.endpoint, storage_request_timeout="1", storage_retry_timeout="1")
        store = RemoteStore(new_url(emulator), options)
        with pytest.raises((StoreUnavailableError, StorageError)), store.open_output("d/file") as sink:
            for _ in range(40):
                sink.write(b"x" * MB)
        del sink
        gc.collect()
        assert list(RemoteStore(store.root, emulator.options()).list_recursive("")) == []


def unfinished(store: RemoteStore, emulator: Emulator) -> list[str]:
    """The keys of uploads that were begun and neither finished nor given up. The other stores do not list them."""
    if emulator.kind.name != "s3":
        return []
    client: Any = boto3_client("s3", emulator.endpoint)
    begun = client.list_multipart_uploads(Bucket=CONTAINER).get("Uploads", ())
    return [upload["Key"] for upload in begun if f"s3://{CONTAINER}/{upload['Key']}".startswith(f"{store.root}/")]


@pytest.mark.parametrize("length", [0, 10, 9 * MB, 40 * MB], ids=["nothing", "a little", "a part", "many parts"])
def test_discarded_file_leaves_nothing(remote: RemoteStore, emulator: Emulator, length: int) -> None:
    sink = remote.open_output("d/given-up")
    for start in range(0, length, MB):
        sink.write(b"x" * min(MB, length - start))
    discard(sink)
    assert sink.closed
    assert list(remote.list_recursive("")) == []
    assert unfinished(remote, emulator) == []


@pytest.mark.parametrize("length", [10, 9 * MB, 20 * MB], ids=["a little", "a part", "two parts"])
def test_file_that_is_let_go_of_leaves_nothing(remote: RemoteStore, emulator: Emulator, length: int) -> None:
    sink = remote.open_output("d/forgotten")
    sink.write(b"x" * length)
    del sink
    gc.collect()
    assert list(remote.list_recursive("")) == []
    assert unfinished(remote, emulator) == []


def test_file_whose_writer_fails_leaves_nothing(remote: RemoteStore, emulator: Emulator) -> None:
    def write() -> None:
        sink = remote.open_output("d/failed")
        sink.write(b"x" * 9 * MB)
        raise ValueError("the encoder failed")

    with pytest.raises(ValueError, match="the encoder failed"):
        write()
    gc.collect()
    assert list(remote.list_recursive("")) == []
    assert unfinished(remote, emulator) == []
