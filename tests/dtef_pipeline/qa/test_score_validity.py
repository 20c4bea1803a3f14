"""Whether scores mean what they say: each check on a world where it is known what it should find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from dtef_pipeline.qa.suites import QA_VALIDITY_CHECKS, qa_validity
from dtef_pipeline.statistics.proportions import compute_wilson_interval
from tests.made.qa_scores import connected, score_row

Row = Mapping[str, Any]


def of_orders(lead: float, n: int = 200, orders: int = 4) -> list[dict[str, Any]]:
    """A model that is right more often by `lead` where the options stand in the first order."""
    rng = np.random.default_rng(2)
    hard = rng.uniform(0.2, 0.7, n)
    ways = ["letters", *(f"letters,rotated-{order}" for order in range(1, orders))]
    return [
        score_row(float(rng.random() < hard[item] + lead * (order == 0)), item_id=f"i{item}", condition=way)
        for order, way in enumerate(ways)
        for item in range(n)
    ]


def response_of(at: int) -> dict[str, Any]:
    """The columns that name the response to item `at`."""
    keys = ("suite", "part", "item_id", "condition", "model", "model_variant", "draw", "snapshot", "temperature")
    row = score_row(item_id=f"i{at}")
    return {name: row[name] for name in keys}


def judged(
    texts: Sequence[str], scores: Sequence[float | None], evaluator: str = "semantic", **given: Any
) -> list[dict[str, Any]]:
    return [
        {
            **response_of(at),
            "evaluator": evaluator,
            "judge_model": "j",
            "judge_variant": "j[t=0]",
            "score": score,
            "reason": None if score is not None else "unreadable",
            "self_judged": False,
            **given,
        }
        for at, score in enumerate(scores[: len(texts)])
    ]


def asked(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{**response_of(at), "response": text, "call_status": "answered"} for at, text in enumerate(texts)]


def found(scores: Sequence[Row], responses: Sequence[Row] = (), judgements: Sequence[Row] = ()) -> dict[str, dict[str, Any]]:
    rows = qa_validity(connected(scores, responses, judgements)).to_pylist()
    assert len({row["check"] for row in rows}) == len(rows)
    return {row["check"]: row for row in rows}


def test_a_model_that_likes_one_order_is_warned_of() -> None:
    row = found(of_orders(0.25))["position_bias"]
    assert row["is_suspect"]
    assert row["condition"] == "letters"
    assert row["value"] == pytest.approx(0.25, abs=0.1)
    assert 0.05 < row["low"] < row["value"] < row["high"]


def test_orders_that_do_not_matter_are_no_bias() -> None:
    row = found(of_orders(0.0))["position_bias"]
    assert not row["is_suspect"]
    assert row["value"] < 0.12
    assert row["low"] < 0.1


def test_the_range_of_orders_by_hand_and_on_items_of_every_order_alone() -> None:
    right = {"": (1, 1, 1, 0, 1, 1), ",rotated-1": (1, 0, 0, 0, 1, 1), ",rotated-2": (1, 1, 0, 0, 1, 1)}
    rows = [
        score_row(float(one), item_id=f"i{at}", condition=f"letters{order}")
        for order, values in right.items()
        for at, one in enumerate(values)
    ]
    row = found([*rows, score_row(0.0, item_id="only")])["position_bias"]
    assert (row["value"], row["n"]) == (pytest.approx(5 / 6 - 3 / 6), 6)


def test_one_order_has_no_row_and_few_items_have_a_note() -> None:
    assert "position_bias" not in found(of_orders(0.0, orders=1))
    row = found(of_orders(0.0, n=4))["position_bias"]
    assert (row["value"], row["note"]) == (None, "no range: 4 items, at least 5 are needed")


def test_an_arbiter_that_finds_wrong_numbers_right_is_warned_of() -> None:
    numeric = [score_row(float(at % 2), item_id=f"i{at}", scorer="numeric", metric="numeric") for at in range(40)]
    said = [0.9 if at % 2 or at < 6 else 0.1 for at in range(40)]
    row = found(numeric, asked(["x"] * 40), judged(["x"] * 40, said, "factuality"))["judge_against_numeric"]
    low, high = compute_wilson_interval(3, 40)
    assert (row["value"], row["low"], row["high"], row["n"], row["is_suspect"]) == (
        pytest.approx(3 / 40),
        pytest.approx(float(low)),
        pytest.approx(float(high)),
        40,
        True,
    )


def test_an_arbiter_that_agrees_is_not() -> None:
    numeric = [score_row(float(at % 2), item_id=f"i{at}", scorer="numeric", metric="numeric") for at in range(40)]
    row = found(numeric, asked(["x"] * 40), judged(["x"] * 40, [0.5 if at % 2 else 0.49 for at in range(40)], "factuality"))
    assert (row["judge_against_numeric"]["value"], row["judge_against_numeric"]["is_suspect"]) == (0, False)


def test_failed_judgements_are_a_share_of_those_that_were_wanted() -> None:
    scores = [None if at < 2 else 0.5 for at in range(20)]
    rows = judged(["x"] * 20, scores) + [
        {**row, "item_id": f"more{at}", "score": None, "reason": "skipped_sample"}
        for at, row in enumerate(judged(["x"] * 9, [0.5] * 9))
    ]
    row = found([score_row(0.5)], [], rows)["judge_failures"]
    assert (row["value"], row["n"], row["is_suspect"]) == (0.1, 20, True)


def test_a_judge_of_the_same_maker_is_warned_of() -> None:
    rows = judged(["x"] * 4, [0.5] * 4, self_judged=True)
    row = found([score_row(0.5)], [], rows)["self_judged"]
    assert (row["value"], row["n"], row["is_suspect"]) == (1, 4, True)
    assert not found([score_row(0.5)], [], judged(["x"] * 4, [0.5] * 4))["self_judged"]["is_suspect"]


def test_longer_answers_that_score_more_are_warned_of() -> None:
    rng = np.random.default_rng(3)
    texts = ["x" * int(n) for n in rng.integers(1, 400, 60)]
    scores = [float(np.clip(len(text) / 400 + rng.normal(0, 0.2), 0, 1)) for text in texts]
    row = found([score_row(0.5)], asked(texts), judged(texts, scores))["length_and_semantic"]
    assert row["value"] == pytest.approx(spearmanr([len(text) for text in texts], scores).statistic)
    assert row["low"] < row["value"] < row["high"] <= 1
    assert row["is_suspect"]


def test_scores_that_are_all_alike_have_no_correlation_and_say_so() -> None:
    texts = ["x" * at for at in range(1, 9)]
    row = found([score_row(0.5)], asked(texts), judged(texts, [0.5] * 8))["length_and_semantic"]
    assert row["value"] is None
    assert row["note"].startswith("no correlation: ")


def test_earlier_snapshots_are_not_looked_at() -> None:
    old = {"snapshot": "2020-01-01"}
    scores = [score_row(0.5, item_id=f"i{at}") for at in range(4)] + [score_row(0.5, answered_at=None, **old)]
    assert found(scores, [], judged(["x"] * 4, [0.5] * 4) + judged(["x"] * 2, [None] * 2, **old))["judge_failures"]["n"] == 4


def test_scores_alone_make_a_table_and_every_check_has_a_name() -> None:
    assert len(qa_validity(connected([score_row(0.5)]))) == 0
    assert len(set(QA_VALIDITY_CHECKS)) == 5
