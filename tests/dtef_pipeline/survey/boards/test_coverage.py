"""Published intervals hold the truth of surveys with batteries, whose people answer every question. In full: `benchmarks/coverage.py`."""

from __future__ import annotations

import pytest

from benchmarks.coverage import Regime, covered, shown, truths
from tests.made.worlds import Design

SETS = 16
MARGINAL = "baseline/population-marginal score"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("regime", "numbers"),
    [
        # With question texts as clusters: .63 on average.
        pytest.param(Regime(Design((6,) * 7, countries=(15,) * 6, ages=2)), ("m0 score", "m0 - m1", MARGINAL), id="batteries"),
        # With independent people: .66.
        pytest.param(
            Regime(Design((1,) * 100, countries=(15, 20, 30, 60), ages=2)), ("good - population", MARGINAL), id="people"
        ),
        pytest.param(
            Regime(Design((6, 4, 3, *(1,) * 7), countries=(15,) * 10), sample_segments=2), ("m0 score", "m0 - m1"), id="sample"
        ),
    ],
)
def test_intervals_hold_the_truth_of_surveys_with_batteries_whose_people_answer_all_questions(
    regime: Regime, numbers: tuple[str, ...]
) -> None:
    """Of .95 a mean share below .84 would be chance once in some hundred times; the seeds are given."""
    made = [{"set": "truth", "numbers": truths(regime, 150)}]
    table = covered([*made, *({"set": at, "numbers": shown(regime, at)} for at in range(SETS))])
    assert table.loc[list(numbers), "covered"].mean() >= 0.84, table.to_string()
    assert table.loc[list(numbers), "shown"].min() == 1
