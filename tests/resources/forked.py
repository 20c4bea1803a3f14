"""Processes of tests: forks of one that has imported what they need, which would take each of them seconds."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext


def context() -> ForkServerContext:
    """To be used instead of `multiprocessing`. A process has nothing of the test's own but what it is given."""
    made = multiprocessing.get_context("forkserver")
    imports = ["pytest", "psycopg", "tests.fake_llm_server", "tests.made.responses"]
    made.set_forkserver_preload([*imports, "resources.responses.claims", "tests.resources.gateway.gateway_setup"])
    return made
