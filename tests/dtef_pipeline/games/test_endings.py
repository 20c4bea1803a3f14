"""What is said when a game is over: to whom, in which words, and that nothing that is sent to a model changed by it."""

from __future__ import annotations

import hashlib
import random

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.games.contract import GameEnding
from dtef_pipeline.games.episode import GameEpisode, LeaguePlan, play_baselines
from dtef_pipeline.games.episode_items import GameItem
from dtef_pipeline.games.episode_rows import iterate_turn_rows
from dtef_pipeline.games.game_in_play import GameInPlay, hash_trace
from dtef_pipeline.games.manifest import read_manifests
from dtef_pipeline.games.packs import Pack, pack
from tests.conftest import ROOT
from tests.dtef_pipeline.games.test_every_scenario import every_pack, situations
from tests.made.made_games import MODEL_A, baseline, model_player, played_with, response_to, show_pack

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
