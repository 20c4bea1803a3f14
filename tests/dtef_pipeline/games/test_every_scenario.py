"""What holds for every scenario that is shipped, and for a made-up one: nothing leaks, nothing is random but the seed, and no text breaks it.

A scenario may name baselines that look at what their seat cannot see in an attribute `oracles`: the test of information leaves these out.
"""

from __future__ import annotations

import random
from functools import cache
from math import isfinite
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Illegal, list_baselines, make_baseline_rng
from dtef_pipeline.games.episode import GameEpisode, replay
from dtef_pipeline.games.game_in_play import GameInPlay, build_opening_messages, decode_trace, encode_trace, hash_trace
from dtef_pipeline.games.manifest import read_manifests
from dtef_pipeline.games.packs import Pack, adapters
from dtef_pipeline.games.personas import Persona, Player
from dtef_pipeline.text.well_formed import replace_surrogates
from tests.conftest import ROOT
from tests.made.made_games import MODEL_A, model_player, played_with, show_pack

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
def test_rewards_are_of_every_seat_and_sum_to_nothing_where_the_scenario_says_so(pack: Pack) -> None:
    seats = range(len(pack.manifest.seats))
    ends = [trace.result for seed in SEEDS if (trace := random_texts(pack, seed, fools=False).trace())]
    ends += [pack.scenario.stop_episode(state, seat) for state, _ in situations(pack, 6) for seat in (None, *seats)]
    for end in ends:
        assert end is not None
        assert len(end.rewards) == len(end.outcomes) == len(seats)
        assert all(map(isfinite, end.rewards))
        assert not pack.scenario.zero_sum or sum(end.rewards) == pytest.approx(0)


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
