"""Lines of people at the terminal: choices by number, words in a negotiation, and commands with semicolons in JSON."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.cli.games.games_play import format_choices, parse_typed_line, split_commands
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import SpokenScenario
from tests.dtef_pipeline.cli.commands import ok
from tests.made.made_games import ShowCards, an_allocation
from tests.made.shared_cases import cases_beside
from tests.strict_json import strict

CASES = cases_beside(__file__)
SPOKEN = ("games", "play", "allocation", "--players", "human,baseline/silent", "--json")


def an_allocation_of_seed_1() -> tuple[Any, Any]:
    game = an_allocation()
    return game, game.reset(1)


@pytest.mark.parametrize(("text", "commands"), CASES["a_semicolon_within_braces_or_quotes_parts_no_commands"])
def test_a_semicolon_within_braces_or_quotes_parts_no_commands(text: str, commands: list[str]) -> None:
    assert split_commands(text) == commands


@given(st.text(st.sampled_from('{};" \\a'), max_size=40))
def test_nothing_but_semicolons_and_spaces_is_lost_from_commands(text: str) -> None:
    assert "".join("".join(split_commands(text)).split()).replace(";", "") == "".join(text.split()).replace(";", "")


@pytest.mark.parametrize("piece", ['"', "{", '{"a', '"\\'])
def test_commands_of_any_length_are_parted_in_no_time(piece: str) -> None:
    started = time.process_time()
    split_commands(piece * 20_000)
    assert time.process_time() - started < 3


def test_a_question_mark_lists_one_choice_per_line_as_people_read_it() -> None:
    game, state = an_allocation_of_seed_1()
    lines = format_choices(game, game.legal(state, 0))
    assert isinstance(game, SpokenScenario)
    assert lines[0] == "   1  A: boat, clock, drum, lamp; B: nothing"
    assert lines[-1] == "  17  say nothing"
    assert len(set(lines)) == len(lines) == 17
    assert format_choices(ShowCards(), ("wait", "show")) == ["  1  wait", "  2  show"]


def test_many_choices_are_listed_in_part() -> None:
    legal = tuple(f"go {number} steps" for number in range(150))
    lines = format_choices(ShowCards(), legal)
    assert len(lines) == 101
    assert lines[-1] == "  and 50 other choices, up to 150  go 149 steps"


def test_each_choice_may_be_typed_by_its_number_or_as_it_is_listed() -> None:
    game, state = an_allocation_of_seed_1()
    legal = game.legal(state, 0)
    for number, command in enumerate(legal, 1):
        for typed in (str(number), f"Yours, I hope => {number}", game.describe_choice(command).upper()):
            read = game.read(parse_typed_line(typed, game, legal), state, 0)
            assert read == command if "=>" not in typed else '"words":"Yours, I hope"' in read, typed
    assert parse_typed_line("2", ShowCards(), ("wait", "show")) == "ACTION: show"
    with pytest.raises(ConfigError, match="there is no choice 3; the choices are 1 to 2"):
        parse_typed_line("3", ShowCards(), ("wait", "show"))


def test_a_person_talks_in_words_and_then_offers() -> None:
    """A person could not speak in a negotiation: `ACTION:` was put before every line, and words were no proposal."""
    found = strict(ok(*SPOKEN, stdin="?\nI like drums; you?\nYes => nothing\nDrums for me => 8\nquit\n"))
    words = [one["words"] for one in found["state"]["messages"]]
    assert found["illegal"] == 0
    assert words == ["I like drums; you?", "", "Drums for me", ""]
    assert found["state"]["messages"][2]["propose"] == {"A": ["boat"], "B": ["clock", "drum", "lamp"]}


def test_commands_of_a_negotiation_are_messages() -> None:
    offer = '{"propose": {"A": [], "B": ["boat", "clock", "drum", "lamp"]}, "words": "all; yours"}'
    words = ("--players", "baseline/silent", "--commands", f"Hello. You first?; {offer}", "--json")
    found = strict(ok("games", "play", "allocation", *words))
    assert [one["words"] for one in found["state"]["messages"]] == ["Hello. You first?", "", "all; yours", ""]
    assert found["illegal"] == 0
