"""The columns of a stored response in Arrow and in SQL. They follow from the fields of `Response`, and stand nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

import pyarrow as pa
import sqlalchemy as sa

from dtef_pipeline.asking.request import Hash, Response

_TYPES: Mapping[Any, tuple[pa.DataType, sa.types.TypeEngine[Any]]] = {
    Hash: (pa.string(), sa.String(32)),
    str: (pa.string(), sa.Text()),
    int: (pa.int32(), sa.Integer()),
    float: (pa.float64(), sa.Double()),
    # In SQL microseconds since 1970 UTC: exact, the same in every engine, and read without parsing.
    datetime: (pa.timestamp("us", tz="UTC"), sa.BigInteger()),
}


class ResponseColumn(NamedTuple):
    """A field of `Response`."""

    name: str
    type: Any
    """A key of the table of types above: the annotation without its None."""
    nullable: bool
    default: str | None
    """What the database fills in for an earlier version of the software that does not write the column; None: nothing."""

    @property
    def arrow(self) -> pa.Field:
        return pa.field(self.name, _TYPES[self.type][0])

    def sql(self) -> sa.Column[Any]:
        key = self.name == "request_key"
        return sa.Column(self.name, _TYPES[self.type][1], primary_key=key, nullable=self.nullable, server_default=self.default)


def _columns() -> Iterator[ResponseColumn]:
    annotations = get_type_hints(Response, include_extras=True)
    for field in fields(Response):
        annotation = annotations[field.name]
        nullable = NoneType in get_args(annotation)
        kind = next(part for part in get_args(annotation) if part is not NoneType) if nullable else annotation
        yield ResponseColumn(field.name, kind, nullable, None if field.default is MISSING else field.default)


RESPONSE_COLUMNS = tuple(_columns())
"""In the order of the fields."""
