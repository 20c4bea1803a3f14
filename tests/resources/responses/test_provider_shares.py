"""The limit of a provider over all runs: it is divided by what they want, adapts as that of one run does, and is never exceeded."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from resources.responses import database as db
from resources.responses.claims import Claims
from resources.responses.provider_shares import ProviderShares, Report, Share, divide_calls
from resources.responses.store import ResponseStore

NAME = "openai"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResponseStore]:
    """SQLite: that PostgreSQL divides alike, `test_the_sum_never_exceeds_the_limit_whatever_runs_come_and_go` says."""
    with ResponseStore(tmp_path / "r.sqlite") as opened:
        yield opened


class Run:
    """A run that asks one provider: what it holds, and what is in flight."""

    def __init__(self, store: ResponseStore, *, first: int = 12, most: int | None = None) -> None:
        self.claims = Claims(store)
        self.shares = ProviderShares(store, self.claims, first=first, most={NAME: most} if most else {})
        self.calls = 0

    def take(self, wants: int, *, holds: int | None = None, in_flight: int = 0, **met: float) -> Share:
        holds = self.calls if holds is None else holds
        report = Report(wants, holds, in_flight, **met)  # type: ignore[arg-type]
        share = self.shares.take({NAME: report})[NAME]
        self.calls = share.calls
        return share

    def end(self) -> None:
        self.shares.close()
        self.claims.close()
        self.calls = 0


def limit(store: ResponseStore) -> int:
    return store.database.read(lambda connection: connection.execute(sa.select(db.provider_limits.c.calls)).scalar_one())


class TestDivided:
    def test_what_is_left_over_goes_to_the_last(self) -> None:
        assert divide_calls(8, {"c": 9, "a": 9, "b": 9}) == {"a": 2, "b": 3, "c": 3}
        assert divide_calls(1, {"b": 1, "a": 1}) == {"a": 0, "b": 1}

    def test_all_is_used_and_nobody_has_more_than_it_wants_or_less_than_another_who_is_hungry(self) -> None:
        chance = random.Random(4)
        for _ in range(300):
            wants = {str(owner): chance.randrange(30) for owner in range(chance.randrange(1, 7))}
            calls = chance.randrange(60)
            parts = divide_calls(calls, wants)
            assert sum(parts.values()) == min(calls, sum(wants.values()))
            assert all(parts[owner] <= wants[owner] for owner in wants)
            hungry = [parts[owner] for owner in wants if parts[owner] < wants[owner]]
            assert all(part <= min(hungry) + 1 for part in parts.values()) if hungry else True


class TestShares:
    def test_one_that_joins_has_what_the_other_lets_go(self, store: ResponseStore) -> None:
        one, other = Run(store), Run(store)
        one.take(100)
        assert other.take(100) == Share(0, 6, 0.0)
        assert one.take(100, in_flight=12) == Share(12, 6, 0.0)  # all of its calls are still in flight
        assert other.take(100).calls == 0
        assert one.take(100, holds=8, in_flight=8).calls == 8
        assert other.take(100).calls == 4
        assert one.take(100, holds=6, in_flight=6).calls == 6
        assert other.take(100).calls == 6

    def test_what_a_run_does_not_want_is_for_others(self, store: ResponseStore) -> None:
        one, other = Run(store), Run(store)
        assert one.take(2).calls == 2
        assert other.take(100).calls == 10

    def test_one_that_ends_leaves_all_to_the_others(self, store: ResponseStore) -> None:
        one, other = Run(store), Run(store)
        one.take(6)
        assert other.take(100).calls == 6
        one.end()
        assert other.take(100).calls == 12

    def test_one_that_is_gone_holds_nothing(self, store: ResponseStore) -> None:
        one, other = Run(store), Run(store)
        one.take(100)
        gone = {"machine": "another machine", "pid": 1, "started": None, "seen_at": 0}
        store.database.write(
            lambda connection: connection.execute(
                sa.update(db.claimants).where(db.claimants.c.owner == one.claims.owner).values(gone)
            )
        )
        assert other.take(100).calls == 12

    def test_a_limit_that_is_given_is_the_most(self, store: ResponseStore) -> None:
        run = Run(store, most=3)
        assert run.take(100).calls == 3
        assert run.take(100, in_flight=3, answered=50).calls == 3

    def test_providers_have_limits_of_their_own(self, store: ResponseStore) -> None:
        run = Run(store)
        taken = run.shares.take({"openai": Report(20, 0, 0), "anthropic": Report(5, 0, 0)})
        assert {name: share.calls for name, share in taken.items()} == {"openai": 12, "anthropic": 5}
        assert run.shares.take({}) == {}

    def test_the_sum_never_exceeds_the_limit_whatever_runs_come_and_go(self, location: str) -> None:
        store = ResponseStore(location)
        chance = random.Random(7)
        runs: list[Run] = []
        for _ in range(100):
            if len(runs) < 5 and chance.random() < 0.2:
                runs.append(Run(store, first=9, most=9))
            elif runs and chance.random() < 0.1:
                runs.pop(chance.randrange(len(runs))).end()
            elif runs:
                run = chance.choice(runs)
                in_flight = chance.randint(0, run.calls)
                run.take(chance.randrange(12), holds=chance.randint(in_flight, run.calls), in_flight=in_flight)
            assert sum(run.calls for run in runs) <= 9
        # On a slow machine whose turn it is changes in the middle of a round.
        for _ in range(50):
            for run in runs:
                share = run.take(20)
                run.take(20, holds=min(share.calls, share.fair))
            if sum(run.calls for run in runs) == 9:
                break
        assert sum(run.calls for run in runs) == (9 if runs else 0)
        store.close()

    def test_where_there_are_fewer_calls_than_runs_each_has_its_turn(self) -> None:
        turns = [divide_calls(1, {"a": 5, "b": 9, "c": 7}, turn=turn) for turn in range(3)]
        assert [sum(parts[owner] for parts in turns) for owner in "abc"] == [1, 1, 1]


class TestAdapting:
    def test_one_burst_of_429s_that_many_runs_meet_halves_it_once(self, store: ResponseStore) -> None:
        several = [Run(store, first=64) for _ in range(8)]
        for one in several:
            one.take(8)
        for one in several:
            one.take(8, in_flight=8)
        for one in several:
            one.take(8, holds=8, in_flight=8, limited_before_s=0.0)
        assert limit(store) == 32
        # All know of the cut now: what is refused from here on is refused at the new limit.
        several[0].take(8, holds=4, in_flight=4, limited_before_s=0.0)
        assert limit(store) < 32

    def test_times_in_the_future_are_those_of_a_clock_that_was_put_back(self, store: ResponseStore) -> None:
        one = Run(store)
        one.take(12)
        late = sa.update(db.provider_limits).values(cut_at=2**60, paused_until=2**60)
        store.database.write(lambda connection: connection.execute(late))
        assert one.take(12).pause_s <= 600

    def test_it_grows_with_each_answer_of_all_runs_until_the_first_429(self, store: ResponseStore) -> None:
        one, other = Run(store, first=4), Run(store, first=4)
        one.take(2, answered=2)
        assert limit(store) == 6
        other.take(2, answered=3)
        assert limit(store) == 9

    def test_then_it_grows_by_one_after_as_many_answers_of_all_runs_as_the_limit(self, store: ResponseStore) -> None:
        one, other = Run(store, first=8), Run(store, first=8)
        one.take(8)
        one.take(8, in_flight=8, limited_before_s=0.0)
        assert limit(store) == 4
        one.take(2, answered=2)
        other.take(2, answered=1)
        assert limit(store) == 4
        other.take(2, answered=1)
        assert limit(store) == 5

    def test_a_429_of_one_run_halves_it_for_all(self, store: ResponseStore) -> None:
        one, other = Run(store), Run(store)
        one.take(6)
        other.take(6)
        other.take(6, in_flight=6)
        one.take(6, holds=6, in_flight=6, limited_before_s=0.0)
        assert limit(store) == 6
        assert other.take(6, holds=3, in_flight=3).fair == 3

    def test_a_call_that_began_before_the_last_cut_does_not_cut_it_again(self, store: ResponseStore) -> None:
        one, other = Run(store), Run(store)
        one.take(6)
        other.take(6)
        one.take(6, in_flight=6, limited_before_s=0.0)
        before = limit(store)
        other.take(6, in_flight=6, limited_before_s=60.0)
        assert limit(store) == before

    def test_all_leave_the_provider_alone_as_long_as_one_was_refused(self, store: ResponseStore) -> None:
        one, other = Run(store), Run(store)
        one.take(6, pause_s=500.0)
        assert 400 < other.take(6).pause_s <= 500

    def test_what_was_found_out_is_kept_for_the_next_window_of_a_run_and_forgotten_later(self, store: ResponseStore) -> None:
        one = Run(store)
        one.take(12)
        one.take(12, in_flight=12, limited_before_s=0.0)
        assert limit(store) == 6
        one.end()
        other = Run(store)
        assert other.take(100).calls == 6
        other.end()
        long_ago = sa.update(db.provider_limits).values(asked_at=0)
        store.database.write(lambda connection: connection.execute(long_ago))
        assert Run(store).take(100).calls == 12


@pytest.mark.parametrize("wants", [0, 5])
def test_a_run_that_ended_is_forgotten(store: ResponseStore, wants: int) -> None:
    run = Run(store)
    run.take(wants)
    run.end()
    left = sa.select(sa.func.count()).select_from(db.provider_shares)
    assert store.database.read(lambda connection: connection.execute(left).scalar_one()) == 0
