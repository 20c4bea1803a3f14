"""The freshness policy of nightly tables: only with a panel, a warning after one missed night, a failure after two.

The daemon is called by its private names: in public it is a process of its own, whose clock cannot be set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from assets.stage.night_request import LATE, VERY_LATE, build_freshness_policy
from resources.settings import Settings
from tests.conftest import ROOT


def test_in_force_only_where_there_is_a_panel() -> None:
    assert build_freshness_policy(Settings.read_environment({})) is None
    assert [at / timedelta(hours=1) for at in (LATE, VERY_LATE)] == [36, 60]
    policy = build_freshness_policy(Settings.read_environment({"DTEF_PANEL": "panel.yaml"}))
    assert policy == dg.FreshnessPolicy.time_window(warn_window=LATE, fail_window=VERY_LATE)


SAYS = """
import sys
from datetime import datetime, timedelta
import dagster as dg
from dagster._core.test_utils import create_test_daemon_workspace_context, freeze_time
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.freshness import FreshnessDaemon

target = ModuleTarget("assets.definitions", attribute=None, working_directory=sys.argv[1], location_name="dtef")
keys = [dg.AssetKey(name) for name in ("predictions", "drift_checks", "scores")]
with dg.DagsterInstance.get() as instance:
    instance.report_runless_asset_event(dg.AssetMaterialization("predictions", partition="T1/country:kenya"))
    now = datetime.fromisoformat(sys.argv[2])
    with create_test_daemon_workspace_context(target, instance) as context:
        for hours in (1, 35, 37, 61):
            with freeze_time(now + timedelta(hours=hours)):
                list(FreshnessDaemon().run_iteration(context))
                found = instance.get_freshness_state_records(keys)
                print("at", hours, *(found[key].freshness_state.value for key in keys))
"""


@pytest.mark.thorough
def test_the_daemon_warns_after_a_missed_night_and_fails_after_two(state: Path) -> None:
    home = state / "dagster"
    home.mkdir()
    environment = {**os.environ, "DAGSTER_HOME": str(home), "DTEF_PANEL": str(ROOT / "data" / "panel.yaml")}
    now = datetime.now(UTC) + timedelta(minutes=5)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SAYS, str(ROOT), now.isoformat()],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    states = ["at 1 PASS", "at 35 PASS", "at 37 WARN", "at 61 FAIL"]
    # drift_checks was never made, and scores have no policy.
    assert [line for line in done.stdout.splitlines() if line.startswith("at ")] == [
        f"{state} UNKNOWN NOT_APPLICABLE" for state in states
    ]
