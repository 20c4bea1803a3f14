"""How a worker of Celery starts, as its own process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("settings", "broker", "said"),
    [
        ("dagster.yaml", {}, " has the run launcher assets.run_launcher.WatchedRunLauncher; a worker needs that of "),
        (
            "celery/dagster.yaml",
            {},
            ": Dagster does not start with it: the environment variable DTEF_BROKER, which it names, is not set",
        ),
        ("celery/dagster.yaml", {"DTEF_BROKER": ""}, " names no broker, or a variable that is empty, such as DTEF_BROKER"),
    ],
)
def test_a_worker_without_its_settings_says_in_one_line_what_it_needs(
    tmp_path: Path, settings: str, broker: dict[str, str], said: str
) -> None:
    """It ended with a trace of fifty lines."""
    shutil.copyfile(ROOT / "deploy" / settings, tmp_path / "dagster.yaml")
    command = [sys.executable, "-m", "celery", "--app", "assets.celery_worker", "worker"]
    place = {"DAGSTER_HOME": str(tmp_path), "PATH": "", "DAGSTER_POSTGRES_URL": "postgresql://u:p@127.0.0.1:1/d"}
    environment = {**place, **broker, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"dtef: no worker can be started here: {tmp_path}/dagster.yaml{said}")
    assert done.stderr.endswith(" (docs/several-machines.md)\n")
    assert done.stderr.count("\n") == 1
