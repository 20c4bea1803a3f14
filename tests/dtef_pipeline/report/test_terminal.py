"""Tables for the terminal and for other programs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.report.terminal import intervals_of, render
from tests.strict_json import strict

FRAME = pd.DataFrame(
    {
        "rank": pd.array([1, None], dtype="Int32"),
        "model": ["a/model", "b"],
        "score": [0.123456789012345, np.nan],
        "vs_marginal": [0.01, -0.25],
        "n_pairs": [12345, 0],
        "parse_rate": [1.0, np.nan],
        "flagged": [True, False],
    }
)


def test_json_has_every_column_at_full_precision_and_null_for_unknown() -> None:
    first, second = strict(render(FRAME, "json", columns=["model"]))
    assert first == {
        "rank": 1,
        "model": "a/model",
        "score": 0.123456789012345,
        "vs_marginal": 0.01,
        "n_pairs": 12345,
        "parse_rate": 1.0,
        "flagged": True,
    }
    assert (second["rank"], second["score"], second["parse_rate"]) == (None, None, None)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, None, pd.NaT, pd.NA])
def test_json_is_strict_whatever_the_value(value: object) -> None:
    assert strict(render(pd.DataFrame({"x": pd.Series([value], dtype=object)}), "json")) == [{"x": None}]


def test_json_holds_lists_structs_and_times() -> None:
    frame = pd.DataFrame(
        {
            "list": pd.Series([np.array([0.5, np.nan])], dtype=object),
            "struct": [{"score": np.float64(0.5), "n": np.int64(3)}],
            "time": [pd.Timestamp("2026-01-02T03:04:05", tz="UTC")],
        }
    )
    assert strict(render(frame, "json")) == [
        {"list": [0.5, None], "struct": {"score": 0.5, "n": 3}, "time": "2026-01-02 03:04:05+00:00"}
    ]


def test_csv_has_every_column_and_empty_for_unknown() -> None:
    lines = render(FRAME, "csv", columns=["model"]).splitlines()
    assert lines[0] == "rank,model,score,vs_marginal,n_pairs,parse_rate,flagged"
    assert lines[2] == ",b,,-0.25,0,,False"


def test_a_table_rounds_and_shows_only_the_columns_named() -> None:
    text = render(FRAME, "table", columns=["rank", "model", "score", "vs_marginal", "n_pairs", "parse_rate"])
    header, _, first, second = text.splitlines()
    assert header.split() == ["rank", "model", "score", "vs", "marginal", "n", "pairs", "parse", "rate"]
    assert first.split() == ["1", "a/model", "0.1235", "+0.0100", "12,345", "100.0%"]
    assert second.split() == ["-", "b", "-", "-0.2500", "0", "-"]


def test_an_interval_has_the_digits_of_its_estimate_and_may_be_without_an_upper_end() -> None:
    frame = pd.DataFrame(
        {
            "worth": [24.1, 8000.0, 5.0],
            "worth_low": [19.7, 5000.0, np.nan],
            "worth_high": [35.4, np.inf, np.nan],
            "vs_marginal": [0.02, -0.15, 0.1],
            "vs_marginal_low": [-0.01, -0.19, np.nan],
            "vs_marginal_high": [0.05, -0.11, np.nan],
        }
    )
    assert intervals_of(frame, "worth", ("worth_low", "worth_high")) == ["19.7 to 35.4", "5,000 to ∞", ""]
    lead = intervals_of(frame, "vs_marginal", ("vs_marginal_low", "vs_marginal_high"))
    assert lead == ["-0.010 to +0.050", "-0.190 to -0.110", ""]


def test_text_that_looks_like_markup_is_shown_as_it_is() -> None:
    assert "[red]x[/red]" in render(pd.DataFrame({"model": ["[red]x[/red]"]}), "table")


@pytest.mark.parametrize(("output", "expected"), [("json", "[]"), ("csv", "model,score")])
def test_no_rows_are_an_empty_answer(output: str, expected: str) -> None:
    assert render(pd.DataFrame({"model": [], "score": []}), output) == expected
