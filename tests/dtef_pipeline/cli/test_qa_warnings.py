"""A run of which calls failed says so at its end, in words that stay in sight."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from dtef_pipeline.asking.request import LAST_ERROR
from dtef_pipeline.cli.family_run import RunContextOfCommand, list_failed_calls
from dtef_pipeline.cli.qa.qa_run import QA_RUN, list_failed_look_ups
from dtef_pipeline.cli.settings_command import RunFlags
from dtef_pipeline.cli.stage_runs import describe_unanswered
from dtef_pipeline.cli.survey.survey_run import SURVEY_RUN
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.identity import partition_key
from dtef_pipeline.qa.prompt_rows import AskSettings
from dtef_pipeline.qa.settings import QaSettings
from dtef_pipeline.qa.tables import QA_TABLES
from dtef_pipeline.qa.transcripts.retriever import REMOTE
from dtef_pipeline.survey.settings import SurveySettings
from dtef_pipeline.survey.tables import PREDICTIONS
from resources.settings import Settings
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
    given = RunContextOfCommand(FAMILY_BY_NAME["qa"], QaSettings(), RunFlags(), Settings.read_environment(), house)
    assert list(list_failed_calls(QA_RUN, given, ["gsm8k/all", "mmlu/sea_birds"])) == [
        "warning: b: 2 responses of 3 failed; the same command sends them again",
        "warning: c: 1 response of 1 failed; the same command sends them again",
    ]
    assert list(list_failed_calls(QA_RUN, given, ["mmlu/winds"])) == []
    judging = replace(given, flags=RunFlags(first="judge"))
    assert list(list_failed_calls(QA_RUN, judging, ["gsm8k/all"])) == [], "the same command would not ask again"


@pytest.mark.parametrize("from_store", [False, True])
def test_failed_calls_of_a_survey_run_are_of_its_own_models(tmp_path: Path, *, from_store: bool) -> None:
    """Failed calls of other models in the snapshot were listed as if the run had made them."""
    house, survey = Warehouse(tmp_path / "warehouse"), FAMILY_BY_NAME["survey"]
    options = SurveySettings(rounds=["S1"], models=["openai/own"], from_store=from_store)
    given = RunContextOfCommand(survey, options, RunFlags(), Settings.read_environment(), house)
    variants = {spec.model: spec.variant for spec in given.models.resolve(["openai/own", "openai/other"])}
    rows = [{"model": model, "model_variant": variants[model], "call_status": "error", "error": "x"} for model in variants]
    made = pa.Table.from_pylist(rows, schema=PREDICTIONS)
    house.write("predictions", made, round="S1", segment="country:brazil", snapshot=options.snapshot)
    listed = list(list_failed_calls(SURVEY_RUN, given, [partition_key("S1", "country:brazil")]))
    line = "warning: openai/own: 1 language-model prediction of 1 failed (x); the same command sends them again"
    assert listed == ([] if from_store else [line])


def test_what_a_budget_ended_is_reported_with_the_error_of_the_last_call() -> None:
    """The only call of a run failed, its budget ended, and the last lines said nothing of either."""
    ended = "not sent again: the run's max_calls of 1 was reached"
    calls = [
        ("m", "budget", ended),
        ("m", "budget", f"{ended}{LAST_ERROR}m: HTTP 500"),
        ("m", "answered", None),
        ("a", "error", "x"),
    ]
    assert list(describe_unanswered(calls)) == [
        "warning: a: 1 response of 1 failed (x); the same command sends them again",
        "warning: m: 2 responses of 3 missing, because a budget was reached (m: HTTP 500); the same command continues",
    ]


def test_look_ups_that_failed_are_counted_with_their_reasons(tmp_path: Path) -> None:
    house, how = Warehouse(tmp_path / "warehouse"), AskSettings(retriever=REMOTE)
    condition = how.condition((), about_documents=True)
    problems = [None, "it answered 403", "it answered 403", "no list"]
    rows = [{"item_id": str(at), "condition": condition, "problem": one} for at, one in enumerate(problems)]
    house.write(
        "qa_context", pa.Table.from_pylist(rows, schema=QA_TABLES["qa_context"].schema), suite="socioscope", part="talks"
    )
    (line,) = list_failed_look_ups(house, ["socioscope/talks"], how)
    assert line.startswith("warning: 3 look-ups of 4 failed, so no model was called: it answered 403 (2); no list (1)")
    assert list(list_failed_look_ups(house, ["socioscope/talks"], AskSettings())) == []
