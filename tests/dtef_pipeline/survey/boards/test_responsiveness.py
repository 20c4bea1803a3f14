"""What context changes: slope and difference by hand and by plain loops, with a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.survey.boards.conditions import compute_responsiveness, load_context_shown
from dtef_pipeline.survey.boards.schemas import RESPONSIVENESS
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.tables import BLUEPRINTS
from tests.made.scores import as_cells

QUICK = SurveyBoardOptions()
PROMPT = ["round", "segment", "question_id", "context_level", "condition"]


def cells(scores: Mapping[str, list[float | None]], **given: Any) -> pd.DataFrame:
    """Scores of a model on q0, q1, ... of one segment, by context level."""
    rows = [(level, f"q{i}", score) for level, column in scores.items() for i, score in enumerate(column)]
    frame = pd.DataFrame(rows, columns=["context_level", "question_id", "score"])
    return as_cells(frame.astype({"score": float}), **{"model": "m", **given})


def shown(frame: pd.DataFrame) -> pd.DataFrame:
    """As many context questions as were asked for; `all` shows 20."""
    prompts = frame[PROMPT].drop_duplicates().reset_index(drop=True)
    return prompts.assign(context_included=[20 if level == "all" else float(level) for level in prompts["context_level"]])


def responded(frame: pd.DataFrame) -> dict[str, Any]:
    (row,) = compute_responsiveness(frame, shown(frame), QUICK).to_dict("records")
    return {str(name): value for name, value in row.items()}


def test_slope_and_difference_by_hand() -> None:
    row = responded(cells({"0": [0.5] * 6, "10": [0.6] * 6, "all": [0.7, 0.7, 0.7, 0.7, 0.7, 0.8]}))
    assert row["levels"] == "0, 10, all"
    assert (row["n_pairs"], row["n_questions"]) == (6, 6)
    # Per pair: x - mean x = -10, 0, 10; 0.2 more over 20 questions, in one of six 0.3.
    assert row["slope"] == pytest.approx((5 * 0.2 + 0.3) / 6 / 20)
    assert [row["score_at_lowest_context"], row["score_at_highest_context"], row["difference"]] == pytest.approx(
        [0.5, 4.3 / 6, 1.3 / 6]
    )
    expected = stats.ttest_1samp([0.2] * 5 + [0.3], 0)
    assert [row["p"], row["p_adjusted"]] == pytest.approx([expected.pvalue] * 2)
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected.confidence_interval()))
    assert row["verdict"] == "evidence-adapting"
    assert row["slope_low"] <= row["slope"] <= row["slope_high"]
    assert row["low"] <= row["difference"] <= row["high"]


def lopsided(seed: int) -> pd.DataFrame:
    """Two models, questions in 1 to 5 segments, three levels, a third of the scores missing."""
    generator = np.random.default_rng(seed)
    rows = [
        (model, f"q{question}", f"s{segment}", level, None if generator.random() < 0.33 else generator.random())
        for model in ("m", "n")
        for question in range(7)
        for segment in range(generator.integers(1, 6))
        for level in ("0", "5", "all")
    ]
    frame = pd.DataFrame(rows, columns=["model", "question_id", "segment", "context_level", "score"])
    return as_cells(frame.astype({"score": float}))


def by_definition(frame: pd.DataFrame, context: dict[tuple[str, str, str], float]) -> dict[str, float]:
    """One model's pairs by plain loops."""
    pairs: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for row in frame.itertuples():
        if not np.isnan(row.score):
            x = context[row.segment, row.question_id, row.context_level]
            pairs.setdefault((row.segment, row.question_id), {})[row.context_level] = (x, row.score)
    numerator = denominator = 0.0
    changes = []
    several = {pair: levels for pair, levels in pairs.items() if len(levels) > 1}
    for levels in several.values():
        xs, ys = zip(*levels.values(), strict=True)
        for x, y in levels.values():
            numerator += (x - sum(xs) / len(xs)) * (y - sum(ys) / len(ys))
            denominator += (x - sum(xs) / len(xs)) ** 2
        if "0" in levels and "all" in levels:
            changes.append(levels["all"][1] - levels["0"][1])
    return {
        "n_pairs": len(several),
        "n_questions": len({question for _, question in several}),
        "slope": numerator / denominator,
        "difference": sum(changes) / len(changes),
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_as_plain_loops_over_lopsided_pairs_say(seed: int) -> None:
    frame = lopsided(seed)
    frame["parsed_score"] = frame["score"].where(np.random.default_rng(seed).random(len(frame)) > 0.3) * 0.9
    readable = frame.assign(score=frame["parsed_score"])
    context = shown(frame)
    context["context_included"] += np.random.default_rng(seed).integers(0, 4, len(context))
    of = {(row.segment, row.question_id, row.context_level): float(row.context_included) for row in context.itertuples()}
    for row in compute_responsiveness(frame, context, QUICK).to_dict("records"):
        expected = by_definition(frame[frame["model"] == row["model"]], of)
        assert {name: row[name] for name in expected} == pytest.approx(expected)
        of_read = by_definition(readable[readable["model"] == row["model"]], of)
        assert row["parsed_difference"] == pytest.approx(of_read["difference"])


def test_context_that_costs_readable_responses_and_no_knowledge_hurts_by_the_policy_alone() -> None:
    few = [0.6 if place % 3 else 0.0 for place in range(60)]
    frame = cells({"0": [0.6] * 60, "all": few})
    unread = frame["score"] == 0
    frame = frame.assign(parsed_score=frame["score"].mask(unread), n_ok=(~unread).astype(int))
    row = responded(frame)
    assert (row["verdict"], row["parsed_verdict"], row["n_parsed_pairs"]) == ("hurt by context", "stereotype-holding", 40)
    assert row["parsed_note"].startswith("hurt by context by the published policy")
    assert row["parsed_note"].endswith(": stereotype-holding")


def test_p_is_adjusted_over_the_language_models_of_a_condition() -> None:
    rising = [0.5 + 0.01 * (place + 1) for place in range(7)]
    models = [cells({"0": [0.5] * 7, "all": rising}, model=name) for name in ("a", "b", "baseline/nearest-segments")]
    other = cells({"0": [0.5] * 7, "all": [0.4, 0.6, 0.5, 0.5, 0.4, 0.6, 0.5]}, model="c")
    frame = pd.concat([*models, other])
    table = compute_responsiveness(frame, shown(frame), QUICK).set_index("model")
    of_models = table.loc[["a", "b", "c"]]
    assert of_models["p_adjusted"].tolist() == pytest.approx(holm(of_models["p"]).tolist())
    assert table.loc["a", "verdict"] == "evidence-adapting"
    assert pd.isna(table.loc["baseline/nearest-segments", ["p_adjusted", "verdict", "parsed_verdict"]]).all()


def test_a_model_whose_answers_could_not_be_read_holds_nothing() -> None:
    # At a parse rate of 0 the same policy score at both levels was called stereotype-holding.
    frame = cells({"0": [0.0] * 6, "5": [0.0] * 6}).assign(n_ok=0)
    row = responded(frame)
    assert row["verdict"] == "undecided"
    assert row["note"].endswith("level 0, 5")
    frame["n_ok"] = (frame["context_level"] == "0").astype(int)
    assert responded(frame)["note"].endswith("level 5")


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ([0.02, 0.03, 0.04] * 4, "evidence-adapting"),
        ([-0.02, -0.03, -0.04] * 4, "hurt by context"),
        ([0.001, -0.001, 0.002, -0.002] * 3, "stereotype-holding"),
        ([0.0] * 6, "stereotype-holding"),
    ],
)
def test_rising_scores_adapt_falling_ones_are_hurt_and_steady_ones_hold(change: list[float], verdict: str) -> None:
    assert responded(cells({"0": [0.5] * len(change), "5": [0.5 + value for value in change]}))["verdict"] == verdict


def test_a_model_with_one_context_level_has_no_row_and_breaks_nothing() -> None:
    one = cells({"0": [0.5] * 6}, model="one")
    two = cells({"0": [0.5] * 6, "5": [0.6] * 6})
    assert compute_responsiveness(pd.concat([one, two]), shown(two), QUICK)["model"].tolist() == ["m"]
    nothing = compute_responsiveness(one, shown(one), QUICK)
    assert len(nothing) == 0
    assert list(nothing.columns) == RESPONSIVENESS.names


def test_context_is_what_the_prompts_show_on_average() -> None:
    plain = {"round": "S1", "segment": "kenya", "question_id": "q0", "condition": "c"}
    rows = [{**plain, "context_level": level, "context_included": n} for level, n in (("0", 0), ("all", 17), ("all", 20))]
    with duckdb.connect() as connection:
        connection.register("blueprints", pa.Table.from_pylist(rows, schema=BLUEPRINTS))
        assert load_context_shown(connection)[["context_level", "context_included"]].to_numpy().tolist() == [
            ["0", 0.0],
            ["all", pytest.approx(18.5)],
        ]


def test_noise_of_the_observed_answers_cancels_between_levels_unless_the_model_changed() -> None:
    frame = cells({"0": [0.5] * 8, "5": list(0.5 + 0.01 * np.random.default_rng(5).normal(size=8))})
    drawn = np.random.default_rng(6).normal(0, 0.1, size=(8, 20)).astype(np.float32)

    def width(noise: np.ndarray[Any, Any] | None) -> float:
        table = compute_responsiveness(frame, shown(frame), QUICK, noise)
        return float((table["high"] - table["low"])[0])

    assert width(np.vstack([drawn, drawn])) == pytest.approx(width(None), rel=1e-3)
    assert width(np.vstack([drawn, 0 * drawn])) > 3 * width(None)
