"""Tables show their most important columns, name the others, and fit the terminal."""

from __future__ import annotations

import pandas as pd
import pytest

from dtef_pipeline.report.terminal import Fit, choose_shown_columns, render

QUESTION = "Do you think the increased use of AI across society is likely to make the cost of living better or worse?"
BOARD = pd.DataFrame(
    {
        "question_id": ["015a07c1-b996-4bde-b412-e79c314cf761", "915a97c1-b996-4bde-b412-e79c314cf761"],
        "model": ["baseline/leave-one-out-marginal", "b"],
        "condition": ["distribution/attribute-label+cot", "shift/narrative"],
        "context_level": ["0", "0"],
        "adjusted_score": [0.5, 0.6],
        "n_pairs": [696, 12],
        "question": [QUESTION, "Short?"],
    }
)
KEPT, FIRST_OUT = ("question_id", "model"), ("context_level", "adjusted_score")


def test_columns_are_hidden_in_the_order_asked_for_and_then_from_the_last_one_on() -> None:
    names = list(BOARD)
    assert choose_shown_columns(names, Fit(kept=KEPT, first_out=FIRST_OUT, most=5)) == [
        "question_id",
        "model",
        "condition",
        "n_pairs",
        "question",
    ]
    assert choose_shown_columns(names, Fit(kept=KEPT, first_out=FIRST_OUT, most=3)) == ["question_id", "model", "condition"]
    assert choose_shown_columns(names, Fit(kept=KEPT, most=1)) == [*KEPT]
    assert choose_shown_columns(names, Fit()) == names


def test_what_is_hidden_is_named_with_what_all_rows_have() -> None:
    *_, last = render(BOARD, "table", fit=Fit(None, KEPT, FIRST_OUT, most=5)).splitlines()
    assert "context level (0 in all rows), adjusted score;" in last
    assert "--wide" in last
    assert "not shown" not in render(BOARD, "table")


@pytest.mark.parametrize("width", [200, 130, 80])
def test_a_table_is_no_wider_than_the_terminal_and_loses_no_letter(width: int) -> None:
    lines = render(BOARD, "table", fit=Fit(width)).splitlines()
    assert max(map(len, lines)) <= width
    assert letters("\n".join(lines)) == letters(render(BOARD, "table"))


def letters(text: str) -> list[str]:
    return sorted(char for char in text if char.isalnum())
