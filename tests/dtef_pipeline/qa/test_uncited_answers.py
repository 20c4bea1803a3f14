"""Answers that cite nothing, on the boards of quotations."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.qa.suites import build_qa_boards
from tests.made.qa_scores import connected, score_row


def test_an_answer_that_cites_nothing_is_no_failure_and_counted_by_itself() -> None:
    def quoted(metric: str, n_cited: int, n_failed: int = 0, **given: Any) -> list[dict[str, Any]]:
        nothing = {"status": "missing", "reason": "the response cites nothing"}
        kinds = [{"score": 0.5 + at / 100} for at in range(n_cited)] + [{"status": "error"}] * n_failed
        kinds += [nothing] * (12 - len(kinds))
        return [score_row(item_id=f"i{at}", metric=metric, **{**given, **kind}) for at, kind in enumerate(kinds)]

    rows = [
        *quoted("existence", 10, model="few"),
        *quoted("existence", 8, 2, model="fails"),
        *quoted("existence", 11, model="most"),
        *quoted("existence", 0, model="none"),
        *quoted("score", 11, 1, model="few"),
    ]
    found = {
        (row["metric"], row["model"]): row
        for row in build_qa_boards(connected(rows))["qa_board"].to_pylist()
        if row["cut"] == "overall"
    }
    told = {key: (row["n_uncited"], row["n_failed"], row["rank"]) for key, row in found.items()}
    assert told == {
        ("existence", "few"): (2, 0, None),
        ("existence", "fails"): (2, 2, None),
        ("existence", "most"): (1, 0, 1),
        ("existence", "none"): (12, 0, None),
        ("score", "few"): (None, 1, 1),
    }
    notes = {model: row["note"] for (metric, model), row in found.items() if metric == "existence"}
    assert "10 of 12 items" in notes["few"]
    assert "8 of 12 items, 2 answers" in notes["fails"]
    assert notes["most"] == ""
    assert notes["none"].startswith("no answer")
