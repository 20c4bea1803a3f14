"""How often drift is found that is not there, and how soon that which is: simulations where the truth is known.

A series is 100 questions asked every night: each question's score varies from night to night by itself, and all of a night vary together. The
verdict is that of the software, by the range of the nights and by the evidence. The test suite runs these small.
Run: `python benchmarks/drift_null.py [SETS]`; it prints what docs/drift.md tells of single series.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.signal import lfilter

from dtef_pipeline.drift.evidence import BASELINE
from dtef_pipeline.drift.judged import Judged, PairCodes, Standing
from dtef_pipeline.drift.rule import drift_verdict
from dtef_pipeline.drift.snapshots import Snapshot, panels
from dtef_pipeline.drift.verdict import verdict_on
from dtef_pipeline.survey.drift_subject import SUBJECT

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Design:
    """Scores around 0.7; a night effect is what all questions of a night share, its standard deviation `night_sd` in every design."""

    nights: int = 100
    questions: int = 100
    question_sd: float = 0.2
    night_sd: float = 0.0
    degrees: float = math.inf
    """Of Student's t that the night effects are drawn from: 5 has outliers."""
    autocorrelation: float = 0.0
    """Of the night effects of two nights that follow each other."""
    creep: float = 0.0
    """Rise per night."""
    missing: float = 0.0
    """Share of the answers that no night has."""
    clipped: bool = False
    """Whether scores end at 0 and 1, as they do; a shift is then less than it says, for those near an end."""
    shift: float = 0.0
    since: int = 0
    until: int = 10**9
    """The shift is there from night `since` (from 0) to before night `until`."""


@dataclass(frozen=True, slots=True)
class Found:
    """(sets,) each: whether the documented rule flagged it, whether the nights reach as far apart as it asks for (the same where no answer is
    missing), the highest e-value as log10, and whether the 95 % interval of the shift has the true one."""

    flagged: npt.NDArray[np.bool_]
    large: npt.NDArray[np.bool_]
    log10_e: Floats
    covered: npt.NDArray[np.bool_]

    def drift(self, sharing: int = 1, alpha: float = 0.05) -> float:
        """Share of sets with the verdict `drift` when so many series share alpha."""
        return float(np.mean(self.large & (self.log10_e >= math.log10(sharing / alpha))))


def night_effects(design: Design, generator: np.random.Generator) -> Floats:
    """(nights,) with the shift and the creep."""
    if math.isinf(design.degrees):
        drawn = generator.normal(size=design.nights)
    else:
        drawn = generator.standard_t(design.degrees, design.nights) / math.sqrt(design.degrees / (design.degrees - 2))
    kept = design.autocorrelation
    drawn[1:] *= math.sqrt(1 - kept**2)
    night = np.arange(design.nights)
    shifted = design.shift * ((night >= design.since) & (night < design.until))
    return np.asarray(design.night_sd * lfilter([1.0], [1.0, -kept], drawn) + shifted + design.creep * night)


def series(design: Design, sets: int, seed: int) -> Iterator[pd.DataFrame]:
    """Scores (questions, nights), one frame per set; columns are dates."""
    generator = np.random.default_rng(seed)
    dates = [(datetime(2026, 1, 1) + timedelta(days=night)).date().isoformat() for night in range(design.nights)]
    for _ in range(sets):
        level = 0.7 + 0.1 * generator.normal(size=(design.questions, 1))
        noise = design.question_sd * generator.normal(size=(design.questions, design.nights))
        scores = level + noise + night_effects(design, generator)
        if design.clipped:
            scores = scores.clip(0, 1)
        if design.missing:
            scores[generator.random(scores.shape) < design.missing] = np.nan
        yield pd.DataFrame(scores, columns=dates)


def simulated_verdicts(design: Design, sets: int, seed: int, *, baseline: int = BASELINE) -> Found:
    """The verdict after the last night. It has been `drift` on some night if and only if it is then: neither range nor evidence falls."""
    flagged, large, highest, covered = [], [], [], []
    questions = [f"q{place}" for place in range(design.questions)]
    for values in series(design, sets, seed):
        times = {label: datetime.fromisoformat(label) for label in values.columns}
        flagged.append(drift_verdict(values, times, temperature=0).flagged)
        found = verdict_on(values, questions, baseline=baseline, threshold=math.log10(20))
        large.append(found.verdict != "none")
        highest.append(found.seen.highest or 0.0)
        low, high = found.shift_low, found.shift_high
        covered.append(low is None or high is None or low <= design.shift <= high)
    return Found(np.array(flagged), np.array(large), np.array(highest), np.array(covered))


def no_drift(sets: int) -> None:
    print(f"\nNo drift. Share of series ever flagged by the rule, ever `drift`; {sets:,} series each, 100 nights")
    noisy = Design(night_sd=0.02)
    designs = {
        "questions alone (run-mean sd .02)": Design(),
        "night effect alone (sd .02)": Design(question_sd=0.0, night_sd=0.02),
        "both (run-mean sd .028)": noisy,
        "10 questions, night effect": replace(noisy, questions=10),
        "nights with t of 5 degrees": Design(question_sd=0.0, night_sd=0.02, degrees=5),
        "nights with t of 3 degrees": Design(question_sd=0.0, night_sd=0.02, degrees=3),
        "autocorrelation .2": Design(question_sd=0.0, night_sd=0.02, autocorrelation=0.2),
        "autocorrelation .5": Design(question_sd=0.0, night_sd=0.02, autocorrelation=0.5),
        "autocorrelation .8": Design(question_sd=0.0, night_sd=0.02, autocorrelation=0.8),
        "both, 5 % of answers missing": replace(noisy, missing=0.05),
        "both, a third of answers missing": replace(noisy, missing=0.33),
        "both, scores end at 0 and 1": replace(noisy, clipped=True),
        "one night .2 lower, both noises": replace(noisy, shift=-0.2, since=30, until=31),
        "two nights .2 lower, both noises": replace(noisy, shift=-0.2, since=30, until=32),
        "three nights .2 lower, both noises": replace(noisy, shift=-0.2, since=30, until=33),
        "one night .2 lower, sd .005": Design(question_sd=0.05, shift=-0.2, since=30, until=31),
        "two nights .2 lower, sd .005": Design(question_sd=0.05, shift=-0.2, since=30, until=32),
        "three nights .2 lower, sd .005": Design(question_sd=0.05, shift=-0.2, since=30, until=33),
        "one night of the baseline .2 lower, both noises": replace(noisy, shift=-0.2, since=2, until=3),
    }
    for name, design in designs.items():
        found = simulated_verdicts(design, sets, 1)
        e = (found.log10_e >= math.log10(20)).mean()
        print(f"| {name} | {found.flagged.mean():.1%} | {e:.1%} | {found.drift():.2%} | {found.drift(10):.2%} |", flush=True)


def rule_alone(sets: int) -> None:
    print("\nThe rule alone, no drift, run-mean sd .02, by number of runs")
    for nights in (2, 5, 10, 20, 50, 100):
        rate = simulated_verdicts(Design(nights=nights, question_sd=0.0, night_sd=0.02), sets, 2).flagged.mean()
        print(f"| {nights} | {rate:.1%} |", flush=True)


def power(sets: int) -> None:
    print("\nA shift of .08: share found within 10 nights, by nights before it and series that share alpha (1, 10, 100, 1,500)")
    for name, design in {
        "questions alone (sd .02)": Design(),
        "both (sd .028)": Design(night_sd=0.02),
        "both, 5 % of answers missing": Design(night_sd=0.02, missing=0.05),
        "questions alone, 400 of them (sd .01)": Design(questions=400),
    }.items():
        for since in (5, 10, 20, 50, 90):
            found = simulated_verdicts(replace(design, shift=0.08, since=since, nights=since + 10), sets, 3)
            rates = " | ".join(f"{found.drift(sharing):.0%}" for sharing in (1, 10, 100, 1500))
            print(f"| {name} | {since} | {found.flagged.mean():.0%} | {rates} | {found.covered.mean():.1%} |", flush=True)


def unseen(sets: int) -> None:
    print("\nWhat is hard to see: share found by night 100 (alone), and by 10 nights after")
    for name, design in {
        "shift on night 3, within the baseline": Design(shift=0.08, since=2),
        "creep of .001 per night": Design(creep=0.001),
        "creep of .003 per night": Design(creep=0.003),
        "shift of .08 for 5 nights from night 50": Design(shift=0.08, since=50, until=55),
    }.items():
        print(f"| {name} | {simulated_verdicts(design, sets, 4).drift():.0%} |", flush=True)


def standing(values: pd.DataFrame, asked: npt.NDArray[np.bool_]) -> str | None:
    """The verdict on a series that asked these questions (questions, nights) on these nights."""
    codes = np.arange(len(values), dtype=np.uint64)
    keys = dict.fromkeys(SUBJECT.keys.tested, "same") | {SUBJECT.keys.item: [f"q{code}" for code in codes]}
    names = dict.fromkeys(("prompt_id", "name", "cluster"), keys[SUBJECT.keys.item])
    labels = pd.DataFrame({**keys, **names}, index=pd.Index(codes))
    times = {label: datetime.fromisoformat(label) for label in values.columns}
    snapshots = []
    for night, label in enumerate(values.columns):
        own, ones = values[label].to_numpy()[asked[:, night]], np.ones(int(asked[:, night].sum()))
        snapshots.append(Snapshot(label, codes[asked[:, night]], own, own, ones, ones))
    found = panels(snapshots, BASELINE, times, PairCodes.of(labels, SUBJECT))
    return Standing.of(
        *([Judged(one, labels, SUBJECT, times, 0.0, math.log10(20)) for one in part] for part in found)
    ).shown.word


def smaller_panels(sets: int) -> None:
    print(
        "\nNo drift, questions and nights vary; some nights ask fewer of the 100 questions. Share of series with `drift` after 60 nights"
    )
    night = np.arange(60)
    few, half = np.arange(100) < 10, np.arange(100) < 50
    for name, nights, questions in (
        ("all nights ask all", night < 0, few),
        ("two of every ten nights ask 10 questions", night % 10 >= 8, few),
        ("the last ten nights ask 10 questions", night >= 50, few),
        ("nights 3 to 5, within the baseline, ask half", (night >= 2) & (night < 5), half),
    ):
        asked = ~nights[None, :] | questions[:, None]
        verdicts = [standing(values, asked) for values in series(Design(nights=60, night_sd=0.02), sets, 5)]
        print(f"| {name} | {np.mean([one == 'drift' for one in verdicts]):.1%} |", flush=True)


def main(sets: int) -> None:
    print(f"Two standard errors of a rate of 5 %: {2 * math.sqrt(0.05 * 0.95 / sets):.2%}")
    rule_alone(sets)
    no_drift(sets)
    power(sets)
    unseen(sets)
    smaller_panels(sets)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
