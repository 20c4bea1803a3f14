"""The composite score: the weighted mean of normalised metrics, named with its weights, and weights that change nothing but scores."""

from __future__ import annotations

from typing import Any

import pytest

from dtef_pipeline.games.episode_items import build_game_items, build_item_rows, resolve_opponents, truth_id
from dtef_pipeline.games.game_in_play import write_system_text
from dtef_pipeline.games.manifest import EvaluationWeights, read_manifests, select_manifests_in_play
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.persona_results import compute_game_results
from tests.made.game_pages import SCENARIOS
from tests.made.made_scores import connected_scores, scored_games

MANIFESTS = read_manifests(SCENARIOS)
GOOD = {
    "metric": "good",
    "metric_family": "efficacy",
    "unit": "share",
    "direction": "higher",
    "unit_scale": True,
    "weight": 3.0,
}
BAD = {"metric": "bad", "metric_family": "efficacy", "unit": "share", "direction": "lower", "unit_scale": True, "weight": 1.0}


def composites(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    found = compute_game_results(connected_scores(rows)).to_pylist()
    return {(row["model"], row["opponent"]): row for row in found if row["metric"] == "composite"}


def test_the_composite_is_the_hand_value_and_names_its_weights() -> None:
    rows = list(scored_games("one", "a", {1: (1.0, 0.5), 2: (0.0, 0.5)}, GOOD))
    rows += scored_games("one", "a", {1: (0.2, 0.2), 2: (0.2, 0.6)}, BAD)
    rows += scored_games("one", "a", {1: (1, 2), 2: (3, 4)})
    row = composites(rows)["one", "all"]
    assert row["mean"] == pytest.approx((3 * 0.5 + 1 * (1 - 0.3)) / 4)
    assert (row["unit"], row["direction"], row["n_clusters"]) == ("share", "higher", 2)
    assert row["reason"] == "no interval is computed for the weighted mean of: 1 x (1 - bad), 3 x good"
    assert composites(rows)["one", "a"]["mean"] == row["mean"]


def test_a_composite_with_a_part_that_nothing_reported_of_has_no_value_and_names_the_part() -> None:
    rows = list(scored_games("one", "a", {1: (1, 1)}, GOOD)) + list(scored_games("one", "a", {1: (1, 2)}))
    untold = [
        {**row, "numerator": None, "denominator": None, "value": None, "status": "unscored", "reason": "nothing"}
        for row in scored_games("one", "a", {1: (0, 0)}, BAD)
    ]
    row = composites(rows + untold)["one", "all"]
    assert row["mean"] is None
    assert row["reason"] == "no value of bad, a part of: 1 x (1 - bad), 3 x good"


def test_a_player_that_forfeits_every_episode_has_the_worst_composite() -> None:
    """It bid never, so that nothing told of its efficiency, and it had no composite: it stood nowhere."""
    forfeits = {**BAD, "metric": "forfeit_rate", "metric_family": "form"}
    rows = [*scored_games("fair", "a", {1: (0.2, 0.4)}, GOOD), *scored_games("fair", "a", {1: (0, 1)}, forfeits)]
    rows += scored_games("none", "a", {1: (1, 1)}, forfeits)
    rows += [row for name in ("fair", "none") for row in scored_games(name, "a", {1: (0, 0)})]
    rows += [
        {**row, "numerator": None, "denominator": None, "value": None, "status": "unscored", "reason": "nothing"}
        for row in scored_games("none", "a", {1: (0, 0)}, GOOD)
    ]
    found = composites(rows)
    assert found["fair", "all"]["mean"] == pytest.approx((3 * 0.3 + 0.5) / 4)
    assert found["none", "all"]["mean"] == pytest.approx(0)
    assert "forfeited" in found["none", "all"]["reason"]
    assert "worst: good" in found["none", "all"]["reason"]


@pytest.mark.parametrize("name", sorted(MANIFESTS))
def test_weights_change_no_prompt_no_item_and_no_rule(name: str) -> None:
    own = MANIFESTS[name]
    other = own.model_copy(update={"evaluation": EvaluationWeights(algorithmic={"success_rate": 7}, human=1)})
    assert truth_id(own) == truth_id(other)
    assert [write_system_text(own, seat, None) for seat in range(len(own.seats))] == [
        write_system_text(other, seat, None) for seat in range(len(own.seats))
    ]
    packs = [pack(name, {name: one}) for one in (own, other)]
    tables = [build_item_rows(one, build_game_items(one.manifest, "1-2", resolve_opponents((), one.manifest))) for one in packs]
    assert tables[0].equals(tables[1])


def test_a_scenario_in_production_plays_on_while_its_next_version_is_experimental() -> None:
    """Nights played an experimental version of it at once."""
    kuhn = MANIFESTS["poker/kuhn"]

    def played(*statuses: str) -> int:
        versions = [kuhn.model_copy(update={"version": n, "status": status}) for n, status in enumerate(statuses, 1)]
        return select_manifests_in_play(versions)["poker/kuhn"].version

    assert (played("experimental", "experimental"), played("production", "experimental")) == (2, 1)
    assert played("production", "retired", "experimental") == 2
