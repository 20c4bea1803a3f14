"""Dagster's SQLite and PostgreSQL storage with their connections kept open: the same files and tables, and the same in them."""

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
import yaml
from dagster._core.events import DagsterEvent, StepMaterializationData
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster_postgres.event_log import PostgresEventLogStorage

from resources.dagster_postgres_storage import PostgresStorage
from resources.dagster_storage import EventLog
from tests.postgres import Postgres

ASSET, KEYS = dg.AssetKey("scores"), [f"R1/country:c{n}" for n in range(8)]
CUSTOM = {"module": "resources.dagster_storage", "class": "SqliteStorage", "config": {"base_dir": {"env": "DAGSTER_HOME"}}}


with warnings.catch_warnings():
    warnings.simplefilter("ignore", dg.BetaWarning)

    @dg.asset(partitions_def=dg.DynamicPartitionsDefinition(name="places"), backfill_policy=dg.BackfillPolicy.single_run())
    def numbers(context: dg.AssetExecutionContext) -> None: ...


@dg.asset_check(asset=numbers)
def fine(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


def made(run_id: str, key: str, value: int = 0) -> EventLogEntry:
    """The event of one partition's materialization."""
    materialization = dg.AssetMaterialization(ASSET, partition=key, metadata={"rows": value})
    event = DagsterEvent("ASSET_MATERIALIZATION", "job", event_specific_data=StepMaterializationData(materialization))
    return EventLogEntry(None, 20, "", run_id, 1_700_000_000.0 + value, job_name="job", dagster_event=event)


def instance(
    home: Path, monkeypatch: pytest.MonkeyPatch, storage: dict[str, Any] | None, **further: dict[str, Any]
) -> dg.DagsterInstance:
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    config = {"telemetry": {"enabled": False}, **({"storage": {"custom": storage}} if storage else {}), **further}
    (home / "dagster.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return dg.DagsterInstance.get()


def run_once(of: dg.DagsterInstance) -> str:
    of.add_dynamic_partitions("places", KEYS)
    tags = {"dagster/asset_partition_range_start": KEYS[0], "dagster/asset_partition_range_end": KEYS[-1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        done = dg.materialize([numbers, fine], instance=of, tags=tags)
    assert done.success
    return done.run_id


def seen(of: dg.DagsterInstance, run_id: str) -> dict[str, Any]:
    """What the pages of the UI are made of."""
    status = of.get_status_by_partition(numbers.key, KEYS, numbers.partitions_def) or {}  # type: ignore[arg-type]
    (record,) = of.get_asset_records([numbers.key])
    last = record.asset_entry.last_materialization
    check = of.event_log_storage.get_latest_asset_check_execution_by_key([dg.AssetCheckKey(numbers.key, "fine")])
    return {
        "run": [run.status.value for run in of.get_runs() if run.run_id == run_id],
        "events": [entry.get_dagster_event().event_type_value for entry in of.all_logs(run_id) if entry.is_dagster_event],
        "partitions": {key: value.value for key, value in status.items() if value},
        "last": last and last.asset_materialization and last.asset_materialization.partition,
        "checks": [record.status.value for record in check.values()],
        "keys": of.get_dynamic_partitions("places"),
    }


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    opened = EventLog(str(tmp_path / "runs"))
    yield opened
    opened.dispose()


def test_what_either_storage_wrote_is_what_the_other_writes_and_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "7")
    with instance(tmp_path / "ours", monkeypatch, CUSTOM) as ours:
        assert isinstance(ours.event_log_storage, EventLog)
        run = run_once(ours)
        by_ours = seen(ours, run)
    with instance(tmp_path / "ours", monkeypatch, None) as theirs:
        assert type(theirs.event_log_storage) is SqliteEventLogStorage
        assert type(theirs.run_storage) is SqliteRunStorage
        assert seen(theirs, run) == by_ours
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "0")
    with instance(tmp_path / "theirs", monkeypatch, None) as theirs:
        run = run_once(theirs)
        by_theirs = seen(theirs, run)
    with instance(tmp_path / "theirs", monkeypatch, CUSTOM) as ours:
        assert seen(ours, run) == by_theirs, "a home begun with Dagster's own storage goes on"
    assert sorted(by_ours["events"]) == sorted(by_theirs["events"])
    assert {**by_ours, "events": None} == {**by_theirs, "events": None}
    assert by_ours["partitions"] == dict.fromkeys(KEYS, "MATERIALIZED")


def test_the_log_is_flushed_at_checkpoints_and_not_at_each_commit(log: EventLog) -> None:
    """Dagster's write-ahead log stays: without it a file that is not flushed could break."""
    with log.index_connection() as connection:
        settings = [connection.execute(sa.text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")]
    assert settings == ["wal", 1]


def test_files_of_many_runs_are_not_all_kept_open(log: EventLog, tmp_path: Path) -> None:
    for number in range(10):
        log.store_event(made(f"{number:08}-1111-1111-1111-111111111111", KEYS[0]))
    opened = [path for path in Path("/proc/self/fd").iterdir() if str(tmp_path) in _target(path)]
    # Three of each (database, log, shared memory) at most.
    assert 0 < len(opened) <= 3 * 8
    assert len(log.get_logs_for_run("00000000-1111-1111-1111-111111111111")) == 1


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def test_after_a_wipe_the_files_of_runs_are_made_again(log: EventLog) -> None:
    run_id = "11111111-1111-1111-1111-111111111111"
    log.store_event(made(run_id, KEYS[0]))
    log.wipe()
    assert log.get_materialized_partitions(ASSET) == set()
    log.store_event(made(run_id, KEYS[1]))
    assert len(log.get_logs_for_run(run_id)) == 1
    assert Path(log.path_for_shard(run_id)).exists()


def test_two_write_at_once(log: EventLog, tmp_path: Path) -> None:
    """As two processes do: each has connections of its own."""
    logs, runs = [log, EventLog(str(tmp_path / "runs"))], [f"{number * 8}-1111-1111-1111-111111111111" for number in "23"]

    def write(writer: int) -> None:
        for value in range(20):
            logs[writer].store_event(made(runs[writer], KEYS[value % len(KEYS)], value))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, range(2)))
    logs[1].dispose()
    assert [len(log.get_logs_for_run(run)) for run in runs] == [20, 20]


def test_a_slot_of_a_pool_goes_to_one_of_two_runs(log: EventLog, tmp_path: Path) -> None:
    """Both see a free place in the queue before either joins it, and a free slot before either takes it: Dagster's own gives it to both."""
    log.set_concurrency_slots("openai", 1)
    logs = [log, EventLog(str(tmp_path / "runs"))]
    meetings = {"INSERT INTO pending_steps": Barrier(2), "UPDATE concurrency_slots": Barrier(2)}

    def meet(_: Any, __: Any, statement: str, *___: Any) -> None:
        for begin, both in meetings.items():
            if statement.startswith(begin):
                # Where only one may come this far, it waits in vain.
                with suppress(BrokenBarrierError):
                    both.wait(1.0)

    sa.event.listen(sa.Engine, "before_cursor_execute", meet)
    try:
        with ThreadPoolExecutor(2) as threads:
            claims = list(threads.map(lambda n: logs[n].claim_concurrency_slot("openai", f"run {n}", "predictions"), range(2)))
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", meet)
        logs[1].dispose()
    assert sorted(claim.is_claimed for claim in claims) == [False, True]
    assert log.get_concurrency_info("openai").active_slot_count == 1


def ours(url: str) -> dict[str, Any]:
    return {"module": "resources.dagster_postgres_storage", "class": "PostgresStorage", "config": {"postgres_url": url}}


def plain(url: str) -> dict[str, Any]:
    return {"module": "dagster_postgres", "class": "DagsterPostgresStorage", "config": {"postgres_url": url}}


@pytest.fixture
def url(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "50")
    return postgres.new_database().replace("postgresql+psycopg://", "postgresql+psycopg2://")


def connections_made(url: str) -> int:
    """Connections that the database has seen since it was made, this one included."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT pg_stat_clear_snapshot()"))
        name = sa.engine.make_url(url).database
        return int(
            connection.execute(
                sa.text("SELECT sessions FROM pg_stat_database WHERE datname = :name"), {"name": name}
            ).scalar_one()
        )


def test_a_run_needs_a_handful_of_connections_and_dagsters_own_storage_reads_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with instance(tmp_path / "home", monkeypatch, ours(url)) as opened:
        before = connections_made(url)
        run = run_once(opened)
        by_ours = seen(opened, run)
        assert connections_made(url) - before <= 10
    assert by_ours["partitions"] == dict.fromkeys(KEYS, "MATERIALIZED")
    with instance(tmp_path / "home", monkeypatch, plain(url)) as opened:
        assert type(opened.event_log_storage) is PostgresEventLogStorage
        assert seen(opened, run) == by_ours


def test_a_url_that_names_no_driver_is_taken_for_dagsters_own(url: str) -> None:
    storage = PostgresStorage(url.replace("postgresql+psycopg2://", "postgresql://"))
    storage.event_log_storage.store_event(made("33333333-3333-3333-3333-333333333333", KEYS[0]))
    assert storage.event_log_storage.get_materialized_partitions(ASSET) == {KEYS[0]}
    assert storage.run_storage.get_runs() == []
    assert storage.schedule_storage.all_instigator_state() == []
    for part in (storage.event_log_storage, storage.run_storage, storage.schedule_storage):
        part._engine.dispose()


def test_a_server_that_was_restarted_is_no_error(url: str, postgres: Postgres) -> None:
    storage = PostgresStorage(url)
    run_id = "11111111-1111-1111-1111-111111111111"
    storage.event_log_storage.store_event(made(run_id, KEYS[0]))
    postgres.stop()
    postgres.start()
    storage.event_log_storage.store_event(made(run_id, KEYS[1]))
    assert storage.event_log_storage.get_materialized_partitions(ASSET) == set(KEYS[:2])
    assert storage.run_storage.get_runs() == []
    for part in (storage.event_log_storage, storage.run_storage, storage.schedule_storage):
        part._engine.dispose()


def test_a_pool_that_another_run_has_just_created_is_no_error(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs that begin at the same time both find no pool, and both create it. A new default limit finds it there, too."""
    for limit in (2, 1):
        with instance(tmp_path / "home", monkeypatch, ours(url), concurrency={"pools": {"default_limit": limit}}) as opened:
            for _ in range(2):
                assert opened.event_log_storage.initialize_concurrency_limit_to_default("openai")
            (pool,) = opened.event_log_storage.get_pool_limits()
            assert (pool.name, pool.limit, pool.from_default) == ("openai", limit, True)
            assert opened.event_log_storage.get_concurrency_info("openai").slot_count == limit


def test_a_limit_that_somebody_set_is_kept(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with instance(tmp_path / "home", monkeypatch, ours(url), concurrency={"pools": {"default_limit": 2}}) as opened:
        opened.event_log_storage.set_concurrency_slots("openai", 5)
        opened.event_log_storage.initialize_concurrency_limit_to_default("openai")
        (pool,) = opened.event_log_storage.get_pool_limits()
        assert (pool.limit, pool.from_default) == (5, False)
        assert opened.event_log_storage.get_concurrency_info("openai").slot_count == 5
