"""Every two models of a board: hand values, a plain loop over shared items, and boards that are too small to tell."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from dtef_pipeline.boards.pairs import compare_boards
from dtef_pipeline.qa.scoring import load_latest_scores
from dtef_pipeline.qa.tables import OF_ONE_BOARD
from dtef_pipeline.statistics.cluster_robust import estimate_ratios
from dtef_pipeline.statistics.multiplicity import holm
from tests.made.qa_scores import connected, score_row

Row = Mapping[str, Any]


def compared(rows: Sequence[Row], **given: Any) -> list[dict[str, Any]]:
    frame = compare_boards(load_latest_scores(connected(rows)), OF_ONE_BOARD, **given)
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def lopsided(seed: int = 0) -> list[dict[str, Any]]:
    """Three models on transcripts of 1 to 9 items; each lacks some."""
    rng = random.Random(seed)
    return [
        score_row(round(rng.random() * level, 2), model=model, item_id=f"{cluster}/{item}", cluster=f"c{cluster}", draw=draw)
        for model, level in (("a", 1.0), ("b", 0.8), ("c", 0.5))
        for cluster in range(9)
        for item in range(cluster + 1)
        for draw in range(2)
        if rng.random() < 0.8
    ]


def test_differences_are_those_of_a_plain_loop_over_shared_items() -> None:
    rows = lopsided()
    items: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        items.setdefault((row["model"], row["item_id"]), []).append(row["score"])
    means = {key: fmean(values) for key, values in items.items()}
    found = {(row["model"], row["other_model"]): row for row in compared(rows)}
    assert len(found) == 3
    for left, right in combinations("abc", 2):
        shared = [item for model, item in means if model == left and (right, item) in means]
        difference = fmean(means[left, item] - means[right, item] for item in shared)
        row = found[(left, right) if difference > 0 else (right, left)]
        assert row["difference"] == pytest.approx(abs(difference))
        assert row["n_items"] == len(shared)
        assert row["n_clusters"] == len({item.split("/")[0] for item in shared})
        assert row["score"] - row["other_score"] == pytest.approx(row["difference"])
        assert row["low"] < row["difference"] < row["high"]


def test_p_is_that_of_the_mean_over_items_by_whole_transcripts() -> None:
    rows = lopsided()
    by_model = {name: {row["item_id"]: [] for row in rows} for name in "abc"}
    for row in rows:
        by_model[row["model"]][row["item_id"]].append(row["score"])
    for row in compared(rows):
        left, right = by_model[row["model"]], by_model[row["other_model"]]
        sums, counts = np.zeros((9, 1)), np.zeros((9, 1))
        for item in left:
            if left[item] and right[item]:
                sums[int(item.split("/")[0])] += fmean(left[item]) - fmean(right[item])
                counts[int(item.split("/")[0])] += 1
        expected = estimate_ratios(sums, counts)
        assert row["p"] == pytest.approx(expected.p()[0])
        assert row["low"] == pytest.approx(expected.interval()[0][0])


def test_p_is_adjusted_over_all_pairs_of_the_board_and_of_no_other() -> None:
    both = [*lopsided(), *({**row, "condition": "cot"} for row in lopsided(1))]
    found = compared(both)
    assert len(found) == 6
    for condition in ("letters", "cot"):
        own = [row for row in found if row["condition"] == condition]
        assert [row["p_adjusted"] for row in own] == pytest.approx(holm([row["p"] for row in own]))


def test_a_much_better_model_is_better_and_an_equal_one_equivalent() -> None:
    right = {"good": 1.0, "same": 1.0, "bad": 0.0}
    rows = [score_row(value, model=model, item_id=f"i{at}") for model, value in right.items() for at in range(30)]
    found = {(row["model"], row["other_model"]): row["verdict"] for row in compared(rows)}
    assert found == {("good", "bad"): "better", ("same", "bad"): "better", ("good", "same"): "equivalent"}


def test_few_transcripts_cannot_tell_models_apart_and_say_so() -> None:
    rows = [
        score_row(level, model=model, item_id=f"{cluster}/{item}", cluster=f"c{cluster}")
        for model, level in (("a", 1.0), ("b", 0.0))
        for cluster in range(4)
        for item in range(20)
    ]
    (row,) = compared(rows)
    assert (row["verdict"], row["n_clusters"]) == ("undecided", 80)
    assert row["note"] == "the interval covers only other items of these 4 clusters, so the verdict stays open"
    # Of clusters that differ in nothing the sign test decides: five give p = 2 / 2^5.
    more = [
        dict(row, item_id=f"{extra}/{row['item_id']}", cluster=f"c{extra}")
        for extra in (4, 5)
        for row in rows[:20] + rows[80:100]
    ]
    found = [compared([*rows, *given])[0] for given in (more[:40], more)]
    assert [(row["verdict"], row["n_clusters"]) for row in found] == [("undecided", 5), ("better", 6)]


def test_of_few_transcripts_the_interval_of_a_difference_is_that_of_items_by_themselves() -> None:
    rows = [row for row in lopsided() if row["cluster"] in ("c6", "c7", "c8")]
    ends = [(row["difference"], row["low"], row["high"]) for row in compared(rows)]
    alone = [(row["difference"], row["low"], row["high"]) for row in compared([{**row, "cluster": "one"} for row in rows])]
    assert np.array(ends) == pytest.approx(np.array(alone))
    assert np.isfinite(ends).all()


def test_models_without_a_shared_item_have_no_row() -> None:
    assert compared([score_row(1.0, model="a", item_id="1"), score_row(1.0, model="b", item_id="2")]) == []
    assert not len(compare_boards(load_latest_scores(connected([score_row(1.0)])), OF_ONE_BOARD))
