"""Pages of votes and of the board: votes of long ago, and those of other tools."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from resources.vote_counts import vote_counts
from tests.dtef_pipeline.api.browsed import browsing, tags_of
from tests.dtef_pipeline.api.made import services_in
from tests.dtef_pipeline.api.voted import with_votes, with_votes_of_another_tool

OF_ANOTHER_TOOL = [f"fox,owl,{'B' if at % 3 else 'A'},r{at}" for at in range(9)]


def test_votes_of_long_ago_stand_in_the_table_of_days_and_leave_no_empty_chart(tmp_path: Path) -> None:
    """No page showed them: the page said that there were no votes, beneath their number, and drew an axis without a bar."""
    services = services_in(tmp_path)
    with_votes(services, 3, last=datetime(2021, 3, 20, 12, tzinfo=UTC))
    days = vote_counts(services.votes.database).by_day
    services.close()
    with browsing(tmp_path) as client:
        shown = client.get("/votes").text
    assert "<svg" not in shown
    assert "No votes in the last 60 days." in shown
    assert "No votes." not in shown
    assert f"{len(days)} days (UTC) with votes, the last first" in shown
    assert all(f">{day.isoformat()}<" in shown for day in days)
    assert shown.index(max(days).isoformat()) < shown.index(min(days).isoformat())


def test_a_page_without_votes_has_neither_chart_nor_table_of_days(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        shown = client.get("/votes").text
    assert "No votes in the last 60 days." in shown
    assert "Votes by day" not in shown


def test_votes_without_a_time_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of all votes and that of the last days differed, and nothing said why."""
    services = services_in(tmp_path)
    n_votes = with_votes(services, 1, last=datetime.now(UTC))
    with_votes_of_another_tool(tmp_path, monkeypatch, OF_ANOTHER_TOOL)
    found = vote_counts(services.votes.database)
    assert (found.n_votes, found.n_without_time, sum(found.by_day.values())) == (n_votes + 9, 9, n_votes)
    services.close()
    with browsing(tmp_path) as client:
        shown = client.get("/votes").text
    assert f"<dd><bdi>{n_votes + 9}; 9 without a time, as another tool took them: no day counts these</bdi></dd>" in shown
    assert sum(tag == "rect" for tag, _ in tags_of(shown)) == 60
