"""What the description of the API (OpenAPI) says of bodies of answers: parts of them, and rows of tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Any

import pyarrow as pa
from pydantic import ConfigDict, Field

from dtef_pipeline.member_docstrings import DescribedMembers
from dtef_pipeline.preference.paired_csv import ELSEWHERE
from dtef_pipeline.tables import description

_JSON_KINDS = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
)
"""Kinds of columns with the type that they have in JSON."""


class AnswerBody(DescribedMembers):
    """A part of an answer, as it is described. Routes send what they made: nothing is checked against it, which a test does instead."""


def may_be_missing() -> Any:
    """For a member that an answer has or not. Where it is there, it is not null."""
    return Field(default_factory=dict)


def row_of(columns: pa.Schema, names: Iterable[str] | None = None, never_null: Collection[str] = ()) -> ConfigDict:
    """For a model whose members are columns of a table, and those that it names itself. `names`: of the columns; None: all.

    Of the others any may be null: a file that was written before there was a column has none of its values.
    """

    def extended(schema: dict[str, Any]) -> None:
        told = {name: column_schema(columns.field(name), can_be_null=name not in never_null) for name in names or columns.names}
        schema["properties"] = {**told, **schema.get("properties", {})}
        schema["required"] = [*schema["properties"]]

    return ConfigDict(json_schema_extra=extended)


def column_schema(column: pa.Field, *, can_be_null: bool = True) -> dict[str, Any]:
    """What a value of a column is in JSON."""
    found = _in_json(column.type)
    if can_be_null:
        found["type"] = [found["type"], "null"]
    return {**found, "description": description(column)}


def _in_json(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _in_json(kind.value_type)}
    if pa.types.is_struct(kind):
        members = {one.name: _in_json(one.type) for one in kind}
        return {"type": "object", "properties": members, "required": [*members]}
    return {"type": next(name for fits, name in _JSON_KINDS if fits(kind))}


def _with_names_of_families(schema: dict[str, Any]) -> None:
    # Only now: what families are made of takes a moment to load.
    from dtef_pipeline.families import FAMILIES

    schema["enum"] = [one.name for one in FAMILIES]


FamilyName = Annotated[str, Field(json_schema_extra=_with_names_of_families)]
"""Says so in the description, and checks nothing."""


def _with_names_of_voted_families(schema: dict[str, Any]) -> None:
    _with_names_of_families(schema)
    schema["enum"].append(ELSEWHERE)


VotedFamilyName = Annotated[str, Field(json_schema_extra=_with_names_of_voted_families)]
"""Of votes: one of the families, or that of votes which another tool took."""
