"""What the Dagster runs of one `dtef` command share: the gateway, so that budgets hold for the command however many runs it takes."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from resources.gateway import Gateway

COMMAND_TAG = ".dagster/dtef_command"


@dataclass
class Command:
    """A command that is being carried out in this process."""

    name: str
    keys: tuple[str, ...]
    """The partitions of all its runs."""
    gateway: Gateway | None = None
    """Made by the first run that asks."""

    @property
    def tags(self) -> dict[str, str]:
        return {COMMAND_TAG: self.name}


_commands: dict[str, Command] = {}


@contextmanager
def command(keys: Sequence[str]) -> Iterator[Command]:
    """Runs with the tags of this command share what it holds."""
    new_command = Command(uuid.uuid4().hex, tuple(keys))
    _commands[new_command.name] = new_command
    try:
        yield new_command
    finally:
        del _commands[new_command.name]


def command_of(run: dg.DagsterRun) -> Command | None:
    """The command that a run belongs to; None for the runs of Dagster's own processes."""
    return _commands.get(run.tags.get(COMMAND_TAG, ""))
