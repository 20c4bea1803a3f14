"""Answers in decision points become rows, and rows become what a strategy is worth: exact, or null with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.decision_points import DecisionPoint
from dtef_pipeline.games.decision_rows import (
    DecisionPlan,
    PointAsked,
    answer_table,
    has_decision_points,
    merged_answers,
    point_messages,
    points_to_ask,
)
from dtef_pipeline.games.episode_items import truth_id
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.games.opening import opening_messages
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.players import Player
from dtef_pipeline.games.strategy_rows import StrategyOptions, strategy_rows
from dtef_pipeline.games.strategy_values import values_of_probabilities
from tests.conftest import ROOT
from tests.made.made_games import show_pack
from tests.made.small_poker import small_poker

KUHN_PACK = Pack(read_manifest(ROOT / "data" / "scenarios" / "poker" / "kuhn.yaml"), small_poker("kuhn"))
LEDUC_PACK = Pack(read_manifest(ROOT / "data" / "scenarios" / "poker" / "leduc.yaml"), small_poker("leduc"))
MIXED = Player(ModelSpec(name="mixed", model="openai/mixed"))
Says = Callable[[DecisionPoint, int], str | None]
"""What is read from a draw of a point; None: no response came."""


def three_to_one(point: DecisionPoint, draw: int) -> str:
    """The first legal command in three draws of four, else the last."""
    return point.legal[-1 if draw % 4 == 3 else 0]


def plan_of(pack: Pack, sample: int | None = None, draws: int = 4) -> DecisionPlan:
    return DecisionPlan(pack, points_to_ask(pack.scenario, sample), [MIXED], draws, "base")


def row_of(plan: DecisionPlan, one: PointAsked, said: str | None) -> dict[str, Any]:
    manifest = plan.pack.manifest
    of_scenario = {"league": manifest.league, "scenario": manifest.scenario, "version": manifest.version}
    unread = said is not None and said not in one.point.legal
    return {
        **of_scenario,
        "truth_id": truth_id(manifest),
        "snapshot": plan.snapshot,
        "point": one.point.id,
        "persona": one.player.persona_name,
        "model": one.player.model_name,
        "model_variant": one.player.variant,
        "draw": one.request.draw,
        "prompt_id": one.request.prompt_id,
        "request_key": one.request.key,
        "call_status": "budget" if said is None else "answered",
        "command": None if unread else said,
        "illegal_kind": "unparsed" if unread else None,
        "illegal_reason": "No command was found." if unread else None,
        "cost_usd": None if said is None else 0.5,
    }


def answers(plan: DecisionPlan, says: Says = three_to_one) -> pa.Table:
    return answer_table([row_of(plan, one, says(one.point, one.request.draw)) for one in plan.asked()])


def valued(pack: Pack, rows: pa.Table, **options: Any) -> list[dict[str, Any]]:
    return strategy_rows(pack, rows, "base", StrategyOptions(**options)).to_pylist()


def chosen(rows: Iterable[Mapping[str, Any]], model: str, quantity: str, **about: Any) -> list[Mapping[str, Any]]:
    return [row for row in rows if {"model": model, "quantity": quantity, **about}.items() <= row.items()]


def test_the_values_are_those_of_the_shares_that_were_drawn() -> None:
    game = small_poker("kuhn")
    played = {point.id: {point.legal[0]: 0.75, point.legal[-1]: 0.25} for point in points_to_ask(game)}
    exact = values_of_probabilities(game, played)
    rows = valued(KUHN_PACK, answers(plan_of(KUHN_PACK)))
    (drawn,) = chosen(rows, "mixed", "exploitability")
    assert drawn["value"] == pytest.approx(exact.exploitability.value)
    assert drawn["scale"] == pytest.approx(0.4583333)
    for won in exact.against:
        for seat, estimate in (("first", won.first), ("second", won.second), ("both", won.mean)):
            (row,) = chosen(rows, "mixed", "value", opponent=f"baseline/{won.baseline}", seat=seat)
            assert row["value"] == pytest.approx(estimate.value)
            assert row["low"] < row["value"] < row["high"]
    lost = {row["point"]: row["value"] for row in chosen(rows, "mixed", "loss")}
    assert lost == pytest.approx(dict(exact.losses))
    (bets,) = chosen(rows, "mixed", "probability", point="J:check", command="bet")
    assert (bets["value"], bets["n_draws"], bets["seat"]) == (0.25, 4, "second")


def test_baselines_stand_beside_models_with_their_exact_values() -> None:
    rows = valued(KUHN_PACK, answers(plan_of(KUHN_PACK)).slice(0, 0))
    found = {row["model"]: row["value"] for row in rows if row["quantity"] == "exploitability_corrected"}
    known = {"baseline/nash": 0, "baseline/random": 0.4583333, "baseline/always-bet": 1 / 3, "baseline/always-pass": 1}
    assert found == pytest.approx(known, abs=1e-6)
    assert {(row["low"], row["n_draws"]) for row in rows} == {(None, None)}


def test_a_point_without_a_readable_draw_makes_values_null_even_where_others_are_filled_in() -> None:
    rows = answers(plan_of(KUHN_PACK), lambda point, draw: "hm" if point.id == "Q:bet" else three_to_one(point, draw))
    for fill in (None, "nash"):
        found = valued(KUHN_PACK, rows, fill=fill)
        (row,) = chosen(found, "mixed", "exploitability_corrected")
        assert (row["value"], row["status"], row["n_missing"], row["filled_by"]) == (None, "unscored", 1, None)
        assert "Q:bet" in row["reason"]
        assert chosen(found, "mixed", "unreadable_share", point=None)[0]["value"] == pytest.approx(1 / 12)
        assert chosen(found, "mixed", "unreadable_share", point="Q:bet")[0]["value"] == 1
        assert chosen(found, "mixed", "probability", point="Q:bet")[0]["reason"] == "no response could be read"


def test_requests_without_a_response_are_told_apart_from_unreadable_ones() -> None:
    found = valued(
        KUHN_PACK, answers(plan_of(KUHN_PACK), lambda point, draw: None if point.seat else three_to_one(point, draw))
    )
    (row,) = chosen(found, "mixed", "exploitability")
    assert row["value"] is None
    assert row["reason"].endswith("24 requests got no response: the same command asks again")
    assert chosen(found, "mixed", "unreadable_share", point=None)[0]["value"] == 0


def test_a_sample_has_values_only_where_a_baseline_was_told_to_play_the_rest() -> None:
    rows = answers(plan_of(LEDUC_PACK, 20))
    (row,) = chosen(valued(LEDUC_PACK, rows), "mixed", "exploitability")
    assert (row["value"], row["scale"], row["n_points"], row["n_missing"]) == (None, None, 20, 916)
    (row,) = chosen(valued(LEDUC_PACK, rows, fill="nash"), "mixed", "exploitability")
    assert (row["n_missing"], row["n_filled"], row["filled_by"]) == (0, 916, "nash")
    assert (row["status"], row["n_points"]) == ("partial", 20)
    (nash,) = chosen(valued(LEDUC_PACK, rows, fill="nash"), "baseline/nash", "exploitability")
    assert nash["status"] == "scored"
    # Play at random in 20 points of 936 is hardly worse than perfect play: that is the scale, not 2.37.
    assert 0 < row["scale"] < 0.3
    assert row["scale"] < row["value"] < 1


def test_a_fill_that_is_no_baseline_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"poker/kuhn: fill 'nahs': allowed: nash"):
        valued(KUHN_PACK, answers(plan_of(KUHN_PACK)), fill="nahs")


def test_leduc_is_sampled_unless_told_otherwise_and_kuhn_is_not() -> None:
    game = small_poker("leduc")
    assert [len(points_to_ask(game, sample)) for sample in (None, 0, 7)] == [100, 936, 7]
    assert len(points_to_ask(small_poker("kuhn"))) == 12
    assert points_to_ask(game) == points_to_ask(game)


def test_other_scenarios_have_no_decision_points_and_no_rows() -> None:
    pack = show_pack()
    assert not has_decision_points(pack.scenario)
    plan = plan_of(pack)
    assert list(plan.asked()) == []
    assert valued(pack, answers(plan)) == []


def test_the_first_decision_is_asked_with_the_words_of_an_episode() -> None:
    bold = Player(MIXED.model, Persona(id="bold", version=1, status="approved", display_name="Bold", system_prompt="Be bold."))
    for player in (MIXED, bold):
        told = {point_messages(KUHN_PACK, point, player) for point in points_to_ask(KUHN_PACK.scenario)}
        assert len(told) == 12
        assert all(opening_messages(KUHN_PACK, seed, player, 0) in told for seed in range(1, 7))


def test_every_point_has_a_draw_before_any_has_a_second_one() -> None:
    assert [one.request.draw for one in plan_of(KUHN_PACK, draws=2).asked()] == [0] * 12 + [1] * 12


def test_rows_of_earlier_runs_stay_unless_the_words_have_changed() -> None:
    plan, more = plan_of(KUHN_PACK, draws=2), plan_of(KUHN_PACK, draws=3)
    earlier = answers(more)
    merged = merged_answers(earlier, answers(plan), plan)
    assert len(merged) == 36
    assert merged_answers(merged, answers(plan), plan).equals(merged)
    reworded = earlier.set_column(earlier.schema.get_field_index("prompt_id"), "prompt_id", pa.array(["other"] * 36))
    assert len(merged_answers(reworded, answers(plan), plan)) == 24
    # Two rows on one request: it was paid for once.
    twice = earlier.set_column(earlier.schema.get_field_index("request_key"), "request_key", pa.array(["same"] * 36))
    assert sum(merged_answers(twice, twice.slice(0, 0), plan)["cost_usd"].to_pylist()) == 0.5


def test_answers_under_other_settings_are_no_part_of_a_strategy() -> None:
    rows = answers(plan_of(KUHN_PACK))
    other = rows.set_column(rows.schema.get_field_index("truth_id"), "truth_id", pa.array(["other"] * len(rows)))
    assert chosen(valued(KUHN_PACK, other), "mixed", "exploitability") == []
