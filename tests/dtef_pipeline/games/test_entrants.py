"""Players by the names that people give them, the entrants of a league, and personas in files and lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from assets.games.game_catalog import load_known_scenarios
from dtef_pipeline.asking.models import Models, load_models
from dtef_pipeline.cli.games.games_group import games
from dtef_pipeline.errors import ConfigError, SourceError
from dtef_pipeline.games.contract import list_baselines
from dtef_pipeline.games.entrants import (
    list_absent_by_scenario,
    refuse_unknown_models,
    resolve_entrants,
    resolve_player,
    split_player_names,
)
from dtef_pipeline.games.pack_files import find_new_documents, read_document_lines, write_document_lines
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.personas import Persona, read_persona_versions, select_latest_personas
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
    with pytest.raises(ConfigError, match=r"player nahs: .*Allowed: a known one"):
        refuse_unknown_models([], NO_MODELS, {}, ["nahs"])
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


FIRST = Persona(
    id="calm", version=1, display_name="Calm", system_prompt="Be calm.", traits={"risk": "low", "n": 1, "fair": True}
)
SECOND = FIRST.model_copy(update={"version": 2, "status": "approved"})
OTHER = Persona(id="able", version=1, display_name="Äble", system_prompt="Be able.\nAlways.")


def write(folder: Path, *personas: Persona) -> Path:
    for number, one in enumerate(personas):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(one.model_dump(), allow_unicode=True), encoding="utf-8")
    return folder


def test_the_latest_version_of_a_persona_is_the_one_that_its_id_means(tmp_path: Path) -> None:
    write(tmp_path, SECOND, FIRST, OTHER)
    versions = read_persona_versions(tmp_path)
    assert versions == {"calm:v2": SECOND, "calm:v1": FIRST, "able:v1": OTHER}
    assert select_latest_personas(versions.values()) == {"able": OTHER, "calm": SECOND}


def test_a_version_that_stands_twice_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, FIRST, FIRST)
    with pytest.raises(ConfigError, match=r"1\.yaml:2: id: got calm, .*version 1 .*; allowed: another version"):
        read_persona_versions(tmp_path)


def test_lines_are_sorted_and_come_back_as_the_same_bytes() -> None:
    text = write_document_lines("persona", [SECOND, OTHER, FIRST])
    assert [json.loads(line)["id"] for line in text.splitlines()] == ["able", "calm", "calm"]
    assert text.startswith('{"display_name":"Äble","id":"able","kind":"persona","schema":1,')
    assert write_document_lines("persona", read_document_lines("persona", text.encode(), "x").values()) == text


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(lambda text: bool(text.strip()))


@given(
    texts,
    texts,
    st.dictionaries(texts, st.one_of(texts, st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))),
)
def test_any_persona_is_the_same_after_lines(name: str, prompt: str, traits: dict[str, str | int | float | bool]) -> None:
    one = Persona(id="any", version=3, display_name=name, system_prompt=prompt, traits=traits)
    assert read_document_lines("persona", write_document_lines("persona", [one]).encode(), "x") == {1: one}


GOOD = write_document_lines("persona", [FIRST]).strip()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", r"no JSON object; got \[\]"),
        ('{"kind": "vote", "schema": 1}', "kind is not 'persona'; got 'vote'; allowed: an object with"),
        (GOOD.replace('"schema":1', '"schema":true'), "schema is not 1; got True"),
        (GOOD.replace('"schema":1', '"schema":2'), "schema is not 1; got 2"),
        (GOOD.replace('"version":1', '"version":"1"'), "version: got '1'; allowed: a whole number"),
        (GOOD.replace('"id":"calm"', '"id":"../calm"'), "id: got '../calm'"),
        (GOOD.replace('"kind"', '"mood":1,"kind"'), "mood: unknown key; known: id, version"),
        (GOOD.replace('"kind"', '"id":"calm","kind"'), "is given twice"),
        (GOOD.replace('"n":1', '"n":NaN'), "NaN"),
        (GOOD.replace("Be calm.", "\\ud800"), "not valid JSON"),
        (GOOD.replace("Be calm.", "Be loud."), "line 1 .*; got 'calm:v1'"),
    ],
)
def test_a_bad_line_is_named_with_what_arrived_and_what_is_allowed(line: str, told: str) -> None:
    with pytest.raises(SourceError, match=f"in.jsonl:3: .*{told}"):
        read_document_lines("persona", f"{GOOD}\n\n{line}\n".encode(), "in.jsonl")


def test_what_is_there_already_is_skipped_and_what_differs_is_refused() -> None:
    there = [FIRST]
    assert find_new_documents({1: FIRST, 4: SECOND}, there, "x") == {4: SECOND}
    with pytest.raises(SourceError, match=r"x:7: .*; got 'calm:v1'; allowed: "):
        find_new_documents({7: FIRST.model_copy(update={"display_name": "Other"})}, there, "x")


def test_of_many_faults_in_a_line_the_first_are_reported() -> None:
    """A line of 60,000 faulty traits was read for half a minute, and told as 5 MB."""
    for faulty in ({f"t{n}": [] for n in range(5_000)}, {"x": 1}):
        keys = {f"k{n}": 1 for n in range(5_000)} if "x" in faulty else {}
        line = json.dumps({**json.loads(GOOD), **keys, "traits": faulty})
        with pytest.raises(SourceError) as error:
            read_document_lines("persona", line.encode(), "in.jsonl")
        assert len(str(error.value)) < 5_000
    assert "and 4,980 more" in str(error.value)


def test_bytes_that_are_no_text_are_named_with_their_line() -> None:
    with pytest.raises(SourceError, match=r"in\.jsonl:3: not UTF-8 \(byte 0xff\)"):
        read_document_lines("persona", f"{GOOD}\n\u00a0\n".encode() + b'{"kind": "\xff"}', "in.jsonl")
