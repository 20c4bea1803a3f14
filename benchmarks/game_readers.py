"""100,000 random texts to the reader of every scenario: none may crash, and none may give a command that the game does not take.

The texts are made of what players write: commands of the state, marks, arrows, cards, JSON, thinking, refusals, and characters that are none.
Then each unit is repeated to a long text and to one eight times as long: reading must take no more than its share of time.

Run: `python benchmarks/game_readers.py [COUNT] [--scenario NAME] [--seed 1] [--only NUMBER]`. `--only` reads one text again and shows it.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.manifest import read_manifests
from dtef_pipeline.games.packs import Pack, adapters

SCENARIOS = Path(__file__).parent.parent / "data" / "scenarios"
EPISODES = 20
"""Played at random, for the states in which texts are read."""
LONG, SHARE = 50_000, 3
"""Characters of a long text, and how many times more than its share of time the longer one may take on a busy machine."""
PIECES = (
    "ACTION: ", "Action:", "**ACTION:** ", "action", "\n", "\n\n", " ", ", ", ". ", " or ", "not ", "->", " → ", "=>",
    "to ", "`", "```", "```json\n", "**", "_", "\"", "'", "{", "}", "[", "]", "(", ")", "<", ">", "\\", "$",
    "\\boxed{", "<think>", "</think>", "I can't play this", "I won't ", "10♠", "Ts", "T of spades", "A", "K", "7",
    "13", "99", "-1", "1e309", "50.5", "٣", "move ", "foundation", "c1", "c9", "draw", "recycle", "hint", "resign",
    "fold", "check", "call", "bet", "raise", "pass", "bid ", "$42", '{"propose": ', '{"accept": true}', '{"bid": 5}',
    '"A": [', "null", "NaN", "\x00", "\ud800", "İ", "ſ", "漢", "\u2028", "\u202e", "\u0301", "\u200b", "\ufe0f", "é",
    "1. ", "- ", "> ", "9" * 30,
)  # fmt: skip


class Situation(NamedTuple):
    """A state in which a seat is to move, and what it may do."""

    state: Any
    seat: int
    legal: tuple[str, ...]


def situations(pack: Pack) -> list[Situation]:
    """All of some episodes that are played at random."""
    scenario, found = pack.scenario, []
    for seed in range(EPISODES):
        rng, state = random.Random(seed), pack.scenario.reset(seed, tuple(range(len(pack.manifest.seats))))
        for _ in range(pack.manifest.turn_limit):
            seat = scenario.to_move(state)
            if seat is None:
                break
            found.append(Situation(state, seat, scenario.legal(state, seat)))
            state = scenario.step(state, seat, rng.choice(found[-1].legal))
    return found


def text_of(rng: random.Random, legal: tuple[str, ...]) -> str:
    return "".join(rng.choice(legal) if rng.random() < 0.2 else rng.choice(PIECES) for _ in range(rng.randint(0, 12)))


def fault(pack: Pack, at: Situation, text: str) -> str | None:
    """What is wrong with how a text was read; None: nothing."""
    try:
        found = pack.scenario.read(text, at.state, at.seat)
        if isinstance(found, Illegal):
            return None if found.reason else "no reason"
        if found not in at.legal:
            pack.scenario.step(at.state, at.seat, found)  # some scenarios take more than they list, such as a hint
    except Exception as error:  # every crash is what this looks for
        return f"{type(error).__name__}: {error}"
    return None


def read_many(pack: Pack, count: int, seed: int, only: int | None) -> int:
    """Reads the texts and says what came of them. Returns the number of faults."""
    places, kinds, faults = situations(pack), Counter[str](), 0
    began = time.perf_counter()
    for number in range(count) if only is None else [only]:
        rng = random.Random(f"{seed}-{number}")
        at = rng.choice(places)
        text = text_of(rng, at.legal)
        if wrong := fault(pack, at, text):
            faults += 1
            print(f"{pack.name} text {number}: {wrong}: {text!r}")
            continue
        found = pack.scenario.read(text, at.state, at.seat)
        kinds[found.kind if isinstance(found, Illegal) else "command"] += 1
        if only is not None:
            print(f"{text!r}\n{found!r}\nallowed: {', '.join(at.legal)}")
    print(
        f"{pack.name}: {count:,} texts in {time.perf_counter() - began:.1f} s, faults {faults}, read as {dict(kinds.most_common())}"
    )
    return faults


def slow_units(pack: Pack) -> list[str]:
    """Pieces that take more than their share of time when they are repeated."""
    at = situations(pack)[0]

    def seconds(unit: str, length: int) -> float:
        text = (unit * (length // len(unit) + 1))[:length]
        began = time.process_time()
        pack.scenario.read(text, at.state, at.seat)
        return time.process_time() - began

    found = []
    for unit in (*PIECES, *at.legal[:5], *(f"{command} or " for command in at.legal[:2])):
        short = min(seconds(unit, LONG) for _ in range(2))
        if (longer := seconds(unit, 8 * LONG)) > 8 * SHARE * short + 0.1:
            found.append(f"{unit!r}: {short:.3f} s, then {longer:.3f} s")
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("count", type=int, nargs="?", default=100_000)
    asked.add_argument("--scenario")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--only", type=int)
    options = asked.parse_args()
    faults = 0
    for name, manifest in read_manifests(SCENARIOS).items():
        if options.scenario in (None, name):
            pack = Pack(manifest, adapters()[name](manifest))
            faults += read_many(pack, options.count, options.seed, options.only)
            if options.only is None:
                slow = slow_units(pack)
                faults += len(slow)
                print(f"  more than their share of time: {'; '.join(slow) or 'none'}")
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
