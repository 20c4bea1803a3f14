"""Consensus: the mean of the judges that answered, by hand, against a plain definition, and in any order of rows."""

from __future__ import annotations

import random
from collections import defaultdict
from statistics import fmean
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.judging.consensus import CONSENSUS_COLUMNS, compute_consensus

KEYS = ("prompt", "path", "position")
SCHEMA = pa.schema(
    {
        "prompt": pa.string(),
        "path": pa.int32(),
        "position": pa.int32(),
        "judge": pa.string(),
        "draw": pa.int32(),
        "score": pa.float64(),
        "reason": pa.string(),
        "inverted": pa.bool_(),
    }
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    plain = {"prompt": "p", "path": None, "position": 0, "draw": 0, "inverted": False, "reason": None}
    return pa.Table.from_pylist([{**plain, **row} for row in rows], schema=SCHEMA)


def point(*scores: float | None, inverted: bool = False, reason: str = "unreadable") -> dict[str, Any]:
    """The consensus of judges of whom each said one thing."""
    rows = [
        {"judge": f"j{at}", "score": score, "reason": None if score is not None else reason, "inverted": inverted}
        for at, score in enumerate(scores)
    ]
    (row,) = compute_consensus(table(rows), KEYS).to_pylist()
    return row


@pytest.mark.parametrize(
    ("scores", "inverted", "score"),
    [
        ((1, 0.75, 0.5), False, 0.75),
        ((0, 0.25, 0.25), False, 0.1666667),
        ((0, 0.25, 0.25), True, 0.8333333),
        ((1, 1, 0.75), True, 0.0833333),
        ((1, None, 0.5), False, 0.75),
        ((1, None, 0.5), True, 0.25),
    ],
)
def test_values_by_hand(scores: tuple[float | None, ...], inverted: bool, score: float) -> None:
    row = point(*scores, inverted=inverted)
    assert row["score"] == pytest.approx(score, abs=1e-6)
    assert row["partial"] == (None in scores)
    assert (row["n_judges"], row["n_answered"]) == (3, 3 - scores.count(None))
    assert (row["inverted"], row["reason"]) == (inverted, None)


def test_several_reasons_are_all_named() -> None:
    rows = [{"judge": judge, "score": None, "reason": why} for judge, why in (("a", "error"), ("b", "cut"), ("c", "error"))]
    assert compute_consensus(table(rows), KEYS)["reason"].to_pylist() == ["cut, error"]


def test_a_missing_draw_is_a_part_of_the_vote_of_a_judge_that_answered() -> None:
    """The example of docs/explanation/judges.md."""
    said = {"a": [1.0, 1.0], "b": [0.5, None]}
    rows = [{"judge": judge, "draw": at, "score": score} for judge, scores in said.items() for at, score in enumerate(scores)]
    (row,) = compute_consensus(table(rows), KEYS).to_pylist()
    assert [row[name] for name in ("score", "low", "high")] == pytest.approx([0.75, 0.625, 0.875])
    assert (row["n_judges"], row["n_answered"], row["partial"]) == (2, 2, True)
    described = {column.name: column.metadata[b"description"].decode() for column in CONSENSUS_COLUMNS}
    assert [name for name, words in described.items() if "draw" in words] == ["low", "high", "n_answered", "partial"]


def test_null_keys_are_values_and_points_stand_in_the_order_of_their_first_row() -> None:
    rows = [
        {"path": path, "position": at, "judge": "a", "score": 1.0}
        for path, at in ((1, 0), (None, 0), (0, 0), (None, 1), (1, 0))
    ]
    found = compute_consensus(table(rows), KEYS)
    assert found.select(["path", "position"]).to_pylist() == [
        {"path": path, "position": at} for path, at in ((1, 0), (None, 0), (0, 0), (None, 1))
    ]
    assert found.column_names == [*KEYS, *(column.name for column in CONSENSUS_COLUMNS)]


def naive(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The definition, judge by judge."""
    points: dict[tuple[Any, ...], dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        points[row["prompt"], row["path"], row["position"]][row["judge"]].append(row)
    found = {}
    for key, judges in points.items():
        votes = [[row["score"] for row in said] for said in judges.values()]
        known = [fmean(s for s in said if s is not None) for said in votes if set(said) != {None}]
        mean = fmean(known) if known else None
        bounds = [fmean(fmean(missing if s is None else s for s in said) for said in votes) for missing in (0, 1)]
        if key[2] == 1:
            mean, bounds = None if mean is None else 1 - mean, [1 - bound for bound in bounds[::-1]]
        found[key] = {
            "score": mean,
            "low": bounds[0],
            "high": bounds[1],
            "n_judges": len(votes),
            "n_answered": len(known),
            "partial": bool(known) and any(None in said for said in votes),
        }
    return found


ROW = st.fixed_dictionaries(
    {
        "prompt": st.sampled_from(["p", "q"]),
        "path": st.sampled_from([None, 0]),
        "position": st.sampled_from([0, 1]),
        "judge": st.sampled_from(["a", "b", "c"]),
        "score": st.sampled_from([None, 0.0, 0.25, 0.5, 0.75, 1.0, 0.001]),
    }
)


@given(rows=st.lists(ROW, max_size=40))
def test_consensus_is_the_plain_definition(rows: list[dict[str, Any]]) -> None:
    rows = [{**row, "inverted": row["position"] == 1} for row in rows]
    expected = naive(rows)
    found = {tuple(row[name] for name in KEYS): row for row in compute_consensus(table(rows), KEYS).to_pylist()}
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        for name, value in values.items():
            assert found[key][name] == (pytest.approx(value) if isinstance(value, float) else value), (key, name)


@given(rows=st.lists(ROW, max_size=40), seed=st.integers(0, 99))
def test_rows_in_another_order_give_equal_bits(rows: list[dict[str, Any]], seed: int) -> None:
    turned = random.Random(seed).sample(rows, len(rows))
    in_order = [sorted(compute_consensus(table(given), KEYS).to_pylist(), key=str) for given in (rows, turned)]
    assert in_order[0] == in_order[1]
