"""A model beside the others of the same nights: who moved, what all did together, parse rates, and error rates by simulation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.drift_panels import BLOCKS, SEGMENTS, Panel, answers, judged, rates, standing
from dtef_pipeline.drift.models import drift_checks
from dtef_pipeline.drift.paired import Scores, SharedShift, choose_control, compute_shared_shift, pair_with_baseline
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.verdict import Verdict, compute_verdict
from dtef_pipeline.drift.verdict_tables import DRIFT, EVIDENCE, SHARED
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.tables import DRIFT_CHECKS
from tests.made.snapshots import Rows, found, label, nights

THRESHOLD = math.log10(2 / 0.05)


def verdicts(panel: Panel, seed: int = 1) -> dict[str, Verdict]:
    return judged(answers(panel, np.random.default_rng(seed)), panel.clusters, panel.nights, THRESHOLD)


def common(panel: Panel) -> SharedShift:
    pairs = {name: one.pairs for name, one in verdicts(panel).items()}
    return compute_shared_shift(pairs, pairs["m0"].snapshots, baseline=5, threshold=THRESHOLD)


class TestControl:
    def test_of_three_models_one_that_moves_does_not_move_the_control_of_another(self) -> None:
        steady, moved = (pd.DataFrame(np.full((4, 10), level), columns=list("abcdefghij")) for level in (0.6, 0.6))
        moved.iloc[:, 6:] -= 0.2
        own = pair_with_baseline(steady, ["q"] * 4, baseline=5)
        control = choose_control(steady, own, {"x": moved, "y": steady})
        assert control is not None
        assert control.models == ("x", "y")
        assert control.beyond == pytest.approx(np.zeros(10))
        assert control.excess == pytest.approx(np.repeat([0.0, 0.1], [6, 4]))

    def test_is_paired_item_by_item_where_both_have_a_score(self) -> None:
        rng = np.random.default_rng(0)
        values, other = (pd.DataFrame(rng.uniform(size=(6, 8))) for _ in range(2))
        values.iloc[2, 5], other.iloc[4, 6] = np.nan, np.nan
        for frame in (values, other):
            frame.columns = pd.Index([f"n{night}" for night in range(8)])
        control = choose_control(values, pair_with_baseline(values, list("abcdef"), baseline=5), {"x": other})
        expected = []
        for night in range(8):
            both = [
                (values - other).iloc[item, night] - np.nanmean((values - other).iloc[item, :5])
                for item in range(6)
                if np.isfinite((values - other).iloc[item, night])
            ]
            expected.append(sum(both) / len(both))
        assert control is not None
        assert control.excess == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("control", "other", "is_one"),
        [([], "b", True), ([], "a@seed=2", False), (["b"], "b@seed=2", True), (["c"], "b", False)],
    )
    def test_a_model_is_compared_with_others_and_with_those_alone_that_the_panel_names(
        self, control: list[str], other: str, is_one: bool
    ) -> None:
        assert WatchOptions(control=control).is_control("a", other) is is_one


class TestWhoMoved:
    def test_the_one_that_moved_has_drift_and_the_other_has_not(self) -> None:
        one, other = verdicts(Panel(models=2, nights=30, wobble=0.02, autocorrelation=0.5, shift=-0.1, since=15)).values()
        assert (one.verdict, one.first_snapshot, one.control) == ("drift", label(15), "m1")
        (beyond,) = one.shift_notes
        assert beyond.startswith("beyond the other models of these snapshots (m1): ")
        assert float(beyond.rsplit(maxsplit=1)[1]) == pytest.approx(-0.1, abs=0.01)
        assert other.verdict != "drift"

    def test_where_it_cannot_be_decided_both_are_named_and_neither_has_drift(self) -> None:
        made = answers(Panel(models=2, nights=30), np.random.default_rng(1))
        made["m0"].policy.iloc[:, 15:] -= 0.07
        made["m1"].policy.iloc[:, 15:] += 0.07
        for name, one in judged(made, Panel().clusters, 30, THRESHOLD).items():
            other = {"m0": "m1", "m1": "m0"}[name]
            assert one.verdict == "watch"
            assert f"this model or {other} moved: the data do not show which" in one.notes

    def test_what_all_do_together_is_the_snapshots_and_no_models(self) -> None:
        panel = Panel(models=4, nights=30, shift=-0.1, since=15, all_shift=True)
        assert {one.verdict for one in verdicts(panel).values()} == {"watch"}
        night = common(panel)
        assert (night.shared_verdict, night.shared_first_snapshot) == ("watch", label(15))
        assert night.shared_shift == pytest.approx(-0.1, abs=0.01)


def test_a_fall_of_the_parse_rate_is_a_drift_of_that() -> None:
    one, _ = verdicts(Panel(models=2, nights=30, unparsed=0.02, parse_shift=0.2, since=15)).values()
    note = one.shift_notes[0]
    assert (one.verdict, note.startswith("a drift of the parse rate: the responses that could be parsed moved by ")) == (
        "drift",
        True,
    )
    assert float(note.rsplit(maxsplit=1)[1]) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("length", [2, 5])
@pytest.mark.parametrize("models", [1, 2])
def test_an_outage_that_reverts_is_watched_and_named_and_no_drift(length: int, models: int) -> None:
    panel = Panel(models=models, nights=45, wobble=0.005, outages=((30, length),))
    made = answers(panel, np.random.default_rng(2))
    said = [judged(made, panel.clusters, until, THRESHOLD)["m0"] for until in (31, 35, 39, 45)]
    assert {one.verdict for one in said} == {"watch"}
    assert said[-1].outage == tuple(label(night) for night in range(30, 30 + length))
    assert any(note.startswith("off and back, which is an outage and no drift: ") for note in said[-1].notes)
    assert any(note.startswith("off up to the latest, an outage or a shift: ") for note in said[0].notes)


@pytest.mark.parametrize(("shift", "within"), [(-0.08, 10), pytest.param(-0.05, 20, marks=pytest.mark.thorough)])
def test_beside_another_model_a_shift_is_found_however_the_snapshots_wander(shift: float, within: int) -> None:
    found = rates(Panel(models=2, wobble=0.02, autocorrelation=0.8, shift=shift, since=10, nights=10 + within), 8, 4, looks=1)
    assert found.first >= 0.6  # of 8: fewer is one in 200 at 85 %
    assert found.other <= 0.125


@pytest.mark.parametrize(("control", "said"), [(["b"], ""), (["c", "d", "a"], "drift.control: c, d asked in too few")])
def test_a_control_that_was_not_asked_in_these_snapshots_is_named(control: list[str], said: str) -> None:
    rows: Rows = [*nights([0.6] * 8, model="a"), *nights([0.6] * 8, model="b"), *nights([0.6] * 2, model="c")]
    checks, _ = found(rows, control=control)
    (reason,) = (row["reason"] for row in checks if row["model"] == "a")
    assert said in reason
    assert bool(said) == ("drift.control" in reason)


def test_tables_have_the_snapshot_and_the_model_side_by_side() -> None:
    fell: Rows = [*nights([0.6] * 12, model="a"), *nights([0.6] * 5 + [0.45] * 7, model="b"), *nights([0.6] * 12, model="c")]
    checks, _ = found(fell)
    assert {row["model"]: (row["verdict"], row["shared_verdict"], row["control"]) for row in checks} == {
        "a": ("none", "none", "b, c"),
        "b": ("drift", "none", "a, c"),
        "c": ("none", "none", "a, b"),
    }
    for schema in (DRIFT, DRIFT_CHECKS):
        assert {column.name for column in (*EVIDENCE, *SHARED)} <= set(schema.names)


def test_a_model_that_stayed_has_no_drift_though_the_other_moved_right_after_an_outage_of_both() -> None:
    """The outage was in the mean of the model that stayed, and taken out of its difference to the other: it had a drift, with a shift of 0."""
    rng = np.random.default_rng(3)
    level = np.zeros((2, 24))
    level[:, 12:14] = -0.44
    level[0, 14:], level[0, 1] = -0.06, -0.2
    moved, stayed = (
        pd.DataFrame(
            rng.normal(0.66, 0.1, (40, 1)) + one + rng.normal(0, 0.01, (40, 24)), columns=[label(n) for n in range(24)]
        )
        for one in level
    )
    clusters = [f"q{at}" for at in range(40)]
    of_stayed = compute_verdict(stayed, clusters, baseline=5, threshold=THRESHOLD, peers={"moved": Scores(moved, moved)})
    assert of_stayed.verdict != "drift"
    assert of_stayed.shift == pytest.approx(0, abs=0.01)


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
