"""Pages of evaluations: what they say of one whose end was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.evaluations.evaluation_store import EvaluationStore, RunSpec
from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, browsing, texts_of
from tests.dtef_pipeline.api.made import settings_in
from tests.dtef_pipeline.api.pages.test_operator_pages import PLANNED
from tests.made.run_events import RUN_LOG, tell


@pytest.mark.parametrize("is_started", [False, True])
def test_what_is_being_cancelled_is_not_shown_as_starting(is_started: bool, tmp_path: Path) -> None:
    """It was the next to start, and Dagster's daemon was to start it; calls were under way, where it had never started."""
    with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
        queue_id = store.submit("qa", {}, PLANNED, [], "operator")[0].queue_id
        if is_started:
            tell(store, queue_id, "started", {})
    with browsing(tmp_path) as client:
        if not is_started:
            before = client.get(f"/queue/{queue_id}").text
            assert "the next to start" in before
            assert "usually within half a minute" in before
        client.post(f"/queue/{queue_id}/cancel", headers=OWN_ORIGIN)
        pages = [client.get(path).text for path in ("/queue", f"/queue/{queue_id}", f"/queue/{queue_id}/now")]
    for shown in pages:
        assert "cancelling" in shown
        assert "the next to start" not in shown
        assert "usually within half a minute" not in shown
    for shown in pages[1:]:
        assert "Cancellation requested by operator" in texts_of(shown)[0]
        assert ("Calls in progress finish first." in shown) is is_started
        assert (" before the start." in shown) is not is_started


def test_the_queue_is_filtered_by_state_and_searched_by_words(tmp_path: Path) -> None:
    with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
        kenya, india = (
            store.submit("survey", {"models": [model]}, {**PLANNED, "keys": [key]}, [], who)[0].queue_id
            for model, key, who in (("gpt-4.1", "S1/country:kenya", "maria"), ("100%_sure", "S1/country:india", "ann"))
        )
        tell(store, india, "failed", {"reason": "no key"})
    with browsing(tmp_path) as client:
        for query, there in (
            ("", {kenya, india}),
            ("status=failed", {india}),
            ("status=queued", {kenya}),
            ("q=KENYA+maria", {kenya}),
            ("q=Surveys+kenya", {kenya}),
            ("q=kenya+ann", set()),
            ("q=%25_sure", {india}),
            ("q=%25", {india}),
            (f"q={kenya[:8]}", {kenya}),
            ("status=failed&q=gpt", set()),
            ("q=%00%ED%A0%80", set()),
        ):
            for path in ("/queue", "/queue/now"):
                shown = client.get(f"{path}?{query}").text
                assert {one for one in (kenya, india) if f"evaluation-{one}" in shown} == there, query
        assert "No evaluation matches." in client.get("/queue?q=nobody").text
        assert 'data-now="/queue/now?status=failed"' in client.get("/queue?status=failed").text
        assert client.get("/queue?status=odd").status_code == 422


def test_an_evaluation_of_a_family_that_is_not_there_any_more_is_shown_without_values(tmp_path: Path) -> None:
    with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
        asked = [RunSpec("x/y", {"partition": "x/y"})]
        queue_id = store.submit("chess", {}, {**PLANNED, "keys": ["x/y"]}, asked, "operator")[0].queue_id
        tell(store, queue_id, "completed", {})
    with browsing(tmp_path) as client:
        shown = client.get(f"/queue/{queue_id}")
    assert shown.status_code == 200
    assert "x/y" in shown.text
    assert "Values" not in shown.text
