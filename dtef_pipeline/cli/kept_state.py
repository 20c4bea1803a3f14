"""The tables, the responses and the disk as `dtef doctor` looks at them: read only, so that nothing is made or changed."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from dtef_pipeline.cli.asked_bucket import check_object_store
from dtef_pipeline.cli.findings import Diagnosis, State
from dtef_pipeline.cli.places import absent, elsewhere, holds_files, nearest, rows, writable
from dtef_pipeline.errors import ConfigError, DtefError, makes_again
from dtef_pipeline.text.counted import and_more, counted
from resources.parquet_files import fault, looks_damaged
from resources.responses.damage import damage_of
from resources.responses.database import SCHEMA_VERSION, ResponseDatabase
from resources.responses.engines import database_url
from resources.settings import Settings
from resources.warehouse import TABLES, Warehouse

_MOST_LOOKED_INTO = 2_000
"""Files of the warehouse. Of more, only their first and last bytes are looked at: that takes a tenth of the time."""
_MOST_BROKEN = 3
_LOOKED_AT_S = 10.0
"""How long the response store is searched for damage."""
_LITTLE, _TOO_LITTLE = 2e9, 2e8
"""Bytes of free disk space."""


def check_state(settings: Settings) -> Iterator[Diagnosis]:
    """The response store, the warehouse, the landing folder, free disk space."""
    yield _store(settings)
    yield _warehouse(settings.warehouse)
    yield _landing_folder(settings.surveys.absolute())
    yield from _disk(settings)


def _store(settings: Settings) -> Diagnosis:
    check = "response store"
    try:
        url = database_url(settings.responses_url)
        if url.get_backend_name() != "sqlite":
            return _server(settings, url)
    except ConfigError as error:
        remedy = "name a file or a PostgreSQL database: export DTEF_RESPONSES=PATH, or =postgresql+psycopg://..."
        return Diagnosis(check, "problem", str(error), remedy)
    except DtefError as error:
        remedy = "start the server, or mend the address, user or password in DTEF_RESPONSES; the message says which"
        return Diagnosis(check, "problem", str(error), remedy)
    path = Path(str(url.database))
    if path.is_dir():
        found = f"{path} is a folder, where a file is needed"
        return Diagnosis(check, "problem", found, f"export DTEF_RESPONSES={shlex.quote(str(path / 'responses.sqlite'))}")
    if not path.exists():
        return absent(check, path, "DTEF_RESPONSES")
    try:
        tables = {name for (name,) in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}
        versions = rows(path, "SELECT max(schema_version) FROM response_store") if "response_store" in tables else []
        if "responses" in tables:
            rows(path, "SELECT max(rowid) FROM responses")
        if path.stat().st_size and (damage := damage_of(path, _LOOKED_AT_S)):
            raise sqlite3.DatabaseError(f"it is damaged: {damage}")
    except (sqlite3.Error, OSError) as error:
        file = shlex.quote(str(path))
        remedy = f"put a backup in its place, or begin a new store, which asks all anew: mv {file} {file}.broken"
        return Diagnosis(check, "problem", f"{path} cannot be read: {error}", remedy)
    version = versions[0][0] if versions else None
    if version is not None and version > SCHEMA_VERSION:
        found = f"{path} has the schema version {version}; this dtef-pipeline knows {SCHEMA_VERSION}"
        return Diagnosis(check, "problem", found, "upgrade dtef-pipeline, or name another file: export DTEF_RESPONSES=PATH")
    size = f"{path.stat().st_size / 1e6:,.1f} MB"
    found = f"{path}: {size}, schema version {version}" if version else f"{path}: no responses yet"
    return writable(check, path, found, "DTEF_RESPONSES")


def _server(settings: Settings, url: sa.URL) -> Diagnosis:
    """A PostgreSQL server is asked, for a few seconds, what it has. Raises ConfigError and StoreError."""
    shown = url.render_as_string(hide_password=True)
    database = ResponseDatabase(settings.responses_url, prepare=False)
    try:
        version = database.schema_version()
    finally:
        database.close()
    return Diagnosis("response store", "ok", f"{shown}: {f'schema version {version}' if version else 'no responses yet'}")


def _warehouse(root: str) -> Diagnosis:
    if "://" in root:
        return check_object_store(root)
    folder = Path(root).absolute()
    if not folder.exists():
        return absent("warehouse", folder, "DTEF_WAREHOUSE", "`dtef ingest PATH`")
    if not folder.is_dir():
        return Diagnosis("warehouse", "problem", f"{folder} is no folder", elsewhere("DTEF_WAREHOUSE"))
    warehouse = Warehouse(folder)
    files = {path: table for table in TABLES for path in warehouse.files(table)}
    broken = _broken(warehouse, files)
    if broken:
        named = and_more([f"{path}: {why}" for path, why in broken.items()], _MOST_BROKEN)
        remedies = dict.fromkeys(warehouse.remake(path) for path in list(broken)[:_MOST_BROKEN])
        found = f"broken: {len(broken)} of {counted(len(files), 'file')}: {named}"
        then = " (`dtef doctor` names further ones when these are mended)" if len(broken) > _MOST_BROKEN else ""
        return Diagnosis("warehouse", "problem", f"{found}{then}", makes_again("; ".join(remedies), "them"))
    tables = set(files.values())
    found = f"{folder}: {counted(len(files), 'file')} of {counted(len(tables), 'table')}"
    return writable("warehouse", folder, found, "DTEF_WAREHOUSE", [folder / table for table in tables])


def _landing_folder(folder: Path) -> Diagnosis:
    """The folder that the sensor `new_round` watches: it is only read, and people make it."""
    check = "landing folder"
    if folder.is_dir():
        if os.access(folder, os.R_OK | os.X_OK):
            return Diagnosis(check, "ok", f"{folder}: watched while the sensor `new_round` is switched on")
        remedy = (
            f"let this user read it (if it is yours: chmod u+rx {shlex.quote(str(folder))}); or {elsewhere('DTEF_SURVEYS')}"
        )
        return Diagnosis(check, "problem", f"{folder} cannot be read", remedy)
    if folder.exists():
        return Diagnosis(check, "problem", f"{folder} is no folder", elsewhere("DTEF_SURVEYS"))
    return absent(
        check, folder, "DTEF_SURVEYS", f"only the sensor `new_round` needs it, and `mkdir -p {shlex.quote(str(folder))}`"
    )


def _broken(warehouse: Warehouse, files: dict[str, str]) -> dict[str, str]:
    """The files that readers would leave out, with the reason."""
    if len(files) > _MOST_LOOKED_INTO:
        return {path: "it is not whole" for path in files if looks_damaged(path)}
    faults = {path: fault(warehouse.fs, path, TABLES[table].schema, whole=False) for path, table in files.items()}
    return {path: found.reason for path, found in faults.items() if found}


def _disk(settings: Settings) -> Iterator[Diagnosis]:
    """Free space, a line per disk."""
    of_disk: dict[int, tuple[Path, list[str]]] = {}
    for name, place in settings.places().items():
        parent = nearest(Path(place)) if "://" not in place else None
        if parent and holds_files(parent):
            of_disk.setdefault(parent.stat().st_dev, (parent, []))[1].append(name)
    for parent, names in of_disk.values():
        free = shutil.disk_usage(parent).free
        state: State = "problem" if free < _TOO_LITTLE else "warning" if free < _LITTLE else "ok"
        there = " ".join(shlex.quote(settings.places()[name]) for name in names)
        remedy = (
            "" if state == "ok" else f"see what takes the room: du -sh {there}; docs/operate.md, Disk, says what may be deleted"
        )
        yield Diagnosis("free disk space", state, f"{free / 1e9:,.1f} GB for {', '.join(names)}", remedy)
