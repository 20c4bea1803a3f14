"""Runs of stages that are killed in their midst: when, and what is left of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resources.responses.store import ResponseStore
from resources.settings import Settings
from tests.assets.rubric.conftest import RubricPipeline
from tests.assets.rubric.run_stages import StageRunner
from tests.made.responses import stored


@dataclass
class Kill:
    """What a kill left behind: answers of the server until then, and responses that are in the store."""

    answered: int
    committed: int


def killed_when(pipeline: RubricPipeline, runner: StageRunner, stages: Sequence[str], reached: Callable[[], bool]) -> Kill:
    """Run stages in a process of their own, and kill it as soon as the goal is reached."""
    process = runner.start({name: given for name, given in pipeline.config.items() if name in stages}, stages)
    deadline = time.monotonic() + 120
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    assert runner.ended() == -signal.SIGKILL
    assert reached()
    while pipeline.server.busy:
        time.sleep(0.002)
    return Kill(pipeline.players.answered.total(), committed())


def asked_when_killed(pipeline: RubricPipeline, runner: StageRunner, role: str, further: int, *stages: str) -> Kill:
    """Killed when so many further requests of a role were answered."""
    counts = pipeline.players.by_role
    goal = counts[role] + further
    return killed_when(pipeline, runner, stages, lambda: counts[role] >= goal)


def committed() -> int:
    with ResponseStore(Settings.from_environment().responses_url) as store:
        return stored(store)
