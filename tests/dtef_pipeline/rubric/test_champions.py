"""Champions of the dimensions that analysts grade."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.rubric_roll_ups import rank_champions

ROW = {"snapshot": "s1", "analyst": "one", "model": "m", "dimension": "clarity"}


def graded(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([{**ROW, **row} for row in rows], columns=["blueprint", *ROW, "grade"])


def grades_of(model: str, *values: float | None, **rest: Any) -> list[dict[str, Any]]:
    return [{"blueprint": f"b{at}", "model": model, "grade": value, **rest} for at, value in enumerate(values)]


def test_the_best_mean_of_five_blueprints_is_the_champion() -> None:
    found = rank_champions(
        graded(*grades_of("m", 8, 8, 9, 9, 8), *grades_of("n", 10, 10, 10, 10), *grades_of("o", 7, 7, 7, 7, 7)), ["s1"]
    )
    assert found["model"].tolist() == ["m", "o", "n"]
    assert found["mean"].tolist() == pytest.approx([8.4, 7, 10])
    assert found["champion"].tolist() == [True, False, False]
    assert found["reason"].tolist() == ["", "", "graded in 4 blueprints, at least 5 are needed"]


def test_a_blueprint_graded_twice_counts_once_with_the_newer_grade() -> None:
    rows = [*grades_of("m", 8, 8, 8, 8, 8), {"blueprint": "b0", "snapshot": "s2", "grade": 3}]
    for order, mean in ((["s1", "s2"], 7.0), (["s2", "s1"], 8.0)):
        (row,) = rank_champions(graded(*rows), order).to_dict("records")
        assert (row["mean"], row["n_blueprints"]) == (pytest.approx(mean), 5)


def test_grades_of_several_analysts_are_averaged_and_a_missing_one_is_none() -> None:
    rows = [*grades_of("m", 8, 8, 8, 8, 8, None), *grades_of("m", 4, analyst="two")]
    (row,) = rank_champions(graded(*rows), ["s1"]).to_dict("records")
    assert (row["mean"], row["n_blueprints"]) == (pytest.approx((6 + 4 * 8) / 5), 5)


def test_consistency_needs_four_of_the_latest_five_grades_at_five_or_more() -> None:
    old = [{"blueprint": f"old{at}", "snapshot": "s0", "grade": 10} for at in range(6)]
    rows = [*old, *grades_of("m", 4, 4, 9, 9, 9), *grades_of("n", 4, 5, 5, 5, 5)]
    assert rank_champions(graded(*rows), ["s0", "s1"])["champion"].tolist() == [True, False]
    found = rank_champions(graded(*rows), ["s0", "s1"], consistency=True)
    assert found["model"].tolist() == ["n", "m"]
    assert found["champion"].tolist() == [True, False]
    assert found["reason"].tolist() == ["", "a grade of 5 or more in 3 of the latest 5 blueprints"]


def test_no_grades_have_no_champions_and_a_wrong_grade_is_refused() -> None:
    assert len(rank_champions(graded(), [])) == 0
    with pytest.raises(ConfigError, match=r"grades: grade of b0, m, clarity: got 11.*allowed: a number from 1 to 10, or null"):
        rank_champions(graded(*grades_of("m", 11)), ["s1"])


def test_the_order_of_the_rows_does_not_matter() -> None:
    table = graded(*grades_of("m", 8, 8.1, 9, 9, 8.7), *grades_of("n", 7, 9, 8, 8, 8), *grades_of("m", 3, analyst="two"))
    pd.testing.assert_frame_equal(rank_champions(table.iloc[::-1], ["s1"]), rank_champions(table, ["s1"]), check_exact=True)
