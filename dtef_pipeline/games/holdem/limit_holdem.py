"""`poker/limit-holdem`: the scenario that its manifest describes. See `games.contract.Scenario` for what each method promises."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Chooses, Count, EpisodeOutcome, GameEnding, GameMetric, GameResult, Illegal
from dtef_pipeline.games.holdem.betting import STREET_NAMES, HoldemHand, after, allowed, new_hand
from dtef_pipeline.games.holdem.commands import betting_command, why_not
from dtef_pipeline.games.holdem.deck import BOARD_STARTS, dealt_anew, own_cards
from dtef_pipeline.games.holdem.play_counts import HOLDEM_METRICS, counts_of
from dtef_pipeline.games.holdem.practice import HOLDEM_BASELINES
from dtef_pipeline.games.holdem.showdown import nets
from dtef_pipeline.games.holdem.table_view import end_of_hand, view
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.reading import read_command, spoken_action


def of_manifest(manifest: ScenarioManifest) -> LimitHoldem:
    """The scenario of a manifest. Raises ConfigError for another number of seats than two and for any settings: there are none."""
    if len(manifest.seats) != 2:
        raise ConfigError(f"scenario {manifest.id}: got {len(manifest.seats)} seats; allowed: 2, the button first")
    if manifest.settings:
        raise ConfigError(
            f"scenario {manifest.id}: got settings {', '.join(manifest.settings)}; allowed: none, as the limits are fixed"
        )
    return LimitHoldem(manifest)


class LimitHoldem:
    """Fixed-limit hold'em for two, one hand per episode. A state is a `HoldemHand`."""

    unit = "chips"
    zero_sum = True
    metrics: tuple[GameMetric, ...] = HOLDEM_METRICS
    baselines: Mapping[str, Chooses] = HOLDEM_BASELINES

    def __init__(self, manifest: ScenarioManifest) -> None:
        self.name = manifest.id
        self.seats = tuple(manifest.seats)

    def reset(self, seed: int, seating: tuple[int, ...]) -> HoldemHand:
        """A hand with both blinds paid, dealt from the seed, whoever sits where."""
        return new_hand(seed)

    def to_move(self, state: HoldemHand) -> int | None:
        """The seat whose turn it is; None: the hand is over."""
        return state.turn

    def observation(self, state: HoldemHand, seat: int) -> str:
        """Position, own cards, board, pot, bets to call, and all actions by street; after a showdown also the other's cards."""
        return view(state, seat, self.seats)

    def legal(self, state: HoldemHand, seat: int) -> tuple[str, ...]:
        """The allowed commands in the order fold, check, call, bet, raise; none where it is not the seat's turn."""
        return allowed(state) if seat == state.turn else ()

    def read(self, text: str, state: HoldemHand, seat: int) -> str | Illegal:
        """The command that a text gives, else why it is none: see `holdem.commands`."""
        legal = self.legal(state, seat)
        if not legal:
            return Illegal("It is not your turn.")
        found = read_command(text, legal, betting_command)
        if isinstance(found, str) or found.kind != "illegal":
            return found
        return Illegal(why_not(spoken_action(text) or "", state))

    def step(self, state: HoldemHand, seat: int, command: str) -> HoldemHand:
        """The hand after an allowed command. Raises ValueError for another one, and for a seat whose turn it is not."""
        if seat != state.turn:
            raise ValueError(f"{self.name}: got {command!r} from seat {seat}; allowed: seat {state.turn}, whose turn it is")
        return after(state, command)

    def result(self, state: HoldemHand) -> GameResult | None:
        """Net chips of each seat; None while the hand goes on."""
        return None if state.turn is not None else _result(nets(state))

    def stopped(self, state: HoldemHand, seat: int | None) -> GameResult:
        """A seat that forfeits loses what it has put in, as if it folded; at the limit of turns both get their chips back."""
        if seat is None:
            return GameResult((0.0, 0.0), ("draw", "draw"), ("turn_limit",))
        lost = state.paid[seat]
        return _result((-lost, lost) if seat == 0 else (lost, -lost), "forfeit")

    def default(self, state: HoldemHand, seat: int) -> str:
        """Check, else fold."""
        return "check" if "check" in self.legal(state, seat) else "fold"

    def measured(self, state: HoldemHand, seat: int) -> Mapping[str, Count]:
        """One hand's part of each of `metrics`."""
        return counts_of(state, seat)

    def ending(self, state: HoldemHand) -> GameEnding:
        """Board, pot, who won it, and the cards of a showdown; after a fold nobody is shown any."""
        return end_of_hand(state, self.seats)

    def told(self, state: HoldemHand) -> dict[str, Any]:
        """The whole hand, with all cards."""
        return {
            "cards": [list(own_cards(state.deck, seat)) for seat in (0, 1)],
            "board": list(state.board),
            "undealt": list(state.deck[BOARD_STARTS + len(state.board) :]),
            "street": STREET_NAMES[state.street],
            "bets": state.bets,
            "paid": list(state.paid),
            "actions": [[STREET_NAMES[action.street], action.seat, action.command] for action in state.actions],
            "to_move": state.turn,
        }

    def permuted(self, state: HoldemHand, seat: int, rng: random.Random) -> HoldemHand:
        """The same hand with all cards dealt anew that the seat has not seen: the other's, unless they were shown, and those to come."""
        known = {seat, seat + 2, *range(BOARD_STARTS, BOARD_STARTS + len(state.board))}
        if state.shown:
            known |= {1 - seat, 3 - seat}
        return replace(state, deck=dealt_anew(state.deck, known, rng))


def _result(won: tuple[int, int], *flags: str) -> GameResult:
    outcomes: tuple[EpisodeOutcome, ...] = tuple("win" if chips > 0 else "loss" if chips < 0 else "draw" for chips in won)
    return GameResult((float(won[0]), float(won[1])), outcomes, flags)
