"""`dtef doctor` on Dagster's daemon: whether it lives, what it runs, and whether that is needed."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._daemon.types import DaemonHeartbeat

from assets.daemon_state import DaemonState
from assets.definitions import defs
from resources.evaluations import EvaluationStore
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.test_doctor import findings, looks
from tests.postgres import NoPostgres, running_postgres

ON_FROM_THE_START = (
    "boards_after_run, evaluation_queue, games_boards_after_run, qa_boards_after_run, "
    "rubric_boards_after_run, scores_after_votes"
)


def test_a_daemon_that_stopped_is_a_warning_while_a_schedule_is_switched_on(ingested: Path) -> None:
    history = ingested / "dagster" / "history" / "runs.db"
    seen = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=3)
    with closing(sqlite3.connect(history)) as runs:
        runs.execute("INSERT INTO daemon_heartbeats (daemon_type, timestamp) VALUES ('SENSOR', ?)", [str(seen)])
        runs.commit()
    assert findings()["Dagster's daemon"]["found"].startswith("last seen 3 hours ago")
    with closing(sqlite3.connect(ingested / "dagster" / "schedules" / "schedules.db")) as schedules:
        body = '{"origin": {"instigator_name": "nightly_drift"}}'
        schedules.execute(
            "INSERT INTO instigators (selector_id, repository_selector_id, status, instigator_type, instigator_body) "
            "VALUES ('a', 'b', 'RUNNING', 'SCHEDULE', ?)",
            [body],
        )
        schedules.commit()
    row = findings()["Dagster's daemon"]
    assert row["state"] == "warning"
    assert row["found"] == f"last seen 3 hours ago; switched on: nightly_drift; on from the start: {ON_FROM_THE_START}"
    assert row["remedy"].endswith("elsewhere with: dtef ui")


def test_all_sensors_that_are_on_from_the_start_are_listed(ingested: Path) -> None:
    """It knew those of surveys alone: `evaluation_queue` and those of the other families were not told of."""
    on = [one.name for one in defs.sensors or () if one.default_status is dg.DefaultSensorStatus.RUNNING]
    assert ON_FROM_THE_START.split(", ") == sorted(on)
    assert findings()["Dagster's daemon"]["found"].endswith(f"on from the start: {ON_FROM_THE_START}")


def with_evaluation(folder: Path) -> None:
    with closing(EvaluationStore(folder / "responses.sqlite")) as store:
        store.submit("qa", {}, {"keys": []}, [], "me")


def test_a_daemon_that_stopped_is_a_warning_while_evaluations_wait(ingested: Path) -> None:
    """It was "ok" of one that was dead for hours, with nothing switched on by hand: evaluations need no such thing."""
    with_evaluation(ingested)
    before = looks(ingested)
    row = findings()["Dagster's daemon"]
    assert row["state"] == "warning"
    assert row["found"].startswith("was never started here; evaluations that wait or run: 1; switched on: nothing; on from")
    assert row["remedy"] == "start it, on a server with `systemctl restart dtef-daemon`, elsewhere with: dtef ui"
    assert looks(ingested) == before
    with closing(EvaluationStore(ingested / "responses.sqlite")) as store:
        (one,) = store.unended()
        store.append(one.queue_id, "cancelled", {}, "ended")
    assert findings()["Dagster's daemon"]["state"] == "ok"


def test_evaluations_that_wait_are_told_also_where_dagster_was_never_started(state: Path) -> None:
    with_evaluation(state)
    before = looks(state)
    assert findings()["Dagster's daemon"]["state"] == "warning"
    assert looks(state) == before


def test_sensors_that_do_nothing_though_the_daemon_runs_are_a_warning(ingested: Path) -> None:
    with dg.DagsterInstance.from_config(str(ingested / "dagster")) as instance:
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), "SENSOR", "one", []))
    found = findings()
    assert found["Dagster's daemon"]["found"].startswith("running; ")
    assert (found["Dagster's sensors"]["state"], found["Dagster's sensors"]["found"][:38]) == (
        "warning",
        "the sensor evaluation_queue had no tic",
    )
    assert "journalctl -u dtef-code" in found["Dagster's sensors"]["remedy"]


def test_evaluations_that_wait_for_a_sensor_that_is_off_are_a_warning(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dg.DagsterInstance.from_config(str(ingested / "dagster")) as instance:
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), "SENSOR", "one", []))
    off = DaemonState(datetime.now(UTC), False)
    monkeypatch.setattr("dtef_pipeline.cli.dagster_home.daemon_state", lambda *_: off)
    assert "Dagster's sensors" not in findings()
    with_evaluation(ingested)
    assert findings()["Dagster's sensors"]["found"] == "the sensor evaluation_queue is switched off, and evaluations wait"


def test_a_storage_in_postgresql_is_asked_the_same_and_nothing_is_made_in_it(
    ingested: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not looked at: a server, where the daemon matters most, was told nothing of it."""
    shutil.copyfile(ROOT / "deploy" / "dagster.yaml", ingested / "dagster" / "dagster.yaml")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", "postgresql+psycopg2://me:hush@127.0.0.1:1/d")
    row = findings(1)["Dagster's storage"]
    assert row["found"].startswith("cannot use the database of Dagster that ")
    assert "hush" not in str(row)
    with_evaluation(ingested)
    try:
        with running_postgres() as server:
            url = server.new_database()
            monkeypatch.setenv("DAGSTER_POSTGRES_URL", url.replace("+psycopg:", "+psycopg2:"))
            found = findings(1)
            assert found["Dagster's daemon"]["found"].startswith("was never started here; evaluations that wait or run: 1; ")
            assert found["Dagster's rounds"]["found"].endswith("the storage of this one was begun anew")
            engine = sa.create_engine(url)
            assert sa.inspect(engine).get_table_names() == []
            engine.dispose()
            with dg.DagsterInstance.from_config(str(ingested / "dagster")) as instance:
                instance.add_daemon_heartbeat(DaemonHeartbeat(time.time() - 7300, "SENSOR", "one", []))
                assert findings(1)["Dagster's daemon"]["found"].startswith("last seen 2 hours ago; evaluations that wait")
                instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), "SENSOR", "one", []))
                found = findings(1)
            assert found["Dagster's daemon"]["found"].startswith("running; ")
            assert "had no tick" in found["Dagster's sensors"]["found"]
    except NoPostgres as why:
        pytest.skip(str(why))
