"""Episodes: who is asked what, what happens to texts that are no moves, that what was played can be played again, and how it ends."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import pytest

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import GameEnding, GameTrace
from dtef_pipeline.games.episode import GameEpisode, LeaguePlan, play_baselines, replay
from dtef_pipeline.games.episode_items import GameItem
from dtef_pipeline.games.episode_rows import count_seat, iterate_turn_rows
from dtef_pipeline.games.game_in_play import (
    GameInPlay,
    build_opening_messages,
    decode_trace,
    encode_trace,
    hash_trace,
    replace_first_observations,
)
from dtef_pipeline.games.manifest import read_manifests
from dtef_pipeline.games.packs import Pack, pack
from tests.conftest import ROOT
from tests.dtef_pipeline.games.test_every_scenario import every_pack, situations
from tests.made.made_games import MODEL_A, MODEL_B, PERSONA, baseline, model_player, played_with, response_to, show_pack

PACK = show_pack()


def asked(*texts: str, seat: int = 0, **changed: object) -> tuple[GameEpisode, list[tuple[str, ...]], GameTrace]:
    """An episode of a model against a baseline that waits: the episode, what was sent each time, and the trace."""
    players = (model_player(), baseline("waits")) if seat == 0 else (baseline("waits"), model_player())
    episode = GameEpisode(show_pack(**changed), 7, players)
    requests = played_with(episode, texts)
    return episode, [tuple(message.text for message in one.messages) for one in requests], episode.trace()


def test_a_model_is_asked_with_its_own_conversation_and_the_opponent_plays_in_between() -> None:
    _, sent, trace = asked("I look.\nACTION: wait", "ACTION: show")
    assert [len(one) for one in sent] == [2, 4]
    assert sent[1][:2] == sent[0]
    assert sent[1][2] == "I look.\nACTION: wait"
    assert sent[1][3].endswith("Said so far: wait, wait.")
    assert [(move.seat, move.command) for move in trace.moves] == [(0, "wait"), (1, "wait"), (0, "show")]
    assert trace.result is not None


def test_a_move_keeps_the_plan_and_what_the_game_answered() -> None:
    _, sent, trace = asked("<think>hm</think>I look.\nACTION: wait", "ACTION: show")
    first, other, last = trace.moves
    assert (first.plan, first.reaction) == ("I look.", sent[1][3])
    assert (other.text, other.plan, other.reaction) == (None, "", "")
    assert last.reaction.startswith("The game is over: ")


def test_a_text_that_is_no_move_changes_nothing_and_the_player_is_reported_with_the_reason() -> None:
    _, sent, trace = asked("ACTION: fly", "ACTION: wait")
    assert sent[1][:2] == sent[0]
    assert "fly is no command here." in sent[1][3]
    assert "End with a line ACTION" in sent[1][3]
    first, second, *_ = trace.moves
    assert (first.command, first.turn, second.command, second.turn) == (None, 0, "wait", 0)
    assert first.reaction == sent[1][3]


def test_after_the_last_text_that_is_no_move_the_seat_forfeits() -> None:
    episode, sent, trace = asked("?", "I refuse", "fly", "ACTION: show")
    assert len(sent) == 3
    assert trace.result is not None
    assert (trace.result.rewards, trace.result.flags) == ((-1.0, 1.0), ("forfeit",))
    assert "fly is no command here." in trace.moves[-1].reaction
    counts = count_seat(trace, 0)
    assert counts == {"n_turns": 1, "illegal": 2, "unparsed": 1, "refused": 1, "forfeits": 1, "defaults": 0}
    assert count_seat(trace, 1)["forfeits"] == 0
    assert episode.next([]) is not None


def test_where_the_manifest_says_so_a_command_is_played_for_the_seat_and_it_is_reported() -> None:
    _, sent, trace = asked("fly", "ACTION: show", on_illegal="default", retries=0)
    assert "This was played for you: wait" in sent[1][3]
    assert "Said so far: wait, wait." in sent[1][3]
    illegal, played, _, _ = trace.moves
    assert (illegal.turn, played.turn, played.command, played.by_default, played.text) == (0, 0, "wait", True, None)
    assert count_seat(trace, 0)["defaults"] == 1
    assert illegal.reaction == sent[1][3]


def test_retries_count_again_in_each_turn() -> None:
    _, sent, trace = asked("fly", "wait", "fly", "wait", "fly", "show", retries=1)
    assert len(sent) == 6
    assert trace.result is not None
    assert trace.result.flags == ()


def test_the_turn_limit_ends_an_episode() -> None:
    trace = play_baselines(PACK, 7, (baseline("waits"), baseline("waits")))
    assert len(trace.moves) == 8
    assert trace.result is not None
    assert (trace.result.outcomes, trace.result.flags) == (("draw", "draw"), ("turn_limit",))


def test_legal_commands_are_listed_only_where_the_manifest_says_so() -> None:
    assert "Legal commands" not in asked()[1][0][1]
    assert asked(show_legal=True)[1][0][1].endswith("Legal commands: wait, show")


def test_the_same_history_always_gives_the_same_request() -> None:
    players = (model_player(), model_player(MODEL_B, PERSONA))
    episode = GameEpisode(PACK, 7, players)
    history = []
    keys = []
    for text in ("wait", "fly", "wait", "wait"):
        request = episode.next(history)
        assert request is not None
        keys.append(request.key)
        history.append(response_to(request, text))
    for end in (0, 3, 1, 4, 2, 2):
        again, fresh = episode.next(history[:end]), GameEpisode(PACK, 7, players).next(history[:end])
        assert again is not None
        assert fresh is not None
        assert again == fresh
        assert end == 4 or again.key == keys[end]
    other = [response_to(episode.next([]), "show")]  # type: ignore[arg-type]
    assert episode.next(other) is None


def test_two_models_each_see_their_own_texts_alone() -> None:
    episode = GameEpisode(PACK, 7, (model_player(), model_player(MODEL_B, PERSONA)), draw=3, snapshot="s")
    requests = played_with(episode, ["secret of A\nwait", "secret of B\nwait", "wait"])
    assert [request.model.name for request in requests] == ["alpha", "beta", "alpha", "beta"]
    assert not any("secret of B" in message.text for message in requests[2].messages)
    assert not any("secret of A" in message.text for message in requests[3].messages)
    assert requests[1].messages[0].text.startswith("You never hurry.")
    assert {(request.draw, request.snapshot) for request in requests} == {(3, "s")}


def test_opening_messages_are_those_of_the_first_request_and_a_baseline_has_none() -> None:
    player = model_player(persona=PERSONA)
    request = GameEpisode(PACK, 7, (player, baseline("waits"))).next([])
    assert request is not None
    assert build_opening_messages(PACK, 7, player, 0) == request.messages
    with pytest.raises(ConfigError, match=r"baseline/waits: .*; allowed: a model"):
        build_opening_messages(PACK, 7, baseline("waits"), 0)


def test_a_trace_finished_or_not_is_the_same_after_json_and_after_a_replay() -> None:
    _, _, trace = asked("fly", "I wait.\nwait", "\ud83d odd\nwait", "show", on_illegal="default")
    assert decode_trace(encode_trace(trace)) == trace
    again = replay(trace, show_pack(on_illegal="default"), 7)
    assert encode_trace(again).encode() == encode_trace(trace).encode()
    assert hash_trace(again) == hash_trace(trace)
    for texts in ((), ("wait",), ("wait", "fly")):
        _, _, trace = asked(*texts)
        assert trace.result is None
        assert trace.metric_counts == ()
        assert encode_trace(replay(trace, PACK, 7)) == encode_trace(trace)


def test_a_replay_of_another_game_is_refused() -> None:
    _, _, trace = asked("wait", "show", seat=1)
    reversed_seats = GameTrace(trace.moves[1:], trace.result)
    with pytest.raises(ValueError, match="turn 1: the trace has seat 1 move, the game seat 0"):
        replay(reversed_seats, PACK, 7)


def test_baselines_of_a_seed_always_play_alike_and_count_no_texts() -> None:
    players = (baseline("random"), baseline("first-legal"))
    first, second = (play_baselines(PACK, 3, players) for _ in range(2))
    assert hash_trace(first) == hash_trace(second)
    assert all(move.text is None for move in first.moves)
    assert GameEpisode(PACK, 3, players).trace() == first
    assert GameEpisode(PACK, 3, players).next([]) is None


def test_players_that_do_not_fit_the_scenario_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"made/show-cards: got 1 players; allowed: 2, one per seat \(A, B\)"):
        GameEpisode(PACK, 1, (model_player(),))
    with pytest.raises(ConfigError, match=r"baseline/carefull: made/show-cards .*; allowed: .*careful"):
        GameEpisode(PACK, 1, (model_player(), baseline("carefull")))
    with pytest.raises(ConfigError, match=r"alpha: .*allowed: only baselines"):
        play_baselines(PACK, 1, (model_player(), baseline("careful")))


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


def test_who_begins_saw_what_is_stored_and_what_cannot_be_played_again_is_not_shown() -> None:
    first, _ = row(0, "check", "check")
    assert replace_first_observations([first, first | {"trace": None}], {}) == [first, first | {"trace": None}]
    second, _ = row(1, "check", "check")
    other, _ = row(1, "check", "check", version=99)
    assert replace_first_observations([second], {}) == replace_first_observations([other], MANIFESTS) == []
    assert replace_first_observations([second | {"trace": second["trace"].replace('"check"', '"chuck"')}], MANIFESTS) == []


STORED = {
    ("made/show-cards", 1): ("9191601242644647", "6627a0a965ae392ea18ba9ca7b4a06a1"),
    ("negotiation/allocation", 1): ("54eb8d011dc43c07", "638e5716cc80b65f5b5be70f51318abe"),
    ("poker/kuhn", 1): ("f4d6754a3d3ee261", "58c1877709930409d445d54567b55370"),
    ("poker/leduc", 1): ("0224a21b4bdae63f", "a47a0ba7f1bcede3bced2f5408332c27"),
    ("poker/limit-holdem", 1): ("ad173de25a96518f", "7a7bfe57e591a9b8594c6da1416958c0"),
    ("solitaire/thirteen", 1): ("259ae60e990b8c59", "51fcfdd0a19c6bc773aaa6b8c23e4dc5"),
}
"""Of one episode per scenario and version, as it was before games had endings: a hash of its request keys, and its trace hash."""


def shipped(name: str) -> Pack:
    return pack(name, read_manifests(ROOT / "data" / "scenarios"))


def written(own: Pack, *texts: str, seed: int = 4) -> GameInPlay:
    game = GameInPlay(own, seed)
    for text in texts:
        game.writes(text)
    return game


def random_play(own: Pack, seed: int) -> tuple[list[str], GameInPlay]:
    """Texts of an episode in which all seats write at random, now and then what is no move; and the game."""
    rng, texts, game = random.Random(seed), list[str](), GameInPlay(own, seed)
    while (seat := game.seat) is not None:
        assert game.ending is None
        nonsense = rng.random() < 0.2
        texts.append(
            "Nothing to say.{" if nonsense else f"I think.\nACTION: {rng.choice(own.scenario.legal(game.state, seat))}"
        )
        game.writes(texts[-1])
    return texts, game


@every_pack
def test_stored_episodes_keep_their_request_keys_and_their_trace_hash(pack: Pack) -> None:
    texts, _ = random_play(pack, 4)
    episode = GameEpisode(pack, 4, tuple(model_player(MODEL_A) for _ in pack.manifest.seats))
    keys = "".join(request.key for request in played_with(episode, texts))
    now = (hashlib.sha256(keys.encode()).hexdigest()[:16], hash_trace(episode.trace()))
    assert now == STORED[pack.name, pack.manifest.version]


@every_pack
def test_what_is_shown_at_the_end_holds_nothing_that_a_seat_may_not_know(pack: Pack) -> None:
    rng = random.Random(3)
    ended = [random_play(pack, seed)[1].state for seed in range(12)]
    stopped = [state for state, _ in situations(pack, 8)]
    for state in (*ended, *stopped):
        shown = pack.scenario.ending(state).public_facts
        assert shown
        for seat in range(len(pack.manifest.seats)):
            assert all(
                pack.scenario.ending(pack.scenario.permute_hidden(state, seat, rng)).public_facts == shown for _ in range(4)
            )


@every_pack
def test_no_seat_learns_the_ending_while_it_may_still_write(pack: Pack) -> None:
    for seed in range(6):
        texts, over = random_play(pack, seed)
        assert over.ending is not None
        again, sent = GameInPlay(pack, seed), ""
        for text in texts:
            assert again.seat is not None
            sent += "\n".join(message.text for message in again.messages(again.seat))
            again.writes(text)
        assert not any(line in sent for line in (*over.ending.public_facts, *over.ending.private_facts))


def test_cards_are_shown_at_a_showdown_and_hidden_after_a_fold() -> None:
    kuhn = shipped("poker/kuhn")
    cards = "A has the king, B the queen."
    assert kuhn.scenario.encode_state(kuhn.scenario.reset(4))["cards"] == ["K", "Q"]
    pot = "Pot: 4 chips, 2 from A and 2 from B."
    assert written(kuhn, "bet", "call").ending == GameEnding((f"Showdown: {cards}", pot, "A wins 2 chips from B."))
    folded = ("B folded: no card was shown.", "Pot: 3 chips, 2 from A and 1 from B.", "A wins 1 chip from B.")
    assert written(kuhn, "bet", "fold").ending == GameEnding(folded, (cards,))
    hand = play_to_end(shipped("poker/limit-holdem"), "always-call")
    assert hand.public_facts[0].startswith("Board: Qs 8s Ad Jc Ah.")
    assert hand.public_facts[1] == "Showdown: the button has 4s 4d, the big blind has 6h Jh."
    assert hand.public_facts[-1] == "The big blind wins 2 chips from the button."
    assert hand.private_facts == ()
    leduc = play_to_end(shipped("poker/leduc"), "always-call")
    assert leduc.public_facts[0].startswith("Public card: the ")
    assert leduc.public_facts[1].startswith("Showdown: A has the ")


def play_to_end(own: Pack, name: str) -> GameEnding:
    """The ending of an episode of one baseline at all seats, seed 5."""
    game = GameInPlay(own, 5)
    for move in play_baselines(own, 5, (baseline(name),) * len(own.manifest.seats)).moves:
        game.play_command(move.command or "")
    assert game.ending is not None
    return game.ending


def test_the_referees_numbers_are_for_people_where_values_are_private_and_for_all_where_they_are_public() -> None:
    own = shipped("negotiation/allocation")
    items = own.scenario.encode_state(own.scenario.reset(4))["items"]
    offer = f'{{"propose": {{"A": ["{items[0]}"], "B": {str(items[1:]).replace(chr(39), chr(34))}}}}}'
    ended = written(own, offer, '{"accept": true}').ending
    assert ended is not None
    assert ended.public_facts == (f"All agree: A gets {items[0]}; B gets {', '.join(items[1:])}.",)
    told = "\n".join(ended.private_facts)
    assert all(word in told for word in ("Worth to A: ", "envy ", "(EF1)", "Jain's index ", "Nash welfare ", "efficiency "))
    public = own.manifest.model_copy(update={"settings": {"values": "public"}})
    open_end = written(pack(own.name, {own.name: public}), offer, '{"accept": true}').ending
    assert open_end == GameEnding((*ended.public_facts, *ended.private_facts))


def test_a_solitaire_ends_with_its_cards_home_and_people_are_reported_the_fewest_commands() -> None:
    ended = written(shipped("solitaire/thirteen"), "draw", "resign", seed=1).ending
    assert ended is not None
    assert ended.public_facts == ("Cards on the foundation: 0 of 13.", "Commands: 1 of 60. Hints: 0.")
    assert ended.private_facts == ("The fewest commands that solve this deal: 23.",)


def test_the_last_reaction_of_each_model_has_the_ending_and_no_other_has_it() -> None:
    own = show_pack()
    plan = LeaguePlan(own, [GameItem(7, 0, "beta")], [model_player()], {"beta": model_player()}, 1, "base")
    (match,) = plan.matches()
    episode, history = plan.episode(match), []
    for text in ("fly", "ACTION: wait", "ACTION: wait", "fly", "ACTION: show"):
        request = episode.next(history)
        assert request is not None
        history.append(response_to(request, text))
    assert episode.next(history) is None
    rows = list(iterate_turn_rows(plan, match, episode, episode.trace(), EpisodeResult(history)))
    has = ["3 words were said." in row["reaction"] for row in rows]
    assert has == [False, False, True, False, True]
    assert rows[2]["reaction"].startswith("The game is over: ")
    assert not any("A had" in row["reaction"] for row in rows)
