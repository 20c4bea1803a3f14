"""The model calls behind the rows of a family's tables. Loads nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dtef_pipeline.asking.request import CANDIDATE
from dtef_pipeline.keys import Space

StoredUsage = Callable[[Sequence[str]], pa.Table]
"""The stored responses to request keys, with tokens and cost."""

UNKNOWN_COSTS = pa.schema(
    [("request_key", pa.string()), ("unknown_cost_attempts", pa.int64()), ("unknown_cost_usd_most", pa.float64())]
)
"""Requests with calls that may have been billed at an unknown cost, with or without a response."""


@dataclass(frozen=True, slots=True)
class Calls:
    """A table whose rows result from calls, with the columns `prompt_tokens`, `completion_tokens` and `cost_usd`.

    All fields but `table` and `keys` are SQL over its columns.
    """

    table: str
    keys: str = "request_keys"
    """The column that names the calls: a list of request keys, or one key."""
    role: str = f"'{CANDIDATE}'"
    model: str = "model"
    variant: str = "model_variant"
    replies: str = "len(raw)"
    """Number of answered calls."""
    status: str = "NULL"
    """Outcome of calls without a reply: `error`, `budget`, or another value if no call was made."""
    error: str = "NULL"
    """Reason why there is no reply."""
    snapshot: str = "snapshot"
    purpose: str = "NULL"
    """Purpose of the call within its partition."""
    setting: str = "NULL"
    """Another part of the setting, by which costs are not broken down."""
    attempts: str = "NULL"
    """Calls that may have been billed at an unknown cost; null: in the response store."""
    unknown_cost_limit: str = "NULL"
    """Upper limit in US dollars for these calls."""
    first: str = ""
    """First level of the partition; empty: the column of the family's space. `second` likewise."""
    second: str = ""
    only: str = "true"
    """Whether a row is of this family."""


def calls_by_key(table: str, **differs: str) -> Calls:
    """Describe a table with a row per request (see `tables.CALL`)."""
    usual = {
        "keys": "request_key",
        "replies": "(call_status = 'answered')::BIGINT",
        "status": "call_status",
        "error": "error",
        "attempts": "unknown_cost_attempts",
        "unknown_cost_limit": "unknown_cost_usd_most",
    }
    return Calls(table, **{**usual, **differs})


@dataclass(frozen=True, slots=True)
class FamilyCalls:
    """All tables of a family whose rows result from calls."""

    space: Space
    tables: tuple[Calls, ...]
    purpose: str = ""
    """The family's word for the purpose of a call, such as condition; empty: it distinguishes none."""
    summed_by: tuple[str, ...] = ("role", "model")
    """Columns by which costs are summed by default."""
    embeds: bool = False
    """Whether the family uses embedders. Their costs are in the response store only."""
