"""A broken file of the rubric, qa, games and preference families: the command that the warning names makes it again, and asks no model."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import PRICES, dtef, ok, serve_as
from tests.fake_llm_server import Call, FakeLLM
from tests.made.qa_items import right_reply, write_sums

BLUEPRINT = """
title: Greetings
models: ["openai:cand-a"]
---
- id: hello
  prompt: Say hello.
  should: [{$icontains: hello}, It greets.]
"""


def replied(call: Call) -> str:
    if "Legal commands: " in call.user:
        return f"ACTION: {call.user.rpartition('Legal commands: ')[2].splitlines()[0].split(', ')[-1]}"
    if "<CRITERION>" in call.user:
        return "<reflection>It does.</reflection><classification>CLASS_MAJORLY_MET</classification>"
    return "Hello there" if "hello" in call.user else right_reply(call)


@pytest.fixture
def server(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    with FakeLLM(reply=replied) as server:
        names = (f"openai/{name}" for name in ("cand-a", "cand-b", "judge"))
        serve_as(server, state, monkeypatch, *names, judges=["openai/judge"], **PRICES)
        yield server


def prepare(family: str, folder: Path) -> list[str]:
    """The command that asks two models about items that were added."""
    if family == "rubric":
        (folder / "greetings.yml").write_text(BLUEPRINT, encoding="utf-8")
        ok("rubric", "add", folder / "greetings.yml")
        return ["rubric", "run", "--model", "openai/cand-a", "--model", "openai/cand-b", "--draws", "2"]
    if family == "qa":
        ok("qa", "add", "gsm8k", write_sums(folder / "sums.jsonl"))
        return ["qa", "run", "--model", "openai/cand-a", "--model", "openai/cand-b", "--judge", "none", "--draws", "2"]
    players = ["--player", "openai/cand-a", "--player", "baseline/random"]
    return ["games", "run", "--scenario", "poker/kuhn", "--seeds", "1-3", "--opponent", "baseline/random", *players]


@pytest.mark.parametrize(
    ("family", "table"),
    [
        ("rubric", "rubric_responses"),
        pytest.param("qa", "qa_responses", marks=pytest.mark.thorough),
        pytest.param("games", "episode_turns", marks=pytest.mark.thorough),
    ],
)
def test_the_named_command_makes_a_file_again_without_a_call(family: str, table: str, server: FakeLLM, state: Path) -> None:
    ok(*prepare(family, state), "--snapshot", "night", "--no-roll-ups")
    asked = len(server.calls)
    assert asked > 0
    (file,) = (state / "warehouse" / table).rglob("*.parquet")
    before = read(table)
    file.write_bytes(file.read_bytes()[:100])
    found = dtef("sql", f"SELECT * FROM {table}")
    assert found.exit_code == 1
    (command,) = re.findall(r": dtef (.*)", found.stderr)
    again = dtef(*shlex.split(command), "--no-roll-ups")
    assert again.exit_code == 0, (command, again.output)
    assert read(table) == before, command
    assert len(server.calls) == asked


def read(table: str) -> Sequence[str]:
    return sorted(ok("sql", f"SELECT * FROM {table}", "--csv").splitlines())
