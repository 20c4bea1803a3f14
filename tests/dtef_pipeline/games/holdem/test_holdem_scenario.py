"""Hold'em: the betting is pokerkit's; what a seat is told, how texts are read, what is counted, and how baselines fare."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from statistics import stdev

import pytest
from pokerkit import Automation, BettingStructure, Deck, Mode, Opening, StandardHighHand, State, Street

from dtef_pipeline.games.contract import Count, Illegal
from dtef_pipeline.games.holdem.limit_holdem import (
    BET_SIZES,
    BETS_ALLOWED,
    BLINDS,
    HOLDEM_RANKS,
    SORTED_DECK,
    HoldemAction,
    HoldemHand,
    LimitHoldem,
    apply_command,
    compare_hands,
    compute_nets,
    count_outs,
    find_median_lead,
    has_made_hand,
    is_weak_hand,
    list_allowed_commands,
    load_starting_leads,
    name_starting_hand,
    normalise_betting_command,
    of_manifest,
    rate_starting_hand,
    shuffle_deck,
)
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.games.small_poker import Cards
from tests.conftest import ROOT
from tests.made.made_games import apply_commands, play_out
from tests.made.shared_cases import cases, cases_beside

CASES = cases_beside(__file__)

MANIFEST = ROOT / "data" / "scenarios" / "poker" / "limit-holdem.yaml"


@cache
def limit_holdem() -> LimitHoldem:
    return of_manifest(read_manifest(MANIFEST))


def won(seed: int, *baselines: str) -> tuple[float, ...]:
    """Net chips by seat."""
    result = limit_holdem().result(play_out(limit_holdem(), seed, *baselines))
    assert result is not None
    return result.rewards


def with_cards(own: str, other: str, board: str) -> HoldemHand:
    """A hand with these cards: seat 0 has the first two."""
    first, second, five = (tuple(cards.split()) for cards in (own, other, board))
    scenario = limit_holdem()
    dealt = (first[0], second[0], first[1], second[1], *five)
    rest = tuple(card for card in scenario.reset(1).deck if card not in dealt)
    return HoldemHand(dealt + rest)


def after_commands(state: HoldemHand, commands: Sequence[str]) -> HoldemHand:
    return apply_commands(limit_holdem(), state, *commands)


def walk(seed: int, choose: Callable[[HoldemHand, random.Random], str] | None = None) -> list[HoldemHand]:
    """All states of one hand, from the first to the last, with commands at random."""
    rng, scenario = random.Random(seed), limit_holdem()
    states = [scenario.reset(seed)]
    while (seat := scenario.seat_to_move(states[-1])) is not None:
        command = choose(states[-1], rng) if choose else rng.choice(scenario.legal(states[-1], seat))
        states.append(scenario.step(states[-1], seat, command))
    return states


STACK = 1000
HOLE_CARDS, BOARD_CARDS = ((False, False), (), (), ()), (0, 3, 1, 1)
SELDOM_FOLDS = {"fold": 1, "check": 4, "call": 6, "bet": 6, "raise": 6}
AUTOMATIC = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.BLIND_OR_STRADDLE_POSTING,
    Automation.HOLE_CARDS_SHOWING_OR_MUCKING,
    Automation.HAND_KILLING,
    Automation.CHIPS_PUSHING,
    Automation.CHIPS_PULLING,
)


def pokerkit_hand(hand: HoldemHand) -> State:
    """The same deal at pokerkit's table, where player 0 is the big blind."""
    by_street = zip(HOLE_CARDS, BOARD_CARDS, BET_SIZES, (BETS_ALLOWED - 1, *[BETS_ALLOWED] * 3), strict=True)
    streets = tuple(Street(False, hole, board, False, Opening.POSITION, size, bets) for hole, board, size, bets in by_street)
    rules = (Deck.STANDARD, (StandardHighHand,), streets, BettingStructure.FIXED_LIMIT)
    state = State(AUTOMATIC, *rules, True, 0, BLINDS, 0, STACK, 2, mode=Mode.TOURNAMENT)
    for seat in (1, 0):
        state.deal_hole("".join((hand.deck[seat], hand.deck[seat + 2])))
    return state


def pokerkit_allows(state: State) -> tuple[str, ...]:
    if state.actor_index is None:
        return ()
    due = max(state.bets) - state.bets[state.actor_index]
    found = (("fold",) if state.can_fold() else ()) + (("call" if due else "check",) if state.can_check_or_call() else ())
    if not state.can_complete_bet_or_raise_to():
        return found
    assert state.min_completion_betting_or_raising_to_amount == state.max_completion_betting_or_raising_to_amount
    return (*found, "raise" if any(state.bets) else "bet")


def pokerkit_does(state: State, command: str, hand: HoldemHand) -> None:
    """One command, and the cards of the next street, if one begins."""
    {"fold": state.fold, "check": state.check_or_call, "call": state.check_or_call}.get(
        command, state.complete_bet_or_raise_to
    )()
    if state.can_deal_board():
        lying = len(tuple(state.get_board_cards(0)))
        state.deal_board("".join(hand.deck[4 + lying : 4 + lying + BOARD_CARDS[state.street_index or 0]]))


def same_at_both_tables(seed: int, rng: random.Random) -> HoldemHand:
    """A random hand played at both tables, which agree in every state on whose turn it is, what is allowed, the chips and the board."""
    hand = limit_holdem().reset(seed)
    table = pokerkit_hand(hand)
    while hand.turn is not None:
        assert table.actor_index == 1 - hand.turn
        assert list_allowed_commands(hand) == pokerkit_allows(table)
        assert table.stacks == [STACK - hand.stakes[1], STACK - hand.stakes[0]]
        assert "".join(map(repr, table.get_board_cards(0))) == "".join(hand.board)
        commands = list_allowed_commands(hand)
        command = rng.choices(commands, [SELDOM_FOLDS[one] for one in commands])[0]
        pokerkit_does(table, command, hand)
        hand = apply_command(hand, command)
    assert table.actor_index is None
    assert not table.status
    assert table.stacks == [STACK + compute_nets(hand)[1], STACK + compute_nets(hand)[0]]
    return hand


ROYAL = ("Ah Kh", "7c 2d", "Qh Jh Th 3s 4c")


def cards_in(text: str) -> set[str]:
    return {
        word.strip(".,")
        for word in text.split()
        if len(word.strip(".,")) == 2 and word[0] in "23456789TJQKA" and word[1] in "cdhs"
    }


class TestWhatASeatIsTold:
    def test_the_whole_text_of_a_turn(self) -> None:
        hand = after_commands(with_cards(*ROYAL), ["raise", "call", "bet"])
        assert limit_holdem().observation(hand, 0) == "\n".join(
            [
                "You are the button, with the small blind: you act first before the flop and last on every later street.",
                "Your cards: Ah Kh",
                "Street: flop",
                "Board: Qh Jh Th",
                "Pot: 10 chips, 4 of them yours and 6 of the big blind",
                "Actions so far:",
                "- before the flop: you: small blind 1, the big blind: big blind 2, you: raise, the big blind: call",
                "- flop: the big blind: bet",
                "Bets on this street: 1 of at most 4, each of 2 chips",
                "To call: 2 chips",
            ]
        )

    def test_the_other_cards_are_reported_at_a_showdown_and_never_after_a_fold(self) -> None:
        scenario = limit_holdem()
        shown = scenario.observation(after_commands(with_cards(*ROYAL), ["call", *["check"] * 7]), 0)
        folded = scenario.observation(after_commands(with_cards(*ROYAL), ["raise", "fold"]), 0)
        assert "Showdown: the big blind has 7c 2d.\nThe hand is over. You win 2 chips." in shown
        assert cards_in(folded) == {"Ah", "Kh"}
        assert folded.endswith("The big blind folded.\nThe hand is over. You win 2 chips.")


class TestHowTextsAreRead:
    @pytest.mark.parametrize("text", CASES["raises"])
    def test_spellings_of_raise_are_one_command(self, text: str) -> None:
        assert normalise_betting_command(text) == "raise"

    @pytest.mark.parametrize("text", [*CASES["other"], "raise" * 100])
    def test_other_texts_are_no_command(self, text: str) -> None:
        assert normalise_betting_command(text) not in ("fold", "check", "call", "bet", "raise")

    @pytest.mark.parametrize(("before", "said", "reason"), CASES["illegal"])
    def test_an_illegal_command_is_reported_with_the_reason(self, before: list[str], said: str, reason: str) -> None:
        hand = after_commands(with_cards(*ROYAL), before)
        assert hand.turn is not None
        found = limit_holdem().read(f"Let me see.\nACTION: {said}", hand, hand.turn)
        assert isinstance(found, Illegal)
        assert (found.reason, found.kind) == (reason, "illegal")


class TestWhatIsCounted:
    def test_a_hand_by_hand(self) -> None:
        """Seat 0 raises below the median, bets an open draw, and bets again when it has missed; seat 1 calls with one ace."""
        hand = after_commands(
            with_cards("9c 8d", "Ac 2d", "7h 6s Kc 2s Qd"),
            ["raise", "call", "check", "bet", "call", "check", "check", "check", "bet", "call"],
        )
        mine, others = (dict(limit_holdem().measure_seat(hand, seat)) for seat in (0, 1))
        assert mine == {
            "bb_per_100": Count(-500),
            "showdown_win_rate": Count(0),
            "vpip": Count(1, 1),
            "aggression": Count(3, 3),
            "bluff_frequency": Count(2, 3),
        }
        assert others == {
            "bb_per_100": Count(500),
            "showdown_win_rate": Count(1),
            "vpip": Count(1, 1),
            "aggression": Count(0, 3),
            "bluff_frequency": Count(0, 0),
        }
        assert {*mine, "exploitation"} == {metric.name for metric in limit_holdem().metrics}, "exploitation compares players"

    def test_a_split_pot_is_half_a_won_showdown(self) -> None:
        hand = after_commands(with_cards("2c 3d", "2d 3c", "Ah Kh Qh Jh Th"), ["call", *["check"] * 7])
        assert [limit_holdem().measure_seat(hand, seat)["showdown_win_rate"] for seat in (0, 1)] == [Count(0.5)] * 2
        assert limit_holdem().result(hand) is not None

    def test_nothing_was_shown_down_after_a_fold(self) -> None:
        hand = apply_command(with_cards(*ROYAL), "fold")
        first, second = (limit_holdem().measure_seat(hand, seat) for seat in (0, 1))
        assert first["showdown_win_rate"].denominator == second["showdown_win_rate"].denominator == 0
        assert (first["vpip"], second["vpip"]) == (Count(0, 1), Count(0, 0))

    def test_checking_the_big_blind_puts_nothing_in(self) -> None:
        hand = after_commands(with_cards(*ROYAL), ["call", "check"])
        assert [limit_holdem().measure_seat(hand, seat)["vpip"] for seat in (0, 1)] == [Count(1, 1), Count(0, 1)]
        assert "bb_per_100" not in limit_holdem().measure_seat(hand, 0)

    def test_a_bet_is_judged_by_the_street_it_was_made_on(self) -> None:
        """The same cards are nothing on the flop, a pair on the turn."""
        commands = ["call", "check", "bet", "call", "bet", "call", "check", "check"]
        hand = after_commands(with_cards("9c 8d", "Ac 4d", "7h 6s Kc 4s Qd"), commands)
        assert [action for action in hand.actions if action.command == "bet"] == [
            HoldemAction(1, 1, "bet"),
            HoldemAction(2, 1, "bet"),
        ]
        assert limit_holdem().measure_seat(hand, 1)["bluff_frequency"] == Count(1, 2)


class TestHowItEnds:
    def test_a_seat_that_forfeits_loses_what_it_put_in_and_at_the_limit_of_turns_nobody_wins(self) -> None:
        hand = after_commands(with_cards(*ROYAL), ["raise", "call"])
        stopped, late = limit_holdem().stop_episode(hand, 1), limit_holdem().stop_episode(hand, None)
        assert (stopped.rewards, stopped.outcomes, stopped.flags) == ((4.0, -4.0), ("win", "loss"), ("forfeit",))
        assert (late.rewards, late.outcomes, late.flags) == ((0.0, 0.0), ("draw", "draw"), ("turn_limit",))

    def test_no_hand_reaches_the_limit_of_turns(self) -> None:
        def slowly(hand: HoldemHand, _: random.Random) -> str:
            """Checks first on each street, then everyone raises as often as possible."""
            wishes = (
                ("raise", "call") if hand.street == 0 else ("raise", "bet", "call") if hand.n_street_actions else ("check",)
            )
            return next(one for one in wishes if one in list_allowed_commands(hand))

        assert len(walk(1, slowly)[-1].actions) == 4 + 3 * 6
        assert read_manifest(MANIFEST).turn_limit > 4 + 3 * 6


class TestBaselines:
    @pytest.mark.thorough
    def test_playing_both_seats_narrows_what_a_raiser_wins_from_random(self) -> None:
        """Of 600 deals with other dice the raiser's chips at the button had a deviation of 10.86, the mean of both seats one of 6.77."""
        one = [won(seed, "always-raise", "random")[0] for seed in range(2400)]
        other = [won(seed, "random", "always-raise")[1] for seed in range(2400)]
        both = [(a + b) / 2 for a, b in zip(one, other, strict=True)]
        assert stdev(one) == pytest.approx(10.86, rel=0.08)
        assert stdev(both) == pytest.approx(6.77, rel=0.08)
        assert stdev(both) < stdev((a + b) / 2 for a, b in zip(one, other[1:], strict=False))

    def test_always_fold_loses_its_blinds_and_checks_where_it_can(self) -> None:
        assert won(1, "always-fold", "always-raise") == (-1, 1)
        assert won(1, "always-call", "always-fold") == won(1, "always-call", "always-call")

    @pytest.mark.parametrize(
        ("own", "first", "facing"),
        [("2c 2d", "bet", "raise"), ("Tc Ad", "bet", "raise"), ("Tc 9d", "check", "call"), ("9c 8d", "check", "fold")],
    )
    def test_tight_plays_pairs_and_high_cards(self, own: str, first: str, facing: str) -> None:
        tight = limit_holdem().baselines["tight"]
        hand = after_commands(with_cards("7h 3s", own, "Qh Jh 4c 3d 5c"), ["call", "check"])
        assert tight(hand, 1, random.Random(1)) == first
        assert tight(after_commands(hand, ["check", "bet"]), 1, random.Random(1)) == facing


HANDS = 100


def test_pokerkit_allows_the_same_and_pays_the_same_in_random_hands() -> None:
    rng = random.Random(3)
    shown = sum(same_at_both_tables(seed, rng).has_showdown for seed in range(HANDS))
    assert HANDS / 10 < shown < HANDS * 9 / 10


@pytest.mark.parametrize(
    ("commands", "command", "message"),
    [
        ([], "check", "got check; allowed: fold, call, raise"),
        ([], "bet", "got bet; allowed: fold, call, raise"),
        (["call"], "fold", "got fold; allowed: check, raise"),
        (["fold"], "call", "got call; allowed: nothing, as the hand is over"),
    ],
)
def test_commands_that_are_not_allowed_are_refused(commands: list[str], command: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        apply_command(after_commands(limit_holdem().reset(1), commands), command)


def test_decks_of_the_vectors() -> None:
    for case in cases("votes", "poker_deck"):
        assert list(shuffle_deck(case["in"]["seed"])[: case["in"]["first"]]) == case["out"], case["id"]


def test_hands_of_the_vectors() -> None:
    for case in cases("votes", "poker_hand"):
        policies = [f"always-{policy}" for policy in case["in"]["policies"].split(",")]
        hand = play_out(limit_holdem(), case["in"]["seed"], *policies)
        result = limit_holdem().result(hand)
        assert result is not None
        assert [[action.seat, action.command] for action in hand.actions] == case["out"]["actions"], case["id"]
        assert list(result.rewards) == case["out"]["net"], case["id"]


def test_comparisons_of_the_vectors() -> None:
    for case in cases("votes", "poker_compare"):
        one, other, board = (two_letters(case["in"][part]) for part in ("a", "b", "board"))
        assert compare_hands(one, other, board) == case["out"], case["id"]
        assert compare_hands(other, one, board) == -case["out"], case["id"]


def two_letters(cards: str) -> tuple[str, ...]:
    return tuple(cards[start : start + 2] for start in range(0, len(cards), 2))


def test_what_one_wins_the_other_loses_in_every_hand() -> None:
    hands = [won(seed, "random", "random") for seed in range(cases("votes", "poker_zero_sum")[0]["in"]["hands"])]
    assert all(first + second == 0 for first, second in hands)
    assert any(first for first, _ in hands)


ALL_DEALS = 2_097_572_400
"""Opponents' hands and boards for two cards: (50 over 2) x (48 over 5)."""


def cards(text: str) -> Cards:
    return tuple(text.split())


@pytest.mark.parametrize(
    ("own", "board", "is_weak", "why"),
    [
        ("2c 2d", "Ah Kh Qs", False, "a pair in the hand, however low"),
        ("Ac 7d", "Kc Kh Qs Qd 2c", True, "both pairs are the board's"),
        ("Ac 2d", "3h 4s 5c", False, "a straight from the ace"),
        ("Ac 2d", "5h 6s 7c 8d 9h", True, "the straight is the board's"),
        ("Ac 2d", "5h 9h Kh 3h Jh", True, "the flush is the board's"),
        ("Ah 2c", "5h 9h Kh", False, "a flush draw of one own card"),
        ("Ac 2c", "5h 9h Kh Jh", True, "the flush draw is the board's"),
        ("Ah 2h", "5h 9h Kc 3s 7d", True, "no card comes after the river"),
        ("9c 8d", "7h 5s Kc", True, "an inside straight draw has 4 outs"),
        ("9c 7d", "8h 5s Jc", False, "two inside draws at once have 8 outs"),
        ("Ac 2d", "3h 4s Kc", True, "a draw closed by the ace below has 4 outs"),
        ("Ac Kd", "5h 6s 7c 8d", True, "the open draw is the board's alone"),
    ],
)
def test_bets_with_less_than_a_pair_and_few_outs_are_bluffs(own: str, board: str, is_weak: bool, why: str) -> None:
    assert is_weak_hand(cards(own), cards(board)) is is_weak, why


def rank(card: str) -> int:
    return HOLDEM_RANKS.index(card[0])


def is_straight(five: Cards) -> bool:
    ranks = sorted(map(rank, five))
    return ranks in ([low + step for step in range(5)] for low in range(9)) or ranks == [0, 1, 2, 3, 12]


def naively_long(own: Cards, others: Cards) -> bool:
    """Whether any five cards with an own one among them are a straight or a flush."""
    return any(
        (is_straight(five) or len({card[1] for card in five}) == 1) and set(five) & set(own)
        for five in combinations(own + others, 5)
    )


def naively_made(own: Cards, board: Cards) -> bool:
    return any(own[place][0] == card[0] for place in (0, 1) for card in (*board, own[1 - place])) or naively_long(own, board)


def naive_outs(own: Cards, board: Cards) -> int:
    unseen = set(SORTED_DECK) - set(own + board)
    return sum(naively_long(own, (*board, card)) for card in unseen)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_a_naive_definition_agrees_on_random_boards(size: int) -> None:
    rng = random.Random(size)
    met = set()
    for number in range(48):
        pool = (
            SORTED_DECK
            if number % 2
            else rng.sample(SORTED_DECK, 20)
            if number % 4
            else [card for card in SORTED_DECK if card[1] in "ch"]
        )
        dealt = tuple(rng.sample(list(pool), 2 + size))
        own, board = dealt[:2], dealt[2:]
        is_made = naively_made(own, board)
        assert has_made_hand(own, board) is is_made, dealt
        if not is_made and size < 5:
            assert count_outs(own, board) == naive_outs(own, board), dealt
        expected = not is_made and (size == 5 or naive_outs(own, board) < 8)
        assert is_weak_hand(own, board) is expected, dealt
        met.add(expected)
    assert met == {True, False}


def test_before_the_flop_84_of_169_hands_are_weak_and_the_median_is_not() -> None:
    leads = load_starting_leads()
    assert len(leads) == len(set(leads.values())) == 169
    assert {name_starting_hand((one, other)) for one, other in combinations(SORTED_DECK, 2)} == set(leads)
    assert sum(wins < find_median_lead() for wins in leads.values()) == 84
    assert [hand for hand, wins in leads.items() if wins == find_median_lead()] == ["J6s"]
    assert not is_weak_hand(cards("Ah Kd"), ())
    assert is_weak_hand(cards("7h 2d"), ())


def test_starting_hands_win_and_lose_alike_in_all_deals_together() -> None:
    assert sum(rate_starting_hand(pair) for pair in combinations(SORTED_DECK, 2)) == 0


@pytest.mark.parametrize(("own", "equity"), [("Ac Ad", 0.85204), ("7c 2d", 0.34584), ("3c 2d", 0.32303), ("2c 2d", 0.50334)])
def test_equities_are_the_published_ones(own: str, equity: float) -> None:
    """A hand's wins with half its ties, as books print them to four digits."""
    assert 0.5 + rate_starting_hand(cards(own)) / ALL_DEALS / 2 == pytest.approx(equity, abs=6e-5)
