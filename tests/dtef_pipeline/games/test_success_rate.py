"""Wins over all episodes, and nothing where a game has no winners."""

from __future__ import annotations

import pyarrow as pa
import pytest

from assets.games.game_catalog import load_known_scenarios
from dtef_pipeline.games.episode_scores import compute_episode_scores
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.tables import EPISODES
from resources.settings import Settings


def successes(name: str, outcomes: list[str | None]) -> list[tuple[float | None, str | None]]:
    """Value and reason of each episode; None: it was not played."""
    one = pack(name, load_known_scenarios(Settings.read_environment()))
    known = {"version": one.manifest.version, "max_turns": 9, "n_turns": 1, "flags": [], "metric_counts": []}
    rows = [
        {**known, "outcome": outcome, "status": "played" if outcome else "error", "reason": None if outcome else "it failed"}
        for outcome in outcomes
    ]
    table = pa.table([pa.array([row.get(field.name) for row in rows], field.type) for field in EPISODES], schema=EPISODES)
    found = [row for row in compute_episode_scores(table, one).to_pylist() if row["metric"] == "success_rate"]
    return [(row["value"], row["reason"]) for row in found]


def test_a_scenario_without_winners_has_no_success_rate_whatever_its_outcomes_are() -> None:
    """Agreements were left out and forfeits kept, so that the rate was 0 over the forfeits alone."""
    found = successes("negotiation/allocation", ["agreement", "no_agreement", "loss", None])
    assert found == [(None, "nobody wins or loses a negotiation")] * 3 + [(None, "it failed")]


def test_elsewhere_every_episode_counts_in_the_rate() -> None:
    found = successes("poker/kuhn", ["win", "draw", "loss", "no_agreement", None])
    assert [value for value, _ in found] == [1, 0, 0, 0, None]
    assert sum(value for value, _ in found if value is not None) / 4 == pytest.approx(0.25)
