"""Dagster's home as `dtef doctor` looks at it: its settings, its storage, the daemon, and whether it knows the rounds of the warehouse."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg

from assets.stage.dagster_internals import storage_settings
from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.cli.places import absent, rows, writable
from dtef_pipeline.cli.ready import does_not_start, earlier_version
from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.observe import MIN_N
from dtef_pipeline.survey.whole import ALLOWANCES
from dtef_pipeline.text.counted import counted
from resources.settings import Settings, shipped
from resources.sources import Source, Sources
from resources.warehouse import Warehouse

_PLACE, _DAEMON = "Dagster's home", "Dagster's daemon"
_FRESH_S = 120.0
"""The daemon's parts say every 30 seconds that they live."""
_FILES = (Path("history", "runs.db"), Path("history", "runs", "index.db"), Path("schedules", "schedules.db"))
"""Of Dagster's SQLite storage: runs and the daemon, events and partitions, schedules and sensors."""
_QUERIES = (
    "SELECT max(timestamp) FROM daemon_heartbeats",
    f"SELECT partition FROM dynamic_partitions WHERE partitions_def_name = '{SPACE.name}'",
    "SELECT status, instigator_body FROM instigators",
)


def check_home(settings: Settings) -> Iterator[Diagnosis]:
    """Its settings file, its storage and its daemon."""
    home = settings.dagster_home
    if settings.home_problem:
        found, _, remedy = settings.home_problem.partition(": ")
        yield Diagnosis(_PLACE, "problem", found, remedy)
        return
    if not (home / "dagster.yaml").is_file():
        found = f"{home}: the first command that needs it makes its dagster.yaml"
        place = writable(_PLACE, home, found, "DAGSTER_HOME") if home.is_dir() else absent(_PLACE, home, "DAGSTER_HOME")
        yield place
        if place.state == "ok":
            yield from _unknown_rounds(settings, set())
        return
    try:
        earlier = earlier_version(home / "dagster.yaml")
        # Its settings may name the variable.
        os.environ["DAGSTER_HOME"] = str(home)
        storage = storage_settings(home)
    except Exception as error:  # Dagster has many
        said = str(error) if isinstance(error, DtefError) else does_not_start(home, error)
        yield Diagnosis(_PLACE, "problem", said, f"mend it, or take the template for one machine: {_template(home)}")
        return
    if earlier:
        yield Diagnosis(_PLACE, "warning", earlier, f"take the template: {_template(home)}")
    else:
        yield writable(_PLACE, home, str(home), "DAGSTER_HOME")
    if "base_dir" not in storage:
        found = "not looked at: its storage is no folder (`dagster-daemon liveness-check` asks)"
        yield Diagnosis(_DAEMON, "ok", found)
        return
    yield from _storage(settings, Path(storage["base_dir"]))


def _storage(settings: Settings, folder: Path) -> Iterator[Diagnosis]:
    """The files of Dagster's SQLite storage, and what they say."""
    found: list[list[Any]] = []
    for name, query in zip(_FILES, _QUERIES, strict=True):
        try:
            found.append(rows(folder / name, query))
        except (sqlite3.Error, OSError) as error:
            file = shlex.quote(str(folder / name))
            again = f" && {_ingest_again(settings)}" if name == _FILES[1] else ""
            remedy = f"put a backup of {folder} in its place, or begin a new one: mv {file} {file}.broken{again}"
            yield Diagnosis("Dagster's storage", "problem", f"{folder / name} cannot be read: {error}", remedy)
            return
    heartbeats, partitions, states = found
    yield _daemon(heartbeats[0][0] if heartbeats else None, states)
    yield from _unknown_rounds(settings, {partition for (partition,) in partitions})


def _daemon(last: str | None, states: list[Any]) -> Diagnosis:
    """Whether the daemon lives, and which schedules and sensors it runs when it does."""
    named = [
        (status, name[1]) for status, body in states if (name := re.search(r'"(?:instigator_name|job_name)": "(\w+)"', body))
    ]
    switched = sorted({name for status, name in named if status == "RUNNING"})
    off = {name for status, name in named if status == "STOPPED"}
    default = sorted(_on_by_default() - off - set(switched))
    on = f"switched on: {', '.join(switched) or 'nothing'}; on from the start: {', '.join(default) or 'nothing'}"
    age = (datetime.now(UTC) - datetime.fromisoformat(last).replace(tzinfo=UTC)).total_seconds() if last else None
    if age is not None and age < _FRESH_S:
        return Diagnosis(_DAEMON, "ok", f"running; {on}")
    seen = "was never started here" if age is None else f"last seen {_ago(age)} ago"
    if switched:
        return Diagnosis(_DAEMON, "warning", f"{seen}; {on}", "start it: `dtef ui`, or as docs/operate.md says")
    return Diagnosis(_DAEMON, "ok", f"{seen} (`dtef ui` starts it); {on}")


def _on_by_default() -> set[str]:
    # Loads all stages, as Dagster does: the line about the home need not wait for it.
    from assets.definitions import SCHEDULES, SENSORS

    sensors = {one.name for one in SENSORS if one.default_status is dg.DefaultSensorStatus.RUNNING}
    schedules = {one.name for one in SCHEDULES if one.default_status is dg.DefaultScheduleStatus.RUNNING}
    return sensors | schedules


def _unknown_rounds(settings: Settings, partitions: set[str]) -> Iterator[Diagnosis]:
    """Rounds of the warehouse that this home does not know: no run can be started of them."""
    known = {SPACE.levels(partition)[SPACE.first] for partition in partitions}
    if unknown := [round_id for round_id in _sources(settings) if round_id not in known]:
        found = (
            f"in the warehouse, but not known here, so they cannot be run: {', '.join(unknown)}; "
            "they were ingested with another home, or the storage of this one was begun anew"
        )
        yield Diagnosis("Dagster's rounds", "problem", found, _ingest_again(settings, unknown))


def _ingest_again(settings: Settings, rounds: list[str] | None = None) -> str:
    """The commands that register rounds again, as they were ingested."""
    sources = _sources(settings)
    return "; ".join(sources[round_id] for round_id in (sources if rounds is None else rounds)) or "dtef ingest PATH"


def _sources(settings: Settings) -> Mapping[str, str]:
    """By round, the command that ingests it again. Of a warehouse that is a folder."""
    if "://" in settings.warehouse or not Path(settings.warehouse).is_dir():
        return {}
    warehouse = Warehouse(settings.warehouse)
    sources = Sources(warehouse, lambda path, round_id: None)
    found = {round_id: sources.get(round_id) for round_id in warehouse.values("survey_responses", SPACE.first)}
    return {round_id: _as_ingested(round_id, source) for round_id, source in found.items()}


def _as_ingested(round_id: str, source: Source | None) -> str:
    if source is None:
        return f"dtef ingest PATH --round {shlex.quote(round_id)}"
    options = [f"--round {shlex.quote(round_id)}", *(ALLOWANCES[code] for code in source.allowed)]
    if source.min_n != MIN_N:
        options.append(f"--min-n {source.min_n}")
    if source.design_effect != 1:
        options.append(f"--design-effect {source.design_effect:g}")
    return f"dtef ingest {shlex.quote(source.path)} {' '.join(options)}"


def _template(home: Path) -> str:
    return f"cp {shlex.quote(str(shipped('dagster.yaml')))} {shlex.quote(str(home / 'dagster.yaml'))}"


def _ago(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return counted(int(seconds // size), unit)
    return counted(round(seconds), "second")
