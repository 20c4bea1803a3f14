"""The shared reader of commands: by hand, over texts made of commands and noise, and over any text at all."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.reading import (
    NO_COMMAND,
    TWO_COMMANDS,
    find_action,
    is_declining,
    normalise_cards,
    read_command,
    strip_command,
)
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)

BETTING = ("fold", "call", "raise")
MOVES = ("move 1->foundation", "move 12->c1", "draw")


@pytest.mark.parametrize(("text", "command"), CASES["commands"])
def test_the_last_action_counts_then_the_last_line_then_the_only_command(text: str, command: str) -> None:
    assert read_command(text, BETTING) == command


@pytest.mark.parametrize(("text", "reason"), CASES["unparsed"])
def test_a_text_without_one_command_is_unparsed(text: str, reason: str) -> None:
    assert read_command(text, BETTING) == Illegal(reason, "unparsed")


@pytest.mark.parametrize("text", CASES["illegal"])
def test_an_action_that_is_illegal_is_not_replaced_by_another_command_of_the_text(text: str) -> None:
    found = read_command(text, BETTING)
    assert isinstance(found, Illegal)
    assert found.kind == "illegal"
    assert found.reason.startswith("not a legal command now: ")


def test_the_echo_of_an_illegal_action_is_short_and_harmless() -> None:
    found = read_command("ACTION: \x1b[31m" + "x" * 10_000, BETTING)
    assert isinstance(found, Illegal)
    assert found.reason == "not a legal command now: \\x1b[31m" + "x" * 52 + "..."


@pytest.mark.parametrize("text", CASES["declining"])
def test_who_declines_to_play_has_refused(text: str) -> None:
    assert read_command(text, BETTING) == Illegal("the reply declines to play", "refused")


@pytest.mark.parametrize("text", CASES["doubting"])
def test_doubts_about_a_move_are_no_refusal(text: str) -> None:
    assert not is_declining(text)
    assert read_command(text, BETTING) == Illegal(NO_COMMAND, "unparsed")


def test_who_declines_and_still_names_a_command_has_moved() -> None:
    assert read_command("I would rather not play this. Fine: ACTION: fold", BETTING) == "fold"


@pytest.mark.parametrize("text", CASES["arrows"])
def test_arrows_spaces_and_case_do_not_matter(text: str) -> None:
    assert read_command(text, MOVES) == "move 12->c1"


@pytest.mark.parametrize("text", CASES["longer"])
def test_a_part_of_a_longer_command_is_none(text: str) -> None:
    assert isinstance(read_command(text, MOVES), Illegal)


def test_a_number_that_goes_on_is_another_number_and_nothing_is_read_without_legal_commands() -> None:
    bids = ("bid 5", "bid 50")
    assert read_command("ACTION: bid 50", bids) == "bid 50"
    assert read_command("I bid 50.", bids) == "bid 50"
    assert read_command("I bid 5,0 or so", bids) == Illegal(NO_COMMAND, "unparsed")
    assert isinstance(read_command("ACTION: bid 50.5", bids), Illegal)
    assert read_command("call", ()) == Illegal(NO_COMMAND, "unparsed")


def test_commands_that_must_stand_alone_are_not_read_out_of_a_sentence() -> None:
    assert read_command("I will not fold, I call", BETTING, single=("fold",)) == "call"
    assert read_command("I will not fold", BETTING, single=("fold",)) == Illegal(NO_COMMAND, "unparsed")
    assert read_command("So be it.\nfold", BETTING, single=("fold",)) == "fold"
    assert read_command("ACTION: fold", BETTING, single=("fold",)) == "fold"


@pytest.mark.parametrize(("text", "said"), CASES["spoken"])
def test_a_spoken_action_is_handed_on_as_it_was_written(text: str, said: str | None) -> None:
    assert find_action(text) == said


@pytest.mark.parametrize("said", CASES["decorated"])
def test_a_bare_command_has_nothing_around_it(said: str) -> None:
    assert strip_command(said) == "call"


@pytest.mark.parametrize("text", CASES["ten_of_spades"])
def test_every_spelling_of_a_card_is_one(text: str) -> None:
    assert normalise_cards(text) == "Ts"
    assert normalise_cards(f"[{text}], {text}") == "[Ts], Ts"


@pytest.mark.parametrize("text", CASES["no_cards"])
def test_what_is_no_card_stays(text: str) -> None:
    assert normalise_cards(text) == text


DECORATED = st.sampled_from(["{}", "**{}**", "`{}`", "{}.", " {} ", "<{}>", "*{}*!", "“{}”"])
NOISE = st.text(alphabet=st.sampled_from("xyz ,.;\n*_`#>-0123"), max_size=40)


@given(
    st.lists(st.sampled_from(BETTING), min_size=1, max_size=5),
    DECORATED,
    st.sampled_from(["ACTION: ", "Action:", "**ACTION:** "]),
    NOISE,
)
def test_whatever_stands_around_the_last_action_line_counts(commands: list[str], form: str, mark: str, noise: str) -> None:
    text = f"{noise}\n" + "\n".join(mark + form.format(command.upper()) for command in commands) + f"\n{noise}"
    assert read_command(text, BETTING) == commands[-1]


@given(st.lists(st.sampled_from((*BETTING, "hm", "so", "recall")), max_size=8))
def test_in_prose_the_only_command_counts_and_two_are_none(words: list[str]) -> None:
    found = read_command("I say: " + " ".join(words) + " and so on", BETTING)
    named = {word for word in words if word in BETTING}
    if len(named) == 1:
        assert found == named.pop()
    else:
        assert found == Illegal(TWO_COMMANDS if named else NO_COMMAND, "unparsed")


@pytest.mark.parametrize("unit", ["ACTION: ", "call or fold ", "cannot play the ", "<think>", "----", "10 of "])
def test_a_text_eight_times_as_long_takes_no_more_than_its_share_of_time(unit: str) -> None:
    def seconds(length: int) -> float:
        text, began = (unit * length)[:length], time.process_time()
        read_command(text, BETTING)
        return time.process_time() - began

    short = min(seconds(20_000) for _ in range(3))
    long = min(seconds(160_000) for _ in range(3))  # of three: one may hold a collection of garbage
    assert long < 8 * 5 * short + 0.05
