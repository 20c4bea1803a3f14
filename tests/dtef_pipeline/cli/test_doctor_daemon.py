"""`dtef doctor` on Dagster's daemon: whether it lives, and whether that is needed."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._daemon.types import DaemonHeartbeat

from assets.daemon_state import DaemonState
from resources.evaluations.evaluation_store import EvaluationStore
from tests.dtef_pipeline.cli.test_doctor import looks, state_of

DAEMON = "Dagster's daemon"


def with_evaluation(folder: Path) -> None:
    with closing(EvaluationStore(folder / "responses.sqlite")) as store:
        store.submit("qa", {}, {"keys": []}, [], "me")


def heard_of(folder: Path, ago_s: float) -> None:
    with dg.DagsterInstance.from_config(str(folder / "dagster")) as instance:
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time() - ago_s, "SENSOR", "one", []))


def test_a_daemon_that_stopped_is_a_warning_with_the_command_that_starts_it(ingested: Path) -> None:
    heard_of(ingested, 3 * 3600)
    state, said = state_of(DAEMON)
    assert (state, said.startswith("last seen 3 hours ago"), said.endswith("dtef ui")) == ("warning", True, True)


def test_evaluations_that_wait_are_a_warning_also_where_dagster_was_never_started(state: Path) -> None:
    """It was "ok": evaluations need the daemon, though nothing was switched on by hand."""
    assert state_of(DAEMON)[0] == "ok"
    with_evaluation(state)
    before = looks(state)
    found, said = state_of(DAEMON)
    assert (found, "evaluations that wait or run: 1" in said) == ("warning", True)
    assert looks(state) == before


def test_sensors_that_do_nothing_though_the_daemon_runs_are_a_warning(ingested: Path) -> None:
    heard_of(ingested, 0)
    state, said = state_of(DAEMON)
    assert (state, "had no tick" in said, "journalctl -u dtef-code" in said) == ("warning", True, True)


def test_evaluations_that_wait_for_a_sensor_that_is_off_are_a_warning(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assets.daemon_state.daemon_state", lambda *_: DaemonState(datetime.now(UTC), False))
    assert state_of(DAEMON)[0] == "ok"
    with_evaluation(ingested)
    state, said = state_of(DAEMON)
    assert (state, "switched off" in said) == ("warning", True)


def test_a_storage_in_postgresql_that_is_away_is_a_problem(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = DaemonState(None, True, "OperationalError: connection refused")
    monkeypatch.setattr("assets.daemon_state.daemon_state", lambda *_: away)
    state, said = state_of(DAEMON)
    assert (state, "connection refused" in said) == ("problem", True)
