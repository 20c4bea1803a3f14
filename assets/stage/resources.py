"""External systems as Dagster resources: each knows an address and opens it.

Runs of one `dtef` command share a gateway, so that budgets hold for the command.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import dagster as dg
import duckdb
from pydantic import PrivateAttr

from assets.stage.call_counts import CallsOfStage
from assets.stage.dagster_internals import HIDDEN_TAG_PREFIX
from dtef_pipeline.boards.boards import BoardEvidence
from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.identity import digest
from resources.evaluations.evaluation_store import QUEUE_TAG
from resources.evaluations.run_manifests import describe_this_run
from resources.gateway import Gateway
from resources.responses.claims import Claims
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse

COMMAND_TAG = ".dagster/dtef_command"


@dataclass
class Command:
    """A command running in this process."""

    name: str
    keys: tuple[str, ...]
    """The partitions of all its runs."""
    gateway: Gateway | None = None
    """Created by the first run that calls models."""

    @property
    def tags(self) -> dict[str, str]:
        return {COMMAND_TAG: self.name}


_commands: dict[str, Command] = {}


@contextmanager
def command(keys: Sequence[str]) -> Iterator[Command]:
    """Open a command. Runs with its tags share its state."""
    new_command = Command(uuid.uuid4().hex, tuple(keys))
    _commands[new_command.name] = new_command
    try:
        yield new_command
    finally:
        del _commands[new_command.name]


def command_of(run: dg.DagsterRun) -> Command | None:
    """Return the command that a run belongs to, or None for runs of Dagster's own processes."""
    return _commands.get(run.tags.get(COMMAND_TAG, ""))


SKIPPED_TAG = "dtef/skipped_files"
"""Tag of a run that skipped unreadable files, as JSON: the log line by path."""
READ_AFTER_TAG = f"{HIDDEN_TAG_PREFIX}dtef_read_after"
"""Tag of each run: the id of the last event logged before it read anything. It has read everything materialized by then."""


@dataclass(slots=True)
class RunState:
    """State shared by the stages and roll-ups of one run."""

    failed: dict[str, str] = field(default_factory=dict)
    """Why partitions failed in the stages so far, by key."""
    gateway: Gateway | None = None
    call_listener: CallsOfStage | None = None
    """Takes the outcomes of the current stage's requests, if any."""
    tables: duckdb.DuckDBPyConnection | None = None
    """The inputs of roll-ups."""
    evidence: dict[BoardOptions, BoardEvidence] = field(default_factory=dict)


class Store(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Warehouse and response store. Empty fields are read from DTEF_WAREHOUSE and DTEF_RESPONSES."""

    warehouse_root: str = ""
    responses_url: str = ""
    _queue_id: str | None = PrivateAttr(default=None)
    _context: dg.InitResourceContext | None = PrivateAttr(default=None)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Note the evaluation that the run belongs to, so that its new responses can be distinguished from earlier ones.

        Also tag the run with the number of the last event stored before it.
        """
        self._context = context
        self._queue_id = context.run.tags.get(QUEUE_TAG) if context.run else None
        if context.run and context.instance:
            last = context.instance.event_log_storage.get_maximum_record_id() or 0
            context.instance.add_run_tags(context.run.run_id, {READ_AFTER_TAG: str(last)})

    @cached_property
    def settings(self) -> Settings:
        return Settings.read_environment()

    @cached_property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.warehouse_root or self.settings.warehouse, self._warn)

    def _warn(self, line: str) -> None:
        """Log the line, and tag the run with its skipped files."""
        context = self._context
        if context is None or context.log is None or context.run is None or context.instance is None:
            return
        context.log.warning(line)
        run = context.instance.get_run_by_id(context.run.run_id)
        if run and self.warehouse.skipped:
            before = json.loads(run.tags.get(SKIPPED_TAG, "{}"))
            context.instance.add_run_tags(run.run_id, {SKIPPED_TAG: json.dumps(before | self.warehouse.skipped)})

    @cached_property
    def run_state(self) -> RunState:
        """Dagster creates this resource for each run (in one process: for all its steps) and drops it at the run's end."""
        return RunState()

    @cached_property
    def responses(self) -> ResponseStore:
        return ResponseStore(self.responses_url or self.settings.responses_url, describe_this_run, self._queue_id)

    @contextmanager
    def writing(self, table: str, keys: Sequence[str]) -> Iterator[None]:
        """Lock these partitions of a table for a stage that changes them, against all runs with the same response store."""
        with Claims(self.responses) as claims, claims.hold_all([digest(table, key) for key in keys]):
            yield

    def open_gateway(self, command: Command | None) -> Gateway:
        """Return the gateway of the run, or of the command that it belongs to."""
        owner = self.run_state if command is None else command
        owner.gateway = owner.gateway or Gateway(self.responses, provider_limits=self.settings.provider_limits)
        return owner.gateway
