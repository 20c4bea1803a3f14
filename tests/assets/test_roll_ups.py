"""The roll-ups over the finished stages of two rounds: boards, their metadata and the report; a file that cannot be read is skipped."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest

from assets.engine.roll_up_names import BOARD_NAMES
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.statistics.seed import SEED
from tests.assets.conftest import Pipeline


def test_boards_and_report_are_made_of_all_files_that_can_be_read(done: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtef_pipeline.site.build.static_files", lambda: ())  # the chart library alone takes seconds
    broken = done.file("scores", done.keys[0], snapshot="base")
    broken.write_bytes(broken.read_bytes()[:100])
    made = done.roll_up()
    assert made.failures == ()
    assert str(broken) in dict(made.skipped)
    root = Path(done.house.root)
    assert "Surveys" in (root / "report" / "index.html").read_text(encoding="utf-8")
    assert (root / "dtef.duckdb").is_file()

    said = {event.asset_key.to_user_string(): event.metadata for event in done.materializations(made)}
    for name in BOARD_NAMES:
        assert (said[name]["seed"].value, said[name]["intervals"].value) == (SEED, True)
    board = done.house.read("leaderboard").to_pandas()
    assert said["leaderboard"]["dagster/row_count"].value == len(board)
    assert set(board["targets"]) == {"clean", "all"}
    assert set(board["model"]) == {"baseline/uniform", "baseline/population-marginal"}
    # Questions of both rounds with one text are one battery.
    assert board["n_batteries"].max() == 3 < MIN_CLUSTERS
    assert board["score_low"].isna().all()
    assert board["note"].str.contains("at least 5 are needed").all()
    compared = done.house.read("comparisons").to_pandas()
    assert set(compared["verdict"]) <= {"better", "no clear difference", "not tested"}
    assert len(compared) > 0
    assert set(done.house.read("segment_gaps")["attribute"].to_pylist()) == {"country"}
    assert done.house.read("reliability").to_pandas()["icc"].isna().all(), "every prompt was asked once"


def test_each_partition_says_how_many_rows_it_has_and_its_run_what_it_is_about(done: Pipeline) -> None:
    outcome = done.run(["predictions", "scores"], keys=done.keys[:1])
    events = done.materializations(outcome)
    assert {event.asset_key for event in events} == {dg.AssetKey("predictions"), dg.AssetKey("scores")}
    round_id, segment = done.keys[0].split("/")
    for event in events:
        rows = done.house.read(event.asset_key.to_user_string(), round=round_id, segment=segment)
        assert event.metadata["dagster/row_count"].value == len(rows) > 0
        assert re.search(r"\| --- \|", event.metadata["preview"].value)
    assert "mean_score_baselines" in events[-1].metadata
    assert "mean_score" not in events[-1].metadata
    run = done.instance.get_run_by_id(*outcome.run_ids)
    assert run
    names = ("dtef/rounds", "dtef/snapshot", "dtef/models")
    assert [run.tags.get(name) for name in names] == ["T1", "base", "baseline/uniform"]
    steps = {entry.step_key for entry in done.instance.all_logs(run.run_id)}
    assert steps - {None} == {"predictions", "scores", *done.checks(outcome)}
