"""The asset graph as reviewers should see it change: a new edge, owner or code version is a change of these literals."""

from __future__ import annotations

import dagster as dg
import pytest
import yaml

from assets.definitions import defs
from dtef_pipeline.cli.serving.serve_ui import PLACES_IN_THE_UI
from tests.conftest import ROOT

TEAM = ["team:data-engineering"]
BOARDS = ["leaderboard", "breakdowns", "comparisons", "responsiveness", "segment_gaps", "reliability"]
RUBRIC_ROLLED = [
    "rubric_board",
    "rubric_corrected",
    "rubric_champions",
    "rubric_agreement",
    "rubric_validity",
    "rubric_drift",
    "rubric_costs",
]
# key: (deps, group, owners, kinds, code version, partitions)
ASSETS = {
    "survey_files": ([], "survey", TEAM, ["file"], None, "round_segment"),
    "survey_responses": (["survey_files"], "survey", TEAM, ["parquet"], "11", "round_segment"),
    "blueprints": (["survey_responses"], "survey", TEAM, ["parquet"], "2", "round_segment"),
    "predictions": (["blueprints"], "survey", TEAM, ["litellm", "parquet"], "4", "round_segment"),
    "scores": (["predictions"], "survey", TEAM, ["parquet"], "5", "round_segment"),
    "segment_results": (["scores"], "survey", TEAM, ["parquet"], "6", "round_segment"),
    "drift_checks": (["segment_results"], "survey", TEAM, ["parquet"], "14", "round_segment"),
    "leaderboard": (["segment_results"], "boards", TEAM, ["duckdb", "parquet"], "11", None),
    "breakdowns": (["segment_results"], "boards", TEAM, ["duckdb", "parquet"], "12", None),
    "survey_costs": (["predictions"], "boards", TEAM, ["duckdb", "parquet"], "3", None),
    "games_costs": (["decision_answers", "episode_scores"], "games", TEAM, ["duckdb", "parquet"], "3", None),
    "comparisons": (["segment_results"], "boards", TEAM, ["duckdb", "parquet"], "7", None),
    "responsiveness": (["segment_results"], "boards", TEAM, ["duckdb", "parquet"], "6", None),
    "segment_gaps": (["segment_results"], "boards", TEAM, ["duckdb", "parquet"], "1", None),
    "reliability": (["segment_results"], "boards", TEAM, ["duckdb", "parquet"], "5", None),
    "survey_drift": (["drift_checks"], "boards", TEAM, ["duckdb", "parquet"], "11", None),
    "report": (
        sorted(
            [
                *(*BOARDS, "survey_costs", "survey_drift", "preference_scores", *RUBRIC_ROLLED),
                *("qa_board", "qa_costs", "qa_drift", "qa_validity", "games_costs", "games_drift", "persona_results"),
            ]
        ),
        "boards",
        TEAM,
        ["html"],
        "1",
        None,
    ),
    "rubric_files": ([], "rubric", TEAM, ["file"], None, "rubric_blueprint"),
    "rubric_blueprints": (["rubric_files"], "rubric", TEAM, ["litellm", "parquet"], "2", "rubric_blueprint"),
    "rubric_responses": (["rubric_blueprints"], "rubric", TEAM, ["litellm", "parquet"], "2", "rubric_blueprint"),
    "rubric_judgements": (["rubric_responses"], "rubric", TEAM, ["litellm", "parquet"], "1", "rubric_blueprint"),
    "rubric_embeddings": (["rubric_responses"], "rubric", TEAM, ["litellm", "parquet"], "1", "rubric_blueprint"),
    "rubric_points": (["rubric_judgements"], "rubric", TEAM, ["parquet"], "2", "rubric_blueprint"),
    "rubric_scores": (["rubric_embeddings", "rubric_points"], "rubric", TEAM, ["parquet"], "2", "rubric_blueprint"),
    "rubric_summaries": (["rubric_scores"], "rubric", TEAM, ["litellm", "parquet"], "2", "rubric_blueprint"),
    "rubric_board": (["rubric_scores"], "rubric", TEAM, ["duckdb", "parquet"], "3", None),
    "rubric_champions": (["rubric_summaries"], "rubric", TEAM, ["duckdb", "parquet"], "1", None),
    "rubric_agreement": (["rubric_judgements", "rubric_scores"], "rubric", TEAM, ["duckdb", "parquet"], "2", None),
    "rubric_validity": (["rubric_judgements", "rubric_scores"], "rubric", TEAM, ["duckdb", "parquet"], "2", None),
    "rubric_drift": (["rubric_scores"], "rubric", TEAM, ["duckdb", "parquet"], "6", None),
    "rubric_costs": (
        ["rubric_judgements", "rubric_responses", "rubric_summaries"],
        "rubric",
        TEAM,
        ["duckdb", "parquet"],
        "3",
        None,
    ),
    "rubric_corrected": (["rubric_scores"], "rubric", TEAM, ["duckdb", "parquet"], "1", None),
    "rubric_anchors": (["rubric_responses"], "rubric", TEAM, ["litellm", "parquet"], "2", None),
    "scenario_items": ([], "games", TEAM, ["parquet"], "1", "league_scenario"),
    "episode_prompts": (["scenario_items"], "games", TEAM, ["parquet"], "1", "league_scenario"),
    "episodes": (["episode_prompts"], "games", TEAM, ["litellm", "parquet"], "2", "league_scenario"),
    "episode_scores": (["episodes"], "games", TEAM, ["parquet"], "2", "league_scenario"),
    "persona_results": (["episode_scores"], "games", TEAM, ["duckdb", "parquet"], "5", None),
    "games_drift": (["episode_scores"], "games", TEAM, ["duckdb", "parquet"], "5", None),
    "decision_answers": ([], "games", TEAM, ["litellm", "parquet"], "2", "league_scenario"),
    "strategy_values": (["decision_answers"], "games", TEAM, ["parquet"], "2", "league_scenario"),
    "preference_votes": ([], "preference", TEAM, ["sql"], None, None),
    "preference_scores": (["preference_votes"], "preference", TEAM, ["duckdb", "parquet"], "5", None),
    "qa_files": ([], "qa", TEAM, ["file"], None, "dataset_part"),
    "qa_items": (["qa_files"], "qa", TEAM, ["parquet"], "1", "dataset_part"),
    "qa_prompts": (["qa_items"], "qa", TEAM, ["parquet"], "1", "dataset_part"),
    "qa_responses": (["qa_prompts"], "qa", TEAM, ["litellm", "parquet"], "2", "dataset_part"),
    "qa_judgements": (["qa_responses"], "qa", TEAM, ["litellm", "parquet"], "2", "dataset_part"),
    "qa_executions": (["qa_responses"], "qa", TEAM, ["parquet"], "2", "dataset_part"),
    "qa_scores": (["qa_executions", "qa_judgements"], "qa", TEAM, ["parquet"], "3", "dataset_part"),
    "qa_anchors": (["qa_judgements"], "qa", TEAM, ["litellm", "parquet"], "2", None),
    "qa_board": (["qa_scores"], "qa", TEAM, ["duckdb", "parquet"], "4", None),
    "qa_costs": (["qa_scores"], "qa", TEAM, ["duckdb", "parquet"], "3", None),
    "qa_drift": (["qa_scores"], "qa", TEAM, ["duckdb", "parquet"], "6", None),
    "qa_validity": (["qa_scores"], "qa", TEAM, ["duckdb", "parquet"], "1", None),
}
# (asset, check, blocking)
CHECKS = [
    ("blueprints", "context_gives_nothing_away", True),
    ("blueprints", "prompts_unique", True),
    ("decision_answers", "decision_answers_unique", True),
    ("decision_answers", "decision_calls_succeed", False),
    ("drift_checks", "no_drift", False),
    ("episode_prompts", "episode_prompts_unique", True),
    ("episode_scores", "episode_scores_have_reasons", True),
    ("episode_scores", "episode_scores_unique", True),
    ("episodes", "episodes_replay", True),
    ("episodes", "episodes_unique", True),
    ("episodes", "games_calls_succeed", False),
    ("episodes", "rewards_sum_to_zero", True),
    ("games_drift", "baselines_stand_still", False),
    ("games_drift", "games_no_drift", False),
    ("games_drift", "games_verdicts_were_sent", False),
    ("predictions", "calls_succeed", False),
    ("predictions", "every_prediction_has_a_blueprint", True),
    ("predictions", "predictions_unique", True),
    ("preference_scores", "preference_shares_are_whole", False),
    ("preference_scores", "votes_are_free_of_leaks", False),
    ("preference_scores", "votes_are_on_different_texts", False),
    ("qa_drift", "qa_judge_stands_still", False),
    ("qa_drift", "qa_no_drift", False),
    ("qa_drift", "qa_verdicts_were_sent", False),
    ("qa_executions", "qa_code_was_run", False),
    ("qa_items", "qa_items_have_scorers", False),
    ("qa_items", "qa_items_unique", True),
    ("qa_items", "qa_rows_left_out", False),
    ("qa_judgements", "qa_judgements_unique", True),
    ("qa_judgements", "qa_judges_answer", False),
    ("qa_prompts", "qa_evidence_found", False),
    ("qa_prompts", "qa_prompts_unique", True),
    ("qa_responses", "qa_calls_succeed", False),
    ("qa_responses", "qa_responses_unique", True),
    ("qa_scores", "qa_responses_readable", False),
    ("qa_scores", "qa_scores_have_reasons", True),
    ("qa_scores", "qa_scores_unique", True),
    ("qa_validity", "qa_scores_are_valid", False),
    ("rubric_blueprints", "rubric_criteria_have_places", True),
    ("rubric_blueprints", "rubric_parts_left_out", False),
    ("rubric_blueprints", "rubric_prompts_unique", True),
    ("rubric_drift", "rubric_no_drift", False),
    ("rubric_drift", "rubric_verdicts_were_sent", False),
    ("rubric_judgements", "rubric_judgements_unique", True),
    ("rubric_judgements", "rubric_judges_are_readable", False),
    ("rubric_points", "rubric_cells_complete", False),
    ("rubric_points", "rubric_points_have_reasons", True),
    ("rubric_points", "rubric_points_unique", True),
    ("rubric_responses", "rubric_calls_succeed", False),
    ("rubric_responses", "rubric_responses_unique", True),
    ("rubric_scores", "rubric_coverage_in_range", True),
    ("rubric_summaries", "rubric_no_name_leaked", False),
    ("rubric_summaries", "rubric_summaries_unique", True),
    ("scenario_items", "scenario_items_unique", True),
    ("scores", "responses_can_be_read", False),
    ("scores", "scores_unique", True),
    ("segment_results", "results_unique", True),
    ("strategy_values", "strategy_values_have_reasons", True),
    ("survey_drift", "survey_no_drift", False),
    ("survey_drift", "survey_verdicts_were_sent", False),
    ("survey_files", "landings_can_be_read", False),
    ("survey_responses", "distributions_sum_to_one", True),
    ("survey_responses", "every_column_recognised", False),
    ("survey_responses", "every_pair_has_reference_scores", True),
    ("survey_responses", "little_in_quarantine", False),
    ("survey_responses", "n_reaches_minimum", True),
    ("survey_responses", "one_row_a_question", True),
]
SIX = ["survey_responses", "blueprints", "predictions", "scores", "segment_results", "drift_checks"]
RUBRIC = [
    "rubric_blueprints",
    "rubric_responses",
    "rubric_judgements",
    "rubric_embeddings",
    "rubric_points",
    "rubric_scores",
    "rubric_summaries",
]
JOBS = {
    "survey_pipeline": SIX,
    "nightly_drift": SIX[2:],
    "survey_roll_ups": [*BOARDS, "survey_costs", "survey_drift", "report"],
    "rubric_pipeline": RUBRIC,
    "rubric_night": [*RUBRIC, "rubric_anchors"],
    "rubric_roll_ups": [*RUBRIC_ROLLED, "report"],
    "rubric_anchors_again": ["rubric_anchors"],
    "games_pipeline": ["episode_prompts", "episode_scores", "episodes", "scenario_items"],
    "games_roll_ups": ["games_costs", "games_drift", "persona_results", "report"],
    "games_decisions": ["decision_answers", "strategy_values"],
    "preference_roll_ups": ["preference_scores", "report"],
    "qa_anchors_again": ["qa_anchors"],
    "qa_night": ["qa_anchors", "qa_executions", "qa_items", "qa_judgements", "qa_prompts", "qa_responses", "qa_scores"],
    "qa_pipeline": ["qa_executions", "qa_items", "qa_judgements", "qa_prompts", "qa_responses", "qa_scores"],
    "qa_roll_ups": ["qa_board", "qa_costs", "qa_drift", "qa_validity", "report"],
}
SCHEDULES = {
    "nightly_drift": ("0 2 * * *", "nightly_drift", dg.DefaultScheduleStatus.STOPPED),
    "nightly_rubrics": ("30 2 * * *", "rubric_night", dg.DefaultScheduleStatus.STOPPED),
    "nightly_games": ("30 3 * * *", "games_pipeline", dg.DefaultScheduleStatus.STOPPED),
    "nightly_questions": ("0 3 * * *", "qa_night", dg.DefaultScheduleStatus.STOPPED),
}
SENSORS = {
    "new_round": ("survey_pipeline", 60, dg.DefaultSensorStatus.STOPPED),
    "new_blueprint": ("rubric_pipeline", 60, dg.DefaultSensorStatus.STOPPED),
    "rubric_boards_after_run": ("rubric_roll_ups", 30, dg.DefaultSensorStatus.RUNNING),
    "survey_boards_after_run": ("survey_roll_ups", 30, dg.DefaultSensorStatus.RUNNING),
    "games_boards_after_run": ("games_roll_ups", 30, dg.DefaultSensorStatus.RUNNING),
    "scores_after_votes": ("preference_roll_ups", 600, dg.DefaultSensorStatus.RUNNING),
    "qa_boards_after_run": ("qa_roll_ups", 30, dg.DefaultSensorStatus.RUNNING),
    "evaluation_queue": (
        "games_pipeline, rubric_pipeline, rubric_night, qa_pipeline, qa_night, survey_pipeline, nightly_drift",
        5,
        dg.DefaultSensorStatus.RUNNING,
    ),
}

GRAPH = defs.resolve_asset_graph()


def test_definitions_load() -> None:
    dg.Definitions.validate_loadable(defs)


def test_assets_and_their_lineage() -> None:
    found = {}
    for key in GRAPH.get_all_asset_keys():
        asset = GRAPH.get(key)
        partitions = asset.partitions_def.name if isinstance(asset.partitions_def, dg.DynamicPartitionsDefinition) else None
        parents = sorted(parent.to_user_string() for parent in asset.parent_keys)
        owners, kinds = list(asset.owners), sorted(asset.kinds)
        found[key.to_user_string()] = (parents, asset.group_name, owners, kinds, asset.code_version, partitions)
    assert found == ASSETS


def test_checks_and_which_of_them_block() -> None:
    found = [(key.asset_key.to_user_string(), key.name, GRAPH.get(key).blocking) for key in GRAPH.asset_check_keys]
    assert sorted(found) == CHECKS


def test_jobs_select_their_stages() -> None:
    found = {
        job.name: {key.to_user_string() for key in job.asset_layer.executable_asset_keys}
        for job in defs.resolve_all_job_defs()
        if not job.name.startswith("__")
    }
    assert found == {name: set(assets) for name, assets in JOBS.items()}


def test_jobs_run_the_checks_of_their_assets() -> None:
    job = defs.resolve_job_def("survey_pipeline")
    selected = {(key.asset_key.to_user_string(), key.name) for key in job.asset_layer.asset_graph.asset_check_keys}
    assert selected == {(asset, check) for asset, check, _ in CHECKS if asset in SIX}


def _jobs_of(sensor: dg.SensorDefinition) -> str | None:
    return ", ".join(job.name for job in sensor.jobs) if sensor.has_jobs else sensor.job_name


def test_what_starts_runs_is_off_until_switched_on_and_boards_follow_by_themselves() -> None:
    schedules = {s.name: (s.cron_schedule, s.job_name, s.default_status) for s in defs.schedules or []}
    sensors = {s.name: (_jobs_of(s), s.minimum_interval_seconds, s.default_status) for s in defs.sensors or []}
    assert schedules == SCHEDULES
    assert sensors == SENSORS


def test_the_six_stages_share_one_partition_space_and_are_one_run_of_a_backfill() -> None:
    stages = [GRAPH.get(dg.AssetKey(name)) for name in SIX]
    assert len({id(stage.partitions_def) for stage in stages}) == 1
    assert {stage.backfill_policy for stage in stages} == {dg.BackfillPolicy.single_run()}
    for stage in stages:
        assert {type(GRAPH.get_partition_mapping(stage.key, parent)) for parent in stage.parent_keys} <= {
            dg.IdentityPartitionMapping
        }


def test_every_asset_check_and_job_has_a_description() -> None:
    assert [name for name in ASSETS if not GRAPH.get(dg.AssetKey(name)).description] == []
    assert [key.name for key in GRAPH.asset_check_keys if not GRAPH.get(key).description] == []
    assert [job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__") and not job.description] == []
    assert [s.name for s in [*(defs.schedules or []), *(defs.sensors or [])] if not s.description] == []


@pytest.mark.parametrize(
    "name",
    [*SIX, "survey_drift", *RUBRIC, "rubric_board", "rubric_champions", "rubric_agreement", "rubric_drift"],
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


def test_the_code_location_is_pinned() -> None:
    (entry,) = yaml.safe_load((ROOT / "workspace.yaml").read_text(encoding="utf-8"))["load_from"]
    assert entry == {"python_module": {"module_name": "assets.definitions", "working_directory": ".", "location_name": "dtef"}}


def test_unknown_configuration_is_refused() -> None:
    for name in SIX[1:5]:
        job = defs.resolve_implicit_global_asset_job_def()
        config = {"ops": {name: {"config": {"modle": "x"}}}}
        with pytest.raises(dg.DagsterInvalidConfigError, match="modle"):
            dg.validate_run_config(job, config)
