"""A key, package or price that is missing is told before prompts are made, unless all that is wanted may be stored already."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.errors import GatewayError, UnpricedModels
from resources.gateway import model_checks
from resources.gateway.budget import Accounts
from resources.gateway.model_checks import find_quick_problem, refuse_early
from resources.responses.store import ResponseStore
from tests.made.responses import response
from tests.resources.gateway.gateway_setup import model

FREE = Accounts(Budget(), {})


def test_a_missing_key_is_reported_for_a_model_that_was_never_asked_in_the_snapshot(store: ResponseStore) -> None:
    spec = model(None)
    with pytest.raises(GatewayError, match="these models cannot be asked: m: environment variable M_KEY is not set"):
        refuse_early([spec], "base", FREE, store, {})
    refuse_early([spec], "base", FREE, store, {"M_KEY": "k"})


def test_stored_responses_may_be_all_that_is_wanted_so_no_key_is_asked_for(store: ResponseStore) -> None:
    spec = model(None)
    store.add([response(1, model_variant=spec.variant)])
    refuse_early([spec], "base", FREE, store, {})
    with pytest.raises(GatewayError):
        refuse_early([spec], "2026-01-31", FREE, store, {})


def test_a_price_that_is_in_no_list_is_reported_where_the_list_is_looked_at(store: ResponseStore) -> None:
    """A litellm string of a model that nobody knows was taken with a limit in dollars, and its run failed."""
    in_dollars = Accounts(Budget(max_cost_usd=1), {})
    unknown, known = (ModelSpec(name=name, model=f"openai/{name}") for name in ("no-such-model", "gpt-4.1"))
    key = {"OPENAI_API_KEY": "k"}
    refuse_early([unknown], "base", in_dollars, store, key)
    refuse_early([known], "base", in_dollars, store, key, look_up_prices=True)
    with pytest.raises(UnpricedModels, match="without a price of no-such-model") as told:
        refuse_early([unknown, known], "base", in_dollars, store, key, look_up_prices=True)
    assert told.value.names == ["no-such-model"]


@pytest.mark.parametrize(
    "spec", [model(None), model(None, api_base="http://h/v1", api_key_env=None), model(None, api_key_env=None)]
)
def test_the_quick_look_loads_no_litellm_where_a_key_or_an_address_is_named(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.gateway.litellm_transport.load_litellm", lambda: pytest.fail("litellm was loaded"))
    assert find_quick_problem(spec, {"M_KEY": "k", "OPENAI_API_KEY": "k"}) is None


def test_the_key_of_a_bare_litellm_string_is_looked_for_too() -> None:
    assert (
        find_quick_problem(ModelSpec(name="m", model="openai/gpt-4.1"), {}) == "environment variable OPENAI_API_KEY is not set"
    )
    assert find_quick_problem(ModelSpec(name="m", model="nobody/gpt"), {}) is not None


def test_baselines_and_the_local_model_need_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_quick_problem(ModelSpec(name="u", model="baseline/uniform"), {}) is None
    monkeypatch.setattr(model_checks.LocalTransport, "problem", lambda self, spec: "the package is not installed")
    assert find_quick_problem(ModelSpec(name="l", model="local/smollm2-135m"), {}) == "the package is not installed"
