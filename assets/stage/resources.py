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
class RollUps:
    """Inputs of one run's roll-ups read so far."""

    tables: duckdb.DuckDBPyConnection | None = None
    evidence: dict[BoardOptions, BoardEvidence] = field(default_factory=dict)


class Store(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Warehouse and response store. Empty fields are read from DTEF_WAREHOUSE and DTEF_RESPONSES."""

    warehouse_root: str = ""
    responses_url: str = ""
    # Dagster creates a resource for each run (in one process: for all its steps) and drops it with the gateway at the run's end.
    _gateway: Gateway | None = PrivateAttr(default=None)
    _call_listener: CallsOfStage | None = PrivateAttr(default=None)
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
    def failed(self) -> dict[str, str]:
        """Why partitions failed in this run's stages so far, by key."""
        return {}

    @cached_property
    def roll_ups(self) -> RollUps:
        """State shared by a run's roll-ups. Dagster creates this resource for each run."""
        return RollUps()

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
        if command is None:
            self._gateway = self._gateway or self._create_gateway()
            return self._gateway
        command.gateway = command.gateway or self._create_gateway()
        return command.gateway

    def _create_gateway(self) -> Gateway:
        return Gateway(self.responses, provider_limits=self.settings.provider_limits)

    @property
    def call_listener(self) -> CallsOfStage | None:
        """The listener that receives the outcomes of the current stage's requests, if any."""
        return self._call_listener

    def track_calls(self, listener: CallsOfStage | None) -> None:
        """Report the outcomes of the stage's requests to this listener, until another stage replaces it, or nothing if it is None."""
        self._call_listener = listener
