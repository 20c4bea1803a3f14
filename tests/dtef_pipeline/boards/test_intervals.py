"""Intervals of boards agree with naive loops on lopsided data and stay within the range of a score."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from dtef_pipeline.boards.boards import board, load_evidence
from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.dtef_pipeline.boards.test_boards import boarded
from tests.made.freedom import freedom_of
from tests.made.scores import reference_table, scores_of, scores_table, survey_rows

REFERENCES = ("uniform_score", "leave_one_out_score", "population_score")


def questions(count: int, **given: Any) -> list[dict[str, Any]]:
    return [{"question_id": f"q{i}", **given} for i in range(count)]


class Lopsided(NamedTuple):
    scores: list[dict[str, Any]]
    references: list[dict[str, Any]]


def lopsided(rng: np.random.Generator) -> Lopsided:
    """Models of different coverage over questions that few or many segments answered; references that differ by pair."""
    pairs = [(f"q{q}", f"country:c{s}") for q in range(12) for s in range(int(rng.integers(1, 7)))]
    references = [
        {
            "question_id": q,
            "segment": s,
            "gini": rng.uniform(0.4, 0.7),
            **{name: rng.uniform(0.5, 0.7) for name in REFERENCES},
            "ceiling": 0.95,
        }
        for q, s in pairs
    ]
    for reference in references[::5]:
        if reference["segment"] != "country:c0":  # which has every question
            reference["leave_one_out_score"] = None
    scores = []
    for model in (POPULATION_MARGINAL, "a", "b"):
        for q, s in pairs:
            failed = rng.random() < (0.0 if model == "a" or s == "country:c0" else 0.3)
            score = None if failed else rng.uniform(0.3, 0.9)
            error = None if failed else rng.uniform(0.01, 0.2)
            scores += scores_of(model, score, segment=s, l2_corrected=error)
            scores[-1]["question_id"] = q
    return Lopsided(scores, references)


def by_cluster(cells: pd.DataFrame, model: str) -> dict[str, list[tuple[float, float, int]]]:
    """Sums and number of the cells that each number is made of, by cluster."""
    mine = cells[cells["model"] == model].set_index(["segment", "question_id"])
    sides = {
        "score": (mine["score"], 1),
        "skill": (
            mine["score"] - mine["leave_one_out_score"],
            mine["ceiling"] - mine["leave_one_out_score"] + 0 * mine["score"],
        ),
    }
    found = {}
    for name, (top, bottom) in sides.items():
        groups = pd.DataFrame({"a": top, "b": bottom, "cluster": mine["cluster"].astype(str)}).dropna().groupby("cluster")
        found[name] = [(float(rows["a"].sum()), float(rows["b"].sum()), len(rows)) for _, rows in groups]
    return found


def naive_interval(parts: list[tuple[float, float, int]]) -> tuple[float, float]:
    """Of sum(top) / sum(bottom), with (top, bottom, cells) of each cluster."""
    tops, bottoms, cells = (np.array(side, dtype=float) for side in zip(*parts, strict=True))
    value, clusters = tops.sum() / bottoms.sum(), len(parts)
    moved = [(top - value * bottom) / bottoms.sum() / (1 - n / cells.sum()) for top, bottom, n in parts]
    variance = (clusters - 1) / clusters * sum(one**2 for one in moved)
    reach = t.ppf(0.975, freedom_of(cells)) * np.sqrt(variance)
    return value - reach, value + reach


def test_intervals_agree_with_a_naive_loop_on_lopsided_data() -> None:
    scores, references = lopsided(np.random.default_rng(3))
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(scores))
        connection.register("reference_scores", reference_table(references))
        cells = load_cells(connection, SurveyBoardOptions())
        rows = board(connection, "overall", SurveyBoardOptions()).set_index("model")
    for model in ("a", "b"):
        for name, parts in by_cluster(cells, model).items():
            row = rows.loc[model]
            assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(naive_interval(parts), abs=1e-9)


def test_means_agree_with_those_of_the_board() -> None:
    scores, references = lopsided(np.random.default_rng(5))
    known = {(row["segment"], row["question_id"]): row for row in references}
    frame = boarded(scores, references).set_index("model")
    for model, row in frame.iterrows():
        mine = [score for score in scores if score["model"] == model and score["score"] is not None]
        assert row["parsed_score"] == pytest.approx(row["score"])
        assert row["ceiling"] == pytest.approx(
            np.mean([known[score["segment"], score["question_id"]]["ceiling"] for score in mine])
        )
        assert row["score_low"] < row["score"] < row["score_high"]


def test_skill_is_the_place_between_the_marginal_and_the_ceiling() -> None:
    """0.7 is a third of the way from 0.65 to 0.8."""
    row = boarded(scores_of("m", *[0.7] * 10), questions(10, leave_one_out_score=0.65, uniform_score=0.4, ceiling=0.8)).iloc[0]
    assert row["skill"] == pytest.approx(1 / 3)
    assert (row["skill_low"], row["skill_high"]) == pytest.approx((1 / 3, 1 / 3))
    best = boarded(scores_of("m", *[0.8] * 10), questions(10, leave_one_out_score=0.65, ceiling=0.8)).iloc[0]
    assert best["skill"] == pytest.approx(1)
    marginal = boarded(scores_of("m", *[0.65] * 10), questions(10, leave_one_out_score=0.65, ceiling=0.8)).iloc[0]
    assert (marginal["skill"], marginal["skill_low"], marginal["skill_high"]) == pytest.approx((0, 0, 0), abs=1e-12)


def test_skill_has_the_ends_that_it_has_by_either_ceiling() -> None:
    """Room .2 to the ceiling and .1 to the lowered one: what is above 0 may be twice as much, what is below 0 twice as far below."""
    scores = scores_of("m", *(0.44 + 0.02 * i for i in range(10)))
    reference = {"leave_one_out_score": 0.5, "uniform_score": 0.5, "ceiling": 0.7}
    ends = [
        boarded(scores, questions(10, **reference, **low)).iloc[0][["skill", "skill_low", "skill_high"]]
        for low in ({}, {"ceiling_low": 0.6})
    ]
    (skill, low, high), (same, lower, higher) = (each.to_list() for each in ends)
    assert low < 0 < high
    assert (same, lower, higher) == pytest.approx((skill, 2 * low, 2 * high))


def test_few_questions_have_means_but_no_interval_and_the_note_says_why() -> None:
    frame = boarded(scores_of("m", 0.5, 0.7, 0.9, None), questions(4))
    row = frame.iloc[0]
    assert row["score"] == pytest.approx(0.7)
    assert row["n_questions"] == 3
    assert row[["score_low", "score_high", "skill_low"]].isna().all()
    assert row["skill"] == pytest.approx((0.7 - 0.8) / 0.1)
    assert "3 batteries, at least 5 are needed" in row["note"]


def test_respondents_widen_the_interval_of_questions_that_are_alike() -> None:
    scores = [{**row, "predicted": [0.4, 0.4, 0.2]} for row in scores_of("m", *[0.8] * 10)]
    widths = []
    for n in (20, 2_000):
        with duckdb.connect() as connection:
            connection.register("scores", scores_table(scores))
            connection.register("survey_responses", survey_rows(*({"n": n} for _ in range(10))))
            row = board(connection, "overall", SurveyBoardOptions()).iloc[0]
        widths.append(row["score_high"] - row["score_low"])
    assert widths[0] > 3 * widths[1] > 0
    assert boarded(scores).iloc[0]["score_high"] == pytest.approx(0.8)


def test_evidence_loaded_once_gives_the_same_board_and_equal_input_equal_digits() -> None:
    scores, references = lopsided(np.random.default_rng(9))
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(scores[::-1]))
        connection.register("reference_scores", reference_table(references))
        evidence = load_evidence(connection, SurveyBoardOptions())
        for by in ("overall", "segment"):
            given = board(connection, by, SurveyBoardOptions(), evidence)
            pd.testing.assert_frame_equal(given, boarded(scores, references, by), check_exact=True)
