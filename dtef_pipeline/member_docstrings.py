"""Descriptions of a model's members in its JSON schema: the docstrings below them in the source.

Pydantic's setting `use_attribute_docstrings` reads the source of every model at import, a tenth of the start time of most
commands. This module reads it when a schema is built.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class DescribedMembers(BaseModel):
    """A model whose JSON schema describes each member by the docstring below it, unless its field has a description."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        members = handler.resolve_ref_schema(schema).get("properties", {})
        for name, member_text in member_docstrings(cls).items():
            named = name if name in members else cls.model_fields[name].alias
            if named in members:
                members[named].setdefault("description", member_text)
        return schema


def member_docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the docstrings of a model's own and inherited members, by name."""
    docstrings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            docstrings |= {
                name: member_text for name, member_text in _read_own_docstrings(base).items() if name in model.model_fields
            }
    return docstrings


@cache
def _read_own_docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except (OSError, TypeError):  # a model class that was created at run time has no source
        return {}
    assert isinstance(definition, ast.ClassDef)
    return {
        member.target.id: inspect.cleandoc(below.value.value)
        for member, below in pairwise(definition.body)
        if isinstance(member, ast.AnnAssign)
        and isinstance(member.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
