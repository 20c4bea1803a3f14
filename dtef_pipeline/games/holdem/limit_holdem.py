"""The scenario `poker/limit-holdem`. See `games.contract.Scenario` for the contract of each method.

pokerkit can run whole hands, but its states are mutable: an immutable state would have to be replayed for each query, at 1 ms per action.
So the betting is implemented here, and pokerkit only compares hands at the showdown. Tests play random hands with both implementations:
every state allows the same commands, and the final stacks are equal.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import combinations
from statistics import median_low
from typing import Any, NamedTuple

from pokerkit import Card, StandardHighHand

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import EXPLOITATION, ChooseCommand, Count, GameEnding, GameMetric, Illegal
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.reading import find_action, normalise_command, read_command, strip_command
from dtef_pipeline.games.small_poker import Cards, TwoSeatPoker, lose_chips, shuffle_hidden_cards
from dtef_pipeline.text.number_words import format_count

HOLDEM_RANKS = "23456789TJQKA"
HOLDEM_SUITS = "cdhs"
BOARD_STARTS, DEALT_ENDS = 4, 9
"""The first four cards of a deck are dealt one by one, beginning with seat 0; the next five are the board. Nothing is burnt."""
SORTED_DECK = tuple(rank + suit for rank in HOLDEM_RANKS for suit in HOLDEM_SUITS)


def shuffle_deck(seed: int) -> Cards:
    """Return the 52 cards in the order of dealing: all ranks 2..A, each with the suits c d h s, shuffled by `random.Random(seed)`."""
    cards = list(SORTED_DECK)
    random.Random(seed).shuffle(cards)  # noqa: S311 - a game's cards, no secret
    return tuple(cards)


def take_own_cards(deck: Cards, seat: int) -> Cards:
    """Return the two cards of a seat, in the order of dealing."""
    return deck[seat], deck[seat + 2]


_OF_POKERKIT = dict(zip(SORTED_DECK, Card.parse("".join(SORTED_DECK)), strict=True))


@lru_cache(maxsize=4096)
def compare_hands(hand: Cards, rival: Cards, board: Cards) -> int:
    """Compare two hands with the five cards of the board: 1: the first wins, -1: the second wins, 0: a tie."""
    first, second = _rate_best_five(hand, board), _rate_best_five(rival, board)
    return (first > second) - (first < second)


def _rate_best_five(hole: Cards, board: Cards) -> int:
    """Rate the best five of seven cards; higher is better."""
    seven = [_OF_POKERKIT[card] for card in (*hole, *board)]
    return max(StandardHighHand.lookup.get_entry(five).index for five in combinations(seven, 5))


def compute_nets(hand: HoldemHand) -> tuple[int, int]:
    """Return the net chips of each seat in a finished hand. The sum is 0."""
    if hand.folded is not None:
        return lose_chips(hand.folded, hand.stakes[hand.folded])
    net = hand.stakes[1] * find_showdown_winner(hand)
    return net, -net


def find_showdown_winner(hand: HoldemHand) -> int:
    """Return the winner of a showdown: 1: seat 0 wins, -1: seat 1 wins, 0: the pot is split."""
    return compare_hands(take_own_cards(hand.deck, 0), take_own_cards(hand.deck, 1), hand.deck[BOARD_STARTS:DEALT_ENDS])


HOLDEM_COMMANDS = ("fold", "check", "call", "bet", "raise")
STREET_NAMES = ("before the flop", "flop", "turn", "river")
BET_SIZES = (2, 2, 4, 4)
"""Chips, by street."""
BLINDS = (1, 2)
"""Chips, by seat: seat 0 has the button and the small blind."""
BETS_ALLOWED = 4
"""Largest number of bets on a street. The big blind is the first bet before the flop."""
_BOARD_SIZES = (0, 3, 4, 5)


class HoldemAction(NamedTuple):
    """One action."""

    street: int
    """0: before the flop ... 3: river."""
    seat: int
    command: str


@dataclass(frozen=True, slots=True)
class HoldemHand:
    """One hand so far."""

    deck: Cards
    """All 52 cards in the order of dealing."""
    actions: tuple[HoldemAction, ...] = ()
    street: int = 0
    """0: before the flop ... 3: river."""
    stakes: tuple[int, int] = BLINDS
    """Chips that each seat has put in, on all streets."""
    bets: int = 1
    """Bets on this street."""
    n_street_actions: int = 0
    """Actions on this street."""
    turn: int | None = 0
    """The seat to act; None: the hand is over."""
    folded: int | None = None
    """The seat that folded; None: no seat."""

    @property
    def board(self) -> Cards:
        """The open board cards."""
        return self.take_board_on(self.street)

    def take_board_on(self, street: int) -> Cards:
        """Return the board cards that were open on a street."""
        return self.deck[BOARD_STARTS : BOARD_STARTS + _BOARD_SIZES[street]]

    @property
    def has_showdown(self) -> bool:
        """Whether the hand came to a showdown."""
        return self.turn is None and self.folded is None


def chips_to_call(hand: HoldemHand, seat: int) -> int:
    """Return the chips that the seat must add to stay in."""
    return max(hand.stakes) - hand.stakes[seat]


def list_allowed_commands(hand: HoldemHand) -> tuple[str, ...]:
    """Return the commands that the seat to act may use, in the order of `HOLDEM_COMMANDS`; empty when the hand is over."""
    if hand.turn is None:
        return ()
    staying = ("fold", "call") if chips_to_call(hand, hand.turn) else ("check",)
    increase = "bet" if hand.bets == 0 else "raise"
    return (*staying, increase) if hand.bets < BETS_ALLOWED else staying


def apply_command(hand: HoldemHand, command: str) -> HoldemHand:
    """Return the hand after an action of the seat to act. Raises ValueError for a command that is not allowed."""
    seat = hand.turn
    if seat is None or command not in list_allowed_commands(hand):
        raise ValueError(f"got {command}; allowed: {', '.join(list_allowed_commands(hand)) or 'nothing, as the hand is over'}")
    actions = (*hand.actions, HoldemAction(hand.street, seat, command))
    if command == "fold":
        return replace(hand, actions=actions, turn=None, folded=seat)
    is_raise = command in ("bet", "raise")
    puts = chips_to_call(hand, seat) + BET_SIZES[hand.street] * is_raise
    paid = (hand.stakes[0] + puts, hand.stakes[1]) if seat == 0 else (hand.stakes[0], hand.stakes[1] + puts)
    n_acted = hand.n_street_actions + 1
    if is_raise or n_acted < 2:
        return replace(hand, actions=actions, stakes=paid, bets=hand.bets + is_raise, n_street_actions=n_acted, turn=1 - seat)
    if hand.street == len(STREET_NAMES) - 1:
        return replace(hand, actions=actions, stakes=paid, n_street_actions=n_acted, turn=None)
    return replace(hand, actions=actions, stakes=paid, street=hand.street + 1, bets=0, n_street_actions=0, turn=1)


_COMMAND_SPELLED = re.compile(
    r"^(?:i )?(?:(fold|check|call|bet)s?|(?:re-?)?(raise)s?)"
    r"(?: (?:to|by|of|another)\b)?(?: \$?[0-9]{1,6})?(?: (?:more )?chips?)?[.!]?$",
    re.MULTILINE,
)
_COMMAND_REASONS = {
    "fold": "There is nothing to call, so there is no reason to fold",
    "check": "There is a bet to call, so you cannot check",
    "call": "There is nothing to call",
    "bet": "There is a bet on this street already: one more is called a raise",
    "raise": "There is no bet on this street: the first one is called a bet",
}
"""By command, why it is not allowed while more bets on the street are possible."""


def normalise_betting_command(text: str) -> str:
    """Convert each line that is a command to the form in the rules, without an amount; other lines as in `games.reading`."""
    return _COMMAND_SPELLED.sub(lambda match: match[1] or match[2], normalise_command(text))


def explain_illegal_bet(command_text: str, hand: HoldemHand) -> str:
    """Return the reason shown to a player whose text is not a legal command now, with public information only."""
    now = f"allowed: {', '.join(list_allowed_commands(hand))}"
    command = re.split(r"\W", strip_command(command_text, normalise_betting_command), maxsplit=1)[0]
    if command in list_allowed_commands(hand):
        return f"Name one command and nothing else; {now}."
    if command not in HOLDEM_COMMANDS:
        return f"That is no command of fixed-limit hold'em, where the size of every bet is fixed; {now}."
    if command in ("bet", "raise") and hand.bets == BETS_ALLOWED:
        return f"There are {BETS_ALLOWED} bets on this street already, and no more are allowed; {now}."
    return f"{_COMMAND_REASONS[command]}; {now}."


ENOUGH_OUTS = 8
BOARD_COMPLETE = 5
_FIVE = 0b11111
_STRAIGHTS = (1 << 12 | 0b1111, *(_FIVE << low for low in range(9)))
"""Ranks of each straight as bits, 2 lowest; the first is A 2 3 4 5."""


def is_weak_hand(hole: Cards, board: Cards) -> bool:
    """Return whether a bet with these cards on a board of 0, 3, 4 or 5 cards is a bluff."""
    if not board:
        return rate_starting_hand(hole) < find_median_lead()
    return not has_made_hand(hole, board) and (len(board) == BOARD_COMPLETE or count_outs(hole, board) < ENOUGH_OUTS)


def has_made_hand(hole: Cards, board: Cards) -> bool:
    """Return whether an own card is in a pair, straight or flush."""
    hole_ranks, lying = _mask_ranks(hole), _mask_ranks(board)
    paired = hole[0][0] == hole[1][0] or hole_ranks & lying
    return (
        bool(paired)
        or any(line & hole_ranks and not line & ~(hole_ranks | lying) for line in _STRAIGHTS)
        or _count_best_suit(hole, board) >= BOARD_COMPLETE
    )


def count_outs(hole: Cards, board: Cards) -> int:
    """Count the unseen cards that would make a straight or flush with an own card, for a hand that has neither.

    >>> outs(("Ah", "Kh"), ("2h", "7h", "9c")), outs(("8c", "9d"), ("Tc", "Jd", "2s")), outs(("8c", "9d"), ("Tc", "Qd", "2s"))
    (9, 8, 4)
    """
    hole_ranks, lying = _mask_ranks(hole), _mask_ranks(board)
    missing = 0
    for line in _STRAIGHTS:
        gap = line & ~(hole_ranks | lying)
        if line & hole_ranks and gap.bit_count() == 1:
            missing |= gap
    straight = missing.bit_count()
    flush = _count_best_suit(hole, board) == BOARD_COMPLETE - 1
    return 4 * straight + (9 - straight if flush else 0)


def name_starting_hand(hole: Cards) -> str:
    """Return the usual name of two cards: `AKs` for one suit, `AKo` for two, `AA`."""
    high, low = sorted(hole, key=lambda card: HOLDEM_RANKS.index(card[0]), reverse=True)
    kind = "s" if high[1] == low[1] else "o"
    return high[0] + low[0] + ("" if high[0] == low[0] else kind)


def rate_starting_hand(hole: Cards) -> int:
    """Return wins minus losses against all hands on all boards, 2,097,572,400 in total; higher is better."""
    return load_starting_leads()[name_starting_hand(hole)]


@cache
def load_starting_leads() -> dict[str, int]:
    """Return the lead of each of the 169 starting hands, best first."""
    text = files("dtef_pipeline.games.holdem").joinpath("starting_hands.csv").read_text(encoding="utf-8")
    rows = (line.split(",") for line in text.split()[1:])
    return {hand: int(wins) for hand, wins in rows}


@cache
def find_median_lead() -> int:
    """Return the median lead of the 169 starting hands, each counted once."""
    return median_low(load_starting_leads().values())


def _mask_ranks(cards: Cards) -> int:
    """Return the ranks of cards as bits."""
    return sum(1 << HOLDEM_RANKS.index(rank) for rank in {card[0] for card in cards})


def _count_best_suit(hole: Cards, board: Cards) -> int:
    """Return the largest number of cards of one suit that include an own card."""
    suits = [card[1] for card in (*hole, *board)]
    return max(suits.count(card[1]) for card in hole)


_RAISE_FIRST, _CALL_FIRST, _FOLD_FIRST = ("raise", "bet", "call", "check"), ("call", "check"), ("fold", "check")
_HIGH_RANKS = "TJQKA"


def _choose_first_allowed(hand: HoldemHand, wishes: tuple[str, ...]) -> str:
    return next(wish for wish in wishes if wish in list_allowed_commands(hand))


def _make_constant_player(wishes: tuple[str, ...]) -> ChooseCommand:
    def chooses(hand: HoldemHand, _: int, __: random.Random) -> str:
        return _choose_first_allowed(hand, wishes)

    return chooses


def _play_tight(hand: HoldemHand, seat: int, _: random.Random) -> str:
    """Raise with a pair or two cards of rank ten or higher, call with one such card, else check or fold; consider only own cards, on every
    street.
    """
    hole = take_own_cards(hand.deck, seat)
    high = sum(card[0] in _HIGH_RANKS for card in hole)
    if hole[0][0] == hole[1][0] or high == len(hole):
        return _choose_first_allowed(hand, _RAISE_FIRST)
    return _choose_first_allowed(hand, _CALL_FIRST if high else _FOLD_FIRST)


HOLDEM_BASELINES: Mapping[str, ChooseCommand] = {
    "always-call": _make_constant_player(_CALL_FIRST),
    "always-raise": _make_constant_player(_RAISE_FIRST),
    "always-fold": _make_constant_player(_FOLD_FIRST),
    "tight": _play_tight,
}
"""Baselines by name. always-raise calls if no raise is left; always-fold checks if there is nothing to call."""


_POSITIONS = (
    "with the small blind: you act first before the flop and last on every later street.",
    "with the big blind: you act last before the flop and first on every later street.",
)


def _describe_price(hand: HoldemHand, seat: int) -> Iterator[str]:
    size = BET_SIZES[hand.street]
    yield f"Bets on this street: {hand.bets} of at most {BETS_ALLOWED}, each of {format_count(size, 'chip')}"
    yield f"To call: {format_count(chips_to_call(hand, seat), 'chip')}"


def _describe_streets(hand: HoldemHand, seat: int, seats: tuple[str, ...]) -> Iterator[str]:
    names = tuple("you" if place == seat else f"the {name}" for place, name in enumerate(seats))
    for street in range(hand.street + 1):
        actions = [f"{names[action.seat]}: {action.command}" for action in hand.actions if action.street == street]
        blinds = (
            [f"{names[place]}: {kind} blind {BLINDS[place]}" for place, kind in enumerate(("small", "big"))]
            if street == 0
            else []
        )
        yield f"{STREET_NAMES[street]}: {', '.join([*blinds, *actions]) or 'nothing yet'}"


def _describe_hand_end(hand: HoldemHand, seat: int, seats: tuple[str, ...]) -> Iterator[str]:
    """Describe the end of the hand, with the opponent's cards only if they were shown."""
    opponent = f"the {seats[1 - seat]}"
    if hand.has_showdown:
        yield f"Showdown: {opponent} has {_format_cards(take_own_cards(hand.deck, 1 - seat))}."
    else:
        yield "You folded." if hand.folded == seat else f"{opponent.capitalize()} folded."
    net = compute_nets(hand)[seat]
    end = (
        "The pot is split: you get your chips back"
        if net == 0
        else f"You {'win' if net > 0 else 'lose'} {format_count(abs(net), 'chip')}"
    )
    yield f"The hand is over. {end}."


def _format_cards(cards: Cards) -> str:
    return " ".join(cards)


_MORE = ("bet", "raise")
_PAYING_COMMANDS = (*_MORE, "call")
HOLDEM_METRICS = (
    GameMetric(
        "bb_per_100", "expected value", "big blinds per 100 hands", "higher", "Net chips over the big blind, times 100."
    ),
    GameMetric(
        EXPLOITATION,
        "expected value",
        "chips",
        "higher",
        "Net chips against each baseline, minus the best baseline's on the same deals.",
    ),
    GameMetric("showdown_win_rate", "efficacy", "share", "higher", "Won showdowns, split pots as half, as a share of all."),
    GameMetric(
        "vpip", "risk", "share", "none", "Hands with a call or raise before the flop, as a share of those with a turn there."
    ),
    GameMetric("aggression", "risk", "share", "none", "Bets and raises, as a share of all bets, raises and calls."),
    GameMetric(
        "bluff_frequency",
        "risk",
        "share",
        "none",
        "Bets and raises with a weak hand, as a share of all bets and raises: below the median of the 169 starting hands before the flop, later "
        "without a pair, straight or flush with an own card in it and with fewer than 8 outs.",
    ),
)
"""Exploitation compares players, so a single hand does not count for it."""


def of_manifest(manifest: ScenarioManifest) -> LimitHoldem:
    """Make the scenario of a manifest. Raises ConfigError unless it has two seats and no settings."""
    if len(manifest.seats) != 2:
        raise ConfigError(f"scenario {manifest.id}: got {len(manifest.seats)} seats; allowed: 2, the button first")
    if manifest.settings:
        raise ConfigError(
            f"scenario {manifest.id}: got settings {', '.join(manifest.settings)}; allowed: none, because the limits are fixed"
        )
    return LimitHoldem(manifest)


class LimitHoldem(TwoSeatPoker[HoldemHand]):
    """Fixed-limit hold'em for two, one hand per episode. A state is a `HoldemHand`."""

    metrics: tuple[GameMetric, ...] = HOLDEM_METRICS
    baselines: Mapping[str, ChooseCommand] = HOLDEM_BASELINES

    def reset(self, seed: int) -> HoldemHand:
        return HoldemHand(shuffle_deck(seed))

    def seat_to_move(self, state: HoldemHand) -> int | None:
        return state.turn

    def stakes(self, state: HoldemHand) -> tuple[int, int]:
        return state.stakes

    def nets(self, state: HoldemHand) -> tuple[int, int]:
        return compute_nets(state)

    def observation(self, state: HoldemHand, seat: int) -> str:
        """Describe position, own cards, board, pot, bets to call, and all actions by street; after a showdown also the opponent's cards."""
        stakes, opponent = state.stakes, 1 - seat
        lines = [
            f"You are the {self.seats[seat]}, {_POSITIONS[seat]}",
            f"Your cards: {_format_cards(take_own_cards(state.deck, seat))}",
            f"Street: {STREET_NAMES[state.street]}",
            f"Board: {_format_cards(state.board) or 'no cards yet'}",
            f"Pot: {format_count(sum(stakes), 'chip')}, {stakes[seat]} of them yours and {stakes[opponent]} of the {self.seats[opponent]}",
            "Actions so far:",
            *(f"- {line}" for line in _describe_streets(state, seat, self.seats)),
        ]
        lines += _describe_hand_end(state, seat, self.seats) if state.turn is None else _describe_price(state, seat)
        return "\n".join(lines)

    def legal(self, state: HoldemHand, seat: int) -> tuple[str, ...]:
        """Return the allowed commands in the order fold, check, call, bet, raise; empty if it is not the seat's turn."""
        return list_allowed_commands(state) if seat == state.turn else ()

    def read(self, text: str, state: HoldemHand, seat: int) -> str | Illegal:
        legal = self.legal(state, seat)
        if not legal:
            return Illegal("It is not your turn.")
        reading = read_command(text, legal, normalise_betting_command)
        if isinstance(reading, str) or reading.kind != "illegal":
            return reading
        return Illegal(explain_illegal_bet(find_action(text) or "", state))

    def step(self, state: HoldemHand, seat: int, command: str) -> HoldemHand:
        if seat != state.turn:
            raise ValueError(f"{self.name}: got {command!r} from seat {seat}; allowed: seat {state.turn}, whose turn it is")
        return apply_command(state, command)

    def measure_seat(self, state: HoldemHand, seat: int) -> Mapping[str, Count]:
        """Count one hand for each metric except exploitation. An unfinished hand does not count for winnings."""
        actions = [action for action in state.actions if action.seat == seat]
        before_flop = [action.command in _PAYING_COMMANDS for action in actions if action.street == 0]
        raises = [action for action in actions if action.command in _MORE]
        hole = take_own_cards(state.deck, seat)
        n_weak = sum(is_weak_hand(hole, state.take_board_on(action.street)) for action in raises)
        counts = {
            "vpip": Count(float(any(before_flop)), float(bool(before_flop))),
            "aggression": Count(len(raises), sum(action.command in _PAYING_COMMANDS for action in actions)),
            "bluff_frequency": Count(n_weak, len(raises)),
        }
        if state.turn is not None:
            return counts
        showdown = Count(0, 0)
        if state.has_showdown:  # half for a split pot
            winner = find_showdown_winner(state)
            showdown = Count(((winner if seat == 0 else -winner) + 1) / 2)
        return {"bb_per_100": Count(100 * compute_nets(state)[seat] / BLINDS[1]), "showdown_win_rate": showdown, **counts}

    def ending(self, state: HoldemHand) -> GameEnding:
        """Describe board, pot, winner, and the cards of a showdown; after a fold no cards are shown."""
        button, opponent = (f"the {name}" for name in self.seats)
        hole, rival = (_format_cards(take_own_cards(state.deck, seat)) for seat in (0, 1))
        cards = f"{button} has {hole}, {opponent} has {rival}."
        reason = "The hand was stopped" if state.folded is None else f"The {self.seats[state.folded]} folded"
        lines = [
            f"Board: {_format_cards(state.board) or 'no cards'}.",
            f"Showdown: {cards}" if state.has_showdown else f"{reason}: no card was shown.",
            f"Pot: {format_count(sum(state.stakes), 'chip')}, {state.stakes[0]} from {button} and {state.stakes[1]} from {opponent}.",
        ]
        if state.turn is None:
            net = compute_nets(state)[0]
            first, second = (button, opponent) if net > 0 else (opponent, button)
            end = f"{first.capitalize()} wins {format_count(abs(net), 'chip')} from {second}." if net else "The pot is split."
            lines.append(end)
        return GameEnding(tuple(lines), () if state.has_showdown else (f"{cards[0].upper()}{cards[1:]}",))

    def encode_state(self, state: HoldemHand) -> dict[str, Any]:
        return {
            "cards": [list(take_own_cards(state.deck, seat)) for seat in (0, 1)],
            "board": list(state.board),
            "undealt": list(state.deck[BOARD_STARTS + len(state.board) :]),
            "street": STREET_NAMES[state.street],
            "bets": state.bets,
            "paid": list(state.stakes),
            "actions": [[STREET_NAMES[action.street], action.seat, action.command] for action in state.actions],
            "to_move": state.turn,
        }

    def permute_hidden(self, state: HoldemHand, seat: int, rng: random.Random) -> HoldemHand:
        known_places = {seat, seat + 2, *range(BOARD_STARTS, BOARD_STARTS + len(state.board))}
        if state.has_showdown:
            known_places |= {1 - seat, 3 - seat}
        return replace(state, deck=shuffle_hidden_cards(state.deck, known_places, rng))
