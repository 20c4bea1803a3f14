"""The circuit breaker: opens after failures in a row, probes after a cool-down, and gives up in the end."""

from __future__ import annotations

import pytest

from resources.gateway.breaker import Breaker, BreakerRules

RULES = BreakerRules(failures=3, cool_down=5.0, longest=12.0, probes=4)


def opened(now: float = 0.0) -> Breaker:
    breaker = Breaker(RULES)
    for _ in range(RULES.failures):
        breaker.failed(now, probe=breaker.start())
    return breaker


class TestBreaker:
    def test_opens_after_failures_in_a_row(self) -> None:
        breaker = Breaker(RULES)
        assert not breaker.failed(0.0, probe=False)
        assert not breaker.failed(0.0, probe=False)
        assert breaker.lets_through(0.0)
        assert breaker.failed(0.0, probe=False)
        assert not breaker.lets_through(4.9)

    def test_an_answer_between_failures_starts_the_count_anew(self) -> None:
        breaker = Breaker(RULES)
        for _ in range(10):
            breaker.failed(0.0, probe=False)
            breaker.failed(0.0, probe=False)
            breaker.alive()
        assert breaker.lets_through(0.0)

    def test_after_the_cool_down_one_probe_goes_through(self) -> None:
        breaker = opened()
        assert breaker.lets_through(5.0)
        assert breaker.start()
        assert not breaker.lets_through(5.0)

    def test_a_probe_that_succeeds_closes_it(self) -> None:
        breaker = opened()
        breaker.start()
        breaker.alive()
        assert breaker.lets_through(5.0)
        assert not breaker.start()

    def test_each_failed_probe_doubles_the_wait_up_to_the_longest(self) -> None:
        breaker, now, waits = opened(), 5.0, []
        for _ in range(RULES.probes):
            breaker.failed(now, probe=breaker.start())
            assert breaker.open_until is not None
            waits.append(breaker.open_until - now)
            now = breaker.open_until
        assert waits == pytest.approx([10, 12, 12, 12])

    def test_is_exhausted_after_so_many_failed_probes(self) -> None:
        breaker = opened()
        seen = []
        for now in (5.0, 100.0, 200.0, 300.0):
            seen.append(breaker.exhausted)
            breaker.failed(now, probe=breaker.start())
        assert seen == [False] * 4
        assert breaker.exhausted

    def test_a_server_that_was_never_reached_is_given_up_sooner(self) -> None:
        rules = BreakerRules(failures=1, probes=4, first_probes=2)
        never, once = Breaker(rules), Breaker(rules)
        once.failed(0.0, probe=False)
        never.failed(0.0, probe=False, reached=False)
        for now in (100.0, 200.0):
            assert not never.exhausted
            for breaker in (never, once):
                breaker.failed(now, probe=breaker.start(), reached=False)
        assert never.exhausted
        assert not once.exhausted

    def test_calls_from_before_it_opened_change_nothing_when_they_fail_and_close_it_when_answered(self) -> None:
        breaker = opened()
        assert not breaker.failed(1.0, probe=False)
        assert breaker.open_until == pytest.approx(5)
        assert breaker.failed_probes == 0
        breaker.alive()
        assert breaker.lets_through(1.0)

    def test_an_abandoned_probe_makes_room_for_another(self) -> None:
        breaker = opened()
        breaker.abandoned(probe=breaker.start())
        assert breaker.lets_through(5.0)
