"""Each condition is compared with the first on the cells that a model has in both."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from dtef_pipeline.survey.boards.conditions import compare_conditions
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.tables import PREDICTIONS
from tests.made.scores import scores_table

VARIANT = "openai/m[max_tokens=256,temperature=0]"
PLAIN, COT, SHIFT = "distribution/attribute-label", "distribution/attribute-label+cot", "shift/attribute-label"


def of(condition: str, *scores: float | None, **given: Any) -> list[dict[str, Any]]:
    """Scores of m on q0, q1, ...; None: the call failed."""
    known = {"model": "m", "model_variant": VARIANT, "condition": condition}
    return [
        {**known, "question_id": f"q{i}", "score": score, "status": "error" if score is None else "ok", **given}
        for i, score in enumerate(scores)
    ]


def compared(rows: list[dict[str, Any]], predictions: list[dict[str, Any]] | None = None, **options: Any) -> pd.DataFrame:
    """The board; without `predictions` where none are given."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("scores", scores_table(rows))
        if predictions is not None:
            connection.register("predictions", pa.Table.from_pylist(predictions, schema=PREDICTIONS))
        return compare_conditions(connection, SurveyBoardOptions(**options))


def compared_row(rows: list[dict[str, Any]], predictions: list[dict[str, Any]] | None = None) -> pd.Series:
    found = compared(rows, predictions)
    assert len(found) == 1
    return found.iloc[0]


def test_a_condition_is_compared_with_the_first_on_the_cells_both_have() -> None:
    found = compared_row(of(PLAIN, 0.4, 0.6, 0.9, None) + of(COT, 0.5, None, 0.8, 0.1))
    assert found["n_pairs"] == 2
    assert found["score"] == pytest.approx((0.5 + 0.8) / 2)
    assert found["first_score"] == pytest.approx((0.4 + 0.9) / 2)
    assert found["difference"] == pytest.approx(0.0)
    assert found["n_total"] == 4


def test_the_board_compares_every_condition_with_the_usual_or_with_the_named_one() -> None:
    rows = of(PLAIN, 0.4, 0.6) + of(COT, 0.5, 0.7) + of(SHIFT, 0.9)
    found = compared(rows).set_index("condition")
    assert found["difference"].to_dict() == pytest.approx({COT: 0.1, SHIFT: 0.5})
    assert set(found["first_condition"]) == {PLAIN}
    named = compared(rows, condition=COT).set_index("condition")
    assert named["difference"].to_dict() == pytest.approx({PLAIN: -0.1, SHIFT: 0.4})


def test_baselines_and_models_of_one_condition_have_no_row() -> None:
    other, baseline = ({"model": name, "model_variant": name} for name in ("openai/other", "baseline/uniform"))
    rows = of(PLAIN, 0.4) + of(PLAIN, 0.4, **other) + of(PLAIN, 0.4, **baseline) + of(COT, 0.4, **baseline)
    assert len(compared(rows)) == len(compared(of(PLAIN, 0.4))) == 0


def test_snapshots_are_not_mixed_and_the_latest_with_both_counts_unless_one_is_named() -> None:
    first, second, third = ({"snapshot": f"2026-01-0{day}"} for day in (1, 2, 3))
    rows = of(PLAIN, 0.1, **first) + of(COT, 0.5, **first) + of(PLAIN, 0.2, **second) + of(COT, 0.3, **second)
    rows += of(COT, 0.9, **third)
    assert compared(rows)[["snapshot", "difference"]].to_numpy().tolist() == [["2026-01-02", pytest.approx(0.1)]]
    assert compared(rows, snapshot="2026-01-01")["difference"].tolist() == pytest.approx([0.4])
    assert len(compared(rows, snapshot="2026-01-03")) == 0


def test_context_levels_are_never_mixed_and_each_compares_as_if_alone() -> None:
    """Two levels were pooled into one row of twice the pairs."""
    at_five = {"context_level": "5"}
    scores = (
        of(PLAIN, *[0.5] * 6) + of(COT, *[0.6, 0.7] * 3) + of(PLAIN, *[0.4] * 6, **at_five) + of(COT, *[0.3] * 6, **at_five)
    )
    more = of(PLAIN, 0.1, **at_five, segment="country:chile")  # asked in one condition alone
    calls = [call("a", PLAIN), call("b", COT), call("c", COT, **at_five, cost_usd=0.5)]
    adjusted = ["p_adjusted", "parsed_p_adjusted"]
    found = compared(scores + more, calls).drop(columns=adjusted)
    assert found["context_level"].tolist() == ["0", "5"]
    assert found["n_pairs"].tolist() == [6, 6]
    assert found["cost_usd"].tolist() == pytest.approx([0.25, 0.5])
    for place, level in enumerate(("0", "5")):
        alone = compared(scores + more, calls, context_levels=(level,)).drop(columns=adjusted)
        pd.testing.assert_frame_equal(found.iloc[[place]].reset_index(drop=True), alone, check_dtype=False)


def call(key: str, condition: str, **given: Any) -> dict[str, Any]:
    at = {"round": "S1", "segment": "country:kenya", "snapshot": "base", "question_id": "q0", "context_level": "0"}
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "cost_usd": 0.25, "call_status": "answered"}
    return {**at, **usage, "request_key": key, "condition": condition, "model_variant": VARIANT, "model": "m", **given}


def test_tokens_and_dollars_are_those_of_the_pairs_that_are_compared() -> None:
    """What another run asked in one condition alone made it look dearer than the others."""
    calls = [
        call("a", PLAIN),
        call("b", COT, completion_tokens=300),
        call("more", COT, question_id="q1"),
        call("elsewhere", COT, segment="country:chile"),
        call("batch", COT, question_id="q0"),
        call("batch", COT, question_id="q1", prompt_tokens=0, completion_tokens=0, cost_usd=0.0),
    ]
    scores = of(PLAIN, 0.4) + of(COT, 0.5, 0.5) + of(COT, 0.9, segment="country:chile")
    found = compared_row(scores, calls)
    assert found[["n_pairs", "prompt_tokens", "completion_tokens", "unpriced"]].tolist() == [1, 200, 307, 0]
    assert found["cost_usd"] == pytest.approx(0.5)
    assert np.isnan(compared(scores)["cost_usd"].astype(float)).all()


def changed(*by: float) -> pd.Series:
    """q0, q1, ... in one segment, changed by so much in the second condition."""
    return compared_row(of(PLAIN, *[0.5] * len(by)) + of(COT, *(0.5 + change for change in by)))


class TestVerdicts:
    def test_interval_test_and_verdict_by_hand(self) -> None:
        found = changed(0.1, 0.2, 0.1, 0.2, 0.1, 0.2)
        assert found["difference"] == pytest.approx(0.15)
        assert found["low"] < 0.15 < found["high"]
        p = stats.ttest_1samp([0.1, 0.2] * 3, 0).pvalue
        assert (found["p"], found["p_adjusted"], found["n_questions"]) == pytest.approx((p, p, 6))
        assert (found["verdict"], found["note"]) == ("better", "")
        assert (found["parsed_difference"], found["parsed_p"]) == pytest.approx((0.15, p))
        assert (found["parsed_verdict"], found["parsed_note"]) == ("better", "")
        assert changed(*[-0.1, -0.2] * 3)["verdict"] == "worse"

    def test_what_lies_within_the_margin_is_equivalent_and_what_does_not_is_undecided(self) -> None:
        assert changed(*[0.02, -0.02, 0.03, -0.03] * 4)["verdict"] == "undecided"
        assert changed(*[0.0] * 6)[["verdict", "p"]].tolist() == ["equivalent", pytest.approx(1)]
        small = changed(*[0.002, 0.003] * 4)
        assert small["verdict"] == "better"
        assert "margin of 0.01" in small["note"]

    def test_a_condition_that_costs_readable_responses_and_no_knowledge_is_worse_by_the_policy_alone(self) -> None:
        unread = [{**row, "status": "unparseable", "score": 0.0} for row in of(COT, *[0.0] * 24)[::3]]
        read = [row for place, row in enumerate(of(COT, *[0.5, 0.502] * 12)) if place % 3]
        found = compared_row([*of(PLAIN, *[0.501] * 24), *read, *unread])
        assert (found["verdict"], found["parsed_verdict"]) == ("worse", "equivalent")
        assert (found["n_pairs"], found["n_parsed_pairs"]) == (24, 16)
        assert found["parsed_low"] < found["parsed_difference"] < found["parsed_high"]
        assert found["parsed_note"].endswith(": equivalent")
        assert found["parse_rate"] == pytest.approx(16 / 24)

    def test_a_condition_without_a_score_or_a_readable_response_is_undecided_and_says_why(self) -> None:
        failed = compared_row(of(PLAIN, *[0.5] * 6) + of(COT, *[None] * 6))
        assert (failed["verdict"], failed["n_pairs"], failed["n_parsed_pairs"]) == ("undecided", 0, 0)
        assert "no pair" in failed["note"]
        unread = compared_row(of(PLAIN, *[0.5] * 6) + of(COT, *[0.0] * 6, status="unparseable"))
        assert (unread["verdict"], unread["n_pairs"]) == ("undecided", 6)
        assert "no readable response" in unread["note"]


def test_p_is_adjusted_over_all_rows_of_the_board() -> None:
    """p was adjusted within each condition and context level, although the board shows all of them together."""
    at_five, other = {"context_level": "5"}, {"model": "other", "model_variant": "openai/other[max_tokens=256,temperature=0]"}
    changes = {(COT, "0"): (0.1, 0.2), (SHIFT, "0"): (0.1, 0.12), (COT, "5"): (-0.2, 0.3)}
    rows = of(PLAIN, *[0.5] * 6) + of(PLAIN, *[0.5] * 6, **at_five) + of(PLAIN, *[0.5] * 6, **other)
    rows += of(COT, *[0.4, 0.5] * 3, **other)
    for (condition, level), change in changes.items():
        rows += of(condition, *[0.5 + part for part in change] * 3, context_level=level)
    found = compared(rows).set_index(["condition", "context_level", "model"])
    p = {key: stats.ttest_1samp(change * 3, 0).pvalue for key, change in changes.items()}
    # The smallest p counts four times, the next three times, and the largest once.
    assert p[SHIFT, "0"] < p[COT, "0"] < stats.ttest_1samp([-0.1, 0] * 3, 0).pvalue < p[COT, "5"]
    assert found["p_adjusted"].to_dict() == pytest.approx(
        {
            (SHIFT, "0", "m"): 4 * p[SHIFT, "0"],
            (COT, "0", "m"): 3 * p[COT, "0"],
            (COT, "0", "other"): 2 * stats.ttest_1samp([-0.1, 0] * 3, 0).pvalue,
            (COT, "5", "m"): p[COT, "5"],
        }
    )
    assert found["parsed_p_adjusted"].tolist() == pytest.approx(found["p_adjusted"].tolist())
