"""Boards over the latest run of each blueprint, and within blueprints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks import rubric_coverage
from benchmarks.rubric_coverage import WORLDS, expected, of_one, of_set
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.board import board, build_criterion_board, select_latest_runs
from tests.dtef_pipeline.rubric.scored_rows import points_of, runs_of, scores_of


def rows_of(found: pd.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in found.to_dict("records")}


def lopsided(seed: int, n_blueprints: int, n_prompts: int) -> list[dict[str, Any]]:
    """Cells with some missing; `a` is best."""
    rng = np.random.default_rng(seed)
    level = rng.uniform(0.2, 0.6, size=n_blueprints)
    return [
        {
            "blueprint": f"b{b:02d}",
            "model": model,
            "prompt": f"p{p}",
            "temperature": temperature,
            "score": None if rng.random() < 0.1 else float(np.clip(level[b] - 0.05 * at + rng.normal(0, 0.1), 0, 1)),
        }
        for b in range(n_blueprints)
        for at, model in enumerate("abc")
        for p in range(n_prompts)
        for temperature in (0.0, 1.0)[: 1 + (b + at) % 2]
    ]


def test_ten_blueprints_are_ranked_and_nine_are_listed_without_a_rank() -> None:
    cells = [*runs_of("x", *[0.8] * 10), *runs_of("y", *[0.79] * 40), *runs_of("z", *[0.99] * 9)]
    found = board(scores_of(*cells), ["s1"], {})
    assert found["model"].tolist() == ["x", "y", "z"]
    assert found["rank"].fillna(0).tolist() == [1, 2, 0]
    by_model = rows_of(found)
    assert (by_model["x"]["n_scored"], by_model["z"]["n_scored"]) == (10, 9)
    assert by_model["z"]["note"] == "not ranked: a score in 9 blueprints, at least 10 are needed"
    assert by_model["z"]["score"] == pytest.approx(0.99)


def test_the_note_names_the_run_that_left_a_model_out() -> None:
    """The note only counted the blueprints that were left."""
    cells = [
        *runs_of("x", *[0.8] * 10, snapshot="s1"),
        *runs_of("y", *[0.7] * 10, snapshot="s1"),
        *runs_of("y", 0.7, 0.7, snapshot="s2"),
        *runs_of("y", 0.7, first=2, snapshot="s3"),
    ]
    found = rows_of(board(scores_of(*cells), ["s1", "s2", "s3"], {"b00": ["care"], "b02": ["test"]}))
    assert found["x"]["note"].startswith("not ranked: a score in 7 blueprints")
    assert found["x"]["note"].endswith("snapshot s2 (2 blueprints)")
    by_tag = rows_of(
        board(scores_of(*cells, *runs_of("x", 0.8, first=11)), ["s1", "s2", "s3"], {"b00": ["care"], "b11": ["care"]}, "tag")
    )
    assert by_tag["x"]["note"].endswith("snapshot s2 (1 blueprint)")
    assert "snapshot" not in by_tag["y"]["note"]


def test_the_latest_run_of_each_blueprint_counts_and_each_once() -> None:
    cells = [
        *runs_of("m", 0.2, snapshot="old"),
        *runs_of("m", 0.8, snapshot="new"),
        *runs_of("m", 0.4, first=1, snapshot="old"),
    ]
    table = scores_of(*cells)
    assert board(table, ["old", "new"], {})["score"].tolist() == pytest.approx([0.6])
    assert board(table, ["new", "old"], {})["score"].tolist() == pytest.approx([0.3])


def test_a_run_in_which_nothing_was_scored_does_not_take_the_place_of_one_in_which_something_was() -> None:
    failed = {"blueprint": "b00", "snapshot": "new", "prompt": "p0", "model": "m", "score": None}
    table = scores_of(*runs_of("m", 0.2, snapshot="old"), failed)
    assert select_latest_runs(table, ["old", "new"]).to_dict("records") == [{"blueprint": "b00", "snapshot": "old"}]
    assert select_latest_runs(scores_of(failed), ["old", "new"])["snapshot"].tolist() == ["new"]


def test_blueprints_with_the_tag_test_are_left_out_of_boards_over_blueprints() -> None:
    table = scores_of(*runs_of("m", 0.2, 0.8))
    tags = {"b00": ["test", "law"], "b01": ["law"]}
    assert board(table, ["s1"], tags)["score"].tolist() == pytest.approx([0.8])
    by_tag = board(table, ["s1"], tags, "tag")
    assert list(zip(by_tag["tag"], by_tag["score"], strict=True)) == [("law", pytest.approx(0.8))]
    assert board(table, ["s1"], tags, "blueprint")["blueprint"].tolist() == ["b00", "b01"]


def test_within_a_blueprint_the_score_is_the_models_and_the_interval_goes_by_prompts() -> None:
    cells = lopsided(3, 2, n_prompts=12)
    table = scores_of(*cells, weights={"p3": 5.0, "p4": 0.2})
    found = board(table, ["s1"], {}, "blueprint")
    models = table[table["level"] == "model"].merge(found, on=["blueprint", "snapshot", "model"], suffixes=("_own", ""))
    assert len(models) == 6
    np.testing.assert_allclose(models["score"], models["hybrid"], atol=1e-12)
    np.testing.assert_allclose(models["intercept"], models["intercept_own"], atol=1e-12)
    assert ((models["low"] < models["score"]) & (models["score"] < models["high"])).all()
    assert (found["n_scored"] <= 12).all()
    again = board(table.iloc[::-1], ["s1"], {}, "blueprint")
    pd.testing.assert_frame_equal(again, found, check_exact=True)


def test_an_interval_is_as_wide_as_the_spread_of_the_blueprints_says() -> None:
    values = np.random.default_rng(1).uniform(0.3, 0.7, size=30)
    (row,) = board(scores_of(*runs_of("m", *values)), ["s1"], {}).to_dict("records")
    half = 2.0452 * values.std(ddof=1) / np.sqrt(30)  # t of 29 degrees of freedom
    assert row["high"] - row["low"] == pytest.approx(2 * half, rel=0.02)
    assert row["score"] == pytest.approx(values.mean())


def test_ranks_move_where_models_are_alike_and_not_where_they_are_far_apart() -> None:
    rng = np.random.default_rng(2)
    near = rng.uniform(0.4, 0.6, size=12)
    cells = [*runs_of("far", *(near + 0.3)), *runs_of("one", *near), *runs_of("two", *(near[::-1] + 0.001))]
    by_model = rows_of(board(scores_of(*cells), ["s1"], {}))
    assert (by_model["far"]["rank_low"], by_model["far"]["rank_high"]) == (1, 1)
    assert {(by_model[name]["rank_low"], by_model[name]["rank_high"]) for name in ("one", "two")} == {(2, 3)}


def test_few_prompts_that_nearly_all_pass_do_not_look_certain() -> None:
    """Prompts passed with a chance of .8: the interval of 6 held the truth in .78, as it is nothing where all pass."""
    passed = np.random.default_rng(3).random((300, 6)) < 0.8
    cells = [
        {"blueprint": "b", "model": f"m{model}", "prompt": f"p{prompt}", "score": float(value)}
        for (model, prompt), value in np.ndenumerate(passed)
    ]
    rows = board(scores_of(*cells), ["s1"], {}, "blueprint")
    assert ((rows["low"] <= 0.8) & (rows["high"] >= 0.8)).mean() > 0.95


def test_few_blueprints_have_no_interval_and_say_so() -> None:
    (row,) = board(scores_of(*runs_of("m", 0.1, 0.2, 0.3)), ["s1"], {}).to_dict("records")
    assert np.isnan([row["low"], row["high"]]).all()
    assert row["note"].startswith("no interval: 3 blueprints, at least 5 are needed")


def test_a_prompt_has_the_mean_over_variants_and_a_rank_of_its_own() -> None:
    one = {"blueprint": "b", "prompt": "p"}
    cells = [
        {**one, "model": "a", "score": 0.2},
        {**one, "model": "a", "temperature": 1.0, "score": 0.4},
        {**one, "model": "b", "score": None},
    ]
    found = board(scores_of(*cells), ["s1"], {}, "prompt")
    assert found["score"].tolist() == pytest.approx([0.3, np.nan], nan_ok=True)
    assert found["rank"].fillna(0).tolist() == [1, 0]
    assert found["note"].tolist() == ["", "not ranked: no score"]


def test_a_criterion_has_the_mean_point_of_each_model() -> None:
    points = pd.concat(
        [
            points_of({"score": 0.2}, {"score": 1.0, "path": 0}, model="a"),
            points_of({"score": 0.6}, {"score": None, "path": 0}, model="a", draw=1),
            points_of({"score": 0.5}, {"score": None, "path": 0}, model="b"),
            points_of({"score": 1.0}, model="b", snapshot="s0"),
        ]
    )
    found = build_criterion_board(points, pd.DataFrame({"blueprint": ["b"], "snapshot": ["s1"]}))
    first = found[found["path"].isna()]
    assert list(zip(first["model"], first["score"], first["rank"], strict=True)) == [
        ("b", 0.5, 1),
        ("a", pytest.approx(0.4), 2),
    ]
    second = rows_of(found[found["path"].notna()])
    assert (second["a"]["score"], second["a"]["n_planned"], second["a"]["n_scored"]) == (1.0, 2, 1)
    assert np.isnan(second["b"]["score"])


def test_the_overall_board_is_the_naive_mean_on_lopsided_data() -> None:
    table = scores_of(*lopsided(4, 15, n_prompts=3))
    found = rows_of(board(table, ["s1"], {}))
    for model in "abc":
        own = table[(table["level"] == "model") & (table["model"] == model)]["hybrid"].dropna()
        assert found[model]["score"] == pytest.approx(sum(own) / len(own))
        assert found[model]["n_scored"] == len(own)


def test_no_scores_make_empty_boards_and_another_view_is_refused() -> None:
    for by in ("overall", "tag", "blueprint", "prompt"):
        assert len(board(scores_of(), [], {}, by)) == 0
    assert len(build_criterion_board(points_of(), select_latest_runs(scores_of(), []))) == 0
    with pytest.raises(ConfigError, match="board by 'maker': allowed: overall, tag, blueprint, prompt"):
        board(scores_of(), [], {}, "maker")


@pytest.mark.thorough
def test_uneven_blueprints_with_gaps_leave_the_board_as_sure_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rubric_coverage, "DRAWN_FOR_TRUTH", 60_000)
    world = replace(WORLDS["12, of 2 to 250 prompts"], lacking=0.1)
    truth = expected(world)
    found = pd.DataFrame([of_set(world, truth, at) for at in range(40)]).mean()
    assert 0.88 <= found["board"] <= 1
    assert found["rank"] >= 0.93


@pytest.mark.thorough
def test_prompts_of_one_blueprint_leave_scores_and_differences_as_sure_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rubric_coverage, "PROMPTS_WITHIN", 3_000)
    monkeypatch.setattr(rubric_coverage, "_WITHIN", {})
    found = pd.DataFrame([of_one(20, at) for at in range(30)]).mean()
    assert 0.88 <= found["within"] <= 1
    assert 0.88 <= found["runs"] <= 1
