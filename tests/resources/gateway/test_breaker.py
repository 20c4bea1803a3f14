"""The circuit breaker, which leaves a failing model alone; and the slots of a provider, which 429s halve and pause."""

from __future__ import annotations

import numpy as np
import pytest

from resources.gateway.breaker import Breaker, BreakerRules
from resources.gateway.retries import Backoff
from resources.gateway.slots import FIRST_LIMIT, ProviderSlots

RULES = BreakerRules(failures=3, cool_down=5.0, longest=12.0, probes=4)


def opened(now: float = 0.0) -> Breaker:
    breaker = Breaker(RULES)
    for _ in range(RULES.failures):
        breaker.failed(now, probe=breaker.start())
    return breaker


def test_it_opens_after_failures_in_a_row() -> None:
    breaker = Breaker(RULES)
    for _ in range(10):
        assert not breaker.failed(0.0, probe=False)
        assert not breaker.failed(0.0, probe=False)
        breaker.record_answer()
    assert [breaker.failed(0.0, probe=False) for _ in range(3)] == [False, False, True]
    assert not breaker.is_allowing(4.9)


def test_after_the_cool_down_one_probe_goes_through_and_closes_it_when_it_succeeds() -> None:
    breaker = opened()
    assert breaker.is_allowing(5.0)
    assert breaker.start()
    assert not breaker.is_allowing(5.0)
    breaker.record_abandoned(probe=True)
    assert breaker.is_allowing(5.0), "an abandoned probe makes room for another"
    assert breaker.start()
    breaker.record_answer()
    assert breaker.is_allowing(5.0)
    assert not breaker.start()


def test_each_failed_probe_doubles_the_wait_up_to_the_longest_and_so_many_exhaust_it() -> None:
    breaker, now, waits = opened(), 5.0, []
    for _ in range(RULES.probes):
        assert not breaker.exhausted
        breaker.failed(now, probe=breaker.start())
        assert breaker.open_until is not None
        waits.append(breaker.open_until - now)
        now = breaker.open_until
    assert waits == pytest.approx([10, 12, 12, 12])
    assert breaker.exhausted


def test_a_server_that_was_never_reached_is_given_up_sooner() -> None:
    rules = BreakerRules(failures=1, probes=4, first_probes=2)
    never, once = Breaker(rules), Breaker(rules)
    once.failed(0.0, probe=False)
    never.failed(0.0, probe=False, reached=False)
    for now in (100.0, 200.0):
        assert not never.exhausted
        for breaker in (never, once):
            breaker.failed(now, probe=breaker.start(), reached=False)
    assert (never.exhausted, once.exhausted) == (True, False)


def test_calls_from_before_it_opened_change_nothing_when_they_fail_and_close_it_when_answered() -> None:
    breaker = opened()
    assert not breaker.failed(1.0, probe=False)
    assert (breaker.open_until, breaker.failed_probes) == (pytest.approx(5), 0)
    breaker.record_answer()
    assert breaker.is_allowing(1.0)


def slots(cap: int = 64, **state: int) -> ProviderSlots:
    return ProviderSlots(cap, Backoff(first=1, longest=8, rng=np.random.default_rng(0)), **state)


def test_the_limit_starts_at_the_cap_or_below() -> None:
    assert (slots(8).limit, slots(1000).limit) == (8, FIRST_LIMIT)


def test_a_429_halves_what_was_in_use_once_a_round_trip() -> None:
    provider = slots(limit=60, in_flight=16)
    provider.rate_limited(began=0.0, now=1.0, retry_after=None)
    provider.rate_limited(began=0.5, now=1.1, retry_after=None)
    assert provider.limit == 8
    provider.rate_limited(began=1.2, now=2.0, retry_after=None)
    assert provider.limit == 4
    for now in range(3, 9):
        provider.rate_limited(began=now, now=now + 0.5, retry_after=None)
    assert provider.limit == 1


def test_retry_after_pauses_the_provider_and_the_longest_wait_counts() -> None:
    provider = slots(limit=4, in_flight=2)
    provider.rate_limited(began=0.0, now=10.0, retry_after=5.0)
    provider.rate_limited(began=0.0, now=11.0, retry_after=1.0)
    provider.in_flight = 0
    assert (provider.free(14.9), provider.free(15.0)) == (0, 1)


def test_without_retry_after_only_repeated_cuts_pause() -> None:
    provider = slots(limit=8, in_flight=8)
    provider.rate_limited(began=0.0, now=1.0, retry_after=None)
    provider.in_flight = 0
    assert provider.free(1.0) == 4
    provider.rate_limited(began=1.5, now=2.0, retry_after=None)
    assert 2.5 <= provider.paused_until <= 3.0
    provider.answered()
    provider.rate_limited(began=3.5, now=4.0, retry_after=None)
    assert provider.free(4.0) > 0
