"""Runs of stages that are killed in their midst: when, and what is left of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resources.responses.store import ResponseStore
from resources.settings import Settings
from tests.assets.family_state import AskingState
from tests.assets.rubric.run_stages import StageRunner
from tests.made.responses import stored
from tests.waiting import wait_until


@dataclass
class Kill:
    """What a kill left behind: answers of the server until then, and responses that are in the store."""

    answered: int
    committed: int


def killed_when(
    pipeline: AskingState,
    runner: StageRunner,
    stages: Sequence[str],
    reached: Callable[[], bool],
    before: Callable[[int], None] = lambda process: None,
) -> Kill:
    """Run stages in a process of their own, and kill it as soon as the goal is reached. `before`: is told the process just before that."""
    process = runner.start({name: given for name, given in pipeline.config.items() if name in stages}, stages)
    assert wait_until(reached, 120)
    before(process)
    os.kill(process, signal.SIGKILL)
    assert runner.await_end(process) == -signal.SIGKILL
    pipeline.server.await_nobody()
    return Kill(pipeline.players.answered.total(), committed())


def asked_when_killed(pipeline: AskingState, runner: StageRunner, role: str, further: int, *stages: str) -> Kill:
    """Killed when so many further requests of a role were answered."""
    counts = pipeline.players.by_role
    goal = counts[role] + further
    return killed_when(pipeline, runner, stages, lambda: counts[role] >= goal)


def committed() -> int:
    with ResponseStore(Settings.read_environment().responses_url) as store:
        return stored(store)
