"""Prices: the models file goes before LiteLLM's list, and a model in neither has no price."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.prices import FREE, Price, price
from tests.conftest import ROOT


def test_the_models_file_goes_before_litellms_list() -> None:
    spec = ModelSpec(name="m", model="openai/gpt-4.1-mini", input_price=7, output_price=9)
    assert price(spec) == Price(7, 9)


def test_litellms_list_is_in_dollars_per_million() -> None:
    found = price(ModelSpec(name="m", model="openai/gpt-4.1-mini"))
    assert found is not None
    assert 0.05 < found.prompt < found.completion < 50


def test_what_is_computed_here_is_free() -> None:
    assert price(ModelSpec(name="l", model="local/smollm2-135m")) == FREE
    assert price(ModelSpec(name="b", model="baseline/uniform")) == FREE


@pytest.mark.parametrize("model", ["openai/nobody-has-heard-of-it", "nonsense/nonsense", "openrouter/openai/gpt-5"])
def test_a_model_that_is_in_no_list_has_no_price(model: str) -> None:
    assert price(ModelSpec(name="m", model=model)) is None


def test_a_server_of_ones_own_has_no_price_whatever_its_model_is_called() -> None:
    assert price(ModelSpec(name="m", model="openai/gpt-4.1-mini", api_base="http://127.0.0.1:1/v1")) is None


def test_tokens_at_a_price_are_dollars() -> None:
    assert Price(2.0, 8.0).of(1_000_000, 500_000) == pytest.approx(6.0)


def test_a_price_of_the_models_file_needs_no_litellm() -> None:
    code = (
        "import sys; from resources.gateway.prices import price; from dtef_pipeline.asking.models import ModelSpec\n"
        "price(ModelSpec(name='m', model='openai/m', input_price=1, output_price=1)); assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
