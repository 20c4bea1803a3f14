"""How often the 95 % intervals of rubric boards and of compared runs hold the truth, through the functions that publish them.

Blueprints have from 2 to 250 prompts, are easy or hard (large ones are harder), and suit some models better than others, with heavy tails.
Models stand from well below to near the best possible score. A response is judged by two judges on 2 to 7 criteria in five classes; judges
are strict or lenient in a prompt, and err on each criterion. Cells are missing, and now and then a whole blueprint of a model.

- `board`: the interval of a model on the board over blueprints holds its expected score in further blueprints like these.
- `within`: that of a model on the board of one blueprint holds its expected score in further prompts like those of this blueprint.
- `runs`: that of a difference of two runs of one blueprint, of which the second is better by `GAIN`, holds the expected difference.
- `rank`: the range of ranks holds the rank of the expected scores.
- of few prompts of one blueprint that are mostly passed, rarely failed, near 1, or normal: as `within`.
- `alpha`: the interval of Krippendorff's alpha of three judges holds that of prompts without end.

A half width is a mean, of few prompts a median. Run: `python benchmarks/rubric_coverage.py [SETS] [--only PART]`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.rubric.board import board, compare_runs
from dtef_pipeline.statistics.agreement import agreement

Numbers = npt.NDArray[np.float64]
STRENGTHS = np.array([-0.6, 0.0, 0.1, 0.3, 0.5, 0.8, 1.0, 2.5])
"""Of the models, in logits; the last is near the best possible score."""
GAIN = 0.4
JUDGES, DRAWN_FOR_TRUTH, PROMPTS_WITHIN = 2, 200_000, 20_000
SIZES = (6, 10, 20, 40)
"""Prompts of the blueprints that are looked at alone."""


@dataclass(frozen=True)
class BlueprintWorld:
    """Blueprints of one kind; spreads in logits."""

    blueprints: int
    middle: float = 14.0
    """Prompts of a blueprint in the middle; the logarithm of sizes has the spread `sizes`."""
    sizes: float = 1.0
    difficulty: float = 0.9
    suits: float = 0.5
    """How much the strength of a model varies between blueprints; the tails are those of t with 4 degrees of freedom."""
    lacking: float = 0.05
    """Chance that a model has nothing in a blueprint; of a single cell, half of it."""
    level: float = 0.9


WORLDS = {
    "10 blueprints": BlueprintWorld(10),
    "12 blueprints": BlueprintWorld(12),
    "15 blueprints": BlueprintWorld(15),
    "30 blueprints": BlueprintWorld(30),
    "98 blueprints": BlueprintWorld(98),
    "12, of 2 to 250 prompts": BlueprintWorld(12, sizes=1.8),
    "12, a fifth missing": BlueprintWorld(12, lacking=0.2),
    "12, models far from alike": BlueprintWorld(12, suits=1.2),
    "12, most near 1": BlueprintWorld(12, level=2.4),
    "12, hardly different": BlueprintWorld(12, difficulty=0.2, suits=0.1),
}


class Kinds:
    """What is drawn of blueprints: sizes, difficulty, and what suits whom."""

    def __init__(self, world: BlueprintWorld, rng: np.random.Generator, n: int) -> None:
        large = rng.normal(size=n)
        self.sizes = np.clip(np.round(world.middle * np.exp(world.sizes * large)), 2, 250).astype(int)
        hard = world.difficulty * (rng.normal(size=n) - 0.3 * large)
        suits = world.suits * rng.standard_t(4, size=(n, len(STRENGTHS))) / np.sqrt(2)
        self.levels = world.level + hard[:, None] + STRENGTHS + suits


def scored(levels: Numbers, rng: np.random.Generator, gain: float = 0.0) -> Numbers:
    """(prompts, models) coverage of one response to each prompt, of (prompts, models) levels."""
    return runs(levels, rng, (gain,))[0]


def runs(levels: Numbers, rng: np.random.Generator, gains: tuple[float, ...]) -> list[Numbers]:
    """One run for each gain over the levels, of the same prompts, criteria and judges."""
    n, m = levels.shape
    own = rng.normal(0, 0.9, (n, 1)) + rng.normal(0, 0.6, (n, m))
    criteria, most = rng.integers(2, 8, n), 7
    hard, strict = rng.normal(0, 0.7, (n, 1, most)), rng.normal(0, 0.05, (n, 1, 1, JUDGES))
    there = np.arange(most) < criteria[:, None, None]
    made = []
    for gain in gains:
        met = 1 / (1 + np.exp(-((levels + own + gain)[:, :, None] + hard + rng.normal(0, 0.5, (n, m, most)))))
        classes = np.round(4 * (met[..., None] + strict + rng.normal(0, 0.15, (n, m, most, JUDGES)))) / 4
        made.append((np.clip(classes, 0, 1).mean(axis=-1) * there).sum(axis=-1) / criteria[:, None])
    return made


def expected(world: BlueprintWorld) -> Numbers:
    """(models,) mean score over blueprints without end: of each one prompt."""
    rng = np.random.default_rng([0, world.blueprints])
    parts = [scored(Kinds(world, rng, 20_000).levels, rng).mean(axis=0) for _ in range(DRAWN_FOR_TRUTH // 20_000)]
    return np.asarray(np.mean(parts, axis=0))


def model_rows(values: list[Numbers], snapshot: str) -> pd.DataFrame:
    """Rows of models in `rubric_scores`, of (prompts, models) scores of each blueprint; NaN: missing."""
    known = [np.isfinite(cells) for cells in values]
    sums = np.array([np.where(there, cells, 0).sum(axis=0) for there, cells in zip(known, values, strict=True)])
    counts = np.array([there.sum(axis=0) for there in known])
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    blueprint, model = np.indices(means.shape)
    rows = {"blueprint": blueprint.ravel(), "model": model.ravel(), "hybrid": means.ravel()}
    return _named(pd.DataFrame(rows).assign(level="model", prompt=None), snapshot)


def cell_rows(cells: Numbers, snapshot: str) -> pd.DataFrame:
    """Those of the cells of one blueprint, with its models."""
    prompt, model = np.indices(cells.shape)
    names = np.array([f"p{at:03d}" for at in range(len(cells))])[prompt.ravel()]
    rows = pd.DataFrame({"blueprint": 0, "prompt": names, "model": model.ravel(), "hybrid": cells.ravel()})
    return pd.concat([_named(rows.assign(level="cell"), snapshot), model_rows([cells], snapshot)], ignore_index=True)


def _named(rows: pd.DataFrame, snapshot: str) -> pd.DataFrame:
    model = "m" + rows["model"].astype(str)
    found = rows.assign(blueprint="b" + rows["blueprint"].astype(str), model=model, snapshot=snapshot)
    found = found.assign(model_variant=model.where(found["level"] == "cell"), temperature=0.0, system_index=0, weight=1.0)
    found = found.assign(n_responses=1, n_responses_scored=found["hybrid"].notna().astype(int))
    return found.assign(coverage=found["hybrid"], similarity=np.nan, intercept=found["hybrid"], slope=0.0)


def lacking(world: BlueprintWorld, values: list[Numbers], rng: np.random.Generator) -> list[Numbers]:
    return [
        np.where((rng.random(cells.shape) < world.lacking / 2) | (rng.random(cells.shape[1]) < world.lacking), np.nan, cells)
        for cells in values
    ]


def held(rows: pd.DataFrame, truth: Numbers, value: str) -> dict[str, float]:
    """Share of the intervals that hold the truth, shares that lie above and below it, and their mean half width."""
    low, high = rows["low"].to_numpy(dtype=np.float64), rows["high"].to_numpy(dtype=np.float64)
    made = np.isfinite(low)
    if not made.any():
        return {}
    low, high, truth = low[made], high[made], truth[made]
    return {
        value: float(((low <= truth) & (truth <= high)).mean()),
        f"{value}, too high": float((low > truth).mean()),
        f"{value}, half width": float((high - low).mean() / 2),
    }


def of_set(world: BlueprintWorld, truth: Numbers, at: int) -> dict[str, float]:
    rng = np.random.default_rng([1, world.blueprints, at])
    kinds = Kinds(world, rng, world.blueprints)
    values = [scored(np.repeat(level[None], size, axis=0), rng) for level, size in zip(kinds.levels, kinds.sizes, strict=True)]
    scores = model_rows(lacking(world, values, rng), "base")
    rows = board(scores, ["base"], {}, "overall", min_blueprints=1)
    place = rows["model"].str[1:].astype(int).to_numpy()
    ranks = 1 + (truth[None, :] > truth[place][:, None]).sum(axis=1)
    low, high = rows["rank_low"].to_numpy(dtype=np.float64), rows["rank_high"].to_numpy(dtype=np.float64)
    return held(rows, truth[place], "board") | {"rank": float(((low <= ranks) & (ranks <= high)).mean())}


def of_one(size: int, at: int) -> dict[str, float]:
    """The board and two runs of one blueprint, whose prompts are the only ones that are drawn anew."""
    world = BlueprintWorld(1)
    kinds = Kinds(world, np.random.default_rng([2, at % 20]), 1)
    rng = np.random.default_rng([4, size, at])
    truth, truth_after = truth_within(at % 20)
    first, second = runs(np.repeat(kinds.levels, size, axis=0), rng, (0.0, GAIN))
    before, after = (cell_rows(lacking(world, [cells], rng)[0], name) for cells, name in ((first, "a"), (second, "b")))
    rows = board(before, ["a"], {}, "blueprint")
    moved = compare_runs(before, after)
    at_models, at_moved = (frame["model"].str[1:].astype(int).to_numpy() for frame in (rows, moved))
    return held(rows, truth[at_models], "within") | held(moved, (truth_after - truth)[at_moved], "runs")


_WITHIN: dict[int, tuple[Numbers, Numbers]] = {}


def truth_within(number: int) -> tuple[Numbers, Numbers]:
    """Expected scores of the models in prompts without end of one blueprint, before and after."""
    if number not in _WITHIN:
        levels = Kinds(BlueprintWorld(1), np.random.default_rng([2, number]), 1).levels
        first, second = runs(np.repeat(levels, PROMPTS_WITHIN, axis=0), np.random.default_rng([3, number]), (0.0, GAIN))
        _WITHIN[number] = first.mean(axis=0), second.mean(axis=0)
    return _WITHIN[number]


FEW = (5, 6, 8, 12)
"""Prompts of the blueprints whose scores are drawn of a plain distribution."""
PLAIN: dict[str, Callable[[np.random.Generator, tuple[int, int]], Numbers]] = {
    "1 with p .8, else 0": lambda rng, size: (rng.random(size) < 0.8) * 1.0,
    ".9, or .1 with p .15": lambda rng, size: np.where(rng.random(size) < 0.15, 0.1, 0.9),
    ".9, or .1 with p .15, +- .05": lambda rng, size: (
        np.where(rng.random(size) < 0.15, 0.1, 0.9) + rng.normal(0, 0.05, size)
    ).clip(0, 1),
    "beta(4, .5)": lambda rng, size: rng.beta(4, 0.5, size),
    "normal(.7, .15)": lambda rng, size: rng.normal(0.7, 0.15, size).clip(0, 1),
    "normal(.8, .1)": lambda rng, size: rng.normal(0.8, 0.1, size).clip(0, 1),
    "normal(.5, .1)": lambda rng, size: rng.normal(0.5, 0.1, size).clip(0, 1),
}


def of_few(name: str, prompts: int, sets: int) -> dict[str, float]:
    """The board of one blueprint, of as many models as sets."""
    rng = np.random.default_rng([5, prompts])
    truth = PLAIN[name](rng, (1_000_000, 1)).mean()
    rows = [
        board(cell_rows(PLAIN[name](rng, (prompts, 25)), "a"), ["a"], {}, "blueprint")[["low", "high"]]
        for _ in range(-(-sets // 25))
    ]
    made = pd.concat(rows)
    return {
        "within": float(((made["low"] <= truth) & (made["high"] >= truth)).mean()),
        "within, half width": float((made["high"] - made["low"]).median() / 2),
    }


def judged(rng: np.random.Generator, prompts: int, slips: float) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Classes that three judges give to four responses on four criteria of each prompt; a few prompts are hard to judge."""
    hard = np.minimum(slips * rng.gamma(0.4, 2.5, (prompts, 1, 1)), 0.9)
    level = np.round(4 / (1 + np.exp(-(rng.normal(0, 0.8, (prompts, 1, 1)) + rng.normal(0, 1.6, (prompts, 16, 1))))))
    off = (rng.random((prompts, 16, 3)) < hard) * rng.choice([-1, 1], (prompts, 16, 3))
    return np.clip(level + off, 0, 4).ravel() / 4, np.repeat(np.arange(prompts * 16), 3)


def of_alpha(slips: float, prompts: int, sets: int) -> dict[str, float]:
    rng = np.random.default_rng([6, prompts])
    values, units = judged(rng, 20_000, slips)
    truth = float(agreement(values, units, np.zeros(len(units)))["alpha"].iloc[0])
    made = []
    for _ in range(sets):
        values, units = judged(rng, prompts, slips)
        made.append(agreement(values, units, units // 16).iloc[0][["low", "high"]].astype(float))
    rows = pd.DataFrame(made)
    known = rows.dropna()
    return {
        "alpha": float(((known["low"] <= truth) & (known["high"] >= truth)).mean()),
        "alpha, half width": float((known["high"] - known["low"]).median() / 2),
        "alpha, none": 1 - len(known) / len(rows),
        "true alpha": truth,
    }


def of_sets(world: BlueprintWorld, sets: int) -> pd.Series:
    truth = expected(world)
    return pd.DataFrame([of_set(world, truth, at) for at in range(sets)]).mean()


def of_ones(size: int, sets: int) -> pd.Series:
    return pd.DataFrame([of_one(size, at) for at in range(sets)]).mean()


def parts(sets: int) -> Iterator[tuple[str, str, Callable[[], Mapping[str, float] | pd.Series]]]:
    """Part, world, and what makes its numbers."""
    for name, world in WORLDS.items():
        yield "boards", name, partial(of_sets, world, sets)
    for size in SIZES:
        yield "one", f"one blueprint, {size} prompts", partial(of_ones, size, sets)
    for name, few in product(PLAIN, FEW):
        yield "few", f"{few} prompts, {name}", partial(of_few, name, few, sets)
    for slips, few in product((0.05, 0.1, 0.2), (5, 8, 15, 40)):
        yield "alpha", f"{few} prompts, {slips:g} of the judgements off", partial(of_alpha, slips, few, sets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=1000)
    parser.add_argument("--only", choices=("boards", "one", "few", "alpha"), help="Only these worlds.")
    given = parser.parse_args()
    found = {}
    for part, name, numbers in parts(given.sets):
        if given.only in (None, part):
            found[name] = pd.Series(numbers())
            print(name, found[name].round(3).to_dict(), flush=True)
    print(pd.DataFrame(found).T.round(3).to_string())


if __name__ == "__main__":
    main()
