"""The API killed as operators kill things: the process, its connections, the whole database. Nothing is lost or doubled, and it goes on."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import dagster as dg
import httpx2
import sqlalchemy as sa

from assets.evaluations.run_log import DagsterRunLog
from dtef_pipeline.api.services import Services
from dtef_pipeline.api.tokens import Tokens
from dtef_pipeline.errors import StoreError
from dtef_pipeline.preference.pairing import make_new_pairs
from resources.evaluations.evaluation_store import EvaluationStore, RunSpec
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.api.made import settings_in
from tests.dtef_pipeline.api.served import AS_ADMIN, StartedApi, Subscriber, served, started, until
from tests.made.run_events import begin_run, made_home, tell_in
from tests.made.stored_votes import written
from tests.postgres import Postgres

ITEMS = 25


def queued(store: EvaluationStore) -> str:
    evaluation, _ = store.submit("games", {"seeds": [1]}, {"snapshot": "base"}, [RunSpec("poker/kuhn", {})], "operator")
    return evaluation.queue_id


def opened(url: str, folder: Path) -> tuple[EvaluationStore, dg.DagsterInstance]:
    """The evaluations, and the home of Dagster that the servers of the folder read."""
    instance = made_home(folder / "dagster")
    return EvaluationStore(url, DagsterRunLog(instance)), instance


def write_events(store: EvaluationStore, instance: dg.DagsterInstance, queue_id: str) -> None:
    """A run that is killed in the middle, and is started again."""
    first = begin_run(instance, queue_id)
    for number in range(ITEMS):
        tell_in(instance, first, {"done": number})
    instance.report_run_failed(first, "The worker is gone.")
    again = begin_run(instance, queue_id, first.run_id)
    tell_in(instance, first, {"done": "by a worker that had been given up"})
    for number in range(ITEMS):
        tell_in(instance, again, {"done": number})
    until(lambda: has_ended(store, queue_id), "the end")


def has_ended(store: EvaluationStore, queue_id: str) -> bool:
    """One try to store the end, as a tick of the sensor makes it."""
    try:
        return store.end(queue_id, "completed", {}) or not store.open_evaluations()
    except StoreError:
        return False


EXPECTED = [*enumerate(["queued", "started", *["item"] * (2 * ITEMS + 1), "completed"], 1)]


def test_a_stream_continues_after_a_kill_with_each_event_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/responses.sqlite"
    store, instance = opened(url, tmp_path)
    with store, instance:
        queue_id = queued(store)
        writer = threading.Thread(target=write_events, args=(store, instance, queue_id))
        with started(tmp_path, url) as api:
            subscriber = Subscriber(api.address, queue_id)
            until(lambda: len(subscriber.seen) > 0, "events")
            writer.start()
            until(lambda: len(subscriber.seen) > 5, "events")
            assert api.end(signal.SIGKILL) == -signal.SIGKILL
        with started(tmp_path, url, api.port) as again:
            until(subscriber.ended.is_set, "the end of the stream")
            writer.join()
            assert subscriber.seen == EXPECTED
            assert subscriber.breaks > 0
            # A stream that is open holds no one up who stops the server.
            waiting = Subscriber(again.address, queued(store))
            until(lambda: len(waiting.seen) > 0, "events")
            waiting.left = True
            assert again.end(signal.SIGTERM, within=15) in (0, -signal.SIGTERM)
    assert "Traceback" not in (tmp_path / "api.log").read_text(encoding="utf-8")


def vote_on_all(address: str, pair_ids: list[str], reviewer: str, statuses: dict[tuple[str, str], list[int]]) -> None:
    """A vote on each pair, sent again until the server says that it has it."""
    with httpx2.Client(headers=AS_ADMIN, timeout=60) as client:
        for pair_id in pair_ids:
            vote = {"pair_id": pair_id, "reviewer_id": reviewer, "choice": "A", "confidence": 3}
            answers = statuses[pair_id, reviewer] = []
            while not {201, 409} & {*answers}:
                answers.append(client.post(f"{address}/api/feedback/votes", json=vote).status_code)


class TestPostgreSQL:
    def test_connections_that_break_and_a_server_that_is_away_lose_and_double_nothing(
        self, server: Postgres, tmp_path: Path
    ) -> None:
        url = server.new_database()
        # Two servers: a process, and a thread of this one. Both find an empty database, and one makes the tables while the other does.
        process = StartedApi(tmp_path, url)
        settings = settings_in(tmp_path, DTEF_RESPONSES=url)
        try:
            services = Services.open_services(settings, Tokens(tmp_path / "tokens.yaml"))
            store, instance = opened(url, tmp_path)
            with served(services) as thread, VoteStore(url) as votes, store, instance:
                addresses = [process.await_address(), thread.address]
                responses = written(items=8)
                votes.add_pairs(responses, make_new_pairs(responses), user="test")
                pair_ids = [pair.pair_id for pair in votes.pairs()]
                statuses = self._while_it_is_hurt(server, url, addresses, pair_ids, (store, instance))
                stored = [(vote.pair_id, vote.reviewer_id) for _, vote, _ in votes.votes()]
                assert sorted(stored) == sorted(statuses)
                assert {status for told in statuses.values() for status in told} <= {201, 409, 503}
        finally:
            code = process.end(signal.SIGTERM)
        assert code in (0, -signal.SIGTERM)
        assert "Traceback" not in (tmp_path / "api.log").read_text(encoding="utf-8")

    def _while_it_is_hurt(
        self,
        server: Postgres,
        url: str,
        addresses: list[str],
        pair_ids: list[str],
        places: tuple[EvaluationStore, dg.DagsterInstance],
    ) -> dict[tuple[str, str], list[int]]:
        """The answers to each vote."""
        queue_id, statuses = queued(places[0]), dict[tuple[str, str], list[int]]()
        subscriber = Subscriber(addresses[0], queue_id)
        threads = [threading.Thread(target=write_events, args=(*places, queue_id))]
        threads += [
            threading.Thread(target=vote_on_all, args=(address, pair_ids, f"r{number}", statuses))
            for number, address in enumerate(addresses * 2)
        ]
        until(lambda: len(subscriber.seen) > 0, "events")
        for thread in threads:
            thread.start()
        for _ in range(3):
            self._break_connections(server, url)
        server.stop()
        threading.Event().wait(1.0)
        server.start()
        for thread in threads:
            thread.join()
        until(subscriber.ended.is_set, "the end of the stream")
        assert subscriber.seen == EXPECTED
        return statuses

    def _break_connections(self, server: Postgres, url: str) -> None:
        name = sa.make_url(url).database
        engine = sa.create_engine(server.url("postgres"))
        statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %(name)s"
        with engine.connect() as connection:
            connection.exec_driver_sql(statement, {"name": name})
        engine.dispose()
        threading.Event().wait(0.1)
