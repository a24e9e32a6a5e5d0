"""A commit as updates for Unity Catalog: the commit itself, and what it changes of the table's definition.

    commit_updates(commit, data, load) == [{"action": "add-commit", ...}, {"action": "set-columns", ...}]

The catalog stores a copy of the table's columns, properties and protocol, in its own spelling. Properties that it derives are
never sent back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from delta_py.coordinator.ledger import Ratified
from delta_py.types.json_text import parse_json
from delta_py.unity.catalog_answers import CatalogTable

# Properties that the catalog derives from the rest of the table's definition, as it derives all that begin with _FEATURE_PREFIX.
_DERIVED_PROPERTIES = (
    *("delta.lastUpdateVersion", "delta.lastCommitTimestamp", "delta.minReaderVersion", "delta.minWriterVersion"),
    *("delta.clusteringColumns", "delta.rowTracking.rowIdHighWaterMark"),
)
_FEATURE_PREFIX = "delta.feature."
_DOMAIN_FIELDS = {"delta.clustering": "clusteringColumns", "delta.rowTracking": "rowIdHighWaterMark"}
"""The metadata domains that the catalog takes, each with the only field of its configuration that the catalog takes."""

# The beginnings of the lines of a commit that are parsed. A commit may have very many other lines, for its files.
_DEFINITION_LINES = (b'{"commitInfo"', b'{"metaData"', b'{"protocol"', b'{"domainMetadata"')
# The keys of a type in a schemaString, and their spelling in the catalog.
_TYPE_KEYS = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}


def commit_updates(commit: Ratified, data: bytes, load: Callable[[], CatalogTable]) -> list[dict[str, Any]]:
    """The updates that report a commit, for one request. data: the commit's content. load: reads the table's present state from
    the catalog; called only if the commit has a metaData action.
    """
    actions = [parse_json(line) for line in data.splitlines() if line.startswith(_DEFINITION_LINES)]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    updates: list[dict[str, Any]] = [
        {
            "action": "add-commit",
            "commit": {
                "version": commit.version,
                "timestamp": info["inCommitTimestamp"],
                "file-name": commit.name,
                "file-size": commit.size_bytes,
                "file-modification-timestamp": commit.time_ms,
            },
        }
    ]
    metadata = next((action["metaData"] for action in actions if "metaData" in action), None)
    if metadata is not None:
        updates += _metadata_updates(metadata, load())
    updates += [_protocol_update(action["protocol"]) for action in actions if "protocol" in action]
    return updates + list(_domain_updates([action["domainMetadata"] for action in actions if "domainMetadata" in action]))


def new_table_form(location: str, data: bytes) -> dict[str, Any]:
    """The definition of a managed table, from the content of its first commit, as the catalog takes it."""
    actions = [parse_json(line) for line in data.splitlines() if line.startswith(_DEFINITION_LINES)]
    metadata, protocol, info = (
        next(action[kind] for action in actions if kind in action) for kind in ("metaData", "protocol", "commitInfo")
    )
    domains = [action["domainMetadata"] for action in actions if "domainMetadata" in action]
    definition = _definition_form(metadata, protocol, domains)
    return {"location": location, "table-type": "MANAGED", **definition, "last-commit-timestamp-ms": info["inCommitTimestamp"]}


def external_table_form(
    location: str,
    metadata: Mapping[str, Any],
    protocol: Mapping[str, Any],
    domains: Iterable[Mapping[str, Any]],
    timestamp_ms: int,
) -> dict[str, Any]:
    """The definition of an external table, as the catalog takes it, from the values of its actions in JSON. timestamp_ms: of the
    newest version, since 1970."""
    definition = _definition_form(metadata, protocol, domains)
    return {"location": location, "table-type": "EXTERNAL", **definition, "last-commit-timestamp-ms": timestamp_ms}


def _definition_form(
    metadata: Mapping[str, Any], protocol: Mapping[str, Any], domains: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """The parts of a table's definition, from the values of its actions in JSON."""
    catalog_domains = {
        domain["domain"]: configuration for domain in domains if (configuration := _configuration_if_known(domain)) is not None
    }
    description = metadata.get("description")
    return {
        "columns": catalog_type(parse_json(metadata["schemaString"])),
        "partition-columns": metadata.get("partitionColumns") or [],
        "protocol": protocol_form(protocol),
        "properties": {name: value for name, value in metadata["configuration"].items() if not is_derived(name)},
        **({} if description is None else {"comment": description}),
        **({"domain-metadata": catalog_domains} if catalog_domains else {}),
    }


def catalog_type(data_type: Any) -> Any:
    """A type of a schemaString in the catalog's spelling. The metadata of columns may have any keys, and does not change."""
    if isinstance(data_type, list):
        return [catalog_type(field) for field in data_type]
    if not isinstance(data_type, dict):
        return data_type
    return {_TYPE_KEYS.get(key, key): value if key == "metadata" else catalog_type(value) for key, value in data_type.items()}


def protocol_form(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """A protocol action in the catalog's spelling."""
    return {
        "min-reader-version": protocol["minReaderVersion"],
        "min-writer-version": protocol["minWriterVersion"],
        "reader-features": protocol.get("readerFeatures") or [],
        "writer-features": protocol.get("writerFeatures") or [],
    }


def is_derived(property_name: str) -> bool:
    """Whether the catalog derives the property from the rest of the table's definition."""
    return property_name in _DERIVED_PROPERTIES or property_name.startswith(_FEATURE_PREFIX)


def _metadata_updates(metadata: Mapping[str, Any], present: CatalogTable) -> Iterator[dict[str, Any]]:
    """The updates that give the catalog's table the columns, properties and comment of a metaData action. present: the table as
    the catalog has it now; what is equal already is left out."""
    columns = catalog_type(parse_json(metadata["schemaString"]))
    if columns != present.columns:
        yield {"action": "set-columns", "columns": columns}
    partition_columns = list(metadata.get("partitionColumns") or [])
    if partition_columns != list(present.partition_columns):
        yield {"action": "set-partition-columns", "partition-columns": partition_columns}
    properties = {name: value for name, value in metadata["configuration"].items() if not is_derived(name)}
    present_properties = {name: value for name, value in present.properties.items() if not is_derived(name)}
    if changed := {name: value for name, value in properties.items() if present_properties.get(name) != value}:
        yield {"action": "set-properties", "updates": changed}
    if removed := sorted(present_properties.keys() - properties.keys()):
        yield {"action": "remove-properties", "removals": removed}
    description = metadata.get("description")
    if description is not None and description != present.comment:
        yield {"action": "set-table-comment", "comment": description}


def _protocol_update(protocol: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "set-protocol", "protocol": protocol_form(protocol)}


def _domain_updates(domains: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The updates for the metadata domains that the catalog knows. domains: the domainMetadata actions."""
    catalog_domains = [domain for domain in domains if domain["domain"] in _DOMAIN_FIELDS]
    updates = {domain["domain"]: _configuration(domain) for domain in catalog_domains if not domain.get("removed")}
    if updates:
        yield {"action": "set-domain-metadata", "updates": updates}
    if removed := [domain["domain"] for domain in catalog_domains if domain.get("removed")]:
        yield {"action": "remove-domain-metadata", "domains": removed}


def _configuration_if_known(domain: Mapping[str, Any]) -> dict[str, Any] | None:
    """As _configuration; None for a domain that the catalog does not take, or whose configuration lacks the field."""
    try:
        return _configuration(domain) if domain["domain"] in _DOMAIN_FIELDS else None
    except (ValueError, KeyError, TypeError):
        return None


def _configuration(domain: Mapping[str, Any]) -> dict[str, Any]:
    """The one field of a domain's configuration that the catalog takes, as a JSON object."""
    field = _DOMAIN_FIELDS[domain["domain"]]
    return {field: parse_json(domain["configuration"])[field]}
