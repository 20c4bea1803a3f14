"""Models ranked among models, and the verdict by the tested comparison with the leave-one-out marginal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.site.content import Estimate
from dtef_pipeline.site.family_content import FamilyContent
from dtef_pipeline.survey.site.family_site import read
from dtef_pipeline.tables import COMPARISONS
from tests.dtef_pipeline.survey.site.conftest import Open
from tests.made.scores import scores_of, survey_rows

OTHERS, UNIFORM = "baseline/leave-one-out-marginal", "baseline/uniform"
KNOWN = {"context_level": "0", "condition": "distribution/attribute-label", "metric": "js", "targets": "clean"}


def board_row(model: str, score: float, rank: int | None, **given: Any) -> dict[str, Any]:
    ranks = dict.fromkeys(("rank", "rank_low", "rank_high"), rank)
    scores = {"score": score, "adjusted_score": score, "score_low": score - 0.01, "score_high": score + 0.01}
    known = {"ceiling": 0.9, "skill": 0.0, "n_pairs": 20, "note": "", **KNOWN}
    return {"model": model, "model_variant": model, **scores, **ranks, **known, **given}


def compared(better: str, worse: str, verdict: str, among: str, **given: Any) -> dict[str, Any]:
    scores = {"score": 0.8, "other_score": 0.7, "difference": 0.1, "p": 0.001, "p_adjusted": 0.01, "n_pairs": 20}
    names = {"model": better, "model_variant": better, "other_model": worse, "other_variant": worse}
    return {"family": "survey", **KNOWN, **names, **scores, "verdict": verdict, "adjusted_over": among, **given}


def view(open_tables: Open, board: list[dict[str, Any]], comparisons: list[dict[str, Any]]) -> FamilyContent:
    tables = {"leaderboard": pa.Table.from_pylist(board), "comparisons": pa.Table.from_pylist(comparisons, schema=COMPARISONS)}
    return read(open_tables(scores_of("a", 0.5, 0.6), **tables))


def test_models_are_ranked_among_models_with_the_range_that_tests_among_models_leave(open_tables: Open) -> None:
    """The models of a real round stood on the board as ranks 5 and 8: baselines took the other places."""
    board = [
        board_row(OTHERS, 0.82, 1),
        board_row("a", 0.8, 2),
        board_row(UNIFORM, 0.75, 3),
        board_row("b", 0.7, 4),
        board_row("c", 0.69, 5),
        board_row("new", 0.9, None),
    ]
    tests = [
        compared("a", "b", "better", "models"),
        compared("a", "c", "no clear difference", "models"),
        compared("b", "c", "no clear difference", "models"),
        compared(OTHERS, "a", "better", "reference"),
    ]
    (found,) = view(open_tables, board, tests).boards
    places = {row.model: (row.rank, row.rank_low, row.rank_high) for row in found.rows}
    assert places["a"] == (1, 1, 2)
    assert places["b"] == (2, 2, 3)
    assert places["c"] == (3, 1, 3)
    assert places["new"] == places["Leave-one-out marginal"] == (None, None, None)
    assert [row.model for row in found.models] == ["a", "b", "c"]
    assert {row.model for row in found.rows if row.is_reference} == {"Leave-one-out marginal", "Uniform"}
    assert found.rows[0].score == Estimate(0.8, 0.79, 0.81)
    assert {(one.label, one.value) for one in found.references} == {("A perfect model", 0.9), ("Leave-one-out marginal", 0.82)}


THE_MARGINAL = "the leave-one-out marginal (the average answer of the other groups)"
ON_PAIRS = "on the pairs that both have; a perfect model would score 0.900 on all pairs."


@pytest.mark.parametrize(
    ("tests", "sentence"),
    [
        (
            [compared(OTHERS, "a", "better", "reference"), compared(OTHERS, "b", "better", "reference")],
            f"No model beats {THE_MARGINAL}: the best of 2 models, a, scores 0.700 against 0.800 {ON_PAIRS}",
        ),
        (
            [compared("a", OTHERS, "no clear difference", "reference")],
            f"No model clearly differs from {THE_MARGINAL}: the best of 2 models, a, scores 0.800 against 0.700 {ON_PAIRS}",
        ),
        (
            [compared("a", OTHERS, "better", "reference"), compared(OTHERS, "b", "better", "reference")],
            f"1 of 2 models beats {THE_MARGINAL}: the best of 2 models, a, scores 0.800 against 0.700 {ON_PAIRS}",
        ),
        (
            [compared("a", OTHERS, "not tested", "reference")],
            f"No model could be compared with {THE_MARGINAL}: the best of 2 models, a, scores 0.800 against 0.700 {ON_PAIRS}",
        ),
        ([], "Best of 2 models: a scores 0.800 (0.790 to 0.810); next is b, 0.700."),
    ],
)
def test_the_verdict_is_that_of_the_tested_comparison(open_tables: Open, tests: list[dict[str, Any]], sentence: str) -> None:
    board = [board_row(OTHERS, 0.82, 1), board_row("a", 0.8, 2), board_row("b", 0.7, 3)]
    assert view(open_tables, board, tests).verdict == sentence


def test_a_single_model_that_beats_the_marginal_is_named(open_tables: Open) -> None:
    found = view(open_tables, [board_row("a", 0.8, 1)], [compared("a", OTHERS, "better", "reference")])
    assert found.verdict == f"a beats {THE_MARGINAL}: a scores 0.800 against 0.700 {ON_PAIRS}"


def test_the_way_of_most_models_comes_first_then_that_of_most_context(open_tables: Open) -> None:
    board = [
        *(board_row(model, 0.8, rank, context_level="5") for rank, model in enumerate("ab", 1)),
        *(board_row(model, 0.8, rank, context_level="0") for rank, model in enumerate("ab", 1)),
        board_row("a", 0.8, 1, context_level="10"),
        *(board_row(model, 0.8, rank, context_level="all", n_pairs=4) for rank, model in enumerate("ab", 1)),
    ]
    titles = [one.title for one in view(open_tables, board, []).boards]
    assert [title.split(" context")[0] for title in titles] == ["With 5", "Without", "With all", "With 10"]


@pytest.mark.parametrize("scores", [[], scores_of("a", None, None)])
def test_nothing_scored_is_a_view_all_the_same(open_tables: Open, scores: list[dict[str, Any]]) -> None:
    found = read(open_tables(scores, survey_responses=survey_rows({}, {})))
    list(found.pages())
    no_board = "No leaderboard is stored yet: `dtef survey board --refresh` makes it."
    assert found.verdict == ("No model is ranked yet." if scores else no_board)
