"""Pages of votes and of the board: votes of long ago, and those of other tools."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dtef_pipeline.api.services import Services
from dtef_pipeline.preference.score_publishing import preference_scores
from resources.votes.vote_queries import vote_counts
from resources.votes.vote_store import read_player_votes
from resources.warehouse import Warehouse
from tests.dtef_pipeline.api.browsed import assert_inert, browsing
from tests.dtef_pipeline.api.made import services_in
from tests.dtef_pipeline.api.voted import with_votes, with_votes_of_another_tool

OF_ANOTHER_TOOL = [f"fox,owl,{'B' if at % 3 else 'A'},r{at}" for at in range(9)]


def test_each_day_with_votes_is_listed_latest_first(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        assert "with votes" not in client.get("/votes").text
    services = services_in(tmp_path)
    with_votes(services, 3, last=datetime(2021, 3, 20, 12, tzinfo=UTC))
    days = vote_counts(services.votes.database).by_day
    services.close()
    with browsing(tmp_path) as client:
        shown = client.get("/votes").text
    assert f"{len(days)} days (UTC) with votes, newest first" in shown
    assert all(f">{day.isoformat()}<" in shown for day in days)
    assert shown.index(max(days).isoformat()) < shown.index(min(days).isoformat())


def test_votes_without_a_time_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of all votes and that of the last days differed, and nothing said why."""
    services = services_in(tmp_path)
    n_votes = with_votes(services, 1, last=datetime.now(UTC))
    with_votes_of_another_tool(tmp_path, monkeypatch, OF_ANOTHER_TOOL)
    found = vote_counts(services.votes.database)
    assert (found.n_votes, found.n_without_time, sum(found.by_day.values())) == (n_votes + 9, 9, n_votes)
    services.close()
    with browsing(tmp_path) as client:
        shown = client.get("/votes").text
    assert f"<dd><bdi>{n_votes + 9}; 9 without a time" in shown


def counted_votes_of(services: Services) -> None:
    """Write the table that the board is made of, as the roll-up does."""
    votes = read_player_votes(services.votes)
    Warehouse(services.settings.warehouse).write("preference_scores", preference_scores(votes))


def test_the_board_shows_votes_of_other_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that no votes were counted yet: only the families of this software were looked at."""
    with_votes_of_another_tool(tmp_path, monkeypatch, OF_ANOTHER_TOOL)
    services = services_in(tmp_path)
    counted_votes_of(services)
    with browsing(tmp_path) as client:
        for path in ("/board", "/board?family=elsewhere"):
            shown = client.get(path).text
            assert "No votes were counted yet" not in shown
            assert all(player in shown for player in ("fox", "owl"))
        assert_inert(shown)
        with_votes(services, 3)
        counted_votes_of(services)
        tabs = client.get("/board").text
        assert '<a href="/board?family=qa" aria-current="page">Questions</a>' in tabs
        assert '<a href="/board?family=elsewhere">Elsewhere</a>' in tabs
        assert "fox" not in tabs
        assert "fox" in client.get("/board?family=elsewhere").text
    services.close()
