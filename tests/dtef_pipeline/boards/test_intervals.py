"""Intervals of boards agree with naive loops on lopsided data and stay within the range of a score."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t

from dtef_pipeline.boards.boards import board, load_evidence
from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.boards.intervals import board_intervals
from dtef_pipeline.statistics.resampling import Resampling
from dtef_pipeline.statistics.studentised import studentised_interval
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.skill import ADDED
from dtef_pipeline.survey.keys import KEYS
from tests.dtef_pipeline.boards.board_setup import boarded
from tests.made.scores import reference_table, scores_of, scores_table, survey_rows

RESAMPLES = 60
REFERENCES = ("uniform", "others", "population")


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
            reference["others"] = None
    scores = []
    for model in (POPULATION_MARGINAL, "a", "b"):
        for q, s in pairs:
            failed = rng.random() < (0.0 if model == "a" or s == "country:c0" else 0.3)
            score = None if failed else rng.uniform(0.3, 0.9)
            error = None if failed else rng.uniform(0.01, 0.2)
            scores += scores_of(model, score, segment=s, l2_corrected=error)
            scores[-1]["question_id"] = q
    return Lopsided(scores, references)


def naive_interval(values: list[float], parts: list[tuple[float, float, int]]) -> tuple[float, ...]:
    """Of replicates of sum(top) / sum(bottom), with (top, bottom, cells) of each cluster."""
    tops, bottoms, cells = (np.array(side) for side in zip(*parts, strict=True))
    value = tops.sum() / bottoms.sum()
    influence, effective = (tops - value * bottoms) / bottoms.sum(), cells.sum() ** 2 / (cells**2).sum()
    left_out, drawn = influence / (1 - cells / cells.sum()), (influence**2).sum()
    variance = (1 - 1 / len(parts)) * (left_out**2).sum() * (effective - 1) / effective
    half = (influence**3).sum() / (6 * max(variance, drawn) ** 1.5) / 2
    reach = np.sqrt(effective / (effective - 1) * variance / drawn) * t.ppf(0.975, effective - 2) / norm.ppf(0.975)
    tails = [norm.cdf(half + (half + z) / (1 - half * (half + z))) for z in norm.ppf([0.025, 0.975])]
    return tuple(value + reach * (float(np.quantile(values, tail)) - value) for tail in tails)


def studentised(cells: pd.DataFrame) -> tuple[float, ...]:
    """Interval of the error in units of the Gini index, from one column of sums per question."""
    known = cells[cells["l2_corrected"].notna() & cells["gini"].notna()]
    sums = known.groupby("cluster", observed=True)[["l2_corrected", "gini"]].sum().to_numpy()
    return tuple(float(end[0]) for end in studentised_interval(sums[:, :1], sums[:, 1:], resamples=RESAMPLES))


def naive(cells: pd.DataFrame, model: str) -> dict[str, list[float]]:
    """Replicates of every number by writing the drawn questions' cells out and averaging them."""
    names = list(cells["cluster"].cat.categories)
    marginal = cells[cells["model"] == POPULATION_MARGINAL].set_index(["segment", "question_id"])["score"].to_dict()
    mine = cells[cells["model"] == model].astype({"cluster": str}).to_dict("records")
    found: dict[str, list[float]] = {"score": [], "skill": [], "vs_marginal": []}
    for weights in Resampling(len(names), resamples=RESAMPLES).weights.astype(int):
        drawn = [cell for cell in mine for _ in range(weights[names.index(cell["cluster"])])]
        found["score"].append(np.mean([c["score"] for c in drawn if c["score"] == c["score"]]))
        full = [c for c in drawn if c["score"] == c["score"] and c["others"] == c["others"]]
        top = np.mean([c["score"] - c["others"] for c in full])
        found["skill"].append(top / np.mean([c["ceiling"] - c["others"] for c in full]))
        gains = [c["score"] - marginal[c["segment"], c["question_id"]] for c in drawn]
        found["vs_marginal"].append(np.mean([gain for gain in gains if gain == gain]))
    return found


def by_cluster(cells: pd.DataFrame, model: str) -> dict[str, list[tuple[float, float, int]]]:
    """Sums and number of the cells that each number is made of, by cluster."""
    mine = cells[cells["model"] == model].set_index(["segment", "question_id"])
    marginal = cells[cells["model"] == POPULATION_MARGINAL].set_index(["segment", "question_id"])["score"].reindex(mine.index)
    sides = {
        "score": (mine["score"], 1),
        "skill": (mine["score"] - mine["others"], mine["ceiling"] - mine["others"] + 0 * mine["score"]),
        "vs_marginal": (mine["score"] - marginal, 1),
    }
    found = {}
    for name, (top, bottom) in sides.items():
        groups = pd.DataFrame({"a": top, "b": bottom, "cluster": mine["cluster"].astype(str)}).dropna().groupby("cluster")
        found[name] = [(float(rows["a"].sum()), float(rows["b"].sum()), len(rows)) for _, rows in groups]
    return found


def test_intervals_agree_with_a_naive_loop_on_lopsided_data() -> None:
    scores, references = lopsided(np.random.default_rng(3))
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(scores))
        connection.register("reference_scores", reference_table(references))
        cells = load_cells(connection, SurveyBoardOptions())
        rows = board(connection, "overall", SurveyBoardOptions(resamples=RESAMPLES)).set_index("model")
    for model in ("a", "b"):
        drawn, row = naive(cells, model), rows.loc[model]
        for name, parts in by_cluster(cells, model).items():
            expected = naive_interval(drawn[name], parts)
            assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(expected, abs=1e-9)
        errors = studentised(cells[cells["model"] == model])
        assert (1 / row["worth_high"], 1 / row["worth_low"]) == pytest.approx(errors, rel=1e-9)


def test_score_ends_stay_between_0_and_1() -> None:
    for scores in ([0.99, 0.98, 0.97, 0.99, 0.2, 0.98], [0.01, 0.02, 0.0, 0.01, 0.8, 0.02]):
        row = boarded(scores_of("m", *scores)).iloc[0]
        assert 0 <= row["score_low"] < row["score"] < row["score_high"] <= 1
        assert (row["score_low"] == 0) or (row["score_high"] == 1)
    rows = [boarded(scores_of("m", *[value] * 6)).iloc[0] for value in (0.0, 1.0)]
    assert [(row["score_low"], row["score_high"]) for row in rows] == [(0, 0), (1, 1)]


def test_old_columns_stay_as_they_are_and_the_new_ones_come_after() -> None:
    scores, references = lopsided(np.random.default_rng(4))
    for by in KEYS.groups:
        plain, full = (boarded(scores, references, by, resamples=resamples) for resamples in (0, 200))
        pd.testing.assert_frame_equal(full[list(plain.columns)], plain)
        assert list(full.columns) == [*plain.columns, *ADDED]


def test_means_agree_with_those_of_the_board() -> None:
    scores, references = lopsided(np.random.default_rng(5))
    known = {(row["segment"], row["question_id"]): row for row in references}
    frame = boarded(scores, references).set_index("model")
    for model, row in frame.iterrows():
        mine = [score for score in scores if score["model"] == model and score["score"] is not None]
        assert row["parsed_score"] == pytest.approx(row["score"])
        assert row["l2_corrected"] == pytest.approx(np.mean([score["l2_corrected"] for score in mine]))
        assert row["ceiling"] == pytest.approx(
            np.mean([known[score["segment"], score["question_id"]]["ceiling"] for score in mine])
        )
        assert row["score_low"] < row["score"] < row["score_high"]


def test_skill_is_the_place_between_the_marginal_and_the_ceiling() -> None:
    """0.7 is a third of the way from 0.65 to 0.8, and two thirds of that from 0.4."""
    row = boarded(scores_of("m", *[0.7] * 10), questions(10, others=0.65, uniform=0.4, ceiling=0.8)).iloc[0]
    assert row["skill"] == pytest.approx(1 / 3)
    assert row["skill_from_uniform"] == pytest.approx(3 / 4)
    assert (row["skill_low"], row["skill_high"]) == pytest.approx((1 / 3, 1 / 3))
    best = boarded(scores_of("m", *[0.8] * 10), questions(10, others=0.65, ceiling=0.8)).iloc[0]
    assert best["skill"] == pytest.approx(1)
    marginal = boarded(scores_of("m", *[0.65] * 10), questions(10, others=0.65, ceiling=0.8)).iloc[0]
    assert (marginal["skill"], marginal["skill_low"], marginal["skill_high"]) == pytest.approx((0, 0, 0), abs=1e-12)


def test_skill_has_the_ends_that_it_has_by_either_ceiling() -> None:
    """Room .2 to the ceiling and .1 to the lowered one: what is above 0 may be twice as much, what is below 0 twice as far below."""
    scores = scores_of("m", *(0.44 + 0.02 * i for i in range(10)))
    reference = {"others": 0.5, "uniform": 0.5, "ceiling": 0.7}
    ends = [
        boarded(scores, questions(10, **reference, **low)).iloc[0][["skill", "skill_low", "skill_high"]]
        for low in ({}, {"ceiling_low": 0.6})
    ]
    (skill, low, high), (same, lower, higher) = (each.to_list() for each in ends)
    assert low < 0 < high
    assert (same, lower, higher) == pytest.approx((skill, 2 * low, 2 * high))


def test_skill_is_not_told_where_there_is_no_room_for_it() -> None:
    row = boarded(scores_of("m", *[0.7] * 6), questions(6, others=0.797, uniform=0.4, ceiling=0.8)).iloc[0]
    assert np.isnan([row["skill"], row["skill_low"], row["skill_high"]]).all()
    assert row["skill_from_uniform"] == pytest.approx(3 / 4)
    assert "no room" in row["note"]


def test_worth_is_the_size_of_a_sample_that_would_predict_as_well() -> None:
    """A sample of k people is off by (1 - sum p^2) / k on average: an error of .03 where the Gini index is .6 is that of 20."""
    scores = [{**row, "l2_corrected": 0.03} for row in scores_of("m", *[0.7] * 6)]
    row = boarded(scores, questions(6, gini=0.6)).iloc[0]
    assert (row["worth"], row["worth_low"], row["worth_high"]) == pytest.approx((20, 20, 20))


def test_worth_without_limit_is_infinite_and_says_so() -> None:
    errors = [-0.02, 0.03, 0.04, -0.03, 0.01, 0.02]
    scores = [{**row, "l2_corrected": error} for row, error in zip(scores_of("m", *[0.7] * 6), errors, strict=True)]
    row = boarded(scores, questions(6)).iloc[0]
    assert row["worth"] == pytest.approx(0.6 * 6 / 0.05)
    assert row["worth_low"] < row["worth"] < row["worth_high"] == np.inf
    perfect = [{**row, "l2_corrected": -0.01} for row in scores_of("m", *[0.7] * 6)]
    none = boarded(perfect, questions(6)).iloc[0]
    assert np.isnan(none["worth"])
    assert "more respondents than can be told" in none["note"]


def test_few_questions_have_means_but_no_interval_and_the_note_says_why() -> None:
    frame = boarded(scores_of("m", 0.5, 0.7, 0.9, None), questions(4))
    row = frame.iloc[0]
    assert row["score"] == pytest.approx(0.7)
    assert row["n_questions"] == 3
    assert row[["score_low", "score_high", "skill_low", "rank_low", "p_best"]].isna().all()
    assert row["skill"] == pytest.approx((0.7 - 0.8) / 0.1)
    assert row["note"] == "no interval: 3 batteries, at least 5 are needed"


def test_fifty_segments_of_one_question_are_one_question() -> None:
    scores = [row for s in range(50) for row in scores_of("m", 0.5 + s / 100, segment=f"country:c{s}")]
    assert boarded(scores, [{"segment": f"country:c{s}"} for s in range(50)]).iloc[0]["n_questions"] == 1
    assert np.isnan(boarded(scores).iloc[0]["score_low"])


def test_a_board_without_references_has_intervals_of_its_scores() -> None:
    row = boarded(scores_of("m", 0.5, 0.6, 0.7, 0.8, 0.9)).iloc[0]
    assert row["score_low"] < 0.7 < row["score_high"]
    assert row[["ceiling", "skill", "skill_from_uniform", "worth"]].isna().all()
    assert row["note"] == "no ceiling known"


def test_a_model_that_failed_everywhere_has_no_numbers() -> None:
    rows = boarded([*scores_of("m", *[None] * 6), *scores_of("other", *[0.5] * 6)], questions(6)).set_index("model")
    row = rows.loc["m"]
    assert row["n_questions"] == 0
    assert row[["score", "score_low", "score_high", "parsed_score", "ceiling", "skill", "rank_low"]].isna().all()


def test_parsed_score_leaves_out_what_the_policy_gives_the_unparsed() -> None:
    scores = [*scores_of("m", *[0.8] * 5), {**scores_of("m", 0.0)[0], "question_id": "q5", "status": "unparseable"}]
    row = boarded(scores, questions(6)).iloc[0]
    assert row["score"] == pytest.approx(4 / 6)
    assert row["parsed_score"] == pytest.approx(0.8)


def test_ranks_are_sure_where_models_are_far_apart_and_shared_where_they_are_alike() -> None:
    rng = np.random.default_rng(6)
    level = rng.uniform(0.3, 0.5, size=20)
    models = {"best": level + 0.3, "one": level, "twin": level, "last": level - 0.2}
    scores = [row for name, values in models.items() for row in scores_of(name, *values.tolist())]
    rows = boarded(scores, questions(20)).set_index("model")
    assert rows.loc["best", ["rank_low", "rank_high", "p_best"]].tolist() == pytest.approx([1, 1, 1])
    assert rows.loc["last", ["rank_low", "rank_high", "p_best"]].tolist() == pytest.approx([4, 4, 0])
    assert rows.loc[["one", "twin"], ["rank_low", "rank_high"]].to_numpy().tolist() == [[2, 3], [2, 3]]
    twins = boarded([row for name in ("one", "twin") for row in scores_of(name, *level.tolist())], questions(20))
    assert twins["p_best"].tolist() == pytest.approx([0.5, 0.5])


def test_three_equal_models_have_all_of_their_places_as_range_and_the_first_as_rank() -> None:
    """A tie of three at place 2 was said to be at place 2 to 2, or 2 to 3 with a neighbour near by, although it takes 2 to 4."""
    level = np.random.default_rng(6).uniform(0.3, 0.5, size=20)
    models = {"best": level + 0.3, "a": level, "b": level, "c": level, "last": level - 0.2}
    scores = [row for name, values in models.items() for row in scores_of(name, *values.tolist())]
    rows = boarded(scores, questions(20)).set_index("model")
    assert rows["rank_low"].to_dict() == pytest.approx({"best": 1, "a": 2, "b": 2, "c": 2, "last": 5})
    assert rows["rank_high"].to_dict() == pytest.approx({"best": 1, "a": 4, "b": 4, "c": 4, "last": 5})


def test_chances_of_the_first_place_add_up_to_one_in_each_group_and_level() -> None:
    scores, references = lopsided(np.random.default_rng(7))
    scores += [{**row, "context_level": "5"} for row in scores]
    frame = boarded(scores, references, "attribute")
    assert frame.groupby(["attribute", "context_level"])["p_best"].sum().tolist() == pytest.approx([1, 1])
    assert (frame["rank_low"] <= frame["rank_high"]).all()


def test_an_unranked_model_has_no_rank_interval_and_takes_no_place() -> None:
    everywhere = [row for s in range(12) for row in scores_of("m", 0.5, 0.6, 0.4, 0.5, 0.6, segment=f"country:c{s}")]
    rows = boarded([*everywhere, *scores_of("pilot", *[0.9] * 5, segment="country:c1")]).set_index("model")
    assert np.isnan(rows.loc["pilot", ["rank_low", "p_best"]].astype(float)).all()
    assert rows.loc["m", ["rank_low", "rank_high", "p_best"]].tolist() == pytest.approx([1, 1, 1])


def test_the_marginal_has_no_advantage_over_itself_and_a_shift_no_width() -> None:
    rng = np.random.default_rng(8)
    level = rng.uniform(0.5, 0.8, size=12)
    rows = boarded([*scores_of(POPULATION_MARGINAL, *level.tolist()), *scores_of("m", *(level - 0.1).tolist())]).set_index(
        "model"
    )
    assert rows.loc[POPULATION_MARGINAL, ["vs_marginal_low", "vs_marginal_high"]].tolist() == pytest.approx([0, 0], abs=1e-12)
    assert rows.loc["m", ["vs_marginal_low", "vs_marginal_high"]].tolist() == pytest.approx([-0.1, -0.1])
    assert rows.loc["m", "score_high"] - rows.loc["m", "score_low"] > 0.05


def test_a_single_question_has_no_interval() -> None:
    frame = boarded(scores_of("m", 0.5, 0.6, 0.4, 0.5, 0.6), questions(5), "question")
    assert frame["score_low"].isna().all()
    assert set(frame["note"]) == {"no interval: 1 battery, at least 5 are needed"}
    assert frame["skill"].notna().all()


def test_respondents_widen_the_interval_of_questions_that_are_alike() -> None:
    scores = [{**row, "predicted": [0.4, 0.4, 0.2]} for row in scores_of("m", *[0.8] * 10)]
    widths = []
    for n in (20, 2_000):
        with duckdb.connect() as connection:
            connection.register("scores", scores_table(scores))
            connection.register("survey_responses", survey_rows(*({"n": n} for _ in range(10))))
            row = board(connection, "overall", SurveyBoardOptions()).iloc[0]
        widths.append(row["score_high"] - row["score_low"])
        assert row["interval_kind"].startswith("questions and people")
    assert widths[0] > 3 * widths[1] > 0
    assert boarded(scores).iloc[0]["interval_kind"] == "questions alone"
    assert boarded(scores_of("m", 0.5)).iloc[0]["interval_kind"] is None
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


def test_another_seed_moves_the_intervals_and_not_the_means() -> None:
    scores, references = lopsided(np.random.default_rng(10))
    first, second = (boarded(scores, references, seed=seed) for seed in (1, 2))
    assert first["skill"].tolist() == pytest.approx(second["skill"].tolist())
    assert first["score_low"].tolist() != pytest.approx(second["score_low"].tolist())


def test_no_scores_make_an_empty_board_with_all_columns() -> None:
    frame = boarded([], [])
    assert len(frame) == 0
    assert set(ADDED) <= set(frame.columns)
    with duckdb.connect() as connection:
        connection.register("scores", scores_table([]))
        cells = load_cells(connection, SurveyBoardOptions())
    assert board_intervals(cells, None, ("round",), SurveyBoardOptions()).columns[0] == "round"
