"""State shared by the Dagster runs of one `dtef` command: the gateway, so that budgets hold for the command over all its runs."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from resources.gateway import Gateway

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
