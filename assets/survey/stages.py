"""The stages of the survey family. This module has those that read files, send requests, or need other partitions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.stage_assets import stage_assets
from assets.stage.checks import read_keys
from assets.stage.family_drift import count_verdicts, load_drift_section
from assets.survey.predictor import Predictor, SegmentPredictions, resolve_asked_models, select_language_models
from assets.survey.rounds import add_question_texts, refuse_losses, sources_of, survey_files
from dtef_pipeline.asking.calls import STORED_COLUMNS
from dtef_pipeline.asking.models import COMPUTED
from dtef_pipeline.asking.snapshot_order import snapshot_order
from dtef_pipeline.boards.costs import sum_usage_by_model
from dtef_pipeline.drift.models import drift_checks, list_needed_columns
from dtef_pipeline.drift.verdict_text import build_headline
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.stage import (
    CallPlan,
    Check,
    Inputs,
    Lengths,
    Replies,
    Stage,
    Tables,
    make_failure_check,
    make_uniqueness_check,
)
from dtef_pipeline.survey.answer_scales.batteries import load_question_clusters
from dtef_pipeline.survey.attributes import is_non_answer
from dtef_pipeline.survey.baselines.names import PREVIOUS_ROUND
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints, list_left_out
from dtef_pipeline.survey.changes import COPY_COLUMNS, SAME_SURVEY, is_copy
from dtef_pipeline.survey.completeness import remove_multi_select, require_whole_survey
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.identity import SPACE, make_round_order
from dtef_pipeline.survey.observations import observe, report_design_effect
from dtef_pipeline.survey.scoring.references import CEILING_SEED, compute_reference_scores
from dtef_pipeline.survey.settings import SURVEY_STAGE_SETTINGS, SurveySettings
from dtef_pipeline.survey.stages import RESULTS_STAGE, SCORES_STAGE, SURVEY_CALL_TABLES
from dtef_pipeline.survey.tables import BLUEPRINTS, SURVEY_FINDINGS
from dtef_pipeline.text.number_words import format_count
from resources.sources import content_hash
from resources.warehouse import Warehouse


class _Round(NamedTuple):
    """Tables of a whole round: `survey_responses` rows, and `reference_scores` in the same order."""

    responses: pa.Table
    references: pa.Table


def read_segment(inputs: Inputs, _: SurveySettings) -> Tables:
    """Return a segment's answers, from the file of its round. Raises DtefError if it has no usable answers."""
    rows, references = (table.filter(pc.field("segment") == inputs.levels["segment"]) for table in _read_round(inputs))
    if not len(rows):
        raise DtefError(f"{inputs.key}: the survey has no usable answers of this segment; survey_quarantine has the reasons")
    return {"survey_responses": rows, "reference_scores": references}


def _read_round(inputs: Inputs) -> _Round:
    """Return the round, read once: an unreadable survey fails each of its partitions, and is not read again for each."""
    read: dict[str, _Round | Exception] = inputs.remember("rounds", dict)
    round_id = inputs.levels["round"]
    if round_id not in read:
        read.clear()  # only one of several consecutive rounds is held
        try:
            read[round_id] = _observe_round(inputs, round_id)
        except Exception as error:
            read[round_id] = error
    result = read[round_id]
    if isinstance(result, Exception):
        raise result
    return result


def _observe_round(inputs: Inputs, round_id: str) -> _Round:
    sources = sources_of(inputs.outside)
    source, survey = sources.read(round_id)
    survey = require_whole_survey(remove_multi_select(survey), source.allowed)
    survey = replace(survey, findings=(*survey.findings, *report_design_effect(source.design_effect)))
    observed = observe(survey, min_n=source.min_n, design_effect=source.design_effect)
    if content_hash(Path(source.path)) != source.content_hash:
        # The file changed after registration, so its losses are not accepted yet.
        refuse_losses(sources, survey, observed, source.min_n, source.allowed)
    if not inputs.is_dry:
        warehouse = inputs.outside.warehouse
        warehouse.write("survey_quarantine", observed.quarantine, round=round_id)
        findings = pa.concat_tables([observed.findings, _merge_findings(warehouse, round_id, observed.responses)])
        warehouse.write("survey_findings", findings, round=round_id)
    return _Round(observed.responses, compute_reference_scores(observed.responses))


def _merge_findings(warehouse: Warehouse, round_id: str, responses: pa.Table) -> pa.Table:
    """Return findings that compare the round with the stored ones: copies of it, and later rounds predicted without it."""
    rounds = [candidate for candidate in warehouse.values("survey_responses", "round") if candidate != round_id]
    answers = partial(warehouse.rows, "survey_responses", columns=list(COPY_COLUMNS))
    copies = [candidate for candidate in rounds if is_copy(responses, answers(round=candidate))]
    findings = []
    if copies:
        message = f"The same survey is stored under several ids; {PREVIOUS_ROUND} does not predict one of them from another."
        findings.append({"code": SAME_SURVEY, "message": message, "items": [round_id, *copies]})
    if later := _find_later_predicted_rounds(warehouse, round_id):
        rerun = f"`dtef run --round {' --round '.join(later)} --model baselines`"
        message = f"These rounds were predicted before {round_id} was stored, so {PREVIOUS_ROUND} did not use it; run {rerun}."
        findings.append({"code": "predicted-without-round", "message": message, "items": later})
    return pa.Table.from_pylist([{"round": round_id, "level": "warning", **row} for row in findings], schema=SURVEY_FINDINGS)


def _find_later_predicted_rounds(warehouse: Warehouse, round_id: str) -> list[str]:
    """Return the later rounds of the series that have predictions, if the round itself is not stored yet."""
    if round_id in warehouse.values("survey_responses", "round"):
        return []
    place = make_round_order(round_id)
    predicted = warehouse.values("predictions", "round")
    return [name for name in predicted if make_round_order(name)[0] == place[0] and make_round_order(name) > place]


def _answer_counts(tables: Tables) -> Mapping[str, Any]:
    rows, references = tables["survey_responses"], tables["reference_scores"]
    ceiling = pc.mean(pc.struct_field(references["ceiling"], "js")).as_py()
    return {
        "segment_n": rows["segment_n"][0].as_py() or 0,
        "smallest_n": pc.min(rows["n"]).as_py(),
        "unknown_n": rows["n"].null_count,
        "circular_questions": pc.sum(pc.cast(rows["circular"], pa.int64())).as_py(),
        "mean_ceiling": ceiling,
        "ceiling_seed": CEILING_SEED,
        "own_n": pc.sum(pc.cast(pc.equal(rows["n_source"], "question"), pa.int64())).as_py(),
    }


def _find_missing_distributions(_: Inputs, rows: pa.Table) -> Iterator[str]:
    for row in rows.to_pylist():
        distributions = (shares for shares in (row["observed"], row["population"]) if shares is not None)
        if any(min(shares) < 0 or abs(sum(shares) - 1) > 1e-9 for shares in distributions):
            yield row["question_id"]


def _find_small_samples(inputs: Inputs, rows: pa.Table) -> Iterator[str]:
    minima: dict[str, int] = inputs.remember("minima", dict)
    round_id = inputs.levels["round"]
    if round_id not in minima:
        source = sources_of(inputs.outside).get(round_id)
        minima[round_id] = source.min_n if source else 1
    for row in rows.to_pylist():
        if row["n"] is not None and row["n"] < minima[round_id]:
            yield f"{row['question_id']}: n={row['n']} < {minima[round_id]}"


def _find_impossible_references(inputs: Inputs, rows: pa.Table) -> Iterator[str]:
    references = inputs.remember(
        "references", lambda: _rows_by_key(inputs, "reference_scores", ["question_id", "n", "ceiling"])
    )
    scores = references[inputs.key].to_pylist() if inputs.key in references else []
    ceilings = {(row["question_id"], row["n"]): (row["ceiling"] or {}).get("js") for row in scores}
    for row in rows.to_pylist():
        pair = (row["question_id"], row["n"])
        ceiling = ceilings.get(pair)
        is_unknown = row["n"] is None and row["n_effective"] is None and pair in ceilings
        if not is_unknown and (ceiling is None or not 0 <= ceiling <= 1):
            yield f"{row['question_id']}: " + ("none" if ceiling is None else f"ceiling {ceiling}")


def _rows_by_key(inputs: Inputs, table: str, columns: Sequence[str]) -> dict[str, pa.Table]:
    return dict(read_keys(inputs.outside, table, columns))


RESPONSES_STAGE = Stage(
    "survey_responses",
    """What each segment answered: one row per (round, segment, question) with the observed distribution and its n.

    The source is the folder or file that the round was ingested from (`dtef add`). Rows include the population and leave-one-out
    marginals, so later stages need no other partition. Pairs that cannot be trusted (n below the minimum, percentages that do not add up)
    are in the table `survey_quarantine` with the reason; `survey_findings` lists what was left out of the file. The stage also writes the
    table `reference_scores`: the expected score of a perfect prediction of each pair, given its number of respondents, and the scores of
    predictions that know nothing of the segment.""",
    read_segment,
    after=(survey_files.key.to_user_string(),),
    version="12",
    checks=(
        Check(
            "distributions_sum_to_one",
            "Observed and population distributions are fractions that sum to 1.",
            "survey_responses",
            ("question_id", "observed", "population"),
            _find_missing_distributions,
            blocking=True,
        ),
        make_uniqueness_check("survey_responses", ("question_id",)),
        Check(
            "n_reaches_minimum",
            "Every distribution with a known n has at least the minimum number of respondents that was set at ingest.",
            "survey_responses",
            ("question_id", "n"),
            _find_small_samples,
            blocking=True,
        ),
        Check(
            "every_pair_has_reference_scores",
            "Every pair has reference scores for its number of respondents, with a ceiling from 0 to 1 if that number is known.",
            "survey_responses",
            ("question_id", "n", "n_effective"),
            _find_impossible_references,
            blocking=True,
        ),
    ),
    preview=("question_text", "options", "observed", "n"),
    metadata=_answer_counts,
    verb="ingest",
)


_RECIPE = ("condition", "context_level", "recipe")
"""The columns of `blueprints` that identify how prompts were made."""


def make_blueprints(inputs: Inputs, settings: SurveySettings) -> Tables:
    """Make the prompts of a segment: those of the settings and those of earlier runs."""
    options = build_blueprint_options(settings, _read_known_recipes(inputs.outside.warehouse, inputs.levels))
    survey = inputs.read("survey_responses")
    rows = build_blueprints(survey, *options)
    absent = [f"{condition}: {', '.join(questions)}" for condition, questions in list_left_out(survey, rows, options).items()]
    for line in absent:
        inputs.warn(f"left out, because they exceed the token budget or lack the answers that shift needs: {line}")
    inputs.describe(left_out="; ".join(absent) or "none")
    return {"blueprints": rows}


def build_blueprint_options(settings: SurveySettings, earlier: pa.Table) -> list[BlueprintOptions]:
    """Return the options of this run, then those of earlier conditions and levels to keep. `earlier`: the columns _RECIPE."""
    levels = tuple(dict.fromkeys(settings.context_levels or ["0"]))
    if not settings.conditions and not len(earlier):
        raise ConfigError(
            f"no condition is given, and none is known from earlier runs: allowed: one or more such as {BlueprintOptions().condition}"
        )
    run_options = [BlueprintOptions.parse_condition(text, levels, settings.system_prompts) for text in settings.conditions]
    # One condition has several spellings: `shift` is `shift/attribute-label`.
    by_condition = {options.condition: options for options in run_options}
    pairs = {(condition, level) for condition in by_condition for level in levels}
    columns = [earlier[name].to_pylist() for name in _RECIPE] if settings.keep_earlier else [[], [], []]
    recipes = {(condition, level): recipe for condition, level, recipe in zip(*columns, strict=True)}
    extras = [BlueprintOptions.parse_recipe(recipe, [pair[1]]) for pair, recipe in sorted(recipes.items()) if pair not in pairs]
    return [*by_condition.values(), *extras]


def _read_known_recipes(warehouse: Warehouse, levels: Mapping[str, str]) -> pa.Table:
    """Return the columns _RECIPE of the partition; if its file is damaged, those of its predictions and scores, else of the round."""
    earlier = warehouse.read_earlier("blueprints", columns=_RECIPE, **levels)
    if earlier is not None:
        return earlier
    segments = [
        segment for segment in warehouse.values("blueprints", "segment", round=levels["round"]) if segment != levels["segment"]
    ]
    tables = [warehouse.rows("blueprints", columns=_RECIPE, round=levels["round"], segment=segment) for segment in segments]
    recipes = {(row["condition"], row["context_level"]): row["recipe"] for rows in tables for row in rows.to_pylist()}
    results = [warehouse.rows(table, columns=_RECIPE[:2], **levels) for table in ("predictions", "scores")]
    pairs = {tuple(row.values()) for rows in results for row in rows.to_pylist()} or set(recipes)
    for condition, level in pairs - set(recipes):
        recipes[condition, level] = BlueprintOptions.parse_condition(condition, [level]).recipe
    rows = [dict(zip(_RECIPE, (*pair, recipes[pair]), strict=True)) for pair in sorted(pairs)]
    return pa.Table.from_pylist(rows, pa.schema([BLUEPRINTS.field(name) for name in _RECIPE]))


def _first_prompt(tables: Tables) -> Mapping[str, Any]:
    rows = tables["blueprints"]
    return {
        "blueprint_hash": rows["blueprint_hash"][0].as_py(),
        "most_tokens": pc.max(rows["tokens"]).as_py(),
        "first_prompt": rows["user"][0].as_py(),
    }


def _find_circular_questions(_: Inputs, rows: pa.Table) -> Iterator[str]:
    circular = set(rows.filter(rows["circular"])["question_id"].to_pylist())
    questions: dict[str, set[str]] = {}
    for question, prompt in zip(rows["question_id"].to_pylist(), rows["prompt_id"].to_pylist(), strict=True):
        questions.setdefault(prompt, set()).add(question)
    for row in rows.to_pylist():
        if (circular | questions[row["prompt_id"]]).intersection(row["context_question_ids"]):
            yield row["question_id"]


BLUEPRINTS_STAGE = Stage(
    "blueprints",
    """What models are asked: one row per target question of the segment, context level and condition, with the exact prompt.

    A prompt is a system prompt, the segment's demographic profile, context questions with the segment's actual answers, and the target
    question with its options; the questions of a batch share one prompt. Conditions with `+population` describe all respondents instead
    of the segment. The context never contains a target of the prompt, a duplicate of it, or a question that defines the segment. `prompt_id`
    is the hash of everything the model sees, `blueprint_hash` that of all prompts of the segment.""",
    make_blueprints,
    after=("survey_responses",),
    settings=SURVEY_STAGE_SETTINGS["blueprints"],
    version="2",
    follows=True,
    is_exclusive=True,
    checks=(
        make_uniqueness_check("blueprints", ("question_id", "context_level", "condition")),
        Check(
            "context_excludes_targets",
            "No prompt shows a question that it asks, or a circular one, as context.",
            "blueprints",
            ("question_id", "prompt_id", "context_question_ids", "circular"),
            _find_circular_questions,
            blocking=True,
        ),
    ),
    preview=("question_id", "condition", "context_level", "context_included", "tokens"),
    counted_columns=("condition", "context_level"),
    metadata=_first_prompt,
    verb="blueprint",
)


def plan_predictions(inputs: Inputs, settings: SurveySettings) -> CallPlan:
    """Plan the requests for a segment. Raises ConfigError for an unknown model."""
    predictor = _build_predictor(inputs, settings)
    segment = SegmentPredictions(predictor, inputs.key)

    def write(new: Tables) -> Tables:
        tables = segment.merge_with_stored(new)
        inputs.describe(superseded=segment.superseded)
        if segment.superseded:
            inputs.warn(f"removed {format_count(segment.superseded, 'earlier prediction')}, because the prompts have changed")
        return tables

    models = [model for model in predictor.language_models if model.name in predictor.expected]
    size = predictor.size(segment.prompts.chosen) if inputs.is_dry else predictor.sizes.get(inputs.key, 0)
    return CallPlan(models, {}, size, segment.requests, segment.keys, segment.rows, write, segment.foresee)


def _build_predictor(inputs: Inputs, settings: SurveySettings) -> Predictor:
    store = inputs.outside

    def read(table: str, key: str, columns: Sequence[str] | None) -> pa.Table:
        return inputs.at(key).read(table, columns)

    def make() -> Predictor:
        lookup, model_lookup = partial(store.responses.responses, columns=STORED_COLUMNS), store.responses.models
        models, keys = resolve_asked_models(settings, inputs.models), inputs.all_keys
        return Predictor(store.warehouse, settings, models, lookup, model_lookup, keys, read, is_dry=inputs.is_dry)

    predictor: Predictor = inputs.remember("predictor", make)
    return predictor


def _usage(tables: Tables) -> Mapping[str, Any]:
    """Return the usage of each language model of the partition."""
    rows = tables["predictions"]
    is_answered, is_unpriced = pc.equal(rows["call_status"], "answered"), pc.is_null(rows["cost_usd"])
    unknown = {"cost_unknown": int(pc.sum(pc.and_(is_answered, is_unpriced)).as_py() or 0)}
    if pc.all(pc.starts_with(rows["model_variant"], COMPUTED)).as_py():
        return unknown
    columns = ["model", "answered", "failed", "budget_stopped", "prompt_tokens", "completion_tokens", "cost_usd"]
    return {**unknown, "usage": sum_usage_by_model(rows, SURVEY_CALL_TABLES).select(columns)}


def _find_missing_blueprints(inputs: Inputs, rows: pa.Table) -> Iterator[str]:
    tables = inputs.remember("prompts", lambda: _rows_by_key(inputs, "blueprints", ["prompt_id", "blueprint_hash"]))
    prompts = tables.get(inputs.key, BLUEPRINTS.empty_table())
    current = rows.filter(pc.is_in(rows["blueprint_hash"], prompts["blueprint_hash"].combine_chunks()))
    lacking = current.filter(pc.invert(pc.is_in(current["prompt_id"], prompts["prompt_id"].combine_chunks())))
    for row in lacking.to_pylist():
        yield f"{row['model']} {row['prompt_id']}"


PREDICTIONS_STAGE = Stage(
    "predictions",
    """What the models answered: one row per (prompt, model variant, draw, snapshot) with the raw response, usage, cost and latency.

    Every response is committed to the response store before it appears here, so a rerun requests only what is missing. A call that failed
    after all retries is a row with the status `error` and the message. Baselines have rows, too, but make no requests.""",
    plan_predictions,
    after=("blueprints",),
    settings=SURVEY_STAGE_SETTINGS["predictions"],
    version="4",
    asks=True,
    nightly=True,
    expected=lambda inputs, settings: _build_predictor(inputs, settings).expected,
    replies=Replies((Lengths("predictions", "model_variant || ' ' || condition"),)),
    is_idle=lambda settings, models: not select_language_models(resolve_asked_models(settings, models)),
    checks=(
        make_uniqueness_check("predictions", ("request_key", "question_id", "context_level", "condition")),
        Check(
            "every_prediction_has_a_blueprint",
            "Every prediction made for the current blueprints belongs to one of their prompts.",
            "predictions",
            ("prompt_id", "blueprint_hash", "model"),
            _find_missing_blueprints,
            blocking=True,
        ),
        make_failure_check("survey_calls_succeed", "predictions", "call_status", "calls"),
    ),
    preview=("question_id", "model", "context_level", "call_status", "response"),
    counted_columns=("call_status", "model"),
    metadata=_usage,
    verb="predict",
)


def check_segment(inputs: Inputs, _: SurveySettings) -> Tables:
    """Check whether models' scores on a segment changed."""
    warehouse: Warehouse = inputs.outside.warehouse
    watch = inputs.remember("watch", lambda: _watch(inputs))
    scores = inputs.read("scores", list_needed_columns(SUBJECT.keys))
    rows = watch.check(scores, n_watched=watch.segments[inputs.levels[SPACE.first]])
    rows = add_question_texts(warehouse, rows)
    inputs.describe(**count_verdicts(rows))
    return {"drift_checks": rows}


class _Watch(NamedTuple):
    """State shared by a run's drift checks."""

    check: Callable[..., pa.Table]
    segments: Mapping[str, int]
    """Number of segments with snapshots to compare by round; they share one error rate."""


def _watch(inputs: Inputs) -> _Watch:
    warehouse: Warehouse = inputs.outside.warehouse
    rounds = sorted({SPACE.split(key)[0] for key in inputs.all_keys})
    snapshots = _read_snapshots(warehouse)
    segments = Counter(
        round_id for (round_id, segment), labels in snapshots.items() if len(labels) > 1 and not is_non_answer(segment)
    )
    clusters = warehouse.query(load_question_clusters, only=["survey_responses"], first=rounds)
    order, options = _order(warehouse, snapshots), load_drift_section(inputs.outside.settings)
    return _Watch(partial(drift_checks, subject=SUBJECT, options=options, order=order, clusters=clusters), segments)


def _read_snapshots(warehouse: Warehouse) -> dict[tuple[str, str], set[str]]:
    """Return the snapshots of each round and segment with scores, from folder names."""
    snapshots: dict[tuple[str, str], set[str]] = defaultdict(set)
    for file in warehouse.files("scores"):
        _, place = warehouse.place(file)
        snapshots[place[SPACE.first], place[SPACE.last]].add(place["snapshot"])
    return snapshots


def _order(warehouse: Warehouse, snapshots: Mapping[tuple[str, str], set[str]]) -> list[str] | None:
    """Return the order of all snapshots, or None without readable scores. Opens no file if there is only one."""
    labels = set().union(*snapshots.values())
    if len(labels) == 1:
        return list(labels)
    try:
        return warehouse.query(snapshot_order, only=["scores"])
    except duckdb.CatalogException:
        return None


def _flags(tables: Tables) -> Mapping[str, Any]:
    rows = tables["drift_checks"]
    return {
        "flagged": pc.sum(pc.cast(rows["flagged"], "int64")).as_py() or 0,
        "headline": build_headline(rows.to_pylist(), SUBJECT),
    }


DRIFT_STAGE = Stage(
    "drift_checks",
    """Whether a model's score on the same prompts changed between snapshots: one row per (model variant, context level).

    `verdict` is `watch` if the documented rule flags the series (at temperature 0, over snapshots that span 23 hours, the highest mean
    score is at least 0.05 and at least 10 % above the lowest), and `drift` if there is also strong evidence of a shift. `reason` says what
    was compared, or why nothing was. `shared_verdict` says whether all models of the segment changed together. The table `drift` has each
    model over all its segments. Segments of people who did not answer have no rows.""",
    check_segment,
    after=("segment_results",),
    settings=SURVEY_STAGE_SETTINGS["drift_checks"],
    version="15",
    follows=True,
    nightly=True,
    snapshot=lambda settings: None,
    preview=(
        *("model", "setting", "n_snapshots", "verdict", "shared_verdict"),
        *("shift", "first_snapshot", "lowest", "highest", "reason"),
    ),
    metadata=_flags,
    verb="drift",
)

SURVEY_STAGES = (RESPONSES_STAGE, BLUEPRINTS_STAGE, PREDICTIONS_STAGE, SCORES_STAGE, RESULTS_STAGE, DRIFT_STAGE)
survey_stage_assets = stage_assets(FAMILY_BY_NAME["survey"], SURVEY_STAGES)
