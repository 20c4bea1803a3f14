"""What all tests share: where the real surveys are, and a state of their own for whatever starts Dagster."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import signal
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from hypothesis import HealthCheck, settings
from sqlalchemy import Connection, Engine, QueuePool, create_engine
from sqlalchemy.event import listens_for

from tests.apt import NotInstalled
from tests.dtef_pipeline.report.browser import Browser, running_browser
from tests.memory_folder import memory_folder

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
SANDBOX_TESTS = "tests/resources/sandbox/"
FIRST = ("tests/dtef_pipeline/cli/test_documented_commands.py",)

# A machine that is busy with other things is no fault of a test: no deadlines.
settings.register_profile("quick", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=200)
settings.load_profile("quick")

# Half a million objects of imported packages stay for good: to look through them at every 700 new ones took a twentieth of all time.
gc.set_threshold(50_000, 20, 50)

if (folder := memory_folder()) is not None:
    # Where pytest makes its temporary folders, also in the processes of xdist.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs deaf to Ctrl-C, and the processes that tests start and interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than there are cores: tests that wait for servers, kills and time limits would leave theirs idle."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """The longest tests come first, so that nobody waits for them at the end."""
    yield
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """The last lines of a run say which kinds of tests were left out and why, so that green is not taken for more than it is."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    places: dict[str, list[str]] = defaultdict(list)
    for report in reporter.stats.get("skipped", []):
        if isinstance(report.longrepr, (tuple, list)):
            places[str(report.longrepr[2]).removeprefix("Skipped: ")].append(report.nodeid.partition("::")[0])
    for reason, files in sorted(places.items()):
        reporter.write_line(f"left out: {len(files)} in {', '.join(sorted(set(files)))}: {reason}", yellow=True)
    if any(report.nodeid.startswith(SANDBOX_TESTS) for report in reporter.stats.get("passed", [])):
        from resources.sandbox.run import choose_level

        reporter.write_line(f"sandbox: programs were run at the level {choose_level().words}")


@pytest.fixture(scope="session", autouse=True)
def migrations_read_once() -> Iterator[None]:
    """Dagster reads its migrations, some ninety Python files, at each opening of each database: a tenth of a second a home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", functools.cache(ScriptDirectory.from_config))
        yield


@pytest.fixture(scope="session", autouse=True)
def pool_connections_in_memory() -> Iterator[None]:
    """Dagster opens a connection with two settings for each query of an instance in memory: a tenth of the time of a run."""
    with pytest.MonkeyPatch.context() as patch:
        if "dagster" in sys.modules:
            for storage in ("event_log", "runs"):
                module = importlib.import_module(f"dagster._core.storage.{storage}.in_memory")
                patch.setattr(module, "create_engine", create_pooled_engine)
            patch.setattr(
                sys.modules["dagster._core.storage.event_log.in_memory"].InMemoryEventLogStorage, "_connect", connect_events
            )
            patch.setattr(sys.modules["dagster._core.storage.runs.in_memory"].InMemoryRunStorage, "connect", connect_runs)
        yield


def create_pooled_engine(url: str, **_: object) -> Engine:
    engine = create_engine(url, poolclass=QueuePool, connect_args={"check_same_thread": False}, pool_size=20)

    @listens_for(engine, "connect")
    def set_pragmas(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA foreign_keys=ON")

    return engine


@contextmanager
def connect_events(storage: Any) -> Iterator[Connection]:
    with storage._db_lock, storage._engine.begin() as connection:
        yield connection


@contextmanager
def connect_runs(storage: Any) -> Iterator[Connection]:
    with storage._engine.begin() as connection:
        yield connection


@pytest.fixture(scope="session", autouse=True)
def runs_not_echoed() -> Iterator[None]:
    """Dagster starts four processes for each run to show on the terminal what it writes to the run's log files."""
    with pytest.MonkeyPatch.context() as patch:
        if "dagster" in sys.modules:  # which tests of the library do not wait for
            patch.setattr("dagster._core.execution.compute_logs.tail_to_stream", lambda path, stream: nullcontext())
        yield


@pytest.fixture(scope="session")
def real_surveys() -> Path:
    """The folder of published surveys beside the checkout; tests that need it are skipped without it."""
    if not (SHARED / "surveys").is_dir():
        pytest.skip(f"no real survey data at {SHARED}")
    return SHARED


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty warehouse, response store and DAGSTER_HOME of the test's own."""
    monkeypatch.setenv("DTEF_WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.setenv("DTEF_RESPONSES", str(tmp_path / "responses.sqlite"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    for name in (
        "MODELS",
        "PANEL",
        "BLUEPRINTS",
        "SCENARIOS",
        "PERSONAS",
        "API_TOKENS",
        "WEBHOOK",
        "SOCIOSCOPE_URL",
    ):
        monkeypatch.delenv(f"DTEF_{name}", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A tab of a headless Chromium; tests that need it are skipped where there is none."""
    try:
        with running_browser(tmp_path_factory.mktemp("chromium")) as running:
            yield running
    except NotInstalled as why:
        pytest.skip(str(why))
