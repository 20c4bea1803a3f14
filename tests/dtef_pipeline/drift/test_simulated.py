"""Error rates and power of a model alone, where the truth is known, in small; `benchmarks/drift_panels.py` has them in full."""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.drift_panels import NO_DRIFT, SEGMENTS, Panel, answers, judged, rates, standing
from dtef_pipeline.drift.checks import drift_checks
from dtef_pipeline.drift.models import model_drift
from dtef_pipeline.drift.options import WatchOptions
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


def models(panel: Panel, seed: int) -> pd.DataFrame:
    """The verdicts of `model_drift`."""
    with duckdb.connect() as connection:
        connection.register("scores", scores(panel, seed))
        return model_drift(connection, SUBJECT).checks.to_pandas()


class TestErrorRates:
    @pytest.mark.parametrize(
        "panel",
        [
            replace(NOISY, missing=0.05),
            replace(STABLE, missing=0.05),
            NO_DRIFT["GD3, .03 per battery, wobble .02, AR 0.8"],
            NO_DRIFT["1 model in 3 ways, own AR .8"],
        ],
        ids=["responses differ", "nights differ too", "batteries wander", "three series wander"],
    )
    def test_false_drift_over_100_nights_is_5_percent_at_most(self, panel: Panel) -> None:
        assert rates(panel, 15, 12, looks=1).first <= 0.14  # two of 15: more is one in 300 at 2 %

    @pytest.mark.parametrize("panel", [Panel(wobble=0.01), Panel(wobble=0.02)], ids=["nights differ by .01", "by .02"])
    def test_a_shift_of_008_is_found_within_10_nights_without_another_model(self, panel: Panel) -> None:
        """After 40 nights. After fewer, nights that differ by .02 may as well take after each other (docs/drift.md has the rates)."""
        assert rates(replace(panel, shift=-0.08, since=40, nights=50), 15, 13, looks=1).first >= 0.8

    def test_drift_checks_finds_it_in_scores_as_the_simulation_does(self) -> None:
        panel = replace(STABLE, models=6, shift=-0.08, since=30, nights=40, all_shift=True)
        alone = judged(answers(panel, np.random.default_rng(14)), panel.clusters, panel.nights, math.log10(20))
        # 6 share alpha: 1 in 20 each.
        checks = drift_checks(scores(panel, 14), SUBJECT, levels=1, options=WatchOptions(alpha=0.3)).to_pylist()
        for row in checks:  # all of them moved together, which no single one of them did
            assert row["alone_log10_e"] == pytest.approx(alone[row["model"]].alone_log10_e)
            assert row["verdict"] == "watch"
            assert (row["night_verdict"], row["night_first_snapshot"]) == ("drift", label(30))
            assert row["night_shift"] == pytest.approx(-0.08, abs=0.02)


class TestSmallerPanels:
    @pytest.mark.parametrize(("shift", "least", "most"), [(-0.08, 9, 12), (0.0, 0, 2)])
    def test_ten_nights_of_a_tenth_of_the_items_neither_hide_a_drift_nor_make_one(
        self, shift: float, least: int, most: int
    ) -> None:
        panel, rng = Panel(nights=40, noise=0.1, flips=1.0, shift=shift, since=15), np.random.default_rng(17)
        asked = (np.arange(40) < 30)[None, :] | (np.arange(len(panel.clusters)) < 20)[:, None]
        verdicts = [standing(panel, rng, asked) for _ in range(12)]
        assert least <= verdicts.count("drift") <= most


class TestModels:
    """As the nightly asset judges them, with prompts that failed on some nights."""

    def test_ten_that_did_not_change_are_none_of_them_drift_and_the_rule_flags_most(self) -> None:
        found = models(replace(STABLE, models=10, nights=60, missing=0.05), 15)
        np.testing.assert_allclose(
            found["threshold"], math.log10(10 / 0.05), rtol=1e-12
        )  # a logarithm: its last bit may differ
        assert found["verdict"].value_counts().to_dict() == {"watch": 10}
        assert set(found["night_verdict"]) == {"none"}

    def test_a_shift_of_the_whole_panel_is_the_nights(self) -> None:
        found = models(replace(NOISY, models=10, nights=25, missing=0.05, shift=-0.08, since=15, all_shift=True), 16)
        assert "drift" not in set(found["verdict"])
        assert set(found["night_verdict"]) == {"drift"}
        assert set(found["night_first_snapshot"]) == {label(15)}
