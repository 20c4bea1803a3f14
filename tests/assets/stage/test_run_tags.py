"""Every run says what it is about, whoever started it: a click takes no tags of a job."""

import dagster as dg

from assets.definitions import defs
from assets.stage.partitions import build_range_tags
from tests.assets.conftest import Pipeline


def test_a_run_without_a_job_is_tagged_with_rounds_snapshot_and_models(pipeline: Pipeline) -> None:
    keys = [key for key in pipeline.keys if key.startswith("T1/")]
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=pipeline.instance,
        asset_selection=[dg.AssetKey(name) for name in ("survey_responses", "blueprints", "predictions", "scores")],
        run_config={"ops": {"predictions": {"config": {"models": ["baseline/uniform", "baseline/shuffled-segment"]}}}},
        tags=build_range_tags(keys),
    )
    run = pipeline.instance.get_run_by_id(result.run_id)
    assert run is not None
    names = ("dtef/rounds", "dtef/snapshot", "dtef/models")
    assert [run.tags.get(name) for name in names] == ["T1", "base", "baseline/uniform, baseline/shuffled-segment"]
    made = [
        event.materialization for event in result.get_asset_materialization_events() if event.asset_key == dg.AssetKey("scores")
    ]
    assert all("mean_score_baselines" in one.metadata and "mean_score" not in one.metadata for one in made)
    steps = {event.step_key for event in result.all_events if event.step_key}
    assert {"scores_are_unique", "predictions_are_unique"} <= steps
    assert [step for step in steps if "scores_scores" in step or "predictions_predictions" in step] == []
