"""Tables fit the terminal: no word is cut, and what there is no room for is named."""

from __future__ import annotations

import pandas as pd
import pytest

from dtef_pipeline.report.fitting import Fit
from dtef_pipeline.report.terminal import columns_that_fit, render

QUESTION_ID = "015a07c1-b996-4bde-b412-e79c314cf761"
QUESTION = "Do you think the increased use of AI across society is likely to make the cost of living better or worse?"
BOARD = pd.DataFrame(
    {
        "question_id": [QUESTION_ID, QUESTION_ID.replace("0", "9")],
        "model": ["baseline/leave-one-out-marginal", "b"],
        "condition": ["distribution/attribute-label+cot", "shift/narrative"],
        "context_level": ["0", "0"],
        "adjusted_score": [0.5, 0.6],
        "n_pairs": [696, 12],
        "question": [QUESTION, "Short?"],
    }
)
KEPT = ("question_id", "model", "condition")
FIRST_OUT = ("context_level", "adjusted_score")


def drawn(width: int | None) -> list[str]:
    return render(BOARD, "table", fit=Fit(width, KEPT, FIRST_OUT)).splitlines()


@pytest.mark.parametrize("width", [None, 200, 160, 130, 110])
def test_identifiers_are_whole_at_any_width(width: int | None) -> None:
    """Beyond 240 columns, question ids and conditions were cut, so that rows could not be told apart."""
    text = "\n".join(drawn(width))
    for name in KEPT:
        assert all(value in text for value in BOARD[name])


def test_names_go_over_several_lines_where_even_what_the_table_is_about_has_no_room() -> None:
    """A table that was wider than the terminal wrapped in every row, so that no column could be followed."""
    assert [line.split() for line in drawn(60)[3:7]] == [
        ["015a07c1-b996-", "baseline/leave-", "distribution/"],
        ["4bde-b412-", "one-out-marginal", "attribute-label+cot"],
        ["e79c314cf761"],
        ["915a97c1-b996-", "b", "shift/narrative"],
    ]


@pytest.mark.parametrize("width", [200, 160, 130, 80, 60])
def test_a_table_is_no_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, drawn(width))) <= width


def test_columns_go_in_the_order_asked_for_and_are_named_with_what_all_rows_have() -> None:
    lines = drawn(115)
    assert "adjusted" not in " ".join(lines[:-2])
    assert " ".join(lines[-2:]) == (
        "left out, as the terminal is 115 columns wide: context level (always 0), adjusted score, question; "
        "--wide shows them, --format csv has every column"
    )
    assert columns_that_fit(BOARD, list(BOARD), None, Fit(115, KEPT, FIRST_OUT)) == [*KEPT, "n_pairs"]


def test_prose_goes_over_several_lines_and_is_whole() -> None:
    lines = drawn(160)
    assert not lines[-1].startswith("left out")
    words = " ".join(line[-30:] for line in lines)
    assert all(word in words for word in QUESTION.split())


def test_where_there_is_no_terminal_nothing_is_left_out() -> None:
    header, *_ = drawn(None)
    assert header.split() == [
        "question",
        "id",
        "model",
        "condition",
        "context",
        "level",
        "adjusted",
        "score",
        "n",
        "pairs",
        "question",
    ]
