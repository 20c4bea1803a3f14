"""Messages to the webhook: each change of a verdict arrives once, however often sending fails."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.drift.notifications import NOT_COMPARED, copy_sent_verdicts, find_unsent, mark_sent, message
from dtef_pipeline.drift.verdict_tables import DRIFT
from dtef_pipeline.survey.drift_subject import SUBJECT

VERDICTS = [None, "none", "watch", "drift"]


def checks(*rows: dict[str, Any]) -> pa.Table:
    usual: dict[str, Any] = {
        "model": "m",
        "model_variant": "v",
        "way": "context 0",
        "latest_snapshot": "2026-03-08",
    }
    usual |= {"shift": -0.1, "shift_low": -0.2, "shift_high": -0.05, "first_snapshot": "2026-03-07"}
    usual |= {"gap": 0.1, "reason": "0.5000 in a, 0.6000 in b"}
    return pa.Table.from_pylist([{**usual, **row} for row in rows], DRIFT)


@pytest.mark.parametrize(
    ("verdict", "sent", "is_news"),
    [
        ("drift", None, True),
        ("watch", None, True),
        ("none", None, False),
        ("drift", "drift", False),
        ("drift", "watch", True),
        ("watch", "drift", True),
        ("none", "drift", True),
        ("none", "watch", True),
        ("none", "none", False),
        ("drift", "none", True),
        (None, None, False),
        (None, "none", False),
        (None, "drift", True),
        (None, "not compared", False),
        ("none", "not compared", True),
    ],
)
def test_news_is_a_verdict_other_than_the_one_sent_last(verdict: str | None, sent: str | None, is_news: bool) -> None:
    assert len(find_unsent(checks({"verdict": verdict, "sent": sent}))) == is_news


@given(st.lists(st.tuples(st.sampled_from(VERDICTS), st.booleans()), max_size=12))
def test_each_change_arrives_once_however_often_the_webhook_fails(nights: list[tuple[str | None, bool]]) -> None:
    """What a receiver that hears some of the nights knows is the verdict of the last one it heard."""
    table, heard = DRIFT.empty_table(), []
    for verdict, arrives in nights:
        table = copy_sent_verdicts(checks({"verdict": verdict}), table)
        if arrives and len(news := find_unsent(table)):
            heard.append(news["verdict"][0].as_py() or NOT_COMPARED)
            table = mark_sent(table)
    assert all(first != second for first, second in zip(["none", *heard], heard, strict=False))
    known = "none"
    for verdict, arrives in nights:
        if arrives:
            known = verdict or ("none" if known == "none" else NOT_COMPARED)
    assert ["none", *heard][-1] == known


def test_the_message_is_json_with_the_documented_fields() -> None:
    changes = [{"what": "parse_rate", "snapshot": "2026-03-07", "before": "parsed 98.0 %", "after": "parsed 60.0 %"}]
    table = checks(
        {"verdict": "drift", "changes": changes},
        {"model_variant": "w", "verdict": "none", "latest_snapshot": "base"},
        {"model_variant": "x", "verdict": "none", "sent": "watch", "shift": None, "shift_low": None, "shift_high": None},
    )
    sent = json.loads(json.dumps(message(table, SUBJECT), allow_nan=False))
    assert sent["snapshot"] == "2026-03-08"
    assert sent["text"].startswith("Drift in 1 of 3 series. Largest: m, context 0, down by 0.1000 since 2026-03-07.")
    first, back = sent["series"]
    assert first == {
        "model": "m",
        "model_variant": "v",
        "way": "context 0",
        "verdict": "drift",
        "night_verdict": None,
        "was": "none",
        "shift": -0.1,
        "shift_low": -0.2,
        "shift_high": -0.05,
        "first_snapshot": "2026-03-07",
        "changes": changes,
    }
    assert (back["model_variant"], back["verdict"], back["was"], back["shift"]) == ("x", "none", "watch", None)


@pytest.mark.parametrize("tell", [["drift"], ["watch", "drift"]])
def test_that_all_models_moved_is_sent_once_under_any_choice_of_verdicts(tell: list[str]) -> None:
    night = {"night_verdict": "watch", "night_shift": -0.08, "night_first_snapshot": "2026-03-07"}
    table = checks({"verdict": "watch", **night}, {"model_variant": "w", "verdict": "watch", **night})
    sent = message(table, SUBJECT, tell)
    assert [(one["verdict"], one["night_verdict"]) for one in sent["series"]] == [
        ("watch" if "watch" in tell else "none", "watch")
    ] * 2
    assert "All models together moved down by 0.0800 since 2026-03-07, context 0." in sent["text"]
    assert not len(find_unsent(mark_sent(table, tell), tell))
