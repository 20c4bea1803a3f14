"""Dagster's home as `dtef doctor` looks at it: its settings, its storage, the daemon, and whether it knows the rounds of the warehouse."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy as sa

from assets.daemon_state import DaemonState, daemon_state
from assets.stage.dagster_internals import storage_settings
from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.cli.places import absent, rows, writable
from dtef_pipeline.cli.ready import earlier_version, how_to_start
from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.observe import MIN_N
from dtef_pipeline.survey.whole import ALLOWANCES
from dtef_pipeline.text.spans import span_in_words
from resources.evaluation_counts import unended_if_there
from resources.evaluations import QUEUE_SENSOR
from resources.failures import does_not_start, links, one_line
from resources.settings import Settings, shipped
from resources.sources import Source, Sources
from resources.warehouse import Warehouse

_PLACE, _DAEMON, _AT_WORK = "Dagster's home", "Dagster's daemon", "Dagster's sensors"
_NEVER_STARTED = DaemonState(None, True)
_START_DAEMON = "start it, on a server with `systemctl restart dtef-daemon`, elsewhere with: dtef ui"
_MEND_CODE = (
    "see the log of the code server, on a server with `journalctl -u dtef-code`, elsewhere on the terminal of `dtef ui`; mend what it "
    "names, mostly a variable or a file, and start it again"
)
_FILES = (Path("history", "runs.db"), Path("history", "runs", "index.db"), Path("schedules", "schedules.db"))
"""Of Dagster's SQLite storage: runs and the daemon, events and partitions, schedules and sensors."""
_QUERIES = {
    "daemon_heartbeats": "SELECT max(timestamp) FROM daemon_heartbeats WHERE daemon_type = 'SENSOR'",
    "dynamic_partitions": f"SELECT partition FROM dynamic_partitions WHERE partitions_def_name = '{SPACE.name}'",
    "instigators": "SELECT status, instigator_body FROM instigators",
}
"""By table, one in each of the files."""


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
            yield from _daemon(settings, _NEVER_STARTED, []) if _unended(settings) else ()
        return
    try:
        earlier = earlier_version(home / "dagster.yaml")
        # Its settings may name the variable.
        os.environ["DAGSTER_HOME"] = str(home)
        storage = storage_settings(home)
    except Exception as error:  # Dagster has many
        said = str(error) if isinstance(error, DtefError) else does_not_start(home, error)
        yield Diagnosis(
            _PLACE, "problem", said, how_to_start(error, f"mend it, or take the template for one machine: {_template(home)}")
        )
        return
    if earlier:
        yield Diagnosis(_PLACE, "warning", earlier, f"take the template: {_template(home)}")
    else:
        yield writable(_PLACE, home, str(home), "DAGSTER_HOME")
    if "base_dir" in storage:
        yield from _files(settings, Path(storage["base_dir"]))
    elif any(name.startswith("postgres_") for name in storage):
        yield from _server(settings, storage)
    else:
        found = "not looked at: its storage is neither a folder nor PostgreSQL (`dagster-daemon liveness-check` asks)"
        yield Diagnosis(_DAEMON, "ok", found)


def _server(settings: Settings, storage: Mapping[str, Any]) -> Iterator[Diagnosis]:
    """What Dagster's PostgreSQL storage says."""
    from resources.dagster_postgres_storage import found_by

    try:
        yield from _told(settings, found_by(storage, _QUERIES))
    except sa.exc.SQLAlchemyError as error:
        remedy = "start the server, or mend the address, user or password that dagster.yaml names; the message says which"
        yield Diagnosis("Dagster's storage", "problem", one_line(links(error), str(settings.dagster_home)), remedy)


def _files(settings: Settings, folder: Path) -> Iterator[Diagnosis]:
    """The files of Dagster's SQLite storage, and what they say."""
    found: list[list[Any]] = []
    for name, query in zip(_FILES, _QUERIES.values(), strict=True):
        try:
            found.append(rows(folder / name, query))
        except (sqlite3.Error, OSError) as error:
            file = shlex.quote(str(folder / name))
            again = f" && {_ingest_again(settings)}" if name == _FILES[1] else ""
            remedy = f"put a backup of {folder} in its place, or begin a new one: mv {file} {file}.broken{again}"
            yield Diagnosis("Dagster's storage", "problem", f"{folder / name} cannot be read: {error}", remedy)
            return
    yield from _told(settings, found)


def _told(settings: Settings, found: Sequence[Sequence[Any]]) -> Iterator[Diagnosis]:
    """Of what the three queries found."""
    (last,) = heartbeats[0] if (heartbeats := found[0]) else (None,)
    _, partitions, states = found
    seen = datetime.fromisoformat(str(last)).replace(tzinfo=UTC) if last else None
    state = _NEVER_STARTED._replace(last_heartbeat_at=seen)
    if state.is_running(datetime.now(UTC)):
        # The daemon has made all that an instance makes when it is opened.
        alive = daemon_state(settings.dagster_home, QUEUE_SENSOR)
        state = alive if alive.problem is None else state
    yield from _daemon(settings, state, states)
    yield from _unknown_rounds(settings, {partition for (partition,) in partitions})


def _daemon(settings: Settings, state: DaemonState, states: Sequence[Any]) -> Iterator[Diagnosis]:
    """Whether the daemon lives, and which schedules and sensors it runs when it does. `states`: of those that somebody switched."""
    now = datetime.now(UTC)
    named = [
        (status, name[1]) for status, body in states if (name := re.search(r'"(?:instigator_name|job_name)": "(\w+)"', body))
    ]
    switched = sorted({name for status, name in named if status == "RUNNING"})
    off = {name for status, name in named if status == "STOPPED"}
    default = sorted(_on_by_default() - off - set(switched))
    on = f"switched on: {', '.join(switched) or 'nothing'}; on from the start: {', '.join(default) or 'nothing'}"
    if state.is_running(now):
        yield Diagnosis(_DAEMON, "ok", f"running; {on}")
        if fault := state.fault_of_ticks(now, QUEUE_SENSOR):
            yield Diagnosis(_AT_WORK, "warning", f"{fault}: evaluations wait, and nothing is started", _MEND_CODE)
        elif not state.is_sensor_on and _unended(settings):
            remedy = "switch it on in the user interface of Dagster, under Automation"
            yield Diagnosis(_AT_WORK, "warning", f"the sensor {QUEUE_SENSOR} is switched off, and evaluations wait", remedy)
        return
    last = state.last_heartbeat_at
    seen = f"last seen {span_in_words(now - last)} ago" if last else "was never started here"
    n_open = _unended(settings)
    waiting = f"; evaluations that wait or run: {n_open:,}" if n_open else ""
    if switched or n_open:
        yield Diagnosis(_DAEMON, "warning", f"{seen}{waiting}; {on}", _START_DAEMON)
    else:
        yield Diagnosis(_DAEMON, "ok", f"{seen} (`dtef ui` starts it); {on}")


def _unended(settings: Settings) -> int:
    """How many evaluations need the daemon. A store that cannot be read is another check's."""
    try:
        return unended_if_there(settings.responses_url)
    except DtefError:
        return 0


def _on_by_default() -> set[str]:
    # Loads all stages, as Dagster does: the line about the home need not wait for it.
    from assets.definitions import defs

    sensors = {one.name for one in defs.sensors or () if one.default_status is dg.DefaultSensorStatus.RUNNING}
    schedules = [one for one in defs.schedules or () if isinstance(one, dg.ScheduleDefinition)]
    return sensors | {one.name for one in schedules if one.default_status is dg.DefaultScheduleStatus.RUNNING}


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
