"""How people read episodes: ragged lines of rules run on, boards keep their lines, and the game asks nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.games.game_catalog import load_known_scenarios
from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.game_in_play import write_again_text, write_system_text, write_turn_text
from dtef_pipeline.games.game_pairs import REPEATED_PARAGRAPHS, format_pair, run_on
from dtef_pipeline.games.packs import Pack, find_pack
from dtef_pipeline.preference.pairing import BlindedPair
from resources.settings import Settings

SHIPPED = ("kuhn", "leduc", "limit-holdem", "thirteen", "allocation")


def pack_of(name: str) -> Pack:
    known = load_known_scenarios(Settings.read_environment())
    found = find_pack(next(one for one in known if one.endswith(f"/{name}")), known)
    assert found is not None
    return found


@pytest.mark.parametrize("name", SHIPPED)
def test_what_a_seat_sees_keeps_its_lines(name: str) -> None:
    pack = pack_of(name)
    seen = write_turn_text(pack, pack.scenario.reset(1), 0)
    assert run_on(seen) == seen


def test_lines_of_rules_that_were_broken_for_their_length_run_on() -> None:
    """Reviewers read the line breaks of the scenario's file."""
    read = run_on(write_system_text(pack_of("limit-holdem").manifest, 0, None))
    assert "on average over many hands. Each player begins" in read
    assert "the command is one word: fold, check, call" in read
    assert "You must not:\n- ask for advice, or for other cards\n- claim cards" in read
    offers = run_on(write_system_text(pack_of("allocation").manifest, 0, None))
    assert 'such as\n{"propose"' in offers


def test_a_board_a_list_and_words_of_another_party_keep_their_lines() -> None:
    long = "a line that is long enough to have been broken for its length alone, and goes on and on and on"
    for after in ("- an item", "Pot: 3 chips", "B > I offer the boat", "| K | Q |", '{"accept": true}', ""):
        assert run_on(f"{long}\n{after}") == f"{long}\n{after}"
    for before in (f"- {long}", f"B > {long}", f"Actions so far: {long}", "K  Q  7"):
        assert run_on(f"{before}\nthen more") == f"{before}\nthen more"
    assert run_on(f"{long}\nthen more") == f"{long} then more"


def test_what_the_game_asks_again_word_for_word_is_left_out_and_what_players_write_is_not() -> None:
    manifest = pack_of("limit-holdem").manifest
    again = write_again_text(Illegal("no line ACTION"), manifest)
    prompt = write_system_text(manifest, 0, None)
    said = f"Player: x\n\n{manifest.reply_format.strip()}\n\nGame: {again}\n\nPlayer: ACTION: call"
    read = format_pair(BlindedPair("1", prompt, said, "Player: ACTION: fold"))
    assert read.run_a.count("You may think first") == 1, "the player's own words stay"
    assert (
        f"Game: Nothing was played: no line ACTION\n\nIt is still your turn.\n\n{REPEATED_PARAGRAPHS}\n\nPlayer:" in read.run_a
    )
    assert read.run_b == "Player: ACTION: fold"
    # Without the rules above it, the first request stays.
    twice = f"Player: x\n\nGame: {again}\n\nPlayer: y\n\nGame: {again}"
    alone = format_pair(BlindedPair("1", "cards", twice, "")).run_a
    assert (alone.count("You may think first"), alone.count(REPEATED_PARAGRAPHS)) == (1, 1)


@given(
    st.lists(st.sampled_from(["a", " ", "\n", "\n\n", ":", "{", "word " * 20, "Game: ", "Player: "]), max_size=60).map("".join)
)
def test_no_text_ends_the_layout_or_loses_a_word_outside_the_game(text: str) -> None:
    read = format_pair(BlindedPair("1", text, text, f"Player: {text}".replace("Game: ", "")))
    assert read.prompt.split() == text.split()
    assert read.run_b == f"Player: {text}".replace("Game: ", "")
