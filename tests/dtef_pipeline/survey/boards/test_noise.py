"""Noise of small samples in scores: as a naive loop over drawn answers finds it."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow.compute as pc
import pytest

from benchmarks.coverage import Regime, covered, shown, truths
from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.boards import noise as noise_module
from dtef_pipeline.survey.boards.noise import REPLICATES, SamplingNoise, estimate_sampling_noise, estimate_segment_noise
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.scoring.metrics import js
from tests.made.scores import scores_table, survey_rows
from tests.made.world_tables import connection, scores, survey_responses
from tests.made.worlds import Design, World

PREDICTED = [0.2, 0.3, 0.5]


def answer(question: int = 0, model: str = "m", **given: Any) -> dict[str, Any]:
    predicted = None if given.get("status", "ok") != "ok" else PREDICTED
    return {"question_id": f"q{question}", "model": model, "model_variant": model, "predicted": predicted, "tv": 0.3, **given}


def noise_of(scores: list[dict[str, Any]], survey: list[dict[str, Any]], **options: Any) -> SamplingNoise:
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(scores))
        connection.register("survey_responses", survey_rows(*survey))
        chosen = SurveyBoardOptions(**options)
        found = estimate_sampling_noise(connection, load_cells(connection, chosen), chosen)
    assert found is not None
    return found


@pytest.fixture
def many_replicates(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(noise_module, "REPLICATES", 6_000)
    return 6_000


def drawn_shares(rng: np.random.Generator, n: int, shares: list[float]) -> list[float]:
    people = rng.choice(3, size=n, p=shares)
    return [float(np.mean(people == option)) for option in range(3)]


@pytest.mark.usefixtures("many_replicates")
def test_deviations_spread_as_a_naive_loop_over_drawn_answers_does() -> None:
    found = noise_of([answer()], [{"n": 25, "observed": [0.6, 0.3, 0.1], "leave_one_out_marginal": [0.3, 0.4, 0.3]}])
    rng = np.random.default_rng(5)
    drawn = np.array([drawn_shares(rng, 25, [0.6, 0.3, 0.1]) for _ in range(3_000)])
    scores, others = (js(np.broadcast_to(predicted, drawn.shape), drawn) for predicted in (PREDICTED, [0.3, 0.4, 0.3]))
    assert found.score[0].std() == pytest.approx(np.std(scores), rel=0.05)
    pair = found.pair[0]
    assert found.marginal[pair].std() == pytest.approx(np.std(others), rel=0.05)
    together = np.corrcoef(found.score[0], found.marginal[pair])[0, 1]
    assert together == pytest.approx(np.corrcoef(scores, others)[0, 1], abs=0.05)


GROUPS = ((25, [0.6, 0.3, 0.1]), (40, [0.2, 0.5, 0.3]), (90, [0.4, 0.2, 0.4]))


@pytest.mark.usefixtures("many_replicates")
def test_marginals_move_with_the_people_they_are_made_of_as_a_naive_loop_moves_them() -> None:
    sizes, truths = zip(*GROUPS, strict=True)
    everyone = np.average(truths, axis=0, weights=sizes)
    others = [np.average(np.delete(truths, i, axis=0), axis=0, weights=np.delete(sizes, i)) for i in range(3)]
    rows = [
        {"segment": f"country:{i}", "question_id": "q0", "n": n, "observed": p, "leave_one_out_marginal": others[i].tolist()}
        for i, (n, p) in enumerate(GROUPS)
    ]
    given = {LEAVE_ONE_OUT: others[0].tolist(), POPULATION_MARGINAL: everyone.tolist()}
    rows = [{**row, "population": everyone.tolist()} for row in rows]
    found = noise_of([answer(0, name, segment="country:0", predicted=p) for name, p in given.items()], rows)
    rng = np.random.default_rng(6)
    drawn = np.array([[drawn_shares(rng, n, p) for n, p in GROUPS] for _ in range(3_000)])
    by_others = js(np.average(drawn[:, 1:], axis=1, weights=sizes[1:]), drawn[:, 0])
    by_everyone = js(np.average(drawn, axis=1, weights=sizes), drawn[:, 0])
    left, whole = found.score  # in the order of the names
    assert left.std() == pytest.approx(np.std(by_others), rel=0.05)
    assert whole.std() == pytest.approx(np.std(by_everyone), rel=0.05)
    assert found.marginal[found.pair[0]] == pytest.approx(left, abs=1e-6)


@pytest.mark.usefixtures("many_replicates")
def test_the_people_of_all_attributes_are_the_same_and_each_part_scatters_as_before() -> None:
    ages = ((60, [0.5, 0.3, 0.2]), (50, [0.3, 0.3, 0.4]))  # 110 of the 155 people have told their age
    named = [(f"country:{i}", *group) for i, group in enumerate(GROUPS)] + [
        (f"age:{i}", *group) for i, group in enumerate(ages)
    ]
    survey = survey_rows(
        *(
            {"segment": name, "question_id": "q0", "attribute": name.split(":")[0], "n": n, "observed": p}
            for name, n, p in named
        )
    )
    (sample,) = noise_module.draw_answers(survey, np.array([0]), np.random.default_rng(7))
    moved = sample.answers - sample.observed[:, None]
    for (_, n, p), each in zip(named, moved, strict=True):
        assert each.std(axis=0) == pytest.approx(np.sqrt(np.array(p) * (1 - np.array(p)) / n), rel=0.1)
    countries, of_age = (np.einsum("p,pro->ro", sample.n[rows], moved[rows]) for rows in (slice(3), slice(3, 5)))
    # All of the 110 are among the 155.
    together = np.mean(countries[:, 0] * of_age[:, 0]) / np.mean(countries[:, 0] ** 2)
    assert together == pytest.approx(110 / 155, rel=0.05)
    assert sample.shift_population(np.arange(5)) == pytest.approx(np.broadcast_to(countries / 155, moved.shape))


def test_deviations_are_centred_and_alike_for_models_that_predict_alike() -> None:
    scores = [answer(q, model) for q in range(3) for model in ("a", "b")] + [
        answer(q, "a", context_level="5") for q in range(3)
    ]
    found = noise_of(scores, [{}, {}, {}])
    assert found.score.shape == (9, REPLICATES)
    assert np.abs(found.score.mean(axis=1)).max() < 1e-6
    # Rows by model, context level, question: a 0, a 5, b 0.
    assert found.score[3:6] == pytest.approx(found.score[:3])
    assert found.score[6:] == pytest.approx(found.score[:3])
    assert found.score[0] != pytest.approx(found.score[1])


def test_a_draw_that_was_not_parsed_has_its_score_whatever_the_answers_were() -> None:
    alone = noise_of([answer()], [{}]).score[0]
    unread = answer(draw=1, status="unparseable", score=0.0)
    assert noise_of([answer(), unread], [{}]).score[0].tolist() == pytest.approx((alone / 2).tolist())
    failed = answer(draw=1, status="error", score=None)
    assert noise_of([answer(), failed], [{}]).score[0].tolist() == pytest.approx(alone.tolist())
    assert noise_of([unread], [{}]).score == pytest.approx(np.zeros((1, REPLICATES)), abs=1e-12)


def test_questions_of_different_length_and_pairs_that_are_not_known() -> None:
    four = {"options": [*"abcd"], "dont_know": [False] * 4, "observed": [0.1, 0.2, 0.3, 0.4], "leave_one_out_marginal": None}
    scores = [answer(0), answer(1, predicted=[0.25] * 4), answer(2)]
    found = noise_of(scores, [{}, {**four, "population": [0.25] * 4}])
    assert (found.score.std(axis=1) > 0).tolist() == [True, True, False]
    assert (found.marginal[found.pair].std(axis=1) > 0).tolist() == [True, False, False]


def test_without_the_survey_there_is_no_noise_and_without_scores_an_empty_one() -> None:
    with duckdb.connect() as connection:
        connection.register("scores", scores_table([answer()]))
        cells = load_cells(connection, SurveyBoardOptions())
        assert estimate_sampling_noise(connection, cells, SurveyBoardOptions()) is None
    with duckdb.connect() as connection:
        connection.register("scores", scores_table([]))
        connection.register("survey_responses", survey_rows({}))
        empty = estimate_sampling_noise(connection, load_cells(connection, SurveyBoardOptions()), SurveyBoardOptions())
    assert empty is not None
    assert empty.score.shape == (0, REPLICATES)


DESIGN = Design((1,) * 100, countries=(15, 20, 30, 60), ages=2)


@pytest.mark.parametrize("segment", ["country:country2", "age:age1"])
def test_a_segments_own_rows_tell_the_noise_that_boards_find_from_all_segments(segment: str) -> None:
    world = World(DESIGN)
    survey = world.survey(np.random.default_rng(3))
    here = pc.field("segment") == segment
    rows = scores(world, survey).filter(here)
    alone = estimate_segment_noise(rows, survey_responses(world, survey).filter(here))
    with connection(world, survey, ceiling_draws=0) as tables:
        cells = load_cells(tables, SurveyBoardOptions())
        every = estimate_sampling_noise(tables, cells, SurveyBoardOptions())
    assert every is not None
    for model in ("m0", POPULATION_MARGINAL, LEAVE_ONE_OUT):
        own = alone[pc.equal(rows["model"], model).to_numpy()]
        of_board = every.score[((cells["model"] == model) & (cells["segment"] == segment)).to_numpy()]
        assert own.std() == pytest.approx(of_board.std(), rel=0.12)


SETS = 16
MARGINAL = "baseline/population-marginal score"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("regime", "numbers"),
    [
        # With question texts as clusters: .63 on average.
        pytest.param(Regime(Design((6,) * 7, countries=(15,) * 6, ages=2)), ("m0 score", "m0 - m1", MARGINAL), id="batteries"),
        # With independent people: .66.
        pytest.param(
            Regime(Design((1,) * 100, countries=(15, 20, 30, 60), ages=2)), ("good - population", MARGINAL), id="people"
        ),
        pytest.param(
            Regime(Design((6, 4, 3, *(1,) * 7), countries=(15,) * 10), sample_segments=2), ("m0 score", "m0 - m1"), id="sample"
        ),
    ],
)
def test_intervals_hold_the_truth_of_surveys_with_batteries_whose_people_answer_all_questions(
    regime: Regime, numbers: tuple[str, ...]
) -> None:
    """Of .95 a mean share below .84 would be chance once in some hundred times; the seeds are given."""
    made = [{"set": "truth", "numbers": truths(regime, 150)}]
    table = covered([*made, *({"set": at, "numbers": shown(regime, at)} for at in range(SETS))])
    assert table.loc[list(numbers), "covered"].mean() >= 0.84, table.to_string()
    assert table.loc[list(numbers), "shown"].min() == 1
