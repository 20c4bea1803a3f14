"""What the `dtef` commands that start something do; the words are in `dtef_pipeline/cli/dtef.py`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from assets.stage.snapshots import require_snapshot
from assets.survey.panel_file import checked_panel
from dtef_pipeline.cli.opened_warehouse import open_warehouse
from dtef_pipeline.cli.started_runs import StagesRun, check_asking, check_settings, end_run, prepare_home, start_stages
from dtef_pipeline.cli.survey.after_run import after_run, now_asked
from dtef_pipeline.cli.survey.estimate import question_lines
from dtef_pipeline.cli.survey.selection import Selection, SurveyFlags, partition_keys, selection
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import survey_run_config
from dtef_pipeline.text.counted import counted
from resources.file_systems import without_secrets
from resources.gateway.progress import kept_terminal
from resources.responses.store import ResponseStore
from resources.settings import Settings, shipped
from resources.warehouse import Warehouse

PLACES_IN_THE_UI = {
    "surveys, the six stages": "locations/dtef/asset-groups/survey",
    "surveys, the roll-ups": "locations/dtef/asset-groups/boards",
    "rubrics": "locations/dtef/asset-groups/rubric",
    "questions with expected answers": "locations/dtef/asset-groups/qa",
    "games": "locations/dtef/asset-groups/games",
    "preference, from votes": "locations/dtef/asset-groups/preference",
    "all runs": "runs",
}
SOME_MODEL_SILENT = 4
"""Exit code: a language model of the run has no response at all, because its calls failed."""


def run(given: Mapping[str, Any], flags: SurveyFlags) -> int:
    warehouse, settings = open_warehouse(), Settings.from_environment()
    models = check_settings(settings)
    checked_panel(settings, models, warehouse)
    chosen = selection(given, flags, models)
    options = chosen.settings
    keys = partition_keys(warehouse, options.rounds, options.segments)
    require_snapshot(warehouse, "predictions", SPACE, keys, options.snapshot)
    check_asking(settings, chosen)
    names = ", ".join(model.name for model in chosen.models) or "those of the response store"
    say(f"{counted(len(keys), 'partition')}, snapshot {options.snapshot}, models: {names}", err=True)
    for line in question_lines(warehouse, chosen):
        say(line, err=True)
    with start_stages("survey", keys, options.snapshot) as running:
        _make_stages(running, warehouse, chosen, flags)
        runs = counted(len(running.outcome.run_ids), "Dagster run")
        if flags.no_roll_ups:
            warehouse.refresh_database()
        else:
            running.roll_up(warehouse, options.metric)
    outcome = running.outcome
    click.echo(f"{counted(len(keys), 'partition')}, {runs}, {time.monotonic() - running.started:.1f} s")
    for line in now_asked(running.command.gateway):
        say(line)
    failed = end_run(warehouse, outcome)
    all_answered = True
    if not options.from_store:
        with kept_terminal():
            all_answered = after_run(warehouse, chosen)
    if flags.no_roll_ups:
        say(
            "roll-ups were left out: boards, costs, drift of the models and the report are made by `dtef board --refresh`, or the next run"
        )
    if outcome.superseded:
        say(
            f"warning: {counted(outcome.superseded, 'earlier prediction')} answered prompts that are made in another way now, so no longer "
            "in the tables; the raw responses stay in the response store, and the earlier options bring them back",
            err=True,
        )
    return failed or (0 if all_answered else SOME_MODEL_SILENT)


def _make_stages(running: StagesRun, warehouse: Warehouse, chosen: Selection, flags: SurveyFlags) -> None:
    """Make the stages of the partitions: of those that lie apart the prompts of all before the first is asked."""
    from assets.launch import STAGE_NAMES
    from assets.stage.partitions import ranges
    from assets.survey.rounds import known_keys

    config, keys = survey_run_config(chosen.settings), list(running.keys)
    stages = STAGE_NAMES if flags.first == "ingest" else STAGE_NAMES[1:]
    asks = any(not model.is_computed for model in chosen.models)
    in_turn, parts = bool(asks or chosen.settings.limits), len(list(ranges(known_keys(running.instance), keys)))
    if parts > 1:
        each = f"{parts} Dagster runs for the prompts, then {parts} for the rest" if in_turn else f"{parts} Dagster runs"
        click.echo(f"a Dagster run takes neighbouring partitions only, and these lie apart: {each}", err=True)
    if unmade := _without_prompts(warehouse, chosen, keys) if flags.first == "ingest" and not chosen.conditions else []:
        running.materialize(stages[:1], unmade, config)
        keys = [key for key in keys if key not in unmade]
    if not keys:
        return
    # Progress counts the prompts of all runs and a limit chooses among them, so all are made before the first is asked.
    made = stages.index("blueprints") + 1 if in_turn and parts > 1 else len(stages)
    running.materialize(stages[:made], keys, config)
    if stages[made:]:
        running.materialize(stages[made:], keys, config)


def _without_prompts(warehouse: Warehouse, chosen: Selection, keys: Sequence[str]) -> list[str]:
    """The partitions of which no run made prompts: a run from the store has nothing to make of them beside what is in their files."""
    made = {
        (one, segment) for one in chosen.settings.rounds for segment in warehouse.values("blueprints", "segment", round=one)
    }
    return [key for key in keys if split_partition_key(key) not in made]


def _report_written(settings: Settings) -> dict[str, str]:
    """The address of the report in a warehouse on this computer; nothing where there is none."""
    page = Path(settings.warehouse).absolute() / "report" / "index.html"
    return {"the report": page.as_uri()} if page.is_file() else {}


def ui(host: str, port: int) -> int:
    settings = Settings.from_environment()
    open_warehouse(new=True)
    check_settings(settings)
    ResponseStore(settings.responses_url).close()
    home = prepare_home()
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "assets.dev_server",
        "-w",
        str(shipped("workspace.yaml")),
        "-h",
        host,
        "-p",
        str(port),
    ]
    address = f"http://{host}:{port}"
    click.echo(f"Dagster on {address} (state: {without_secrets(settings.warehouse)}); stop with Ctrl-C")
    # The page "Lineage" opens with its groups closed.
    places = {what: f"{address}/{place}" for what, place in PLACES_IN_THE_UI.items()} | _report_written(settings)
    for what, place in places.items():
        click.echo(f"  {what + ':':<{max(map(len, places)) + 1}} {place}")
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
