"""Schemas of response bodies for OpenAPI: their parts, and rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any

import pyarrow as pa
from pydantic import ConfigDict, Field

from dtef_pipeline.documents import DescribedMembers
from dtef_pipeline.preference.pairing import OTHER_TOOLS
from dtef_pipeline.tables import description
from dtef_pipeline.text.json_values import simplify_value

_JSON_KINDS = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
)
"""JSON types by kind of column."""


class AnswerBody(DescribedMembers):
    """A part of a response body for the description. Routes do not validate against it; a test does."""


def make_optional() -> Any:
    """For a member that a response may lack. If present, it is not null."""
    return Field(default_factory=dict)


class TableColumns:
    """Columns of a table as members of a response. `names`: None: all. Each may be null, because older files lack newer columns."""

    def __init__(self, columns: pa.Schema, names: Iterable[str] | None = None) -> None:
        self.columns, self.names = columns, tuple(names or columns.names)

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add them to the schema of a response, before its own members."""
        column_schemas = {name: column_schema(self.columns.field(name)) for name in self.names}
        schema["properties"] = {**column_schemas, **schema.get("properties", {})}
        schema["required"] = [*schema["properties"]]


def describe_row(columns: pa.Schema, names: Iterable[str] | None = None) -> ConfigDict:
    """Return the columns of a RowBody, see `TableColumns`."""
    return ConfigDict(json_schema_extra=TableColumns(columns, names))


class RowBody(AnswerBody):
    """A part of a response whose members are columns of a table, with the table's descriptions, and its own members."""

    @classmethod
    def list_columns(cls) -> tuple[str, ...]:
        columns = cls.model_config["json_schema_extra"]
        assert isinstance(columns, TableColumns)
        return columns.names

    @classmethod
    def select_columns(cls, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns as JSON values; null if the row lacks one."""
        return {name: convert_to_json(row.get(name)) for name in cls.list_columns()}


def convert_to_json(value: Any) -> Any:
    """Convert a value to JSON: times as ISO texts with a T, NaN as None."""
    return simplify_value(value, datetime.isoformat)


def column_schema(column: pa.Field) -> dict[str, Any]:
    """Return the JSON schema of a column, which may be null."""
    schema = _describe_type(column.type)
    return {**schema, "type": [schema["type"], "null"], "description": description(column)}


def _describe_type(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _describe_type(kind.value_type)}
    if pa.types.is_struct(kind):
        members = {field.name: _describe_type(field.type) for field in kind}
        return {"type": "object", "properties": members, "required": [*members]}
    return {"type": next(name for fits, name in _JSON_KINDS if fits(kind))}


def list_families(*others: str) -> list[str]:
    """Return the names of the families, and `others`."""
    # Imported here because the families load slowly.
    from dtef_pipeline.families import FAMILIES

    return [*(family.name for family in FAMILIES), *others]


FamilyName = Annotated[str, Field(json_schema_extra=lambda schema: schema.update(enum=list_families()))]
"""Only for the description; checks nothing."""
VotedFamilyName = Annotated[str, Field(json_schema_extra=lambda schema: schema.update(enum=list_families(OTHER_TOOLS)))]
"""Family of votes: one of the families, or that of votes collected by another tool."""
