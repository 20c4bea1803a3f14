"""Ingest: reference scores beside the survey, written, checked before the next stage, not needed where they are not there yet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import assets.survey.stages
from assets.survey.rounds import register_round
from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.completeness import MISSING_QUESTIONS
from resources.sources import Source, Sources
from tests.assets.conftest import Pipeline, write_survey


def test_ingest_writes_them_beside_the_survey_and_says_the_mean_ceiling(pipeline: Pipeline) -> None:
    outcome = pipeline.run(["survey_responses"])
    for event in pipeline.materializations(outcome):
        round_id, segment = event.partition.split("/")
        survey, found = (
            pipeline.house.read(t, round=round_id, segment=segment) for t in ("survey_responses", "reference_scores")
        )
        assert found.select(["question_id", "n"]).equals(survey.select(["question_id", "n"]))
        assert event.metadata["mean_ceiling"].value == pytest.approx(pc.mean(pc.struct_field(found["ceiling"], "js")).as_py())
        assert event.metadata["ceiling_seed"].value == assets.survey.stages.CEILING_SEED
    assert pipeline.checks(outcome)["every_pair_has_reference_scores"] is True


def above_one(rows: pa.Table) -> pa.Table:
    listed = rows.to_pylist()
    listed[0]["ceiling"]["js"] = 1.5
    return pa.Table.from_pylist(listed, schema=rows.schema)


def test_a_pair_without_a_good_ceiling_stops_the_run_after_ingest(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    good = assets.survey.stages.compute_reference_scores
    monkeypatch.setattr(
        assets.survey.stages, "compute_reference_scores", lambda responses, **given: above_one(good(responses, **given))
    )
    outcome = pipeline.run(["survey_responses", "blueprints"])
    assert pipeline.checks(outcome)["every_pair_has_reference_scores"] is False
    assert {event.asset_key.to_user_string() for event in pipeline.materializations(outcome)} == {"survey_responses"}


def test_a_file_that_changed_after_it_was_registered_takes_nothing_away(done: Pipeline) -> None:
    """`dtef run --from ingest` of a file that was cut since wrote the cut one over the whole one."""
    file = Path(read_source(done, "T1").path)
    text, before = file.read_text(encoding="utf-8"), done.bytes()
    file.write_text("".join(line for line in text.splitlines(True) if "number 2?" not in line), encoding="utf-8")
    t1 = [key for key in done.keys if key.startswith("T1/")]
    outcome = done.run(["survey_responses"], t1)
    assert "round T1" in outcome.failures[0]
    assert "1 question dropped (q2)" in outcome.failures[0]
    assert done.bytes() == before


def test_what_may_be_missing_is_kept_with_the_round(pipeline: Pipeline, state: Path) -> None:
    """The sensor and the stage read a round by the options that someone gave when it was ingested by hand."""
    path = write_survey(state / "cut.csv", ["C1"])
    lines = path.read_text(encoding="utf-8").splitlines(True)
    path.write_text("".join(line for line in lines if "number 2?" not in line or ",Yes," in line), encoding="utf-8")
    cut, sources = read_survey(path), Sources(pipeline.house, read_survey)
    with pytest.raises(SurveyError, match="options are missing: 1 question: Question number 2"):
        register_round(pipeline.instance, sources, cut, path, min_n=10)
    made = register_round(pipeline.instance, sources, cut, path, min_n=10, allowed=[MISSING_QUESTIONS])
    assert made.source.allowed == read_source(pipeline, "C1").allowed == (MISSING_QUESTIONS,)
    assert pipeline.run(["survey_responses"], made.keys).failures == ()
    findings = pipeline.house.read("survey_findings", round="C1").to_pylist()
    assert [(f["level"], f["items"]) for f in findings if f["code"] == MISSING_QUESTIONS] == [
        ("warning", ["Question number 2?"])
    ]


def read_source(pipeline: Pipeline, round_id: str) -> Source:
    source = Sources(pipeline.house, read_survey).get(round_id)
    assert source
    return source
