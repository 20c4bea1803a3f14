"""How often corrected scores hold the truth, and how often judges are said to favour their own maker, through the software's own functions.

- Labels: worlds of `tests/made/labelled_worlds.py`, in which all models and judges share how hard prompts and criteria are and how far judges
  are off on them, with heavy tails of cluster sizes, weights and biases. Prompts are drawn in proportion to their part of the board, as
  `labels sample` draws them, and go through `corrected`, as the board does. `drawn`: the expected score over all prompts there might be lies
  within corrected_low to corrected_high. `here`: the number of these prompts, had people judged everything, lies within here_low to here_high.
  `items`: as `drawn`, by the formula of PPI++ that takes criteria for independent.
- Judges: worlds of `tests/made/judge_worlds.py`, in which judges are strict in some prompts and on some responses. `flagged`: share of worlds in
  which judges are said to favour their own maker, as a whole or in any pair.

Run: `python benchmarks/label_coverage.py [SETS]`.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from dtef_pipeline.rubric.corrected import BOARD_ROW, corrected
from dtef_pipeline.rubric.self_preference import self_preference
from tests.made.judge_worlds import judged_world, maker_of
from tests.made.labelled_worlds import LabelledWorld, Prompts, drawn_prompts

REGIMES = {
    "15 of 40 prompts": (LabelledWorld(), 15, 40),
    "20 of 50 prompts": (LabelledWorld(), 20, 50),
    "25 of 60 prompts": (LabelledWorld(), 25, 60),
    "20 of 50, 1 or 2 criteria of equal difficulty": (LabelledWorld(most=2, hard=0.4), 20, 50),
    "20 of 50, judges far off": (LabelledWorld(bias=0.3), 20, 50),
    "20 of 50, judges nearly right": (LabelledWorld(bias=0.02), 20, 50),
    "40 of 400 prompts": (LabelledWorld(), 40, 400),
}
JUDGED = {
    "no effect, 3 judges": {},
    "no effect, 2 judges": {"judges": ("ja", "jd")},
    "no effect, 12 prompts": {"prompts": 12},
    "effect of .05": {"gamma": 0.05},
    "effect of .1": {"gamma": 0.1},
}


def responses_of(prompts: Prompts) -> pd.DataFrame:
    """One row per response, as `corrected` takes them, all labelled: it uses the labels of drawn prompts alone."""
    people, judges = prompts.means(prompts.people), prompts.means(prompts.judges)
    prompt, model = np.indices(people.shape)
    frame = pd.DataFrame(
        {"prompt": prompt.ravel(), "model": model.ravel(), "judged": judges.ravel(), "labelled": people.ravel()}
    )
    return frame.assign(
        blueprint="b",
        model_variant=frame["model"],
        temperature=0.0,
        system_index=0,
        draw=0,
        weight=prompts.weights[frame["prompt"]],
    )


def held_by_labels(name: str, at: int) -> dict[str, float]:
    """Of one set: shares of the models whose interval holds the truth, and mean half widths."""
    world, labelled, n = REGIMES[name]
    rng = np.random.default_rng([1, at])
    prompts = world.prompts(rng, n)
    chosen, chance = drawn_prompts(rng, prompts.weights, labelled)
    drawn = pd.DataFrame({"blueprint": "b", "prompt": np.arange(n), "probability": chance, "drawn": chosen})
    found = corrected(responses_of(prompts), drawn, BOARD_ROW)
    low, high, here_low, here_high = (
        found[column].to_numpy() for column in ("corrected_low", "corrected_high", "here_low", "here_high")
    )
    return {
        "drawn": float(((low <= world.truth) & (world.truth <= high)).mean()),
        "here": float(((here_low <= prompts.truth) & (prompts.truth <= here_high)).mean()),
        "items": float(np.mean(prompts.held_by_items(prompts.labelled(chosen, chance), world.truth))),
        "half width": float((high - low).mean() / 2),
        "half width here": float((here_high - here_low).mean() / 2),
        "prompts needed": float(found["prompts_needed"].mean()),
    }


def flagged(name: str, at: int) -> dict[str, float]:
    found = self_preference(judged_world(np.random.default_rng([2, at]), **JUDGED[name]), maker_of)  # type: ignore[arg-type]
    first = found.iloc[0]
    return {
        "two-sided": float(first["p"] < 0.05),
        "flagged": float(first["flagged"]),
        "any pair flagged": float(found["flagged"].iloc[1:].any()),
        "gamma": float(first["gamma"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=1000)
    sets = parser.parse_args().sets
    labels = {name: pd.DataFrame([held_by_labels(name, at) for at in range(sets)]).mean() for name in REGIMES}
    print(f"labels ({sets} sets)\n{pd.DataFrame(labels).T.round(3).to_string()}\n", flush=True)
    judges = {name: pd.DataFrame([flagged(name, at) for at in range(sets)]).mean() for name in JUDGED}
    print(f"judges ({sets} sets)\n{pd.DataFrame(judges).T.round(3).to_string()}")


if __name__ == "__main__":
    main()
