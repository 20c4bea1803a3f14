"""Responses, pairs and vectors that tests of votes start with."""

from __future__ import annotations

import csv
import json
from functools import cache
from typing import Any

import pytest

from dtef_pipeline.preference.votes import PairedResponse, make_paired_response
from tests.conftest import SHARED

VOTES = SHARED / "votes"


def responses(players: int, items: int = 1, draws: int = 1) -> list[PairedResponse]:
    """Of each player one to each item and draw, all different."""
    return [
        make_paired_response(
            "qa",
            f"made/all/{item}",
            f"player-{player}",
            f"{player} says {item} for the {draw}.",
            prompt=f"What is {item}?",
            draw=draw,
            names=(f"player-{player}",),
        )
        for item in range(items)
        for draw in range(draws)
        for player in range(players)
    ]


def vectors(function: str) -> list[Any]:
    """The shared cases of a function; none where there are none beside the checkout."""
    path = VOTES / "vectors.json"
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"] if path.exists() else []
    return [pytest.param(case["in"], case["out"], id=case["id"]) for case in cases if case["fn"] == function]


@cache
def real_responses() -> tuple[PairedResponse, ...]:
    """The answers of 59 models to 5 prompts, each with the names of its own model."""
    lines = (VOTES / "llmfao" / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    prompts = {str(one["prompt_id"]): one["text"] for one in map(json.loads, lines)}
    found = []
    for line in (VOTES / "llmfao" / "responses.jsonl").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        names = (one["model"], one["maker"], one["api_id"])
        prompt_id = str(one["prompt_id"])
        found.append(
            make_paired_response("elsewhere", prompt_id, one["model"], one["text"], prompt=prompts[prompt_id], names=names)
        )
    return tuple(found)


@cache
def real_votes() -> tuple[dict[str, str], ...]:
    with (VOTES / "llmfao" / "votes.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))
