"""What the terminal says of families and of readable responses alone."""

from __future__ import annotations

import pandas as pd
import pytest

from dtef_pipeline.boards.comparisons import comparisons
from dtef_pipeline.cli import board_table
from dtef_pipeline.report.fitting import Fit
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from tests.dtef_pipeline.boards.test_families import TESTS, panel, unread


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setattr(board_table, "terminal_fit", lambda kept=(), first_out=(), how="": Fit(80, kept, first_out))


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    return comparisons(frame, TESTS).sort_values("family", kind="stable")


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_what_confirms_stands_first_under_a_heading_that_says_so() -> None:
    table = compared(panel("a", "b", LEAVE_ONE_OUT))
    blocks = board_table.render_view("comparisons", table).split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [
        "context 0; asked as c; confirmatory",
        "context 0; asked as c; exploratory",
    ]
    assert max(map(len, board_table.render_view("comparisons", table).splitlines())) <= 80
    said = in_one_line(board_table.lines_of_view("comparisons", table))
    assert "confirmatory (a language model against the leave-one-out marginal, asked as usual with the most context" in said
    assert "nothing is confirmatory" not in said


def test_where_nothing_confirms_it_says_why() -> None:
    def why(*names: str) -> str:
        said = in_one_line(board_table.lines_of_view("comparisons", compared(panel(*names))))
        return said.partition("here nothing is confirmatory: ")[2]

    assert why("a", "b").startswith(f"{LEAVE_ONE_OUT} is not among the models compared")
    assert why("baseline/uniform", LEAVE_ONE_OUT).startswith(f"no language model was compared with {LEAVE_ONE_OUT}")


def test_what_readable_responses_alone_say_otherwise_is_told_for_the_first_rows() -> None:
    often = unread(panel("often-unread", *"abcdefg", questions=60), "often-unread", slice(None, None, 5))
    said = in_one_line(board_table.lines_of_view("comparisons", compared(often)))
    assert said.startswith("by readable responses alone: a against often-unread: better by the published policy")
    assert said.count("no difference is found") == 5
    assert "2 more rows: --format csv has them all, as parsed_note" in said
    assert "readable responses alone:" not in board_table.lines_of_view("comparisons", compared(panel("a", "b")))
