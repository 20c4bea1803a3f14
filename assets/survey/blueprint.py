"""Stage 2, blueprints: `blueprints`."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.settings_config import takes_settings
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, in_batches, markdown, stage
from assets.stage.resources import Store
from assets.survey.ingest import survey_responses
from assets.survey.rounds import ROUND_SEGMENT
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints, left_out
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import SURVEY_STAGE_SETTINGS, SurveySettings
from dtef_pipeline.survey.tables import BLUEPRINTS
from resources.warehouse import Warehouse

_RECIPE = ("condition", "context_level", "recipe")
"""The columns of `blueprints` that say in which ways prompts were made."""


def blueprint_options(settings: SurveySettings, earlier: pa.Table) -> list[BlueprintOptions]:
    """The options of this run, and those of the conditions and levels to keep, each as it was made. `earlier`: the columns _RECIPE."""
    levels = tuple(dict.fromkeys(settings.context_levels or ["0"]))
    if not settings.conditions and not len(earlier):
        raise ConfigError(
            f"no condition given, and no earlier one is known: allowed: one or more such as {BlueprintOptions().condition}"
        )
    spelled = [BlueprintOptions.of_condition(text, levels, settings.system_prompts) for text in settings.conditions]
    # One condition has several spellings: `shift` is `shift/attribute-label`.
    chosen = {options.condition: options for options in spelled}
    made = {(condition, level) for condition in chosen for level in levels}
    columns = [earlier[name].to_pylist() for name in _RECIPE]
    kept = (
        {(condition, level): recipe for condition, level, recipe in zip(*columns, strict=True)} if settings.keep_earlier else {}
    )
    others = [BlueprintOptions.of_recipe(recipe, [key[1]]) for key, recipe in sorted(kept.items()) if key not in made]
    return [*chosen.values(), *others]


@dg.asset(name="blueprints", deps=[survey_responses], **stage(ROUND_SEGMENT, 2, "blueprints", code_version="2"))
@takes_settings(SurveySettings, "blueprints", SURVEY_STAGE_SETTINGS["blueprints"])
def blueprints(context: dg.AssetExecutionContext, settings: SurveySettings, store: Store) -> dg.MaterializeResult[Any]:
    """What models are asked: one row per target question of the segment, context level and condition, with the exact prompt.

    A prompt is a system prompt, the segment's demographic profile, context questions with the segment's actual answers, and the target
    question with its options; the questions of a batch share one prompt. In conditions with `+population` all respondents stand in the
    segment's place. Context never holds a target of the prompt, a duplicate of it, or a question that defines the segment. `prompt_id` is the
    hash of everything the model sees; `blueprint_hash` that of the whole segment.
    """
    run = PartitionRun(context, store)
    for some in in_batches(run.keys):
        with store.writing("blueprints", some):
            for key in some:
                with run.attempt(key):
                    run.done(key, _write_segment(context, settings, store, key))
    return run.result()


def _write_segment(context: dg.AssetExecutionContext, settings: SurveySettings, store: Store, key: str) -> dict[str, Any]:
    at = SPACE.levels(key)
    options = blueprint_options(settings, _known_recipes(store.warehouse, at))
    survey = store.warehouse.read("survey_responses", **at)
    rows = build_blueprints(survey, *options)
    size = store.warehouse.write("blueprints", rows, **at)
    absent = [f"{condition}: {', '.join(questions)}" for condition, questions in left_out(survey, rows, options).items()]
    for line in absent:
        context.log.warning(f"{key}: left out, too long for the token budget or without the answers that shift needs: {line}")
    return {
        "dagster/row_count": len(rows),
        "bytes": size,
        "conditions": ", ".join(dict.fromkeys(choice.condition for choice in options)),
        "context_levels": ", ".join(dict.fromkeys(level for choice in options for level in choice.context_levels)),
        "left_out": "; ".join(absent) or "none",
        "blueprint_hash": rows["blueprint_hash"][0].as_py(),
        "most_tokens": pc.max(rows["tokens"]).as_py(),
        "preview": markdown(rows, ["question_id", "condition", "context_level", "context_included", "tokens"]),
        "first_prompt": dg.MetadataValue.md(f"```\n{rows['user'][0].as_py()}\n```"),
    }


def _known_recipes(warehouse: Warehouse, at: Mapping[str, str]) -> pa.Table:
    """The columns _RECIPE of the partition; where the file is damaged, those of its predictions and scores, else of the round."""
    earlier = warehouse.read_earlier("blueprints", columns=_RECIPE, **at)
    if earlier is not None:
        return earlier
    others = [one for one in warehouse.values("blueprints", "segment", round=at["round"]) if one != at["segment"]]
    tables = [warehouse.rows("blueprints", columns=_RECIPE, round=at["round"], segment=one) for one in others]
    recipes = {(row["condition"], row["context_level"]): row["recipe"] for rows in tables for row in rows.to_pylist()}
    asked = [warehouse.rows(table, columns=_RECIPE[:2], **at) for table in ("predictions", "scores")]
    ways = {tuple(row.values()) for rows in asked for row in rows.to_pylist()} or set(recipes)
    for condition, level in ways - set(recipes):
        recipes[condition, level] = BlueprintOptions.of_condition(condition, [level]).recipe
    rows = [dict(zip(_RECIPE, (*way, recipes[way]), strict=True)) for way in sorted(ways)]
    return pa.Table.from_pylist(rows, pa.schema([BLUEPRINTS.field(name) for name in _RECIPE]))


@asset_check(asset=blueprints, blocking=True)
def prompts_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A (question, context level, condition) has one prompt."""
    return keys_repeated(context, store, "blueprints", ["question_id", "context_level", "condition"])


@asset_check(asset=blueprints, blocking=True)
def context_gives_nothing_away(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No prompt shows a question that it asks, or a circular one, as context."""
    offenders, checked = list[Offender](), 0
    columns = ["question_id", "prompt_id", "context_question_ids", "circular"]
    for key, rows in read_keys(store, "blueprints", columns):
        circular = set(rows.filter(rows["circular"])["question_id"].to_pylist())
        asked: dict[str, set[str]] = {}
        for question, prompt in zip(rows["question_id"].to_pylist(), rows["prompt_id"].to_pylist(), strict=True):
            asked.setdefault(prompt, set()).add(question)
        checked += len(rows)
        for row in rows.to_pylist():
            if (circular | asked[row["prompt_id"]]).intersection(row["context_question_ids"]):
                offenders.append((key, row["question_id"]))
    return partition_verdict(context, offenders, checked=checked)
