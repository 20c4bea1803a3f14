"""Gaps where questions come in batteries, where responses cannot be read, and of a baseline that contains the segments."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.gaps import gaps
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.segment_luck import CellDraws, Cells, luck, of_second_order, same_people
from dtef_pipeline.survey.scoring.metrics import js
from tests.dtef_pipeline.survey.boards.test_gaps import World, answered, near, world
from tests.made.scores import scores_table, survey_rows

OPTIONS = SurveyBoardOptions()
HALF, GOOD, BAD = [0.5, 0.3, 0.2], [0.5, 0.35, 0.15], [0.2, 0.3, 0.5]


def of_batteries(made: World, size: int) -> pd.DataFrame:
    """`gaps` of questions of which each `size` in turn are a battery."""
    with duckdb.connect() as connection:
        connection.register("scores", made.scores)
        connection.register("survey_responses", made.survey)
        cells = load_cells(connection, OPTIONS)
        number = cells["question_id"].astype(str).str[1:].astype(int)
        return gaps(connection, cells.assign(cluster=(number // size).astype(str)), OPTIONS)[0]


def naive_luck(layout: Cells, score: np.ndarray, null: np.ndarray) -> tuple[np.ndarray, float]:
    """Covariance and degrees of freedom by plain loops: batteries change places whole, and their real scatter, of what is not the same in all
    segments, says by how much."""
    segments, clusters, draws = layout.segment.max() + 1, layout.cluster.max() + 1, null.shape[1]
    off, real = null - null.mean(axis=1, keepdims=True), score - null.mean(axis=1)
    moved, apart = np.zeros((segments, clusters, draws)), np.zeros((segments, clusters, draws))
    deviation, size = np.zeros((segments, clusters)), np.zeros((segments, clusters))
    for at, (segment, cluster) in enumerate(zip(layout.segment, layout.cluster, strict=True)):
        moved[segment, cluster] += off[at]
        apart[segment, cluster] += off[at] - off[layout.cluster == cluster].mean(axis=0)
        deviation[segment, cluster] += real[at] - real[layout.cluster == cluster].mean()
        size[segment, cluster] += 1
    total = size.sum(axis=1)
    covariance = np.zeros((segments, segments))
    for one in range(segments):
        for other in range(segments):
            covariance[one, other] = (moved[one] * moved[other]).sum() / (draws - 1) / total[one] / total[other]
    factors, spread = [], 0.0
    for one in range(segments):
        variance = (apart[one] ** 2).sum(axis=1) / (draws - 1)
        effect = deviation[one].sum() / total[one]
        squares = sum((deviation[one, b] - size[one, b] * effect) ** 2 for b in range(clusters))
        # Of battery b, less its part in the mean.
        weights = np.eye(clusters) - np.outer(size[one] / total[one], np.ones(clusters))
        form = weights @ np.diag(variance) @ weights.T
        factors.append(squares / np.trace(form))
        spread += 2 * np.trace(form @ form) / np.trace(form) ** 2 / segments**2
    return np.asarray(covariance * np.mean(factors)), 2 / spread * (segments - 1) / segments


def test_what_chance_does_to_segments_agrees_with_plain_loops_on_lopsided_data() -> None:
    rng = np.random.default_rng(8)
    there = rng.random((3, 12)) < 0.8
    segment, question = np.nonzero(there)
    layout = Cells(segment, np.array([0, 0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 5])[question], np.zeros_like(segment))
    score, null = rng.random(len(segment)), rng.random((len(segment), 7))
    unknown = np.full(len(segment), np.nan)
    found = luck(layout, score, CellDraws(null, None, unknown))
    covariance, freedom = naive_luck(layout, score, null)
    assert found.covariance == pytest.approx(covariance, rel=1e-9)
    assert found.freedom == pytest.approx(freedom, rel=1e-9)
    assert found.center == pytest.approx([null[segment == one].mean() for one in range(3)], rel=1e-9)


def test_the_same_people_add_what_their_noise_has_in_common_between_batteries() -> None:
    layout = Cells(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 0, 1]), np.array([0, 0, 0, 0, 0, 1]))
    noise = np.array([[1.0, -1.0], [2.0, -2.0], [4.0, -4.0]] * 2)
    # Standard deviations 1 and 2 in one battery and 4 in another, in a mean of three; of other rounds' people there is nothing in common.
    assert same_people(layout, noise, 0.01) == pytest.approx([0.01 * 2 * (1 + 2) * 4 / 9, 0])


def test_the_nearer_a_prediction_the_more_of_its_noise_goes_one_way() -> None:
    """A sample and its mirror image: what moves the score alike is of the second order."""
    rng = np.random.default_rng(5)
    truth, n = np.full(4, 0.25), 100
    sample = rng.multinomial(n, truth, 40_000) / n
    ceiling = js(np.broadcast_to(truth, sample.shape), sample).mean()
    for off in (0.0, 0.05, 0.15):
        predicted = np.broadcast_to(truth + off * np.array([1.0, 0.3, -0.6, -0.7]), sample.shape)
        score, mirrored = js(predicted, sample), js(predicted, 2 * truth - sample)
        alike = (score + mirrored).var() / ((score + mirrored).var() + (score - mirrored).var())
        cell = pd.DataFrame({"ceiling": [ceiling], "parsed_score": [score.mean()]})
        assert of_second_order(np.ones((1, 1)), cell)[0, 0] ** 2 == pytest.approx(alike, abs=0.06)
    unknown = pd.DataFrame({"ceiling": [np.nan], "parsed_score": [0.5]})
    assert of_second_order(np.ones((1, 1)), unknown)[0, 0] == 1


def test_ceilings_bring_equal_groups_as_near_to_the_model_as_it_is() -> None:
    layout = Cells(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.zeros(4, dtype=np.int64))
    null = np.array([[0.4, 0.6], [0.4, 0.6], [0.6, 0.8], [0.6, 0.8]])
    ceiling = np.array([0.7, 0.7, 1.0, 1.0])
    for score, center in ((0.6, [0.5, 0.7]), (0.725, [0.6, 0.85]), (0.2, [0.5, 0.7])):  # as the null scores; half way; below
        assert luck(layout, np.full(4, score), CellDraws(null, None, ceiling)).center == pytest.approx(center)


def test_equal_groups_asked_in_batteries_are_told_apart_in_five_percent_of_sets() -> None:
    """With questions taken as independent, a quarter of the gaps between equal groups was significant."""
    rng = np.random.default_rng(31)
    sets, segments, batteries, size = 150, 6, 8, 5
    shape = (sets, segments, batteries * size, 4)
    truth = np.broadcast_to(rng.dirichlet(np.full(4, 1.5), (sets, 1, batteries * size)), shape)
    off = np.repeat(rng.standard_normal((sets, segments, batteries, 4)), size, axis=2)
    said = near(truth, 200, rng) * np.exp(0.6 * off)
    made = world(truth, np.full(segments, 200), said / said.sum(axis=-1, keepdims=True), rng)
    whole, single = of_batteries(made, size), of_batteries(made, 1)
    assert (whole["p"] < 0.05).mean() <= 0.10  # 150 sets at a true 5 %: 99 runs in 100
    assert (single["p"] < 0.05).mean() >= 0.12
    assert whole["excess"].mean() == pytest.approx(0, abs=0.004)
    assert list(whole["gap"]) == list(single["gap"])
    assert ((whole["gap_low"] <= whole["gap"]) & (whole["gap"] <= whole["gap_high"])).all()
    assert (whole["gap_high"] - whole["expected_gap"]).to_numpy() == pytest.approx(whole["excess_high"].to_numpy(), abs=1e-12)


def test_a_marginal_that_contains_the_segment_keeps_its_gap_and_has_no_verdict() -> None:
    """Between equal groups 25-31 % of its gaps were significant: it contains a large segment more than a small one."""
    scored, asked = answered({"country:a": [(GOOD, HALF)] * 6, "country:b": [(BAD, HALF)] * 6})
    baseline = {"model": POPULATION_MARGINAL, "model_variant": POPULATION_MARGINAL}
    table = _measured([*scored, *({**row, **baseline} for row in scored)], asked)
    marginal, model = (table[(table["model"] == POPULATION_MARGINAL) == is_it].iloc[0] for is_it in (True, False))
    points = ["gap", "expected_gap", "excess", "best_score", "worst_score", "parsed_gap", "parsed_excess"]
    assert list(marginal[points]) == list(model[points])
    verdict = [
        "gap_low",
        "gap_high",
        "excess_low",
        "excess_high",
        "expected_low",
        "expected_high",
        "p",
        "p_holm",
        "p_bh",
        "parsed_p",
    ]
    assert marginal[verdict].isna().all()
    assert "contains the segment's own answers" in marginal["note"]
    assert model["p"] == model["p_holm"] == model["p_bh"], "the marginal counted among the gaps tested"


def test_responses_that_could_not_be_read_are_no_want_of_knowledge() -> None:
    scored, asked = answered({"country:a": [(GOOD, HALF)] * 6, "country:b": [(GOOD, HALF)] * 6}, n=100_000)
    all_read = _measured(scored, asked).iloc[0]
    assert (all_read["parsed_gap"], all_read["parsed_excess"], all_read["parsed_p"]) == tuple(all_read[["gap", "excess", "p"]])
    unread = {"draw": 1, "status": "unparseable", "score": 0.0, "predicted": None}
    row = _measured([*scored, *({**one, **unread} for one in scored if one["segment"] == "country:b")], asked).iloc[0]
    assert row["gap"] == pytest.approx(scored[0]["score"] / 2)
    assert row["parsed_gap"] == pytest.approx(0, abs=1e-12)
    assert row["parsed_p"] > 0.5
    nothing = _measured([{**one, **unread, "draw": 0} for one in scored], asked).iloc[0]
    assert nothing[["parsed_gap", "parsed_excess", "parsed_p"]].isna().all()


def _measured(scored: list[dict[str, object]], asked: list[dict[str, object]]) -> pd.DataFrame:
    return of_batteries(World(scores_table(scored), survey_rows(*asked)), 1)
