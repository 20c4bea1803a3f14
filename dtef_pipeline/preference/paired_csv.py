"""Votes of other tools: a CSV of left, right, choice, with the responses and prompts they are about where these are known."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dtef_pipeline.errors import BallotError, SourceError
from dtef_pipeline.preference.ballots import LONGEST_ID, is_id
from dtef_pipeline.preference.vote_records import parsed_line
from dtef_pipeline.preference.votes import (
    CHOICES,
    MOST_CONFIDENT,
    Choice,
    PairedResponse,
    Side,
    VotePair,
    paired_response,
    vote_pair,
)
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.well_formed import well_formed

ELSEWHERE = "elsewhere"
"""The family of responses that no family of this software asked for."""
CSV_NEEDS = ("left", "right", "choice")
CSV_MAY_HAVE = ("pair_id", "prompt_id", "reviewer_id", "confidence")
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
    """The votes of a CSV with `CSV_NEEDS` and any of `CSV_MAY_HAVE`, in its order.

    `responses`: JSON lines with prompt_id, model and text, and perhaps maker and api_id, which are names to hide. `prompts`: JSON lines with
    prompt_id and text. Without them the texts are empty: votes count, and the pairs are not served.

    Raises SourceError with file and line.
    """
    asked: dict[str, str] = {}
    for one in _json_lines(prompts):
        prompt_id = _named(one, "prompt_id", prompts)
        text = _said(one, "text", prompts)
        if asked.setdefault(prompt_id, text) != text:
            raise _again(f"prompt_id {prompt_id}", one, prompts)
    known: dict[tuple[str, str], PairedResponse] = {}
    for one in _json_lines(responses):
        prompt_id, model = _named(one, "prompt_id", responses), _named(one, "model", responses)
        names = [model, *(_said(one, name, responses) for name in ("maker", "api_id") if one.get(name) is not None)]
        text = _said(one, "text", responses)
        response = _response(prompt_id, model, text, asked.get(prompt_id, ""), tuple(filter(None, names)))
        if known.setdefault((prompt_id, model), response) != response:
            raise _again(f"prompt_id {prompt_id} and model {model}", one, responses)
    return [_rated(path, line, row, known, asked, responses is not None) for line, row in _rows(path)]


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot be read: {error}", where=str(path)) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [name.strip() for name in next(reader, [])]
        if missing := [name for name in CSV_NEEDS if name not in head]:
            allowed = [*CSV_NEEDS, *CSV_MAY_HAVE]
            raise SourceError(
                f"no column {missing[0]}", where=str(path), line=1, arrived=", ".join(head)[:200], allowed=allowed
            )
        if twice := [name for name in (*CSV_NEEDS, *CSV_MAY_HAVE) if head.count(name) > 1]:
            raise SourceError(
                f"the column {twice[0]} more than once",
                where=str(path),
                line=1,
                arrived=", ".join(head)[:200],
                allowed="each once",
            )
        for row in reader:
            if row and len(row) != len(head):
                raise SourceError(
                    counted(len(row), "value"), where=str(path), line=reader.line_num, allowed=f"{len(head)}, as in line 1"
                )
            if row:
                yield reader.line_num, dict(zip(head, map(well_formed, row), strict=True))
    except csv.Error as error:
        raise SourceError(f"no CSV: {error}", where=str(path), line=reader.line_num) from None


def _rated(
    path: Path,
    line: int,
    row: Mapping[str, str],
    known: Mapping[tuple[str, str], PairedResponse],
    asked: Mapping[str, str],
    all_known: bool,
) -> RatedPair:
    prompt_id = row.get("prompt_id") or _UNSAID
    sides = []
    for name in ("left", "right"):
        found = known.get((prompt_id, row[name]))
        if found is None and all_known:
            raise SourceError(
                f"{name}: no response of this model to prompt {prompt_id}", where=str(path), line=line, arrived=row[name][:80]
            )
        sides.append(found or _response(prompt_id, row[name], "", asked.get(prompt_id, ""), (row[name],)))
    left, right = sides
    if left.player == right.player or not left.player or not right.player:
        raise SourceError(
            "left and right", where=str(path), line=line, arrived=row["left"][:80], allowed="two different players"
        )
    if row["choice"] not in CHOICES:
        raise SourceError("choice", where=str(path), line=line, arrived=row["choice"][:80], allowed=CHOICES)
    choice: Choice = row["choice"]  # type: ignore[assignment]
    pair = vote_pair(left, right)
    side: Side = "left" if pair.left == left.response_id else "right"
    reviewer = row.get("reviewer_id") or f"{_UNSAID}-{line}"
    if not is_id(reviewer):
        allowed = f"nothing, or {counted(LONGEST_ID, 'printable character')} at most"
        raise SourceError("reviewer_id", where=str(path), line=line, arrived=repr(reviewer[:80]), allowed=allowed)
    return RatedPair(line, pair, left, right, reviewer, choice, side, _confidence(path, line, row.get("confidence", "")))


def _confidence(path: Path, line: int, said: str) -> int | None:
    if not said.strip():
        return None
    if said.strip() not in map(str, range(1, MOST_CONFIDENT + 1)):
        allowed = f"1 to {MOST_CONFIDENT}, or nothing"
        raise SourceError("confidence", where=str(path), line=line, arrived=said[:80], allowed=allowed)
    return int(said)


def _response(prompt_id: str, model: str, text: str, prompt: str, names: tuple[str, ...]) -> PairedResponse:
    return paired_response(ELSEWHERE, prompt_id, model, text, prompt=prompt, names=names)


def _json_lines(path: Path | None) -> Iterator[dict[str, Any]]:
    """The objects of a file, each with its line under the key None."""
    if path is None:
        return
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot be read: {error}", where=str(path)) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = parsed_line(line)
        except BallotError as error:
            raise SourceError(str(error), where=str(path), line=number) from None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise SourceError("no JSON object", where=str(path), line=number, arrived=line[:80])
        yield found | {"": number}


def _said(values: Mapping[str, Any], name: str, path: Path | None) -> str:
    """A text, which may be empty."""
    value = values.get(name)
    if not isinstance(value, str):
        arrived = "nothing" if name not in values else json.dumps(value)[:80]
        raise SourceError(f"no {name}", where=str(path), line=values[""], arrived=arrived, allowed="a text")
    return well_formed(value)


def _again(what: str, values: Mapping[str, Any], path: Path | None) -> SourceError:
    return SourceError(
        f"{what[:200]}: there already with other content",
        where=str(path),
        line=values[""],
        allowed="one line each, or equal ones",
    )


def _named(values: Mapping[str, Any], name: str, path: Path | None) -> str:
    value = values.get(name)
    if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
        raise SourceError(f"no {name}", where=str(path), line=values[""], allowed="a text or a whole number")
    return well_formed(str(value))
