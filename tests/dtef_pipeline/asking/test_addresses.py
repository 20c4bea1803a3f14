"""An address of a server is shown without what may be secret in it, also where the password was not quoted."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.addresses import shown
from dtef_pipeline.asking.models import load_models
from dtef_pipeline.errors import ConfigError

PLANTED = "planted-7f3a9c"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://gpu:8000/v1", "http://gpu:8000/v1"),
        ("http://gpu:port/v1", "http://gpu:port/v1"),
        ("http://[::1]:8000/v1?key=hush@home#hush", "http://[::1]:8000/v1"),
        ("http://gpu?hush", "http://gpu"),
        ("http://user:hush@gpu:8000/v1?key=hush#hush", "http://[...]@gpu:8000/v1"),
        ("http://user:pa@hush@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("http://user:12/hush@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("http://user:hu/sh@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("http://hu/sh@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("http://user:hu?sh@gpu:8000/v1?key=hush", "http://[...]@gpu:8000/v1"),
        ("http://user:hu#sh@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("user:hush@gpu:8000/v1", "[...]@gpu:8000/v1"),
        ("//user:hush@gpu/v1", "//[...]@gpu/v1"),
        ("http:/user:hush@gpu/v1", "http:/[...]@gpu/v1"),
    ],
)
def test_an_address_is_shown_without_name_password_and_parameters(address: str, told: str) -> None:
    assert shown(address) == told


def test_an_address_whose_port_cannot_be_read_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigError) as caught:
        load_models(f"models: {{mini: {{model: openai/x, api_base: 'http://user:a/{PLANTED}@gpu:8000/v1'}}}}")
    assert "got http://[...]@gpu:8000/v1; allowed" in str(caught.value)
    assert PLANTED not in str(caught.value)


def test_two_models_of_one_variant_are_refused_without_the_passwords_of_their_addresses() -> None:
    text = f"""
models:
  one: {{model: openai/x, api_base: 'http://user:{PLANTED}@gpu:8000/v1'}}
  two: {{model: openai/x, api_base: 'http://user:{PLANTED}@gpu:8001/v1'}}
"""
    with pytest.raises(ConfigError) as caught:
        load_models(text)
    assert "(http://[...]@gpu:8000/v1 and http://[...]@gpu:8001/v1)" in str(caught.value)
    assert PLANTED not in str(caught.value)
