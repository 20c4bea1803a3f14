"""What a run of games would ask is played by a stand-in, and no run asks more than the most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from assets.engine.dry_run import DryRun, compute_mean_lengths
from assets.games.stages import GAMES_STAGES
from dtef_pipeline.asking.request import Request
from dtef_pipeline.family.stage import Lengths
from dtef_pipeline.games.settings import GamesSettings
from dtef_pipeline.games.tables import EPISODE_TURNS, LEAGUE_SPACE
from resources.warehouse import Warehouse
from tests.assets.engine.conftest import KnowModels
from tests.made.plain_run import PlainRun, sums

KUHN = "poker/kuhn"


@pytest.fixture
def place(tmp_path: Path, know_models: KnowModels) -> PlainRun:
    know_models(player={"max_tokens": 300}, rival={"max_tokens": 200})
    return PlainRun("games", GAMES_STAGES, tmp_path)


def settings(**given: Any) -> GamesSettings:
    return GamesSettings.model_validate({"players": ["player"], "opponents": ["random"], "seeds": "1-4", **given})


def checks(request: Request) -> str:
    return "I wait.\nACTION: check"


def planned(place: PlainRun, **given: Any) -> DryRun:
    return place.estimate(settings(**given), [KUHN])


def test_a_run_asks_no_more_than_the_most_and_afterwards_all_of_it_is_replayed(place: PlainRun) -> None:
    before = sums(planned(place, opponents=["rival"], draws=2))["candidate"]
    assert before.planned >= before.requests == before.calls > 0
    place.run(KUHN, settings(opponents=["rival"], draws=2), checks)
    assert place.asked.total() <= before.calls_max
    after = sums(planned(place, opponents=["rival"], draws=2))["candidate"]
    assert (after.requests, after.replayed, after.calls, after.calls_max) == (place.asked.total(), place.asked.total(), 0, 0)


def test_opponents_that_play_alike_share_requests(place: PlainRun) -> None:
    one, both = (sums(planned(place, opponents=names))["candidate"] for names in (["random"], ["random", "nash"]))
    assert both.planned == pytest.approx(2 * one.planned, rel=0.5)
    assert one.calls <= both.calls < 2 * one.calls
    assert both.calls_max < 2 * one.calls_max


def test_lengths_are_those_of_earlier_texts(place: PlainRun) -> None:
    found = planned(place)
    assert (found.assumed, sums(found)["candidate"].response_tokens) == (
        {"player": 400},
        300 * sums(found)["candidate"].calls,
    )
    place.run(KUHN, settings(), checks)
    later = planned(place, snapshot="later")
    assert not later.assumed
    row = sums(later)["candidate"]
    assert row.response_tokens == 5 * row.calls
    assert row.response_tokens_max == 300 * row.calls_max


TURNS = (("silent", "a", 0), ("silent", "b", 0), ("brief", "c", 8), ("brief", "c", 0), ("brief", "d", 2))
UNKNOWN = (("untold", "e", None), ("untold", "e", 0))


def turns(rows: tuple[tuple[str, str, int | None], ...]) -> pa.Table:
    known = [
        {"model_variant": model, "request_key": key, "completion_tokens": tokens, "call_status": "answered", "snapshot": "base"}
        for model, key, tokens in rows
    ]
    known.append({"model_variant": "silent", "request_key": "z", "completion_tokens": None, "call_status": "error"})
    return pa.table([pa.array([row.get(one.name) for row in known], one.type) for one in EPISODE_TURNS], schema=EPISODE_TURNS)


def test_empty_responses_count_as_they_are_and_unknown_ones_not_at_all(tmp_path: Path) -> None:
    """A model whose responses had no tokens was taken to write hundreds."""
    house = Warehouse(tmp_path)
    house.write("episode_turns", turns(TURNS + UNKNOWN), **LEAGUE_SPACE.levels("poker/kuhn"), snapshot="base")
    lengths = (Lengths("episode_turns"),)
    found = compute_mean_lengths(house, lengths)
    assert found == {"silent": 0.0, "brief": pytest.approx(5)}
    assert compute_mean_lengths(Warehouse(tmp_path / "none"), lengths) == {}
