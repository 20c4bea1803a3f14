"""The asset `rubric_summaries`: what analysts are asked and what is kept of it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.launch import OF_BLUEPRINTS, Launched, materialize
from dtef_pipeline.rubric.summary_rows import OF_ANOTHER_REPORT
from tests.assets.rubric.reviews import FIRST, Reviews


def test_a_run_ends_with_a_summary_of_each_blueprint_that_no_name_reached(reviews: Reviews) -> None:
    outcome = reviews.run()
    assert outcome.failures == ()
    (row,) = reviews.rows("rubric_summaries", blueprint="first", snapshot="base").to_dict("records")
    assert (row["status"], row["analyst"], row["n_grades"], row["reason"]) == ("ok", "analyst-a", 26, None)
    names = ("one", "two")
    assert row["text"].startswith(tuple(f"## Key findings\n\n- a key\\_finding of {name}" for name in names))
    assert row["findings"][0]["text"] in [f"a key_finding of {name}" for name in names]
    assert set(reviews.rows("rubric_grades", blueprint="first", snapshot="base")["model"]) == set(names)
    assert row["max_tokens"] == 2_000 + 80 * 26
    assert row["cost_usd"] == pytest.approx((row["prompt_tokens"] * 1 + row["completion_tokens"] * 2) / 1e6)
    assert len(reviews.seen) == 2
    for text in reviews.seen:
        assert not any(name in text.lower() for name in ("claude", "gpt", "openai", '"one"', "judge-a"))
    ids = reviews.rows("analyst_ids", blueprint="first", snapshot="base")
    assert set(ids["kind"]) == {"maker", "model", "temperature"}
    assert set(ids[ids["kind"] == "model"]["name"]) == set(names)
    assert reviews.checks(outcome)["rubric_no_name_leaked"]


def test_another_title_asks_no_analyst(reviews: Reviews) -> None:
    """A report began with the title, so that a new title bought the summary again."""
    assert reviews.run(["first"]).failures == ()
    asked = len(reviews.seen)
    reviews.add(first=FIRST.replace("Kind words", "Kinder words").replace("is kinder", "is the kinder one"))
    assert reviews.run(["first"]).failures == ()
    assert reviews.rows("rubric_blueprints", blueprint="first")["title"][0] == "Kinder words"
    assert len(reviews.seen) == asked


def test_a_report_that_cannot_fit_is_no_failure_of_the_run(reviews: Reviews) -> None:
    """The partition failed, though everything else of it was made."""
    outcome = reviews.run(["first"], rubric_summaries={"report_characters": 100})
    assert outcome.failures == ()
    (row,) = reviews.rows("rubric_summaries", blueprint="first", snapshot="base").to_dict("records")
    assert row["status"] == "none"
    assert "allowed: 100" in row["reason"]
    assert reviews.seen == []


def test_a_rerun_without_an_analyst_keeps_the_summary_of_the_same_report(reviews: Reviews) -> None:
    """Such a rerun wrote one row `none` over it: all grades were gone, and champions fell."""
    for _ in range(2):  # the versions of the earlier stages are those of a rerun
        assert reviews.run(["first"]).failures == ()
    before, version = stored(reviews), versions(reviews)
    reviews.analyst = False
    again = reviews.run(["first"])
    assert (again.failures, again.taken_away) == ((), ())
    assert stored(reviews) == before
    assert len(before["rubric_grades"]) == 26
    assert versions(reviews) == version
    assert len(reviews.seen) == 1


def test_without_an_analyst_the_summary_of_another_report_goes_is_told_and_comes_back_for_nothing(reviews: Reviews) -> None:
    reviews.add(
        first=FIRST.replace(
            "{$icontains: hello}", "It is warm, [{$icontains: hello}], [{$icontains: goodbye}, {$icontains: 4}]"
        )
    )
    assert reviews.run(["first"]).failures == ()
    before, asked = stored(reviews), len(reviews.seen)
    reviews.analyst = False
    other = reviews.run(["first"], rubric_scores={"or_paths": "two_group"})
    assert (other.failures, other.taken_away) == ((), ("first",))
    left = stored(reviews)
    assert [(row["status"], row["reason"]) for row in left["rubric_summaries"]] == [("none", "no analyst")]
    assert left["rubric_grades"] == left["analyst_ids"] == []
    (told,) = warned(reviews, other)
    assert told.endswith(
        "first: no analyst is named, and the summary and grades by analyst-a were taken away: " + OF_ANOTHER_REPORT
    )
    assert reviews.run(["first"]).taken_away == ()
    assert stored(reviews) == left  # nothing was there to be taken away
    assert reviews.run(["first"], rubric_summaries={"analysts": ["analyst-a"]}).failures == ()
    assert stored(reviews) == before
    assert len(reviews.seen) == asked


def test_each_analyst_is_kept_or_not_by_itself(reviews: Reviews) -> None:
    assert reviews.run(["first"], rubric_summaries={"analysts": ["analyst-a", "analyst-b"]}).failures == ()
    before = stored(reviews)
    reviews.analyst, reviews.without = False, ("analyst-b",)
    again = reviews.run(["first"])
    assert again.taken_away == ("first",)
    (told,) = warned(reviews, again)
    assert "by analyst-b were taken away: the models file has no such analyst any more" in told
    assert stored(reviews) == {
        name: [row for row in rows if row.get("analyst") != "analyst-b"] for name, rows in before.items()
    }


def test_a_summary_whose_grades_are_lost_is_not_kept_as_if_it_were_whole(reviews: Reviews) -> None:
    assert reviews.run(["first"]).failures == ()
    reviews.analyst = False
    Path(reviews.house.files("rubric_grades", ["first"])[0]).write_bytes(b"no table")
    again = reviews.run(["first"])
    assert (again.failures, again.taken_away) == ((), ("first",))
    assert warned(reviews, again)[0].endswith("its grades are not all stored any more")
    assert stored(reviews)["rubric_summaries"][0]["status"] == "none"


def test_a_snapshot_that_was_never_scored_is_an_error_without_an_analyst_too(reviews: Reviews) -> None:
    reviews.analyst = False
    assert reviews.run(["first"]).failures == ()
    config = {"rubric_summaries": {"snapshot": "nevr"}}
    outcome = materialize(reviews.instance, ["rubric_summaries"], ["first"], config, space=OF_BLUEPRINTS)
    assert "no rubric_scores" in outcome.failures[0]


def stored(reviews: Reviews) -> dict[str, list[dict[str, Any]]]:
    names = ("rubric_summaries", "rubric_grades", "analyst_ids")
    return {name: reviews.house.read(name, blueprint="first", snapshot="base").to_pylist() for name in names}


def versions(reviews: Reviews) -> str:
    event = reviews.instance.get_latest_materialization_event(dg.AssetKey("rubric_summaries"))
    assert event
    assert event.asset_materialization
    assert event.asset_materialization.tags
    return event.asset_materialization.tags["dagster/data_version"]


def warned(reviews: Reviews, outcome: Launched) -> list[str]:
    logged = [entry for run_id in outcome.run_ids for entry in reviews.instance.all_logs(run_id)]
    return [entry.user_message for entry in logged if entry.level == logging.WARNING and "taken away" in entry.user_message]
