"""`dtef qa socioscope`: answers of a file, or of models, with their quotations, averages and bars; no results are ever replaced."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from assets.launch import LaunchResult
from dtef_pipeline.cli.qa import qa_socioscope
from resources.warehouse import Warehouse
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import dtef, name_panel, ok, refused
from tests.fake_llm_server import FakeLLM
from tests.made.qa_replies import QaPlayers
from tests.strict_json import strict

TALKS = ROOT / "data" / "questions" / "socioscope"
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
        assert document["averages"]["score"]["micro"] == pytest.approx(2 / 3)
        assert document["averages"]["score"]["n_transcripts"] == 2
        assert document["time"].endswith("Z")
        assert document["lexicon"].startswith("wordnet-")
        assert document["averages"]["score"]["macro"] == pytest.approx(0.625)
        assert document["averages"]["existence_score"]["micro"] == pytest.approx((1 / 2 + 1 / 3) / 2)
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

    def test_no_results_are_replaced_even_within_a_second(
        self, files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Stopped(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

        monkeypatch.setattr(qa_socioscope, "datetime", Stopped)
        questions, corpus, out = files
        for _ in range(3):
            ok("score", questions, "--corpus", corpus, "--out", out)
        assert sorted(path.name for path in out.glob("*.json")) == [
            "results-20260102T030405Z-1.json",
            "results-20260102T030405Z-2.json",
            "results-20260102T030405Z.json",
        ]
        assert len(list(out.glob("*.svg"))) == 6

    def test_nothing_but_results_is_written_and_no_state_is_needed(
        self, files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("DTEF_WAREHOUSE", "DTEF_RESPONSES", "DAGSTER_HOME"):
            monkeypatch.delenv(name, raising=False)
        questions, corpus, out = files
        out.mkdir()
        monkeypatch.chdir(out)
        ok("score", questions, "--corpus", corpus)
        assert len(list(out.iterdir())) == 3
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
        assert "no question of it has answers: --model MODEL asks a model" in refused("score", questions, "--corpus", corpus)
        questions.write_text("{}", encoding="utf-8")
        assert "no question of it can be used" in refused("score", questions, "--corpus", corpus, "--out", out)
        assert "does not exist" in refused("score", questions, "--corpus", corpus.parent / "none")
        for option in ("--k 3", "--retriever remote", "--filter PROJECT=x", "--snapshot base", "--replace"):
            told = refused("score", questions, "--corpus", corpus, *option.split())
            assert f"{option.split()[0]} does not work with --corpus without --model" in told
        assert not out.exists()


@pytest.fixture
def asked(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FakeLLM, QaPlayers]]:
    """Models that answer questions about the sample interviews: one that quotes, and one that makes its quotations up."""
    pairs = json.loads((TALKS / "questions.json").read_text(encoding="utf-8"))["qa_pairs"]
    players = QaPlayers(evidence={one["question"]["text"]: ("yes", tuple(one["quotes"])) for one in pairs})
    with FakeLLM(reply=players.reply) as server:
        spec = {"api_base": server.base_url, "retries": 1}
        models = {name: {"model": f"openai/{name}", **spec} for name in ("honest", "inventor")}
        (state / "models.yaml").write_text(yaml.safe_dump({"models": models}), encoding="utf-8")
        monkeypatch.setenv("DTEF_MODELS", str(state / "models.yaml"))
        # Boards over all parts take most of the time, and have tests of their own.
        monkeypatch.setattr("dtef_pipeline.cli.stage_runs.roll_up", lambda instance, family, metric=None: LaunchResult((), ()))
        yield server, players


def of_models(document: Any) -> set[str]:
    return {one["model"] for pair in document["qa_pairs"] for one in pair["answers"]}


def judged_found(document: Any) -> Sequence[bool]:
    return [bool(cited["exact"]) for pair in document["qa_pairs"] for one in pair["answers"] for cited in one["citations"]]


def test_models_are_asked_once_and_each_has_results_of_its_own(asked: tuple[FakeLLM, QaPlayers], state: Path) -> None:
    """Answers of several models were mixed into one average; and a name with brackets was taken for a pattern, which fits no part."""
    server, _ = asked
    questions = state / "questions [1].json"
    shutil.copy(TALKS / "questions.json", questions)
    words = ("score", questions, "--corpus", TALKS, "--k", "4", "--out", state / "out")
    said = ok(*words, "--model", "honest", "--model", "inventor")
    assert said.count("20 answers to 20 questions: ") == 2
    assert server.answered == 40
    once = documents(state / "out")
    assert sorted(sorted(of_models(one)) for one in once) == [["honest"], ["inventor"]]
    honest, inventor = sorted(once, key=lambda one: sorted(of_models(one)))
    assert len(judged_found(honest)) >= 10
    assert all(judged_found(honest))
    assert not any(judged_found(inventor))
    assert honest["averages"]["existence_score"]["micro"] == 1.0
    assert inventor["averages"]["existence_score"]["micro"] == 0.0

    assert len(inventor["model_variant"]) > 0
    facts = {"model": "inventor", "snapshot": "base", "retriever": "bm25", "k": 4}
    assert {name: inventor[name] for name in facts} == facts
    assert inventor["lexicon"].startswith("wordnet-")
    cited = [one for pair in honest["qa_pairs"] for one in pair["answers"][0]["citations"]]
    assert {(type(one["source_index"]), type(one["exact"]), type(one["relaxed"])) for one in cited} == {(int, int, int)}
    assert all("#" in one["doc_id"] for one in cited)
    names = sorted(path.name for path in (state / "out").iterdir())
    assert [re.sub(r"\d{8}T\d{6}Z", "TIME", name) for name in names if "inventor" in name] == [
        "results-TIME-inventor-quotations.svg",
        "results-TIME-inventor-scores.svg",
        "results-TIME-inventor.json",
    ]
    chart = next((state / "out").glob("*inventor-scores.svg")).read_text(encoding="utf-8")
    assert "Mean score by interview: inventor, questions [1].json" in chart

    ok(*words, "--model", "inventor")
    assert server.answered == 40, "what is stored is not asked again"
    both = [one for one in documents(state / "out") if of_models(one) == {"inventor"}]
    assert [{**one, "time": ""} for one in both] == [{**inventor, "time": ""}] * 2
    assert len(documents(state / "out")) == 3


@pytest.mark.thorough
def test_a_judge_reads_the_reasons_where_a_question_says_so(
    asked: tuple[FakeLLM, QaPlayers], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was no --judge: that of judges.yaml was asked, though the help said that none was."""
    server, _ = asked
    metric = json.dumps({"answer": "yes", "rationale": {"judge": True}, "weight": 0.5})
    questions = state / "why.json"
    questions.write_text(json.dumps({"qa_pairs": [pair("why", "Yes/No with Rationale", metric, "x.csv")]}), encoding="utf-8")
    server.reply = lambda call: (
        '{"score": 0.4, "reason": "so"}'
        if call.body["model"] == "inventor"
        else '{"answer": "Yes, the tide.", "citations": []}'
    )
    words = ("score", questions, "--corpus", TALKS, "--out", state / "out", "--part", "reasons")
    assert "--judge with --corpus without --model, which scores the answers of a file" in refused(*words, "--judge", "inventor")
    assert "this is the judge: --judge MODEL names another judge" in refused(*words, "--model", "honest")
    assert server.answered == 0
    name_panel(state, monkeypatch, qa={"allow_unpriced": ["inventor"]})
    said = ok(*words, "--model", "honest", "--judge", "inventor")
    assert "score:      0.700 over 1 question (micro)" in said
    (document,) = documents(state / "out")
    assert document["qa_pairs"][0]["id"] == "reasons/why"
    assert "reasons by judge 1, openai/inventor" in document["qa_pairs"][0]["answers"][0]["measured_by"]
    ok(*words, "--model", "honest", "--judge", "none")
    assert server.answered == 2


def test_an_unknown_model_is_refused_before_anything_is_added(asked: tuple[FakeLLM, QaPlayers], state: Path) -> None:
    told = refused("score", TALKS / "questions.json", "--corpus", TALKS, "--out", state / "out", "--model", "honset")
    assert "no model or collection 'honset'" in told
    assert not (state / "warehouse").exists()
    assert not (state / "out").exists()


@pytest.mark.thorough
def test_a_model_that_never_answered_has_no_results(
    asked: tuple[FakeLLM, QaPlayers], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that scored nothing was written, and the exit code was 0."""
    spec = {"model": "openai/gone", "api_base": "http://127.0.0.1:9", "retries": 0}
    (state / "models.yaml").write_text(yaml.safe_dump({"models": {"gone": spec}}), encoding="utf-8")
    result = dtef("score", TALKS / "questions.json", "--corpus", TALKS, "--out", state / "out", "--model", "gone")
    assert result.exit_code == 1
    assert "gone: no stored answers, so no results are written" in result.stderr
    assert not (state / "out").exists()


@pytest.mark.parametrize(("given", "told"), [("PLANET=x", "'PLANET'"), ("YEAR=late", "'late'"), ("PROJECT", "'PROJECT'")])
def test_a_filter_of_another_kind_is_refused_before_anything_starts(
    asked: tuple[FakeLLM, QaPlayers], state: Path, given: str, told: str
) -> None:
    words = ("score", TALKS / "questions.json", "--corpus", TALKS, "--model", "honest", "--filter", given)
    assert told in (message := refused(*words))
    assert "PROJECT, YEAR, MONTH" in message
    assert not (state / "warehouse").exists()


@pytest.mark.thorough
def test_a_filter_that_leaves_no_document_is_refused_before_anything_is_asked(
    asked: tuple[FakeLLM, QaPlayers], state: Path
) -> None:
    """All questions were asked and paid without a source, and every model came out at zero."""
    server, _ = asked
    of_talks = ("score", TALKS / "questions.json", "--corpus", TALKS, "--out", state / "out", "--model", "honest")
    told = " ".join(refused(*of_talks, "--filter", "PROJECT=none").split())
    assert "--filter PROJECT=none matches no document; PROJECT has DEMO-001, DEMO-002" in told
    assert not (state / "warehouse").exists()
    ok("qa", "add", "socioscope", TALKS / "questions.json", "--corpus", TALKS)
    for more in ([], ["--estimate"]):
        told = " ".join(
            refused("qa", "run", *more, "--model", "honest", "--filter", "PROJECT=DEMO-001", "--filter", "YEAR=1999").split()
        )
        assert "--filter PROJECT=DEMO-001 YEAR=1999 matches no document; PROJECT has DEMO-001, " in told
    assert server.answered == 0
    said = ok(*of_talks, "--filter", "PROJECT=DEMO-001")
    assert "20 answers to 20 questions: " in said
    (document,) = documents(state / "out")
    assert document["filter"] == {"PROJECT": "DEMO-001"}
    assert set(Warehouse(state / "warehouse").read("qa_scores")["condition"].to_pylist()) == {"bm25,10-chunks,PROJECT=DEMO-001"}
