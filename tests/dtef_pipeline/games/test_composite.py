"""The composite score: the weighted mean of normalised metrics, named with its weights, and weights that change nothing but scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dtef_pipeline.games.episode_items import item_rows, items_given, opponents_given, truth_id
from dtef_pipeline.games.episode_scores import pack_metrics
from dtef_pipeline.games.manifest import Weighing, read_manifests
from dtef_pipeline.games.metrics import composite, require_composite
from dtef_pipeline.games.opening import system_text
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.persona_results import game_results
from tests.made.game_pages import SCENARIOS, games_pages_of, played_league
from tests.made.made_scores import connected_scores, scored_games

MANIFESTS = read_manifests(SCENARIOS)
WEIGHED = sorted(name for name, one in MANIFESTS.items() if one.evaluation.algorithmic)
GOOD = {"metric": "good", "family": "efficacy", "unit": "share", "direction": "higher", "unit_scale": True, "weight": 3.0}
BAD = {"metric": "bad", "family": "efficacy", "unit": "share", "direction": "lower", "unit_scale": True, "weight": 1.0}


def composites(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    found = game_results(connected_scores(rows))["persona_results"].to_pylist()
    return {(row["model"], row["opponent"]): row for row in found if row["metric"] == "composite"}


def test_the_composite_is_the_hand_value_and_names_its_weights() -> None:
    rows = list(scored_games("one", "a", {1: (1.0, 0.5), 2: (0.0, 0.5)}, GOOD))
    rows += scored_games("one", "a", {1: (0.2, 0.2), 2: (0.2, 0.6)}, BAD)
    rows += scored_games("one", "a", {1: (1, 2), 2: (3, 4)})
    row = composites(rows)["one", "all"]
    assert row["mean"] == pytest.approx((3 * 0.5 + 1 * (1 - 0.3)) / 4)
    assert (row["unit"], row["direction"], row["n_clusters"]) == ("share", "higher", 2)
    assert row["reason"] == "no interval is made of the weighted mean of: 1 x (1 - bad), 3 x good"
    assert composites(rows)["one", "a"]["mean"] == row["mean"]


def test_a_composite_with_a_part_that_nothing_told_of_has_no_value_and_names_the_part() -> None:
    rows = list(scored_games("one", "a", {1: (1, 1)}, GOOD)) + list(scored_games("one", "a", {1: (1, 2)}))
    untold = [
        {**row, "total": None, "of": None, "value": None, "status": "unscored", "reason": "nothing"}
        for row in scored_games("one", "a", {1: (0, 0)}, BAD)
    ]
    row = composites(rows + untold)["one", "all"]
    assert row["mean"] is None
    assert row["reason"] == "no value of bad, a part of: 1 x (1 - bad), 3 x good"


def test_a_player_that_forfeits_every_episode_has_the_worst_composite() -> None:
    """It bid never, so that nothing told of its efficiency, and it had no composite: it stood nowhere."""
    forfeits = {**BAD, "metric": "forfeit_rate", "family": "form"}
    rows = [*scored_games("fair", "a", {1: (0.2, 0.4)}, GOOD), *scored_games("fair", "a", {1: (0, 1)}, forfeits)]
    rows += scored_games("none", "a", {1: (1, 1)}, forfeits)
    rows += [row for name in ("fair", "none") for row in scored_games(name, "a", {1: (0, 0)})]
    rows += [
        {**row, "total": None, "of": None, "value": None, "status": "unscored", "reason": "nothing"}
        for row in scored_games("none", "a", {1: (0, 0)}, GOOD)
    ]
    found = composites(rows)
    assert found["fair", "all"]["mean"] == pytest.approx((3 * 0.3 + 0.5) / 4)
    assert found["none", "all"]["mean"] == pytest.approx(0)
    assert "forfeited" in found["none", "all"]["reason"]
    assert "worst: good" in found["none", "all"]["reason"]


def test_shipped_composites_are_what_the_definition_gives_and_stand_on_pages() -> None:
    league = played_league(WEIGHED, seeds=range(1, 3), most=4)
    results = league["persona_results"].to_pandas()
    checked = 0
    for name in WEIGHED:
        own = results[(results["league"] + "/" + results["scenario"]) == name]
        metrics, weights = pack_metrics(pack(name, MANIFESTS)), MANIFESTS[name].evaluation.algorithmic
        for _, rows in own.groupby(["persona", "model_variant", "opponent"]):
            means = dict(zip(rows["metric"], rows["mean"], strict=True))
            told = {metric: None if np.isnan(mean) else mean for metric, mean in means.items()}
            expected = composite(told, weights, metrics)
            assert means["composite"] == pytest.approx(np.nan if expected is None else expected, nan_ok=True)
            checked += expected is not None
    assert checked > len(WEIGHED)
    page = games_pages_of(league)["solitaire__thirteen.html"]
    assert "1 x (1 - forfeit_rate), 3 x completion_rate" in page or "3 x completion_rate, 1 x (1 - forfeit_rate)" in page


def test_shipped_weights_are_of_metrics_that_can_be_weighed() -> None:
    assert WEIGHED == ["negotiation/allocation", "negotiation/sealed-bid", "solitaire/thirteen"]
    for name in WEIGHED:
        require_composite(name, MANIFESTS[name].evaluation.algorithmic, pack_metrics(pack(name, MANIFESTS)))


@pytest.mark.parametrize("name", sorted(MANIFESTS))
def test_weights_change_no_prompt_no_item_and_no_rule(name: str) -> None:
    own = MANIFESTS[name]
    other = own.model_copy(update={"evaluation": Weighing(algorithmic={"success_rate": 7}, human=1)})
    assert truth_id(own) == truth_id(other)
    assert [system_text(own, seat, None) for seat in range(len(own.seats))] == [
        system_text(other, seat, None) for seat in range(len(own.seats))
    ]
    packs = [pack(name, {name: one}) for one in (own, other)]
    tables = [item_rows(one, items_given(one.manifest, "1-2", opponents_given((), one.manifest))) for one in packs]
    assert tables[0].equals(tables[1])
