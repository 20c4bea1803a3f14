"""The asset `rubric_summaries`: what analysts are asked and what is kept of it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.launch import LaunchResult
from dtef_pipeline.rubric.analysts import OF_ANOTHER_REPORT
from tests.assets.rubric.reviews import FIRST, Reviews


def test_a_run_summarises_each_blueprint_without_names(scored: Reviews) -> None:
    outcome = scored.run(stages=["rubric_summaries"], rubric_summaries={"analysts": ["analyst-b"]})
    assert outcome.failures == ()
    (row,) = scored.frame("rubric_summaries", blueprint="first", snapshot="base").to_dict("records")
    assert (row["status"], row["analyst"], row["n_grades"], row["reason"]) == ("ok", "analyst-b", 26, None)
    names = ("one", "two")
    assert row["text"].startswith(tuple(f"## Key findings\n\n- a key\\_finding of {name}" for name in names))
    assert row["findings"][0]["text"] in [f"a key_finding of {name}" for name in names]
    assert set(scored.frame("rubric_grades", blueprint="first", snapshot="base")["model"]) == set(names)
    assert row["max_tokens"] == 2_000 + 80 * 26
    assert row["cost_usd"] == pytest.approx((row["prompt_tokens"] * 1 + row["completion_tokens"] * 2) / 1e6)
    assert len(scored.seen) == 2
    for text in scored.seen:
        assert not any(name in text.lower() for name in ("claude", "gpt", "openai", '"one"', "judge-a"))
    ids = scored.frame("analyst_ids", blueprint="first", snapshot="base")
    assert set(ids["kind"]) == {"maker", "model", "temperature"}
    assert set(ids[ids["kind"] == "model"]["name"]) == set(names)
    assert scored.checks(outcome)["rubric_summaries_contain_no_names"]


SUMMARIES: dict[str, Any] = {"keys": ["first"], "stages": ["rubric_summaries"]}


def test_another_title_asks_no_analyst(scored: Reviews) -> None:
    """A report began with the title, so that a new title bought the summary again."""
    scored.add(first=FIRST.replace("Kind words", "Kinder words").replace("is kinder", "is the kinder one"))
    assert scored.run(["first"], stages=["rubric_blueprints", "rubric_summaries"]).failures == ()
    assert scored.frame("rubric_blueprints", blueprint="first")["title"][0] == "Kinder words"
    assert scored.seen == []


def test_a_report_that_cannot_fit_is_no_failure_of_the_run(scored: Reviews) -> None:
    """The partition failed, though everything else of it was made."""
    assert scored.run(**SUMMARIES, rubric_summaries={"report_characters": 100}).failures == ()
    (row,) = stored(scored)["rubric_summaries"]
    assert row["status"] == "none"
    assert "allowed: 100" in row["reason"]
    assert scored.seen == []


def test_a_rerun_without_an_analyst_keeps_the_summary_of_the_same_report(scored: Reviews) -> None:
    """Such a rerun wrote one row `none` over it: all grades were gone, and champions fell."""
    assert scored.run(**SUMMARIES).failures == ()
    before, version = stored(scored), versions(scored)
    scored.analyst = False
    again = scored.run(**SUMMARIES)
    assert (again.failures, again.taken_away) == ((), ())
    assert stored(scored) == before
    assert len(before["rubric_grades"]) == 26
    assert versions(scored) == version
    assert scored.seen == []


def test_without_an_analyst_the_summary_of_another_report_goes_is_reported_and_comes_back_for_nothing(scored: Reviews) -> None:
    before = stored(scored)
    scored.analyst = False
    scored.add(first=FIRST.replace("[It parts]", "[{$icontains: bye}]"))
    other = scored.run(["first"], stages=["rubric_blueprints", "rubric_points", "rubric_scores", "rubric_summaries"])
    assert (other.failures, other.taken_away) == ((), ("first",))
    left = stored(scored)
    assert [(row["status"], row["reason"]) for row in left["rubric_summaries"]] == [("none", "no analyst")]
    assert left["rubric_grades"] == left["analyst_ids"] == []
    (told,) = warned(scored, other)
    assert "analyst-a" in told
    assert told.endswith(OF_ANOTHER_REPORT)
    scored.analyst = True
    scored.add(first=FIRST)
    assert (
        scored.run(["first"], stages=["rubric_blueprints", "rubric_points", "rubric_scores", "rubric_summaries"]).failures == ()
    )
    assert stored(scored) == before
    assert scored.seen == []


def test_summaries_go_if_one_of_their_analysts_is_unknown(scored: Reviews) -> None:
    assert scored.run(**SUMMARIES, rubric_summaries={"analysts": ["analyst-a", "analyst-b"]}).failures == ()
    scored.analyst, scored.without = False, ("analyst-b",)
    again = scored.run(**SUMMARIES)
    assert again.taken_away == ("first",)
    assert ["analyst-a" in told or "analyst-b" in told for told in warned(scored, again)] == [True, True]
    assert [row["status"] for row in stored(scored)["rubric_summaries"]] == ["none"]


def test_a_summary_whose_grades_are_lost_is_not_kept_as_if_it_were_whole(scored: Reviews) -> None:
    scored.analyst = False
    Path(scored.house.files("rubric_grades", ["first"])[0]).write_bytes(b"no table")
    again = scored.run(**SUMMARIES)
    assert (again.failures, again.taken_away) == ((), ("first",))
    assert warned(scored, again)[0].endswith(OF_ANOTHER_REPORT)
    assert stored(scored)["rubric_summaries"][0]["status"] == "none"


def test_a_snapshot_that_was_never_scored_is_an_error_without_an_analyst_too(scored: Reviews) -> None:
    scored.analyst = False
    assert "no rubric_scores" in scored.run(**SUMMARIES, snapshot="nevr").failures[0]


def stored(reviews: Reviews) -> dict[str, list[dict[str, Any]]]:
    names = ("rubric_summaries", "rubric_grades", "analyst_ids")
    return {name: reviews.house.read(name, blueprint="first", snapshot="base").to_pylist() for name in names}


def versions(reviews: Reviews) -> str:
    event = reviews.instance.get_latest_materialization_event(dg.AssetKey("rubric_summaries"))
    assert event
    assert event.asset_materialization
    assert event.asset_materialization.tags
    return event.asset_materialization.tags["dagster/data_version"]


def warned(reviews: Reviews, outcome: LaunchResult) -> list[str]:
    logged = [entry for run_id in outcome.run_ids for entry in reviews.instance.all_logs(run_id)]
    return [
        entry.user_message for entry in logged if entry.level == logging.WARNING and "no analyst is named" in entry.user_message
    ]
