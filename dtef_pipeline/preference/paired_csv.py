"""Votes of other tools as pairs: a CSV of left, right, choice, with the responses and prompts they are about where these are known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dtef_pipeline.errors import SourceError
from dtef_pipeline.preference.ballots import LONGEST_ID, is_id
from dtef_pipeline.preference.vote_files import FileVote, file_votes, id_of, json_lines, text_of
from dtef_pipeline.preference.votes import Choice, PairedResponse, Side, VotePair, paired_response, vote_pair
from dtef_pipeline.text.counted import counted

ELSEWHERE = "elsewhere"
"""The family of responses that no family of this software asked for."""
_UNSAID = "all"
"""The item and the reviewer of rows that name none; of reviewers with the number of the row, since each may be another."""


class RatedPair(NamedTuple):
    """One row of the file."""

    line: int
    pair: VotePair
    left: PairedResponse
    right: PairedResponse
    reviewer_id: str
    choice: Choice
    shown_as_a: Side
    """Where the row's left response is in the pair: in the file A is left."""
    confidence: int | None


def read_pairs_csv(path: Path, responses: Path | None = None, prompts: Path | None = None) -> list[RatedPair]:
    """The votes of a CSV (`file_votes`), in its order.

    `responses`: JSON lines with prompt_id, model and text, and perhaps maker and api_id, which are names to hide. `prompts`: JSON lines with
    prompt_id and text. Without them the texts are empty: votes count, and the pairs are not served.

    Raises SourceError with file and line.
    """
    asked = _prompts(prompts) if prompts else {}
    known = _responses(responses, asked) if responses else None
    return [_rated(path, vote, known, asked) for vote in file_votes(path)]


def _prompts(path: Path) -> dict[str, str]:
    """The texts by prompt id."""
    asked: dict[str, str] = {}
    for line, values in json_lines(path):
        prompt_id, text = id_of(path, line, values, "prompt_id"), text_of(path, line, values, "text")
        if asked.setdefault(prompt_id, text) != text:
            raise _again(path, line, f"prompt_id {prompt_id}")
    return asked


def _responses(path: Path, asked: Mapping[str, str]) -> dict[tuple[str, str], PairedResponse]:
    """By prompt id and model."""
    known: dict[tuple[str, str], PairedResponse] = {}
    for line, values in json_lines(path):
        prompt_id, model = (id_of(path, line, values, name) for name in ("prompt_id", "model"))
        names = [model, *(text_of(path, line, values, name) for name in ("maker", "api_id") if values.get(name) is not None)]
        text = text_of(path, line, values, "text")
        response = _response(prompt_id, model, text, asked.get(prompt_id, ""), tuple(filter(None, names)))
        if known.setdefault((prompt_id, model), response) != response:
            raise _again(path, line, f"prompt_id {prompt_id} and model {model}")
    return known


def _rated(
    path: Path, vote: FileVote, known: Mapping[tuple[str, str], PairedResponse] | None, asked: Mapping[str, str]
) -> RatedPair:
    """`known`: the responses; None: no file of them was given."""
    prompt_id = vote.prompt_id or _UNSAID
    sides = []
    for name in ("left", "right"):
        model = getattr(vote, name)
        if known is not None and (prompt_id, model) not in known:
            problem = f"{name}: no response of this model to prompt {prompt_id}"
            raise SourceError(problem, where=str(path), line=vote.line, arrived=model[:80])
        empty = _response(prompt_id, model, "", asked.get(prompt_id, ""), (model,))
        sides.append(empty if known is None else known[prompt_id, model])
    left, right = sides
    pair = vote_pair(left, right)
    side: Side = "left" if pair.left == left.response_id else "right"
    reviewer = vote.reviewer_id or f"{_UNSAID}-{vote.line}"
    if not is_id(reviewer):
        allowed = f"nothing, or {counted(LONGEST_ID, 'printable character')} at most"
        raise SourceError("reviewer_id", where=str(path), line=vote.line, arrived=repr(reviewer[:80]), allowed=allowed)
    return RatedPair(vote.line, pair, left, right, reviewer, vote.choice, side, vote.confidence)


def _response(prompt_id: str, model: str, text: str, prompt: str, names: tuple[str, ...]) -> PairedResponse:
    return paired_response(ELSEWHERE, prompt_id, model, text, prompt=prompt, names=names)


def _again(path: Path, line: int, what: str) -> SourceError:
    problem = f"{what[:200]}: there already with other content"
    return SourceError(problem, where=str(path), line=line, allowed="one line each, or equal ones")
