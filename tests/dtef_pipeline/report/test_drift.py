"""The report's section on drift: the sentences on each model, and its timeline."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pytest

from dtef_pipeline.drift.models import model_drift
from dtef_pipeline.drift.verdict_text import odds
from dtef_pipeline.report.drift import drift
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.scores import scores_table
from tests.made.snapshots import nights

FELL = nights([*[0.8] * 6, *[0.6] * 6])
STAYED = nights([0.8] * 12, model="steady")


def shown(rows: list[dict[str, Any]]) -> str:
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(rows))
        return drift(model_drift(connection, SUBJECT), SUBJECT, "")


def test_drift_comes_first_and_says_what_changed_since_when() -> None:
    markup = shown([*STAYED, *FELL])
    assert "Drift in 1 of 2 series. Largest: m, context 0, down by 0.2000 since 2026-01-07." in markup
    names = re.findall(r'<th scope="row" class="text">(.*?)</th>', markup)
    assert names == ["m", "steady"]
    assert "answers since 2026-01-07: parsed answers score 0.8000, then parsed answers score 0.6000 (-0.2000)" in markup
    assert "Rule: 0.6000 in 2026-01-07, 0.8000 in 2026-01-01." in markup
    # All ten moved alike: which of them stands first is decided by the last bit.
    assert re.search(r"Questions that moved most: S1/q\d -0\.2000", markup)


@pytest.mark.parametrize("rows", [[], nights([0.8, 0.8], model="baseline/uniform"), nights([0.8])])
def test_nothing_to_compare_is_a_section_all_the_same(rows: list[dict[str, Any]]) -> None:
    markup = shown(rows)
    assert "No model was asked." in markup or "No series has two snapshots." in markup


def test_names_are_text_not_markup() -> None:
    markup = shown(nights([*[0.8] * 6, *[0.6] * 6], model="<script>"))
    assert "<script>" not in markup
    assert "&lt;script&gt;" in markup


@pytest.mark.parametrize(
    ("log10_e", "words"),
    [(None, "-"), (0.0, "1 to 1"), (-0.5, "0.32 to 1"), (2.0, "100 to 1"), (3.08, "1,200 to 1"), (14.1, "10^14 to 1")],
)
def test_odds_are_plain_numbers_until_they_are_huge(log10_e: float | None, words: str) -> None:
    assert odds(log10_e) == words
