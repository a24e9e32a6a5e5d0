"""Writers of one table in S3 for separate processes: delta_py, and deltalake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa


def peer_options(settings: Mapping[str, str]) -> dict[str, str]:
    """deltalake's names for the settings of StorageOptions."""
    return {
        "AWS_ENDPOINT_URL": settings["s3.endpoint"],
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": settings["s3.access_key_id"],
        "AWS_SECRET_ACCESS_KEY": settings["s3.secret_access_key"],
        "AWS_REGION": settings["s3.region"],
        "conditional_put": "etag",
    }


def rows(ids: Sequence[int]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{number}" for number in ids]})


def append_ours(url: str, settings: Mapping[str, str], ids: Sequence[int]) -> None:
    """One commit for each id."""
    from delta_py import write_delta

    for number in ids:
        write_delta(url, rows([number]), mode="append", storage_options=settings)


def append_theirs(url: str, settings: Mapping[str, str], ids: Sequence[int]) -> None:
    """One commit for each id."""
    from deltalake import write_deltalake

    for number in ids:
        write_deltalake(url, rows([number]), mode="append", storage_options=peer_options(settings))
