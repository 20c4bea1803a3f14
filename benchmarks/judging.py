"""Judging at the size of a campaign: planning the requests, reading the replies, and the consensus of three judges per point.

Prints rows per second of each, and two ratios: planning to hashing the same texts alone, and the consensus to a plain loop over a sample
of its points, whose results are compared. Run: `python benchmarks/judging.py [JUDGEMENTS]` (540,000 unless given).
"""

from __future__ import annotations

import hashlib
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Message
from dtef_pipeline.judging.classes import FIVE_CLASSES
from dtef_pipeline.judging.consensus import consensus
from dtef_pipeline.judging.judgement import first_request
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import APPROACHES, Case
from dtef_pipeline.judging.replies import read_reply

MODEL = ModelSpec(name="judge", model="openai/judge", max_tokens=2048)
JUDGES = tuple(JudgeConfig(approach, MODEL) for approach in APPROACHES)
CRITERIA = tuple(f"The text says what should be done about matter number {at}, and who has to do it." for at in range(7))
PROMPT = (Message("system", "Be brief."), Message("user", "What does the law say about tenants, and what is disputed? " * 4))
PAGE = "Tenants may keep a deposit back, but not where the lease says so; opinions differ. " * 36
KEYS = ("prompt", "model", "temperature", "block", "path", "position")
FORMS = (
    "<reflection>The text names the duty.</reflection>\n<classification>{}</classification>",
    "<think>It could be CLASS_UNMET.</think><reflection>It does.</reflection><classification>**{}**</classification>",
    "Verdict: {}.",
    "The text is fine.",
)
SAMPLE = 20_000


class Measured(NamedTuple):
    """What was done: how often, and in how many seconds."""

    what: str
    rows: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.what}: {self.rows:,} in {self.seconds:.2f} s, {self.rows / self.seconds:,.0f}/s"


def cases(judgements: int) -> Iterator[Case]:
    """Responses of 3,000 characters with seven criteria each, as many as these judges need for so many judgements."""
    for number in range(max(1, judgements // (len(JUDGES) * len(CRITERIA)))):
        text = f"{PAGE}{number}"
        for criterion in CRITERIA:
            yield Case(text, criterion, PROMPT, CRITERIA)


def planning(judgements: int) -> tuple[Measured, float]:
    """The requests of all judgements, and how many times as long they take as the hashes of their texts."""
    started, rows, alone = time.perf_counter(), 0, 0.0
    for case in cases(judgements):
        for judge in JUDGES:
            request = first_request(case, judge, 0, "base")
            rows += 1
            if rows % 10 == 0:
                at = time.perf_counter()
                hashlib.sha256("".join(message.text for message in request.messages).encode()).hexdigest()
                alone += time.perf_counter() - at
    seconds = time.perf_counter() - started - alone
    return Measured("requests planned", rows, seconds), seconds / (10 * alone)


def reading(judgements: int) -> Measured:
    names = list(FIVE_CLASSES.numbers)
    replies = [FORMS[at % len(FORMS)].format(names[at % len(names)]) for at in range(1000)]
    started = time.perf_counter()
    read = sum(read_reply(replies[at % 1000]).name is not None for at in range(judgements))
    assert abs(read / judgements - 0.75) < 0.01
    return Measured("replies read", judgements, time.perf_counter() - started)


def judged(judgements: int) -> pa.Table:
    """Judgements of three judges, of which one in twenty has no class."""
    rng = np.random.default_rng(7)
    point = np.arange(judgements) // 3
    missing = rng.random(judgements) < 0.05
    score = np.where(missing, np.nan, rng.integers(0, 5, judgements) / 4)
    return pa.table(
        {
            "prompt": [f"prompt-{at}" for at in (point // 70).tolist()],
            "model": [f"model-{at}" for at in (point // 7 % 10).tolist()],
            "temperature": np.zeros(judgements),
            "block": np.where(point % 7 < 6, "should", "should_not"),
            "path": pa.nulls(judgements, pa.int32()),
            "position": point % 7,
            "judge": [f"judge-{at}" for at in (np.arange(judgements) % 3).tolist()],
            "score": pa.array(score, from_pandas=True),
            "reason": pa.array(np.where(missing, "unreadable", None), pa.string()),
            "inverted": point % 7 == 6,
        }
    )


def looped(rows: pa.Table) -> list[float | None]:
    """The scores, row by row."""
    votes: dict[tuple[object, ...], list[float]] = defaultdict(list)
    inverted: dict[tuple[object, ...], bool] = {}
    for row in rows.to_pylist():
        key = tuple(row[name] for name in KEYS)
        inverted[key] = row["inverted"]
        votes[key] += [] if row["score"] is None else [row["score"]]
    return [(1 - fmean(said) if inverted[key] else fmean(said)) if said else None for key, said in votes.items()]


def agreeing(judgements: int) -> tuple[Measured, float]:
    """The consensus of all, and how many times as fast it is as the loop."""
    rows = judged(judgements)
    started = time.perf_counter()
    points = consensus(rows, KEYS)
    seconds = time.perf_counter() - started
    few = rows.slice(0, SAMPLE // 3 * 3)
    started = time.perf_counter()
    plain = looped(few)
    alone = (time.perf_counter() - started) * judgements / len(few)
    found = np.array(points["score"].to_pylist()[: len(plain)], dtype=float)
    np.testing.assert_allclose(found, np.array(plain, dtype=float), atol=1e-12)
    return Measured("judgements agreed", judgements, seconds), alone / seconds


def main() -> None:
    judgements = int(sys.argv[1]) if len(sys.argv) > 1 else 540_000
    planned, of_hashing = planning(judgements)
    print(f"{planned}; {of_hashing:.1f} times the hashing of the texts alone")
    print(reading(judgements))
    agreed, faster = agreeing(judgements)
    print(f"{agreed}; {faster:.0f} times as fast as a loop")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
