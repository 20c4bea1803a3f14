"""Pages of operators: closed to others, safe with hostile texts, and changing nothing for pages of other sites."""

from __future__ import annotations

import html
from itertools import pairwise, product
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.api.pages import new_evaluation_page
from dtef_pipeline.api.pages.vote_pages import changes
from dtef_pipeline.errors import ConfigError, StoreError
from resources.evaluations.evaluation_store import EvaluationStore, RunSpec
from tests.dtef_pipeline.api.browsed import (
    HOSTILE,
    OPERATOR_PAGES,
    OWN_ORIGIN,
    assert_inert,
    browsing,
    hidden_fields,
    tags_of,
    texts_of,
)
from tests.dtef_pipeline.api.made import PINNED_GAME, settings_in
from tests.made.run_events import RUN_LOG, tell

PLANNED = {"keys": ["poker/kuhn"], "config": {"episodes": {}}, "snapshot": "base"}
FORMS = (
    "/votes",
    "/new",
    "/personas/bold/status",
    "/scenarios/poker/kuhn/status",
)


def submitted(folder: Path, words: str = "poker/kuhn") -> str:
    """An evaluation whose texts are all `words`."""
    manifest = {"persona_ids": [words], "scenario_ids": [words], "models": [words]}
    with EvaluationStore(settings_in(folder).responses_url, RUN_LOG) as store:
        found, _ = store.submit(
            "games", manifest, PLANNED, [RunSpec("poker/kuhn", {"persona_id": words, **PINNED_GAME})], words
        )
        tell(store, found.queue_id, "started", {"said": words})
    return found.queue_id


def test_who_is_not_known_is_asked_to_log_in_and_comes_back(tmp_path: Path) -> None:
    with browsing(tmp_path, None) as client:
        for path in (*OPERATOR_PAGES, "/actions", "/queue/0a"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}")


def test_a_reviewer_sees_none_of_these_pages(tmp_path: Path) -> None:
    queue_id = submitted(tmp_path)
    with browsing(tmp_path, "reviewer") as client:
        for path in (*OPERATOR_PAGES, "/actions", f"/queue/{queue_id}", "/queue/now", f"/queue/{queue_id}/now"):
            answer = client.get(path)
            assert answer.status_code == 403
            assert answer.headers["content-type"].startswith("text/html")
            assert "this requires the role" in answer.text
            assert "poker" not in answer.text
        for path in (*FORMS, f"/queue/{queue_id}/cancel"):
            assert client.post(path, headers=OWN_ORIGIN).status_code == 403


def test_an_operator_sees_all_but_the_log_of_actions(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        for path in OPERATOR_PAGES:
            answer = client.get(path)
            assert answer.status_code == 200, path
            assert answer.headers["cache-control"] == "no-store"
            assert '"/actions"' not in answer.text
            assert_inert(answer.text)
            levels = [int(tag[1]) for tag, _ in tags_of(answer.text) if tag in ("h1", "h2", "h3", "h4")]
            assert all(below <= above + 1 for above, below in pairwise([0, *levels])), path
        assert client.get("/actions").status_code == 403
    with browsing(tmp_path, "admin") as client:
        assert client.get("/actions").status_code == 200


def test_pages_say_what_was_answered_and_how_many_wait(tmp_path: Path) -> None:
    queue_id = submitted(tmp_path)
    counts = {"n_requests": 24, "answered": 21, "failed": 2, "skipped": 1}
    warning = "3 of 24 requests were not answered: 2 failed, 1 was left out as the budget ended"
    with browsing(tmp_path) as client, EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
        waiting = [store.submit("qa", {"n": n}, PLANNED, [], "operator")[0].queue_id for n in range(3)]
        assert "the next to start" in client.get(f"/queue/{waiting[0]}").text
        assert "2 evaluations before it" in client.get(f"/queue/{waiting[2]}/now").text
        tell(store, queue_id, "item", {"restarted": True, "reason": "the worker is gone"})
        tell(store, queue_id, "completed", {"calls": {**counts, "stages": {"a": counts, "b": counts}}, "warning": warning})
        for path in ("/queue", f"/queue/{queue_id}", f"/queue/{queue_id}/now"):
            shown = client.get(path).text
            assert warning in shown, path
            assert 'class="badge partly">completed' in shown
            assert "21 of 24 calls answered, 2 failed, 1 left out" in shown
        page = client.get(f"/queue/{queue_id}").text
    assert "b: 21 of 24 calls answered" in page
    assert "1 time; see the events for the reason" in page
    assert "the worker is gone" in page


def test_forms_of_other_sites_change_nothing(tmp_path: Path) -> None:
    queue_id = submitted(tmp_path)
    foreign: tuple[dict[str, str], ...] = ({}, {"Origin": "https://elsewhere.org"}, {"Origin": "null"})
    with browsing(tmp_path, "admin") as client:
        for path, origin in product((*FORMS, f"/queue/{queue_id}/cancel"), foreign):
            assert client.post(path, headers=origin).status_code == 403
    with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
        assert store.cancels([queue_id]) == {}


def test_hostile_texts_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    queue_id = submitted(tmp_path, HOSTILE)
    with browsing(tmp_path, "admin") as client:
        for path in ("/queue", f"/queue/{queue_id}", "/queue/now", f"/queue/{queue_id}/now"):
            answer = client.get(path)
            assert answer.status_code == 200
            assert "&lt;script&gt;" in answer.text
            assert "<script>alert" not in answer.text
            assert "\x00" not in answer.text
            assert_inert(answer.text)


def test_names_of_nothing_are_not_found(tmp_path: Path) -> None:
    names = ("%00", "%F0%9F%98%80", "..%2f..", "<script>", "x" * 5000, "%ED%A0%80")
    with browsing(tmp_path) as client:
        for name, place in product(
            names, ("/queue/{}", "/queue/{}/now", "/queue?before={}", "/personas/{}", "/scenarios/poker/{}")
        ):
            answer = client.get(place.format(name))
            assert answer.status_code == 404
            assert "<script>" not in answer.text
        for name in names:
            assert client.post(f"/personas/{name}/status", headers=OWN_ORIGIN, data={"id": "x"}).status_code == 404


def test_an_evaluation_shows_its_events_and_is_cancelled_by_a_button(tmp_path: Path) -> None:
    queue_id = submitted(tmp_path)
    with browsing(tmp_path) as client:
        before = client.get(f"/queue/{queue_id}").text
        assert f'data-events="/api/evaluations/queue/{queue_id}/events"' in before
        assert "Cancel this evaluation" in before
        answer = client.post(f"/queue/{queue_id}/cancel", headers=OWN_ORIGIN)
        assert answer.headers["location"] == f"/queue/{queue_id}"
        after = client.get(f"/queue/{queue_id}").text
        assert "cancelling" in after
        assert "Cancel this evaluation" not in after
        with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
            assert store.cancels([queue_id]) == {queue_id: "operator"}
            tell(store, queue_id, "failed", {"reason": "no budget <b>left</b>"})
        ended = client.get(f"/queue/{queue_id}").text
        assert "no budget &lt;b&gt;left&lt;/b&gt;" in ended
        assert "data-events" not in ended


def test_a_run_without_results_says_that_nothing_is_scored(tmp_path: Path) -> None:
    queue_id = submitted(tmp_path, "cautious")
    with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
        (run,) = store.evaluation(queue_id).runs
    with browsing(tmp_path) as client:
        assert f"/runs/{run.run_id}" in client.get(f"/queue/{queue_id}").text
        shown = client.get(f"/runs/{run.run_id}")
        assert shown.status_code == 200
        assert "No scores yet." in shown.text
        assert_inert(shown.text)
        assert client.get("/runs/0a").status_code == 404
    with browsing(tmp_path, "reviewer") as client:
        assert client.get(f"/runs/{run.run_id}").status_code == 403


def test_older_evaluations_are_on_a_further_page(tmp_path: Path) -> None:
    with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
        ids = [store.submit("qa", {"n": n}, PLANNED, [], "operator")[0].queue_id for n in range(51)]
    with browsing(tmp_path) as client:
        first = client.get("/queue").text
        assert ids[-1] in first
        assert ids[0] not in first
        assert ids[0] in client.get(f"/queue?before={ids[1]}").text
        assert f"/queue?before={ids[1]}" in first


class TestNewEvaluations:
    def test_games_are_started_by_fields(self, tmp_path: Path) -> None:
        fields = {
            "persona_ids": ["cautious", "none"],
            "scenario_ids": "poker/kuhn",
            "models": ["local/smollm2-135m", "baselines"],
            "seeds": "1-3",
            "budget.max_cost_usd": "2.5",
            "once": "one",
        }
        with browsing(tmp_path) as client:
            answer = client.post("/new", data=fields, headers=OWN_ORIGIN)
            assert answer.status_code == 303, answer.text
            again = client.post("/new", data=fields, headers=OWN_ORIGIN)
            assert again.headers["location"] == answer.headers["location"]
            shown = client.get(answer.headers["location"]).text
        assert "cautious" in shown
        with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
            (found,) = store.latest()
        assert (found.submitted_by, found.run_count) == ("operator", 2)
        assert found.manifest["budget"]["max_cost_usd"] == pytest.approx(2.5)

    def test_what_is_wrong_stands_beside_the_field_and_what_was_typed_stays(self, tmp_path: Path) -> None:
        fields = {
            "persona_ids": "cautious",
            "scenario_ids": "poker/kuhn",
            "further_models": HOSTILE,
            "draws": "many",
            "budget.max_calls": "-1",
        }
        with browsing(tmp_path) as client:
            answer = client.post("/new", data=fields, headers=OWN_ORIGIN)
        assert answer.status_code == 422
        assert 'id="draws-fault"' in answer.text
        assert 'id="budget.max_calls-fault"' in answer.text
        assert 'value="many"' in answer.text
        assert "<script>alert" not in answer.text
        assert_inert(answer.text)


def test_why_a_partition_failed_stands_beside_it_and_a_long_reason_is_folded(tmp_path: Path) -> None:
    queue_id = submitted(tmp_path)
    with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
        item = {"stage": "episodes", "key": "poker/kuhn", "status": "failed", "reason": "no key " * 10_000}
        tell(store, queue_id, "item", item)
    with browsing(tmp_path) as client:
        shown = client.get(f"/queue/{queue_id}").text
        assert "What failed" in shown
        assert "1 run failed" in shown
        assert "…</bdi></summary>" in shown
        listed = client.get("/queue").text
        assert len(listed) < 20_000


def test_the_script_is_sent_a_part_again_only_when_it_has_changed(tmp_path: Path) -> None:
    queue_id = submitted(tmp_path)
    with browsing(tmp_path) as client:
        for path in ("/queue/now", f"/queue/{queue_id}/now"):
            tag = client.get(path).headers["etag"]
            assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
            with EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
                tell(store, queue_id, "item", {"stage": path, "answered": 1, "n_planned": 2})
            assert client.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_what_is_wrong_is_a_page_and_for_programs_a_problem(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        for method, path, status in (("GET", "/nothing", 404), ("POST", "/queue", 405), ("GET", "/personas?status=odd", 422)):
            answer = client.request(method, path, headers=OWN_ORIGIN)
            assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
            assert 'href="/health"' in answer.text
            assert_inert(answer.text)
        assert "There is no page at '/nothing'" in texts_of(client.get("/nothing").text)[0]
        for path in ("/api/nothing", "/static/nothing"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    ("error", "status"), [(ZeroDivisionError("secret"), 500), (StoreError("secret"), 503), (ConfigError("secret"), 503)]
)
def test_a_fault_of_the_server_is_a_page_that_keeps_what_was_typed(
    error: Exception, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise error

    typed = {"models": HOSTILE.replace("\x00", "")}
    with browsing(tmp_path) as client:
        monkeypatch.setattr(new_evaluation_page, "read_manifest_form", fault)
        answer = client.post("/new", data=typed, headers=OWN_ORIGIN)
        assert answer.status_code == status
        assert "secret" not in answer.text
        assert "content-security-policy" in answer.headers
        assert html.unescape(hidden_fields(answer.text, "/new")["models"]) == typed["models"]
        assert_inert(answer.text)


def test_a_form_sent_after_the_login_has_ended_is_kept(tmp_path: Path) -> None:
    with browsing(tmp_path, None) as client:
        answer = client.post("/new", data={"models": "calm"}, headers=OWN_ORIGIN)
        assert answer.status_code == 401
        assert "Log in in another tab" in answer.text
        assert hidden_fields(answer.text, "/new") == {"models": "calm"}
        assert 'value="calm"' not in client.post("/new", data={"models": "calm"}).text


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


PERSONA = {"id": "calm", "display_name": "Calm", "system_prompt": "Stay calm.", "traits": {"risk": "low", "patience": 3}}


def new_version(client: TestClient, **changes: object) -> None:
    """Make the persona, or its next version, over HTTP."""
    answer = client.post("/api/personas", json=PERSONA, headers=OWN_ORIGIN)
    if answer.status_code != 201:
        changed = client.put("/api/personas/calm", json={**PERSONA, **changes}, headers={"If-Match": "*", **OWN_ORIGIN})
        assert changed.status_code == 200, changed.text


def test_a_persona_is_made_approved_and_retired(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        new_version(client)
        for step in ("Approve", "Retire"):
            page = client.get("/personas/calm").text
            assert step in page
            sent = hidden_fields(page, "/personas/calm/status")
            answer = client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN)
            assert answer.status_code == 303, answer.text
        page = client.get("/personas/calm").text
        assert "patience: 3" in page
        assert "approved by operator" in " ".join(texts_of(page, ".//td"))
        assert 'action="/personas/calm/status"' not in page
        assert "/personas/calm" in client.get("/personas?status=retired").text
        assert "/personas/calm" not in client.get("/personas?status=approved").text
        assert client.get("/personas?status=odd").status_code == 422


def test_each_version_has_its_page(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        new_version(client)
        new_version(client, system_prompt=HOSTILE.replace("\x00", ""))
        shown = client.get("/personas/calm").text
        assert "&lt;script&gt;" in shown
        assert_inert(shown)
        assert "Stay calm." in client.get("/personas/calm?version=1").text
        assert client.get("/personas/calm?version=9").status_code == 404


def test_a_step_on_what_was_changed_meanwhile_does_nothing(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        new_version(client)
        sent = hidden_fields(client.get("/personas/calm").text, "/personas/calm/status")
        assert client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN).status_code == 303
        again = client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN)
        assert again.status_code == 412
        assert "nothing was done" in again.text
        for wrong in ({}, {"status": "odd"}, {**sent, "version": "x"}):
            assert client.post("/personas/calm/status", data=wrong, headers=OWN_ORIGIN).status_code in (409, 412, 422)


def moved(client: TestClient, address: str) -> str:
    """The page after the step that the page at an address offers."""
    sent = hidden_fields(client.get(address).text, "/personas/calm/status")
    answer = client.post("/personas/calm/status", data=sent, headers=OWN_ORIGIN)
    assert answer.status_code == 303, answer.text
    return client.get(answer.headers["location"]).text


def test_the_list_tells_the_version_in_play_where_the_latest_is_a_draft(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        new_version(client)
        moved(client, "/personas/calm")
        new_version(client, system_prompt="Calmer.")
        assert "version 1 (approved) is in use" in client.get("/personas").text
        assert "(calm, version 1)" in client.get("/new").text
        moved(client, "/personas/calm?version=1")
        assert "version 1 is retired, and no version is in use" in client.get("/personas").text


def test_only_members_that_differ_are_reported_those_of_objects_one_by_one() -> None:
    before = {"status": "draft", "traits": {"risk": "low", "age": 3}, "name": "Calm", "gone": [1]}
    after = {"status": "approved", "traits": {"risk": "high", "age": 3}, "name": "Calm", "new": True}
    assert list(changes(before, after)) == [
        ("status", "draft", "approved"),
        ("traits.risk", "low", "high"),
        ("gone", [1], None),
        ("new", None, True),
    ]
    assert list(changes({}, {})) == []


def test_an_approval_is_one_line(tmp_path: Path) -> None:
    with browsing(tmp_path, "admin") as client:
        client.post("/api/personas", json={**PERSONA, "system_prompt": "<b>Stay</b> calm."}, headers=OWN_ORIGIN)
        moved(client, "/personas/calm")
        markup = client.get("/actions").text
    approved, made, *_ = texts_of(markup, ".//tbody/tr")
    assert approved.endswith("status draft approved")
    assert "<b>Stay</b> calm." in made
    assert "<del><bdi>draft</bdi></del> <ins><bdi>approved</bdi></ins>" in markup
