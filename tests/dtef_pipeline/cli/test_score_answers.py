"""`dtef score --family qa` scores lines of JSON from a file or a pipe, without any state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import dtef, ok
from tests.strict_json import strict

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
