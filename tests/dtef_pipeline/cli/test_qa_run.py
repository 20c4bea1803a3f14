"""`dtef qa run` and `judge`: what is asked under each condition, that nothing is asked twice, and what is said of it.

One state for all tests, made step by step: a step starts Dagster, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import PRICES, dtef, name_panel, ok, refused, serve_as, skip_site, use
from tests.fake_llm_server import Call, FakeLLM
from tests.made.qa_items import right_reply, write_choices, write_sums
from tests.made.shared_cases import cases_beside
from tests.strict_json import strict

CASES = cases_beside(__file__)
UNJUDGED = ("--model", "answerer", "--judge", "none", "--no-roll-ups")


def replied(call: Call) -> str:
    return '{"score": 0.75, "reason": "nearly"}' if call.body["model"] == "judge" else right_reply(call)


@dataclass
class Step:
    """One command of the story: what it said, and what the server was asked meanwhile."""

    code: int
    stdout: str
    stderr: str
    asked: list[dict[str, Any]]
    scores: list[dict[str, Any]] = field(default_factory=list)
    """What is scored after it."""

    @property
    def calls(self) -> int:
        return len(self.asked)


@dataclass
class Story:
    folder: Path
    server: FakeLLM
    steps: dict[str, Step] = field(default_factory=dict)

    def tell(self, name: str, *words: object) -> None:
        before = len(self.server.calls)
        result = dtef("qa", *words)
        house = Warehouse(self.folder / "warehouse")
        scores = house.read_or_empty("qa_scores").to_pylist()
        asked = [call.body for call in self.server.calls[before:]]
        self.steps[name] = Step(result.exit_code, result.stdout, result.stderr, asked, scores)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("qa-run")
    with FakeLLM(reply=replied) as server, pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        skip_site(patch)
        serve_as(server, folder, patch, "answerer", "judge", **PRICES)
        choices, sums = write_choices(folder / "choices"), write_sums(folder / "sums.jsonl")
        story = Story(folder, server)
        story.tell("choices added", "add", "mmlu", choices)
        story.tell("sums added", "add", "gsm8k", sums)
        story.tell("nobody named", "run", "--judge", "judge", "--snapshot", "empty", "--part", "gsm8k/*", "--no-roll-ups")
        story.tell("first", "run", *UNJUDGED)
        story.tell("again", "run", *UNJUDGED)
        judging = ("run", "--from", "judge", "--part", "gsm8k/*", "--judge", "judge", "--no-roll-ups")
        story.tell("judged", *judging)
        story.tell("rejudged", *judging, "--rejudge", "second")
        yield story


def test_a_run_that_names_nobody_says_that_nothing_was_scored(told: Story) -> None:
    """It scored nothing, said nothing, and was a success."""
    step = told.steps["nobody named"]
    assert (step.code, step.calls) == (1, 0)
    assert "nothing was judged or scored" in step.stderr
    assert "--model MODEL" in step.stderr


def test_every_step_came_to_its_end(told: Story) -> None:
    assert {name: step.stderr for name, step in told.steps.items() if step.code and name != "nobody named"} == {}


def test_each_item_is_asked_once_and_its_answer_scored(told: Story) -> None:
    first = told.steps["first"]
    assert first.calls == 5 + 3
    assert "as candidate: 8 calls" in first.stdout
    assert "3 parts, snapshot base" in first.stdout
    found = {(row["item_id"], row["condition"], row["metric"]): row["score"] for row in first.scores}
    right = {key: score for key, score in found.items() if key[2] == "correct"}
    assert len(right) == 8
    assert set(right.values()) == {1.0}
    judged = [row for row in first.scores if row["metric"] == "judged"]
    assert {(row["status"], row["score"]) for row in judged} <= {("missing", None)}


def test_what_is_stored_is_never_asked_again(told: Story) -> None:
    again = told.steps["again"]
    assert again.calls == 0
    assert "sent as" not in again.stdout
    assert again.scores == told.steps["first"].scores


def test_judging_asks_the_judge_alone_and_once(told: Story) -> None:
    judged = told.steps["judged"]
    assert {body["model"] for body in judged.asked} == {"judge"}
    assert judged.calls == 2 * 3
    assert "as judge: 6 calls" in judged.stdout
    means = {row["item_id"]: row["score"] for row in judged.scores if row["metric"] == "judged"}
    assert means == {f"gsm8k/{at}": 0.75 for at in range(3)}
    assert told.steps["rejudged"].calls == 6


def test_the_key_is_written_nowhere(told: Story) -> None:
    files = [path for path in told.folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if b"planted-key" in path.read_bytes()] == []


@pytest.mark.parametrize(
    "judge", [("--judge", "nobody"), ("--judges", "broken.yaml"), ("--judge", "baseline/uniform"), ("--rejudge", "a/b")]
)
def test_no_calls_are_made_where_nobody_can_judge(told: Story, judge: tuple[str, str]) -> None:
    """Answers were bought before it was found that the judge is not known."""
    (told.folder / "broken.yaml").write_text("arbiter: {modle: judge}\n", encoding="utf-8")
    given = (judge[0], told.folder / judge[1]) if judge[0] == "--judges" else judge
    before = len(told.server.calls)
    refused("qa", "run", "--model", "answerer", *given, "--snapshot", "unjudged", "--no-roll-ups")
    assert len(told.server.calls) == before


@pytest.mark.parametrize(("command", "message"), CASES["faults_are_stated_with_what_is_allowed"])
def test_faults_are_stated_with_what_is_allowed(told: Story, command: str, message: str) -> None:
    before = len(told.server.calls)
    assert message in " ".join(refused("qa", *command.split()).replace("\n", " ").split())
    assert len(told.server.calls) == before


def test_what_one_part_cannot_be_asked_is_its_failure_and_no_others(told: Story) -> None:
    """Sums have no options to rotate; birds have two examples."""
    result = dtef("qa", "run", "--part", "gsm8k/*", "--part", "sea_birds", "--order", "rotated-1", *UNJUDGED)
    assert result.exit_code == 1
    assert "the others are done: gsm8k/all (order rotated-1 " in result.stderr
    assert "1 of 2 parts, snapshot base" in result.stdout
    assert strict(ok("sql", "SELECT count(*) AS n FROM qa_items", "--json"))[0]["n"] == 8


def test_budgets_and_the_day_of_judges_are_compared_with_the_estimate(told: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    name_panel(told.folder, monkeypatch, qa={"daily_budget": 0.0001})
    estimate = ("run", "--estimate", "--model", "answerer", "--part", "gsm8k/*", "--snapshot", "later", "--max-calls", "100")
    said = ok("qa", *estimate, "--judge", "judge")
    assert "1 part, 3 responses, snapshot later" in said
    assert "daily_budget of judges 0.0001 would be reached" in said
    assert "max_calls 100 is enough: at most 15" in said
    assert {row["role"] for row in strict(ok("qa", *estimate, "--judge", "none", "--json"))} == {"candidate"}
