"""What a home of Dagster tells of its daemon and of the ticks of a sensor."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._daemon.types import DaemonHeartbeat
from dagster._utils.error import serializable_error_info_from_exc_info

from assets.daemon_state import DaemonState, daemon_state
from dtef_pipeline.errors import StoreError
from resources.evaluations.evaluation_store import QUEUE_SENSOR
from tests.conftest import ROOT


class Home:
    """A home whose daemon a test plays."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder, self.instance = folder, instance

    def beat(self) -> None:
        self.instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), "SENSOR", "one", []))

    def tick(self, status: TickStatus, error: Exception | None = None, location: str = "dtef", ago: float = 0.0) -> None:
        """As the daemon writes it: the tick, and the state of the sensor."""
        origin = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(location), "r").get_instigator_origin(QUEUE_SENSOR)
        at, of_failure = time.time() - ago, None
        if error is not None:
            of_failure = serializable_error_info_from_exc_info((type(error), error, error.__traceback__))
        ended = at if status in (TickStatus.SUCCESS, TickStatus.SKIPPED) else None
        data = SensorInstigatorData(last_tick_start_timestamp=at, last_tick_success_timestamp=ended)
        state = InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.DECLARED_IN_CODE, data)
        found = self.instance.get_instigator_state(state.instigator_origin_id, state.selector_id)
        (self.instance.update_instigator_state if found else self.instance.add_instigator_state)(state)
        about = (state.instigator_origin_id, QUEUE_SENSOR, InstigatorType.SENSOR, status, at)
        self.instance.create_tick(TickData(*about, error=of_failure, selector_id=state.selector_id))

    def state(self) -> DaemonState:
        return daemon_state(self.folder, QUEUE_SENSOR)


@pytest.fixture
def home(state: Path) -> Iterator[Home]:
    folder = state / "dagster"
    folder.mkdir()
    shutil.copyfile(ROOT / "dagster.yaml", folder / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield Home(folder, instance)


def fault(home: Home) -> str | None:
    return home.state().find_sensor_fault(datetime.now(UTC), QUEUE_SENSOR)


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except type(error) as found:
        return found


def test_ticks_that_come_and_go_are_no_fault(home: Home) -> None:
    home.tick(TickStatus.SKIPPED)
    assert home.state() == DaemonState(None, True), "no daemon, no ticks"
    home.beat()
    assert fault(home) is None
    found = home.state()
    assert found.daemon_id == "one"
    assert found.ticks is not None
    assert found.ticks.last_at is not None
    home.tick(TickStatus.STARTED)
    assert fault(home) is None


def test_a_code_server_that_does_not_answer_is_reported_also_while_the_next_tick_is_under_way(home: Home) -> None:
    home.beat()
    away = raised(DagsterUserCodeUnreachableError("Unable to reach"), RuntimeError('<_InactiveRpcError "unix:/tmp/x">'))
    home.tick(TickStatus.FAILURE, away, ago=5)
    said = f"the last tick of the sensor {QUEUE_SENSOR} failed (Dagster's code server does not answer)"
    assert fault(home) == said
    home.tick(TickStatus.STARTED)
    assert fault(home) == said
    home.tick(TickStatus.SKIPPED)
    assert fault(home) is None


def test_an_error_of_the_sensor_is_reported_in_a_line_that_names_no_server_user_or_folder(home: Home) -> None:
    home.beat()
    words = (
        "cannot open the response store postgresql+psycopg://dtef:***@db.example/x: connection to server at "
        '"db.example", port 5432 failed: FATAL: password authentication failed for user "dtef"; see /etc/dtef/dtef.env'
    )
    home.tick(TickStatus.FAILURE, raised(StoreError(words)))
    error = (
        "cannot open the response store ... connection to server at ..., port 5432 failed: "
        "FATAL: password authentication failed for user ...; see dtef.env"
    )
    assert fault(home) == f"the last tick of the sensor {QUEUE_SENSOR} failed ({error})"
    home.tick(TickStatus.FAILURE, raised(ValueError("long " * 1000)))
    assert len(fault(home) or "") < 300


def test_a_sensor_without_ticks_is_reported_with_how_long(home: Home) -> None:
    home.beat()
    why = "though Dagster's daemon is running (mostly its code location does not load or hangs)"
    assert fault(home) == f"the sensor {QUEUE_SENSOR} had no tick in this home yet, {why}"
    home.tick(TickStatus.SKIPPED, ago=7200)
    assert fault(home) == f"the sensor {QUEUE_SENSOR} had no tick for 2 hours, {why}"
