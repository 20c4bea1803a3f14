"""A judge that often writes what cannot be read, and sometimes nothing: no score comes from a failure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.qa.judging.arbiter import EVALUATORS
from tests.assets.qa.conftest import QaPipeline, qa_pipeline
from tests.conftest import ROOT
from tests.made.qa_replies import breaks_at, judge_fails_at, qa_role_of, verdict_on

DRAWS = 2
JUDGING = {"judge": "arbiter", "sample_rate": 1.0}
SUMS = ROOT / "data" / "questions" / "gsm8k"


@pytest.fixture
def failing(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[QaPipeline]:
    with qa_pipeline(state, monkeypatch, judge_fails_at(0.08, seconds=20), retries=0, timeout=5) as made:
        made.players.breaks = breaks_at(0.2)
        yield made


def compare_means(judged: list[dict[str, Any]], means: list[dict[str, Any]]) -> None:
    """Each mean is that of the scores that were stated, or has a reason."""
    given: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in judged:
        given[row["item_id"], row["draw"]] += [row["score"]] if row["score"] is not None else []
    for row in means:
        verdicts = given[row["item_id"], row["draw"]]
        if verdicts:
            assert row["value"] == row["score"] == pytest.approx(sum(verdicts) / len(verdicts))
            assert ("partial" in row["flags"]) == (len(verdicts) < len(EVALUATORS))
        else:
            assert (row["status"], row["value"], row["score"]) == ("judge_failed", None, None)
        assert bool(row["reason"]) == (len(verdicts) < len(EVALUATORS))


def test_a_failed_judge_gives_neither_a_half_nor_a_zero(failing: QaPipeline) -> None:
    failing.add("gsm8k", SUMS)
    failing.players.usual = "I try for the ATTEMPT. time: it is twelve.\n#### 12"
    assert failing.run(qa_responses={"models": ["honest"], "draws": DRAWS}, qa_judgements=JUDGING).failures == ()
    judged, scores = failing.rows("qa_judgements"), failing.rows("qa_scores")
    wanted = 20 * DRAWS
    assert len(judged) == wanted * len(EVALUATORS)
    reasons = Counter(row["reason"] for row in judged)
    assert min(reasons["error"], reasons["unreadable"] + reasons["empty"]) > 0, "the plan has both kinds of failure"
    assert reasons[None] > wanted
    assert set(reasons) <= {None, "error", "unreadable", "empty", "cut"}
    assert all((row["score"] is None) == (row["reason"] is not None) for row in judged)
    assert all(row["error"] for row in judged if row["reason"] == "error")

    # Each score is what the judge says of this text, whenever it says something.
    said = {verdict_on(call.body) for call in failing.server.calls if qa_role_of(call.body) == "judge"}
    assert {row["score"] for row in judged} - {None} <= said

    means = [row for row in scores if row["metric"] == "judged"]
    assert len(means) == wanted
    compare_means(judged, means)
    of_judge = [row["score"] for row in scores if row["scorer"] == "judge"]
    assert not {0.0, 0.5} & set(of_judge)
    assert 0 < of_judge.count(None) < len(of_judge) / 2

    # A judge that works again fills the gaps and is asked nothing else.
    asked = Counter(failing.players.answered)
    failing.server.fault = lambda call: None
    failing.players.breaks = lambda call: False
    failing.run(["qa_judgements", "qa_scores"], qa_judgements=JUDGING)
    after = failing.rows("qa_judgements")
    assert sum(row["reason"] == "error" for row in after) == 0
    again = failing.players.answered - asked
    # Equal answers to one item are judged once.
    assert 0 < len(again) <= reasons["error"]
    kept = {(row["item_id"], row["draw"], row["evaluator"]): row["score"] for row in after}
    assert all(
        kept[row["item_id"], row["draw"], row["evaluator"]] == row["score"] for row in judged if row["score"] is not None
    )
