"""What poker for two seats shares, and poker small enough for exact values: shared code of Kuhn and Leduc poker."""

from __future__ import annotations

import itertools
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

from dtef_pipeline.games.contract import (
    ChooseCommand,
    Count,
    EpisodeOutcome,
    GameEnding,
    GameMetric,
    GameResult,
    Illegal,
    State,
)
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.reading import find_action, read_command
from dtef_pipeline.text.number_words import format_count

SMALL_BETS = ("bet", "raise")
"""Commands that put in more chips than the other seat has put in."""
SMALL_POKER_COMMANDS = {"check": "checks", "bet": "bets", "fold": "folds", "call": "calls", "raise": "raises"}
"""Commands of both games, with their descriptions for the other seat."""
SMALL_CARD_NAMES = {"J": "jack", "Q": "queen", "K": "king"}
SMALL_SUIT_NAMES = {"s": "spades", "h": "hearts"}
SMALL_BET_RATE = GameMetric(
    "bet_rate", "risk", "share", "none", "Bets and raises, as a share of the turns in which one was allowed."
)
SMALL_SHOWDOWN_RATE = GameMetric(
    "showdown_rate", "risk", "share", "none", "The share of hands in which nobody folded, so that cards were compared."
)
Cards = tuple[str, ...]
"""Cards in the order of dealing, as rank and suit: `Ts` is the ten of spades."""
Strategy = Mapping[str, Mapping[str, float]]
"""Probability of each command by information set; 0 for a command left out. It may cover one seat or both.

An information set consists of all states that look the same to the seat to move."""
_WORD = re.compile(r"[a-z]+")
_MAX_WORDS = 20


@dataclass(frozen=True, slots=True)
class SmallHand:
    """One hand: the whole deck in the order of dealing, and the commands so far. The first two cards are those of seats 0 and 1."""

    deck: tuple[str, ...]
    commands: tuple[str, ...] = ()


class Betting(NamedTuple):
    """The state of the betting, which depends only on the commands."""

    stakes: tuple[int, int]
    """Chips that each seat has put in, including the ante."""
    to_move: int | None
    legal: tuple[str, ...]
    stage: int = 0
    """0: before the public card."""
    folded: int | None = None
    """The seat that folded."""

    @property
    def showdown(self) -> bool:
        return self.to_move is None and self.folded is None


class TwoSeatPoker(ABC, Generic[State]):
    """What the scenarios of `poker` share. See `games.contract.Scenario`."""

    unit = "chips"
    zero_sum = True

    def __init__(self, manifest: ScenarioManifest) -> None:
        self.name = manifest.id
        self.seats = tuple(manifest.seats)

    @abstractmethod
    def seat_to_move(self, state: State) -> int | None:
        """Return the seat to move, or None if the hand is over."""

    @abstractmethod
    def legal(self, state: State, seat: int) -> tuple[str, ...]:
        """Return the allowed commands; empty if it is not the seat's turn."""

    @abstractmethod
    def stakes(self, state: State) -> tuple[int, int]:
        """Return the chips that each seat has put in."""

    @abstractmethod
    def nets(self, state: State) -> tuple[int, int]:
        """Return the net chips of each seat in a finished hand; the sum is 0."""

    def result(self, state: State) -> GameResult | None:
        """Return the net chips of each seat, or None before the end."""
        return None if self.seat_to_move(state) is not None else _make_poker_result(self.nets(state))

    def stop_episode(self, state: State, seat: int | None) -> GameResult:
        """End the hand: a seat that forfeits loses its chips, as if it folded; at the turn limit both are refunded."""
        if seat is None:
            return GameResult((0.0, 0.0), ("draw", "draw"), ("turn_limit",))
        return _make_poker_result(lose_chips(seat, self.stakes(state)[seat]), "forfeit")

    def default(self, state: State, seat: int) -> str:
        """Check, else fold."""
        return "check" if "check" in self.legal(state, seat) else "fold"


class SmallPoker(TwoSeatPoker[SmallHand]):
    """A scenario of `poker` whose deals and betting sequences can all be enumerated."""

    cards: tuple[str, ...]
    """The deck before it is shuffled; the first letter of a card is its rank."""
    public_at: int | None = None
    """Place of the public card in the deal; None: there is none."""
    metrics: tuple[GameMetric, ...] = (SMALL_BET_RATE, SMALL_SHOWDOWN_RATE)
    baseline_names: tuple[str, ...]
    """Strategies that are baselines."""

    def __init__(self, manifest: ScenarioManifest) -> None:
        super().__init__(manifest)
        self.baselines = {name: make_strategy_baseline(self, name) for name in self.baseline_names}
        self._show_legal = manifest.show_legal

    @property
    @abstractmethod
    def strategies(self) -> Mapping[str, Strategy]:
        """The strategies of both seats that baselines play, by name."""

    @abstractmethod
    def betting(self, commands: tuple[str, ...]) -> Betting:
        """Return the state of the betting after legal commands."""

    @abstractmethod
    def strength(self, state: SmallHand, seat: int) -> int:
        """Return the strength of a hand at a showdown: the higher wins, equal ones split."""

    def deals(self) -> Iterator[SmallHand]:
        """Return all first states that differ in a card that can be seen, all equally likely."""
        n_visible = 2 if self.public_at is None else self.public_at + 1
        for places in itertools.permutations(range(len(self.cards)), n_visible):
            hidden = [card for place, card in enumerate(self.cards) if place not in places]
            yield SmallHand((*(self.cards[place] for place in places), *hidden))

    def reset(self, seed: int) -> SmallHand:
        deck = list(self.cards)
        random.Random(seed).shuffle(deck)  # noqa: S311 - a game's cards, no secret
        return SmallHand(tuple(deck))

    def seat_to_move(self, state: SmallHand) -> int | None:
        """Return the seat to move, or None if the hand is over."""
        return self.betting(state.commands).to_move

    def legal(self, state: SmallHand, seat: int) -> tuple[str, ...]:
        """Return the allowed commands, cheapest first; empty if it is not the seat's turn."""
        now = self.betting(state.commands)
        return now.legal if now.to_move == seat else ()

    def step(self, state: SmallHand, seat: int, command: str) -> SmallHand:
        if command not in (legal := self.legal(state, seat)):
            raise ValueError(f"{self.name}: got {command!r} from seat {seat}; allowed: {', '.join(legal) or 'nothing'}")
        return SmallHand(state.deck, (*state.commands, command))

    def public_card(self, state: SmallHand) -> str | None:
        """Return the public card, once dealt."""
        is_dealt = self.public_at is not None and self.betting(state.commands).stage > 0
        return state.deck[self.public_at] if is_dealt and self.public_at is not None else None

    def information(self, state: SmallHand, seat: int) -> str:
        """Return the name of a seat's information set: own card, public card and betting, as in `K:check,bet`, `Ks/Qh:check,check,bet`."""
        public = self.public_card(state)
        return f"{state.deck[seat]}{f'/{public}' if public else ''}:{','.join(state.commands)}"

    def observation(self, state: SmallHand, seat: int) -> str:
        """Describe own card, public card, pot and betting, and at a showdown the other card."""
        now, opponent = self.betting(state.commands), 1 - seat
        lines = [
            f"You are {self.seats[seat]}, and act {'first' if seat == 0 else 'second'}.",
            f"Your card: {_name_card(state.deck[seat])}.",
        ]
        if self.public_at is not None:
            public = self.public_card(state)
            lines.append(f"Public card: {_name_card(public) if public else 'not dealt yet'}.")
        lines.append(
            f"Pot: {sum(now.stakes)} chips. You put in {now.stakes[seat]}, {self.seats[opponent]} {now.stakes[opponent]}."
        )
        lines.append(f"Betting so far: {self._describe_betting(state.commands, seat)}.")
        if now.to_move is None:
            return "\n".join([*lines, *self._describe_small_hand_end(state, seat)])
        if now.to_move == seat:
            if due := now.stakes[opponent] - now.stakes[seat]:
                lines.append(f"To call costs {format_count(due, 'chip')}.")
            lines.append("It is your turn.")
            if self._show_legal:
                lines.append(f"Legal commands: {', '.join(now.legal)}")
        return "\n".join(lines)

    def _describe_betting(self, commands: tuple[str, ...], seat: int) -> str:
        """Describe the betting so far in order, stage by stage, as the seat sees it."""
        stages: dict[int, list[str]] = {}
        for place, command in enumerate(commands):
            before = self.betting(commands[:place])
            action_text = (
                f"you {command}" if before.to_move == seat else f"{self.seats[1 - seat]} {SMALL_POKER_COMMANDS[command]}"
            )
            stages.setdefault(before.stage, []).append(action_text)
        if self.public_at is None or not stages:
            return ", ".join(stages.get(0, [])) or "nothing yet"
        stage_texts = [
            f"{'before' if stage == 0 else 'after'} the public card: {', '.join(actions)}" for stage, actions in stages.items()
        ]
        return "; ".join(stage_texts)

    def _describe_small_hand_end(self, state: SmallHand, seat: int) -> Iterator[str]:
        now, net = self.betting(state.commands), self.nets(state)[seat]
        if now.showdown:
            yield f"Showdown: {self.seats[1 - seat]} has the {_name_card(state.deck[1 - seat])}."
        winnings = f"{'win' if net > 0 else 'lose'} {format_count(abs(net), 'chip')}" if net else "get your chips back"
        yield f"The hand is over. You {winnings}."

    def read(self, text: str, state: SmallHand, seat: int) -> str | Illegal:
        """Return the command in a text, or why there is none. The size of bets is fixed, so a number after a command is ignored."""
        legal = self.legal(state, seat)
        if not legal:
            return Illegal("It is not your turn.")
        reading = read_command(text, legal)
        action_text = None if isinstance(reading, str) or reading.kind != "illegal" else find_action(text)
        return reading if action_text is None else Illegal(_explain_illegal(action_text, self.betting(state.commands), seat))

    def stakes(self, state: SmallHand) -> tuple[int, int]:
        return self.betting(state.commands).stakes

    def nets(self, state: SmallHand) -> tuple[int, int]:
        now = self.betting(state.commands)
        if now.folded is not None:
            return lose_chips(now.folded, now.stakes[now.folded])
        mine, rival = self.strength(state, 0), self.strength(state, 1)
        return (0, 0) if mine == rival else lose_chips(0 if mine < rival else 1, now.stakes[0])

    def iterate_turns(self, state: SmallHand, seat: int) -> Iterator[tuple[Betting, str]]:
        """Yield each turn of a seat: the betting so far and its command."""
        for place, command in enumerate(state.commands):
            before = self.betting(state.commands[:place])
            if before.to_move == seat:
                yield before, command

    def measure_seat(self, state: SmallHand, seat: int) -> Mapping[str, Count]:
        """Count bets in turns in which one was allowed, and whether the hand came to a showdown."""
        could = [command for before, command in self.iterate_turns(state, seat) if set(SMALL_BETS) & set(before.legal)]
        return {
            SMALL_BET_RATE.name: Count(sum(command in SMALL_BETS for command in could), len(could)),
            SMALL_SHOWDOWN_RATE.name: Count(self.betting(state.commands).showdown),
        }

    def ending(self, state: SmallHand) -> GameEnding:
        """Describe the public card, the pot, the winner, and the cards of a showdown; without one no cards are shown."""
        now, public = self.betting(state.commands), self.public_card(state)
        cards = f"{self.seats[0]} has the {_name_card(state.deck[0])}, {self.seats[1]} the {_name_card(state.deck[1])}."
        if now.showdown:
            summary = f"Showdown: {cards}"
        else:
            reason = "The hand was stopped" if now.folded is None else f"{self.seats[now.folded]} folded"
            summary = f"{reason}: no card was shown."
        lines = [f"Public card: the {_name_card(public)}."] if public else []
        lines += [
            summary,
            f"Pot: {format_count(sum(now.stakes), 'chip')}, {now.stakes[0]} from {self.seats[0]} and {now.stakes[1]} from {self.seats[1]}.",
        ]
        if now.to_move is None:
            lines.append(_describe_winner(self.nets(state), self.seats))
        return GameEnding(tuple(lines), () if now.showdown else (cards,))

    def encode_state(self, state: SmallHand) -> dict[str, Any]:
        """Return the whole hand, with both cards."""
        now, public = self.betting(state.commands), self.public_card(state)
        return {
            "cards": list(state.deck[:2]),
            "public_card": public,
            "undealt": [
                card for place, card in enumerate(state.deck) if place > 1 and not (public and place == self.public_at)
            ],
            "commands": list(state.commands),
            "paid": list(now.stakes),
            "to_move": now.to_move,
        }

    def permute_hidden(self, state: SmallHand, seat: int, rng: random.Random) -> SmallHand:
        """Return the same hand with all cards that the seat has not seen dealt again: the opponent's, unless there was a showdown, and
        those to come."""
        seen_places = {0, 1} if self.betting(state.commands).showdown else {seat}
        if self.public_card(state) is not None and self.public_at is not None:
            seen_places.add(self.public_at)
        return SmallHand(shuffle_hidden_cards(state.deck, seen_places, rng), state.commands)


def shuffle_hidden_cards(deck: Cards, known_places: set[int], rng: random.Random) -> Cards:
    """Return the deck with all cards except those at the known places in a new order."""
    hidden = [place for place in range(len(deck)) if place not in known_places]
    places = dict(zip(hidden, rng.sample(hidden, len(hidden)), strict=True))
    return tuple(deck[places.get(place, place)] for place in range(len(deck)))


def iterate_states_to_move(game: SmallPoker) -> Iterator[tuple[SmallHand, int]]:
    """Yield all states in which a seat is to move, with the seat: deal by deal, each state before its successors."""
    for deal in game.deals():
        waiting = [deal]
        while waiting:
            state = waiting.pop()
            seat = game.seat_to_move(state)
            if seat is None:
                continue
            yield state, seat
            waiting += [game.step(state, seat, command) for command in reversed(game.legal(state, seat))]


def count_information_sets(game: SmallPoker) -> int:
    """Return the number of information sets of both seats: 12 in Kuhn poker, 936 in Leduc poker."""
    return len({game.information(state, seat) for state, seat in iterate_states_to_move(game)})


def build_strategy(game: SmallPoker, choose_command: Callable[[tuple[str, ...]], Mapping[str, float]]) -> Strategy:
    """Build a strategy of both seats that depends only on the legal commands."""
    return {
        game.information(state, seat): choose_command(game.legal(state, seat)) for state, seat in iterate_states_to_move(game)
    }


def build_uniform_strategy(game: SmallPoker) -> Strategy:
    """Build the strategy of both seats that plays each legal command equally often."""
    return build_strategy(game, lambda legal: dict.fromkeys(legal, 1 / len(legal)))


def make_strategy_baseline(game: SmallPoker, name: str) -> ChooseCommand:
    """Make the baseline that plays one of the game's strategies; it draws a command if more than one has a probability above 0."""

    def choose_command(state: SmallHand, seat: int, rng: random.Random) -> str:
        shares = game.strategies[name][game.information(state, seat)]
        weights = {command: share for command, share in shares.items() if share > 0}
        return next(iter(weights)) if len(weights) == 1 else rng.choices([*weights], [*weights.values()])[0]

    return choose_command


def _name_card(card: str) -> str:
    """Return `king of spades` for Ks, `king` for K."""
    return SMALL_CARD_NAMES[card[0]] + (f" of {SMALL_SUIT_NAMES[card[1]]}" if len(card) > 1 else "")


def _describe_winner(rewards: tuple[int, int], seats: tuple[str, ...]) -> str:
    if rewards[0] == 0:
        return "The pot is split: both get their chips back."
    winner = 0 if rewards[0] > 0 else 1
    return f"{seats[winner]} wins {format_count(rewards[winner], 'chip')} from {seats[1 - winner]}."


def lose_chips(seat: int, chips: int) -> tuple[int, int]:
    """Return the rewards if a seat loses chips to the other."""
    return (-chips, chips) if seat == 0 else (chips, -chips)


def _make_poker_result(nets: tuple[int, int], *flags: str) -> GameResult:
    outcomes: tuple[EpisodeOutcome, ...] = tuple("win" if chips > 0 else "loss" if chips < 0 else "draw" for chips in nets)
    return GameResult((float(nets[0]), float(nets[1])), outcomes, flags)


def _explain_illegal(action: str, now: Betting, seat: int) -> str:
    hint = f"allowed: {', '.join(now.legal)}"
    word = _WORD.match(action[:_MAX_WORDS].casefold())
    command = word[0] if word else ""
    if command not in SMALL_POKER_COMMANDS:
        return f"This is no command of the game; {hint}."
    is_behind = now.stakes[seat] < now.stakes[1 - seat]
    if is_behind and command in ("check", "bet"):
        return f"You cannot {command}, because there is a bet to answer; {hint}."
    if not is_behind and command in ("call", "fold", "raise"):
        return f"You cannot {command}, because there is no bet; {hint}."
    return f"You cannot {command} in this stage of betting any more; {hint}."
