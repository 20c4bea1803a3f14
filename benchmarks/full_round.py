"""What orchestration costs: a full GD4-sized round (49 segments x 116 questions x 3 contexts x 5 baselines) through all six stages.

Each in a process of its own, all but the command warmed up (the stages on a round of one segment, the roll-ups by a first time):

- library: the same library calls, with the same Parquet files read and written, and no Dagster;
- its roll-ups: boards, tests, costs, drift of the models and the report, by library calls too;
- dagster: the six stages as one Dagster run, with its checks, metadata and event log;
- roll-ups: all roll-ups as one Dagster run over what the stages made;
- command: the whole of `dtef run`, with the start of Python, the roll-ups and the boards that it prints.

Prints seconds (of the clock, and of the processor), and the ratio of each to library, and to library and its roll-ups together, which is
the same work as the command's: of the clock, and in brackets of the processor. The smallest of `--repeat` passes each, which alternate, so
that a busy machine disturbs all alike.

    python -m benchmarks.full_round [SURVEY.json] [--storage sqlite|URL] [--dagsters-own] [--no-batching] [--repeat 3] [--no-command]

Without a survey it makes a synthetic one. Storage is where runs and events are kept: SQLite, or a PostgreSQL database given by its URL;
`--dagsters-own`: by the classes of Dagster, not by those of `resources/`. `--no-batching`: one event at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import yaml

ROUND, WARM_UP = "B1", "B0"
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
    from assets.survey.boards import build_published_table
    from dtef_pipeline.boards.cells import TARGETS, copy_into_memory
    from dtef_pipeline.survey.answer_scales.batteries import build_question_batteries
    from dtef_pipeline.survey.boards.board_rows import BOARD_SOURCES, TEXT_COLUMNS
    from dtef_pipeline.survey.keys import KEYS
    from resources.settings import Settings
    from resources.warehouse import Warehouse, build_family_levels

    house = Warehouse(Settings.read_environment().warehouse)
    house.write("question_batteries", build_question_batteries(house.connect(only=["survey_responses"])))
    tables = house.connect(only=BOARD_SOURCES)
    copy_into_memory(tables, BOARD_SOURCES, TEXT_COLUMNS, KEYS)
    with ThreadPoolExecutor(len(TARGETS)) as threads:
        tables_by_target = list(threads.map(lambda targets: _views(tables, targets), TARGETS))
    for table in tables_by_target[0]:
        rows = build_published_table([made[table] for made in tables_by_target], table)
        house.write(table, rows, **build_family_levels(table, "survey"))
    _library_costs_drift_and_site(house)


def _views(tables: Any, targets: str) -> dict[str, Any]:
    from dtef_pipeline.boards.boards import load_evidence
    from dtef_pipeline.boards.cells import open_memory_copy
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
    from dtef_pipeline.survey.stages import SURVEY_CALL_TABLES

    with house.connect() as connection:
        house.write("costs", costs(connection, "survey", SURVEY_CALL_TABLES, lambda keys: house.read("costs")), family="survey")
        found = compute_model_drift(connection, SUBJECT, DriftSettings())
    house.write("drift_series", found.series, family="survey")
    with house.connect() as connection:
        for path, text in make_site(connection):
            house.put(f"{house.root}/site/{path}", text.encode())


def synthetic_survey(path: Path, *, segments: int = 49, questions: int = 116, seed: int = 1) -> Path:
    """A DTEFSurveyData file of the given size; its answers are random."""
    rng = np.random.default_rng(seed)
    options = ["Strongly disagree", "Somewhat disagree", "Neutral", "Somewhat agree", "Strongly agree"]
    shares = 100 * rng.dirichlet(np.full(5, 3.0), size=(segments, questions))
    survey = {
        "surveyId": "benchmark-b1",
        "surveyName": "Benchmark",
        "questions": {
            f"q{q}": {
                "text": f"How far do you agree with statement number {q} of this synthetic survey?",
                "type": "single-select",
                "options": options,
            }
            for q in range(questions)
        },
        "segments": [
            {
                "id": f"country:c{s}",
                "label": f"C{s}",
                "attributes": {"country": f"C{s}"},
                "sampleSize": 50,
                "responses": [{"questionId": f"q{q}", "distribution": shares[s, q].tolist()} for q in range(questions)],
            }
            for s in range(segments)
        ],
    }
    path.write_text(json.dumps(survey), encoding="utf-8")
    return path


def dagster_pass(survey: Path, round_id: str) -> None:
    """The same as one Dagster run of the six stages."""
    import dagster as dg

    from assets.launch import materialize
    from resources.settings import Settings
    from resources.warehouse import Warehouse
    from tests.assets.family_state import STAGE_NAMES

    with dg.DagsterInstance.get() as instance:
        house = Warehouse(Settings.read_environment().warehouse)
        keys = [f"{round_id}/{segment}" for segment in house.values("survey_responses", "segment", round=round_id)]
        config = {
            "blueprints": {"context_levels": list(CONTEXTS)},
            "predictions": {"models": [f"baseline/{name}" for name in BASELINES]},
        }
        failures = materialize(instance, STAGE_NAMES, keys, config).failures
    assert not failures, failures


def roll_ups_pass(survey: Path, round_id: str) -> None:
    """All roll-ups, over all that the stages have stored."""
    import dagster as dg

    from assets.engine.roll_up_names import ROLL_UP_NAMES
    from assets.launch import materialize

    with dg.DagsterInstance.get() as instance:
        failures = materialize(instance, ROLL_UP_NAMES, [], {}).failures
    assert not failures, failures


PASSES: dict[str, Callable[[Path, str], None]] = {
    "library": library_pass,
    "its roll-ups": library_roll_ups_pass,
    "dagster": dagster_pass,
    "roll-ups": roll_ups_pass,
}


def measured(what: str, survey: Path, warm_up: Path) -> None:
    """In the process that is measured: the seconds of one pass, after a pass over the small round, as JSON."""
    PASSES[what](warm_up, WARM_UP)
    started, used = time.perf_counter(), time.process_time()
    PASSES[what](survey, ROUND)
    clock, processor = time.perf_counter() - started, time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"clock": clock, "processor": processor, "megabytes": memory}))


def command_pass(environment: dict[str, str]) -> dict[str, float]:
    """The whole of `dtef run`, as a user waits for it."""
    options = [word for level in CONTEXTS for word in ("--context", level)]
    options += [word for name in BASELINES for word in ("--model", f"baseline/{name}")]
    started = time.perf_counter()
    process = subprocess.Popen(
        _command(["run", "--from", "ingest", "--round", ROUND, *options]), env=environment, stdout=subprocess.DEVNULL
    )
    # Of this process alone: `RUSAGE_CHILDREN` has the memory of the largest there ever was.
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, status
    return {
        "clock": time.perf_counter() - started,
        "processor": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
    }


def _command(words: list[str]) -> list[str]:
    return [sys.executable, "-c", "from dtef_pipeline.cli import main; main()", *words]


def _dtef(words: list[str], environment: dict[str, str]) -> None:
    subprocess.run(_command(words), env=environment, check=True, stdout=subprocess.DEVNULL)


def prepared(folder: Path, survey: Path, warm_up: Path, storage: str, dagsters_own: bool, batching: bool) -> dict[str, str]:
    """A state of its own with both rounds ingested; the environment that names it."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "dagster").mkdir(parents=True)
    root = Path(__file__).resolve().parent.parent
    config = yaml.safe_load((root / "dagster.yaml").read_text(encoding="utf-8"))
    if "://" in storage:
        ours = {"module": "resources.dagster_postgres_storage", "class": "PostgresStorage", "config": {"postgres_url": storage}}
        config["storage"] = {"postgres": {"postgres_url": storage}} if dagsters_own else {"custom": ours}
    elif dagsters_own:
        del config["storage"]
    (folder / "dagster" / "dagster.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    places = {"DTEF_WAREHOUSE": "warehouse", "DTEF_RESPONSES": "responses.sqlite", "DAGSTER_HOME": "dagster"}
    environment = {**os.environ, **{name: str(folder / place) for name, place in places.items()}}
    environment["PYTHONPATH"] = str(root)
    # A user's Python keeps what it has compiled; without that a command spends seconds compiling Dagster.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["DAGSTER_EVENT_BATCH_SIZE"] = "50" if batching else "0"
    for round_id, path in ((WARM_UP, warm_up), (ROUND, survey)):
        _dtef(["add", str(path), "--round", round_id], environment)
    return environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("survey", nargs="?", type=Path)
    parser.add_argument("--storage", default="sqlite")
    parser.add_argument("--dagsters-own", action="store_true")
    parser.add_argument("--no-batching", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-command", action="store_true")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measured(given.measure[0], given.survey, Path(given.measure[1]))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        survey = given.survey or synthetic_survey(folder / "b1.json")
        warm_up = synthetic_survey(folder / "b0.json", segments=1, questions=5)
        best: dict[str, dict[str, float]] = {}
        for _ in range(given.repeat):
            environment = prepared(folder / "state", survey, warm_up, given.storage, given.dagsters_own, not given.no_batching)
            found = {name: _in_a_process(name, survey, warm_up, environment) for name in PASSES}
            if not given.no_command:
                found["command"] = command_pass(environment)
            for name, numbers in found.items():
                best[name] = {n: min(v, best.get(name, numbers)[n]) for n, v in numbers.items()}
    whole = {kind: best["library"][kind] + best["its roll-ups"][kind] for kind in ("clock", "processor")}
    for name, numbers in best.items():
        seconds = f"{numbers['clock']:6.2f} s ({numbers['processor']:.2f} s of processor), {numbers['megabytes']:,.0f} MB"
        print(
            f"{name:12} {seconds}, ratio {_ratio(numbers, best['library'])}, to all of the same work {_ratio(numbers, whole)}"
        )


def _ratio(numbers: dict[str, float], to: dict[str, float]) -> str:
    return f"{numbers['clock'] / to['clock']:.2f} ({numbers['processor'] / to['processor']:.2f})"


def _in_a_process(name: str, survey: Path, warm_up: Path, environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.full_round", str(survey), "--measure", name, str(warm_up)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


if __name__ == "__main__":
    main()
