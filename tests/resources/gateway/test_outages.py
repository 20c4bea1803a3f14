"""Which failures use up a request's attempts, on a clock that only the test moves."""

from __future__ import annotations

import pytest

from resources.gateway.breaker import BreakerRules
from tests.resources.gateway.gateway_setup import model, requests
from tests.resources.gateway.paced import Met, ask

PATIENT = BreakerRules(probes=60)


@pytest.mark.parametrize("retries", [0, 2, 6])
@pytest.mark.parametrize("concurrency", [1, 8, 32])
@pytest.mark.parametrize("seconds", [0.001, 1.0, 60.0])
class TestAnOutageCostsNoRequestItsAttempts:
    """Regression: on a slow machine, requests whose second and third attempts began before the tenth failure ended as errors."""

    def test_which_is_there_from_the_start(self, retries: int, concurrency: int, seconds: float) -> None:
        wanted = requests(model(None, retries=retries, max_concurrency=concurrency), 50)
        asking, sent = ask(wanted, lambda text, number: Met(seconds, number <= 40), PATIENT)
        assert asking.failures == {}
        assert set(sent) == {request.user for request in wanted}

    def test_which_begins_while_requests_are_on_their_way(self, retries: int, concurrency: int, seconds: float) -> None:
        wanted = requests(model(None, retries=retries, max_concurrency=concurrency), 100)
        asking, _ = ask(wanted, lambda text, number: Met(seconds, 20 < number <= 60), PATIENT)
        assert asking.failures == {}


def test_a_call_that_an_outage_caught_costs_nothing_when_it_fails_after_the_outage() -> None:
    """The first eight calls hang for an hour, while the model goes away and comes back."""

    def plan(text: str, number: int) -> Met:
        return Met(3600.0, True) if number <= 8 else Met(1.0, number <= 30)

    asking, sent = ask(requests(model(None, retries=0, max_concurrency=16), 50), plan, PATIENT)
    assert asking.failures == {}
    assert len(sent) == 50 + 30


class TestARequestThatFailsWhileOthersAreAnswered:
    @pytest.mark.parametrize("retries", [0, 2, 6])
    @pytest.mark.parametrize("concurrency", [1, 4])
    @pytest.mark.parametrize("seconds", [0.001, 1.0, 60.0])
    def test_ends_after_its_retries(self, retries: int, concurrency: int, seconds: float) -> None:
        wanted = requests(model(None, retries=retries, max_concurrency=concurrency), 60)
        asking, sent = ask(wanted, lambda text, *_: Met(seconds, text == "question 3"), BreakerRules())
        (failure,) = asking.failures.values()
        assert (failure.message, failure.attempts) == ("HTTP 503", retries + 1)
        assert sent.count("question 3") == retries + 1

    def test_is_not_asked_again_while_only_the_others_can_tell(self) -> None:
        """It fails at once; the answers of the others take longer than all its waits."""
        wanted = requests(model(None, retries=2, max_concurrency=4), 12)
        asking, sent = ask(wanted, lambda text, *_: Met(600.0 * (text != "question 0"), text == "question 0"), PATIENT)
        assert [failure.attempts for failure in asking.failures.values()] == [3]
        assert len(sent) == 3 + 11

    @pytest.mark.parametrize("seconds", [0.5, 60.0])
    @pytest.mark.parametrize("hopeless", [2, 8, 20])
    def test_is_no_outage_when_only_such_ones_are_left(self, hopeless: int, seconds: float) -> None:
        """Regression: two connections that were always dropped, after 78 answers, were probes of an outage for ten minutes."""
        plan = {f"question {at}" for at in range(0, 4 * hopeless, 4)}
        wanted = requests(model(None, retries=6, max_concurrency=32), 80)
        asking, sent = ask(wanted, lambda text, *_: Met(seconds if text in plan else 0.1, text in plan), BreakerRules())
        assert [(failure.message, failure.attempts) for failure in asking.failures.values()] == [("HTTP 503", 7)] * hopeless
        assert len(sent) == 80 - hopeless + 7 * hopeless

    def test_ends_also_when_nothing_else_is_left_to_ask(self) -> None:
        asking, sent = ask(requests(model(None, retries=3), 2), lambda *_: Met(1.0, True), BreakerRules())
        assert [failure.attempts for failure in asking.failures.values()] == [4, 4]
        assert len(sent) == 8

    def test_has_all_its_attempts_again_after_an_outage(self) -> None:
        def plan(text: str, number: int) -> Met:
            return Met(1.0, number <= 20 or text == "question 0")

        asking, _ = ask(requests(model(None, retries=2, max_concurrency=1), 200), plan, PATIENT)
        (failure,) = asking.failures.values()
        assert failure.attempts > 3


def test_a_model_that_stays_away_is_given_up_and_takes_all_its_requests_with_it() -> None:
    asking, sent = ask(requests(model(None, max_concurrency=4), 100), lambda *_: Met(1.0, True), BreakerRules())
    assert len(asking.failures) == 100
    assert len(sent) <= 10 + 3 + 12
