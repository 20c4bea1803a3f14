"""Descriptions of the members of a model in its JSON schema: the docstrings below them in the source.

Pydantic has a setting for this (`use_attribute_docstrings`), which reads the source of every model when it is imported: a tenth of what most
commands take to start. Here it is read when a schema is made.
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
    """A model whose JSON schema says of each member what stands below it, unless its field has a description."""

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
    """By name, those of the members that a model has itself, and of those that it has from others."""
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
    except (OSError, TypeError):  # a model that was not written in a file
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
