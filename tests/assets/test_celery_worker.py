"""How a worker of Celery starts, as its own process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

DATABASE = {"DAGSTER_POSTGRES_URL": "postgresql://u:p@127.0.0.1:1/d"}
SECRET = "SECR"


@pytest.mark.parametrize(
    ("settings", "broker", "said"),
    [
        ("dagster.yaml", {}, " has the run launcher assets.run_launcher.WatchedRunLauncher; a worker needs that of "),
        (
            "celery/dagster.yaml",
            {},
            ": Dagster does not start with it: it names the environment variable DTEF_BROKER, which is not set",
        ),
        ("celery/dagster.yaml", {"DTEF_BROKER": ""}, " names no broker, or a variable that is empty, such as DTEF_BROKER"),
    ],
)
def test_a_worker_without_its_settings_says_in_one_line_what_it_needs(
    tmp_path: Path, settings: str, broker: dict[str, str], said: str
) -> None:
    """It ended with a trace of fifty lines."""
    shutil.copyfile(ROOT / "deploy" / settings, tmp_path / "dagster.yaml")
    assert ended(tmp_path, broker | DATABASE).startswith(f"{tmp_path}/dagster.yaml{said}")


@pytest.mark.parametrize(
    ("broker", "said"),
    [
        (
            f"rediss://:{SECRET}@127.0.0.1:1/0",
            "rediss://127.0.0.1:1/0: Celery does not take this address: with rediss:// it is to ",
        ),
        ("foo", "DTEF_BROKER is no address such as redis://:PASSWORD@HOST:6379/0; mend it; in the password, write %40 for @, "),
        (f"redis://:{SECRET}/ETPW@127.0.0.1:1/0", "DTEF_BROKER is no address such as "),
        (f"redis://:{SECRET}@127.0.0.1:1/0?bogus=1", "redis://127.0.0.1:1/0: Celery does not take this address: it does not "),
        (f"foo://:{SECRET}@h/0", "Celery does not take the address in DTEF_BROKER, or that of its results: "),
    ],
)
def test_an_address_that_celery_does_not_take_is_one_line_without_its_password(tmp_path: Path, broker: str, said: str) -> None:
    """The trace of one ended in a piece of the password, every few seconds."""
    shutil.copyfile(ROOT / "deploy" / "celery" / "dagster.yaml", tmp_path / "dagster.yaml")
    assert ended(tmp_path, {"DTEF_BROKER": broker} | DATABASE).startswith(said)


def test_without_the_address_of_the_database_the_line_names_its_variable(tmp_path: Path) -> None:
    shutil.copyfile(ROOT / "deploy" / "celery" / "dagster.yaml", tmp_path / "dagster.yaml")
    said = ended(tmp_path, {"DTEF_BROKER": "redis://127.0.0.1:1/0"})
    assert "Dagster does not start with it: it names the environment variable DAGSTER_POSTGRES_URL, which is not set" in said


def test_without_settings_of_dagster_the_line_says_which_to_take(tmp_path: Path) -> None:
    """It spoke of the run launcher of a file that is not there."""
    said = ended(tmp_path, DATABASE)
    assert said.startswith(f"there is no {tmp_path}/dagster.yaml; copy deploy/celery/dagster.yaml there, or mend DAGSTER_HOME")


def ended(home: Path, environment: dict[str, str]) -> str:
    """What a worker says that cannot start: one line, of which the beginning and the end are the same for all."""
    command = [sys.executable, "-m", "celery", "--app", "assets.celery_worker", "worker"]
    place = {"DAGSTER_HOME": str(home), "PATH": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=place | environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), SECRET in done.stderr) == (1, 1, False), done.stderr
    said = done.stderr.removeprefix("dtef: no worker can be started here: ")
    assert said != done.stderr
    return said.removesuffix(" (docs/several-machines.md)\n")
