"""Roll-ups of the rubric family, over two nights of two blueprints."""

from __future__ import annotations

import pytest

from assets.engine.roll_up_names import RUBRIC_ROLL_UP_NAMES
from assets.launch import LaunchResult
from dtef_pipeline.rubric.analyst_report import DIMENSIONS
from tests.assets.rubric.reviews import Reviews

Nights = tuple[Reviews, list[LaunchResult]]


def test_stages_and_roll_ups_go_well(two_nights: Nights) -> None:
    reviews, outcomes = two_nights
    assert [one.failures for one in outcomes] == [(), (), ()]
    # It warns of the models to watch.
    assert reviews.checks(outcomes[-1]) == {"rubric_has_no_drift": False}


def test_the_latest_grades_of_each_blueprint_are_averaged_and_two_blueprints_make_no_champion(two_nights: Nights) -> None:
    rows = two_nights[0].frame("rubric_champions")
    assert len(rows) == 2 * len(DIMENSIONS)
    assert {one["dimension"]: one["mean"] for one in rows.to_dict("records")} == {
        dimension: 8.0 if dimension == "clarity" else 6.0 for dimension in DIMENSIONS
    }
    assert set(rows["n_blueprints"]) == {2}
    assert not rows["champion"].any()
    assert set(rows["reason"]) == {"graded in 2 blueprints, at least 5 are needed"}


def test_agreement_is_of_the_latest_night_in_every_cut(two_nights: Nights) -> None:
    rows = two_nights[0].frame("rubric_agreement").set_index(["cut", "value"])
    assert {cut for cut, _ in rows.index} == {"overall", "blueprint", "judges", "criterion", "language"}
    # 2 models x 4 criteria in words x 2 draws of each of the 4 judges
    assert rows.loc[("overall", "all"), ["n_units", "n_values"]].tolist() == [16, 64]
    assert rows.loc[("blueprint", "second"), "alpha"] == 1
    # In each unit of `first` two judges say 1 and two say .5: worse than chance.
    assert rows.loc[("blueprint", "first"), "alpha"] < 0


def test_judges_have_tables(two_nights: Nights) -> None:
    reviews, _ = two_nights
    judges = reviews.frame("rubric_judges").set_index("judge")
    assert list(judges.index) == [f"{way}(judge-{one})" for way in ("prompt-aware", "standard") for one in "ab"]
    assert judges["n"].tolist() == [16] * 4
    # judge-b: 1 for what is right, .5 for the three other criteria
    assert judges.loc["standard(judge-b)", "mean"] == pytest.approx((1 + 3 * 0.5) / 4)
    favoured = reviews.frame("rubric_self_preference")
    assert favoured.loc[0, ["judge", "n"]].tolist() == ["all", 64]
    assert set(favoured["maker"]) == {None, "OpenAI"}


def test_models_are_watched_over_all_blueprints(two_nights: Nights) -> None:
    reviews, _ = two_nights
    rows = reviews.frame("drift").set_index("model")
    assert rows["verdict"].to_dict() == {"one": "none", "two": "watch"}
    assert rows.loc["two", ["n_prompts", "judges_note"]].tolist() == [3, None]
    assert rows.loc["two", "gap"] == pytest.approx(0.5 / 3)
    assert len(reviews.frame("drift_series")) == 4


def test_roll_ups_without_scores_say_what_to_do(reviews: Reviews) -> None:
    outcome = reviews.roll_up()
    assert all("materialize the stages of a blueprint first" in one for one in outcome.failures)
    assert len(outcome.failures) == len(RUBRIC_ROLL_UP_NAMES) - 1, "the pages are made of the others, so they are not tried"
