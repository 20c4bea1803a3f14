"""Responses for pairs: from a family's stored rows, or from other tools' votes in a CSV file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dtef_pipeline.errors import SourceError
from dtef_pipeline.judging.hidden_names import list_names_of_model
from dtef_pipeline.preference.vote_files import FileVote, iterate_file_votes, iterate_json_lines, require_id, require_text
from dtef_pipeline.preference.votes import (
    LONGEST_ID,
    Choice,
    PairedResponse,
    Side,
    VotePair,
    is_id,
    make_paired_response,
    vote_pair,
)
from dtef_pipeline.text.number_words import format_count
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
    """SQL over the tables that gives `metric_agreement.METRIC_QUERY_COLUMNS`, one row per metric and player. Names of metrics include
    what they were measured on, so they are unique over all partitions."""


@dataclass(frozen=True, slots=True)
class PairedSource:
    """The source of a family's responses."""

    tables: tuple[str, ...]
    query: str
    """SQL over the tables that returns `SOURCE_COLUMNS`, one row per answered response."""
    metrics: tuple[MetricSource, ...] = ()
    """Metrics to compare preference with; missing tables are skipped."""


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


OTHER_TOOLS = "elsewhere"
"""The family of responses from other tools."""
_DEFAULT_NAME = "all"
"""The default item, and the prefix of default reviewers, to which the row number is added, since each row may have another reviewer."""


class RatedPair(NamedTuple):
    """One row of the file."""

    line: int
    pair: VotePair
    left: PairedResponse
    right: PairedResponse
    reviewer_id: str
    choice: Choice
    shown_as_a: Side
    """The side of the row's left response in the pair; in the file A is left."""
    confidence: int | None


def read_pairs_csv(path: Path, responses: Path | None = None, prompts: Path | None = None) -> list[RatedPair]:
    """Return the votes of a CSV (`iterate_file_votes`), in its order.

    `responses`: JSON lines with prompt_id, model and text, optionally maker and api_id, which are names to hide. `prompts`: JSON lines with
    prompt_id and text. Without them the texts are empty: votes count, and the pairs are not served. Raises SourceError with file and line.
    """
    prompt_texts = _read_prompts(prompts) if prompts else {}
    by_key = _read_responses(responses, prompt_texts) if responses else None
    return [_build_rated_pair(path, vote, by_key, prompt_texts) for vote in iterate_file_votes(path)]


def _read_prompts(path: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for line, values in iterate_json_lines(path):
        prompt_id, text = require_id(path, line, values, "prompt_id"), require_text(path, line, values, "text")
        if texts.setdefault(prompt_id, text) != text:
            raise _duplicate_error(path, line, f"prompt_id {prompt_id}")
    return texts


def _read_responses(path: Path, prompts: Mapping[str, str]) -> dict[tuple[str, str], PairedResponse]:
    responses: dict[tuple[str, str], PairedResponse] = {}
    for line, values in iterate_json_lines(path):
        prompt_id, model = (require_id(path, line, values, name) for name in ("prompt_id", "model"))
        names = [
            model,
            *(require_text(path, line, values, name) for name in ("maker", "api_id") if values.get(name) is not None),
        ]
        text = require_text(path, line, values, "text")
        response = _build_response(prompt_id, model, text, prompts.get(prompt_id, ""), tuple(filter(None, names)))
        if responses.setdefault((prompt_id, model), response) != response:
            raise _duplicate_error(path, line, f"prompt_id {prompt_id} and model {model}")
    return responses


def _build_rated_pair(
    path: Path, vote: FileVote, responses: Mapping[tuple[str, str], PairedResponse] | None, prompts: Mapping[str, str]
) -> RatedPair:
    """Return a vote's pair. `responses`: None without a file."""
    prompt_id = vote.prompt_id or _DEFAULT_NAME
    sides = []
    for name in ("left", "right"):
        model = getattr(vote, name)
        if responses is not None and (prompt_id, model) not in responses:
            problem = f"{name}: no response of this model to prompt {prompt_id}"
            raise SourceError(problem, where=str(path), line=vote.line, arrived=model[:80])
        empty = _build_response(prompt_id, model, "", prompts.get(prompt_id, ""), (model,))
        sides.append(empty if responses is None else responses[prompt_id, model])
    left, right = sides
    pair = vote_pair(left, right)
    side: Side = "left" if pair.left == left.response_id else "right"
    reviewer = vote.reviewer_id or f"{_DEFAULT_NAME}-{vote.line}"
    if not is_id(reviewer):
        choices = f"nothing, or {format_count(LONGEST_ID, 'printable character')} at most"
        raise SourceError("reviewer_id", where=str(path), line=vote.line, arrived=repr(reviewer[:80]), allowed=choices)
    return RatedPair(vote.line, pair, left, right, reviewer, vote.choice, side, vote.confidence)


def _build_response(prompt_id: str, model: str, text: str, prompt: str, names: tuple[str, ...]) -> PairedResponse:
    return make_paired_response(OTHER_TOOLS, prompt_id, model, text, prompt=prompt, names=names)


def _duplicate_error(path: Path, line: int, label: str) -> SourceError:
    problem = f"{label[:200]}: there already with other content"
    return SourceError(problem, where=str(path), line=line, allowed="one line each, or equal ones")
