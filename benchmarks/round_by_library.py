"""The library's side of `full_round.py`: the same work as the command's by plain calls, with the same Parquet files and no Dagster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CONTEXTS = ("0", "5", "all")
BASELINES = ("uniform", "population-marginal", "leave-one-out-marginal", "shuffled-segment", "dirichlet")


def library_pass(survey: Path, round_id: str) -> None:
    """All six stages of a round by plain calls, table by table as the assets read and write them."""
    from dtef_pipeline.survey.adapters import read_survey
    from resources.settings import Settings
    from resources.sources import Sources
    from resources.warehouse import Warehouse

    house = Warehouse(Settings.read_environment().warehouse)
    _library_ingest(house, Sources(house, read_survey), round_id)
    segments = house.values("survey_responses", "segment", round=round_id)
    for stage in (_library_blueprints, _library_predictions, _library_scores, _library_results, _library_drift):
        stage(house, round_id, segments)


def _library_ingest(house, sources, round_id):  # type: ignore[no-untyped-def]
    import pyarrow.compute as pc

    from dtef_pipeline.survey.observations import observe
    from dtef_pipeline.survey.scoring.references import compute_reference_scores

    source, survey = sources.read(round_id)
    observed = observe(survey, min_n=source.min_n)
    house.write("survey_quarantine", observed.quarantine, round=round_id)
    house.write("survey_findings", observed.findings, round=round_id)
    tables = {"survey_responses": observed.responses, "reference_scores": compute_reference_scores(observed.responses)}
    for segment in sorted(pc.unique(observed.responses["segment"]).to_pylist()):
        for name, rows in tables.items():
            house.write(name, rows.filter(pc.field("segment") == segment), round=round_id, segment=segment)


def _library_blueprints(house, round_id, segments):  # type: ignore[no-untyped-def]
    from dtef_pipeline.survey.blueprint.options import BlueprintOptions
    from dtef_pipeline.survey.blueprint.prompts import build_blueprints

    for segment in segments:
        at = {"round": round_id, "segment": segment}
        rows = build_blueprints(house.read("survey_responses", **at), BlueprintOptions(context_levels=CONTEXTS))
        house.write("blueprints", rows, **at)


def _library_predictions(house, round_id, segments):  # type: ignore[no-untyped-def]
    from assets.survey.predictor import Predictor, SegmentPredictions
    from dtef_pipeline.asking.models import load_models
    from dtef_pipeline.identity import partition_key
    from dtef_pipeline.survey.baselines import names
    from dtef_pipeline.survey.settings import SurveySettings
    from dtef_pipeline.survey.tables import PREDICTIONS

    models = load_models("{}", computed=names.BASELINES).resolve([f"baseline/{name}" for name in BASELINES])
    nothing = PREDICTIONS.empty_table()
    predictor = Predictor(house, SurveySettings(conditions=[]), models, lookup=lambda keys: nothing)
    for segment in segments:
        made = SegmentPredictions(predictor, partition_key(round_id, segment))
        rows = made.merge_with_stored(made.rows(nothing, {}))["predictions"]
        house.write("predictions", rows, round=round_id, segment=segment, snapshot="base")


def _library_scores(house, round_id, segments):  # type: ignore[no-untyped-def]
    from dtef_pipeline.survey.scoring.score import score_predictions

    for segment in segments:
        at = {"round": round_id, "segment": segment}
        survey = house.read("survey_responses", **at)
        for snapshot in house.values("predictions", "snapshot", **at):
            made = house.read("predictions", snapshot=snapshot, **at)
            house.write("scores", score_predictions(made, survey), snapshot=snapshot, **at)


def _library_results(house, round_id, segments):  # type: ignore[no-untyped-def]
    import pyarrow as pa
    import pyarrow.compute as pc

    from dtef_pipeline.survey.boards.segment_results import compute_segment_results

    scores, survey = (
        pa.concat_tables([house.read(table, round=round_id, segment=segment) for segment in segments])
        for table in ("scores", "survey_responses")
    )
    results = compute_segment_results(scores, survey)
    for segment in segments:
        of_segment = results.filter(pc.field("segment") == segment)
        for snapshot in pc.unique(of_segment["snapshot"]).to_pylist():
            rows = of_segment.filter(pc.field("snapshot") == snapshot)
            house.write("segment_results", rows, round=round_id, segment=segment, snapshot=snapshot)


def _library_drift(house, round_id, segments):  # type: ignore[no-untyped-def]
    from dtef_pipeline.drift.models import drift_checks, list_needed_columns
    from dtef_pipeline.survey.drift_subject import SUBJECT

    for segment in segments:
        at = {"round": round_id, "segment": segment}
        house.write(
            "drift_checks", drift_checks(house.read("scores", columns=list_needed_columns(SUBJECT.keys), **at), SUBJECT), **at
        )


def library_roll_ups_pass(survey: Path, round_id: str) -> None:
    """All roll-ups by plain calls, over all that the stages have stored; clean and all targets at the same time, as in Dagster."""
    import pandas as pd
    import pyarrow as pa

    from dtef_pipeline.boards.cells import TARGETS
    from dtef_pipeline.boards.memory_tables import copy_into_memory
    from dtef_pipeline.survey.boards.board_rows import BOARD_SOURCES, TEXT_COLUMNS
    from dtef_pipeline.survey.boards.question_links import build_question_batteries
    from dtef_pipeline.survey.keys import KEYS
    from resources.settings import Settings
    from resources.warehouse import TABLES, Warehouse

    house = Warehouse(Settings.read_environment().warehouse)
    house.write("question_batteries", build_question_batteries(house.connect(only=["survey_responses"])))
    tables = house.connect(only=BOARD_SOURCES)
    copy_into_memory(tables, BOARD_SOURCES, TEXT_COLUMNS, KEYS)
    with ThreadPoolExecutor(len(TARGETS)) as threads:
        tables_by_target = list(threads.map(lambda targets: _views(tables, targets), TARGETS))
    for table in tables_by_target[0]:
        rows = pd.concat([made[table] for made in tables_by_target], ignore_index=True)
        schema = TABLES[table].schema
        names = rows.columns if schema is None else schema.names
        written = pa.Table.from_pandas(rows[names], schema=schema, preserve_index=False)
        house.write(table, written.replace_schema_metadata(None))
    _library_costs_drift_and_site(house)


def _views(tables: Any, targets: str) -> dict[str, Any]:
    from dtef_pipeline.boards.boards import load_evidence
    from dtef_pipeline.boards.memory_tables import open_memory_copy
    from dtef_pipeline.survey.boards.board_rows import build_published_tables
    from dtef_pipeline.survey.boards.survey_boards import PUBLISHED
    from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions

    options = SurveyBoardOptions(targets=targets)
    with open_memory_copy(tables) as connection:
        evidence = load_evidence(connection, options)
        made = build_published_tables([one.table for one in PUBLISHED], connection, options, evidence)
    return {table: frame.assign(targets=targets) for table, frame in made.items()}


def _library_costs_drift_and_site(house: Any) -> None:
    from dtef_pipeline.boards.costs import costs
    from dtef_pipeline.drift.models import compute_model_drift
    from dtef_pipeline.drift.settings import DriftSettings
    from dtef_pipeline.sites import make_site
    from dtef_pipeline.survey.drift_subject import SUBJECT
    from dtef_pipeline.survey.table_folders import SURVEY_CALL_TABLES

    with house.connect() as connection:
        house.write("costs", costs(connection, "survey", SURVEY_CALL_TABLES, lambda keys: house.read("costs")), family="survey")
        found = compute_model_drift(connection, SUBJECT, DriftSettings())
    house.write("drift_series", found.series, family="survey")
    with house.connect() as connection:
        for path, text in make_site(connection):
            house.put(f"{house.root}/site/{path}", text.encode())
