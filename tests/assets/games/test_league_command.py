"""`dtef games run` with a model API at the other end: players of all kinds at once, and a command that is killed in the midst of episodes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from resources.responses.store import ResponseStore
from tests.assets.games.conftest import write_made_models
from tests.dtef_pipeline.cli.commands import dtef, ok, query
from tests.fake_llm_server import Call, FakeLLM, Fault, always
from tests.made.responses import stored

AT_ONCE = 2
MODELS = ("legal", "second")
SOLITAIRE_TEXTS = 11
"""After so many a player resigns: each text is a commit, a busy disk takes its time for it, and nothing here is about the length of a game."""


def league_server(**given: Any) -> FakeLLM:
    return FakeLLM(legal_reply, **given)


def legal_reply(call: Call) -> str:
    """The first legal command that is listed; in solitaire the whole stock twice."""
    if "Legal commands: " in call.user:
        return f"ACTION: {call.user.rpartition('Legal commands: ')[2].splitlines()[0].split(', ')[0]}"
    if sum(one["role"] == "assistant" for one in call.body["messages"]) >= SOLITAIRE_TEXTS:
        return "ACTION: resign"
    return "ACTION: recycle" if "Stock: empty" in call.user else "ACTION: draw"


def test_a_run_killed_during_episodes_repeats_no_request_and_loses_no_turn(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ["games", "run", "--no-roll-ups", "--scenario", "thirteen", "--player", "legal", "--seeds", "1-2"]
    with league_server(latency=0.1) as server:
        write_made_models(state, monkeypatch, server, MODELS, AT_ONCE)
        command = [str(Path(sys.executable).with_name("dtef")), *run]
        process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        # Both episodes play at once: this is the seventh turn of each.
        while server.answered < 2 * 7 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        server.await_nobody()
        with ResponseStore(state / "responses.sqlite") as store:
            committed = stored(store)
        answered = server.answered
        assert committed > 0
        assert answered - committed <= AT_ONCE
        server.latency = 0.0
        ok(*run)
        texts = query("SELECT episode_id, turn, attempt, request_key, call_status FROM episode_turns")
        requests = {row["request_key"] for row in texts}
        assert len(requests) > committed
        assert server.answered == answered + len(requests) - committed
    assert {row["call_status"] for row in texts} == {"answered"}
    assert len({(row["episode_id"], row["turn"], row["attempt"]) for row in texts}) == len(texts)
    episodes = query("SELECT item_id, status, n_turns FROM episodes")
    assert sorted(row["item_id"] for row in episodes) == ["1/0", "2/0"]
    assert {row["status"] for row in episodes} == {"played"}
    assert sum(row["n_turns"] for row in episodes) == len({(row["episode_id"], row["turn"]) for row in texts})


def test_a_model_that_hangs_in_one_scenario_holds_up_nobody_in_the_next(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second_scenario_is_played, waited_for_nothing = threading.Event(), list[str]()

    def reply(call: Call) -> str:
        is_second_scenario = "Leduc" in call.body["messages"][0]["content"]
        if call.body["model"] == "second" and not is_second_scenario and not second_scenario_is_played.wait(60):
            waited_for_nothing.append(call.user)
        if call.body["model"] == "legal" and is_second_scenario:
            second_scenario_is_played.set()
        return legal_reply(call)

    players = ["--player", "second", "--player", "legal", "--opponent", "nash", "--seeds", "1-2"]
    with FakeLLM(reply) as server:
        write_made_models(state, monkeypatch, server, MODELS, AT_ONCE)
        ok("games", "run", "--no-roll-ups", "--scenario", "kuhn", "--scenario", "leduc", *players)
    assert waited_for_nothing == []
    assert Counter(row["status"] for row in query("SELECT status FROM episodes")) == {"played": 2 * 2 * 4}


def test_the_command_tells_the_error_of_the_call_that_used_up_the_budget(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that a budget was reached, and nothing of the only call, which had failed."""
    with league_server() as server:
        server.fault = always(Fault("status", status=500, message="out of memory"))
        write_made_models(state, monkeypatch, server, MODELS, AT_ONCE)
        what = ("--scenario", "thirteen", "--player", "legal", "--seeds", "1-3", "--max-calls", "1")
        said = dtef("games", "run", "--no-roll-ups", *what).output
    (line,) = [one for one in said.splitlines() if "because a budget was reached" in one]
    assert "out of memory" in line
