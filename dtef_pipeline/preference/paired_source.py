"""How a family's stored rows become responses that may stand in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.preference.blinding import names_of_model
from dtef_pipeline.preference.votes import PairedResponse, paired_response
from dtef_pipeline.text.plain import without_thinking

SOURCE_COLUMNS = ("first", "second", "item_id", "model", "player", "draw", "snapshot", "messages", "text", "request_keys")
"""What a query of a source gives: the two levels of the partition, the item with the partition and the way of asking in it, the model's name
and its variant, draw, snapshot, what was asked (a list of structs with role and text), the text, the keys of its stored responses."""


@dataclass(frozen=True, slots=True)
class MetricSource:
    """Where automated metrics of a family stand, per player."""

    tables: tuple[str, ...]
    query: str
    """SQL over the tables that gives `beside_metrics.BESIDE_METRIC`, one row per metric and player. Names of metrics say what they were
    measured on, so that they are unique over all partitions."""


@dataclass(frozen=True, slots=True)
class PairedSource:
    """Where responses of a family stand."""

    tables: tuple[str, ...]
    query: str
    """SQL over the tables that gives `SOURCE_COLUMNS`, one row per response, only those that were answered."""
    metrics: tuple[MetricSource, ...] = ()
    """What preference can be compared with; tables that are not there are passed over."""


def paired_rows(family: str, rows: Iterable[Mapping[str, Any]]) -> list[PairedResponse]:
    """The responses of a source's rows. What a model thought before it wrote is not shown to reviewers."""
    return [
        paired_response(
            family,
            row["item_id"],
            row["player"],
            without_thinking(row["text"]).strip(),
            prompt=shown_prompt(row["messages"]),
            draw=row["draw"],
            snapshot=row["snapshot"],
            names=names_of_model(row["model"], row["player"]),
            request_keys=tuple(row["request_keys"]),
        )
        for row in rows
    ]


def shown_prompt(messages: Sequence[Mapping[str, Any]]) -> str:
    """What reviewers read of what was asked: the messages of the user, a blank line between them.

    Where examples stand between them that the model was shown as its own replies, these are there too, with who speaks before each message.
    System messages are left out, unless there is nothing else: they say how to respond, often in whose name.
    """
    spoken = [one for one in messages if one["role"] != "system"] or list(messages)
    if any(one["role"] == "assistant" for one in spoken):
        return "\n\n".join(f"{one['role'].capitalize()}: {one['text']}" for one in spoken)
    return "\n\n".join(str(one["text"]) for one in spoken)
