"""Judged scores that moved are netted of the judge's own move, where it was shown stored answers on both sides."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.drift.judge_verdicts import subtract_judges
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.verdict_tables import ANCHORS
from dtef_pipeline.qa.score_drift import QA_WATCHED
from tests.made.qa_scores import night

BY = "judge 1, j[temperature=0,top_p=1], factuality+semantic"


def anchored(nights: range, lost: float) -> pa.Table:
    """What a judge said of the same answers: by one evaluator twice `lost` less from the sixth night on."""
    rng = np.random.default_rng(5)
    judge = {"judge": "j", "judge_model": "j", "judge_variant": "j[temperature=0,top_p=1]", "partition": "s/all"}
    rows = []
    for at, item, (evaluator, usual) in product(nights, range(30), (("semantic", 0.8), ("factuality", 0.6))):
        score = usual + float(rng.normal(0, 0.01)) - (2 * lost if at >= 6 and evaluator == "semantic" else 0.0)
        place = {"snapshot": night(at)["snapshot"], "anchor": f"a{item}", "item": f"i{item}"}
        rows.append({**judge, **place, "evaluator": evaluator, "score": score})
    return pa.Table.from_pylist(rows, schema=ANCHORS)


def moved(metric: str = "judged", by: str = BY, **changed: Any) -> dict[str, Any]:
    """One model whose score fell by .3 in the sixth night."""
    known = {"verdict": "drift", "shift": -0.3, "shift_low": -0.35, "shift_high": -0.25}
    named = {"model": "m", "model_variant": "m[temperature=0]", "metric": metric, "measured_by": by}
    return {**named, "first_snapshot": night(6)["snapshot"], **known, **changed}


def netted(row: dict[str, Any], judged: pa.Table, options: WatchOptions | None = None) -> dict[str, Any]:
    """The columns on judges of one model."""
    assert QA_WATCHED.anchors is not None
    (found,) = subtract_judges([row], QA_WATCHED.anchors, judged, options or WatchOptions())
    return {name: value for name, value in found.items() if name not in row}


def test_a_judged_shift_is_netted_of_its_evaluators_between_the_same_snapshots() -> None:
    judged = anchored(range(12), 0.1)
    for metric, part in (("judged", -0.1), ("semantic", -0.2), ("factuality", 0.0)):
        row = netted(moved(metric), judged)
        assert row["net_shift"] == pytest.approx(-0.3 - part, abs=0.01)
        assert "on anchors" in row["judges_note"]
        assert "an answer that did not change keeps its judgement" in row["judges_note"]


def test_what_is_not_known_to_have_moved_since_a_night_is_not_netted() -> None:
    """A model that fell by itself after its judge had become stricter was told as having moved by nothing."""
    row = netted(moved(verdict="watch", first_snapshot=None), anchored(range(9), 0.1))
    assert row["net_shift"] is None
    assert row["judges_note"] == "model or judges: the first snapshot of the shift is unknown"


def without(judged: pa.Table, *nights: int) -> pa.Table:
    lacking = {night(at)["snapshot"] for at in nights}
    return pa.Table.from_pylist([row for row in judged.to_pylist() if row["snapshot"] not in lacking], schema=ANCHORS)


@pytest.mark.parametrize("lacking", [(), (6,), (0, 1, 2, 3, 4), (6, 7, 8, 9, 10), (10, 11), range(1, 11)])
def test_the_judges_snapshots_count_by_their_time(lacking: tuple[int, ...]) -> None:
    """Without anchors in exactly the first snapshot of the shift nothing was netted."""
    labels = [night(at)["snapshot"] for at in range(12)]
    model = moved(baseline=labels[:5], latest_snapshot=labels[-1], n_snapshots=12)
    row = netted(model, without(anchored(range(12), 0.1), *lacking))
    assert row["net_shift"] == pytest.approx(-0.2, abs=0.02)
    assert "moved too" in row["judges_note"]


def test_an_outage_of_the_model_counts_on_no_side_of_its_judge() -> None:
    judged = anchored(range(12), 0.1).to_pylist()
    broken = night(3)["snapshot"]
    scores = [{**row, "score": 0.0} if row["snapshot"] == broken else row for row in judged]
    row = netted(moved(outage=[broken]), pa.Table.from_pylist(scores, schema=ANCHORS))
    assert row["net_shift"] == pytest.approx(-0.2, abs=0.02)


def test_it_is_stated_why_a_shift_is_not_netted_and_nothing_is_stated_of_what_no_judge_scored() -> None:
    later = netted(moved(), anchored(range(6, 12), 0.1))
    assert later["net_shift"] is None
    assert "no judge was shown anchors again" in later["judges_note"]
    accepted = WatchOptions(since={"m": night(7)["snapshot"]})
    assert netted(moved(), anchored(range(12), 0.1), accepted) == netted(moved(), anchored(range(7, 12), 0.1))
    other = WatchOptions(since={"other": night(7)["snapshot"]})
    assert netted(moved(), anchored(range(12), 0.1), other) == netted(moved(), anchored(range(12), 0.1))
    for rows, by in ((ANCHORS.empty_table(), BY), (anchored(range(12), 0.1), BY.replace("j[", "other["))):
        none = netted(moved(by=by), rows)
        assert "no judge was shown anchors again" in none["judges_note"]
    for row in (moved("correct", "numeric 1"), moved(verdict="none"), moved(shift=None)):
        assert netted(row, anchored(range(12), 0.1)) == {}
