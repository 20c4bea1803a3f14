"""`dtef score --corpus`: answers of a file with their quotations, averages and bars; no results are ever replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.strict_json import strict

PAGES = [
    {"page_content": "Ada kept the light. It was cold.", "metadata": {"FILE": "light.csv", "NAME": "Ada"}},
    {"page_content": "Bo mended the nets.", "metadata": {"FILE": "nets.csv", "NAME": "Bo"}},
]


def pair(id: str, type: str, metric: str, file: str, *answers: Any, **more: Any) -> dict[str, Any]:
    asked = {"text": f"What of {id}?", "type": type, "metric": metric, **more}
    return {"id": id, "question": asked, "evidence": [{"file": file, "turn": 0}], "answers": list(answers)}


def answer(text: str | None, *quotes: tuple[int, str]) -> dict[str, Any]:
    return {"answer": text, "citations": [{"source_index": index, "quote": quote} for index, quote in quotes]}


PAIRS = [
    pair("cold", "Yes/No", "yes", "light.csv", answer("Yes.", (0, "It was cold")), answer("Perhaps", (1, "It was cold"))),
    pair("who", "PickOne", '{"Ada": 1}', "light.csv", answer("(a)"), options=["Ada", "Bo"]),
    pair(
        "what", "ListOne", '{"nets": 1, "sails": 0.5}', "nets.csv", answer("sails", (1, "the nets"), (1, "the sails"), (0, "x"))
    ),
    pair("why", "Essay", "x", "nets.csv", answer("An essay.")),
]
"""light.csv: 1, 0, 1; nets.csv: 0.5 and one that nobody scores. Quotations: 1 of 2, none, 1 of 3, none."""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Questions with answers, documents, and a folder for results."""
    (tmp_path / "talks.json").write_text(json.dumps({"qa_pairs": PAIRS}), encoding="utf-8")
    (tmp_path / "corpus.json").write_text(json.dumps(PAGES), encoding="utf-8")
    return tmp_path / "talks.json", tmp_path / "corpus.json", tmp_path / "out"


def documents(folder: Path) -> list[Any]:
    return [strict(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("results-*.json"))]


class TestGiven:
    def test_answers_of_the_file_are_scored_and_averaged_as_by_hand(self, files: tuple[Path, Path, Path]) -> None:
        """By question (1 + 0) / 2, 1 and 0.5: micro 2/3, macro (3/4 + 1/2) / 2. Quotations 1/2 and 1/3: micro and macro 0.417."""
        questions, corpus, out = files
        said = ok("score", questions, "--corpus", corpus, "--out", out).splitlines()
        assert (
            said[0] == "score:      0.667 over 3 questions (micro), 0.625 over 2 interviews (macro), 1 question without a score"
        )
        assert said[1] == (
            "quotations: 0.417 over 2 questions (micro), 0.417 over 2 interviews (macro), 2 questions without a score"
        )
        assert said[2].startswith("5 answers to 4 questions: ")
        (document,) = documents(out)
        assert document["time"].endswith("Z")
        assert document["lexicon"].startswith("wordnet-")
        assert document["averages"]["score"]["transcripts"]["nets.csv"] == {"mean": 0.5, "n": 1, "n_skipped": 1}
        assert [len(one["answers"]) for one in document["qa_pairs"]] == [2, 1, 1, 1]
        reasons = [cited["reason"] for cited in document["qa_pairs"][2]["answers"][0]["citations"]]
        assert reasons == [None, "not_found", "not_found"]
        assert [one["status"] for one in document["qa_pairs"][3]["answers"]] == ["no_scorer"]

    def test_questions_of_no_interview_are_counted_as_such(self, files: tuple[Path, Path, Path]) -> None:
        """Each counted as an interview of its own; and a source that is not a file of the corpus was taken without a word."""
        questions, corpus, out = files
        free = [
            {**pair(f"free{at}", "Yes/No", "yes", "", answer(text)), "evidence": []} for at, text in enumerate(("yes", "no"))
        ]
        free[1]["answers"].append({**answer("yes"), "source": "gone.csv"})
        questions.write_text(json.dumps({"qa_pairs": [*PAIRS[:2], *free]}), encoding="utf-8")
        result = dtef("score", questions, "--corpus", corpus, "--out", out)
        assert "(micro), 0.875 over 2 interviews (macro), 2 questions of no interview" in result.stdout
        assert "got 'gone.csv'; allowed: a file of the transcripts" in " ".join(result.stderr.split())
        assert "of no interview" in next(out.glob("*-scores.svg")).read_text(encoding="utf-8")

    def test_only_results_are_written_without_a_state(
        self, files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("DTEF_WAREHOUSE", "DTEF_RESPONSES", "DAGSTER_HOME"):
            monkeypatch.delenv(name, raising=False)
        questions, corpus, out = files
        out.mkdir()
        monkeypatch.chdir(out)
        ok("score", questions, "--corpus", corpus)
        ok("score", questions, "--corpus", corpus)
        assert len(list(out.iterdir())) == 2 * 3, "no results are ever replaced"
        assert len(list(out.parent.iterdir())) == 3

    def test_a_question_that_is_left_out_is_named_and_the_rest_goes_on(self, files: tuple[Path, Path, Path]) -> None:
        questions, corpus, out = files
        wrong = pair("bad", "Yes/No", "maybe", "light.csv", answer("yes"))
        questions.write_text(json.dumps({"qa_pairs": [wrong, *PAIRS]}), encoding="utf-8")
        result = dtef("score", questions, "--corpus", corpus, "--out", out)
        assert result.exit_code == 1
        assert "error: " in result.stderr
        assert "talks/bad" in result.stderr
        (document,) = documents(out)
        assert len(document["qa_pairs"]) == 4
        assert any("maybe" in line for line in document["findings"])

    def test_what_cannot_be_scored_is_refused(self, files: tuple[Path, Path, Path]) -> None:
        questions, corpus, out = files
        questions.write_text(json.dumps({"qa_pairs": [{**one, "answers": []} for one in PAIRS]}), encoding="utf-8")
        assert "no question of it has answers" in refused("score", questions, "--corpus", corpus)
        questions.write_text("{}", encoding="utf-8")
        assert "no question of it can be used" in refused("score", questions, "--corpus", corpus, "--out", out)
        assert "does not exist" in refused("score", questions, "--corpus", corpus.parent / "none")
        assert not out.exists()
