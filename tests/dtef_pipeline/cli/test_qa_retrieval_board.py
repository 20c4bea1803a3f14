"""`dtef qa board --by retrieval`: means of how well chunks were found, against sums by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dtef_pipeline.qa.suites import compute_retrieval_means
from dtef_pipeline.qa.tables import QA_RETRIEVAL
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.strict_json import strict

FOUND = {
    "bm25,10-chunks": [(0.1, 1.0, 1.0, 1.0, 1.0), (0.1, 0.5, 1.0, 0.25, 0.4), (0.0, 0.0, 0.0, 0.0, 0.0)],
    "hybrid,10-chunks": [(0.2, 1.0, 1.0, 0.5, 0.6)],
}
"""Precision, recall, hit, MRR and nDCG of each item."""


def found(part: str) -> pa.Table:
    scores = ("precision", "recall", "hit", "mrr", "ndcg")
    rows = [
        {
            "suite": "socioscope",
            "part": part,
            "item_id": str(at),
            "condition": how,
            "k": 10,
            **dict(zip(scores, one, strict=True)),
        }
        for how, items in FOUND.items()
        for at, one in enumerate(items)
    ]
    return pa.Table.from_pylist(rows, schema=QA_RETRIEVAL)


def test_means_are_per_part_and_condition() -> None:
    frame = compute_retrieval_means(pa.concat_tables([found("a"), found("b")]).to_pandas())
    assert list(zip(frame["part"], frame["condition"], frame["n_items"], strict=True)) == [
        (part, how, len(items)) for part in "ab" for how, items in FOUND.items()
    ]
    first = frame.iloc[0]
    for at, name in enumerate(("precision", "recall", "hit", "mrr", "ndcg")):
        assert first[name] == pytest.approx(sum(one[at] for one in FOUND["bm25,10-chunks"]) / 3)


def test_the_board_shows_them_without_a_roll_up(state: Path) -> None:
    (state / "warehouse").mkdir()
    assert "nothing to show by retrieval: it needs items about documents" in refused("qa", "board", "--by", "retrieval")
    Warehouse(state / "warehouse").write("qa_retrieval", found("talks"), suite="socioscope", part="talks")
    rows = strict(ok("qa", "board", "--by", "retrieval", "--json"))
    assert [(row["part"], row["condition"], row["n_items"]) for row in rows] == [
        ("talks", "bm25,10-chunks", 3),
        ("talks", "hybrid,10-chunks", 1),
    ]
    assert rows[0]["recall"] == pytest.approx(0.5)
    shown = ok("qa", "board", "--by", "retrieval", "--suite", "socio*")
    assert "0.5000" in shown
    assert "Items with quotes" in ok("explain", "qa/retrieval")
