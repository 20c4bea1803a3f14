"""`dtef doctor` on Dagster's daemon: whether it lives, and whether that is needed. tests/assets/test_daemon_state.py has its states."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assets.daemon_state import DaemonState, SensorTicks
from resources.evaluations.evaluation_store import EvaluationStore
from tests.dtef_pipeline.cli.test_doctor import looks, state_of

NOW = datetime.now(UTC)


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
    ("daemon", "waits", "expected", "words"),
    [
        (DaemonState(NOW, False), False, "ok", "running"),
        (DaemonState(NOW, False), True, "warning", "switched off"),
        (DaemonState(NOW - timedelta(hours=3), True), False, "warning", "last seen 3 hours ago"),
        (DaemonState(NOW, True, ticks=SensorTicks(None)), False, "warning", "had no tick"),
        (DaemonState(None, True, "OperationalError: connection refused"), False, "problem", "connection refused"),
    ],
)
def test_a_state_of_the_daemon_is_as_loud_as_it_is_bad(
    ingested: Path, monkeypatch: pytest.MonkeyPatch, daemon: DaemonState, waits: bool, expected: str, words: str
) -> None:
    monkeypatch.setattr("assets.daemon_state.daemon_state", lambda *_: daemon)
    if waits:
        with_evaluation(ingested)
    found, said = state_of("Dagster's daemon")
    assert (found, words in said) == (expected, True), said
