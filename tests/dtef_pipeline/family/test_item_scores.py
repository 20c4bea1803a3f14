"""Boards of items of a family that the engine assembles: means by hand, items and clusters over partitions, and the latest snapshot of each."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import fmean
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.family.item_scores import BY_PART, OVERALL, compute_item_boards
from tests.made.spelling_family import SCORES, SPELLING

Row = dict[str, Any]


def row(model: str, item: int, score: float | None, **given: Any) -> Row:
    usual = {
        "language": "en",
        "list": "common",
        "snapshot": "base",
        "item_id": str(item),
        "cluster": "",
        "prompt_id": f"p{item}",
        "truth_id": f"t{item}",
        "model": model,
        "model_variant": f"{model}[temperature=0]",
        "temperature": 0.0,
        "draw": 0,
        "metric": "correct",
        "status": "error" if score is None else "ok",
        "score": score,
        "answered_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return {**usual, **given}


def boards(rows: list[Row]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The board and the comparisons."""
    schema = SPELLING.all_tables[SPELLING.board].schema
    assert schema is not None
    with duckdb.connect() as connection:
        connection.register("spelling_scores", pa.Table.from_pylist(rows, SCORES))
        made = compute_item_boards(connection, "spelling", "spelling_scores", SPELLING.space, SPELLING.scores, schema)
    return made[SPELLING.board].to_pandas(), made["comparisons"].to_pandas()


def of_cut(board: pd.DataFrame, cut: str) -> list[Row]:
    return [dict(one) for _, one in board[board["cut"] == cut].iterrows()]


def test_a_mean_is_over_items_and_draws_of_an_item_count_once() -> None:
    rows = [row("m", item, float(item % 2)) for item in range(6)]
    rows += [row("m", 0, 1.0, draw=draw) for draw in (1, 2)]
    (found,) = of_cut(boards(rows)[0], OVERALL)
    assert found["score"] == pytest.approx(fmean([2 / 3, 1, 0, 1, 0, 1]))
    assert (found["n_items"], found["n_clusters"], found["n_total"], found["n_parts"]) == (6, 6, 8, 1)


def test_items_of_one_number_in_two_lists_are_two_and_a_topic_of_two_lists_is_one_cluster() -> None:
    rows = [row("m", item, 1.0, list=name, cluster=topic) for name in ("a", "b") for item, topic in enumerate(["", "", "x"])]
    board, _ = boards(rows)
    (found,) = of_cut(board, OVERALL)
    assert (found["n_items"], found["n_clusters"], found["n_parts"]) == (6, 5, 2)
    assert [(one["list"], one["n_items"]) for one in of_cut(board, BY_PART)] == [("a", 3), ("b", 3)]


def test_of_each_list_the_latest_snapshot_counts_that_scored_half_of_the_items() -> None:
    whole = [row("m", item, 0.0, snapshot="2026-01-01") for item in range(4)]
    later = [row("m", item, 1.0, snapshot="2026-01-02") for item in range(4)]
    stopped = [row("m", 0, 0.5, snapshot="2026-01-03")]
    (found,) = of_cut(boards([*whole, *later, *stopped])[0], OVERALL)
    assert (found["score"], list(found["snapshots"])) == (1.0, ["2026-01-02"])


def test_a_model_without_nine_tenths_of_the_items_has_no_rank_and_a_failed_call_is_in_no_mean() -> None:
    rows = [row("whole", item, 0.5) for item in range(10)] + [row("part", item, 1.0) for item in range(8)]
    rows += [row("part", item, None) for item in (8, 9)]
    by_model = {one["model"]: one for one in of_cut(boards(rows)[0], OVERALL)}
    assert by_model["whole"]["rank"] == 1
    part = by_model["part"]
    assert (part["score"], part["n_failed"], part["coverage"]) == (1.0, 2, pytest.approx(0.8))
    assert pd.isna(part["rank"])
    assert part["note"] == "not ranked: it has scores for 8 of 10 items, at least 9 of 10 are needed"


def test_two_models_are_compared_on_the_items_that_both_have() -> None:
    rows = [row("good", item, 1.0) for item in range(12)] + [row("bad", item, float(item < 3)) for item in range(10)]
    _, compared = boards(rows)
    (found,) = compared.to_dict("records")
    assert (found["family"], found["model"], found["other_model"], found["n_items"]) == ("spelling", "good", "bad", 10)
    assert found["difference"] == pytest.approx(1 - 3 / 10)


def test_without_a_score_boards_are_empty() -> None:
    board, compared = boards([row("m", 1, None)])
    (found,) = of_cut(board, OVERALL)
    assert pd.isna(found["score"])
    assert not len(compared)
