"""The part of `make demo` about questions, offline: what is imported is replayed, and pages show the scores that it comes to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import ok, query, skip_site
from tests.strict_json import strict

QUESTIONS = ROOT / "data" / "questions"
ADDED_BY_DEMO: dict[str, tuple[object, ...]] = {
    "demo-mmlu": (QUESTIONS / "mmlu",),
    "demo-gsm8k": (QUESTIONS / "gsm8k",),
    "demo-humaneval": (QUESTIONS / "humaneval",),
    "demo-socioscope": (QUESTIONS / "socioscope" / "questions.json", "--corpus", QUESTIONS / "socioscope"),
}
REPLAYED_PARTS = ("kitchen_science", "harbour_geography", "all", "questions")
"""All but the one that the demo has answered live."""

SAME_ANYWHERE = ("demo-gsm8k", "demo-socioscope")
"""Suites of which nothing is answered live, nor run in a sandbox that may be missing."""


class QaDemo(NamedTuple):
    """What the commands left behind."""

    board: list[dict[str, Any]]
    scores: list[dict[str, Any]]
    stored: int
    """Responses in the store afterwards."""


@pytest.fixture(scope="module")
def qa_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QaDemo]:
    folder: Path = tmp_path_factory.mktemp("qa_demo")
    with pytest.MonkeyPatch.context() as patch:
        for name, place in (("DTEF_WAREHOUSE", "warehouse"), ("DTEF_RESPONSES", "r.sqlite"), ("DAGSTER_HOME", "dagster")):
            patch.setenv(name, str(folder / place))
        for name in ("DTEF_MODELS", "DTEF_PANEL", "DTEF_WEBHOOK"):
            patch.delenv(name, raising=False)
        patch.setenv("DTEF_SANDBOX", "off")
        skip_site(patch)
        ok("import", "responses", ROOT / "data" / "stored_answers.jsonl")
        for suite, files in ADDED_BY_DEMO.items():
            ok("qa", "add", suite, *files, "--suites", QUESTIONS / "suites.yaml")
        parts = [word for part in REPLAYED_PARTS for word in ("--part", part)]
        ok("qa", "run", "--suite", "demo-*", *parts, "--model", "local/smollm2-135m", "--judge", "none")
        yield QaDemo(
            strict(ok("qa", "board", "--suite", "demo-*", "--json")),
            query("SELECT suite, part, metric, status, score, reason FROM qa_scores"),
            sum(row["responses"] for row in strict(ok("responses", "--json"))),
        )


def test_nothing_was_asked_beside_what_is_stored(qa_demo: QaDemo) -> None:
    assert qa_demo.stored == 74
    assert {row["status"] for row in qa_demo.scores if row["metric"] == "correct"} == {"ok", "unparseable"}


def test_without_a_sandbox_the_demo_ends_well_and_its_programs_have_no_score_and_a_reason(qa_demo: QaDemo) -> None:
    of_code = [row for row in qa_demo.scores if row["suite"] == "demo-humaneval"]
    assert len(of_code) == 20
    without = [row for row in of_code if row["status"] == "sandbox_unavailable"]
    assert len(without) > 10  # the others are no Python, which is known without running them
    assert all(row["score"] is None and row["reason"] for row in without)


def test_the_page_shows_the_scores_of_the_replayed_suites(qa_demo: QaDemo) -> None:
    blocks = _text_blocks("docs/how-to/qa.md")
    rows = re.findall(r"^ (demo-\S+) +\S+ +(\S+) .*local/smollm2-135m +(\d\.\d{4}) ", blocks, re.MULTILINE)
    shown = {(suite, metric): float(score) for suite, metric, score in rows if suite in SAME_ANYWHERE}
    made = {
        (row["suite"], row["metric"]): row["score"]
        for row in qa_demo.board
        if row["suite"] in SAME_ANYWHERE and row["score"] is not None
    }
    assert shown == pytest.approx(made, abs=5e-5)
    assert {suite for suite, _, _ in rows} == set(ADDED_BY_DEMO)


def _text_blocks(page: str) -> str:
    return "\n".join(re.findall(r"```text\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL))
