"""Anchors stay the same from night to night, and a drift of judges is not told as one of the model."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.drift.judge_verdicts import JudgeDrift, NetDrift, add_anchors, compute_judge_drifts, subtract_judges_of_row
from dtef_pipeline.drift.paired import Scores
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.verdict import Verdict, compute_verdict
from dtef_pipeline.drift.verdict_tables import ANCHOR_ITEMS
from dtef_pipeline.drift.verdict_text import list_moved_judges
from dtef_pipeline.qa.score_drift import QA_WATCHED
from dtef_pipeline.rubric.rubric_drift import COVERAGE_PART, WATCHED

LABELS = [(date(2026, 1, 1) + timedelta(days=at)).isoformat() for at in range(16)]
NO_ANCHORS = ANCHOR_ITEMS.empty_table()


def choose(pool: pd.DataFrame, n: int, *, seed: int = 0, kept: pa.Table = NO_ANCHORS, subject: Any = QA_WATCHED) -> pa.Table:
    source = replace(subject.anchors, pool=lambda _: pool, add_texts=lambda chosen, _: chosen.assign(shown="{}"))
    with duckdb.connect() as connection:
        return add_anchors(subject.family, source, kept, n, seed, connection)


def pool_of(*scores: float, partition: str = "p") -> pd.DataFrame:
    """Answers with these scores."""
    rows = [{"anchor": f"{partition}-{at}", "item": f"i{at // 2}", "score": score} for at, score in enumerate(scores)]
    return pd.DataFrame(rows, columns=["anchor", "item", "score"]).assign(partition=partition)


def test_rare_scores_have_their_share_of_anchors() -> None:
    chosen = choose(pool_of(*[1.0] * 60, *[0.0] * 20, *[0.5] * 3), 50)
    assert Counter(chosen["score"].to_pylist()) == {1.0: 27, 0.0: 20, 0.5: 3}
    assert Counter(chosen.slice(0, 9)["score"].to_pylist()) == {1.0: 3, 0.0: 3, 0.5: 3}


def test_every_blueprint_has_its_share_of_anchors() -> None:
    pool = pd.concat([pool_of(*[0.0] * n, partition=name) for name, n in (("b0", 60), ("b1", 60), ("b2", 14))])
    assert Counter(choose(pool, 36, subject=WATCHED)["partition"].to_pylist()) == {"b0": 12, "b1": 12, "b2": 12}


def test_anchors_do_not_depend_on_the_order_of_rows_and_stay_when_more_is_stored() -> None:
    pool = pool_of(*np.linspace(0, 1, 90))
    chosen = choose(pool, 20, seed=1)
    assert choose(pd.concat([pool, pool]).sample(frac=1, random_state=3), 20, seed=1) == chosen
    assert choose(pool, 20, seed=2) != chosen
    kept = choose(pool_of(*[1.0] * 10), 10)
    larger = pool_of(*[1.0] * 30, *[0.1] * 30)
    filled = choose(larger, 18, kept=kept)
    assert filled.slice(0, 10) == kept
    assert Counter(filled["score"].to_pylist()) == {1.0: 10, 0.1: 8}
    assert choose(larger, 18, kept=filled) == filled
    assert choose(larger.head(0), 5) == NO_ANCHORS


def nights_of(shift: float, *, since: int = 8, judge: str = "standard(j)", seed: int = 0) -> pd.DataFrame:
    """Anchors judged every night; from night `since` on the scores are higher by `shift`."""
    rng = np.random.default_rng(seed)
    level = rng.uniform(0.4, 0.7, 120)
    model = judge.partition("(")[2].partition(")")[0]
    named = {"judge": judge, "judge_model": model, "judge_variant": f"{judge}:t=0", "evaluator": ""}
    anchors = pd.DataFrame({"anchor": [f"a{at}" for at in range(120)], "item": [f"p{at // 5}" for at in range(120)]})
    parts = [
        anchors.assign(**named, partition="b", snapshot=night, score=level + shift * (at >= since) + rng.normal(0, 0.03, 120))
        for at, night in enumerate(LABELS)
    ]
    return pd.concat(parts, ignore_index=True)


def netted(row: dict[str, Any], judges: list[JudgeDrift]) -> NetDrift:
    return subtract_judges_of_row(row, judges, COVERAGE_PART)


def model_row(shift: float, first: str | None = LABELS[8], verdict: str = "drift") -> dict[str, Any]:
    return {"verdict": verdict, "shift": shift, "first_snapshot": first}


def test_a_judge_that_became_stricter_is_found_unless_its_date_is_accepted() -> None:
    rows = pd.concat([nights_of(-0.15), nights_of(0, judge="standard(other)", seed=1)])
    (found,) = (one for one in compute_judge_drifts(rows) if one.judge == "standard(j)")
    assert found.row["verdict"] == "drift"
    assert found.row["first_snapshot"] == LABELS[8]
    assert found.row["shift"] == pytest.approx(-0.15, abs=0.02)
    assert found.compute_shift_since(LABELS[8]) == pytest.approx(-0.15, abs=0.02)
    assert found.compute_shift_since("2030-01-01") is None
    assert found.row["n_items"] == 120
    (moved,) = list_moved_judges([{**found.row, "family": "rubric"}])
    assert f"drift since {LABELS[8]} on 120 anchors, shift -0.1" in moved
    accepted_by = {"": "none", "standard(j)": "none", "standard(j):t=0": "none", "j": "none", "m": "watch", "standard": "watch"}
    for name, verdict in accepted_by.items():
        (accepted,) = compute_judge_drifts(nights_of(-0.15), options=WatchOptions(since={name: LABELS[8]}))
        assert accepted.row["verdict"] == verdict
    (ten,) = compute_judge_drifts(
        nights_of(-0.15, judge="standard(j@seed=1)[scale:10]"), options=WatchOptions(since={"j": LABELS[8]})
    )
    assert ten.row["verdict"] == "none"
    (none,) = compute_judge_drifts(nights_of(-0.15), options=WatchOptions(since={"": "2030-01-01"}))
    assert none.verdict is None


def test_judges_that_move_together_are_compared_with_judges_not_with_models() -> None:
    rows = pd.concat([nights_of(-0.15), nights_of(-0.15, judge="standard(other)", seed=1)])
    for found, other in zip(compute_judge_drifts(rows), ("standard(other)", "standard(j)"), strict=True):
        assert found.row["verdict"] == "watch"
        assert "the other judges" in found.row["reason"]
        assert other in found.row["reason"]
        assert "model" not in found.row["reason"]


def test_a_models_drift_is_reported_as_the_judges_where_the_anchors_moved_too() -> None:
    found = netted(model_row(-0.1), compute_judge_drifts(nights_of(-0.15)))
    assert found.net_shift == pytest.approx(-0.0025, abs=0.01)
    assert found.judges_note.startswith("a shift of the judges, not of the model: on anchors standard(j) moved too")


def model_verdict(shift: float, *, beside: float | None) -> Verdict:
    """Of a model whose scores move by `shift`, beside another whose scores move by `beside`; None: alone."""
    rng = np.random.default_rng(3)
    fell = np.arange(len(LABELS)) >= 8
    own, other = (
        pd.DataFrame(0.6 + by * fell + rng.normal(0, 0.03, (40, len(LABELS))), columns=LABELS) for by in (shift, beside or 0.0)
    )
    others = {} if beside is None else {"other": Scores(other)}
    return compute_verdict(own, [f"c{at // 2}" for at in range(40)], baseline=5, threshold=np.log10(40), peers=others)


def as_row(found: Verdict) -> dict[str, Any]:
    return model_row(found.shift or 0.0, found.first_snapshot, found.verdict)


def test_a_shift_that_a_lone_judge_explains_is_no_drift_and_is_netted() -> None:
    """The verdict on a judge without another is watch at most, and models were then no longer netted of its move."""
    judges = compute_judge_drifts(nights_of(-0.15))
    assert [(one.row["verdict"], one.row["control"], one.row["first_snapshot"]) for one in judges] == [
        ("watch", "none", LABELS[8])
    ]
    assert "add another judge" in judges[0].row["reason"]
    alone = model_verdict(-0.1, beside=None)
    assert (alone.verdict, alone.first_snapshot) == ("watch", LABELS[8])
    found = netted(as_row(alone), judges)
    assert found.net_shift == pytest.approx(0.0, abs=0.02)
    assert found.judges_note.startswith("a shift of the judges")
    beside = model_verdict(-0.1, beside=-0.1)
    assert beside.verdict == "watch"
    assert "drift" not in netted(as_row(beside), judges).judges_note


def test_a_drift_under_a_lone_judge_that_did_not_move_is_the_models() -> None:
    found = model_verdict(-0.1, beside=0.0)
    assert (found.verdict, found.first_snapshot) == ("drift", LABELS[8])
    assert netted(as_row(found), compute_judge_drifts(nights_of(0))).judges_note.startswith("a shift of the model")


@pytest.mark.parametrize(
    ("shift", "of_judge", "words"),
    [
        (-0.1, 0.0, "a shift of the model: on anchors the judges did not move"),
        (-0.2, -0.15, "model and judges moved"),
        (-0.4, -0.1, "makes only"),
        (-0.1, 0.15, "makes only"),
    ],
)
def test_a_models_own_drift_stays_its_own(shift: float, of_judge: float, words: str) -> None:
    found = netted(model_row(shift), compute_judge_drifts(nights_of(of_judge)))
    assert words in found.judges_note


def test_what_is_not_known_to_have_moved_since_a_night_is_not_netted_of_judges_that_moved() -> None:
    """All of it was told as theirs, though the model had moved besides."""
    watched = model_row(-0.2, None, "watch")
    found = netted(watched, compute_judge_drifts(nights_of(-0.2)))
    assert found.net_shift is None
    assert found.judges_note == "model or judges: the first snapshot of the shift is unknown"
    stays = netted(watched, compute_judge_drifts(nights_of(0)))
    assert stays == (None, "of the model: on anchors the judges did not move")


def test_the_judges_snapshots_count_by_their_time() -> None:
    rows = nights_of(-0.15)
    found = netted(model_row(-0.1), compute_judge_drifts(rows[rows["snapshot"] != LABELS[8]]))
    assert found.net_shift == pytest.approx(-0.1 + 0.0975, abs=0.01)


def test_of_two_judges_the_mean_counts() -> None:
    both = pd.concat([nights_of(-0.2), nights_of(0, judge="prompt-aware(j)", seed=1)])
    found = netted(model_row(-0.065), compute_judge_drifts(both))
    assert found.judges_note.startswith("a shift of the judges")
    assert found.net_shift == pytest.approx(0.0, abs=0.01)


def test_without_anchors_nobody_is_blamed() -> None:
    assert netted(model_row(-0.1), []).judges_note.startswith("model or judges")
    early = nights_of(-0.2)
    found = netted(model_row(-0.1, LABELS[8]), compute_judge_drifts(early[early["snapshot"] < LABELS[5]]))
    assert found.net_shift is None
    assert "missing" in found.judges_note or "no judge" in found.judges_note
