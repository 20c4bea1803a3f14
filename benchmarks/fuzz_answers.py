"""One million random replies through the readers of letters and numbers: none may crash, the time must grow as the length does.

Then how long scoring takes: replies of 300 to 2,000 characters to multiple-choice items, each item read once for ten models, as a full
run of MMLU (14,042 items x 10 models) would be. Shows the slowest reply by its seed: `python benchmarks/fuzz_answers.py --only 1-1234`
reads that one again. Run: `python benchmarks/fuzz_answers.py [COUNT] [--seed 1]`.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from fractions import Fraction

from dtef_pipeline.qa.model import ScorerSettings, Written
from dtef_pipeline.qa.reading.choice import ExactChoice, read_letter
from dtef_pipeline.qa.reading.numeric import Numeric, read_number

MMLU_ITEMS, MMLU_MODELS = 14_042, 10
LISTS_OF_OPTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("London", "Berlin", "Paris", "Madrid"),
    ("3", "4", "0.5", "50%"),
    ("x + 1", "x - 1", "None", "nan", "E. coli", "a", "A", "(B)", "", "same"),
    ("same", "same"),
)
CUES = (
    "The answer is ", "answer", "Answer: ",
    "ANSWER ", "\nA: ", "final answer ", "final result is ", "the correct option is ", "option ",
    "choice ", "closest to ", "so ", "therefore, ", " is the correct answer", "I choose ", "not ", "n't ", "neither ", "cannot be ",
    "not only ", "but also ", "\\boxed{", "\\fbox{", "\\frac{",
    "\\text{", "}", "{", "#### ", "####", "<think>", "</think>", "```python\n", "```", "Step 1: ", "\n1. ", "= ",
)  # fmt: skip
SAID = (
    "A", "B", "(C)", "D.", "**A**", "I ", "J)", "e", "(a)", "London", "Paris", "E. coli", "none", "____", "1,234", "-5", "$18", "50%", "3/4",
    "1/0", "½", "1e3", "1e99999", "3:45", "5th", "seven hundred and five ", "one ", "a half ", "minus ", "twenty-first", "9" * 50, ".5",
    "5.", "1.2.3", "two dozen", "- 5", " to 2 decimal places", "between 5 and 10",
    "٣", "Ａ", "（Ｃ）", "−", "x10^3", "k", "million ",
)  # fmt: skip
BETWEEN = (
    " ",
    "\n",
    "\n\n",
    ", ",
    ". ",
    " and ",
    " or ",
    ": ",
    "*",
    "_",
    "(",
    ")",
    "\\",
    "$",
    "\x00",
    "\ud800",
    "İ",
    "漢",
    "\u2028",
    "\u0301",
    "",
)
UNITS = (
    "(",
    "answer is ",
    "answer ",
    "####",
    "\\boxed{",
    "9",
    "one ",
    "1,23,",
    "1,234,",
    "1.234",
    "1_000",
    "12 345 ",
    "2^",
    "1 - ",
    "answer is not A ",
    "answer can't be A ",
    "answer is not only A but also B ",
    "not London, ",
    "3.33 to 2 decimal places ",
    "answer is two dozen, or ",
    "is - 5 ",
    "A. x\nB. y\n",
    "A\n",
    "so ",
    "option A is ",
    "closest ",
    "```py\n",
    "\ud800",
    "- ",
)
SENTENCE = "Each option has to be weighed against what the text says about 24 cities in 1984, and most of them fall away. "
GROWTH_ALLOWED = 16
"""Times as long, for eight times the text: what is linear grows eightfold, what is quadratic 64-fold."""


def reply_of(seed: str) -> str:
    """The reply that a seed stands for."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.1:
        return rng.randbytes(rng.choice((8, 40, 200))).decode(rng.choice(("latin-1", "utf-8", "utf-16-le")), "replace")
    if kind < 0.15:
        return "".join(chr(rng.randrange(rng.choice((0x250, 0x3000, 0x110000)))) for _ in range(rng.choice((5, 40))))
    parts = [rng.choice(rng.choice((CUES, SAID, BETWEEN))) for _ in range(rng.choice((2, 5, 10, 30)))]
    return "".join(parts) if kind < 0.8 else SENTENCE * rng.randint(0, 4) + "".join(parts) + SENTENCE * rng.randint(0, 2)


def read(text: str, rng: random.Random) -> tuple[str, str]:
    """The rules that read the reply, found to be readings at all."""
    was_cut, options = rng.random() < 0.2, rng.choice(LISTS_OF_OPTIONS)
    letter, number = read_letter(text, options, was_cut=was_cut), read_number(text, was_cut=was_cut)
    assert letter.letter is None or letter.letter in "ABCDEFGHIJ"[: len(options) or 4], text
    assert number.number is None or isinstance(number.number, Fraction), text
    assert (letter.letter is None, number.number is None) == (letter.how is None, number.how is None), text
    return f"letter {letter.how}", f"number {number.how}"


def fuzz(count: int, seed: int) -> None:
    found: Counter[str] = Counter()
    slowest, in_readers = (0.0, ""), 0.0
    for number in range(count):
        name = f"{seed}-{number}"
        text, rng = reply_of(name), random.Random(number)
        started = time.process_time()
        found.update(read(text, rng))
        took = time.process_time() - started
        in_readers += took
        slowest = max(slowest, (took, name))
    print(f"{count:,} replies through both readers, no crash: {count / in_readers:,.0f} a second")
    for how, times in sorted(found.items()):
        print(f"  {how:22} {times:,}")
    print(f"slowest: {1000 * slowest[0]:.2f} ms: --only {slowest[1]}")


def seconds(text: str) -> float:
    """The best of three, so that a busy machine counts less."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        read_letter(text, LISTS_OF_OPTIONS[1])
        read_number(text)
        best = min(best, time.process_time() - started)
    return best


def growth() -> None:
    """The time for eight times the text, of texts that repeat one piece."""
    for unit in UNITS:
        short, long = (seconds(unit * (length // len(unit))) for length in (60_000, 480_000))
        ratio = long / max(short, 1e-4)
        assert ratio < GROWTH_ALLOWED, (unit, short, long)
        print(f"  {unit!r:16} {1000 * long:7.1f} ms for 480,000 characters, {ratio:4.1f} times as long as for 60,000")


def throughput(seed: int) -> None:
    """Scoring as in a full run of MMLU, on replies with and without a statement, one in ten of them with characters beyond ASCII."""
    rng = random.Random(seed)
    endings = (
        "The answer is (C).",
        "Answer: B",
        "**The correct answer is A) London.**",
        "So it is Paris.",
        "",
        "Therefore, option D.",
    )
    replies = []
    for _ in range(2_000):
        working = (SENTENCE * 20)[: rng.randint(300, 2_000)]
        replies.append(Written(working + rng.choice(("", "", "é", "")) + "\n\n" + rng.choice(endings)))
    options, settings = LISTS_OF_OPTIONS[1], ScorerSettings()
    started = time.process_time()
    for number in range(0, len(replies), MMLU_MODELS):
        score = ExactChoice().for_item("C", options, settings)
        for reply in replies[number : number + MMLU_MODELS]:
            score(reply)
    each = (time.process_time() - started) / len(replies)
    full = each * MMLU_ITEMS * MMLU_MODELS
    print(f"exact_choice: {1e6 * each:.0f} microseconds a reply, {full:.1f} s for {MMLU_ITEMS:,} items x {MMLU_MODELS} models")
    started = time.process_time()
    numeric = Numeric().for_item("24", (), settings)
    for reply in replies:
        numeric(reply)
    print(f"numeric: {1e6 * (time.process_time() - started) / len(replies):.0f} microseconds a reply")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("count", type=int, nargs="?", default=1_000_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only", help="seed of a single reply, as shown")
    chosen = arguments.parse_args()
    if chosen.only:
        text = reply_of(chosen.only)
        print(repr(text), read_letter(text, LISTS_OF_OPTIONS[1]), read_number(text), f"{1000 * seconds(text):.2f} ms", sep="\n")
        return
    throughput(chosen.seed)
    growth()
    fuzz(chosen.count, chosen.seed)


if __name__ == "__main__":
    main()
