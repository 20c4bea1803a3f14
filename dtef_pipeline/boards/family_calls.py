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
"""Requests with calls that may have been billed at an unknown cost, whether they have a response or none."""


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
    """How many of the calls were answered."""
    status: str = "NULL"
    """What became of calls without a reply: `error`, `budget`, or something that no call was made for."""
    error: str = "NULL"
    """Why there is no reply."""
    snapshot: str = "snapshot"
    purpose: str = "NULL"
    """What the model was asked for within its partition."""
    setting: str = "NULL"
    """Another part of the setting, by which costs are not broken down."""
    attempts: str = "NULL"
    """Calls that may have been billed at an unknown cost; null: the response store knows."""
    unknown_cost_limit: str = "NULL"
    """Upper limit in US dollars for these calls."""


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
    """What the family calls the purpose of a call, such as condition; empty: it tells none apart."""
    summed_by: tuple[str, ...] = ("role", "model")
    """What costs are added up by where nothing is named."""
    embeds: bool = False
    """Whether embedders were asked for it. No table says what they cost; the response store does."""
