"""The older part of Unity Catalog's API, for schemas and lists of tables, with errors in their older form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refusal(Exception):
    def __init__(self, status: int, kind: str, message: str, *, is_older: bool = False) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.is_older = status, kind, message, is_older

    def form(self) -> dict[str, Any]:
        if self.is_older:
            return {"error_code": self.kind, "details": [], "message": self.message}
        return {"error": {"message": self.message, "type": self.kind, "code": self.status, "stack": "…"}}


class SchemaPages:
    """schemas: catalog and schema. tables: by catalog, schema and name."""

    schemas: set[tuple[str, str]]
    tables: dict[tuple[str, str, str], Any]

    def page(self, kind: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Two names at a time. kind: schemas or tables."""
        catalog = query["catalog_name"]
        if kind == "schemas":
            names = sorted(schema for known, schema in self.schemas if known == catalog)
        else:
            names = sorted(table for *schema, table in self.tables if schema == [catalog, query["schema_name"]])
        if not any(known == catalog for known, _ in self.schemas):
            raise Refusal(404, "CATALOG_NOT_FOUND", f"Catalog not found: {catalog}", is_older=True)
        start = int(query.get("page_token", 0))
        following = str(start + 2) if len(names) > start + 2 else None
        return {kind: [{"name": name} for name in names[start : start + 2]], "next_page_token": following}

    def schema(self, name: str) -> dict[str, Any]:
        catalog, schema = name.split(".")
        if (catalog, schema) not in self.schemas:
            raise Refusal(404, "SCHEMA_NOT_FOUND", f"Schema not found: {name}", is_older=True)
        return {"name": schema, "catalog_name": catalog, "full_name": name, "comment": None, "properties": {}}

    def create_schema(self, body: Mapping[str, Any]) -> dict[str, Any]:
        key = body["catalog_name"], body["name"]
        if key in self.schemas:
            raise Refusal(400, "SCHEMA_ALREADY_EXISTS", f"Schema already exists: {'.'.join(key)}", is_older=True)
        self.schemas.add(key)
        return self.schema(".".join(key))

    def drop_schema(self, name: str, *, with_tables: bool) -> dict[str, Any]:
        self.schema(name)
        tables = [key for key in self.tables if ".".join(key[:2]) == name]
        if tables and not with_tables:
            raise Refusal(400, "FAILED_PRECONDITION", "Cannot delete schema with tables", is_older=True)
        for key in tables:
            del self.tables[key]
        catalog, schema = name.split(".")
        self.schemas.remove((catalog, schema))
        return {}
