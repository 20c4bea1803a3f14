"""Other tools' votes as pairs: a CSV of left, right, choice, with their responses and prompts if known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dtef_pipeline.errors import SourceError
from dtef_pipeline.preference.ballots import LONGEST_ID, is_id
from dtef_pipeline.preference.vote_files import FileVote, iterate_file_votes, iterate_json_lines, require_id, require_text
from dtef_pipeline.preference.votes import Choice, PairedResponse, Side, VotePair, make_paired_response, vote_pair
from dtef_pipeline.text.quantity_words import format_count

ELSEWHERE = "elsewhere"
"""The family of responses from other tools."""
_UNSAID = "all"
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
    prompt_id = vote.prompt_id or _UNSAID
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
    reviewer = vote.reviewer_id or f"{_UNSAID}-{vote.line}"
    if not is_id(reviewer):
        choices = f"nothing, or {format_count(LONGEST_ID, 'printable character')} at most"
        raise SourceError("reviewer_id", where=str(path), line=vote.line, arrived=repr(reviewer[:80]), allowed=choices)
    return RatedPair(vote.line, pair, left, right, reviewer, vote.choice, side, vote.confidence)


def _build_response(prompt_id: str, model: str, text: str, prompt: str, names: tuple[str, ...]) -> PairedResponse:
    return make_paired_response(ELSEWHERE, prompt_id, model, text, prompt=prompt, names=names)


def _duplicate_error(path: Path, line: int, label: str) -> SourceError:
    problem = f"{label[:200]}: there already with other content"
    return SourceError(problem, where=str(path), line=line, allowed="one line each, or equal ones")
