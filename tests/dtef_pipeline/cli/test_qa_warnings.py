"""A run of which calls failed says so at its end, in words that stay in sight."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dtef_pipeline.asking.request import LAST_ERROR
from dtef_pipeline.cli.qa.qa_run import failed_models, look_ups_that_failed
from dtef_pipeline.cli.started_runs import unanswered_lines
from dtef_pipeline.qa.prompt_rows import AskedHow
from dtef_pipeline.qa.stored_tables import QA_TABLES
from dtef_pipeline.qa.transcripts.remote import REMOTE
from resources.warehouse import Warehouse
from tests.made.qa_items import BIRD, ROWERS, responses_to


def test_models_whose_calls_failed_are_counted_over_all_parts(tmp_path: Path) -> None:
    """All calls of a run failed, and its last lines said nothing of it."""
    house = Warehouse(tmp_path / "warehouse")
    sums = pa.concat_tables(
        [
            responses_to(ROWERS, "12", None, model="b"),
            responses_to(ROWERS, "12", model="a"),
            responses_to(ROWERS, None, model="c"),
        ]
    )
    house.write("qa_responses", sums, suite="gsm8k", part="all", snapshot="base")
    birds = responses_to(BIRD, None, model="b")
    house.write("qa_responses", birds, suite="mmlu", part="sea_birds", snapshot="base")
    house.write("qa_responses", birds, suite="mmlu", part="sea_birds", snapshot="night-2")
    assert list(failed_models(house, ["gsm8k/all", "mmlu/sea_birds"], "base")) == [
        "warning: b: 2 responses of 3 failed; the same command asks again",
        "warning: c: 1 response of 1 failed; the same command asks again",
    ]
    assert list(failed_models(house, ["mmlu/winds"], "base")) == []


def test_what_a_budget_ended_is_told_with_the_error_of_the_last_call() -> None:
    """The only call of a run failed, its budget ended, and the last lines said nothing of either."""
    ended = "not asked again: the run's max_calls of 1 was reached"
    calls = [
        ("m", "budget", ended),
        ("m", "budget", f"{ended}{LAST_ERROR}m: HTTP 500"),
        ("m", "answered", None),
        ("a", "error", "x"),
    ]
    assert list(unanswered_lines(calls)) == [
        "warning: a: 1 response of 1 failed (x); the same command asks again",
        "warning: m: 2 responses of 3 missing, because a budget was reached (m: HTTP 500); the same command continues",
    ]


def test_look_ups_that_failed_are_counted_with_their_reasons(tmp_path: Path) -> None:
    house, how = Warehouse(tmp_path / "warehouse"), AskedHow(retriever=REMOTE)
    condition = how.condition((), about_documents=True)
    problems = [None, "it answered 403", "it answered 403", "no list"]
    rows = [{"item_id": str(at), "condition": condition, "problem": one} for at, one in enumerate(problems)]
    house.write(
        "qa_context", pa.Table.from_pylist(rows, schema=QA_TABLES["qa_context"].schema), suite="socioscope", part="talks"
    )
    (line,) = look_ups_that_failed(house, ["socioscope/talks"], how)
    assert line.startswith("warning: 3 look-ups of 4 failed, so that nobody was asked: it answered 403 (2); no list (1)")
    assert list(look_ups_that_failed(house, ["socioscope/talks"], AskedHow())) == []
