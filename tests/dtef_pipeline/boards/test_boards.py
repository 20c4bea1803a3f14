"""Leaderboards: means over scored cells, compared on shared cells, of the latest snapshot, null where nothing is scored."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.boards.boards import BY_METRIC, adjust_scores, board
from dtef_pipeline.boards.cells import has_table, identify, load_cells
from dtef_pipeline.boards.item_board import list_mixed_served
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.survey.boards.segment_results import compute_segment_results
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import METRICS, SEGMENT_RESULTS, SURVEY_RESPONSES
from tests.made.scores import reference_row, reference_table, scores_of, scores_table, survey_rows


def cells_of(
    rows: list[dict[str, Any]],
    references: list[dict[str, Any]] | None = None,
    survey: pa.Table | None = None,
    **options: Any,
) -> pd.DataFrame:
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(rows))
        if references is not None:
            connection.register("reference_scores", reference_table(references))
        if survey is not None:
            connection.register("survey_responses", survey)
        return load_cells(connection, SurveyBoardOptions(**options))


def test_a_row_is_a_cell_with_its_draws_averaged_and_counted() -> None:
    rows = [
        {"score": 0.5, "l2_corrected": 0.1},
        {"score": 0.7, "draw": 1, "l2_corrected": 0.3},
        {"score": 0.0, "draw": 2, "status": "unparseable"},
        {"score": None, "draw": 3, "status": "error"},
    ]
    cell = cells_of(rows).iloc[0]
    assert (cell["n_total"], cell["n_ok"], cell["n_answered"]) == (4, 2, 3)
    assert cell["score"] == pytest.approx(0.4)
    assert cell["parsed_score"] == pytest.approx(0.6)
    assert cell["l2_corrected"] == pytest.approx(0.2)


def test_references_are_those_of_the_boards_metric() -> None:
    references = [reference_row(cluster="k", n=40, gini=0.6, ceiling={"js": 0.9, "tv": 0.95}, leave_one_out_score=None)]
    for metric, ceiling in (("js", 0.9), ("tv", 0.95)):
        cell = cells_of([{"tv": 0.2}], references, metric=metric).iloc[0]
        assert (cell["cluster"], cell["n"]) == ("k", 40)
        assert (cell["ceiling"], cell["gini"]) == pytest.approx((ceiling, 0.6))
        assert np.isnan(cell["leave_one_out_score"])


def test_questions_of_a_battery_are_one_cluster_in_all_rounds_and_remain_different_questions() -> None:
    # Items of a battery counted as independent questions: intervals of 42 questions in 7 batteries covered 66 %.
    asked = [("S1", "q0", "trust"), ("S1", "q1", "trust"), ("S1", "q2", "alone"), ("S2", "q3", "other"), ("S3", "q4", "trust")]
    rows = [{"round": r, "question_id": q} for r, q, _ in asked]
    same = {"q1": "repeated", "q3": "repeated"}
    references = [reference_row(round=r, question_id=q, cluster=same.get(q, q)) for r, q, _ in asked]
    texts = {"q1": "Do you trust banks?", "q3": "Do you trust banks?"}
    survey = survey_rows(*({"round": r, "question_id": q, "battery": b, "question_text": texts.get(q, q)} for r, q, b in asked))
    frame = cells_of(rows, references, survey).set_index("question_id")
    assert frame["same_item"].to_dict() == {"q0": "q0", "q1": "repeated", "q2": "q2", "q3": "repeated", "q4": "q4"}
    cluster = frame["cluster"].to_dict()
    assert cluster["q0"] == cluster["q1"] == cluster["q3"]
    assert len({cluster[q] for q in ("q0", "q2", "q4")}) == 3


def test_a_survey_of_an_earlier_version_without_batteries_is_refused_with_the_remedy() -> None:
    with pytest.raises(WarehouseError, match=r"have no column battery: score those rounds again with `dtef run --from ingest"):
        cells_of([{}], survey=survey_rows({}).drop_columns(["battery"]))


def test_identify_agrees_with_a_naive_loop() -> None:
    rng = np.random.default_rng(1)
    columns = ["a", "b", "c"]
    frame = pd.DataFrame({name: pd.Categorical(rng.choice(list("xyz"), size=50)) for name in columns})
    code, rows = identify(frame, columns)
    for place in range(50):
        assert rows.iloc[code[place]].tolist() == frame.iloc[place].tolist()
    assert len(rows) == len({tuple(row) for row in frame.to_numpy().tolist()})
    assert identify(frame, [])[0].tolist() == [0] * 50
    assert len(identify(frame.iloc[:0], columns)[1]) == 0


def test_a_table_is_found_whether_registered_view_or_table() -> None:
    with duckdb.connect() as connection:
        connection.register("a", pa.table({"x": [1]}))
        connection.execute("CREATE VIEW b AS SELECT 1 AS x")
        connection.execute("CREATE TABLE c AS SELECT 1 AS x")
        assert [has_table(connection, name) for name in "abcd"] == [True, True, True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 10.5}, r"seed 10\.5: allowed"),
        ({"seed": -3}, "seed -3: allowed"),
        ({"targets": "some"}, "targets 'some': allowed: clean, all"),
        ({"metric": "bleu"}, f"metric 'bleu': allowed: {', '.join(METRICS)}"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SurveyBoardOptions(**options)


MARGINAL, LEAVE_ONE_OUT = "baseline/population-marginal", "baseline/leave-one-out-marginal"


def boarded(
    scores: list[dict[str, Any]], references: list[dict[str, Any]] | None = None, by: str = "overall", **options: Any
) -> pd.DataFrame:
    """The board of these rows (what is not given of a row is plain); without references no ceilings are known."""
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(scores))
        if references is not None:
            connection.register("reference_scores", reference_table(references))
        return board(connection, by, SurveyBoardOptions(**options))


def test_models_of_different_coverage_are_ranked_on_the_cells_they_share() -> None:
    rows = [*scores_of(MARGINAL, 0.9, 0.3), *scores_of("easy-half", 0.8), *scores_of("everything", 0.95, 0.35)]
    frame = boarded(rows).set_index("model")
    assert frame.loc["easy-half", "score"] > frame.loc["everything", "score"]
    assert list(frame["rank"]) == [1, 2, 3]
    assert list(frame.index) == ["everything", MARGINAL, "easy-half"]
    lead = frame.loc["everything", "adjusted_score"] - frame.loc["easy-half", "adjusted_score"]
    assert lead == pytest.approx(0.15), "what one is better by on the pair that both have"


def test_circular_pairs_are_left_out_unless_all_targets_are_asked_for() -> None:
    rows = [*scores_of("m", 0.5), {**scores_of("m", 0.0, 0.0)[1], "circular": True}]
    assert boarded(rows).iloc[0]["score"] == pytest.approx(0.5)
    assert boarded(rows, targets="all").iloc[0]["score"] == pytest.approx(0.25)


def test_the_latest_snapshot_of_a_cell_counts_and_base_is_the_oldest() -> None:
    rows = [*scores_of("m", 0.1, 0.3), *scores_of("m", 0.9, snapshot="2026-01-02"), *scores_of("m", 0.5, snapshot="2026-01-01")]
    assert boarded(rows).iloc[0]["score"] == pytest.approx((0.9 + 0.3) / 2)
    assert boarded(rows, snapshot="2026-01-01").iloc[0]["score"] == pytest.approx(0.5)


def test_published_policy_holds_under_every_metric() -> None:
    rows = [
        {**scores_of("m", 0.5)[0], "cosine": 0.8, "tv": 0.25},
        {"question_id": "q1", "status": "unparseable", "score": 0.0, "model": "m", "model_variant": "m"},
        {"question_id": "q2", "status": "wrong_length", "score": 0.1, "model": "m", "model_variant": "m"},
        {"question_id": "q3", "status": "error", "score": None, "model": "m", "model_variant": "m"},
    ]
    assert boarded(rows).iloc[0]["score"] == pytest.approx((0.5 + 0 + 0.1) / 3)
    assert boarded(rows, metric="cosine").iloc[0]["score"] == pytest.approx((0.8 + 0 + 0.1) / 3)
    assert boarded(rows, metric="tv").iloc[0]["score"] == pytest.approx((0.75 + 0 + 0.1) / 3)
    assert boarded(rows).iloc[0]["parse_rate"] == pytest.approx(1 / 3)


def test_a_model_with_few_segments_is_shown_but_not_ranked() -> None:
    everywhere = [
        row for model in ("m", LEAVE_ONE_OUT) for i in range(12) for row in scores_of(model, 0.5, segment=f"country:c{i}")
    ]
    frame = boarded([*everywhere, *scores_of("pilot", 0.9, segment="country:c1")]).set_index("model")
    assert frame.loc["m", "rank"] == 1
    assert pd.isna(frame.loc["pilot", "rank"])


@pytest.mark.parametrize("cells", ["own", "shared"])
def test_metric_view_says_of_each_metric_what_its_board_says_whatever_the_snapshots(cells: str) -> None:
    rng = np.random.default_rng(3)
    rows = []
    for model in (MARGINAL, "a", "b"):
        for snapshot in ("base", "2026-01-01", "2026-02-01"):
            given = {"snapshot": snapshot, **{metric: float(rng.random()) for metric in ("js", "cosine", "tv")}}
            some = scores_of(model, *(None if rng.random() < 0.4 else float(rng.random()) for _ in range(6)), **given)
            # Nothing is ordinal in one snapshot: there the latest with a value is an earlier one.
            rows += [{**row, "emd_normalized": None if snapshot == "2026-02-01" else given["js"]} for row in some]
    frame = boarded(rows, by="metric", cells=cells).set_index("model")
    for metric in ("js", "tv", "emd_normalized"):
        alone = boarded(rows, metric=metric, cells=cells, intervals=False).set_index("model").loc[frame.index]
        np.testing.assert_allclose(frame[metric], alone["score"], rtol=1e-12)
        assert frame[f"{metric}_rank"].tolist() == alone["rank"].tolist()


def test_equal_scores_share_a_rank_in_every_view_whatever_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(4)
    scores = rng.random(100).tolist()
    rows = [*scores_of("a", *scores), *scores_of("b", *scores)]
    for by, column in (("overall", "rank"), ("metric", "js_rank")):
        frame = boarded([rows[i] for i in rng.permutation(len(rows))], by=by, intervals=False)
        assert frame[column].tolist() == [1, 1]


def test_an_unknown_board_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=f"board 'planet': allowed: {', '.join((*KEYS.groups, BY_METRIC))}"):
        boarded(scores_of("m", 0.5), by="planet")


def naive_results(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[int, int, float | None]]:
    """Counts and means by a plain loop: (n_total, n_scored, mean score) per group."""
    groups: dict[tuple[Any, ...], list[float | None]] = defaultdict(list)
    for row in scores_table(rows).to_pylist():
        for targets in ("clean", "all"):
            if targets == "all" or not row["circular"]:
                groups[(row["segment"], row["snapshot"], row["model"], row["context_level"], targets)].append(row["score"])
    found = {}
    for key, scores in groups.items():
        known = [score for score in scores if score is not None]
        found[key] = (len(scores), len(known), sum(known) / len(known) if known else None)
    return found


def test_segment_results_agree_with_a_naive_loop_on_lopsided_data() -> None:
    rng = np.random.default_rng(7)
    rows = [
        {
            **scores_of("m", float(rng.random()) if rng.random() > 0.2 else None)[0],
            "model": f"m{rng.integers(3)}",
            "segment": f"country:c{rng.integers(4)}",
            "snapshot": ["base", "2026-01-01"][rng.integers(2)],
            "context_level": ["0", "all"][rng.integers(2)],
            "question_id": f"q{rng.integers(6)}",
            "draw": i,
            "circular": bool(rng.random() < 0.2),
        }
        for i in range(400)
    ]
    results = compute_segment_results(scores_table(rows), SURVEY_RESPONSES.empty_table())
    assert results.schema == SEGMENT_RESULTS
    found = {
        (row["segment"], row["snapshot"], row["model"], row["context_level"], row["targets"]): (
            row["n_total"],
            row["n_scored"],
            row["score"],
        )
        for row in results.to_pylist()
    }
    expected = naive_results(rows)
    assert found.keys() == expected.keys()
    for key, (total, scored, mean) in expected.items():
        assert found[key] == (total, scored, pytest.approx(mean, abs=1e-12) if mean is not None else None)


def in_batteries(scores: list[float], batteries: list[str]) -> pd.Series:
    """The row of a model with these scores on q0, q1, ... in one segment."""
    survey = [{"question_id": f"q{i}", "battery": battery} for i, battery in enumerate(batteries)]
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(scores_of("m", *scores)))
        connection.register("survey_responses", survey_rows(*({**row, "n": 10**8} for row in survey)))
        return board(connection, "overall", SurveyBoardOptions()).iloc[0]


def test_a_battery_of_questions_answered_alike_has_the_interval_of_one_question() -> None:
    # Batteries of six counted as six questions: 95 % intervals covered 66 %.
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.4, 0.9, size=10).tolist()
    alone = in_batteries(scores, [f"b{i}" for i in range(10)])
    six = in_batteries([score for score in scores for _ in range(6)], [f"b{i}" for i in range(10) for _ in range(6)])
    counts = ["n_questions", "n_batteries"]
    assert alone[counts].tolist() == [10, 10]
    assert six[counts].tolist() == [60, 10]
    ends = ["score", "score_low", "score_high"]
    assert six[ends].tolist() == pytest.approx(alone[ends].tolist())


_NONE = np.nan


def _adjusted(scores: list[list[float]] | np.ndarray, reference: int | None = None) -> np.ndarray:
    """Of one group: `scores` (models, cells)."""
    table = np.asarray(scores, dtype=float)
    row, cell = np.indices(table.shape)
    is_reference = np.zeros(len(table), dtype=bool)
    if reference is not None:
        is_reference[reference] = True
    able = np.ones(len(table), dtype=bool)
    return adjust_scores(row.ravel(), cell.ravel(), table.ravel(), np.zeros(len(table), dtype=int), able, is_reference)


def test_the_rows_that_share_cells_with_the_reference_are_ranked() -> None:
    nothing = [_NONE, _NONE]
    found = _adjusted([[*nothing, 0.5, 0.6], [*nothing, 0.3, 0.6], [0.5, 0.6, *nothing], [0.4, 0.7, *nothing]], reference=3)
    assert np.isnan(found[:2]).all()
    assert np.isfinite(found[2:]).all()


@given(st.integers(0, 10_000))
def test_models_asked_identical_cells_are_ordered_as_their_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((4, 8))
    scores[2:][rng.random((2, 8)) < 0.4] = _NONE
    found, means = _adjusted(scores), scores[:2].mean(axis=1)
    assert np.sign(found[0] - found[1]) == np.sign(means[0] - means[1])


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    """Model m was served by `old` and `new` in snapshot a, and by `new` in b; model n by one in each; one call failed."""
    made = duckdb.connect()
    made.execute(
        """
        CREATE TABLE responses AS SELECT * FROM (VALUES
            ('p1', 'm', 'm[t=0]', 'a', 0, 'old', 'k1'), ('p2', 'm', 'm[t=0]', 'a', 0, 'old', 'k2'), ('p2', 'm', 'm[t=0]', 'a', 0, 'old', 'k2'),
            ('p3', 'm', 'm[t=0]', 'a', 0, 'new', 'k3'), ('p4', 'm', 'm[t=0]', 'a', 0, NULL, 'k4'), ('p1', 'm', 'm[t=0]', 'b', 0, 'new', 'k5'),
            ('p1', 'n', 'n[t=0]', 'a', 0, 'one', 'k6'), ('p1', 'n', 'n[t=0]', 'b', 0, 'other', 'k7')
        ) AS given(prompt_id, model, model_variant, snapshot, draw, served_model, request_key);
        """
    )
    return made


def test_a_model_of_two_in_one_snapshot_is_reported_with_both_and_their_counts(connection: duckdb.DuckDBPyConnection) -> None:
    """The board mixed them without a word."""
    (line,) = list_mixed_served(connection, "responses")
    assert "m in snapshot a was served by 2 models" in line
    assert "old (2 responses) and new (1 response)" in line
    assert list(list_mixed_served(connection, "responses", "a")) == [line]
    assert list(list_mixed_served(connection, "responses", "b")) == []
