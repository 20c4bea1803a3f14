"""Settings: what another process is given, and that no secret is among it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict

from dtef_pipeline.errors import ConfigError, SurveyError
from resources.failures import ErrorLink, add_remedy, describe_error, format_one_line, links
from resources.settings import Settings


def test_another_process_gets_the_places_in_full_and_no_secret() -> None:
    given = {"DTEF_PANEL": "panel.yaml", "DTEF_WEBHOOK": "https://h.example/secret"}
    settings = Settings.read_environment(given)
    assert settings.environment()["DTEF_PANEL"] == str(Path("panel.yaml").absolute())
    assert settings.webhook == given["DTEF_WEBHOOK"]
    assert "secret" not in str(settings.environment()) + repr(settings)


def test_a_home_of_dagster_that_is_no_full_path_is_a_problem() -> None:
    """It was another home in every folder that one stands in, and Dagster's own commands refuse it."""
    problem = Settings.read_environment({"DAGSTER_HOME": "rel"}).home_problem
    assert problem == f"DAGSTER_HOME is rel, which is not a full path: name it as DAGSTER_HOME={Path('rel').absolute()}"
    assert Settings.read_environment({"DAGSTER_HOME": "/full"}).home_problem is None
    assert Settings.read_environment({}).home_problem is None


def test_of_the_server_that_looks_up_neither_address_nor_secret_are_shown_or_passed_on() -> None:
    given = {
        "DTEF_SOCIOSCOPE_URL": "https://h.example/planted",
        "DTEF_SOCIOSCOPE_AUTH": "planted",
        "DTEF_SOCIOSCOPE_MODEL": "a:b",
    }
    settings = Settings.read_environment(given)
    assert (settings.socioscope_auth_env, settings.socioscope_model) == ("DTEF_SOCIOSCOPE_AUTH", "a:b")
    assert "planted" not in repr(settings) + str(settings.environment())
    blank = Settings.read_environment(dict.fromkeys(given, " "))
    assert (blank.socioscope_url, blank.socioscope_auth_env, blank.socioscope_model) == (None, None, None)


def test_limits_of_providers_are_read() -> None:
    given = {"DTEF_PROVIDER_LIMITS": " openai=60, openai/127.0.0.1:8000=4,", "DTEF_PARTITIONS_PER_RUN": "50"}
    settings = Settings.read_environment(given)
    assert settings.provider_limits == {"openai": 60, "openai/127.0.0.1:8000": 4}
    assert settings.partitions_per_run == 50
    assert hash(settings) == hash(Settings.read_environment(given))
    assert Settings.read_environment({}).provider_limits == {}


LIMITS = dict.fromkeys(["openai", "=3", "openai=0", "openai=-2", "openai=many", "a=1,a=2"], "DTEF_PROVIDER_LIMITS")
PARTITIONS = dict.fromkeys(["0", "1.5", "all"], "DTEF_PARTITIONS_PER_RUN")


@pytest.mark.parametrize(("given", "name"), {**LIMITS, **PARTITIONS, "perhaps": "DTEF_TRACEBACK"}.items())
def test_a_value_that_is_none_is_refused_by_name(given: str, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is {given!r}; allowed: "):
        Settings.read_environment({name: given})


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


def raised_from(outer: Exception, inner: Exception) -> Exception:
    outer.__cause__ = inner
    return outer


def test_the_projects_own_message_is_reported_and_not_what_it_was_raised_from() -> None:
    """The innermost cause was told: a dump of pydantic's, with an address to look up."""
    ours = ConfigError("p.yaml:2: rouds: unknown key")
    assert describe_error(links(raised_from(ours, ValueError("dump")))) == "p.yaml:2: rouds: unknown key"
    assert describe_error(links(raised_from(RuntimeError("step failed"), ours))) == "p.yaml:2: rouds: unknown key"
    assert describe_error(links(SurveyError("no column", where="a.csv", line=3))) == "a.csv:3: no column"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/x/y"), "cannot use /x/y: No such file or directory"),
        (OSError(errno.EISDIR, "Is a directory", "/a", None, "/b"), "cannot use /b: Is a directory"),
        (
            OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device"),
            "cannot read or write a file: No space left on device",
        ),
    ],
)
def test_an_error_of_the_disk_is_reported_with_its_path_and_reason(error: Exception, said: str) -> None:
    assert describe_error(links(error)) == said


def test_dagsters_storage_is_named_and_no_statement_shown(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(b"rubbish" * 200)
    with sa.create_engine(f"sqlite:///{path}").connect() as connection, pytest.raises(sa.exc.DatabaseError) as caught:
        connection.execute(sa.text("SELECT 'secret' FROM runs"))
    assert (
        describe_error(links(caught.value), "/home")
        == "cannot read or write the storage of Dagster in /home: file is not a database"
    )


def test_a_database_server_that_is_away_is_one_line_with_a_remedy() -> None:
    said = (
        '(psycopg2.OperationalError) connection to server at "h", port 1 failed: Connection refused\n\tIs it running?\n[SQL: x]'
    )
    told = describe_error([ErrorLink("sqlalchemy.exc.OperationalError", said)], "/home")
    reason = 'connection to server at "h", port 1 failed: Connection refused'
    assert told == f"cannot use the database of Dagster that /home/dagster.yaml names: {reason}"
    assert add_remedy(told, {}) == f"{told}; check that the server runs and that its address, user and password are right"


def test_what_nobody_expected_is_its_kind_and_one_line() -> None:
    assert describe_error(links(KeyError("round"))) is None
    assert (
        format_one_line([ErrorLink("dagster._core.errors.Wrapper", "op failed"), ErrorLink("KeyError", "'a'\nmore")])
        == "KeyError: 'a'"
    )
    with pytest.raises(ValueError, match="rouds") as caught:
        Strict.model_validate({"rouds": 1})
    told = format_one_line(links(caught.value))
    assert told == "ValidationError: 1 validation error for Strict: rouds: Extra inputs are not permitted"


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (f"cannot write /w/a: {os.strerror(errno.ENOSPC)}", "free space on that disk and repeat the command"),
        ("cannot write to the response store s: database or disk is full", "stored data is kept"),
        ("cannot use /w/a: Permission denied", "give this user write access, or choose another place with DTEF_WAREHOUSE"),
        ("attempt to write a readonly database", "give this user write access"),
        ("disk I/O error", "check whether the disk is full or the folder is read-only"),
        ("cannot use /w/a: file is not a database", "replace it with a backup, or choose another place with DTEF_WAREHOUSE"),
    ],
)
def test_where_the_disk_is_the_trouble_the_remedy_is_stated(said: str, remedy: str) -> None:
    told = add_remedy(said, {"DTEF_WAREHOUSE": "/w"})
    assert told.startswith(f"{said}; ")
    assert remedy in told
    assert add_remedy("no round S1", {}) == "no round S1"


def test_a_vague_error_of_sqlite_is_a_full_disk_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, places = (
        f"cannot use {tmp_path}/home: disk I/O error",
        {"DTEF_WAREHOUSE": str(tmp_path), "DAGSTER_HOME": f"{tmp_path}/home"},
    )
    assert "check whether" in add_remedy(said, places)
    monkeypatch.setattr("resources.failures.shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    assert add_remedy(said, places).startswith(f"{said}; free space on that disk")


def test_of_places_inside_each_other_the_innermost_is_named() -> None:
    told = add_remedy("cannot use /s/home/x: Permission denied", {"DTEF_WAREHOUSE": "/s", "DAGSTER_HOME": "/s/home"})
    assert told.endswith("or choose another place with DAGSTER_HOME")


def test_what_a_terminal_would_obey_is_not_repeated() -> None:
    """The message about a damaged file had a raw control byte of it."""
    assert (
        describe_error([ErrorLink("duckdb.IOException", "don't know what type: \x0f")])
        == "the tables cannot be read: don't know what type: ?"
    )
