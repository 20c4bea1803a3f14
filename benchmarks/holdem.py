"""Hands of hold'em per second through the whole contract, for each pair of baselines, on one core; texts read per second; and the oracle.

Every turn is played as a player has it: it is told the observation and the legal commands, its text is read, the command is played. In the
end the result and the counts of both seats are taken. Then as many random hands are played at a table of pokerkit's beside: the first state in
which the two differ ends the run. Ends with 1 below 500 hands per second. Run: `python -m benchmarks.holdem [HANDS]`.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from dtef_pipeline.games.baselines import baseline_of, baseline_rng
from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.holdem.betting import allowed
from dtef_pipeline.games.holdem.limit_holdem import LimitHoldem, of_manifest
from dtef_pipeline.games.manifest import read_manifest
from tests.made.pokerkit_table import same_at_both_tables

MANIFEST = Path(__file__).resolve().parent.parent / "data" / "scenarios" / "poker" / "limit-holdem.yaml"
PAIRS = (
    ("random", "random"),
    ("always-raise", "random"),
    ("tight", "always-raise"),
    ("always-raise", "always-raise"),
    ("always-call", "always-call"),
)
WANTED = 500
TEXTS = 100_000
WORDS = (
    "ACTION:",
    "fold",
    "check",
    "call",
    "bet",
    "raise",
    "Raise",
    "2",
    "to",
    "all-in",
    "\n",
    "I",
    "Ah",
    "\x00",
    "\ud800",
    "`",
    "10♠",
    "🂡",
)


def play(scenario: LimitHoldem, seed: int, names: tuple[str, str]) -> int:
    """One hand, with every text read. Returns its number of turns."""
    players = [(baseline_of(scenario, name), baseline_rng(seed, seat)) for seat, name in enumerate(names)]
    state, turns = scenario.reset(seed, (0, 1)), 0
    while (seat := scenario.to_move(state)) is not None:
        told = f"{scenario.observation(state, seat)}\n{', '.join(scenario.legal(state, seat))}"
        chooses, rng = players[seat]
        found = scenario.read(f"I have read {len(told)} signs.\nACTION: {chooses(state, seat, rng)}", state, seat)
        if isinstance(found, Illegal):
            raise ValueError(found.reason)
        state, turns = scenario.step(state, seat, found), turns + 1
    result = scenario.result(state)
    if result is None or sum(result.rewards) != 0:
        raise ValueError(f"seed {seed}: got {result}; allowed: rewards that sum to 0")
    for seat in (0, 1):
        scenario.measured(state, seat)
    return turns


def read_noise(scenario: LimitHoldem) -> tuple[int, float]:
    """How many random texts gave a command, and texts per second. Raises ValueError for a command that is not allowed."""
    rng, found, start = random.Random(1), 0, time.perf_counter()
    states = [scenario.reset(seed, (0, 1)) for seed in range(50)]
    for number in range(TEXTS):
        state = states[number % len(states)]
        said = scenario.read(" ".join(rng.choices(WORDS, k=rng.randrange(12))), state, 0)
        if isinstance(said, str):
            found += 1
            if said not in allowed(state):
                raise ValueError(f"got {said}; allowed: {', '.join(allowed(state))}")
    return found, TEXTS / (time.perf_counter() - start)


def main(hands: int) -> int:
    scenario = of_manifest(read_manifest(MANIFEST))
    slowest = float("inf")
    for names in PAIRS:
        start = time.process_time()
        turns = sum(play(scenario, seed, names) for seed in range(hands))
        rate = hands / (time.process_time() - start)
        slowest = min(slowest, rate)
        print(f"{' against '.join(names)}: {rate:,.0f} hands per second, {turns / hands:.1f} turns per hand")
    found, rate = read_noise(scenario)
    print(f"{TEXTS:,} random texts: {found:,} gave a command, {rate:,.0f} texts per second")
    rng = random.Random(1)
    shown = sum(same_at_both_tables(seed, rng).shown for seed in range(hands))
    print(f"{hands:,} random hands, {shown:,} of them shown down, are the same at pokerkit's table")
    return 0 if slowest >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000))
