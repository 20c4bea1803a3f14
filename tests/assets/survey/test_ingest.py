"""Reference scores beside the survey: written by ingest, checked before the next stage, not needed where they are not there yet."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import assets.survey.ingest
from tests.assets.conftest import Pipeline


def test_ingest_writes_them_beside_the_survey_and_says_the_mean_ceiling(pipeline: Pipeline) -> None:
    outcome = pipeline.run(["survey_responses"])
    for event in pipeline.materializations(outcome):
        round_id, segment = event.partition.split("/")
        survey, found = (
            pipeline.house.read(t, round=round_id, segment=segment) for t in ("survey_responses", "reference_scores")
        )
        assert found.select(["question_id", "n"]).equals(survey.select(["question_id", "n"]))
        assert event.metadata["mean_ceiling"].value == pytest.approx(pc.mean(pc.struct_field(found["ceiling"], "js")).as_py())
        assert event.metadata["ceiling_seed"].value == assets.survey.ingest.CEILING_SEED
    assert pipeline.checks(outcome)["every_pair_has_reference_scores"] is True


def without_first(rows: pa.Table) -> pa.Table:
    return rows.slice(1)


def above_one(rows: pa.Table) -> pa.Table:
    listed = rows.to_pylist()
    listed[0]["ceiling"]["js"] = 1.5
    return pa.Table.from_pylist(listed, schema=rows.schema)


def of_other_n(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index("n"), "n", pc.add(rows["n"], pa.scalar(1, pa.int32())))


@pytest.mark.parametrize("spoil", [without_first, above_one, of_other_n])
def test_a_pair_without_a_good_ceiling_stops_the_run_after_ingest(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[pa.Table], pa.Table]
) -> None:
    good = assets.survey.ingest.reference_scores
    monkeypatch.setattr(assets.survey.ingest, "reference_scores", lambda responses: spoil(good(responses)))
    outcome = pipeline.run(["survey_responses", "blueprints"])
    assert pipeline.checks(outcome)["every_pair_has_reference_scores"] is False
    assert {event.asset_key.to_user_string() for event in pipeline.materializations(outcome)} == {"survey_responses"}


def test_a_round_ingested_before_there_were_any_is_scored_and_ranked_all_the_same(done: Pipeline) -> None:
    shutil.rmtree(Path(done.house.root) / "reference_scores")
    assert done.run(["scores", "segment_results"]).failures == ()
    assert done.roll_up().failures == ()
    assert done.house.read("leaderboard")["score"].null_count == 0
