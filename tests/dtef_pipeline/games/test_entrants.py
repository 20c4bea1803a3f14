"""Players by the names that people give them, and the entrants of a league."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from click.testing import CliRunner

from assets.games.game_catalog import load_known_scenarios
from dtef_pipeline.asking.models import Models, load_models
from dtef_pipeline.cli.games.games_group import games
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import list_baselines
from dtef_pipeline.games.entrants import (
    list_absent_by_scenario,
    refuse_unknown_models,
    resolve_entrants,
    resolve_player,
    split_player_names,
)
from dtef_pipeline.games.packs import Pack, pack
from resources.settings import Settings
from tests.made.made_games import PERSONA, show_pack

KUHN, THIRTEEN = "poker/kuhn", "solitaire/thirteen"
NO_MODELS = Models({}, {})


@pytest.fixture
def two_packs(state: object) -> Mapping[str, Pack]:
    manifests = load_known_scenarios(Settings.read_environment())
    return {key: pack(key, manifests) for key in (KUHN, THIRTEEN)}


@pytest.mark.parametrize("name", ["baselines", "baseline/all"])
def test_baselines_are_all_that_the_scenario_has(two_packs: Mapping[str, Pack], name: str) -> None:
    for one in two_packs.values():
        playing = [player.baseline for player in resolve_entrants(one, NO_MODELS, {}, [name, "baseline/random"], [])]
        assert playing == list(list_baselines(one.scenario))


def test_a_baseline_is_left_out_where_it_is_not_and_refused_where_nobody_would_be_left(two_packs: Mapping[str, Pack]) -> None:
    named = ["baseline/nash", "baseline/random"]
    assert [one.baseline for one in resolve_entrants(two_packs[THIRTEEN], NO_MODELS, {}, named, [])] == ["random"]
    assert list_absent_by_scenario(two_packs, named) == {THIRTEEN: ["baseline/nash"]}
    with pytest.raises(ConfigError, match=r"baseline/nash: solitaire/thirteen .*; allowed: .*greedy"):
        resolve_entrants(two_packs[THIRTEEN], NO_MODELS, {}, ["baseline/nash"], [])


def test_a_baseline_that_no_scenario_has_is_an_error_also_beside_others(two_packs: Mapping[str, Pack]) -> None:
    told = "baseline/nahs: none of 2 scenarios has one of that name; allowed: baselines, .*baseline/nash"
    with pytest.raises(ConfigError, match=told):
        list_absent_by_scenario(two_packs, ["baselines", "baseline/nahs"])


def test_the_command_says_where_a_baseline_does_not_play(state: object) -> None:
    words = ["--scenario", "kuhn", "--scenario", "thirteen", "--player", "baseline/nash", "--seeds", "1", "--json"]
    told = CliRunner().invoke(games, ["run", "--estimate", *words])
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout) == []
    assert told.stderr == "solitaire/thirteen: left out, because it has no baseline/nash\n"


def test_a_model_that_is_none_is_reported_with_the_baselines_of_all_scenarios(two_packs: Mapping[str, Pack]) -> None:
    """Baselines of surveys were told in their place."""
    with pytest.raises(ConfigError, match=r"player greedy: no model .*baseline/greedy, "):
        refuse_unknown_models(list(two_packs.values()), NO_MODELS, {}, ["baselines", "baseline/nash", "greedy"])
    with pytest.raises(ConfigError, match=r"player nahs: .*baseline/nash, .*baseline/greedy"):
        refuse_unknown_models(list(two_packs.values()), NO_MODELS, {}, ["nahs"])
    with pytest.raises(ConfigError, match="unknown persona 'nosuch'; known: none"):
        resolve_entrants(two_packs[KUHN], NO_MODELS, {}, ["nosuch@gpt-4.1-mini"], [])


@pytest.mark.parametrize("command", [["run"], ["run", "--estimate"]])
def test_an_opponent_where_no_scenario_has_a_seat_for_it_is_refused(command: list[str], state: object) -> None:
    """`--opponent` was passed over without a word."""
    told = CliRunner().invoke(games, [*command, "--scenario", "thirteen", "--player", "baselines", "--opponent", "nash"])
    assert told.exit_code == 2
    assert "--opponent nash: solitaire/thirteen has one seat and no opponents; scenarios with opponents: " in told.stderr
    assert "poker/kuhn" in told.stderr.replace("\n", "")


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
