"""`dtef score` scores lines of JSON from a file or a pipe, without any state; programs and quotations too."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from resources.sandbox.run import choose_level
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.strict_json import strict


class TestScore:
    CHECKED: tuple[tuple[list[float], list[float], dict[str, float]], ...] = (
        (
            [45.2, 30.1, 15.5, 9.2],
            [40, 35, 15, 10],
            {"js": 0.948749, "cosine": 0.992099, "emd": 0.937, "emd_normalized": 0.979},
        ),
        ([50, 30, 20], [20, 30, 50], {"js": 0.690459, "emd": 0.4, "emd_normalized": 0.7}),
        ([100, 0, 0, 0, 0], [0, 100, 0, 0, 0], {"js": 0.0, "emd": 0.0, "emd_normalized": 0.75}),
    )

    def test_the_published_check_values(self, tmp_path: Path) -> None:
        lines = [
            json.dumps({"response": str(response), "expected": expected, "id": 7}) for response, expected, _ in self.CHECKED
        ]
        (tmp_path / "lines.jsonl").write_text("\n".join(lines), encoding="utf-8")
        out = [strict(line) for line in ok("score", tmp_path / "lines.jsonl").splitlines()]
        for row, (_, _, values) in zip(out, self.CHECKED, strict=True):
            assert {name: row[name] for name in values} == pytest.approx(values, abs=5e-7)
            assert (row["status"], row["score"], row["id"]) == ("ok", row["js"], 7)
            assert sum(row["predicted"]) == pytest.approx(1)
            assert {"cosine", "emd", "tv", "response", "expected"} <= set(row)

    def test_a_malformed_line_is_reported_with_its_number_and_the_rest_goes_on(self) -> None:
        good = '{"response": "[50, 50]", "expected": [50, 50], "metric": "cosine"}'
        result = dtef("score", "-", stdin=f"{good}\n{{oops\n\n{good}\n")
        assert result.exit_code == 1
        rows = [strict(line) for line in result.stdout.splitlines()]
        assert [row.get("score") for row in rows] == [pytest.approx(1), None, pytest.approx(1)]
        assert rows[1]["line"] == 2
        assert "not JSON" in rows[1]["error"]

    @pytest.mark.parametrize("text", ["\nresponse,expected\n1,2\n", '[\n{"response": "", "expected": [1, 1]}\n]'])
    def test_a_file_of_another_format_is_one_error(self, tmp_path: Path, text: str) -> None:
        """Each line of a CSV file was an error of its own."""
        (tmp_path / "answers.csv").write_text(text, encoding="utf-8")
        message = " ".join(refused("score", tmp_path / "answers.csv").split())
        assert "answers.csv is not JSON Lines; write one object per line" in message
        assert dtef("score", tmp_path / "answers.csv").stdout == ""

    def test_it_works_as_a_filter_without_any_state(self, tmp_path: Path) -> None:
        line = json.dumps({"response": "About half, I would think.", "expected": [50, 50]})
        done = subprocess.run(
            [Path(sys.executable).with_name("dtef"), "score", "-"],
            input=line,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        row = strict(done.stdout)
        assert (row["status"], row["score"], row["js"], row["predicted"]) == ("unparseable", 0.0, None, None)
        assert list(tmp_path.iterdir()) == []


YES = json.dumps({"scorer": "Yes/No", "response": "Yes, they moved.", "reference": "yes", "id": 7})
CAR = json.dumps({"scorer": "list_one", "response": "an automobile", "reference": {"car": 1, "bicycle": 0.5}})


class TestScoreAnswers:
    def test_each_line_gets_its_score(self, tmp_path: Path) -> None:
        (tmp_path / "answers.jsonl").write_text(f"\ufeff{YES}\n\n{CAR}\n", encoding="utf-8")
        first, second = map(strict, ok("score", "--family", "qa", tmp_path / "answers.jsonl").splitlines())
        assert (first["id"], first["status"], first["score"], first["read_by"]) == (7, "ok", 1, "first_word")
        assert (second["score"], second["read_by"], second["found"]) == (1, "synonym", ["car"])

    def test_an_empty_file_is_reported(self) -> None:
        assert "nothing to score" in dtef("score", "--family", "qa", "-", stdin="\n").stderr

    def test_a_list_is_a_response(self) -> None:
        """The documented lists of ListMany were refused as no text."""
        line = {"scorer": "ListMany", "response": ["oyster", "mussel"], "reference": {"oyster": 1, "mussel": 1, "whelk": 2}}
        (scored,) = map(strict, ok("score", "--family", "qa", "-", stdin=json.dumps(line)).splitlines())
        assert (scored["status"], scored["value"], scored["response"]) == ("ok", 0.5, ["oyster", "mussel"])
        assert (
            "a list of strings or numbers"
            in dtef("score", "--family", "qa", "-", stdin=json.dumps({**line, "response": [{}]})).stderr
        )

    def test_scorers_that_are_known_here_are_named(self) -> None:
        line = json.dumps({"scorer": "Essay", "response": "x", "reference": "y"})
        result = dtef("score", "--family", "qa", "-", stdin=f"{line}\n{YES}\n{line}\n")
        reason = strict(result.stdout.splitlines()[0])["reason"]
        for told in (reason, result.stderr):
            assert "code_execution, verbatim" in told
        assert "2 of 3 lines name unknown scorers: Essay; known: Yes/No, ListOne" in result.stderr
        assert dtef("score", "--family", "qa", "-", stdin=YES).stderr == ""

    def test_programs_that_no_sandbox_ran_are_counted_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DTEF_SANDBOX", "off")
        task = {"prompt": "def one():\n", "entry_point": "one", "test": "def check(candidate):\n    assert candidate() == 1\n"}
        line = json.dumps({"scorer": "code_execution", "response": "    return 1", "reference": task})
        result = dtef("score", "--family", "qa", "-", stdin=f"{line}\n{line}\n")
        assert [strict(one)["status"] for one in result.stdout.splitlines()] == ["sandbox_unavailable"] * 2
        assert "no sandbox: 2 programs not run" in result.stderr


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
