"""`dtef doctor` on Dagster's daemon: whether it lives, and whether that is needed. tests/assets/test_daemon_state.py has its states."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assets.daemon_state import DaemonState, SensorTicks
from resources.evaluations.evaluation_store import EvaluationStore
from tests.dtef_pipeline.cli.test_doctor import looks, state_of


def with_evaluation(folder: Path) -> None:
    with closing(EvaluationStore(folder / "responses.sqlite")) as store:
        store.submit("qa", {}, {"keys": []}, [], "me")


def test_evaluations_that_wait_are_a_warning_also_where_dagster_was_never_started(state: Path) -> None:
    """It was "ok": evaluations need the daemon, though nothing was switched on by hand."""
    assert state_of("Dagster's daemon")[0] == "ok"
    with_evaluation(state)
    before = looks(state)
    found, said = state_of("Dagster's daemon")
    assert (found, "evaluations that wait or run: 1" in said) == ("warning", True)
    assert looks(state) == before


@pytest.mark.parametrize(
    ("hours_ago", "daemon", "waits", "expected", "words"),
    [
        (0, DaemonState(None, False), False, "ok", "running"),
        (0, DaemonState(None, False), True, "warning", "switched off"),
        (3, DaemonState(None, True), False, "warning", "last seen 3 hours ago"),
        (0, DaemonState(None, True, ticks=SensorTicks(None)), False, "warning", "had no tick"),
        (None, DaemonState(None, True, "OperationalError: connection refused"), False, "problem", "connection refused"),
    ],
)
def test_a_state_of_the_daemon_is_as_loud_as_it_is_bad(
    ingested: Path,
    monkeypatch: pytest.MonkeyPatch,
    hours_ago: int | None,
    daemon: DaemonState,
    waits: bool,
    expected: str,
    words: str,
) -> None:
    """The heartbeat's age is counted from the test, as it may be collected many minutes before."""
    heartbeat = None if hours_ago is None else datetime.now(UTC) - timedelta(hours=hours_ago)
    monkeypatch.setattr("assets.daemon_state.daemon_state", lambda *_: daemon._replace(last_heartbeat_at=heartbeat))
    if waits:
        with_evaluation(ingested)
    found, said = state_of("Dagster's daemon")
    assert (found, words in said) == (expected, True), said
