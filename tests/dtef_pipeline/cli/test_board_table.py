"""Rows of stored tables as they are shown to people."""

from __future__ import annotations

import pandas as pd
import pytest

from dtef_pipeline.cli.terminal import print_rows
from dtef_pipeline.qa.qa_boards import QA_BOARDS

QA_VIEW_BY_NAME = {view.name: view for view in QA_BOARDS}


def test_rows_without_a_note_stand_beside_rows_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    """`dtef qa board --by pass-at-k` ended in a fault where there were draws enough for some k alone: no note is not a note."""
    view = QA_VIEW_BY_NAME["pass-at-k"]
    rows = {"part": ["all", "all"], "model": ["mine", "mine"], "k": [1, 5], "pass_at_k": [0.5, None]}
    frame = pd.DataFrame({**rows, "note": pd.Series([None, "no item has 5 scored draws"], dtype="str")})
    print_rows(view, frame, "table", (), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "scored draws" in line] == ["all, mine: no item has 5 scored draws"]


def test_a_sentence_of_several_notes_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    view = QA_VIEW_BY_NAME["overall"]
    same = "no interval, no interval for the mean of groups: each cluster has the same score"
    notes = [same, f"{same}; not ranked: few", "", same]
    frame = pd.DataFrame({"suite": "talks", "model": list("abcd"), "score": 0.5, "note": notes})
    print_rows(view, frame, "table", (), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "same score" in line] == [f"talks, a; talks, b; talks, d: {same}"]
    assert "talks, b: not ranked: few" in lines
