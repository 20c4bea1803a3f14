"""Two runs over the same work at the same time: each answer is bought once, and both have all of them."""

from __future__ import annotations

from multiprocessing.connection import Connection

from resources.responses.claims import Claims
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM, Fault
from tests.made.responses import stored
from tests.resources import forked
from tests.resources.gateway.gateway_setup import await_answers, gateway, model, requests


def _run(location: str, base_url: str, counted: Connection) -> None:
    spec = model(None, api_base=base_url, max_concurrency=8)
    with ResponseStore(location) as store:
        answers = gateway(store).answer(requests(spec, 300))
    counted.send((len(answers.failures), answers.asked, answers.replayed))


class Run:
    """A run in a process of its own."""

    def __init__(self, location: str, server: FakeLLM) -> None:
        context = forked.context()
        self.counted, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_run, args=(location, server.base_url, theirs))
        self.process.start()
        theirs.close()

    def finish(self) -> tuple[int, int, int]:
        """(failed, asked, replayed) as the run counts them."""
        self.process.join(timeout=120)
        assert self.process.exitcode == 0
        failed, asked, replayed = self.counted.recv()
        self.close()
        return failed, asked, replayed

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.close()

    def close(self) -> None:
        self.counted.close()
        self.process.close()


class TestTwoProcesses:
    def test_they_split_the_work_and_both_have_all_of_it(self, location: str) -> None:
        with FakeLLM(latency=0.1) as server:
            runs = [Run(location, server) for _ in range(2)]
            counted = [run.finish() for run in runs]
            assert set(server.answers.values()) == {1}
            assert server.answered == 300
        assert [failed for failed, _, _ in counted] == [0, 0]
        assert sum(asked for _, asked, _ in counted) == 300
        assert [asked + replayed for _, asked, replayed in counted] == [300, 300]
        with ResponseStore(location) as store:
            assert stored(store) == 300

    def test_what_a_killed_run_had_claimed_is_taken_over(self, location: str) -> None:
        with FakeLLM(latency=0.1) as server:
            killed, other = Run(location, server), Run(location, server)
            await_answers(server, 60)
            killed.kill()
            failed, asked, replayed = other.finish()
            assert (failed, asked + replayed) == (0, 300)
            assert server.answered <= 300 + 8
        with ResponseStore(location) as store:
            assert stored(store) == 300


class TestOneProcess:
    """Another owner of claims, in the same process."""

    def test_what_another_run_holds_is_asked_once_it_lets_go(self, store: ResponseStore) -> None:
        with FakeLLM() as server, Claims(store) as other:
            wanted = requests(model(server, max_concurrency=2), 12)
            held = [request.key for request in wanted[:3]]
            assert other.claim(held).mine == set(held)

            def release_when_the_rest_is_done(_: object) -> None:
                if server.answered == 9:
                    Claims.release(other, held)

            answers = gateway(store).answer(wanted, on_progress=release_when_the_rest_is_done)
            users = [call.user for call in server.calls]
        assert (answers.asked, answers.replayed, answers.failures) == (12, 0, {})
        assert set(users[-3:]) == {"question 0", "question 1", "question 2"}
        store.close()

    def test_failed_requests_are_free_for_others(self, store: ResponseStore) -> None:
        def fault(call: object) -> Fault | None:
            return Fault("status", status=400)

        with FakeLLM(fault=fault) as server:
            wanted = requests(model(server), 3)
            assert len(gateway(store).answer(wanted).failures) == 3
        with Claims(store) as other:
            keys = {request.key for request in wanted}
            assert other.claim(sorted(keys)).mine == keys
        store.close()
