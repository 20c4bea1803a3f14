"""What the `dtef` commands that start something do; the words are in `dtef_pipeline/cli/dtef.py`."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pyarrow.compute as pc

from assets.survey.panel_file import known_panel
from dtef_pipeline.cli.after_run import after_run, now_asked
from dtef_pipeline.cli.read import open_warehouse
from dtef_pipeline.cli.selection import RunOptions, Selection, partition_keys, selection
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.validation import counted
from resources.gateway.progress import kept_terminal
from resources.known_models import known_models
from resources.settings import Settings, shipped
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.launch import Launched
    from assets.stage.shared_gateway import Command
    from resources.gateway import Gateway


SOME_MODEL_SILENT = 4
"""Exit code: a language model of the run has no response at all, because its calls failed."""


@contextmanager
def dagster_instance() -> Iterator[Any]:
    """The instance of DAGSTER_HOME (made on first use from the shipped template): the one the UI shows."""
    prepare_home()
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        yield instance


def prepare_home() -> Path:
    home = Settings.from_environment().dagster_home
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copyfile(shipped("dagster.yaml"), home / "dagster.yaml")
    elif "run_launcher:" not in (home / "dagster.yaml").read_text(encoding="utf-8"):
        click.echo(
            f"warning: {home / 'dagster.yaml'} is of an earlier version: killed workers are not noticed; "
            f"put this in its place: {shipped('dagster.yaml')}",
            err=True,
        )
    os.environ["DAGSTER_HOME"] = str(home)
    # Materializations are written this many at a time.
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "50")
    return home


def ingest(path: Path, round_id: str | None, min_n: int | None) -> int:
    from dtef_pipeline.survey.adapters import read_survey, read_surveys
    from dtef_pipeline.survey.observe import MIN_N

    surveys = read_surveys(path, round_id)
    from assets.launch import materialize
    from assets.survey.rounds import register_round
    from resources.sources import Sources

    warehouse = open_warehouse()
    failures = 0
    with dagster_instance() as instance:
        for survey in surveys:
            started = time.monotonic()
            registered = register_round(instance, Sources(warehouse, read_survey), survey, path, min_n=min_n or MIN_N)
            outcome = materialize(instance, ["survey_responses"], registered.keys, {})
            failures += len(outcome.failures)
            _say_ingested(warehouse, survey.round, registered.retired, time.monotonic() - started)
            if registered.changes is not None:
                click.echo(f"  since it was ingested last: {registered.changes}")
            for failure in outcome.failures:
                click.echo(f"error: {failure}", err=True)
    warehouse.refresh_database()
    return 1 if failures else 0


def _say_ingested(warehouse: Warehouse, round_id: str, retired: list[str], seconds: float) -> None:
    rows = warehouse.read_or_empty("survey_responses", columns=["segment", "question_id", "n_source"], round=round_id)
    quarantine = warehouse.read_or_empty("survey_quarantine", round=round_id)
    pairs = len(quarantine) - quarantine["question_id"].null_count
    click.echo(
        f"{round_id}: {counted(len(pc.unique(rows['segment'])), 'segment')}, "
        f"{counted(len(pc.unique(rows['question_id'])), 'question')}, {counted(len(rows), 'pair')}, "
        f"{counted(pairs, 'pair')} and {counted(len(quarantine) - pairs, 'whole segment')} in quarantine ({seconds:.1f} s)"
    )
    if retired:
        click.echo(f"  warning: retired {counted(len(retired), 'segment')} that the round no longer has: {', '.join(retired)}")
    findings = warehouse.read_or_empty("survey_findings", round=round_id).to_pylist()
    left_out = [finding for finding in findings if finding["code"] == "profile-question"]
    if left_out:
        click.echo(f"  profile questions, left out: {'; '.join(item for f in left_out for item in f['items'])}")
    for finding in findings:
        if finding["level"] != "info":
            click.echo(
                f"  {finding['level']}: {finding['message']}: {', '.join(finding['items'][:20])}",
                err=finding["level"] == "error",
            )


def run(options: RunOptions) -> int:
    metric = SurveyBoardOptions(metric=options.metric).metric
    warehouse, settings = open_warehouse(), Settings.from_environment()
    # The drift stage reads the panel. A fault in it is to be reported before anything is asked.
    known_panel(settings)
    chosen = selection(options, known_models(settings, BASELINES))
    keys = partition_keys(warehouse, chosen.rounds, chosen.segments)
    started = time.monotonic()
    names = ", ".join(model.name for model in chosen.models)
    click.echo(f"{counted(len(keys), 'partition')}, snapshot {chosen.snapshot}, models: {names}", err=True)
    outcome, failures, gateway = _materialize(warehouse, chosen, keys, options)
    runs = counted(len(outcome.run_ids), "run")
    click.echo(f"{counted(len(keys), 'partition')} in {runs}, {time.monotonic() - started:.1f} s")
    for line in now_asked(gateway):
        click.echo(line)
    for failure in failures:
        click.echo(f"error: {failure}", err=True)
    all_answered = after_run(warehouse, chosen, metric)
    if options.no_roll_ups:
        click.echo(
            "roll-ups were left out: boards, costs, drift of the models and the report are made by `dtef rollup`, or the next run"
        )
    if outcome.superseded:
        click.echo(
            f"warning: {outcome.superseded:,} earlier predictions answered prompts that are made in another way now, and are no longer "
            "in the tables; their raw responses stay in the response store, and the earlier options bring them back",
            err=True,
        )
    return 1 if failures else 0 if all_answered else SOME_MODEL_SILENT


def rollup(metric: str) -> int:
    metric = SurveyBoardOptions(metric=metric).metric
    warehouse = open_warehouse()
    if not warehouse.values("scores", "round"):
        raise WarehouseError(f"no scores in {warehouse.root} yet: they are made by `dtef run --round ROUND`")
    started = time.monotonic()
    with dagster_instance() as instance:
        outcome = _roll_ups(instance, metric)
    for failure in outcome.failures:
        click.echo(f"error: {failure}", err=True)
    click.echo(f"roll-ups of {', '.join(warehouse.values('scores', 'round'))}, {time.monotonic() - started:.1f} s")
    return 1 if outcome.failures else 0


def _roll_ups(instance: Any, metric: str) -> "Launched":
    """All of them, in a run of their own, over everything that is stored."""
    from assets.launch import BOARD_NAMES, ROLL_UP_NAMES, materialize

    return materialize(instance, ROLL_UP_NAMES, [], {name: {"metric": metric} for name in BOARD_NAMES})


def _materialize(
    warehouse: Warehouse, chosen: Selection, keys: list[str], options: RunOptions
) -> "tuple[Launched, list[str], Gateway | None]":
    """The stages in one run, then the roll-ups; what came of the stages, what failed in either, and what asked."""
    from assets.launch import STAGE_NAMES
    from assets.stage.shared_gateway import command

    with kept_terminal(), dagster_instance() as instance:
        stages = STAGE_NAMES if options.with_ingest else STAGE_NAMES[1:]
        with command(keys) as running:
            outcome = _stages(instance, stages, keys, chosen, options, running)
        failures = list(outcome.failures)
        if options.no_roll_ups:
            warehouse.refresh_database()
        elif warehouse.values("scores", "round"):
            failures += _roll_ups(instance, options.metric).failures
    return outcome, failures, running.gateway


def _stages(
    instance: Any, stages: list[str], keys: list[str], chosen: Selection, options: RunOptions, running: "Command"
) -> "Launched":
    from assets.launch import materialize
    from assets.stage.partitions import SNAPSHOT_TAG
    from assets.survey.rounds import ROUNDS_TAG, known_keys, ranges

    config = chosen.config(options.metric)
    tags = {**running.tags, SNAPSHOT_TAG: chosen.snapshot, ROUNDS_TAG: ", ".join(chosen.rounds)}
    asks = any(not model.is_computed for model in chosen.models)
    if not (asks or chosen.limits) or len(list(ranges(known_keys(instance), keys))) == 1:
        return materialize(instance, stages, keys, config, tags)
    # Progress counts the prompts of all runs and a limit chooses among them, so all are made before the first is asked.
    made = stages.index("blueprints") + 1
    first = materialize(instance, stages[:made], keys, config, tags)
    return first + materialize(instance, stages[made:], keys, config, tags)


def ui(host: str, port: int) -> int:
    settings = Settings.from_environment()
    home = prepare_home()
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "dagster",
        "dev",
        "-w",
        str(shipped("workspace.yaml")),
        "-h",
        host,
        "-p",
        str(port),
    ]
    # An address may hold keys.
    state = re.sub(r"//[^/@]*@", "//", settings.warehouse.partition("?")[0])
    address = f"http://{host}:{port}"
    click.echo(f"Dagster on {address} (state: {state}); stop with Ctrl-C")
    # The page "Lineage" opens with its groups closed.
    click.echo(f"  the six stages: {address}/locations/dtef/asset-groups/pipeline")
    click.echo(f"  the roll-ups:   {address}/locations/dtef/asset-groups/boards")
    click.echo(f"  all runs:       {address}/runs")
    # Started elsewhere than here, so every place is given in full. In a session of its own: a Ctrl-C reaches all processes of a terminal at
    # once, but Dagster's are to be stopped by the one that started them.
    environment = {**os.environ, **settings.environment()}
    stopped = False
    process: subprocess.Popen[bytes] | None = None

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True
        if process is not None:
            # Dagster stops its own processes at an interrupt alone.
            process.send_signal(signal.SIGINT)

    # Before the start: a process that a shell put in the background is deaf to interrupts, and would make Dagster so.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    process = subprocess.Popen(command, env=environment, cwd=home, start_new_session=True)  # noqa: S603 - our own interpreter and arguments
    return 0 if process.wait() == 0 or stopped else 1
