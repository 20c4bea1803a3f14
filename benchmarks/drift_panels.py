"""How often drift is said of a model that did not change, and found of one that did, where a panel of models is asked in the same nights.

Each model answers questions in 10 segments, nearly always as the night before; what all of a night share wanders, has weeks, bad nights and
outages. The questions are 20 of their own, or come in the batteries of a real round, each with a wobble of its own. Every figure goes through
`verdict_on` and `night_of`, which make what is published, half way and at the end: the share of panels in which any series had the verdict.
Run: `python benchmarks/drift_panels.py [SETS]`; `make figures` writes some of its rates into docs/explanation/drift.md.
The test suite runs these small, and `standing` besides: a series some of whose nights ask fewer of the questions.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.signal import lfilter

from benchmarks.coverage import GD3
from dtef_pipeline.drift.evidence import BASELINE
from dtef_pipeline.drift.history import Snapshot, build_panels
from dtef_pipeline.drift.models import JudgedPanel, build_pair_codes, choose_panel
from dtef_pipeline.drift.paired import Scores, compute_shared_shift
from dtef_pipeline.drift.rule import apply_drift_rule
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.verdict import Verdict, compute_verdict
from dtef_pipeline.survey.drift_subject import SUBJECT

Floats = npt.NDArray[np.float64]
SEGMENTS = 10
SINGLE = (1,) * 20


@dataclass(frozen=True, slots=True)
class Panel:
    """What the nights are like. Standard deviations are of the night's mean, in units of the score."""

    models: int = 1
    ways: int = 1
    """In which each model is asked, a series of its own each. The same model asked in another way is no control."""
    nights: int = 100
    batteries: tuple[int, ...] = SINGLE
    """How many questions each has; a battery is one cluster."""
    level: float = 0.6
    wobble: float = 0.0
    """That all models share."""
    autocorrelation: float = 0.0
    """Of the wobble, from night to night."""
    own: float = 0.0
    """A wobble of each series' own, with the same autocorrelation."""
    of_battery: float = 0.0
    """A wobble of each battery's own in each series, with the same autocorrelation: the standard deviation of the battery's mean."""
    degrees: float = math.inf
    """Of Student's t that the shared wobble is drawn from."""
    own_degrees: float = math.inf
    """The same of the wobbles of each series' own and of its batteries."""
    flips: float = 0.25
    """Share of the responses that differ from night to night."""
    noise: float = 0.05
    """By how much those do: the standard deviation of a response."""
    wander: float = 0.0
    """Autocorrelation of single responses."""
    weekly: float = 0.0
    """How much lower the two nights of a weekend are, of all models."""
    lottery: float = 0.0
    """How much lower the nights are, 30 % of them, on which another backend answers; of one model."""
    unparsed: float = 0.0
    """Share of responses that cannot be parsed, which score 0; it varies from night to night by a third of it."""
    bad: float = 0.0
    """Share of nights on which 20 % cannot be parsed; of each model by itself."""
    outages: tuple[tuple[int, int], ...] = ()
    """First night and length of what was .2 lower and back, of the first model."""
    missing: float = 0.0
    """Share of the responses that no night has, since the call failed."""
    creep: float = 0.0
    """Rise per night of the first model."""
    shift: float = 0.0
    since: int = 0
    until: int = 10**9
    """Of the first model, from one night to before the other."""
    all_shift: bool = False
    """Whether all models shift."""
    parse_shift: float = 0.0
    """Rise of the share that cannot be parsed, of the first model from `since` on."""

    @property
    def clusters(self) -> list[str]:
        """Of the items, by question within segment."""
        return [f"b{battery}" for battery, size in enumerate(self.batteries) for _ in range(size)] * SEGMENTS


def wandering(rng: np.random.Generator, panel: Panel, degrees: float) -> Floats:
    """(nights,) of variance 1 from Student's t, with the panel's autocorrelation."""
    drawn = rng.normal(size=panel.nights)
    if math.isfinite(degrees):
        drawn = rng.standard_t(degrees, panel.nights) / math.sqrt(degrees / (degrees - 2))
    drawn[1:] *= math.sqrt(1 - panel.autocorrelation**2)
    return np.asarray(lfilter([1.0], [1.0, -panel.autocorrelation], drawn))


def answers(panel: Panel, rng: np.random.Generator) -> dict[str, Scores]:
    """The scores of each series, (items, nights), by its model and, from the second on, the way it was asked in: `m0`, `m0/1`, ..."""
    night = np.arange(panel.nights)
    common = panel.wobble * wandering(rng, panel, panel.degrees) - panel.weekly * (night % 7 >= 5)
    level = panel.level + 0.1 * rng.normal(size=len(panel.clusters))
    found = {}
    for model in range(panel.models):
        for way in range(panel.ways):
            path = common + panel.own * wandering(rng, panel, panel.own_degrees)
            found[f"m{model}/{way}" if way else f"m{model}"] = series(panel, rng, level, path, first=model == 0)
    return found


def series(panel: Panel, rng: np.random.Generator, level: Floats, path: Floats, *, first: bool) -> Scores:
    """Of one model in one way. `level`: (items,); `path`: (nights,) what the night adds. `first`: of the first model."""
    night = np.arange(panel.nights)
    rate = panel.unparsed * (1 + rng.normal(size=panel.nights) / 3) + 0.2 * (rng.random(panel.nights) < panel.bad)
    if first or panel.all_shift:
        path = path + panel.shift * ((night >= panel.since) & (night < panel.until)) + panel.creep * night
        rate = rate + panel.parse_shift * (night >= panel.since)
    if first:
        path = path - panel.lottery * (rng.random(panel.nights) < 0.3)
        for start, length in panel.outages:
            path = path - 0.2 * ((night >= start) & (night < start + length))
    shape = (len(level), panel.nights)
    noise = rng.normal(size=shape) * panel.noise * (rng.random(shape) < panel.flips)
    if panel.wander:
        noise = lfilter([1.0], [1.0, -panel.wander], 0.2 * math.sqrt(1 - panel.wander**2) * rng.normal(size=shape), axis=1)
    if panel.of_battery:
        each = [wandering(rng, panel, panel.own_degrees) for _ in panel.batteries]
        noise = noise + panel.of_battery * np.tile(np.repeat(each, panel.batteries, axis=0), (SEGMENTS, 1))
    parsed = np.where(rng.random(shape) < rate, np.nan, level[:, None] + path + noise)
    lost = rng.random(shape) < panel.missing if panel.missing else np.zeros(shape, dtype=bool)
    labels = [day.date().isoformat() for day in pd.date_range("2026-01-01", periods=panel.nights)]
    scores = [pd.DataFrame(values, columns=labels).mask(lost) for values in (np.nan_to_num(parsed), parsed)]
    return Scores(scores[0], scores[1])


def standing(panel: Panel, rng: np.random.Generator, asked: npt.NDArray[np.bool_]) -> str | None:
    """The verdict on the first of two models that were asked these items (items, nights) on these nights."""
    own, other = (scores.policy for scores in answers(replace(panel, models=2), rng).values())
    codes = np.arange(len(own), dtype=np.uint64)
    keys = dict.fromkeys(SUBJECT.keys.tested_columns, "same") | {SUBJECT.keys.item: [f"q{code}" for code in codes]}
    names = dict.fromkeys(("prompt_id", "name"), keys[SUBJECT.keys.item])
    labels = pd.DataFrame({**keys, **names, "cluster": panel.clusters}, index=pd.Index(codes))
    times = {label: datetime.fromisoformat(label) for label in own.columns}
    panels = build_panels(_snapshots(own, asked), BASELINE, times, build_pair_codes(labels, SUBJECT))
    others = {"m1": _snapshots(other, asked)}
    return choose_panel([JudgedPanel(panel, labels, SUBJECT, times, 0.0, math.log10(40), others) for panel in panels]).word


def _snapshots(values: pd.DataFrame, asked: npt.NDArray[np.bool_]) -> list[Snapshot]:
    codes = np.arange(len(values), dtype=np.uint64)
    snapshots = []
    for night, label in enumerate(values.columns):
        own, ones = values[label].to_numpy()[asked[:, night]], np.ones(int(asked[:, night].sum()))
        snapshots.append(Snapshot(label, codes[asked[:, night]], own, own, ones, ones))
    return snapshots


def judged(found: Mapping[str, Scores], clusters: Sequence[str], until: int, threshold: float) -> dict[str, Verdict]:
    """The verdict on each series after so many nights, beside the other models that were asked in the same way."""
    cut = {name: Scores(*(one.iloc[:, :until] for one in scores if one is not None)) for name, scores in found.items()}
    return {
        name: compute_verdict(
            one.policy,
            clusters,
            baseline=BASELINE,
            threshold=threshold,
            parsed_values=one.parsed,
            peers={other: scores for other, scores in cut.items() if other != name and way_of(other) == way_of(name)},
        )
        for name, one in cut.items()
    }


def way_of(series: str) -> str:
    return series.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of panels. `first`: the first model had the verdict `drift`, in any way; `other`: another one; `night`: the night had it."""

    first: float
    other: float
    night: float
    parsed: float
    """The first model's drift was said to be one of the parse rate."""
    ten: float
    """Any series had `drift` at the odds that are needed where ten series share alpha."""
    dated: float
    """The first model's shift had a first snapshot: its evidence reached the odds, and only a control may lack for `drift`."""


def rates(panel: Panel, sets: int, seed: int, *, looks: int = 2) -> Rates:
    """Of panels judged after so many equally spaced nights, the last one included. The series share alpha."""
    rng, options = np.random.default_rng(seed), WatchOptions()
    threshold, ten = options.threshold(panel.models * panel.ways), options.threshold(10)
    seen = np.zeros(6)
    all_parsed = not (panel.unparsed or panel.bad or panel.parse_shift)
    for _ in range(sets):
        found, said = answers(panel, rng), np.zeros(6, dtype=bool)
        if all_parsed:  # the parsed scores are the same, and judging them again would be twice the time
            found = {name: Scores(one.policy) for name, one in found.items()}
        for until in np.linspace(panel.nights / looks, panel.nights, looks).round().astype(int).tolist():
            verdicts = judged(found, panel.clusters, max(until, 2), threshold)
            words = {name: one.verdict == "drift" for name, one in verdicts.items()}
            first = any(word for name, word in words.items() if name.partition("/")[0] == "m0")
            other = any(word for name, word in words.items() if name.partition("/")[0] != "m0")
            pairs = {name: one.pairs for name, one in verdicts.items() if not way_of(name)}
            night = compute_shared_shift(
                pairs,
                list(found["m0"].policy.columns),
                baseline=BASELINE,
                threshold=options.threshold(2 * panel.ways),
            )
            in_parsing = any("drift of the parse rate" in note for note in verdicts["m0"].shift_notes)
            as_ten = any(words[name] and (one.log10_e or 0.0) >= ten for name, one in verdicts.items())
            dated = any(one.first_snapshot for name, one in verdicts.items() if name.partition("/")[0] == "m0")
            said |= [first, other, night.shared_first_snapshot is not None, in_parsing, as_ten, dated]
        seen += said
    return Rates(*(seen / sets).tolist())


SHARED = Panel(models=2, nights=60, wobble=0.02)
BLOCKS = Panel(models=2, nights=60, batteries=GD3, of_battery=0.03)
"""A wobble of .03 of each battery is one of .012 of the night's mean."""
NO_DRIFT: Mapping[str, Panel] = {
    **{
        f"{models} models, own wobble {own}, AR {ar}, t of {degrees} degrees": replace(
            SHARED, models=models, own=own, autocorrelation=ar, degrees=degrees
        )
        for models, own, ar, degrees in (
            (2, 0.01, 0.8, 3),
            (2, 0.02, 0.5, 5),
            (2, 0.02, 0.8, math.inf),
            (6, 0.01, 0.95, 3),
            (3, 0.02, 0.8, 5),
            (2, 0.005, 0.95, 3),
            (2, 0.02, 0.0, 3),
            (4, 0.02, 0.5, 3),
        )
    },
    "2 models, own wobble .02 with shocks of t3 too, AR .8": replace(
        SHARED, own=0.02, autocorrelation=0.8, degrees=3, own_degrees=3
    ),
    "2 models, GD3, .03 per battery, AR .8": replace(BLOCKS, wobble=0.02, autocorrelation=0.8),
    "2 models, 3 % unparsed, 15 % bad nights": replace(SHARED, unparsed=0.03, bad=0.15),
    "2 models, backend lottery, .08 lower": replace(SHARED, lottery=0.08),
    "2 models, outages of 2, 3 and 5 nights": replace(SHARED, outages=((10, 2), (25, 5), (40, 3))),
    "2 models, a night of the baseline off": replace(SHARED, outages=((2, 1),)),
    "2 models in 3 ways, own wobble .01, AR .8": replace(SHARED, ways=3, own=0.01, autocorrelation=0.8),
}
MOVED: Mapping[str, Panel] = {
    **{
        f"{models} models, own wobble {own}, AR {ar}": replace(SHARED, models=models, own=own, autocorrelation=ar)
        for models, own in ((2, 0.0), (2, 0.01), (4, 0.01), (4, 0.02))
        for ar in (0.0, 0.5, 0.8)
    },
    **{
        f"2 models, GD3, {b} per battery, AR .5": replace(SHARED, batteries=GD3, of_battery=b, autocorrelation=0.5)
        for b in (0.01, 0.03)
    },
}


def no_drift(sets: int) -> None:
    print(f"No drift, 60 nights, {sets} panels each: `drift` of any model, if ten series share alpha, of the night")
    for name, panel in NO_DRIFT.items():
        found = rates(panel, sets, 1)
        print(f"| {name} | {max(found.first, found.other):.1%} | {found.ten:.1%} | {found.night:.1%} |", flush=True)


def moved(sets: int) -> None:
    print("Found: a shift of .08 within 10 nights and of .05 within 20, by nights before it; `drift` of another model")
    for name, panel in MOVED.items():
        cells = []
        for since in (5, 10, 40):
            for shift, within in ((0.08, 10), (0.05, 20)):
                shifted = replace(panel, shift=-shift, since=since, nights=since + within)
                found = rates(shifted, sets, 2, looks=1)
                cells.append(f"{found.first:.0%} ({found.other:.0%})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(
        "All models shift by .08, and the parse rate of one falls by 15 %, after 20 nights: its drift, another's, the night's, of the parse rate"
    )
    for name, panel in {
        "all models": replace(SHARED, models=4, shift=-0.08, since=20, nights=30, all_shift=True),
        "parse rate": Panel(models=2, wobble=0.01, unparsed=0.02, parse_shift=0.15, since=20, nights=30),
    }.items():
        print(f"| {name} | {rates(panel, sets, 3, looks=1)} |", flush=True)


def alone(sets: int) -> None:
    print(
        "A model or judge alone: `drift`, and first snapshot of a shift known; no drift, 60 nights; then a fall of .08 after 20 of 30"
    )
    for degrees, ar in ((math.inf, 0.0), (math.inf, 0.5), (math.inf, 0.8), (5, 0.8), (3, 0.8), (3, 0.95)):
        panel = replace(SHARED, models=1, autocorrelation=ar, degrees=degrees)
        still, fell = rates(panel, sets, 8), rates(replace(panel, shift=-0.08, since=20, nights=30), sets, 9, looks=1)
        print(
            f"| AR {ar}, t of {degrees} degrees | {still.first:.1%}, {still.dated:.1%} | {fell.first:.0%}, {fell.dated:.0%} |",
            flush=True,
        )


def rule_alone(sets: int) -> None:
    print("Flagged by the rule alone, no drift, wobble .02 around .7, by number of nights")
    for nights in (2, 5, 10, 20, 50, 100):
        print(f"| {nights} | {rule_flags(nights, sets):.1%} |", flush=True)


def rule_flags(nights: int, sets: int) -> float:
    """The share of unchanged models that the rule flags after so many nights."""
    rng, flagged = np.random.default_rng(4), 0
    for _ in range(sets):
        values = answers(Panel(nights=nights, level=0.7, wobble=0.02, flips=0.0), rng)["m0"].policy
        times = {label: datetime.fromisoformat(label) for label in values.columns}
        flagged += bool(apply_drift_rule(values, times, temperature=0).flagged)
    return flagged / sets


def early_shifts(sets: int) -> None:
    print("Found: a shift of .08 within 10 nights, by nights before it from 1 to 10; two models")
    for own in (0.0, 0.01):
        for ar in (0.0, 0.5, 0.8):
            panel = replace(SHARED, own=own, autocorrelation=ar, shift=-0.08)
            shifted_panels = (replace(panel, since=since, nights=since + 10) for since in range(1, 11))
            found = [rates(shifted, sets, 7, looks=1).first for shifted in shifted_panels]
            print(f"| own wobble {own}, AR {ar} | {' | '.join(f'{share:.0%}' for share in found)} |", flush=True)


def unseen(sets: int) -> None:
    print("What is hard to see: share found by night 100")
    for name, panel in {
        "shift of .08 on night 3, within the baseline": Panel(models=2, wobble=0.015, shift=-0.08, since=2),
        "creep of .001 per night": Panel(models=2, wobble=0.015, creep=-0.001),
        "shift of .08 for 6 nights from night 50": Panel(models=2, wobble=0.015, shift=-0.08, since=50, until=56),
    }.items():
        print(f"| {name} | {rates(panel, sets, 5, looks=1).first:.0%} |", flush=True)


def smaller_panels(sets: int) -> None:
    print("No drift, some nights ask fewer of the 200 items: share of series with `drift` after 60 nights")
    night, item = np.arange(60), np.arange(len(Panel().clusters))
    for name, nights, few in (
        ("two of every ten nights ask a tenth", night % 10 >= 8, 20),
        ("the last ten nights ask a tenth", night >= 50, 20),
        ("nights 3 to 5, within the baseline, ask half", (night >= 2) & (night < 5), 100),
    ):
        asked, rng = ~nights[None, :] | (item < few)[:, None], np.random.default_rng(6)
        panel = Panel(nights=60, wobble=0.02, noise=0.2, flips=1.0)
        said = [standing(panel, rng, asked) for _ in range(sets)]
        print(f"| {name} | {np.mean([one == 'drift' for one in said]):.1%} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=200)
    sets = parser.parse_args().sets
    rule_alone(5 * sets)
    no_drift(sets)
    alone(sets)
    moved(sets)
    early_shifts(sets)
    unseen(sets)
    smaller_panels(sets)


if __name__ == "__main__":
    main()
