"""The state on disk as `dtef doctor` looks at it: read only, so that nothing is made or changed."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dtef_pipeline.cli.findings import Diagnosis, State
from dtef_pipeline.documents import read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.counted import counted
from resources.file_systems import without_secrets
from resources.parquet_files import looks_damaged
from resources.responses.database import SCHEMA_VERSION
from resources.settings import Settings, shipped

_MOST_FILES = 20_000
"""Of the warehouse, to be looked at; each takes a few microseconds."""
_MOST_BROKEN = 3
_FRESH_S = 120.0
"""The daemon's parts say every 30 seconds that they live."""
_LITTLE, _TOO_LITTLE = 2e9, 2e8
"""Bytes of free disk space."""


def check_state(settings: Settings) -> Iterator[Diagnosis]:
    """Dagster's home and daemon, the response store, the warehouse, free disk space."""
    if settings.home_problem:
        yield Diagnosis("Dagster's home", "problem", *settings.home_problem.split(": "))
    else:
        yield from _home(settings.dagster_home)
    yield _store(settings)
    yield _warehouse(settings.warehouse)
    yield from _disk(settings)


def _home(home: Path) -> Iterator[Diagnosis]:
    file = home / "dagster.yaml"
    if not file.is_file():
        yield _absent("Dagster's home", home, "DAGSTER_HOME")
        return
    try:
        values = read_document(file, "settings file of Dagster", ("storage", "run_launcher", "concurrency")).values
    except ConfigError as error:
        yield Diagnosis(
            "Dagster's home", "problem", str(error), f"mend it, or put this in its place: {shipped('dagster.yaml')}"
        )
        return
    if "run_launcher" not in values:
        found, remedy = f"{file} is of an earlier version", f"put this in its place: {shipped('dagster.yaml')}"
        yield Diagnosis("Dagster's home", "warning", found, remedy)
    else:
        yield _writable("Dagster's home", home, str(home), "DAGSTER_HOME")
    if "postgres" in str(values.get("storage", "")).lower():
        yield Diagnosis(
            "Dagster's daemon", "ok", "not looked at: it reports to PostgreSQL (`dagster-daemon liveness-check` asks)"
        )
    elif (home / "history" / "runs.db").is_file():
        yield _daemon(home)


def _daemon(home: Path) -> Diagnosis:
    """Whether the daemon lives, and which schedules and sensors are switched on."""
    try:
        last = _rows(home / "history" / "runs.db", "SELECT max(timestamp) FROM daemon_heartbeats")[0][0]
        schedules = home / "schedules" / "schedules.db"
        kept = (
            _rows(schedules, "SELECT instigator_body FROM instigators WHERE status = 'RUNNING'") if schedules.is_file() else []
        )
    except sqlite3.Error as error:
        remedy = "take the backup of this folder, or move it away: the next command makes a new one"
        return Diagnosis("Dagster's daemon", "problem", f"the storage in {home} cannot be read: {error}", remedy)
    names = sorted({found[1] for (body,) in kept if (found := re.search(r'"(?:instigator_name|job_name)": "(\w+)"', body))})
    switched = f"switched on: {', '.join(names)}" if names else "no schedule or sensor was switched on"
    age = (datetime.now(UTC) - datetime.fromisoformat(last).replace(tzinfo=UTC)).total_seconds() if last else None
    if age is not None and age < _FRESH_S:
        return Diagnosis("Dagster's daemon", "ok", f"running; {switched}")
    seen = "was never started here" if age is None else f"last seen {_ago(age)} ago"
    if names:
        return Diagnosis(
            "Dagster's daemon", "warning", f"{seen}; {switched}", "start it with `dtef ui`, or as docs/operate.md says"
        )
    return Diagnosis("Dagster's daemon", "ok", f"{seen}; {switched}")


def _store(settings: Settings) -> Diagnosis:
    name = "response store"
    try:
        url = sa.make_url(settings.responses_url)
    except (sa.exc.ArgumentError, ValueError):
        return Diagnosis(
            name, "problem", "DTEF_RESPONSES is no readable URL", "name a file, sqlite:///FILE or postgresql://..."
        )
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() != "sqlite":
        return Diagnosis(name, "ok", f"{shown}: not looked at, as it is no file (`dtef responses show` asks)")
    path = Path(str(url.database))
    if not path.exists():
        return _absent(name, path, "DTEF_RESPONSES")
    try:
        (version,) = _rows(path, "SELECT max(schema_version) FROM response_store")[0]
    except (sqlite3.Error, OSError) as error:
        remedy = "take a backup of it, or name another file in DTEF_RESPONSES"
        return Diagnosis(name, "problem", f"{path} is no response store: {error}", remedy)
    if version is None or version > SCHEMA_VERSION:
        found = f"{path} has the schema version {version}; this dtef-pipeline knows {SCHEMA_VERSION}"
        return Diagnosis(name, "problem", found, "upgrade dtef-pipeline, or name another file in DTEF_RESPONSES")
    found = f"{path}: {path.stat().st_size / 1e6:,.1f} MB, schema version {version}"
    return _writable(name, path, found, "DTEF_RESPONSES")


def _warehouse(root: str) -> Diagnosis:
    if "://" in root:
        return Diagnosis(
            "warehouse", "ok", f"{without_secrets(root)}: not looked at, as it is no folder (`dtef sql 'SHOW TABLES'` asks)"
        )
    folder = Path(root).absolute()
    if not folder.exists():
        return _absent("warehouse", folder, "DTEF_WAREHOUSE")
    if not folder.is_dir():
        return Diagnosis("warehouse", "problem", f"{folder} is no folder", "name a folder in DTEF_WAREHOUSE")
    files = [path for path, _ in zip(folder.glob("*/**/*.parquet"), range(_MOST_FILES), strict=False)]
    broken = [str(path) for path in files if looks_damaged(str(path))]
    if broken:
        more = f" and {len(broken) - _MOST_BROKEN} more" if len(broken) > _MOST_BROKEN else ""
        remedy = "delete them and run their rounds again with `dtef run --ingest`: stored responses are used again"
        found = f"broken: {len(broken)} of {counted(len(files), 'file')}: {', '.join(broken[:_MOST_BROKEN])}{more}"
        return Diagnosis("warehouse", "problem", found, remedy)
    tables = {path.relative_to(folder).parts[0] for path in files}
    found = f"{folder}: {counted(len(files), 'file')} of {counted(len(tables), 'table')}"
    return _writable("warehouse", folder, found, "DTEF_WAREHOUSE")


def _disk(settings: Settings) -> Iterator[Diagnosis]:
    """Free space, a line per disk."""
    of_disk: dict[int, tuple[Path, list[str]]] = {}
    for name, place in settings.places().items():
        if "://" not in place:
            parent = _nearest(Path(place))
            of_disk.setdefault(parent.stat().st_dev, (parent, []))[1].append(name)
    for parent, names in of_disk.values():
        free = shutil.disk_usage(parent).free
        state: State = "problem" if free < _TOO_LITTLE else "warning" if free < _LITTLE else "ok"
        remedy = "" if state == "ok" else "make room: docs/operate.md, Disk, says what may be deleted"
        yield Diagnosis("free disk space", state, f"{free / 1e9:,.1f} GB for {', '.join(names)}", remedy)


def _absent(check: str, path: Path, variable: str) -> Diagnosis:
    """What the first command that needs it makes, if it can."""
    parent = _nearest(path)
    if parent == path or not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        return Diagnosis(check, "problem", f"{path} cannot be made below {parent}", f"name another place in {variable}")
    return Diagnosis(check, "ok", f"{path} is not there yet; the first command that needs it makes it")


def _writable(check: str, path: Path, found: str, variable: str) -> Diagnosis:
    places = [path] if path.is_dir() else [path, path.parent]
    if all(os.access(place, os.W_OK) for place in places):
        return Diagnosis(check, "ok", found)
    return Diagnosis(
        check, "problem", f"{path} is not writable", f"let this user write there, or name another place in {variable}"
    )


def _nearest(path: Path) -> Path:
    """The path, or the nearest folder or file above it that is there."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


def _rows(path: Path, query: str) -> list[Any]:
    """Of an SQLite file that is only read. `immutable`: SQLite makes no files beside it, where nobody has it open."""
    alone = not path.with_name(f"{path.name}-wal").exists()
    address = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    with closing(sqlite3.connect(address, uri=True, timeout=5)) as connection:
        return connection.execute(query).fetchall()


def _ago(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            number = int(seconds // size)
            return counted(number, unit)
    return counted(round(seconds), "second")
