"""Models whose responses were made elsewhere."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.models import IMPORTED, Models, load_models
from dtef_pipeline.asking.request import Request
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.judges import parse_judges
from resources.gateway.model_checks import find_missing_imported

MINE = load_models().resolve([f"{IMPORTED}mine"])[0]


def test_a_model_of_any_name_takes_no_setting_and_is_spelled_without_any() -> None:
    (spec,) = load_models().resolve(["imported/gpt-3.5-turbo"], {"temperature": 0.7, "max_tokens": 9})
    assert (spec.name, spec.variant, spec.is_imported) == ("imported/gpt-3.5-turbo", "imported/gpt-3.5-turbo", True)
    assert (spec.temperature, spec.max_tokens) == (None, None)


@pytest.mark.parametrize("setting", ["temperature=0.7", "seed=1"])
def test_a_setting_of_its_own_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=r"were made elsewhere, so it takes no .*; allowed: description, model, name"):
        load_models().resolve([f"imported/mine@{setting}"])


def test_a_models_file_may_describe_it_but_not_set_how_it_is_asked() -> None:
    known: Models = load_models("models: {mine: {model: imported/mine, description: As published in 2021.}}")
    assert known.resolve(["mine"])[0].variant == "imported/mine"
    with pytest.raises(ConfigError, match="so it takes no api_base"):
        load_models("models: {mine: {model: imported/mine, api_base: 'http://127.0.0.1:1/v1'}}")


def test_it_judges_nobody() -> None:
    with pytest.raises(ConfigError, match="a model without a server"):
        parse_judges(["standard=imported/mine"], load_models())


def test_what_is_not_stored_is_missing_and_says_why() -> None:
    wanted = {one.key: one for one in (Request(prompt * 32, None, "Hello", MINE, 0, "base") for prompt in "ab")}
    first, second = wanted
    found = find_missing_imported(wanted, {first})
    assert list(found) == [second]
    assert (found[second].status, found[second].attempts) == ("missing", 0)
    assert "imported/mine is imported: only its stored responses are used" in found[second].message
