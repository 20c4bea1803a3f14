"""Stores with votes in them, for tests of pages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from pathlib import Path

import pytest

from dtef_pipeline.api.services import Services
from dtef_pipeline.cli.preference import preference_votes
from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.score_publishing import preference_scores
from dtef_pipeline.preference.votes import Ballot, Choice, PairedResponse, PlayersVote
from resources.votes.vote_store import VoteStore
from resources.warehouse import Warehouse
from tests.dtef_pipeline.api.made import settings_in

VOTING_PLAYERS = ("openai:gpt-4o-mini", "anthropic:claude-3-5-haiku-latest", "<script>alert(1)</script>")
LAST_VOTE = datetime(2026, 3, 20, 12, tzinfo=UTC)


def with_votes(services: Services, n_items: int = 12, last: datetime = LAST_VOTE) -> int:
    """Store pairs of three players, and votes of three reviewers over many days; returns how many votes."""
    texts = {player: f"the words of {at}" for at, player in enumerate(VOTING_PLAYERS)}
    responses = [
        PairedResponse(f"{item}-{at}", "qa", f"mmlu/{item}", player, 0, "s", "Why?", f"{texts[player]} to {item}", ())
        for item in range(n_items)
        for at, player in enumerate(VOTING_PLAYERS)
    ]
    made = make_new_pairs(responses)
    services.votes.add_pairs(responses, made, user="operator")
    n_votes, times = 0, count()
    choices: cycle[Choice] = cycle(("A", "B", "A", "tie"))
    with VoteStore(services.settings.responses_url, clock=lambda: last - timedelta(days=next(times) % 30 * 1.3)) as store:
        for at, pair in enumerate(store.pairs()):
            for reviewer in ("anna", "<b>ben</b>", "cleo")[: 1 + at % 3]:
                store.take(Ballot(pair.pair_id, reviewer, next(choices), 3))
                n_votes += 1
    return n_votes


def with_board(services: Services) -> None:
    """Write the table that the preference board is made of."""
    beats = {("fox", "owl"): 9, ("owl", "fox"): 3, ("owl", "hen & <i>co</i>"): 8, ("hen & <i>co</i>", "owl"): 2}
    votes = [
        PlayersVote("qa", f"mmlu/{at}", winner, loser, "left", f"r{at % 8}", "person", None, False, 9, 5)
        for (winner, loser), times in beats.items()
        for at in range(times)
    ]
    Warehouse(services.settings.warehouse).write("preference_scores", preference_scores(votes))


def with_votes_of_another_tool(folder: Path, monkeypatch: pytest.MonkeyPatch, rows: Sequence[str]) -> None:
    """Import votes, each `left,right,choice,reviewer_id`, into the store below a folder, as `dtef import votes` does."""
    file = folder / "votes.csv"
    file.write_text("\n".join(("left,right,choice,reviewer_id", *rows, "")), encoding="utf-8")
    monkeypatch.setenv("DTEF_RESPONSES", settings_in(folder).responses_url)
    preference_votes.import_file(file, None, None, "operator")
