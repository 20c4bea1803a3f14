"""Error rates and power where the truth is known, in small; `benchmarks/drift_null.py` has them in full."""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import binom

from benchmarks.drift_null import Design, series, simulated_verdicts, standing
from dtef_pipeline.drift.checks import drift_checks
from dtef_pipeline.drift.models import model_drift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.snapshots import label

STABLE = Design(night_sd=0.02)


def simulated(design: Design, sets: int, seed: int) -> pa.Table:
    """Scores of as many models, in the columns that drift verdicts are made from; what no night has is a failed call."""
    frames = []
    for place, values in enumerate(series(design, sets, seed)):
        values.index = pd.Index([f"q{q}" for q in range(len(values))], name="question_id")
        long = values.reset_index().melt("question_id", var_name="snapshot", value_name="score")
        frames.append(long.assign(model=f"m{place:03d}", prompt_id=long["question_id"], truth_id="t"))
    frame = pd.concat(frames).assign(
        round="S1", segment="country:kenya", context_level="0", condition="c", metric="js", temperature=0.0, draw=0
    )
    status = np.where(frame["score"].notna(), "ok", "call_failed")
    frame = frame.assign(model_variant=frame["model"], circular=False, status=status)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table.append_column("answered_at", pa.nulls(len(table), pa.timestamp("us", tz="UTC")))


def models(design: Design, sets: int, seed: int) -> pd.DataFrame:
    """The verdicts of `model_drift` on as many models at once."""
    with duckdb.connect() as connection:
        connection.register("scores", simulated(design, sets, seed))
        return model_drift(connection, SUBJECT).checks.to_pandas()


class TestErrorRates:
    def test_the_rule_alone_cries_wolf_and_drift_does_not(self) -> None:
        """100 nights without drift: every series is flagged by the rule at some time, and none of 12 that share alpha has drifted."""
        checks = drift_checks(simulated(STABLE, 12, 11), SUBJECT)
        assert checks["verdict"].to_pylist() == ["watch"] * 12
        assert sum(e >= math.log10(20) for e in checks["log10_e"].to_pylist()) <= binom.ppf(0.9999, 12, 0.05)

    @pytest.mark.parametrize(
        "design",
        [Design(), Design(question_sd=0.05, night_sd=0.02), STABLE, replace(STABLE, missing=0.05, clipped=True)],
        ids=["questions differ by .2", "nights differ by .02", "both", "answers missing"],
    )
    def test_false_drift_over_100_nights_is_5_percent_at_most(self, design: Design) -> None:
        found = simulated_verdicts(design, 40, 12)
        assert found.large.mean() > 0.95
        assert found.drift() <= 0.1  # four of 40: more is one in 500 at 2 %
        assert found.drift(10) <= 0.05

    @pytest.mark.parametrize(
        "design",
        [Design(questions=400), Design(question_sd=0.05, night_sd=0.01), Design(question_sd=0.05, night_sd=0.02)],
        ids=["questions differ by .2", "nights differ by .01", "nights differ by .02"],
    )
    def test_a_shift_of_008_is_found_within_10_nights_without_another_model(self, design: Design) -> None:
        """After 40 nights. After fewer, nights that differ by .02 may as well take after each other (docs/drift.md has the rates)."""
        found = simulated_verdicts(replace(design, shift=0.08, since=40, nights=50), 30, 13)
        assert found.drift() >= 0.8

    def test_drift_checks_finds_it_in_scores_as_the_simulation_does(self) -> None:
        design = replace(STABLE, shift=-0.08, since=40, nights=50)
        alone = simulated_verdicts(design, 8, 14)
        checks = drift_checks(simulated(design, 8, 14), SUBJECT, options=WatchOptions(alpha=0.4))  # 8 share it: 1 in 20 each
        np.testing.assert_allclose(checks["alone_log10_e"].to_pylist(), alone.log10_e)
        for row in checks.to_pylist():  # all of them moved together, which no single one of them did
            assert row["verdict"] == "watch"
            assert (row["night_verdict"], row["night_first_snapshot"]) == ("drift", label(40))
            assert row["night_shift"] == pytest.approx(-0.08, abs=0.02)


class TestSmallerPanels:
    @pytest.mark.parametrize(("shift", "least", "most"), [(-0.08, 9, 12), (0.0, 0, 2)])
    def test_ten_nights_of_a_tenth_of_the_questions_neither_hide_a_drift_nor_make_one(
        self, shift: float, least: int, most: int
    ) -> None:
        design = replace(Design(questions=100, question_sd=0.1), nights=40, shift=shift, since=15)
        asked = (np.arange(40) < 30)[None, :] | (np.arange(100) < 10)[:, None]
        verdicts = [standing(values, asked) for values in series(design, 12, 17)]
        assert least <= verdicts.count("drift") <= most


class TestModels:
    """As the nightly asset judges them, with prompts that failed on some nights."""

    def test_twenty_that_did_not_change_are_none_of_them_drift_and_the_rule_flags_most(self) -> None:
        found = models(replace(STABLE, nights=60, missing=0.05, clipped=True), 20, 15)
        np.testing.assert_allclose(
            found["threshold"], math.log10(20 / 0.05), rtol=1e-12
        )  # a logarithm: its last bit may differ
        assert found["verdict"].value_counts().to_dict() == {"watch": 20}
        assert set(found["night_verdict"]) == {"none"}

    def test_a_shift_of_the_whole_panel_is_the_nights(self) -> None:
        found = models(replace(Design(), nights=25, missing=0.05, shift=-0.08, since=15), 10, 16)
        assert "drift" not in set(found["verdict"])
        assert set(found["night_verdict"]) == {"drift"}
        assert set(found["night_first_snapshot"]) == {label(15)}
