"""Error rates and power of a model alone, where the truth is known, in small; `benchmarks/drift_panels.py` has them in full."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.drift_panels import BLOCKS, SEGMENTS, Panel, answers, judged, rates, standing
from dtef_pipeline.drift.models import drift_checks
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.snapshots import label

NOISY = Panel(noise=0.2, flips=1.0)
STABLE = replace(NOISY, own=0.02)


def scores(panel: Panel, seed: int) -> pa.Table:
    """Of the panel, in the columns that drift verdicts are made from; what no night has is a failed call."""
    frames = []
    for name, made in answers(panel, np.random.default_rng(seed)).items():
        items = panel.clusters
        values = made.policy.assign(
            question_id=items, segment=[f"s{item * SEGMENTS // len(items)}" for item in range(len(items))]
        )
        long = values.melt(["question_id", "segment"], var_name="snapshot", value_name="score")
        frames.append(long.assign(model=name, prompt_id=long["segment"] + long["question_id"]))
    frame = pd.concat(frames).assign(
        round="S1", context_level="0", condition="c", metric="js", temperature=0.0, draw=0, truth_id="t", circular=False
    )
    frame = frame.assign(model_variant=frame["model"], status=np.where(frame["score"].notna(), "ok", "call_failed"))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table.append_column("answered_at", pa.nulls(len(table), pa.timestamp("us", tz="UTC")))


SHOCKS = Panel(models=2, nights=60, wobble=0.02, autocorrelation=0.8, degrees=3)
"""What all models share has an autocorrelation of .8 and shocks of Student's t with 3 degrees."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "panel",
    [
        replace(SHOCKS, own=0.01),
        replace(SHOCKS, autocorrelation=0.95, models=3),
        replace(SHOCKS, own=0.02, degrees=5, autocorrelation=0.5),
        replace(BLOCKS, models=2, nights=60, wobble=0.02, autocorrelation=0.8),
        Panel(models=2, nights=60, unparsed=0.03, bad=0.15),
        Panel(models=2, nights=60, wobble=0.01, outages=((10, 2), (30, 5))),
    ],
)
def test_beside_others_false_drift_is_5_percent_at_most(panel: Panel) -> None:
    found = rates(panel, 12, 12, looks=1)
    assert max(found.first, found.other) <= 0.17  # two of 12: more is one in 50 at 5 %, and one in 1,000 at the 1 % found


def test_drift_checks_finds_it_in_scores_as_the_simulation_does() -> None:
    panel = replace(STABLE, models=4, shift=-0.08, since=15, nights=25, all_shift=True)
    beside = judged(answers(panel, np.random.default_rng(14)), panel.clusters, panel.nights, math.log10(20))
    # 4 share alpha: 1 in 20 each.
    checks = drift_checks(scores(panel, 14), SUBJECT, levels=1, options=WatchOptions(alpha=0.2)).to_pylist()
    for row in checks:  # all of them moved together, which no single one of them did
        assert row["log10_e"] == pytest.approx(beside[row["model"]].log10_e)
        assert row["verdict"] == "watch"
        assert (row["shared_verdict"], row["shared_first_snapshot"]) == ("watch", label(15))
        assert row["shared_shift"] == pytest.approx(-0.08, abs=0.02)


@pytest.mark.thorough
@pytest.mark.parametrize(("shift", "least", "most"), [(-0.08, 9, 12), (0.0, 0, 2)])
def test_ten_snapshots_of_a_tenth_of_the_items_neither_hide_a_drift_nor_make_one(shift: float, least: int, most: int) -> None:
    panel, rng = Panel(nights=40, noise=0.1, flips=1.0, shift=shift, since=15), np.random.default_rng(17)
    asked = (np.arange(40) < 30)[None, :] | (np.arange(len(panel.clusters)) < 20)[:, None]
    verdicts = [standing(panel, rng, asked) for _ in range(12)]
    assert least <= verdicts.count("drift") <= most
