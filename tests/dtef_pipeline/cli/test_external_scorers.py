"""`dtef score --family qa` with what needs more than a text: programs and their tests, quotations and their documents; all shared vectors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from resources.sandbox.run import choose_level
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import dtef, ok
from tests.strict_json import strict

TASKS = ROOT / "data" / "questions" / "humaneval" / "HumanEval.jsonl"
ADD = {
    "prompt": '\n\ndef add(x: int, y: int):\n    """Both together."""\n',
    "entry_point": "add",
    "test": "def check(candidate):\n    assert candidate(0, 1) == 1\n    assert candidate(2, 3) == 5\n",
}
"""The task that the vectors name, in words and tests of our own."""
PAGES = [{"page_content": "Ada kept the light."}, {"page_content": "Bo mended “the nets”."}]


@pytest.fixture
def sandbox() -> None:
    """Tests that need it are skipped where no code can be run."""
    if (found := choose_level()).level is None:
        pytest.skip(f"no sandbox: {found.words}")


def scored(*lines: Mapping[str, Any], options: tuple[object, ...] = ()) -> list[dict[str, Any]]:
    text = "\n".join(json.dumps(line) for line in lines)
    return [strict(line) for line in ok("score", "--family", "qa", "-", *options, stdin=text).splitlines()]


def refused_line(line: Mapping[str, Any], *options: object) -> str:
    result = dtef("score", "--family", "qa", "-", *options, stdin=json.dumps(line))
    assert (result.exit_code, result.stdout) == (2, "")
    return " ".join(result.stderr.split())


def code(response: str | None, **more: object) -> dict[str, Any]:
    return {"scorer": "code_execution", "response": response, "reference": ADD, "timeout_s": 60, **more}


@pytest.mark.usefixtures("sandbox")
class TestPrograms:
    def test_a_line_names_a_task_of_a_file(self) -> None:
        first = json.loads(TASKS.read_text(encoding="utf-8").splitlines()[0])
        line = {"scorer": "code_execution", "task": first["task_id"], "response": first["canonical_solution"], "timeout_s": 60}
        (one,) = scored(line, options=("--tasks", TASKS))
        assert (one["status"], one["score"]) == ("passed", 1.0)

    def test_a_time_limit_is_that_of_the_line(self) -> None:
        (one,) = scored(code("    while True:\n        pass\n", timeout_s=0.5))
        assert (one["status"], one["score"]) == ("timeout", 0.0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            {"reference": {"prompt": "", "entry_point": 7}},
            "reference without entry_point, test; allowed: an object with prompt,",
        ),
        ({"reference": None}, "code_execution without a task; allowed: task, of the file that --tasks names"),
        ({"reference": None, "task": "Demo/0"}, "no task 'Demo/0'; --tasks FILE names the file that has it"),
        ({"reference": None, "task": 7}, "task"),
    ],
)
def test_a_line_that_names_no_program_is_refused_before_anything_is_run(line: dict[str, Any], message: str) -> None:
    told = refused_line(code("    return x + y\n") | line)
    assert "-:1: " in told or "<stdin>:1: " in told
    assert message in told


def test_a_task_that_the_file_has_not_is_refused_with_those_it_has(tmp_path: Path) -> None:
    line = code("    return 1\n", reference=None, task="Demo/999")
    assert "no task 'Demo/999'; known: Demo/" in refused_line(line, "--tasks", TASKS)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"task_id": "x"}\n', encoding="utf-8")
    assert "broken.jsonl:1" in refused_line(line, "--tasks", broken)


class TestQuotations:
    def test_quotations_are_looked_up_in_their_documents(self) -> None:
        citations = [
            {"source_index": 0, "quote": "kept the light"},
            {"source_index": 1, "quote": 'mended "the nets"'},
            {"source_index": 0, "quote": "the nets"},
        ]
        (one,) = scored({"scorer": "verbatim", "context": PAGES, "citations": citations, "id": "a"})
        assert (one["status"], one["id"]) == ("ok", "a")
        assert one["value"] == pytest.approx(1 / 3)
        assert (one["exact"], one["relaxed"], one["reasons"]) == ([1, 0, 0], [1, 1, 0], [None, "not_found", "found_elsewhere"])

    def test_without_citations_of_its_own_a_line_has_those_of_its_response(self) -> None:
        reply = json.dumps({"answer": "Ada", "citations": [{"source_index": 0, "quote": "Ada"}]})
        (one,) = scored({"scorer": "verbatim", "context": PAGES, "response": reply})
        assert (one["value"], one["exact"]) == (1.0, [1])

    def test_nothing_quoted_is_no_score(self) -> None:
        for line in ({"citations": []}, {"response": "Ada."}, {"response": None}):
            (one,) = scored({"scorer": "verbatim", "context": PAGES, **line})
            assert (one["status"], one["value"], one["score"], one["reason"]) == ("missing", None, None, "nothing is cited")

    @pytest.mark.parametrize("line", [{"response": "x"}, {"context": {}, "citations": []}, {"context": [], "citations": "x"}])
    def test_documents_and_citations_are_lists(self, line: dict[str, Any]) -> None:
        assert "verbatim: allowed: context, a list of documents with page_content" in refused_line(
            {"scorer": "verbatim", **line}
        )
