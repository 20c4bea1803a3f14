"""Pages for those who watch the service: votes, the preference board, the log of actions, and health."""

from __future__ import annotations

import html
import json
import re
import shutil
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import Element

import pytest
from fastapi.testclient import TestClient

from assets.daemon_state import DaemonState, SensorTicks, daemon_state
from dtef_pipeline.api import service_health
from dtef_pipeline.api.pages.page_routes import render
from dtef_pipeline.api.pages.queue_pages import lay_out_episode
from dtef_pipeline.api.service_health import DAMAGED_STORE, NO_DAEMON, NO_SENSOR, HealthMonitor
from dtef_pipeline.api.services import Services
from dtef_pipeline.errors import StoreError
from dtef_pipeline.preference.score_publishing import preference_scores
from resources.evaluations.evaluation_store import QUEUE_SENSOR, EvaluationStore, RunSpec
from resources.votes.vote_queries import vote_counts
from resources.votes.vote_store import read_player_votes
from resources.warehouse import Warehouse
from tests.dtef_pipeline.api.asked_runs import ANSWER_AND_BATTERY_COLUMNS, with_board, with_votes, with_votes_of_another_tool
from tests.dtef_pipeline.api.browsed import assert_inert, browsing, text_of, texts_of, tree_of
from tests.dtef_pipeline.api.conftest import AnsweredRun
from tests.dtef_pipeline.api.made import ROLE_TOKENS, client_in, services_in, settings_in
from tests.dtef_pipeline.api.pages.test_operator_pages import PLANNED, submitted
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


PLAN = {"keys": ["S1/a", "S1/b"], "config": {"blueprints": {}, "predictions": {}}, "snapshot": "base"}


def told(folder: Path, *events: tuple[str, Mapping[str, Any]]) -> list[Element]:
    """The entries of the list of events on the page of an evaluation after these events."""
    with EvaluationStore(settings_in(folder).responses_url, RUN_LOG) as store:
        asked = [RunSpec(key, {"partition": key}) for key in ("S1/a", "S1/b")]
        queue_id = store.submit("survey", {}, PLAN, asked, "operator")[0].queue_id
        for kind, data in events:
            tell(store, queue_id, kind, data)  # type: ignore[arg-type]
    with browsing(folder) as client:
        return tree_of(client.get(f"/queue/{queue_id}").text).findall(".//ol[@class='story']/li")


def words_of(entry: Element | None) -> str:
    """What an entry says without its times."""
    return " ".join(re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( to )?", "", text_of(entry)).split()).replace(" ;", ";")


def part_done(stage: str, key: str) -> tuple[str, dict[str, str]]:
    return "item", {"stage": stage, "key": key, "status": "done"}


def test_events_are_reported_in_words_and_each_stage_once(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        ("started", {}),
        part_done("blueprints", "S1/a"),
        part_done("blueprints", "S1/b"),
        ("item", {"restarted": 1, "reason": "the worker is gone"}),
        ("item", {"stage": "predictions", "answered": 30, "n_planned": 40}),
        part_done("predictions", "S1/a"),
    )
    assert [words_of(one.find("details/summary") if one.find("details") is not None else one) for one in found] == [
        "predictions 1 of 2 partitions done; 30 of 40 calls answered",
        "Dagster started the run again: the worker is gone",
        "blueprints 2 of 2 partitions done",
        "started Dagster's run has started",
        "queued Stored with 2 runs",
    ]
    assert [words_of(one) for one in found[0].findall("details/ol/li")] == ["done S1/a", "30 of 40 calls answered"]
    assert [one.find("details").get("open") for one in (found[0], found[2])] == ["", None]  # type: ignore[union-attr]


def test_the_end_says_what_became_of_all_calls_and_what_they_cost(tmp_path: Path) -> None:
    calls = {"n_requests": 24, "answered": 21, "failed": 2, "skipped": 1}
    end, *_ = told(
        tmp_path, ("completed", {"calls": calls, "warning": "2 failed", "call_costs": {"usd": 0.5, "calls": 3, "unpriced": 0}})
    )
    words = "completed 21 of 24 calls answered, 2 failed, 1 left out; 2 failed; cost: 0.5000 US dollars, 3 calls"
    assert words_of(end) == words


def test_of_many_events_of_a_stage_the_last_are_shown(tmp_path: Path) -> None:
    found = told(tmp_path, *(("item", {"stage": "predictions", "answered": n, "n_planned": 300}) for n in range(250)))
    lines = found[0].findall("details/ol/li")
    assert (len(lines), words_of(lines[0]), words_of(lines[-1])) == (201, "249 of 300 calls answered", "50 earlier events")


BEARER_OF_OPERATOR = {"Authorization": f"Bearer {ROLE_TOKENS['operator']}"}


def test_votes_are_counted_by_choice_side_and_reviewer(tmp_path: Path) -> None:
    services = services_in(tmp_path)
    n_votes = with_votes(services)
    found = vote_counts(services.votes.database)
    kept = [vote for _, vote, _ in services.votes.votes()]
    assert (found.n_votes, found.n_voided, found.n_pairs) == (n_votes, 0, 36)
    assert found.by_choice == {choice: sum(one.choice == choice for one in kept) for choice in ("A", "B", "tie")}
    left = sum(one.choice != "tie" and (one.choice == "A") == (one.shown_as_a == "left") for one in kept)
    assert found.by_side == {"left": left, "right": n_votes - found.by_choice["tie"] - left}
    assert {one.reviewer_id: one.n_votes for one in found.reviewers} == {"anna": 36, "<b>ben</b>": 24, "cleo": 12}
    services.close()


def test_reviewers_are_opaque_unless_they_agreed(tmp_path: Path) -> None:
    services = services_in(tmp_path)
    with_votes(services, last=datetime.now(UTC))
    services.votes.record_consent("cleo", consent=True, user="cleo")
    services.close()
    with browsing(tmp_path) as client:
        shown = client.get("/votes").text
    assert "cleo" in shown
    assert "anna" not in shown
    assert "ben" not in shown
    assert "Votes 72 Pairs 36" in texts_of(shown)[0]
    assert_inert(shown)
    with browsing(tmp_path, "admin") as client:
        log = client.get("/actions").text
    assert "reviewer" in log
    assert "pairs" in log
    assert_inert(log)


def test_the_board_has_the_columns_and_words_of_reports(tmp_path: Path) -> None:
    services = services_in(tmp_path)
    with browsing(tmp_path) as client:
        assert "scores_after_votes" in client.get("/board").text
    with_board(services)
    services.close()
    with browsing(tmp_path) as client:
        shown = client.get("/board").text
        assert client.get("/board?family=<script>").status_code == 200
    for words in ("Strength", "Reviewers", "People prefer", "fox", "hen & <i>co</i>"):
        assert words in texts_of(shown)[0]
    assert_inert(shown)


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> list[DaemonState]:
    """What is told of the daemon: the last of the list."""
    told = [DaemonState(datetime.now(UTC), True)]
    monkeypatch.setattr(HealthMonitor, "_read_daemon", lambda *_: told[-1])
    return told


def health_told(client: TestClient) -> list[str]:
    problems: list[str] = client.get("/api/health", headers=BEARER_OF_OPERATOR).json()["problems"]
    return problems


def test_health_says_whether_evaluations_wait(daemon: list[DaemonState], tmp_path: Path) -> None:
    submitted(tmp_path)
    with client_in(tmp_path, None) as client:
        assert health_told(client) == []
        daemon.append(DaemonState(datetime.now(UTC) - timedelta(hours=3), True))
        assert health_told(client) == [f"{NO_DAEMON} (1 evaluation open)"]
        shown = client.get("/health", headers=BEARER_OF_OPERATOR).text
        assert "3 hours ago" in shown
        assert "start <code>dtef ui</code>" in shown
        daemon.append(DaemonState(datetime.now(UTC), False))
        assert health_told(client) == [f"{NO_SENSOR} (1 evaluation open)"]
        daemon.append(DaemonState(None, True, "<b>broken</b>"))
        assert "&lt;b&gt;broken" in client.get("/health", headers=BEARER_OF_OPERATOR).text


def test_health_and_the_queue_say_that_ticks_fail_or_do_not_come(daemon: list[DaemonState], tmp_path: Path) -> None:
    """With a code server that hangs or does not load nothing started, and health was ok: the daemon lives, and the sensor is on."""
    now = datetime.now(UTC)
    services_in(tmp_path).evaluations.submit("qa", {}, PLANNED, [], "operator")
    with browsing(tmp_path) as client:
        for ticks, said in (
            (SensorTicks(now), None),
            (SensorTicks(now - timedelta(hours=2)), f"the sensor {QUEUE_SENSOR} had no tick for 2 hours, though"),
            (SensorTicks(None), f"the sensor {QUEUE_SENSOR} had no tick in this home yet, though"),
            (SensorTicks(now, "<b>no</b> server"), f"the last tick of the sensor {QUEUE_SENSOR} failed (<b>no</b> server)"),
        ):
            daemon.append(DaemonState(now, True, ticks=ticks, daemon_id="a"))
            client.app.state.health._seen = datetime.now(UTC), daemon[-1]  # type: ignore[attr-defined]
            told = client.get("/api/health", headers=BEARER_OF_OPERATOR).json()
            shown = [client.get(path).text for path in ("/health", "/queue")]
            if said is None:
                assert (told["status"], told["problems"]) == ("ok", [])
                assert told["daemon"]["last_tick_at"] == now.isoformat()
            else:
                assert (told["status"], told["problems"][0][: len(said)]) == ("degraded", said)
                assert "`dtef doctor` (1 evaluation open)" in told["problems"][0]
                assert all(html.escape(said) in one for one in shown)


def test_a_daemon_that_was_just_started_is_given_time_for_its_first_tick(daemon: list[DaemonState]) -> None:
    now = datetime.now(UTC)
    stale = DaemonState(now, True, ticks=SensorTicks(now - timedelta(hours=2)), daemon_id="new")
    assert stale.find_sensor_fault(now, QUEUE_SENSOR)
    for before in (DaemonState(now - timedelta(hours=2), True, daemon_id="new"), DaemonState(now, True, daemon_id="old")):
        began = now - timedelta(seconds=30)
        young = stale.merge_earlier(before, began)
        assert young.find_sensor_fault(now, QUEUE_SENSOR) is None
        assert stale.merge_earlier(young, now).began_after == began
        assert young._replace(last_heartbeat_at=now + timedelta(minutes=3)).find_sensor_fault(
            now + timedelta(minutes=3), QUEUE_SENSOR
        )
    assert stale._replace(is_sensor_on=False).find_sensor_fault(now, QUEUE_SENSOR) is None


def test_pages_of_the_queue_say_that_no_daemon_runs(tmp_path: Path) -> None:
    """They said that the evaluation starts within half a minute."""
    queue_id = services_in(tmp_path).evaluations.submit("qa", {}, PLANNED, [], "operator")[0].queue_id
    told_of_no_daemon = NO_DAEMON.replace("`", "")
    with browsing(tmp_path) as client:
        look: HealthMonitor = client.app.state.health  # type: ignore[attr-defined]
        assert look.find_start_problem() is None
        assert look._glance is not None
        look._glance.result()
        for path in ("/queue", "/queue/now", f"/queue/{queue_id}", f"/queue/{queue_id}/now"):
            shown = client.get(path).text
            assert told_of_no_daemon in texts_of(shown)[0]
            assert 'See <a href="/health">Health</a>.' in shown
            assert "usually within half a minute" not in shown
        tell(client.app.state.services.evaluations, queue_id, "started", {})  # type: ignore[attr-defined]
        for path in ("/queue/now", f"/queue/{queue_id}/now"):
            assert told_of_no_daemon not in texts_of(client.get(path).text)[0]


def test_what_was_known_of_the_daemon_long_ago_is_not_reported(daemon: list[DaemonState], tmp_path: Path) -> None:
    services, now = services_in(tmp_path), datetime.now(UTC)
    look = HealthMonitor(services)
    for ago, said in ((timedelta(seconds=20), NO_DAEMON), (timedelta(hours=1), None)):
        look._seen = now - ago, DaemonState(None, True)
        assert look.find_start_problem() == said
    services.close()


def test_the_first_look_waits_until_dagster_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that the home cannot be read, though all was well."""
    monkeypatch.setattr(service_health, "_DAEMON_WITHIN_S", 0)

    def slow(*_: object) -> DaemonState:
        time.sleep(0.3)
        return DaemonState(datetime.now(UTC), True)

    monkeypatch.setattr(HealthMonitor, "_read_daemon", slow)
    with client_in(tmp_path, None) as client:
        assert health_told(client) == []
        assert "cannot be read" in health_told(client)[0]


def test_health_names_a_disk_that_is_almost_full(
    daemon: list[DaemonState], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client_in(tmp_path) as client:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 2**20))
        assert health_told(client) == ["the disk of the response store is almost full: 5 MiB are left"]


def test_health_names_a_damaged_store_and_no_request_to_it_is_told_to_try_again(
    daemon: list[DaemonState], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Health said ok, and requests were told to try again, for ever."""

    def malformed(*_: object, **__: object) -> None:
        raise StoreError("cannot read the response store /secret: database disk image is malformed")

    with client_in(tmp_path) as client:
        monkeypatch.setattr("dtef_pipeline.api.service_health.count_unended", malformed)
        assert DAMAGED_STORE in health_told(client)
        monkeypatch.setattr(EvaluationStore, "latest", malformed)
        answer = client.get("/api/evaluations/queue", headers=BEARER_OF_OPERATOR)
    assert (answer.status_code, "retry-after" in answer.headers) == (503, False)
    assert "damaged" in answer.json()["detail"]
    assert "/secret" not in answer.text


def test_health_lists_failures_and_a_database_that_is_away(
    daemon: list[DaemonState], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue_id = submitted(tmp_path)
    services = services_in(tmp_path)
    tell(services.evaluations, queue_id, "failed", {"reason": "no <b>key</b>"})
    services.close()
    with client_in(tmp_path, None) as client:
        told = client.get("/api/health", headers=BEARER_OF_OPERATOR).json()
        assert told["evaluations"]["failures"][0]["reason"] == "no <b>key</b>"
        assert (told["evaluations"]["open"], told["status"]) == (0, "ok")
        shown = client.get("/health", headers=BEARER_OF_OPERATOR).text
        assert "no &lt;b&gt;key" in shown
        assert "Games: <bdi>Kuhn (poker)</bdi>" in shown

        def away(*_: object) -> None:
            raise StoreError("me@secret.example does not answer")

        monkeypatch.setattr("dtef_pipeline.api.service_health.count_unended", away)
        told = client.get("/api/health", headers=BEARER_OF_OPERATOR).json()
        assert (told["database"]["answers"], told["status"]) == (False, "degraded")
        page = client.get("/health", headers=BEARER_OF_OPERATOR)
        assert (page.status_code, "the database does not answer; see the log" in page.text) == (200, True)
        assert "secret.example" not in page.text + str(told)
        assert "secret.example" in caplog.text
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/api/health").status_code == 401


def test_a_home_of_dagster_is_read_or_its_fault_is_reported(tmp_path: Path) -> None:
    assert daemon_state(tmp_path, QUEUE_SENSOR) == DaemonState(None, True)
    (tmp_path / "dagster.yaml").write_text("{}\n", encoding="utf-8")
    assert daemon_state(tmp_path, QUEUE_SENSOR) == DaemonState(None, True)
    (tmp_path / "dagster.yaml").write_text("storage: [odd", encoding="utf-8")
    found = daemon_state(tmp_path, QUEUE_SENSOR)
    assert found.problem
    assert not found.is_running(datetime.now(UTC))


OF_ANOTHER_TOOL = [f"fox,owl,{'B' if at % 3 else 'A'},r{at}" for at in range(9)]


def counted_votes_of(services: Services) -> None:
    """Write the table that the board is made of, as the roll-up does."""
    votes = read_player_votes(services.votes)
    Warehouse(services.settings.warehouse).write("preference_scores", preference_scores(votes))


def test_the_board_shows_votes_of_other_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that no votes were counted yet: only the families of this software were looked at."""
    with_votes_of_another_tool(tmp_path, monkeypatch, OF_ANOTHER_TOOL)
    services = services_in(tmp_path)
    counted_votes_of(services)
    with browsing(tmp_path) as client:
        for path in ("/board", "/board?family=elsewhere"):
            shown = client.get(path).text
            assert "No votes were counted yet" not in shown
            assert all(player in shown for player in ("fox", "owl"))
        assert_inert(shown)
        with_votes(services, 3)
        counted_votes_of(services)
        tabs = client.get("/board").text
        assert '<a href="/board?family=qa" aria-current="page">Questions</a>' in tabs
        assert '<a href="/board?family=elsewhere">Elsewhere</a>' in tabs
        assert "fox" not in tabs
        assert "fox" in client.get("/board?family=elsewhere").text
    services.close()
