"""A whole comparison in one command, and again from what is stored."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import CHOSEN, distribution, ok, query, refused, run_stages, serve_as
from tests.fake_llm_server import Call, FakeLLM
from tests.strict_json import strict

ROUND = ["--round", "S1", *CHOSEN]
OWN = """
name: warmer
hypothesis: Warm answers that were told to reason are no better.
rounds: [s1]
models: [fake]
contexts: [2]
questions: 2
draws: 2
conditions:
  - {name: cold, condition: distribution}
  - {name: warm, reasoning: cot, settings: {temperature: 0.7}}
"""


def reply(call: Call) -> str:
    """Far off at temperature 0, nearer when it is warm and has context."""
    first = 97.0 if call.body["temperature"] == 0 and "How this group answered" not in call.user else 40.0
    answer = distribution(call, first)
    return f"Let me think.\nDISTRIBUTION: {answer}" if "DISTRIBUTION:" in str(call.body["messages"]) else answer


@pytest.fixture
def server(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    with FakeLLM(reply=reply) as running:
        serve_as(running, ingested, monkeypatch, input_price=1.0, output_price=2.0)
        yield running


@pytest.fixture
def own(ingested: Path) -> str:
    path = ingested / "mine.yaml"
    path.write_text(OWN, encoding="utf-8")
    return str(path)


def test_a_file_is_a_whole_comparison_in_one_run_and_is_shown_again_from_the_scores(server: FakeLLM, own: str) -> None:
    printed = run_stages(*CHOSEN, "--experiment", own)
    assert "2 partitions, snapshot base" in printed
    assert "experiment warmer: Warm answers that were told to reason are no better." in printed
    assert server.answered == 2 * 2 * 2 * 2
    asked = query("SELECT DISTINCT condition, model, context_level FROM scores WHERE model LIKE 'fake%' ORDER BY ALL")
    assert asked == [
        {"condition": "distribution/attribute-label", "model": "fake", "context_level": "2"},
        {"condition": "distribution/attribute-label+cot", "model": "fake@temperature=0.7", "context_level": "2"},
    ]
    rows = strict(ok("board", "--experiment", own, "--json"))
    assert [(row["model"], row["condition"], row["n_pairs"]) for row in rows] == [("fake", "cold", 4), ("fake", "warm", 4)]
    assert rows[0]["difference"] is None
    assert rows[1]["difference"] == pytest.approx(rows[1]["score"] - rows[1]["first_score"])
    assert [row["parse_rate"] for row in rows] == pytest.approx([1, 1])
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(
        query("SELECT sum(cost_usd) AS usd FROM predictions")[0]["usd"]
    )
    shown = ok("board", "--experiment", own)
    assert shown in printed
    assert "difference to it, its 95 % interval, and the decision (equivalent: within ±0.01)" in shown
    assert "undecided (no interval and no test: 2 batteries, at least 5 are needed)" in shown
    assert (rows[1]["decision"], rows[1]["low"], rows[1]["margin"], rows[1]["n_questions"]) == ("undecided", None, 0.01, 2)
    assert len(list(csv.DictReader(io.StringIO(ok("board", "--experiment", own, "--csv"))))) == 2


@pytest.mark.thorough
def test_the_command_line_stands_over_the_file(server: FakeLLM, own: str) -> None:
    single = ["--questions", "1", "--draws", "1"]
    printed = run_stages(*ROUND, "--experiment", own, "--model", "fake@seed=5", "--context", "0", "--context", "2", *single)
    asked = query("SELECT DISTINCT model, context_level, draw, question_id FROM scores WHERE model LIKE 'fake%' ORDER BY ALL")
    assert [(row["model"], row["context_level"], row["draw"]) for row in asked] == [
        ("fake@seed=5", "0", 0),
        ("fake@seed=5", "2", 0),
        ("fake@seed=5,temperature=0.7", "0", 0),
        ("fake@seed=5,temperature=0.7", "2", 0),
    ]
    compared = printed[printed.index("experiment warmer") :]
    for level in ("0", "2"):  # each level is the table that it gives alone
        _, alone, columns = ok("board", "--experiment", own, "--context", level).split("\n\n")
        assert alone.startswith(f"context {level}:\n model")
        assert f"\n\n{alone}\n\n" in compared
    assert compared.count("\ncontext ") == 2
    assert columns.rstrip() in compared


def test_without_a_name_those_that_are_shipped_are_listed() -> None:
    rows = strict(ok("list", "--experiments", "--json"))
    assert {"reasoning", "context-format", "option-order", "shift", "temperature"} <= {row["experiment"] for row in rows}
    assert all(row["hypothesis"] and "," in row["conditions"] for row in rows)


class TestRefused:
    def test_what_a_run_cannot_make_of_it(self, ingested: Path, own: str) -> None:
        assert "no experiment 'nothing'; name a file, or one of context-format, context-size" in refused(
            "run", *ROUND, "--experiment", "nothing"
        )
        assert "the experiment shift names no models" in refused("run", *ROUND, "--experiment", "shift")
        message = refused("run", *ROUND, "--experiment", "shift", "--model", "baselines", "--condition", "shift")
        assert "give --condition or --experiment, not both" in message
        assert "the experiment context-size sets context levels" in refused(
            "run", *ROUND, "--experiment", "context-size", "--model", "baselines", "--context", "5"
        )
        assert "no round" in refused("run", "--experiment", "shift", "--model", "baselines")
        assert "no model or collection 'fake'" in refused("run", "--experiment", own)
        assert not (ingested / "warehouse" / "blueprints").exists()

    def test_a_comparison_of_which_nothing_is_scored(self, reading: Path) -> None:
        message = refused("board", "--experiment", "reasoning")
        command = "dtef run --experiment reasoning --round ROUND --model MODEL"
        assert f"nothing is scored for the experiment reasoning in snapshot base; run it with `{command}`" in message
        assert "; snapshots: 2026-01-01, 2026-01-03" in message
        assert f"`{command} --snapshot 2026-01-01`" in refused("board", "--experiment", "reasoning", "--snapshot", "2026-01-01")

    def test_a_comparison_before_any_run(self, ingested: Path) -> None:
        assert "no scores in" in refused("board", "--experiment", "reasoning")
