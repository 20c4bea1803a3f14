"""What the terminal says of families and of readable responses alone."""

from __future__ import annotations

import pandas as pd
import pytest

from dtef_pipeline.boards.comparisons import compare_all_pairs
from dtef_pipeline.boards.families import COMPARED_FAMILIES
from dtef_pipeline.cli.survey import boards
from dtef_pipeline.report.terminal import MAX_COLUMNS, Fit
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from tests.dtef_pipeline.boards.test_comparisons import OPTIONS, panel, unread


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setattr(
        boards, "compute_terminal_fit", lambda kept=(), first_out=(), how="": Fit(80, kept, first_out, max_columns=MAX_COLUMNS)
    )


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    return compare_all_pairs(frame, OPTIONS).sort_values(
        "adjusted_over", key=lambda names: names.map(COMPARED_FAMILIES.index), kind="stable"
    )


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_what_readable_responses_alone_say_otherwise_is_reported_for_the_first_rows() -> None:
    often = unread(panel("often-unread", *"abcdefg", questions=60), "often-unread", slice(None, None, 5))
    said = in_one_line(boards.describe_board_columns("comparisons", compared(often)))
    assert said.startswith("by only the readable responses: a against often-unread: better by the published policy")
    assert said.count("no difference is found") == 5
    assert "2 more rows: --csv has them all, as parsed_note" in said
    assert "readable responses:" not in boards.describe_board_columns("comparisons", compared(panel("a", "b")))


def test_gaps_show_deviation_interval_and_verdict_and_say_notes_that_have_no_room() -> None:
    """The number that matters was left out at 80 columns, and so was why a row has no p."""
    known = {"condition": "c", "context_level": "5", "score": 0.6, "expected": 0.65, "deviation": -0.05, "n_pairs": 9, "n": 88}
    known |= {
        "low": -0.08,
        "high": -0.02,
        "p": 0.005,
        "p_adjusted": 0.01,
        "verdict": "worse",
        "parsed_verdict": "worse",
        "note": "",
    }
    rows = [{**known, "attribute": "gender", "segment": "gender:non-binary", "model": name} for name in (LEAVE_ONE_OUT, "b")]
    rows[1] |= {"low": None, "high": None, "p_adjusted": None, "verdict": "not tested", "note": "not tested: a reason"}
    table = pd.DataFrame(rows).assign(model_variant=[LEAVE_ONE_OUT, "b"])
    drawn = in_one_line(boards.render_board("gaps", table))
    for shown in ("-0.050", "-0.080 to -0.020", "0.010 worse"):
        assert shown in drawn
    assert "notes: b, gender: not tested: a reason" in in_one_line(boards.describe_board_columns("gaps", table))
