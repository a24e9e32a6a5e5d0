"""The clustering domain: names that users know, from physical paths."""

from __future__ import annotations

import pytest

from delta_py.errors import CorruptTableError
from delta_py.protocol.actions import DomainMetadata
from delta_py.protocol.clustering import (
    CLUSTERING_DOMAIN,
    clustering_columns,
    clustering_domain,
    clustering_leaves,
    clustering_paths,
)
from delta_py.types.schema import LONG, StructField, StructType

_PHYSICAL = "delta.columnMapping.physicalName"
SCHEMA = StructType(
    (
        StructField("id", LONG, metadata={_PHYSICAL: "c-1"}),
        StructField("st", StructType((StructField("x", LONG, metadata={_PHYSICAL: "c-3"}),)), metadata={_PHYSICAL: "c-2"}),
    )
)


def test_domain_has_physical_paths_and_returns_logical_names() -> None:
    domain = clustering_domain(SCHEMA, ["st.x", "id"], "name")
    assert clustering_paths(domain) == (("c-2", "c-3"), ("c-1",))
    assert clustering_columns(SCHEMA, domain) == ("st.x", "id")


def test_path_to_no_column_is_given_as_it_stands() -> None:
    domain = DomainMetadata(CLUSTERING_DOMAIN, '{"clusteringColumns":[["c-1"],["user","address","city"]]}')
    assert clustering_columns(SCHEMA, domain) == ("id", "user.address.city")
    assert clustering_leaves(SCHEMA, domain) == (("c-1",),)


@pytest.mark.parametrize("text", ["{}", "[]", '{"clusteringColumns":[[1]]}', "{"])
def test_domain_without_a_list_of_paths_is_damaged(text: str) -> None:
    with pytest.raises(CorruptTableError, match="names no columns"):
        clustering_columns(SCHEMA, DomainMetadata(CLUSTERING_DOMAIN, text))
