"""Writes `read_stored_votes.jsonl`: invented votes of eight invented reviewers on pairs of the demo's responses to rubrics, with the pairs.

It reads the pairs of the response store that DTEF_RESPONSES names, so run the part of `make demo` on rubrics first, then:

    dtef preference pairs --family rubric --per-item 3
    python data/make_stored_votes.py [file]

It has to be run again when `stored_responses.jsonl` changes: a pair is known by the texts that it is of.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dtef_pipeline.identity import digest
from dtef_pipeline.preference.vote_records import record_line, void_id
from resources.settings import Settings
from resources.votes.vote_files import export_votes
from resources.votes.vote_store import VoteStore

_REVIEWERS, _PAIRS_EACH, _VOTES_SEED = 8, 16, 15
_STRENGTH = {"stored/amber": 1.0, "stored/birch": 0.1, "stored/cobalt": -1.1}
"""Of the invented models, in logits: what the votes are drawn with."""
_TASTE, _TIED = 0.4, 0.2
"""Standard deviation of a reviewer's taste for each model, and the share of votes that are ties."""
_VOTED_AT = datetime(2026, 1, 1, tzinfo=UTC)


class PlayersPair(NamedTuple):
    """A stored pair, of players."""

    pair_id: str
    left: str
    right: str


def invented_votes(pairs: list[PlayersPair]) -> Iterator[str]:
    """The lines: of each reviewer votes on some pairs, and one vote that is voided."""
    drawn = np.random.default_rng(_VOTES_SEED)
    pairs = sorted(pairs)
    for number in range(1, _REVIEWERS + 1):
        reviewer = f"invented-{number}"
        strength = {name: beta + drawn.normal(0, _TASTE) for name, beta in _STRENGTH.items()}
        for at in sorted(drawn.choice(len(pairs), _PAIRS_EACH, replace=False)):
            pair = pairs[at]
            left, right = (strength[name.partition("[")[0]] for name in (pair.left, pair.right))
            is_left = drawn.random() < 1 / (1 + math.exp(right - left))
            yield _line(
                pair.pair_id, reviewer, "tie" if drawn.random() < _TIED else "A" if is_left else "B", int(drawn.integers(2, 6))
            )
    voided = _vote_id(pairs[0].pair_id, "invented-9")
    yield _line(pairs[0].pair_id, "invented-9", "A", 1)
    told = {"vote_id": voided, "admin": "invented-admin", "reason": "tried the keys", "voided_at": _VOTED_AT}
    yield record_line("void", {"void_id": void_id(voided), **told})


def _vote_id(pair_id: str, reviewer: str) -> str:
    return digest("invented vote", pair_id, reviewer)


def _line(pair_id: str, reviewer: str, choice: str, confidence: int) -> str:
    return record_line(
        "vote",
        {
            "vote_id": _vote_id(pair_id, reviewer),
            "pair_id": pair_id,
            "reviewer_id": reviewer,
            "reviewer_kind": "person",
            "choice": choice,
            "shown_as_a": "left",
            "confidence": confidence,
            "justification": "",
            "voted_at": _VOTED_AT,
        },
    )


def paired_lines(store: VoteStore) -> Iterator[str]:
    """The responses and the pairs, under ids that no salt decides."""
    with tempfile.TemporaryDirectory() as folder:
        export_votes(store, file := Path(folder) / "votes.jsonl")
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    responses = [line for line in lines if line["kind"] == "response" and line["item_id"].startswith("demo-")]
    for line in sorted(responses, key=lambda one: str(one["response_id"])):
        yield record_line("response", _fields(line) | {"manifest_id": None})
    ids = {line["response_id"] for line in responses}
    pairs = [_fields(line) for line in lines if line["kind"] == "pair" and line["left_id"] in ids]
    for pair in sorted(pairs, key=lambda one: (str(one["left_id"]), str(one["right_id"]))):
        yield record_line("pair", pair | {"pair_id": _pair_id(pair["left_id"], pair["right_id"]), "made_at": _VOTED_AT})


def _fields(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in ("kind", "schema")}


def _pair_id(left: str, right: str) -> str:
    return digest("invented pair", left, right)


def paired_players(lines: list[str]) -> list[PlayersPair]:
    """The pairs of `paired_lines`, of players."""
    records = [json.loads(line) for line in lines]
    player = {one["response_id"]: one["player"] for one in records if one["kind"] == "response"}
    return [
        PlayersPair(one["pair_id"], player[one["left_id"]], player[one["right_id"]]) for one in records if one["kind"] == "pair"
    ]


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "stored_votes.jsonl"
    with VoteStore(Settings.read_environment().responses_url) as votes:
        made = list(paired_lines(votes))
    out.write_text("".join(f"{line}\n" for line in [*made, *invented_votes(paired_players(made))]), encoding="utf-8")
