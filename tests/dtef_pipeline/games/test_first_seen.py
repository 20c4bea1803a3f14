"""What reviewers read as the prompt of an episode is what its player saw, moves of the opponent before it included."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.games.game_in_play import GameInPlay, encode_trace, replace_first_observations
from dtef_pipeline.games.manifest import read_manifests
from dtef_pipeline.games.packs import pack
from tests.conftest import ROOT

MANIFESTS = read_manifests(ROOT / "data" / "scenarios")
KUHN = pack("poker/kuhn", MANIFESTS)


def row(seat: int, *commands: str, version: int = KUHN.manifest.version) -> tuple[dict[str, Any], str]:
    """A row of an episode in which these commands were played, and what the seat was told in its first turn."""
    game, seen = GameInPlay(KUHN, 17), ""
    for command in commands:
        if game.seat == seat and not seen:
            seen = game.messages(seat)[-1].text
        game.play_command(command)
    told = [{"role": "user", "text": "The rules."}, {"role": "user", "text": "As if it began."}]
    of = {"first": "poker", "second": "kuhn", "item_id": "i", "messages": told, "version": version}
    return of | {"seat": seat, "cluster": "17", "trace": encode_trace(game.trace())}, seen


def test_the_second_seat_is_shown_with_what_the_first_did() -> None:
    # Its prompt was what it would have seen had it begun.
    checked, saw_check = row(1, "check", "check")
    bet, saw_bet = row(1, "bet", "fold")
    again, _ = row(1, "check", "bet", "fold")
    assert saw_check != saw_bet
    found = replace_first_observations([checked, bet, again], MANIFESTS)
    assert [one["messages"][-1]["text"] for one in found] == [saw_check, saw_bet, saw_check]
    assert found[0]["messages"][0]["text"] == "The rules."
    assert found[0]["item_id"] == found[2]["item_id"] != found[1]["item_id"]


def test_who_begins_saw_what_is_stored() -> None:
    first, _ = row(0, "check", "check")
    assert replace_first_observations([first, first | {"trace": None}], {}) == [first, first | {"trace": None}]


def test_what_cannot_be_played_again_is_not_shown() -> None:
    second, _ = row(1, "check", "check")
    other, _ = row(1, "check", "check", version=99)
    assert replace_first_observations([second], {}) == replace_first_observations([other], MANIFESTS) == []
    assert replace_first_observations([second | {"trace": second["trace"].replace('"check"', '"chuck"')}], MANIFESTS) == []
