"""Conversion of a family's stored rows to responses for pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.judging.hidden_names import list_names_of_model
from dtef_pipeline.preference.pairing import BlindedPair
from dtef_pipeline.preference.votes import PairedResponse, make_paired_response
from dtef_pipeline.text.plain import strip_thinking

SOURCE_COLUMNS = ("first", "second", "item_id", "model", "player", "draw", "snapshot", "messages", "text", "request_keys")
"""Columns of a source's query: the two levels of the partition, the item (with its partition and condition), the model's name and variant,
draw, snapshot, the prompt (a list of structs with role and text), the text, and the keys of its stored responses.

A text of several turns is a list of structs: `said`, the player's text, and `answer`, the reply to it (null: none). An optional column
`persona` is the name and version of the persona that the model played, such as `cautious:v2`, or empty; the player is then PERSONA@VARIANT. An
optional column `served_model` is the provider's name of the model that answered (null: not reported)."""
_NO_DISPLAY_NAMES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class MetricSource:
    """The source of a family's automated metrics, per player."""

    tables: tuple[str, ...]
    query: str
    """SQL over the tables that gives `compare_with_metrics.BESIDE_METRIC`, one row per metric and player. Names of metrics include
    what they were measured on, so they are unique over all partitions."""


@dataclass(frozen=True, slots=True)
class PairedSource:
    """The source of a family's responses."""

    tables: tuple[str, ...]
    query: str
    """SQL over the tables that returns `SOURCE_COLUMNS`, one row per answered response."""
    metrics: tuple[MetricSource, ...] = ()
    """Metrics to compare preference with; missing tables are skipped."""
    layout: Callable[[BlindedPair], BlindedPair] | None = None
    """Converts its pairs to a layout for people, if it differs from the text. Judges, ids and lengths use the text itself."""


def build_paired_responses(
    family: str, rows: Iterable[Mapping[str, Any]], display_names: Mapping[str, str] = _NO_DISPLAY_NAMES
) -> list[PairedResponse]:
    """Return the responses of a source's rows, without the models' reasoning.

    `display_names`: names of personas for people, by name and version.
    """
    return [
        make_paired_response(
            family,
            row["item_id"],
            row["player"],
            format_shown_text(row["text"]),
            prompt=format_shown_prompt(row["messages"]),
            draw=row["draw"],
            snapshot=row["snapshot"],
            names=_list_hidden_names(row, display_names),
            request_keys=tuple(row["request_keys"]),
        )
        for row in rows
    ]


def format_shown_text(text: str | Sequence[Mapping[str, Any]]) -> str:
    """Return a response as shown to reviewers: its text, or its turns with the speaker before each."""
    if isinstance(text, str):
        return strip_thinking(text).strip()
    parts = []
    for turn in text:
        parts.append(f"Player: {strip_thinking(turn['said']).strip()}")
        if turn["answer"]:
            parts.append(f"Game: {turn['answer'].strip()}")
    return "\n\n".join(parts)


def _list_hidden_names(row: Mapping[str, Any], display_names: Mapping[str, str]) -> tuple[str, ...]:
    """Return all names of the model, including the provider's, and of its persona."""
    persona = row.get("persona") or ""
    names = list_names_of_model(row["model"], row["player"].removeprefix(f"{persona}@") if persona else row["player"])
    served_model = row.get("served_model")
    names = (*names, served_model) if served_model else names
    if not persona:
        return names
    return (*names, persona, persona.partition(":")[0], *([display_names[persona]] if persona in display_names else []))


def format_shown_prompt(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return a prompt as shown to reviewers: the user's messages, separated by blank lines.

    If there are examples shown to the model as its own replies, these are included, with the speaker before each message. System messages
    are left out unless there are no others: they contain instructions on how to respond, and often the persona.
    """
    turns = [message for message in messages if message["role"] != "system"] or list(messages)
    if any(message["role"] == "assistant" for message in turns):
        return "\n\n".join(f"{message['role'].capitalize()}: {message['text']}" for message in turns)
    return "\n\n".join(str(message["text"]) for message in turns)
