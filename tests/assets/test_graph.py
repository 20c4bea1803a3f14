"""The asset graph as reviewers should see it change: `graph.txt` has a line for each asset, check, job, schedule and sensor.

`python -m tests.assets.test_graph` writes it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from assets.definitions import defs
from assets.stage.partitions import build_freshness_policy
from dtef_pipeline.cli.serve_ui import PLACES_IN_THE_UI
from resources.settings import Settings
from tests.conftest import ROOT

EXPECTED = Path(__file__).with_name("graph.txt")
SIX = ["survey_responses", "blueprints", "predictions", "scores", "segment_results", "drift_checks"]
GRAPH = defs.resolve_asset_graph()


def describe_assets() -> Iterator[str]:
    for key in GRAPH.get_all_asset_keys():
        asset, name = GRAPH.get(key), key.to_user_string()
        partitions = asset.partitions_def.name if isinstance(asset.partitions_def, dg.DynamicPartitionsDefinition) else "none"
        parents = ", ".join(sorted(parent.to_user_string() for parent in asset.parent_keys)) or "none"
        made = (
            f"version {asset.code_version}, {' and '.join(sorted(asset.kinds))}, {asset.group_name}, {', '.join(asset.owners)}"
        )
        yield f"asset {name}: {made}; partitions: {partitions}; from: {parents}"
        for check in asset.check_keys:
            yield f"check {name}: {check.name}{', blocking' if GRAPH.get(check).blocking else ''}"


def describe_starters() -> Iterator[str]:
    for job in defs.resolve_all_job_defs():
        if not job.name.startswith("__"):
            yield f"job {job.name}: {', '.join(sorted(key.to_user_string() for key in job.asset_layer.executable_asset_keys))}"
    for schedule in defs.schedules or []:
        yield f"schedule {schedule.name}: {schedule.cron_schedule}, {schedule.job_name}, {schedule.default_status.value}"
    for sensor in defs.sensors or []:
        names = [job.name for job in sensor.jobs] if sensor.has_jobs else [sensor.job_name] if sensor.targets else []
        jobs = ", ".join(names) or "no job"
        yield f"sensor {sensor.name}: {jobs}, every {sensor.minimum_interval_seconds} s, {sensor.default_status.value}"


def test_the_graph_is_as_it_is_written_down() -> None:
    assert sorted([*describe_assets(), *describe_starters()]) == EXPECTED.read_text(encoding="utf-8").splitlines()


def test_definitions_load_from_the_module_that_workspaces_and_services_name() -> None:
    dg.Definitions.validate_loadable(defs)
    for file in ("workspace.yaml", "deploy/dtef-code.service", "deploy/kubernetes/code.yaml"):
        assert "assets.definitions" in (ROOT / file).read_text(encoding="utf-8"), file


def test_jobs_run_the_checks_of_their_assets() -> None:
    job = defs.resolve_job_def("survey_pipeline")
    selected = set(job.asset_layer.asset_graph.asset_check_keys)
    assert selected == {key for key in GRAPH.asset_check_keys if key.asset_key.to_user_string() in SIX}


def test_the_six_stages_share_one_partition_space_and_are_one_run_of_a_backfill() -> None:
    stages = [GRAPH.get(dg.AssetKey(name)) for name in SIX]
    assert len({id(stage.partitions_def) for stage in stages}) == 1
    assert {stage.backfill_policy for stage in stages} == {dg.BackfillPolicy.single_run()}
    for stage in stages:
        assert {type(GRAPH.get_partition_mapping(stage.key, parent)) for parent in stage.parent_keys} <= {
            dg.IdentityPartitionMapping
        }


def test_every_asset_check_and_job_has_a_description() -> None:
    assert [key for key in GRAPH.get_all_asset_keys() if not GRAPH.get(key).description] == []
    assert [key.name for key in GRAPH.asset_check_keys if not GRAPH.get(key).description] == []
    assert [job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__") and not job.description] == []
    assert [s.name for s in [*(defs.schedules or []), *(defs.sensors or [])] if not s.description] == []


@pytest.mark.parametrize(
    "name",
    [*SIX, "survey_drift", "rubric_blueprints", "rubric_judgements", "rubric_board", "rubric_agreement", "rubric_drift"],
)
def test_every_stage_shows_the_columns_of_its_table(name: str) -> None:
    from resources.warehouse import TABLES

    schema = GRAPH.get(dg.AssetKey(name)).metadata["dagster/column_schema"]
    columns = getattr(schema, "schema", schema).columns
    table = TABLES["drift" if name in ("survey_drift", "rubric_drift") else name].schema
    assert table is not None
    assert [(column.name, column.type) for column in columns] == [
        (field.name, str(field.type).replace("item: ", "")) for field in table
    ]
    assert all(column.description for column in columns)


def test_dtef_ui_names_the_groups_of_all_families() -> None:
    """It named those of surveys alone."""
    groups = {spec.group_name for spec in defs.resolve_all_asset_specs()}
    assert {place.rpartition("/")[2] for place in PLACES_IN_THE_UI.values()} == {*groups, "runs"}


def test_nightly_tables_are_late_after_one_missed_night_where_there_is_a_panel() -> None:
    assert build_freshness_policy(Settings.read_environment({})) is None
    policy = build_freshness_policy(Settings.read_environment({"DTEF_PANEL": "panel.yaml"}))
    assert policy == dg.FreshnessPolicy.time_window(warn_window=timedelta(hours=36), fail_window=timedelta(hours=60))


def test_unknown_configuration_is_refused() -> None:
    for name in SIX[1:5]:
        job = defs.resolve_implicit_global_asset_job_def()
        config = {"ops": {name: {"config": {"modle": "x"}}}}
        with pytest.raises(dg.DagsterInvalidConfigError, match="modle"):
            dg.validate_run_config(job, config)


if __name__ == "__main__":
    EXPECTED.write_text("\n".join(sorted([*describe_assets(), *describe_starters()])) + "\n", encoding="utf-8")
