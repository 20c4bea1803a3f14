"""The page of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.api.pages.page_routes import render
from dtef_pipeline.api.pages.queue_pages import lay_out_episode
from resources.evaluations.evaluation_store import EvaluationStore
from tests.dtef_pipeline.api.asked_runs import ANSWER_AND_BATTERY_COLUMNS
from tests.dtef_pipeline.api.browsed import text_of, tree_of
from tests.dtef_pipeline.api.conftest import AnsweredRun
from tests.dtef_pipeline.api.made import client_in, settings_in
from tests.made.run_events import RUN_LOG, tell


def members_shown(trace: dict[str, object]) -> str:
    """What a reader sees of a trace."""
    values = {"run_id": "0a", "json_address": "/", "title": "", "scripts": (), "holder": None, "members": trace}
    (main,) = tree_of(render("trace", values)).iter("main")
    return text_of(main).partition("This trace as JSON ")[2]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"cost_usd": 0.5}, "Cost (US dollars) $0.50"),
        ({"prompt_id": "ab"}, "Prompt id ab"),
        ({"answered_at": "2026-01-01T00:00:00.5+00:00"}, "Answered at 2026-01-01 00:00:00"),
        ({"counts": {}, "prompt_id": "ab"}, "Prompt id ab"),
    ],
)
def test_values_of_traces_have_units_and_times_are_read_as_on_other_pages(told: dict[str, object], shown: str) -> None:
    assert members_shown(told) == shown


TEXT_OF_TRACE = {"games": "ACTION: bet", "qa": "The answer is law/0", "rubric": "I sleep badly.", "survey": "[0.5, 0.3, 0.2]"}


def asked_trace(client: TestClient, run_id: str, text: str) -> str:
    """The id of a trace of the run in which a text stands."""
    traces = client.get(f"/api/evaluations/{run_id}").json()["traces"]
    return next(uri.rpartition("/")[2] for uri in traces if text in client.get(uri).text)


@pytest.mark.parametrize("family", ANSWER_AND_BATTERY_COLUMNS)
def test_a_trace_opens_as_a_page_and_its_json_stays_where_it_was(answered: Callable[[str], AnsweredRun], family: str) -> None:
    """The page of a run led to raw JSON."""
    _, evaluation, client = answered(family)
    run_id, text = evaluation.runs[0].run_id, TEXT_OF_TRACE[family]
    trace_id = asked_trace(client, run_id, text)
    of_run = client.get(f"/runs/{run_id}").text
    shown = client.get(f"/runs/{run_id}/traces/{trace_id}")
    absent = client.get(f"/runs/{run_id}/traces/nothing")
    assert f'href="/runs/{run_id}/traces/' in of_run
    assert f"/api/evaluations/{run_id}/traces/" not in of_run
    assert (shown.status_code, shown.headers["content-type"].partition(";")[0]) == (200, "text/html")
    assert text in unescape(shown.text)
    assert f'href="/api/evaluations/{run_id}/traces/{trace_id}"' in shown.text
    assert "<nav" in shown.text
    # An id of 32 characters in the heading was wider than a telephone.
    assert f"<h1>Trace {trace_id[:8]}</h1>" in shown.text
    assert trace_id in unescape(shown.text).partition("</h1>")[2]
    assert (absent.status_code, absent.headers["content-type"].partition(";")[0]) == (404, "text/html")


def test_moves_of_a_game_are_laid_out_and_its_turns_repeat_nothing_of_the_episode() -> None:
    """The moves were JSON with escaped line breaks, and each turn began with what all of them have in common."""
    reaction = "Nothing was played.\n\nIt is your turn."
    moves = [{"seat": 0, "command": "bet", "by_default": True, "reaction": reaction}, {"seat": 1, "command": "fold"}]
    turns = [{"scenario": "kuhn", "seat": 0, "response": "ACTION: bet"}, {"scenario": "kuhn", "seat": 1, "response": "I fold."}]
    trace = json.dumps({"measured": [], "moves": moves})
    shown = members_shown(lay_out_episode({"scenario": "kuhn", "trace": trace, "turns": turns}))
    assert "{" not in shown
    assert all(text in shown for text in ("Moves: 2", "Command", "Nothing was played. It is your turn.", "Turns: 2", "I fold."))
    assert "Scenario" not in shown[shown.index("Turns: 2") :]


def test_a_trace_is_for_operators(answered: Callable[[str], AnsweredRun]) -> None:
    folder, evaluation, _ = answered("qa")
    run_id = evaluation.runs[0].run_id
    with client_in(folder, "reviewer") as client:
        assert client.get(f"/runs/{run_id}/traces/x").status_code == 403


VALUE_OF_FAMILY = {"games": "2.5", "qa": "0.75", "rubric": "", "survey": "0.70"}


@pytest.mark.parametrize("family", ANSWER_AND_BATTERY_COLUMNS)
def test_the_page_of_an_evaluation_that_has_ended_has_its_values(tmp_path: Path, family: str) -> None:
    evaluation = ANSWER_AND_BATTERY_COLUMNS[family](tmp_path)
    with client_in(tmp_path, "operator") as client:
        before = client.get(f"/queue/{evaluation.queue_id}").text
        with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
            tell(store, evaluation.queue_id, "completed", {})
        after = tree_of(client.get(f"/queue/{evaluation.queue_id}").text)
    assert 'id="values"' not in before
    table = after.find(".//*[@id='values']//table")
    assert VALUE_OF_FAMILY[family] in text_of(table)
    assert after.find(f".//*[@id='values']//a[@href='/runs/{evaluation.runs[0].run_id}']") is not None
