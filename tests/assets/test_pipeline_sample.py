"""The shipped sample through all stages and roll-ups: what stands in the tables, the boards and the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.engine.roll_up_names import BOARD_NAMES
from assets.launch import STAGE_NAMES, LaunchResult
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.statistics.seed import SEED
from resources.warehouse import Warehouse
from tests.assets.conftest import GREEN, Pipeline
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pipeline, LaunchResult, LaunchResult]]:
    """Both shipped rounds, ingested and run once."""
    folder = tmp_path_factory.mktemp("sample")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DTEF_WAREHOUSE", str(folder / "warehouse"))
        patch.setenv("DTEF_RESPONSES", str(folder / "responses.sqlite"))
        patch.delenv("DTEF_MODELS", raising=False)
        with dg.DagsterInstance.ephemeral(tempdir=str(folder / "dagster")) as instance:
            pipeline = Pipeline(instance, Warehouse(folder / "warehouse"))
            for name in ("S2", "S1"):
                pipeline.register(ROOT / "data" / "rounds" / name)
            stages = pipeline.run(predictions={"models": ["baseline/previous-round"], "questions": 2})
            yield pipeline, stages, pipeline.roll_up()


class TestSample:
    def test_everything_is_one_run_and_one_for_the_roll_ups(self, ran: tuple[Pipeline, LaunchResult, LaunchResult]) -> None:
        pipeline, stages, boards = ran
        assert stages.failures == boards.failures == ()
        runs = pipeline.instance.get_runs()
        assert {run.run_id for run in runs} == {*stages.run_ids, *boards.run_ids}
        assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 2

    def test_every_partition_of_every_stage_is_green(self, ran: tuple[Pipeline, LaunchResult, LaunchResult]) -> None:
        pipeline, stages, _ = ran
        assert len(pipeline.keys) == 52
        for stage in STAGE_NAMES:
            assert set(pipeline.status(stage).values()) == {GREEN}, stage
        assert len(pipeline.materializations(stages)) == 6 * 52

    def test_each_partition_says_how_many_rows_it_has_and_shows_some(
        self, ran: tuple[Pipeline, LaunchResult, LaunchResult]
    ) -> None:
        pipeline, stages, _ = ran
        counts: dict[tuple[str, str], int] = {}
        for event in pipeline.materializations(stages):
            counts[event.asset_key.to_user_string(), event.partition] = event.metadata["dagster/row_count"].value
            assert "| --- |" in event.metadata["preview"].value
        for (table, key), count in counts.items():
            round_id, segment = split_partition_key(key)
            assert count == len(pipeline.house.read(table, round=round_id, segment=segment)), (table, key)
            # Only baselines were asked, and they do not drift.
            assert (count > 0) is (table != "drift_checks"), (table, key)

    def test_all_checks_passed(self, ran: tuple[Pipeline, LaunchResult, LaunchResult]) -> None:
        pipeline, stages, _ = ran
        found = pipeline.checks(stages)
        assert len(found) == 15
        assert [name for name, passed in found.items() if not passed] == []

    def test_predictions_have_one_row_for_each_prompt_model_and_level(
        self, ran: tuple[Pipeline, LaunchResult, LaunchResult]
    ) -> None:
        with ran[0].house.connect() as connection:
            rows = connection.execute("SELECT count(*), count(DISTINCT request_key) FROM predictions").fetchone()
            missing = connection.execute("SELECT DISTINCT model, round FROM scores WHERE status = 'missing'").fetchall()
            (zeros,) = (
                connection.execute("SELECT count(*) FROM scores WHERE status = 'missing' AND score IS NOT NULL").fetchone()
                or ()
            )
        # One segment has too few answers to one of the two questions.
        assert rows == ((52 * 2 - 1) * 3, (52 * 2 - 1) * 3)
        assert ("baseline/previous-round", "S1") in missing
        assert {model for model, _ in missing} == {"baseline/previous-round"}
        assert zeros == 0

    def test_boards_and_report_are_there_for_other_tools(self, ran: tuple[Pipeline, LaunchResult, LaunchResult]) -> None:
        pipeline, _, boards = ran
        root = Path(pipeline.house.root)
        assert "Surveys" in (root / "report" / "index.html").read_text(encoding="utf-8")
        assert (root / "dtef.duckdb").is_file()
        board = pipeline.house.read("leaderboard").to_pandas()
        assert set(board["targets"]) == {"clean", "all"}
        assert set(board["model"]) == {"baseline/uniform", "baseline/population-marginal", "baseline/previous-round"}
        linked = pipeline.house.read("question_batteries").to_pandas()
        asked = pipeline.house.read("scores", columns=["round", "question_id", "score"]).to_pandas().dropna()
        behind = asked.merge(linked, on=["round", "question_id"])["linked_battery"].nunique()
        assert board["n_batteries"].max() == behind < len(linked)
        (of_board,) = (e for e in pipeline.materializations(boards) if e.asset_key == dg.AssetKey("leaderboard"))
        assert of_board.metadata["dagster/row_count"].value == len(board)

    def test_what_boards_show_is_tested_with_a_recorded_seed(self, ran: tuple[Pipeline, LaunchResult, LaunchResult]) -> None:
        pipeline, _, boards = ran
        said = {event.asset_key.to_user_string(): event.metadata for event in pipeline.materializations(boards)}
        for name in BOARD_NAMES:
            assert (said[name]["seed"].value, said[name]["intervals"].value) == (SEED, True)
        board = pipeline.house.read("leaderboard").to_pandas()
        scored = board[board["n_pairs"] > 0]
        assert scored["n_questions"].max() < MIN_CLUSTERS
        assert scored["score_low"].isna().all()
        assert scored["note"].str.contains("at least 5 are needed").all()
        compared = pipeline.house.read("comparisons").to_pandas()
        assert set(compared["verdict"]) <= {"better", "no clear difference", "not tested"}
        assert len(compared) > 0
        assert {"country", "gender"} <= set(pipeline.house.read("segment_gaps")["attribute"].to_pylist())
        reliability = pipeline.house.read("reliability").to_pandas()
        assert reliability["icc"].isna().all(), "every prompt was asked once"
