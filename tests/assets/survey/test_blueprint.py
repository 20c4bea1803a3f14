"""Several ways to ask side by side: what a run makes, what it keeps of earlier runs, what its check stops."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import assets.survey.stages
from assets.survey.stages import build_blueprint_options
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import build_settings
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.settings import SurveySettings
from tests.assets.conftest import Pipeline
from tests.assets.family_state import STAGE_NAMES

TWO = {"conditions": ["shift/narrative+cot+reversed", "batch=2"], "context_levels": ["0", "1"]}
SHIFT, BATCH = "shift/narrative+cot+reversed", "batch=2/attribute-label"
KEY = {"round": "T1", "segment": "country:kenya"}
KEYS = ["T1/country:kenya"]


def rows_of(pipeline: Pipeline, *conditions: str) -> list[dict[str, Any]]:
    rows = pipeline.house.read("blueprints", **KEY).drop_columns(["blueprint_hash"]).to_pylist()
    return [row for row in rows if row["condition"] in conditions]


def conditions_in(pipeline: Pipeline) -> set[str]:
    return set(pipeline.house.read("blueprints")["condition"].to_pylist())


class TestConditions:
    def test_predictions_ask_only_the_usual_condition_by_default(self, pipeline: Pipeline) -> None:
        """A nightly run would pay for every condition that an earlier run left behind."""
        conditions = {"conditions": ["distribution", "shift", "batch=2"]}
        assert pipeline.run(STAGE_NAMES[:3], KEYS, blueprints=conditions).failures == ()
        asked = set(pipeline.house.read("predictions")["condition"].to_pylist())
        assert asked == {"distribution/attribute-label"}
        assert (
            pipeline.run(STAGE_NAMES[2:3], KEYS, predictions={"models": ["baseline/uniform"], "conditions": []}).failures == ()
        )
        assert len(set(pipeline.house.read("predictions")["condition"].to_pylist())) == 3

    def test_two_conditions_in_one_run_have_a_row_a_question_and_level_each(self, pipeline: Pipeline) -> None:
        outcome = pipeline.run(STAGE_NAMES[:2], KEYS, blueprints=TWO)
        assert outcome.failures == ()
        assert pipeline.checks(outcome)["context_excludes_targets"]
        assert pipeline.checks(outcome)["blueprints_are_unique"]
        for condition in (SHIFT, BATCH):
            found = [(row["question_id"], row["context_level"]) for row in rows_of(pipeline, condition)]
            assert found == [(question, level) for question in ("q0", "q1", "q2") for level in ("0", "1")]
        batch = rows_of(pipeline, BATCH)
        assert len({row["prompt_id"] for row in batch if row["context_level"] == "0"}) == 1
        assert [row["reading"]["place"] for row in batch] == [0, 0, 1, 1, 2, 2]

    def test_a_later_condition_leaves_the_earlier_ones_as_they_were(self, pipeline: Pipeline) -> None:
        pipeline.run(STAGE_NAMES[:2], KEYS, blueprints=TWO)
        before = rows_of(pipeline, SHIFT, BATCH)
        own = {"conditions": ["synthetic-individuals=9+system=mine"], "system_prompts": {"mine": "Be brief."}}
        assert pipeline.run(STAGE_NAMES[1:2], KEYS, blueprints=own).failures == ()
        assert rows_of(pipeline, SHIFT, BATCH) == before
        (third,) = conditions_in(pipeline) - {SHIFT, BATCH}
        assert third.startswith("synthetic-individuals=9/attribute-label+system=mine~")
        assert conditions_in(pipeline) == {SHIFT, BATCH, third}
        # Made again in a run that does not know the words of the system prompt.
        after = rows_of(pipeline, third)
        pipeline.run(STAGE_NAMES[1:2], KEYS, blueprints={"conditions": ["batch=2"], "context_levels": ["0"]})
        assert rows_of(pipeline, third) == after
        assert {row["system"] for row in after} == {"Be brief."}
        assert rows_of(pipeline, SHIFT, BATCH) == before

    def test_questions_that_a_condition_leaves_out_are_named(self, pipeline: Pipeline) -> None:
        conditions = ["distribution", "distribution+system=none+tokens=300+reserve=264"]
        outcome = pipeline.run(STAGE_NAMES[:2], KEYS, blueprints={"conditions": conditions})
        (made,) = [made for made in pipeline.materializations(outcome) if made.asset_key.path == ["blueprints"]]
        assert made.metadata["left_out"].value == (
            "distribution/attribute-label+system=none+tokens=300+reserve=264: q0, q1, q2"
        )

    def test_a_batch_that_shows_one_of_its_questions_is_stopped(
        self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        good = assets.survey.stages.build_blueprints

        def spoiled(*given: Any) -> pa.Table:
            rows = good(*given)
            column = rows.schema.get_field_index("context_question_ids")
            # The second question, shown to the first of its batch.
            shown = [["q1"] if question == "q0" else [] for question in rows["question_id"].to_pylist()]
            return rows.set_column(column, rows.schema.field(column), pa.array(shown, rows.schema.field(column).type))

        monkeypatch.setattr(assets.survey.stages, "build_blueprints", spoiled)
        outcome = pipeline.run(STAGE_NAMES[:3], KEYS, blueprints={"conditions": ["batch"]})
        assert pipeline.checks(outcome)["context_excludes_targets"] is False
        assert any("context_excludes_targets" in failure for failure in outcome.failures)


NO_ROWS = pa.table({name: pa.array([], pa.string()) for name in ("condition", "context_level", "recipe")})
SHIFTED = BlueprintOptions.parse_condition("shift", ["0"])
EARLIER = pa.table({"condition": [SHIFTED.condition], "context_level": ["0"], "recipe": [SHIFTED.recipe]})


def test_no_condition_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ConfigError, match="allowed: one or more such as distribution/"):
        build_blueprint_options(build_settings(SurveySettings, {"conditions": []}), NO_ROWS)


def test_earlier_conditions_stay_by_default_and_one_spelled_twice_is_made_once() -> None:
    given = SurveySettings(conditions=["batch=2", "batch=2/attribute-label"])
    made = [options.condition for options in build_blueprint_options(given, EARLIER)]
    assert made == ["batch=2/attribute-label", "shift/attribute-label"]
    alone = given.model_copy(update={"keep_earlier": False})
    assert [options.condition for options in build_blueprint_options(alone, EARLIER)] == made[:1]
