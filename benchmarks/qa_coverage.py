"""How often the 95 % intervals of the qa boards hold the truth, through the functions that publish them.

Subjects have from 4 to 400 items, are easy or hard (large ones are harder), and suit some models better than others, with heavy tails. Models
stand from near chance to near the best possible score. An item is right or wrong, or gets a judge's score in eleven steps; scores are missing
here and there.

- `score`: the interval of the mean over items holds the expected mean over items in further subjects like these (of one subject alone: in
  further items of it; where items hang together with nothing: in further items).
- `macro`: that of the mean over subjects holds the expected mean over subjects.
- `part`: that of a model within a subject holds its expected score in further items of the subject.
- `pairs`: that of the difference of two models holds the expected difference over items.
- `rank`: the range of ranks holds the rank of the expected scores.

Run: `python benchmarks/qa_coverage.py [SETS]`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.mean_columns import RIGHT_METRIC
from dtef_pipeline.boards.pairs import compare_boards
from dtef_pipeline.qa.scoring import JUDGED_METRIC
from dtef_pipeline.qa.suites import BY_PART, build_suite_board
from dtef_pipeline.qa.tables import OF_ONE_BOARD

Numbers = npt.NDArray[np.float64]
STRENGTHS = np.array([-1.2, -0.2, 0.0, 0.2, 1.0, 3.0])
"""Of the models, in logits."""
SUBJECTS_OF_TRUTH = 4_000
DRAWS_OF_TRUTH = 64
"""Items drawn of each subject for what is expected within it."""
STEPS = 10


@dataclass(frozen=True)
class QaWorld:
    """Subjects of one kind; spreads in logits. `subjects` 0: items that hang together with nothing."""

    subjects: int
    middle: float = 60.0
    """Items of a subject in the middle; the logarithm of sizes has the spread `sizes`."""
    sizes: float = 0.8
    difficulty: float = 0.8
    suits: float = 0.4
    """How much the strength of a model varies between subjects; the tails are those of t with 4 degrees of freedom."""
    graded: bool = False
    lacking: float = 0.02
    level: float = 0.4
    alone: int = 0
    """Items, where there are no subjects."""
    near_1: float = 0
    """b of the beta(4, b) that the mean of a subject is drawn of, where it is above 0: nothing else counts then, but sizes."""


QA_WORLDS = {
    "57 subjects": QaWorld(57, middle=120),
    "57, few items": QaWorld(57, middle=18),
    "20 subjects": QaWorld(20),
    "10 subjects": QaWorld(10),
    "6 subjects": QaWorld(6),
    "3 subjects": QaWorld(3),
    "8 transcripts, graded": QaWorld(8, middle=6, sizes=0.4, graded=True),
    "14 transcripts, graded": QaWorld(14, middle=5, sizes=0.4, graded=True),
    "12, of 4 to 400 items": QaWorld(12, sizes=1.6),
    "12, models far from alike": QaWorld(12, suits=1.2),
    "12, most near 1": QaWorld(12, level=2.6),
    "12, hardly different": QaWorld(12, difficulty=0.1, suits=0.05),
    "40 items alone": QaWorld(0, alone=40),
    "164 items alone": QaWorld(0, alone=164),
    "164 alone, graded": QaWorld(0, alone=164, graded=True),
    "20 items alone": QaWorld(0, alone=20),
    "5 subjects, beta(4, .5)": QaWorld(5, near_1=0.5),
    "6 subjects, beta(4, .5)": QaWorld(6, near_1=0.5),
    "8 subjects, beta(4, .5)": QaWorld(8, near_1=0.5),
    "10 subjects, beta(4, .5)": QaWorld(10, near_1=0.5),
    "10 subjects, beta(4, 1)": QaWorld(10, near_1=1.0),
}


@dataclass(frozen=True)
class Subjects:
    """What is drawn of subjects: sizes, and the level of each model in each, (subjects, models)."""

    sizes: npt.NDArray[np.int64]
    levels: Numbers

    @classmethod
    def drawn(cls, world: QaWorld, rng: np.random.Generator, n: int) -> Subjects:
        large = rng.normal(size=n)
        sizes = np.clip(np.round(world.middle * np.exp(world.sizes * large)), 4, 400).astype(np.int64)
        hard = world.difficulty * (rng.normal(size=n) - 0.3 * large)
        suits = world.suits * rng.standard_t(4, size=(n, len(STRENGTHS))) / np.sqrt(2)
        if world.near_1:
            mean = rng.beta(4, world.near_1, size=(n, len(STRENGTHS))).clip(1e-9, 1 - 1e-9)
            return cls(sizes, np.log(mean / (1 - mean)))
        return cls(sizes, world.level + hard[:, None] + STRENGTHS + suits)


def scores(levels: Numbers, graded: bool, rng: np.random.Generator, near_1: float = 0) -> Numbers:
    """(items, models) of the levels of each item's subject; all models find the same items hard, but where means are drawn of a beta."""
    if near_1:
        return (rng.random(levels.shape) < 1 / (1 + np.exp(-levels))).astype(np.float64)
    chance = 1 / (1 + np.exp(-(levels + rng.normal(0, 1.2, (len(levels), 1)) + rng.normal(0, 0.4, levels.shape))))
    if graded:
        noisy = chance + rng.normal(0, 0.15, chance.shape)
        return np.asarray(np.clip(np.round(noisy * STEPS) / STEPS, 0, 1))
    return (rng.random(chance.shape) < chance).astype(np.float64)


def within(levels: Numbers, graded: bool, rng: np.random.Generator, draws: int = DRAWS_OF_TRUTH) -> Numbers:
    """(subjects, models) expected scores in each subject."""
    return scores(np.repeat(levels, draws, axis=0), graded, rng).reshape(len(levels), draws, -1).mean(axis=1)


@dataclass(frozen=True)
class Truth:
    """Expected means, (models,)."""

    micro: Numbers
    macro: Numbers


def truth(world: QaWorld) -> Truth:
    rng = np.random.default_rng([1, world.subjects, world.alone])
    if not world.subjects:
        levels = np.broadcast_to(world.level + STRENGTHS, (200_000, len(STRENGTHS)))
        mean = scores(levels, world.graded, rng).mean(axis=0)
        return Truth(mean, mean)
    of = Subjects.drawn(world, rng, SUBJECTS_OF_TRUTH)
    if world.near_1:
        micro = np.average(1 / (1 + np.exp(-of.levels)), axis=0, weights=of.sizes).mean()
        return Truth(np.full(len(STRENGTHS), micro), np.full(len(STRENGTHS), 4 / (4 + world.near_1)))
    means = within(of.levels, world.graded, rng)
    return Truth(np.average(means, axis=0, weights=of.sizes), means.mean(axis=0))


def table(
    found: Numbers, subject: npt.NDArray[np.int64] | None, lacking: float, graded: bool, rng: np.random.Generator
) -> pa.Table:
    """Rows of `qa_scores`, of (items, models) scores."""
    item, model = (one.ravel() for one in np.indices(found.shape))
    kept = rng.random(found.size) >= lacking
    part = "all" if subject is None else np.char.add("s", subject[item].astype(str))
    names = np.char.add("i", item.astype(str))
    frame = pd.DataFrame({"item_id": names, "part": part, "cluster": names if subject is None else part})
    frame = frame.assign(model=np.char.add("m", model.astype(str)), score=found.ravel(), suite="s", condition="c")
    frame = frame.assign(
        metric=JUDGED_METRIC if graded else RIGHT_METRIC,
        model_variant=frame["model"],
        measured_by="x",
        draw=0,
        snapshot="base",
        status="ok",
        value=frame["score"],
        cites_nothing=False,
    )
    return pa.Table.from_pandas(frame[kept], preserve_index=False)


def held(low: pd.Series, high: pd.Series, wanted: Numbers) -> list[bool | None]:
    """For each row whether its interval holds what is wanted; None: it has none."""
    ends = zip(
        low.to_numpy(dtype=np.float64, na_value=np.nan), high.to_numpy(dtype=np.float64, na_value=np.nan), wanted, strict=True
    )
    return [None if np.isnan(one) else bool(one <= real <= other) for one, other, real in ends]


def one_set(
    world: QaWorld, real: Truth, rng: np.random.Generator, widths: dict[str, list[float]]
) -> dict[str, list[bool | None]]:
    """What the boards of one drawn suite hold."""
    if world.subjects:
        of = Subjects.drawn(world, rng, world.subjects)
        subject = np.repeat(np.arange(world.subjects), of.sizes)
        made = table(scores(of.levels[subject], world.graded, rng, world.near_1), subject, world.lacking, world.graded, rng)
    else:
        levels = np.broadcast_to(world.level + STRENGTHS, (world.alone, len(STRENGTHS)))
        made = table(scores(levels, world.graded, rng), None, world.lacking, world.graded, rng)
    board = build_suite_board(made)
    model = board["model"].str[1:].astype(int).to_numpy()
    place = (real.micro[:, None] < real.micro).sum(axis=1)[model] + 1.0
    found = {
        "score": held(board["score_low"], board["score_high"], real.micro[model]),
        "macro": held(board["macro_low"], board["macro_high"], real.macro[model]),
        "rank": held(board["rank_low"].astype("float64"), board["rank_high"].astype("float64"), place),
    }
    pairs = compare_boards(made, OF_ONE_BOARD)
    sides = [pairs[name].str[1:].astype(int).to_numpy() for name in ("model", "other_model")]
    found["pairs"] = held(pairs["low"], pairs["high"], real.micro[sides[0]] - real.micro[sides[1]])
    for name, rows in (("score", board), ("macro", board), ("pairs", pairs)):
        low, high = ("low", "high") if name == "pairs" else (f"{name}_low", f"{name}_high")
        widths.setdefault(name, []).extend((rows[high] - rows[low]).dropna() / 2)
    if world.subjects and not world.near_1:
        parts = build_suite_board(made, BY_PART)
        expected = within(of.levels, world.graded, rng, 1_000)
        keys = (parts["part"].str[1:].astype(int).to_numpy(), parts["model"].str[1:].astype(int).to_numpy())
        found["part"] = held(parts["score_low"], parts["score_high"], expected[keys])
    return found


def measure(world: QaWorld, sets: int) -> tuple[dict[str, float], dict[str, str]]:
    """By what is held: the share of intervals that hold the truth (where there are any), and in words how many rows have none, and the median
    half width."""
    rng = np.random.default_rng(11)
    real, widths, kept = truth(world), dict[str, list[float]](), dict[str, list[bool | None]]()
    for _ in range(sets):
        for what, those in one_set(world, real, rng, widths).items():
            kept.setdefault(what, []).extend(those)
    known = {what: [one for one in those if one is not None] for what, those in kept.items()}
    remarks = {
        what: f"{1 - len(known[what]) / len(those):.2f}" + (f", +- {np.median(widths[what]):.3f}" if widths.get(what) else "")
        for what, those in kept.items()
    }
    return {what: float(np.mean(those)) for what, those in known.items() if those}, remarks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=60, help="suites drawn of each world")
    parser.add_argument("--world", action="append", choices=list(QA_WORLDS), help="only this one; may be repeated")
    given = parser.parse_args()
    print(
        f"{given.sets} suites of each world; share of intervals that hold the truth, (share of rows without one, median half width)"
    )
    for name in given.world or QA_WORLDS:
        shares, remarks = measure(QA_WORLDS[name], given.sets)
        cells = [
            f"{what} {f'{shares[what]:.3f}' if what in shares else '  -  '} ({remark})" for what, remark in remarks.items()
        ]
        print(f"{name:<26} {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
