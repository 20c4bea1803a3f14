"""Views: boards with what belongs beside them, the tables of statistics, and segments of people who gave no answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dtef_pipeline.boards.boards import load_evidence
from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.cli.survey.survey_board import add_reasons, build_layout, describe_non_answers, prepare_rows
from dtef_pipeline.cli.terminal import print_rows
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import TABLES
from dtef_pipeline.report.terminal import format_column_intervals, heading
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.board_rows import compute_board
from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS, CONSISTENCY, MEANINGS, METRIC_RANKS, list_subject_columns
from dtef_pipeline.survey.boards.survey_boards import GROUPED, PUBLISHED
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.scoring.references import compute_reference_scores
from tests.made.scores import scores_table, survey_rows
from tests.made.world_tables import scores
from tests.made.worlds import Design, World

OPTIONS = SurveyBoardOptions()
SEGMENTS = tuple(f"country:{name}" for name in "abcdef")
QUESTIONS = 12
WHOLE = {POPULATION_MARGINAL: 0.9, "good": 0.8, "poor": 0.5}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Three models on 72 pairs at two levels, two draws; `partly` answered 24 of the pairs, `mute` nothing readable."""
    generator = np.random.default_rng(5)
    scored: list[dict[str, Any]] = []
    asked: list[dict[str, Any]] = []
    for place, segment in enumerate(SEGMENTS):
        for question in range(QUESTIONS):
            at = {"segment": segment, "question_id": f"q{question:02}", "value": segment}
            asked.append({**at, "question_text": f"Question {question}?", "n": 20 + 30 * place})
            for level, draw in product(("0", "5"), (0, 1)):
                row = {**at, "context_level": level, "draw": draw}
                said = {model: float(np.clip(mean + 0.05 * generator.normal(), 0, 1)) for model, mean in WHOLE.items()}
                for model, score in {**said, **({"partly": 0.7} if question < 4 else {})}.items():
                    scored.append({**row, "model": model, "model_variant": model, "score": score, "predicted": [0.5, 0.3, 0.2]})
                scored.append({**row, "model": "mute", "model_variant": "mute", "status": "unparseable", "score": 0.0})
    survey = survey_rows(*asked)
    references = compute_reference_scores(survey, draws=20)
    with duckdb.connect() as made:
        for name, rows in {"scores": scores_table(scored), "survey_responses": survey, "reference_scores": references}.items():
            made.register(f"{name}_rows", rows)
            made.execute(f"CREATE VIEW {name} AS FROM {name}_rows")
        yield made


@pytest.fixture(scope="module")
def frames(connection: duckdb.DuckDBPyConnection) -> dict[str, pd.DataFrame]:
    """Every stored view of the same evidence, made once."""
    evidence = load_evidence(connection, OPTIONS)
    return {stored.name: compute_board(connection, stored.name, OPTIONS, evidence) for stored in PUBLISHED}


def board(frames: dict[str, pd.DataFrame], by: str = "overall") -> pd.DataFrame:
    frame = frames[by]
    return frame[frame["context_level"] == "0"].set_index("model") if "context_level" in frame else frame.set_index("model")


def test_every_view_is_stored_under_its_table() -> None:
    assert {view.table for view in PUBLISHED} <= set(TABLES)
    assert {view.table for view in PUBLISHED if TABLES[view.table].schema is None} == set(MEANINGS)


def test_an_unknown_view_is_refused_with_those_there_are(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(ConfigError, match=r"board 'luck': allowed: overall, round,.* reliability"):
        compute_board(connection, "luck", OPTIONS)


OLD = [("overall", True, False), ("metric", False, False), ("reliability", True, False), ("consistency", True, True)]
# Of files of two versions, views that need nothing of the lacking columns are right as they are.


@pytest.mark.parametrize(("by", "intervals", "mixed"), OLD)
def test_scores_of_an_earlier_version_are_stated_to_be_with_the_remedy(
    tmp_path: Path, by: str, intervals: bool, mixed: bool
) -> None:
    # They ended in DuckDB's own error and a traceback.
    rows = scores_table([{}])
    pq.write_table(rows.drop_columns(["l2_corrected", "rps_corrected"]), tmp_path / "b.parquet")
    if mixed:
        pq.write_table(rows, tmp_path / "a.parquet")
    with duckdb.connect() as made:
        made.execute(f"CREATE VIEW scores AS SELECT * FROM read_parquet('{tmp_path}/*.parquet')")
        with pytest.raises(WarehouseError, match="made by an earlier version and have no column l2_corrected"):
            compute_board(made, by, SurveyBoardOptions(intervals=intervals))


def test_every_view_has_rows_and_is_the_same_without_evidence(
    connection: duckdb.DuckDBPyConnection, frames: dict[str, pd.DataFrame]
) -> None:
    assert all(map(len, frames.values()))
    for by in ("overall", "consistency", "context"):
        pd.testing.assert_frame_equal(frames[by], compute_board(connection, by, OPTIONS))


def test_ranges_of_ranks_stand_on_the_overall_board(
    connection: duckdb.DuckDBPyConnection, frames: dict[str, pd.DataFrame]
) -> None:
    rows = board(frames)
    assert rows["rank_low"].dropna().to_dict() == {POPULATION_MARGINAL: 1, "good": 2, "poor": 3, "mute": 4}
    assert "no interval: 4 batteries, at least 5 are needed" in rows["note"]["partly"]
    assert (rows["rank_low"] <= rows["rank"]).all()
    assert (rows["rank"] <= rows["rank_high"]).all()
    assert "rank_low" not in compute_board(connection, "overall", SurveyBoardOptions(intervals=False))
    assert "rank_low" not in frames["attribute"]


def test_a_row_says_what_its_reader_should_know(frames: dict[str, pd.DataFrame]) -> None:
    notes = board(frames)["note"]
    assert notes[POPULATION_MARGINAL].startswith("contains the segments' own answers")
    assert notes["good"] == ""
    assert "no answer could be read" in notes["mute"]
    assert "33%" in notes["partly"]


def test_consistency_is_ranked_by_what_sample_sizes_do_not_explain(frames: dict[str, pd.DataFrame]) -> None:
    found = board(frames, "consistency")
    known = found[found["segment_sd_true"].notna()]
    assert len(known) > 1
    assert known["segment_sd_true"].is_monotonic_increasing
    assert known["rank"].tolist() == known["segment_sd_true"].rank(method="min").astype(int).tolist()


def test_a_model_that_cannot_be_read_is_neither_reliable_nor_steady(frames: dict[str, pd.DataFrame]) -> None:
    again = board(frames, "reliability").loc["mute"]
    assert np.isnan(again["icc"])
    assert again["note"].startswith("no answer could be read")
    assert board(frames, "context").loc["mute", "verdict"] == "undecided"


def test_boards_are_described_column_by_column_and_no_column_is_described_that_none_has(
    frames: dict[str, pd.DataFrame],
) -> None:
    boards_of = dict.fromkeys(GROUPED, BOARD_COLUMNS)
    boards_of |= {"consistency": CONSISTENCY, "metric": METRIC_RANKS}
    found: dict[int, set[str]] = {}
    for by, described in boards_of.items():
        found.setdefault(id(described), {"targets"}).update(frames[by].columns)
    for described in (BOARD_COLUMNS, CONSISTENCY, METRIC_RANKS):
        assert found[id(described)] == set(described)


@pytest.mark.parametrize("by", [stored.name for stored in PUBLISHED])
def test_a_narrow_terminal_shows_what_a_view_is_about(
    frames: dict[str, pd.DataFrame], by: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Settings took the room of ranks, intervals, verdicts and metrics, which were left out."""
    frame = frames[by].assign(condition="distribution/attribute-label")
    if "question_id" in frame:
        frame["question"] = "Will it be well?"
    for name in ("model", "model_variant", "other_model"):
        if name in frame:
            frame[name] = "baseline/leave-one-out-" + frame[name].astype(str)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    both = prepare_rows(by, pd.concat([frame, frame.assign(condition="shift/attribute-label")]))
    layout = build_layout(by, both)
    intervals = format_column_intervals(both, layout.estimate, layout.ends) if layout.estimate else []
    for width in (80, 140):
        monkeypatch.setenv("COLUMNS", str(width))
        print_rows(layout, both, "table", ())
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= width
        assert all(cell in shown for cell in intervals)
        missing = shown.partition("not shown: ")[2].replace("\n", " ").partition(";")[0].split(", ")
        kept = [name for name in list_subject_columns(by) if name in frame]
        assert not {heading(name) for name in kept} & set(missing)


def test_the_board_of_several_context_levels_is_those_of_each(
    connection: duckdb.DuckDBPyConnection, frames: dict[str, pd.DataFrame]
) -> None:
    together = frames["overall"]
    each = [compute_board(connection, "overall", replace(OPTIONS, context_levels=(level,))) for level in ("0", "5")]
    pd.testing.assert_frame_equal(together, pd.concat(each, ignore_index=True), check_dtype=False, rtol=1e-9)


def test_a_model_without_a_score_says_the_most_frequent_reason() -> None:
    row = {"model_variant": "m", "context_level": "0", "condition": "plain", "n_pairs": 0, "note": "no rank: no score"}
    frame = pd.DataFrame([row, {**row, "model_variant": "n"}, {**row, "n_pairs": 3}])
    scores = pd.DataFrame([{**row, "round": "S1", "snapshot": "base", "reason": reason} for reason in ("", "x", "y", "y")])
    with duckdb.connect() as stored:
        stored.register("scores", scores)
        assert add_reasons(stored, frame, OPTIONS)["note"].tolist() == [
            "no score: y",
            "no score: nothing that counts here was asked",
            "no rank: no score",
        ]


SILENT, ANSWERED = "country:refused", "country:country2"


@pytest.fixture
def tables() -> duckdb.DuckDBPyConnection:
    world = World(Design((1,) * 4, countries=(20, 20, 30)))
    rows = scores(world, world.survey(np.random.default_rng(1)))
    place = rows.schema.get_field_index("segment")
    segments = [SILENT if name == ANSWERED else name for name in rows["segment"].to_pylist()]
    found = duckdb.connect()
    found.register(
        "scores", rows.set_column(place, rows.schema.field(place), pa.array(segments, rows.schema.field(place).type))
    )
    assert pc.any(pc.equal(pa.array(segments), SILENT)).as_py()
    return found


def test_a_board_leaves_them_out_and_says_how_many(tables: duckdb.DuckDBPyConnection) -> None:
    assert SILENT not in set(load_cells(tables, SurveyBoardOptions())["segment"])
    (line,) = describe_non_answers(tables, SurveyBoardOptions())
    assert "1 segment" in line
    assert SILENT in line


@pytest.mark.parametrize("options", [SurveyBoardOptions(non_answers=True), SurveyBoardOptions(segments=(SILENT,))])
def test_who_asks_for_them_gets_them(tables: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> None:
    assert SILENT in set(load_cells(tables, options)["segment"])
    assert list(describe_non_answers(tables, options)) == []
