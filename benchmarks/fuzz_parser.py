"""One million hostile responses through the parser, of every task: none may crash it, none may take long.

Prints how many were read as what, and the slowest single one with its seed: `python benchmarks/fuzz_parser.py --only 1-123456` shows
that one again. Run: `python benchmarks/fuzz_parser.py [COUNT] [--seed 1]`.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dtef_pipeline.survey.reading.distribution import ParsedResponse
from dtef_pipeline.survey.reading.parsing import Reading, parse_response
from dtef_pipeline.text.json_values import LOOK_BACK_IN_JSON
from dtef_pipeline.text.plain import LOOK_BACK

STATUSES = ("ok", "unparseable", "wrong_length", "refused", "missing")
OPTIONS: tuple[tuple[str, ...] | None, ...] = (
    ("Strongly agree", "Agree", "Disagree", "Strongly disagree"),
    ("0", "1", "2", "more than 7"),
    ("18-25", "26-35", "36+"),
    ("Yes", "No, never"),
    ("Humans are a part of nature and like other animals", "Humans are a part of nature but unlike other animals"),
    ("", "", "x"),
    tuple(f"Option number {i}" for i in range(30)),
    None,
)
READINGS = (
    Reading(),
    Reading(),
    Reading(marked=True),
    Reading("distribution", order=()),  # put into some order for as many options as there are
    Reading("individuals", order=(), individuals=20),
    Reading("individuals", individuals=20),
    Reading("individuals", individuals=500),
    Reading("individuals", individuals=20, marked=True),
    Reading("distribution", place=0, size=3),
    Reading("distribution", place=2, size=3),
    Reading("distribution", place=1, size=2, marked=True),
)
REAL = (
    "[45.2, 30.1, 15.5, 9.2]",
    "45.2%, 30.1%, 15.5%, 9.2%",
    "Here is my prediction:\n\n```json\n[45.2, 30.1, 15.5, 9.2]\n```\nYoung people tend to agree [1], see https://example.org/a?b=1.",
    "a. Strongly agree: 45%\nb. Agree: 30%\nc. Disagree: 15%\nd. Strongly disagree: 10%",
    "| Option | Share |\n|---|---|\n| Strongly agree | 45% |\n| Agree | 30% |\n| Disagree | 15% |\n| Strongly disagree | 10% |",
    "<think>maybe [10, 10, 80]?</think>The group leans to agree.\nDISTRIBUTION: [45, 30, 15, 10]",
    '{"reasoning": "They trust it: 60% [2].", "distribution": [45, 30, 15, 10]}',
    "[\n  45, // Strongly agree\n  30, // Agree\n  15, // Disagree\n  10  // Strongly disagree\n]",
    "I think 60% would say yes and 40% would say no, never.",
    "1,200, 800, 500, 100",
    '["a", "c", "b", "a", "a", "d", "b", "b", "c", "a", "a", "c", "b", "a", "a", "d", "b", "b", "c", "a"]',
    "Person 1: a\nPerson 2: c\nPerson 3: b. Disagree\nPerson 4: Yes\n" * 5,
    '{"answers": ["a", "b", "a", "b", "a", "b", "a", "b", "a", "b"]}',
    'They differ in age.\nANSWERS: ["a", "b", "a", "b", "a", "b", "a", "b", "a", "b", "a", "b"]',
    '{"Q1": [45, 30, 25], "Q2": [60, 40], "Q3": {"18-25": 50, "26-35": 30, "36+": 20}}',
    "### Question 1\n18-25: 50%\n26-35: 30%\n36+: 20%\n\n### Question 2\n[60, 40]\n\n### Question 3\n[1, 2, 3]",
    'First the young.\nDISTRIBUTIONS: {"Q1": [45, 30, 25], "Q2": [60, 40], "Q3": [1, 2, 3]}',
    "I'm sorry, but I cannot predict how this group would answer.",
)
PIECES = (
    "[", "]", "{", "}", "(", ")", ",", ";", ":", "|", "/", "-", "–", "%", " ", "\n", "\t", '"', "*", "~", "\\", "\\u00e9", "1",
    "45", "1,200", "0.5", ".", "e", "E+", "nan", "inf", "null", "<think>", "</think>", "```", "json", "Agree", "agree: ",
    "Strongly agree: 40%\n", "disagree ", "a.", "b) ", "(c)", "1. ", "Final answer:", "DISTRIBUTION:", "ANSWERS:", "DISTRIBUTIONS: ",
    "Q1: ", '"Q2": [', "Question 3\n", '{"distribution": ', '{"answers": [', '"a", ', "Person 7: ", "Humans are a part of nature ",
    "more than 7", "18-25", "about ", "between ", "\x00", "\ud800", "٤", "½", "²", "１", "％", "−", "é", "漢", "İ", "ß", "ﷺ", "\u0301",
    "\u2028", "to ", "or ", "and ", "percent", "40-45%", "total: 100", "sorry", "9" * 30, "no, never ", "would say ", "=", "→", "// ",
    "#", "-1", "option ", "[[", "[1, 2]", ": 1 ", "40% ",
)  # fmt: skip


class Case(NamedTuple):
    """One response to be read, with what was asked."""

    seed: str
    kind: str
    text: str
    options: tuple[str, ...] | None
    reading: Reading


def random_bytes(rng: random.Random) -> str:
    return rng.randbytes(rng.choice((8, 40, 200, 2000))).decode(rng.choice(("latin-1", "utf-8", "utf-16-le")), "replace")


def unicode(rng: random.Random) -> str:
    top = rng.choice((0x250, 0x3000, 0x110000))
    return "".join(chr(rng.randrange(top)) for _ in range(rng.choice((5, 40, 200))))


def pieces(rng: random.Random) -> str:
    chosen = rng.sample(PIECES, rng.randint(2, 12)) if rng.random() < 0.5 else PIECES
    return "".join(rng.choices(chosen, k=rng.choice((3, 10, 40, 40, 200))))


def mutated(rng: random.Random) -> str:
    text = rng.choice(REAL)
    for _ in range(rng.randint(1, 6)):
        at, size = rng.randrange(len(text) + 1), rng.randint(1, 8)
        change = rng.randrange(4)
        if change == 0:
            text = text[:at] + text[at + size :]
        elif change == 1:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif change == 2:
            text = text[:at] + text[at : at + 10 * size] * 2 + text[at + 10 * size :]
        else:
            text = text[:at] + rng.choice(REAL)
    return text


def repeated(rng: random.Random) -> str:
    """A few pieces again and again, up to all that is read and beyond."""
    unit = "".join(rng.choices(PIECES, k=rng.choice((1, 2, 2, 3, 5))))
    length = rng.choice((LOOK_BACK, LOOK_BACK, LOOK_BACK_IN_JSON + 500))
    return rng.choice(("", "DISTRIBUTION: ", '{"distribution": [', "Q1: ")) + (unit * (length // len(unit) + 1))[:length]


def nested(rng: random.Random) -> str:
    opening, closing = rng.choice(
        (("[", "]"), ("{", "}"), ('{"a":', "}"), ('{"Q1": ', "}"), ('{"distribution":[', "]}"), ("(", ")"))
    )
    depth = rng.choice((10, 200, 1200, LOOK_BACK))
    return opening * depth + rng.choice(("", "1", "[1, 2]", '"a"')) + closing * rng.choice((0, depth // 2, depth))


MAKERS: tuple[tuple[float, Callable[[random.Random], str]], ...] = (
    (0.15, random_bytes),
    (0.12, unicode),
    (0.28, pieces),
    (0.38, mutated),
    (0.05, repeated),
    (0.02, nested),
)


def case_of(seed: str) -> Case:
    """The case that a seed stands for."""
    rng = random.Random(seed)
    maker = rng.choices([maker for _, maker in MAKERS], [share for share, _ in MAKERS])[0]
    options = OPTIONS[0] if rng.random() < 0.3 else rng.choice(OPTIONS)
    reading = rng.choice(READINGS)
    if reading.order is not None:
        reading = reading._replace(order=tuple(rng.sample(range(number_of(options)), number_of(options))))
    return Case(seed, maker.__name__, maker(rng), options, reading)


def number_of(options: tuple[str, ...] | None) -> int:
    return 3 if options is None else len(options)


def cases(count: int, seed: int) -> Iterator[Case]:
    return (case_of(f"{seed}-{number}") for number in range(count))


def read(case: Case) -> ParsedResponse:
    """The case read, and the result found to be one."""
    n = number_of(case.options)
    parsed = parse_response(case.text, n, case.options, case.reading)
    assert parsed.status in STATUSES, case.seed
    assert parsed.reason, case.seed
    parsed.reason.encode()  # it must fit into a table
    assert (parsed.distribution is not None) == (parsed.status == "ok"), case.seed
    if parsed.distribution is not None:
        assert len(parsed.distribution) == n, case.seed
        assert min(parsed.distribution) >= 0, case.seed
        assert math.isclose(sum(parsed.distribution), 1, abs_tol=1e-9), case.seed
    return parsed


def seconds(case: Case) -> float:
    started = time.process_time()
    read(case)
    return time.process_time() - started


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("count", type=int, nargs="?", default=1_000_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only", help="seed of a single case, as printed")
    chosen = arguments.parse_args()
    if chosen.only:
        case = case_of(chosen.only)
        print(
            case._replace(text=case.text[:200]), read(case), f"{1000 * min(seconds(case) for _ in range(5)):.2f} ms", sep="\n"
        )
        return
    found: Counter[tuple[str, str]] = Counter()
    slowest: list[tuple[float, str, str]] = []
    for case in cases(chosen.count, chosen.seed):
        started = time.process_time()
        parsed = read(case)
        took = time.process_time() - started
        found[case.kind, parsed.status] += 1
        if took > 0.002 and (len(slowest) < 5 or took > slowest[-1][0]):
            # The machine may have been busy with something else: what counts is the text, so it is read again.
            slowest = sorted([*slowest, (min(took, *(seconds(case) for _ in range(4))), case.seed, case.kind)], reverse=True)[
                :5
            ]
    print(f"{chosen.count:,} responses, no crash")
    for (kind, status), times in sorted(found.items()):
        print(f"  {kind:12} {status:12} {times:,}")
    for took, seed, kind in slowest:
        print(f"{1000 * took:.2f} ms: --only {seed} ({kind})")


if __name__ == "__main__":
    main()
