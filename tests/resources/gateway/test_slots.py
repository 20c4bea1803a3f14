"""Slots: one limit per provider, halved at a 429, raised by answers, never above the cap."""

from __future__ import annotations

import numpy as np
import pytest

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.retries import Backoff
from resources.gateway.slots import FIRST_LIMIT, ProviderSlots, provider_of


def slots(cap: int = 64, **state: int) -> ProviderSlots:
    return ProviderSlots(cap, Backoff(first=1, longest=8, rng=np.random.default_rng(0)), **state)


def answered(provider: ProviderSlots, times: int) -> None:
    for _ in range(times):
        provider.answered()


class TestLimit:
    def test_starts_at_the_cap_or_below(self) -> None:
        assert slots(8).limit == 8
        assert slots(1000).limit == FIRST_LIMIT

    def test_grows_by_one_after_as_many_answers_as_the_limit(self) -> None:
        provider = slots(limit=3)
        answered(provider, 2)
        assert provider.limit == 3
        answered(provider, 1)
        assert provider.limit == 4
        answered(provider, 4)
        assert provider.limit == 5

    def test_never_grows_beyond_the_cap(self) -> None:
        provider = slots(4, limit=4)
        answered(provider, 100)
        assert provider.limit == 4

    def test_a_429_halves_it_once_a_round_trip(self) -> None:
        provider = slots(limit=16, in_flight=16)
        provider.rate_limited(began=0.0, now=1.0, retry_after=None)
        provider.rate_limited(began=0.5, now=1.1, retry_after=None)
        assert provider.limit == 8
        provider.rate_limited(began=1.2, now=2.0, retry_after=None)
        assert provider.limit == 4

    def test_a_cut_starts_from_what_was_in_use(self) -> None:
        provider = slots(limit=60, in_flight=10)
        provider.rate_limited(began=0.0, now=1.0, retry_after=None)
        assert provider.limit == 5

    def test_one_call_is_always_left(self) -> None:
        provider = slots(limit=1, in_flight=1)
        provider.rate_limited(began=0.0, now=1.0, retry_after=None)
        assert provider.limit == 1

    def test_a_cut_starts_the_round_anew(self) -> None:
        provider = slots(limit=4, in_flight=4)
        answered(provider, 3)
        provider.rate_limited(began=0.0, now=1.0, retry_after=None)
        answered(provider, 1)
        assert provider.limit == 2

    def test_finds_what_a_server_takes(self) -> None:
        """A server that takes 10 at once and refuses the rest: the limit ends near 10, wherever it started."""
        provider, now = slots(64, limit=64), 0.0
        for _ in range(200):
            now += 10.0
            calls = provider.limit
            provider.in_flight = calls
            for place in range(calls):
                if place < 10:
                    provider.answered()
                else:
                    provider.rate_limited(now, now + 1, None)
                provider.in_flight -= 1
            now = max(now + 1, provider.paused_until)
        assert 4 <= provider.limit <= 11


class TestPause:
    def test_retry_after_pauses_the_provider(self) -> None:
        provider = slots(limit=4, in_flight=1)
        provider.rate_limited(began=0.0, now=10.0, retry_after=5.0)
        provider.in_flight = 0
        assert provider.free(14.9) == 0
        assert provider.free(15.0) == 1

    def test_the_longest_wait_counts(self) -> None:
        provider = slots(limit=4, in_flight=2)
        provider.rate_limited(began=0.0, now=10.0, retry_after=5.0)
        provider.rate_limited(began=0.0, now=11.0, retry_after=1.0)
        assert provider.paused_until == pytest.approx(15)

    def test_without_retry_after_only_repeated_cuts_pause(self) -> None:
        provider = slots(limit=8, in_flight=8)
        provider.rate_limited(began=0.0, now=1.0, retry_after=None)
        assert provider.free(1.0) == 0
        provider.in_flight = 0
        assert provider.free(1.0) == 4
        provider.rate_limited(began=1.5, now=2.0, retry_after=None)
        assert 2.5 <= provider.paused_until <= 3.0
        provider.answered()
        provider.rate_limited(began=3.5, now=4.0, retry_after=None)
        assert provider.free(4.0) > 0


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({"model": "openai/a"}, {"model": "openai/b"}, True),
        ({"model": "openai/a"}, {"model": "anthropic/a"}, False),
        ({"model": "openai/a"}, {"model": "openai/a", "api_base": "http://127.0.0.1:1/v1"}, False),
        ({"model": "openai/a", "api_base": "http://h/v1"}, {"model": "openai/b", "api_base": "http://h/v1/"}, True),
    ],
)
def test_models_of_one_provider_at_one_address_share_slots(one: dict[str, str], other: dict[str, str], shared: bool) -> None:
    first, second = (ModelSpec(name=name, **spec) for name, spec in (("x", one), ("y", other)))
    assert (provider_of(first) == provider_of(second)) is shared


@pytest.mark.parametrize(
    ("model", "base", "provider"),
    [
        ("openai/gpt-4.1", None, "openai"),
        ("anthropic/claude", None, "anthropic"),
        ("openai/mine", "http://127.0.0.1:8000/v1", "openai/127.0.0.1:8000"),
        ("openai/mine", "https://models.example.org/v1/", "openai/models.example.org"),
    ],
)
def test_a_provider_is_named_with_the_host_where_it_has_one_of_its_own(model: str, base: str | None, provider: str) -> None:
    assert provider_of(ModelSpec(name="m", model=model, api_base=base)) == provider
