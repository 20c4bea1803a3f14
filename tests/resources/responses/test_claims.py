"""Claims: of two runs that want one answer, one asks and the other waits."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from multiprocessing.queues import Queue
from pathlib import Path

import pytest
import sqlalchemy as sa

from resources.responses import database as db
from resources.responses.claims import ClaimOutcome, Claims
from resources.responses.processes import Process
from resources.responses.store import ResponseStore
from tests.conftest import ROOT
from tests.made.responses import keys, response, stored
from tests.resources import forked

ELSEWHERE = {"machine": "another machine", "pid": 1, "started": None}


def of(*numbers: int) -> set[str]:
    return set(keys(*numbers))


def set_claimants(store: ResponseStore, **values: object) -> None:
    store.database.write(lambda connection: connection.execute(sa.update(db.claimants).values(values)))


def rows(store: ResponseStore, table: sa.Table) -> int:
    return store.database.read(
        lambda connection: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
    )


def test_of_two_runs_each_key_is_claimed_by_one(store: ResponseStore) -> None:
    with Claims(store) as one, Claims(store) as other:
        assert one.claim(keys(1, 2, 3)) == ClaimOutcome(of(1, 2, 3), set())
        assert other.claim(keys(4, 3, 2)) == ClaimOutcome(of(4), set())
        assert one.claim(keys(3, 4, 5)) == ClaimOutcome(of(3, 5), set())
        assert one.claim([]) == ClaimOutcome(set(), set())


def test_an_answer_ends_the_claim_and_the_others_are_reported(store: ResponseStore) -> None:
    with Claims(store) as one, Claims(store) as other:
        one.claim(keys(1, 2))
        store.add([response(1)])
        assert rows(store, db.claims) == 1
        assert other.claim(keys(1, 2)) == ClaimOutcome(set(), of(1))


def test_what_is_given_back_can_be_claimed_at_once(store: ResponseStore) -> None:
    with Claims(store) as one, Claims(store) as other:
        one.claim(keys(1, 2, 3))
        one.release(keys(2, 9))
        assert other.claim(keys(1, 2, 3)) == ClaimOutcome(of(2), set())
        one.release(keys(2))
        assert one.claim(keys(2)) == ClaimOutcome(set(), set())
        one.close()
        assert other.claim(keys(1, 2, 3)) == ClaimOutcome(of(1, 2, 3), set())


def test_an_owner_elsewhere_is_gone_when_it_is_silent_for_longer_than_the_ttl(store: ResponseStore) -> None:
    time_s = 1_000_000.0
    one, other = (Claims(store, ttl_s=60, now=lambda: time_s) for _ in range(2))
    one.claim(keys(1, 2))
    set_claimants(store, **ELSEWHERE)
    time_s += 59
    assert other.claim(keys(1)) == ClaimOutcome(set(), set())
    one.beat()
    time_s += 60
    other.beat()
    assert other.claim(keys(1)) == ClaimOutcome(set(), set())
    time_s += 1
    assert other.claim(keys(1)) == ClaimOutcome(of(1), set())
    assert rows(store, db.claimants) == rows(store, db.claims) == 1


def test_an_owner_that_was_taken_for_gone_keeps_nothing_and_can_claim_again(store: ResponseStore) -> None:
    time_s = 1_000_000.0
    one, other = (Claims(store, ttl_s=60, now=lambda: time_s) for _ in range(2))
    one.claim(keys(1, 2))
    time_s += 61
    assert other.claim(keys(1)) == ClaimOutcome(of(1), set())
    one.beat()
    one.release(keys(1))
    assert other.claim(keys(1, 2)) == ClaimOutcome(of(1, 2), set())
    assert one.claim(keys(1, 2, 3)) == ClaimOutcome(of(3), set())


def test_a_clock_put_back_does_not_keep_the_claims_of_the_gone_for_ever(store: ResponseStore) -> None:
    Claims(store, now=lambda: 1_000_000.0).claim(keys(1))
    set_claimants(store, **ELSEWHERE)
    assert Claims(store, now=lambda: 900_000.0).claim(keys(1)) == ClaimOutcome(of(1), set())


def test_claims_without_an_owner_are_free(store: ResponseStore) -> None:
    Claims(store).claim(keys(1))
    store.database.write(lambda connection: connection.execute(sa.delete(db.claimants)))
    assert Claims(store).claim(keys(1)) == ClaimOutcome(of(1), set())


def test_on_postgresql_the_clocks_of_the_machines_do_not_matter(
    location: str, store: ResponseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    if location.startswith("sqlite"):
        pytest.skip("SQLite has no clock but the machine's")
    one, other = Claims(store), Claims(store)
    one.claim(keys(1))
    monkeypatch.setattr(time, "time_ns", lambda: 10**18)
    monkeypatch.setattr(time, "time", lambda: 10.0**9)
    assert other.claim(keys(1, 2)) == ClaimOutcome(of(2), set())


def _claim_and_hang(location: str, claimed: Queue[int]) -> None:
    claimed.put(len(Claims(ResponseStore(location)).claim(keys(1, 2)).mine))
    time.sleep(600)


def test_after_kill_9_the_claims_are_free_at_once(location: str, store: ResponseStore) -> None:
    context = forked.context()
    claimed: Queue[int] = context.Queue()
    run = context.Process(target=_claim_and_hang, args=(location, claimed))
    run.start()
    assert claimed.get(timeout=120) == 2
    claims = Claims(store, ttl_s=100_000)
    assert claims.claim(keys(1, 2, 3)) == ClaimOutcome(of(3), set())
    run.kill()
    run.join()
    assert claims.claim(keys(1, 2, 3)) == ClaimOutcome(of(1, 2, 3), set())


def test_a_killed_process_is_dead_before_its_parent_has_collected_it() -> None:
    with subprocess.Popen(["sleep", "600"]) as run:
        process = Process.current()._replace(pid=run.pid, started=None)
        assert not process.is_dead()
        run.kill()
        os.waitid(os.P_PID, run.pid, os.WEXITED | os.WNOWAIT)
        assert process.is_dead()


def test_a_process_number_that_was_given_again_is_not_the_owner(store: ResponseStore) -> None:
    if Process.current().started is None:
        pytest.skip("this machine does not say when a process was started")
    one, other = Claims(store), Claims(store)
    one.claim(keys(1))
    set_claimants(store, started="12")
    assert other.claim(keys(1)) == ClaimOutcome(of(1), set())


def test_a_process_of_another_container_with_the_same_number_is_not_taken_for_dead(store: ResponseStore) -> None:
    one, other = Claims(store), Claims(store)
    one.claim(keys(1))
    set_claimants(store, **{**ELSEWHERE, "pid": 2**22 + 1})
    assert other.claim(keys(1)) == ClaimOutcome(set(), set())


def _buy_all(location: str, seed: int, bought: Queue[list[int]]) -> None:
    """A run as the gateway makes it: claim, answer, give back what failed, come back for what others hold."""
    number_of = {key: number for number, key in enumerate(keys(*range(300)))}
    waiting, purchases, chance = list(number_of), [], random.Random(seed)
    with ResponseStore(location) as store, Claims(store) as claims:
        while waiting:
            claimed = claims.claim(chance.sample(waiting, min(16, len(waiting))))
            good = [number_of[key] for key in sorted(claimed.mine) if chance.random() < 0.8]
            store.add([response(number) for number in good])
            claims.release(claimed.mine - of(*good))
            purchases += good
            known = store.find_known_keys(waiting)
            waiting = [key for key in waiting if key not in known]
    bought.put(purchases)


def test_processes_that_claim_answer_and_give_back_buy_each_answer_once(location: str) -> None:
    context = forked.context()
    bought: Queue[list[int]] = context.Queue()
    processes = [context.Process(target=_buy_all, args=(location, seed, bought)) for seed in (1, 2, 3)]
    for process in processes:
        process.start()
    purchases = [number for _ in processes for number in bought.get(timeout=120)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert sorted(purchases) == list(range(300))
    with ResponseStore(location) as store:
        assert stored(store) == 300
        assert rows(store, db.claims) == rows(store, db.claimants) == 0


def test_machines_without_proc_still_see_that_a_process_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.responses.processes._PROC", tmp_path)
    run = subprocess.Popen(["sleep", "600"])
    other = Process.current()._replace(pid=run.pid)
    assert other.started is None
    assert not other.is_dead()
    run.kill()
    run.wait()
    assert other.is_dead()


def test_what_is_held_alone_is_held_by_one_at_a_time_even_where_the_parts_overlap(store: ResponseStore) -> None:
    inside, at_once = 0, []

    def work(wanted: set[str]) -> None:
        nonlocal inside
        with Claims(store) as claims:
            for _ in range(5):
                with claims.hold_all(sorted(wanted)):
                    inside += 1
                    at_once.append(inside)
                    time.sleep(0.002)
                    inside -= 1

    threads = [threading.Thread(target=work, args=[of(*numbers)]) for numbers in ((1, 2), (2, 3), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert at_once == [1] * 15
    assert rows(store, db.claims) == 0


IN_A_CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""Process numbers of its own, under the same name."""
TELL = """
import json, sys
from resources.responses.processes import Process
print(json.dumps([Process.current(), Process(*json.loads(sys.argv[1])).is_dead()]), flush=True)
sys.stdin.read()
"""


def test_a_process_in_a_container_of_the_same_name_is_not_taken_for_dead() -> None:
    """Number 1 of a container is another process here, and the numbers of processes here are not there."""
    if (
        shutil.which("unshare") is None
        or subprocess.run([*IN_A_CONTAINER, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no process namespace may be made here")
    command = [*IN_A_CONTAINER, sys.executable, "-c", TELL, json.dumps(Process.current())]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        there, takes_this_for_dead = json.loads(run.stdout.readline())
        process = Process(*there)
        assert (process.pid, process.machine.split()[0]) == (1, Process.current().machine.split()[0])
        assert not process.is_dead()
        assert not takes_this_for_dead
