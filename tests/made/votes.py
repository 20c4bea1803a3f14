"""Votes of made worlds, as the statistics take them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sqlalchemy as sa

from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.vote_files import VoteColumns, vote_columns
from dtef_pipeline.preference.vote_records import Record
from dtef_pipeline.preference.votes import Ballot, PairedResponse, VotePair, make_paired_response
from dtef_pipeline.statistics.bradley_terry import PairedOutcomes
from resources.settings import Settings
from resources.votes import vote_tables as tables
from resources.votes.vote_store import VoteStore, store_judge_votes
from tests.conftest import SHARED

OUTCOME_OF = {"A": 1, "B": -1, "tie": 0}


def paired(
    rows: Sequence[tuple[int, int, int]],
    players: int | None = None,
    cluster: Sequence[int] | None = None,
    weight: Sequence[float] | None = None,
    covariate: Sequence[float] | None = None,
) -> PairedOutcomes:
    """Rows (left, right, outcome) as votes of one each."""
    left, right, outcome = (np.array([row[at] for row in rows], dtype=np.int64) for at in range(3))
    n = len(rows)
    return PairedOutcomes(
        players if players is not None else int(max(left.max(initial=-1), right.max(initial=-1))) + 1,
        left,
        right,
        outcome,
        np.ones(n) if weight is None else np.array(weight, dtype=np.float64),
        np.ones(n),
        None if cluster is None else np.array(cluster, dtype=np.int64),
        np.zeros((n, 0)) if covariate is None else np.array(covariate, dtype=np.float64)[:, None],
    )


def lopsided(seed: int, players: int = 7, votes: int = 400, reviewers: int = 12) -> PairedOutcomes:
    """Votes in which some players and reviewers are seen far more often than others, by Davidson's model with tastes of reviewers."""
    rng = np.random.default_rng(seed)
    often = np.exp(rng.normal(0, 0.7, players))
    rows = [tuple(rng.choice(players, 2, replace=False, p=often / often.sum())) for _ in range(votes)]
    left, right = (np.array([row[side] for row in rows]) for side in (0, 1))
    busy = np.exp(rng.normal(0, 1, reviewers))
    cluster = rng.choice(reviewers, votes, p=busy / busy.sum())
    tastes = rng.normal(0, 0.8, players) + rng.normal(0, 0.4, (reviewers, players))
    outcome = drawn_outcomes(rng, tastes[cluster, left] - tastes[cluster, right], 0.7)
    n = np.zeros((votes, 0))
    return PairedOutcomes(players, left, right, outcome, rng.uniform(0.2, 1, votes), np.ones(votes), cluster, n)


def drawn_outcomes(rng: np.random.Generator, difference: npt.NDArray[np.float64], nu: float) -> npt.NDArray[np.int64]:
    """Outcomes by Davidson's model; nu 0: no ties."""
    strengths = np.stack([np.exp(difference / 2), np.full_like(difference, nu), np.exp(-difference / 2)])
    ends = np.cumsum(strengths / strengths.sum(axis=0), axis=0)
    return np.asarray(1 - (rng.random(len(difference)) > ends[:2]).sum(axis=0), dtype=np.int64)


def votes_of(document: Mapping[str, Any]) -> VoteColumns:
    """The votes of {"votes": [[left, right, choice], ...]} or {"wins": [[winner, loser, count], ...]}, as published data has them."""
    rows = document.get("votes") or [row for row in document.get("wins", ()) if row[2]]
    of_wins = "wins" in document
    outcome = np.array([1 if of_wins else OUTCOME_OF[row[2]] for row in rows], dtype=np.int64)
    times = np.array([float(row[2]) if of_wins else 1.0 for row in rows])
    return vote_columns("made", [(row[0], row[1]) for row in rows], outcome, times)


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


PLAYERS = ("alpha", "beta")


def written(players: Sequence[str] = PLAYERS, items: int = 60, suite: str = "made") -> list[PairedResponse]:
    """One response of each player to each item of a suite, which says whose it is; the first player's are longer."""
    return [
        make_paired_response(
            "qa",
            f"{suite}/all/{item}",
            player,
            f"{player} says {item}{' at length' * (1 + (item * 3 + place) % 4)}.",
            prompt=f"What is {item}?",
            snapshot="base",
            names=(player,),
        )
        for item in range(items)
        for place, player in enumerate(players)
    ]


def store_votes(
    votes: int, players: Sequence[str] = PLAYERS, *, suite: str = "made", reviewers: int = 6, reviewer_kind: str = "person"
) -> None:
    """So many votes on pairs of these players, of people in turn or of one judge. People prefer the earlier player two times of three,
    the judge the later one."""
    with VoteStore(Settings.read_environment().responses_url) as store:
        responses = written(players, -(-votes // (len(players) - 1)), suite)
        by_id = {one.response_id: one for one in responses}
        pairs = make_new_pairs(responses, per_item=len(players) - 1)
        store.add_pairs(responses, pairs, user="test")
        # Ids of pairs are keyed by a salt of the store, so that their order is another one in each.
        stored = sorted(store.pairs(), key=lambda pair: (pair.left, pair.right))
        known = [pair for pair in stored if pair.left in by_id][:votes]
        records = [_vote(store, pair, by_id, players, at, reviewers, reviewer_kind) for at, pair in enumerate(known)]

        def add(connection: sa.Connection) -> int:
            return tables.add_rows(connection, store.database, "vote", records)

        assert store.database.write(add) == votes


def add_judged(model: str, settings: Sequence[str], votes: int) -> None:
    """So many votes of each variant of a model that judges, on the first pairs of the store; none says what it saw."""
    with VoteStore(Settings.read_environment().responses_url) as store:
        pairs = store.pairs()[:votes]
        for one in settings:
            ids = f"pairs({model}{one})#01234567"
            store_judge_votes(store, [Ballot(pair.pair_id, ids, "A" if at % 3 else "B", 1) for at, pair in enumerate(pairs)])


def _vote(
    store: VoteStore,
    pair: VotePair,
    by_id: dict[str, PairedResponse],
    players: Sequence[str],
    at: int,
    reviewers: int,
    reviewer_kind: str,
) -> Record:
    earlier_is_left = players.index(by_id[pair.left].player) < players.index(by_id[pair.right].player)
    prefers_earlier = ((at + at // reviewers) % 3 != 0) == (reviewer_kind == "person")
    reviewer = f"r{at % reviewers}" if reviewer_kind == "person" else "a judge"
    record = store.vote_record(Ballot(pair.pair_id, reviewer, "A", 1 + at % 5), store.clock(), reviewer_kind)
    return record | {"choice": "A" if (record["shown_as_a"] == "left") == (earlier_is_left == prefers_earlier) else "B"}
