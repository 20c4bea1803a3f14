"""What the description of the API (OpenAPI) says of bodies of answers: models with the text of each member, and rows of tables."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from dtef_pipeline.tables import description

_JSON_KINDS = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
)
"""Kinds of columns with the type that they have in JSON."""


class WithTexts:
    """Of a model: the text under each field is part of its description."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = handler(core_schema)
        if issubclass(cls, BaseModel):
            add_texts(cls, handler.resolve_ref_schema(found))
        return found


class AnswerBody(WithTexts, BaseModel):
    """A part of an answer, as it is described. Routes send what they made: nothing is checked against it, which a test does instead."""


def may_be_missing() -> Any:
    """For a member that an answer has or not. Where it is there, it is not null."""
    return Field(default_factory=dict)


def add_texts(model: type[BaseModel], schema: dict[str, Any]) -> None:
    """Describe each member of a schema with the text that stands under the field of its model."""
    for name, text in _texts_of(model).items():
        if (member := schema.get("properties", {}).get(name)) is not None:
            member.setdefault("description", text)


@cache
def _texts_of(model: type[BaseModel]) -> dict[str, str]:
    """By name of the field, of the model and of those that it is made of."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, BaseModel) and one is not BaseModel:
            found |= _texts_in(one.__module__).get(one.__name__, {})
    return found


@cache
def _texts_in(module: str) -> Mapping[str, dict[str, str]]:
    """By class and field; none where the source is not there. Read when somebody asks for it: it takes a moment."""
    with suppress(OSError):
        classes = [one for one in ast.parse(inspect.getsource(sys.modules[module])).body if isinstance(one, ast.ClassDef)]
        return {one.name: dict(_texts_under(one.body)) for one in classes}
    return {}


def _texts_under(body: Iterable[ast.stmt]) -> Iterable[tuple[str, str]]:
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            said = text.value
            if isinstance(said, ast.Constant) and isinstance(said.value, str):
                yield field.target.id, " ".join(said.value.split())


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


ONE_OF_THE_FAMILIES = Field(json_schema_extra=_with_names_of_families)
"""Says so in the description, and checks nothing."""
FamilyName = Annotated[str, ONE_OF_THE_FAMILIES]
