"""Two runs over the same work at the same time: each answer is bought once, and both have all of them."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

from resources.responses.claims import Claims
from resources.responses.store import ResponseStore
from tests.conftest import ROOT
from tests.fake_llm_server import FakeLLM, Fault
from tests.made.responses import stored
from tests.resources.gateway.gateway_setup import await_answers, gateway, model, requests

RUN = """
    import sys
    from resources.responses.store import ResponseStore
    from tests.resources.gateway.gateway_setup import gateway, model, requests
    spec = model(None, api_base=sys.argv[2], max_concurrency=8)
    with ResponseStore(sys.argv[1]) as store:
        answers = gateway(store).answer(requests(spec, 300))
    print(len(answers.failures), answers.asked, answers.replayed)
"""


def start(store: str, server: FakeLLM) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(RUN), store, server.base_url]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(run: subprocess.Popen[str]) -> tuple[int, int, int]:
    """(failed, asked, replayed) as the run counts them."""
    output, errors = run.communicate(timeout=120)
    assert run.returncode == 0, errors
    failed, asked, replayed = (int(word) for word in output.split())
    return failed, asked, replayed


class TestTwoProcesses:
    def test_they_split_the_work_and_both_have_all_of_it(self, location: str) -> None:
        with FakeLLM(latency=0.1) as server:
            runs = [start(location, server) for _ in range(2)]
            counted = [finish(run) for run in runs]
            assert set(server.answers.values()) == {1}
            assert server.answered == 300
        assert [failed for failed, _, _ in counted] == [0, 0]
        assert sum(asked for _, asked, _ in counted) == 300
        assert [asked + replayed for _, asked, replayed in counted] == [300, 300]
        with ResponseStore(location) as store:
            assert stored(store) == 300

    def test_what_a_killed_run_had_claimed_is_taken_over(self, location: str) -> None:
        with FakeLLM(latency=0.1) as server:
            killed, other = start(location, server), start(location, server)
            await_answers(server, 60)
            killed.send_signal(signal.SIGKILL)
            killed.communicate()
            failed, asked, replayed = finish(other)
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
