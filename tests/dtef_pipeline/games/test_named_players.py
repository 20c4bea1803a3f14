"""Players by the names that people give them."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.models import load_models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.entrants import resolve_player, split_player_names
from tests.made.made_games import PERSONA, show_pack

MODELS = load_models(
    "models: {alpha: {model: openai/alpha}, beta: {model: openai/beta}}\ncollections: {both: [alpha, beta]}",
    computed={"baseline/uniform": None},
)
PERSONAS = {"calm": PERSONA, "calm:v2": PERSONA}


def named(name: str) -> str:
    return resolve_player(show_pack(), MODELS, PERSONAS, name).name


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("baseline/careful", "baseline/careful"),
        ("baseline/random", "baseline/random"),
        ("alpha", "alpha"),
        ("calm@alpha", "calm:v2@alpha"),
        ("calm:v2@alpha", "calm:v2@alpha"),
        ("alpha@temperature=0.7", "alpha@temperature=0.7"),
        ("calm@alpha@temperature=0.7", "calm:v2@alpha@temperature=0.7"),
        ("calm@openai/gamma", "calm:v2@openai/gamma"),
    ],
)
def test_a_name_stands_for_one_player(name: str, found: str) -> None:
    assert named(name) == found


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("baseline/uniform", "baseline/uniform: made/show-cards .*; allowed: "),
        ("both", "player both: .*2 models"),
        ("calm@both", "player calm@both: .*2 models"),
        ("gamma", "no model or collection 'gamma'"),
        ("careful", "player careful: no model or collection 'careful'. .*llowed: baseline/careful, "),
        ("unifrom", "llowed: baseline/.*baseline/waits"),
        ("clam@alpha", "player clam@alpha: unknown persona 'clam'; known: calm, calm:v2"),
        ("clam@temperature=0", "no model or collection 'clam'"),
        ("alpha@heat=0", "heat"),
    ],
)
def test_what_is_not_one_player_is_refused(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        named(name)


def test_a_comma_in_the_settings_of_a_model_parts_no_players() -> None:
    assert split_player_names("a@temperature=0,top_p=1, baseline/random ,b") == [
        "a@temperature=0,top_p=1",
        "baseline/random",
        "b",
    ]
    assert split_player_names("") == []
