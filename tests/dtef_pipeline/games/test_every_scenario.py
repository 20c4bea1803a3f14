"""What holds for every scenario that is shipped, and for a made-up one: nothing leaks, nothing is random but the seed, and no text breaks it.

A scenario may name baselines that look at what their seat cannot see in an attribute `oracles`: the test of information leaves these out.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games import pack_files, packs
from dtef_pipeline.games.contract import Count, GameResult, Illegal, list_baselines, make_baseline_rng
from dtef_pipeline.games.episode import GameEpisode, replay
from dtef_pipeline.games.episode_items import truth_id
from dtef_pipeline.games.game_in_play import GameInPlay, build_opening_messages, decode_trace, encode_trace, hash_trace
from dtef_pipeline.games.manifest import ScenarioManifest, read_manifest, read_manifests
from dtef_pipeline.games.pack_files import check_packs, check_trial_game
from dtef_pipeline.games.packs import MakeScenario, Pack, adapters, pack
from dtef_pipeline.games.personas import Persona, Player
from dtef_pipeline.text.well_formed import replace_surrogates
from tests.conftest import ROOT
from tests.made.made_games import MODEL_A, ShowCards, model_player, played_with, show_pack

SEEDS = (1, 2, 5)
PROBES = 4
"""Deals that look the same to a seat, for each state."""
ODD_SEED = 918273645
HOSTILE_TEXTS = (
    "", "\0", "\ud800\udfff", "ACTION:", "ACTION: " * 5_000, "action:\u00a0\u2028", "{" * 20_000, "[" * 20_000, '{"propose": ' * 5_000,
    "<think>" * 2_000, "</think>ACTION: fly", "I refuse to play.", "9" * 5_000, "bid 1e999", "bid -1", "move NaN->c1", "\u202eACTION: fold",
    "ACTION: " + "a" * 100_000, "call fold raise bet check", '{"accept": true, "accept": false}', "As an AI I cannot play this.", "\n" * 50_000,
)  # fmt: skip


def packs_that_load() -> list[Pack]:
    """The made-up scenario, and every shipped one whose engine is there."""
    folder = ROOT / "data" / "scenarios"
    manifests = read_manifests(folder) if folder.is_dir() else {}
    found = [show_pack()]
    for name, manifest in manifests.items():
        try:
            found.append(Pack(manifest, adapters()[name](manifest)))
        except (KeyError, ModuleNotFoundError):
            continue  # `dtef games check`, which is tested too, says so
    return found


every_pack = pytest.mark.parametrize("pack", packs_that_load(), ids=lambda pack: pack.name)


@cache
def _situations(name: str) -> tuple[tuple[Any, int], ...]:
    """States in which a seat is to move, with the seat, of a few episodes that are played at random."""
    pack = next(one for one in packs_that_load() if one.name == name)
    found = []
    for seed in SEEDS:
        rng, game = random.Random(seed), GameInPlay(pack, seed)
        while (seat := game.seat) is not None:
            found.append((game.state, seat))
            game.play_command(rng.choice(pack.scenario.legal(game.state, seat)))
    return tuple(found)


def situations(pack: Pack, most: int = 25) -> list[tuple[Any, int]]:
    """At most so many of them, the first ones among them."""
    found = _situations(pack.name)
    return list(found[: most // 2]) + random.Random(0).sample(
        found[most // 2 :], min(most // 2, max(0, len(found) - most // 2))
    )


def honest_baselines(pack: Pack) -> dict[str, Any]:
    oracles = getattr(pack.scenario, "oracles", ())
    return {name: choose for name, choose in list_baselines(pack.scenario).items() if name not in oracles}


def takes(pack: Pack, state: Any, seat: int, command: str) -> bool:
    """Whether a command can be played: a scenario may take more than it lists as legal, such as words beside an offer."""
    try:
        return pack.scenario.step(state, seat, command) is not None
    except ValueError:
        return False


def random_texts(pack: Pack, seed: int, fools: bool = True) -> GameEpisode:
    """An episode of models that write random commands, and now and then nonsense."""
    players = tuple(model_player(MODEL_A) for _ in pack.manifest.seats)
    episode, rng, texts = GameEpisode(pack, seed, players), random.Random(seed), []
    game = GameInPlay(pack, seed)
    while (seat := game.seat) is not None:
        command = rng.choice(pack.scenario.legal(game.state, seat))
        nonsense = fools and rng.random() < 0.1
        text = rng.choice(HOSTILE_TEXTS[:10]) if nonsense else f"I think.\nACTION: {command}"
        texts.append(text)
        game.writes(text)
    played_with(episode, texts)
    return episode


@every_pack
def test_what_a_seat_cannot_see_changes_neither_its_observation_nor_what_it_may_do_nor_a_baseline(pack: Pack) -> None:
    rng, changed = random.Random(1), False
    for state, mover in situations(pack):
        for seat in range(len(pack.manifest.seats)):
            for _ in range(PROBES):
                other = pack.scenario.permute_hidden(state, seat, rng)
                changed |= other != state
                assert pack.scenario.observation(other, seat) == pack.scenario.observation(state, seat)
                assert pack.scenario.seat_to_move(other) == mover
                assert pack.scenario.legal(other, seat) == pack.scenario.legal(state, seat)
                if seat == mover:
                    for name, choose in honest_baselines(pack).items():
                        first, second = (choose(one, seat, make_baseline_rng(1, seat)) for one in (state, other))
                        assert first == second == pack.scenario.read(f"ACTION: {first}", state, seat), name
    assert changed, "permuted never dealt anything anew"


@every_pack
def test_no_message_holds_the_seed_or_who_sits_at_another_seat(pack: Pack) -> None:
    personas = [
        Persona(id=f"zorblax{seat}", version=41, display_name=f"Quibbleton {seat}", system_prompt=f"Hum like vexil{seat}.")
        for seat, _ in enumerate(pack.manifest.seats)
    ]
    models = [
        MODEL_A.model_copy(update={"name": f"wumpus{seat}", "model": f"openai/grault{seat}"}) for seat in range(len(personas))
    ]
    players = tuple(Player(model=model, persona=persona) for model, persona in zip(models, personas, strict=True))
    rng = random.Random(3)
    game = GameInPlay(pack, ODD_SEED)
    secrets = ("zorblax", "Quibbleton", "wumpus", "grault", str(ODD_SEED))
    for seat, player in enumerate(players):
        opening = "\n".join(message.text for message in build_opening_messages(pack, ODD_SEED, player, seat))
        assert not any(secret in opening for secret in secrets)
    while (seat := game.seat) is not None:
        sent = "\n".join(message.text for message in game.messages(seat, personas[seat]))
        assert not any(secret in sent for secret in secrets)
        assert not any(f"vexil{other}" in sent for other in range(len(players)) if other != seat)
        game.writes(f"ACTION: {rng.choice(pack.scenario.legal(game.state, seat))}")


@every_pack
def test_an_episode_plays_again_byte_for_byte(pack: Pack) -> None:
    for seed in SEEDS:
        trace = random_texts(pack, seed).trace()
        assert trace.result is not None
        written = encode_trace(trace)
        assert encode_trace(replay(decode_trace(written), pack, seed)).encode() == written.encode()
        assert hash_trace(random_texts(pack, seed).trace()) == hash_trace(trace)


@every_pack
def test_states_are_hashable_and_over_exactly_when_there_is_a_result(pack: Pack) -> None:
    for state, seat in situations(pack):
        assert isinstance(hash(state), int)
        assert pack.scenario.result(state) is None
        assert len(set(pack.scenario.legal(state, seat))) == len(pack.scenario.legal(state, seat)) > 0
        assert takes(pack, state, seat, pack.scenario.default(state, seat))
        assert not takes(pack, state, seat, "no such command")


@every_pack
def test_only_the_seat_whose_turn_it_is_may_do_anything(pack: Pack) -> None:
    for state, seat in situations(pack, 8):
        command = pack.scenario.default(state, seat)
        for other in set(range(len(pack.manifest.seats))) - {seat}:
            assert pack.scenario.legal(state, other) == ()
            assert isinstance(pack.scenario.read(f"ACTION: {command}", state, other), Illegal)
            assert not takes(pack, state, other, command)


@pytest.mark.parametrize(("changed", "told"), [({"settings": {"jokers": 2}}, "jokers"), ({"seats": list("ABCDE")}, "seats")])
@pytest.mark.parametrize("name", sorted(adapters()))
def test_settings_and_seats_that_a_game_does_not_know_are_refused(name: str, changed: dict[str, Any], told: str) -> None:
    manifest = read_manifests(ROOT / "data" / "scenarios")[name]
    with pytest.raises(ConfigError, match=f"{name}: .*{told}.*; allowed: "):
        adapters()[name](manifest.model_copy(update=changed))


@every_pack
def test_a_text_that_is_no_move_changes_nothing(pack: Pack) -> None:
    game = GameInPlay(pack, 1, patient=frozenset(range(len(pack.manifest.seats))))
    state, seat = game.state, game.seat
    assert seat is not None
    texts = [text for text in HOSTILE_TEXTS if isinstance(pack.scenario.read(replace_surrogates(text), state, seat), Illegal)]
    assert texts
    for text in texts:
        game.writes(text)
        assert (game.state, game.seat, game.turn) == (state, seat, 0)
        assert isinstance(game.last_fault, Illegal)
        assert game.last_fault.reason


@every_pack
def test_a_legal_command_behind_an_action_is_read_as_itself(pack: Pack) -> None:
    for state, seat in situations(pack, 10):
        for command in pack.scenario.legal(state, seat)[:40]:
            assert pack.scenario.read(f"ACTION: {command}", state, seat) == command


@every_pack
def test_no_text_breaks_a_reader_or_gives_a_command_that_is_not_legal(pack: Pack) -> None:
    found = situations(pack, 12)
    legal = {at: pack.scenario.legal(*one) for at, one in enumerate(found)}

    def reads(text: str, at: int) -> None:
        state, seat = found[at]
        command = pack.scenario.read(text, state, seat)
        if isinstance(command, str):
            assert command in legal[at] or takes(pack, state, seat, command)
        else:
            assert command.reason

    for number, text in enumerate(HOSTILE_TEXTS):
        reads(text, number % len(found))
    words = sorted({word for commands in legal.values() for command in commands[:20] for word in (command, *command.split())})
    pieces = st.one_of(st.text(max_size=30), st.sampled_from([*words, "ACTION: ", "\n", " ", "```", "**", "{", "}", '"']))

    @settings(database=None)
    @given(st.lists(pieces, max_size=8).map("".join), st.integers(0, len(found) - 1))
    def of_pieces(text: str, at: int) -> None:
        reads(text, at)

    of_pieces()


NAME = "made/show-cards"
MANIFEST = "data/scenarios/made/show-cards.yaml"
PLAYBOOK = "docs/scenarios/show-cards.md"
TESTED = "tests/deep/test_show_cards.py"


def fails(_: ScenarioManifest) -> ShowCards:
    raise ModuleNotFoundError("No module named 'engine'")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one whole pack."""
    adapt(monkeypatch, lambda _: ShowCards())
    manifest = yaml.safe_dump(show_pack().manifest.model_dump(), sort_keys=False)
    for name, text in {MANIFEST: manifest, PLAYBOOK: "# Show cards\n", TESTED: "def test_it(): ...\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def adapt(monkeypatch: pytest.MonkeyPatch, maker: MakeScenario | None) -> None:
    for module in (packs, pack_files):
        monkeypatch.setattr(module, "adapters", lambda: {NAME: maker} if maker else {})


def faults(checkout: Path) -> list[str]:
    (one,) = check_packs(checkout)
    return one.faults


def change(checkout: Path, old: str, new: str) -> None:
    path = checkout / MANIFEST
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_a_whole_pack_has_no_faults_also_with_its_manifest_outside_the_data(checkout: Path) -> None:
    assert faults(checkout) == []
    (checkout / "data" / "scenarios").rename(checkout / "scenarios")
    assert faults(checkout) == []


def test_a_pack_without_a_manifest_is_known_by_its_entry_point(checkout: Path) -> None:
    (checkout / MANIFEST).unlink()
    (checkout / "pyproject.toml").write_text(f'[project.entry-points."dtef.scenarios"]\n"{NAME}" = "made:of_manifest"\n')
    (one,) = check_packs(checkout)
    assert (one.name, one.faults) == (NAME, ["the manifest is missing: data/scenarios/made/show-cards.yaml"])


def test_a_pack_without_an_adapter_is_not_whole(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapt(monkeypatch, None)
    assert faults(checkout) == [f"the adapter is missing: an entry point {NAME} in the group dtef.scenarios"]
    (checkout / "pyproject.toml").write_text(f'[project.entry-points."dtef.scenarios"]\n"{NAME}" = "made:of_manifest"\n')
    assert faults(checkout)[0].endswith("pyproject.toml names made:of_manifest: install the package again")


def test_a_copy_of_a_manifest_under_another_id_is_refused_with_what_to_do() -> None:
    copy = show_pack().manifest.model_copy(update={"id": "made/copy"})
    with pytest.raises(ConfigError, match=r"made/copy: no adapter made/copy; .*`adapter` in the manifest"):
        pack(copy.id, {copy.id: copy})


def test_a_manifest_may_name_the_engine_of_another_scenario(checkout: Path) -> None:
    """Regression: a second scenario on an engine needed a Python package of one's own."""
    text = (checkout / MANIFEST).read_text(encoding="utf-8").replace(f"id: {NAME}", f"id: made/late-cards\nadapter: {NAME}")
    own = checkout / "own" / "made" / "late-cards.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(text.replace("adapter: null\n", ""), encoding="utf-8")
    found = {one.name: one.faults for one in check_packs(checkout, checkout / "own")}
    assert found == {NAME: [], "made/late-cards": []}


def test_three_parties_divide_items_in_a_scenario_of_ones_own() -> None:
    allocation = read_manifest(ROOT / "data/scenarios/negotiation/allocation.yaml")
    given = {"id": "negotiation/three-way", "adapter": allocation.id, "seats": ["A", "B", "C"]}
    own = allocation.model_copy(update=given)
    made = pack(own.id, {own.id: own})
    assert (made.name, made.scenario.name, made.scenario.seats) == (own.id, own.id, ("A", "B", "C"))
    assert list(check_trial_game(made)) == []
    assert truth_id(allocation.model_copy(update={"adapter": allocation.id})) == truth_id(allocation)


def test_an_adapter_that_fails_or_lacks_names_of_the_contract_is_reported(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: one that lacks names was whole, and then failed as a fault of this project."""
    adapt(monkeypatch, fails)
    assert faults(checkout) == [f"scenario {NAME}: its adapter cannot be used: ModuleNotFoundError: No module named 'engine'"]
    less = {name: one for name, one in vars(ShowCards).items() if name not in ("ending", "permute_hidden")}
    adapt(monkeypatch, lambda _: type("LessCards", (), less)())
    (fault,) = faults(checkout)
    assert fault.endswith("makes a scenario without ending, permute_hidden: see dtef_pipeline/games/contract.py")


@pytest.mark.parametrize(
    ("name", "does", "told"),
    [
        ("ending", lambda *_: 1 / 0, "its adapter fails when baseline/random plays seed 1, in turn "),
        ("permute_hidden", lambda self, state, seat, rng: self.reset(8), "`permute_hidden` changes what the seat sees"),
        ("measure_seat", lambda *_: {"luck": Count(1)}, "`measure_seat` counts luck"),
        ("encode_state", lambda *_: {"cards": {1, 2}}, "TypeError: Object of type set is not JSON serializable"),
        ("read", lambda *_: None, "NoneType; allowed: a command, or Illegal"),
        ("stop_episode", lambda *_: GameResult((0.0,), ("draw",)), "2 rewards and outcomes"),
        ("result", lambda self, state: None, "an episode is over for `seat_to_move`"),
    ],
)
def test_an_adapter_is_tried_with_a_whole_episode(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, name: str, does: Any, told: str
) -> None:
    adapt(monkeypatch, lambda _: type("OddCards", (ShowCards,), {name: does})())
    (fault,) = faults(checkout)
    assert told in fault


def test_a_pack_without_tests_or_playbook_is_not_whole(checkout: Path) -> None:
    no_tests = f"tests are missing: tests/**/test_show_cards*.py, or a test file that names {NAME}"
    no_playbook = f"the playbook is missing: {PLAYBOOK}"
    (checkout / TESTED).unlink()
    (checkout / PLAYBOOK).write_text(" \n")
    assert faults(checkout) == [no_tests, no_playbook]
    (checkout / PLAYBOOK).unlink()
    (checkout / "tests" / "test_cards.py").write_text(f'NAME = "{NAME}"\n')
    assert faults(checkout) == [no_playbook]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("turn_limit: 8", "turn_limits: 8", "turn_limits: unknown key; known: id, version"),
        ("id: made/show-cards", "id: made/hide-cards", "got made/hide-cards; allowed: made/show-cards"),
        ("seats:\n- A\n- B", "seats: [A]", "its adapter has 2 seats, but its manifest has 1; allowed: equal"),
        ("- careful", "- carefull", "its manifest names the opponent carefull; allowed: "),
        ("seats:\n- A\n- B", "seats: [A, A]", "seats: got A, A; allowed: each once"),
        ("opponents:\n- careful", "opponents: []", "for 2 seats; allowed: one or more of random, first-legal"),
        ("algorithmic: {}", "algorithmic: {nope: 1}", "evaluation, algorithmic: nope: not a metric of the scenario"),
        ("algorithmic: {}", "algorithmic: {expected_return: 1}", "expected_return has no bounds (unit: points)"),
        ("algorithmic: {}", "algorithmic: {show_rate: 1}", "show_rate has no better"),
        (
            "severities: {}",
            "severities: {odd: high}",
            "severities: odd: not a flag of the scenario; allowed: forfeit, turn_limit",
        ),
    ],
)
def test_a_manifest_with_a_fault_is_reported(checkout: Path, old: str, new: str, told: str) -> None:
    change(checkout, old, new)
    (fault,) = faults(checkout)
    assert told in fault


def test_a_folder_without_scenarios_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no scenario; allowed: a folder with data/scenarios/<league>/<scenario>.yaml"):
        check_packs(tmp_path)


def test_every_shipped_scenario_is_whole() -> None:
    found = check_packs(ROOT)
    assert len(found) >= 5
    assert {one.name: one.faults for one in found if one.faults} == {}
