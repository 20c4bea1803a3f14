"""Published outputs of models, imported as responses, scored by the pipeline to what was published of them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from resources.responses.store import ResponseStore
from resources.settings import Settings
from tests.assets.qa.conftest import QaPipeline
from tests.conftest import SHARED
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.made.responses import stored

BENCHMARKS = SHARED / "benchmarks"
OTHERWISE_READ = {"gsm8k/31"}
"""Outputs of ToRA that are published as right and scored as wrong: one ends in prose, whose last number is another than that of the answer."""


def published(*path: str) -> Path:
    found = BENCHMARKS.joinpath(*path)
    if not found.exists():
        pytest.skip(f"no published outputs at {found}")
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def numbers(folder: Path) -> dict[int, str]:
    """By the number in the original file, the item here."""
    return {
        number: f"gsm8k/{place}" for place, number in enumerate(json.loads((folder / "index.json").read_text(encoding="utf-8")))
    }


def scored(pipeline: QaPipeline, metric: str) -> dict[tuple[str, str, int], tuple[str, float | None]]:
    """Status and score by model, item and draw."""
    rows = [row for row in pipeline.rows("qa_scores") if row["metric"] == metric]
    found = {
        (row["model"].removeprefix("imported/"), row["item_id"], row["draw"]): (row["status"], row["score"]) for row in rows
    }
    assert len(found) == len(rows)
    return found


def test_sums_are_scored_to_their_published_accuracies_and_no_calls_are_made(qa: QaPipeline) -> None:
    folder = published("gsm8k")
    qa.add("gsm8k", folder / "test.jsonl")
    assert qa.run(["qa_items"]).failures == ()
    for name, number in (("openai-gpt3-2021", 1600), ("tora-70b", 400)):
        path = folder / "outputs" / f"{name}.jsonl"
        told = ok("import", "responses", path, "--suite", "gsm8k", "--items", folder / "index.json")
        assert f"{number:,} responses added from {path}, 0 stored before" in told
        assert f"0 responses added from {path}, {number:,} stored before" in ok(
            "import", "responses", path, "--suite", "gsm8k", "--items", folder / "index.json"
        )
    outputs = lines(folder / "outputs" / "openai-gpt3-2021.jsonl")
    models = sorted({row["model"] for row in outputs})
    assert len(models) == 4
    ran = qa.run(qa_responses={"models": [f"imported/{model}" for model in (*models, "tora-70b")]})
    assert ran.failures == ()
    assert qa.server.calls == []
    found, item = scored(qa, "correct"), numbers(folder)
    right = {model: [found[model, item[row["index"]], 0][1] for row in outputs if row["model"] == model] for model in models}
    verdicts = {model: [float(row["published_correct"]) for row in outputs if row["model"] == model] for model in models}
    assert right == verdicts
    # Each single verdict, and so the accuracies.
    assert [sum(right[model]) / 400 for model in models] == pytest.approx([0.3425, 0.5725, 0.2125, 0.385])

    references = {row["item_id"]: float(row["reference"]) for row in qa.rows("qa_items")}
    others = set()
    for row in lines(folder / "outputs" / "tora-70b.jsonl"):
        here = item[row["index"]]
        if found["tora-70b", here, 0][1] != float(_same(row["published_prediction"], references[here])):
            others.add(here)
    assert others == OTHERWISE_READ


def _same(prediction: str, reference: float) -> bool:
    number = re.fullmatch(r"-?[\d.]+", prediction.strip().replace(",", ""))
    return bool(number) and abs(float(prediction.replace(",", "")) - reference) < 1e-6


def test_published_programs_have_their_published_verdicts(qa: QaPipeline, tmp_path: Path) -> None:
    """Every 24th completion of four models; a benchmark runs all."""
    folder = published("humaneval")
    qa.add("humaneval", folder / "HumanEval.jsonl")
    assert qa.run(["qa_items"]).failures == ()
    chosen = lines(folder / "outputs" / "reflexion.jsonl")[::24]
    path = tmp_path / "some.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in chosen), encoding="utf-8")
    told = dtef("import", "responses", path, "--suite", "humaneval")
    assert (told.exit_code, told.stderr) == (0, "")
    samples = dtef("import", "responses", folder / "outputs" / "codegen-16b.jsonl", "--suite", "humaneval")
    assert "warning: 58 lines name a prompt that words the question differently" in " ".join(samples.stderr.split())
    models = sorted({row["model"] for row in chosen})
    ran = qa.run(qa_responses={"models": [f"imported/{model}" for model in models]}, qa_executions={"timeout_s": 60.0})
    assert ran.failures == ()
    found = scored(qa, "passed")
    assert {(row["model"], row["task_id"]): found[row["model"], row["task_id"], 0][1] for row in chosen} == {
        (row["model"], row["task_id"]): float(row["passed"]) for row in chosen
    }
    # What was not imported is null and says so: it is no wrong answer.
    absent = [score for key, score in found.items() if key[:2] not in {(row["model"], row["task_id"]) for row in chosen}]
    assert len(absent) == len(models) * 60 - len(chosen)
    assert set(absent) == {("missing", None)}
    reasons = {row["error"] for row in qa.rows("qa_responses") if row["call_status"] == "missing"}
    assert reasons == {
        f"imported/{model} is imported: only its stored responses are used, and this prompt has none" for model in models
    }


UNFIT_OPTIONS = {
    "--suite gsm9k": "--suite 'gsm9k': no questions of it were added; known: gsm8k",
    "--part all": "--part with responses without --suite",
    "--repeats-are-draws": "--repeats-are-draws with responses without --suite",
    "--suite gsm8k --condition plane": "template 'plane': allowed: letters, parens, cot, plain",
    "--suite gsm8k --condition bm25,5-chunks": "gsm8k/all is not asked under the condition 'bm25,5-chunks'",
    "--suite gsm8k --snapshot a/b/": "snapshot",
}


class TestCommand:
    """Without any shared file: three of the shipped sums."""

    @pytest.fixture
    def answers(self, qa: QaPipeline, tmp_path: Path) -> Path:
        qa.add("gsm8k", Path("data/questions/gsm8k").absolute())
        assert qa.run(["qa_items"]).failures == ()
        return tmp_path / "answers.jsonl"

    def write(self, path: Path, *rows: dict[str, Any]) -> Path:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    def test_a_faulty_line_means_that_nothing_is_added(self, answers: Path) -> None:
        good = {"index": 0, "model": "m", "text": "#### 1"}
        self.write(answers, good, {**good, "index": 999})
        message = refused("import", "responses", answers, "--suite", "gsm8k")
        assert re.search(r"answers\.jsonl:2: no such item in gsm8k; got '999'; allowed: gsm8k/", message)
        assert _stored() == 0
        skipping = dtef("import", "responses", answers, "--suite", "gsm8k", "--skip-unknown")
        assert (skipping.exit_code, _stored()) == (0, 1)
        assert "1 line skipped" in skipping.stderr

    def test_draws_conditions_and_snapshots_are_those_of_a_run(self, qa: QaPipeline, answers: Path) -> None:
        self.write(answers, {"index": 0, "samples": ["#### 1", "#### 2"]}, {"index": 1, "samples": ["#### 1", "#### 2"]})
        common = ("import", "responses", answers, "--suite", "gsm8k", "--model", "mine")
        told = ok(*common, "--condition", "plain", "--snapshot", "night")
        assert "imported/mine (4)" in told
        assert "--model imported/mine --draws 2" in told
        night = {"snapshot": "night"}
        config = dict.fromkeys(("qa_judgements", "qa_executions", "qa_scores"), night)
        given = {"models": ["imported/mine"], "draws": 2, "limit": 20, **night}
        ran = qa.run(qa_responses=given, **{**config, "qa_judgements": {**night, "judge": "none"}})
        assert ran.failures == ()
        rows = qa.rows("qa_responses")
        by_status = defaultdict(set)
        for row in rows:
            by_status[row["call_status"]].add((row["item_id"], row["draw"]))
        assert by_status["answered"] == {(item, draw) for item in ("gsm8k/0", "gsm8k/1") for draw in (0, 1)}
        assert {row["cost_usd"] for row in rows} == {None}
        message = refused(*common, "--condition", "letters,rotated-1")
        assert "gsm8k/all is not asked under the condition 'letters,rotated-1'" in message or "order rotated-1" in message

    def test_answers_that_are_there_already_stay_and_that_is_stated(self, answers: Path) -> None:
        common = ("import", "responses", answers, "--suite", "gsm8k", "--model", "m")
        self.write(answers, {"index": 0, "text": "#### 1"})
        ok(*common)
        self.write(answers, {"index": 0, "text": "#### 2"})
        again = dtef(*common)
        assert "0 responses added" in again.stdout
        assert "1 stored before" in again.stdout
        assert "had another text, which stays" in again.stderr

    def test_options_that_do_not_fit_are_refused(self, answers: Path, subtests: pytest.Subtests) -> None:
        self.write(answers, {"index": 0, "model": "m", "text": "#### 1"})
        for options, told in UNFIT_OPTIONS.items():
            with subtests.test(options):
                assert told in refused("import", "responses", answers, *options.split())
        assert _stored() == 0

    def test_a_model_of_which_nothing_was_imported_is_refused_with_those_there_are(self, answers: Path) -> None:
        self.write(answers, {"index": 0, "model": "mine", "text": "#### 1"})
        ok("import", "responses", answers, "--suite", "gsm8k")
        message = refused("qa", "run", "--model", "imported/mnie", "--judge", "none")
        assert "no responses of it were imported in snapshot 'base'; there are: imported/mine" in message


def _stored() -> int:
    with ResponseStore(Settings.read_environment().responses_url) as store:
        return stored(store)
