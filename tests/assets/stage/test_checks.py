"""A check has one state for its asset, which is of every partition there is: a good one that is made later hides none that is broken."""

from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import assets.survey.stages
from dtef_pipeline.survey.observations import ObservedRound
from tests.assets.conftest import Pipeline

BAD, OTHER = "T1/country:kenya", "T1/country:chile"
STAGES = ["survey_responses", "blueprints"]


def evaluations(pipeline: Pipeline, check: str, run_ids: tuple[str, ...]) -> list[Any]:
    events = [
        entry.dagster_event.asset_check_evaluation_data
        for run_id in run_ids
        for entry in pipeline.instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        if entry.dagster_event
    ]
    return [event for event in events if event.check_name == check]


def test_a_broken_partition_holds_up_its_own_run_and_stays_red_in_those_of_others(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = assets.survey.stages.observe

    def spoiled(*args: Any, **kwargs: Any) -> ObservedRound:
        observed = good(*args, **kwargs)
        rows = observed.responses.to_pylist()
        for row in rows:
            if (row["round"], row["segment"]) == tuple(BAD.split("/", 1)):
                row["observed"] = [0.4, 0.3, 0.2]
        return ObservedRound(pa.Table.from_pylist(rows, observed.responses.schema), observed.quarantine, observed.findings)

    with monkeypatch.context() as patch:
        patch.setattr(assets.survey.stages, "observe", spoiled)
        whole = pipeline.run(STAGES)
    (found,) = evaluations(pipeline, "distributions_sum_to_one", whole.run_ids)[:1]
    assert (found.passed, found.severity, found.blocking) == (False, dg.AssetCheckSeverity.ERROR, True)
    assert found.metadata["partitions"].value == [BAD]
    assert "MATERIALIZED" not in pipeline.status("blueprints").values()

    other = pipeline.run(STAGES, keys=[OTHER])
    (found,) = evaluations(pipeline, "distributions_sum_to_one", other.run_ids)
    assert (found.passed, found.severity, found.blocking) == (False, dg.AssetCheckSeverity.ERROR, False)
    assert found.metadata["partitions"].value == [BAD]
    assert other.failures == ()
    assert pipeline.status("blueprints")[OTHER] == "MATERIALIZED"

    mended = pipeline.run(STAGES[:1], keys=[BAD])
    assert pipeline.checks(mended)["distributions_sum_to_one"] is True


def test_a_partition_that_cannot_be_read_turns_the_check_red_and_holds_up_no_other(done: Pipeline) -> None:
    path = next(Path(file) for file in done.house.files("scores") if "kenya" in file)
    path.write_bytes(path.read_bytes()[:500])
    other = done.run(["scores"], keys=[OTHER])
    (found,) = evaluations(done, "scores_are_unique", other.run_ids)
    assert (found.passed, found.blocking) == (False, False)
    assert found.metadata["partitions"].value == [BAD]
    assert str(path) in found.metadata["first"].value[0]
    assert other.failures == ()

    assert done.checks(done.run(["scores"], keys=[BAD]))["scores_are_unique"] is True
