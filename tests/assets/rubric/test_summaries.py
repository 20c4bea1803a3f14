"""The asset `rubric_summaries`: what analysts are asked and what is kept of it."""

from __future__ import annotations

import pytest

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
