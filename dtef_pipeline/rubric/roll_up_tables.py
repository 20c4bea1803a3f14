"""Schemas of summaries, labels, anchors and roll-ups, and the specifications of all tables of rubrics.

A missing value is null, and `reason` says why.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dtef_pipeline.boards.family_calls import Calls, FamilyCalls
from dtef_pipeline.rubric import tables
from dtef_pipeline.rubric.analyst_report import DIMENSIONS
from dtef_pipeline.rubric.anonymise import ANALYST_IDS
from dtef_pipeline.rubric.tables import (
    BLUEPRINT_FIELD,
    CALL_USAGE_FIELDS,
    ITEM_KEYS,
    PROMPT_OF_BLUEPRINT,
    RUBRIC_CRITERIA,
    RUBRIC_JUDGEMENTS,
    RUBRIC_POINTS,
    RUBRIC_SPACE,
    TEST_HASH,
)
from dtef_pipeline.tables import (
    MODEL_FIELDS,
    SNAPSHOT_FIELD,
    TableSpec,
    field,
)

_IN_95 = "end of the 95 % interval"
OF_CRITERION_FIELDS = tuple(RUBRIC_CRITERIA.field(name) for name in ("block", "path", "position"))
_JUDGE = RUBRIC_JUDGEMENTS.field("judge")
SCALE_FIELD = field("scale", pa.int64(), "Number of classes to choose from, 5 or 10 (never compared); null: no judgement")
_LABEL_ITEM = field("item", pa.string(), "Hash of prompt, response text and criterion")

RUBRIC_AGREEMENT = pa.schema(
    [
        field("cut", pa.string(), "Kind of the cut: overall, blueprint, judges (a pair), criterion (its kind) or language"),
        field("value", pa.string(), "Value of the cut, such as a blueprint's id"),
        SCALE_FIELD,
        field("alpha", pa.float64(), "Krippendorff's alpha of classes as numbers: 1 is agreement, 0 chance; null: one judge"),
        field("low", pa.float64(), f"Lower {_IN_95} of alpha, by prompts; null: fewer than 5 prompts"),
        field("high", pa.float64(), f"Upper {_IN_95} of alpha, by prompts; null: fewer than 5 prompts"),
        field("reading", pa.string(), "Reading of alpha: reliable from .8, tentative from .667, else unreliable; empty: none"),
        field("n_units", pa.int64(), "Criteria of responses that at least two judges have classified"),
        field("n_values", pa.int64(), "Judgements of these"),
        field("n_clusters", pa.int64(), "Prompts of these"),
        field("reason", pa.string(), "Why there is no alpha or no interval; empty: both exist"),
    ]
)
"""One row per scale, cut and value."""

RUBRIC_DISAGREED = pa.schema(
    [
        BLUEPRINT_FIELD,
        PROMPT_OF_BLUEPRINT,
        *OF_CRITERION_FIELDS,
        field("mean_sd", pa.float64(), "Mean standard deviation of the judges of one response, 0-0.5: lower is better"),
        field("max_sd", pa.float64(), "Largest standard deviation of the judges of one response, 0-0.5"),
        field("n_responses", pa.int64(), "Responses with at least two judges"),
        field("text", pa.string(), "Criterion as shown to judges"),
    ]
)
"""One row per criterion that judges disagree on."""

RUBRIC_JUDGES = pa.schema(
    [
        _JUDGE,
        field("n", pa.int64(), "Judgements planned"),
        field("n_scored", pa.int64(), "Judgements with a class"),
        field("n_unreadable", pa.int64(), "Judgements whose reply contains no class"),
        field("n_failed", pa.int64(), "Judgements without a reply: the call failed or a budget was reached"),
        field("unreadable", pa.float64(), "Share of the judge's replies without a class, 0-1: lower is better"),
        field("partial", pa.float64(), "Share of judgements that are missing although another judge judged the point, 0-1"),
        field("mean", pa.float64(), "Mean class number, 0-1, before should_not is inverted"),
        field("calls", pa.int64(), "Answered calls with second attempts; each counts once, even if several judgements use it"),
        field("cost_usd", pa.float64(), "Sum of the known costs of these calls in US dollars; null: no cost is known"),
        field("flagged", pa.bool_(), "Flag: true where more than 5 % of the replies are unreadable"),
    ]
)
"""One row per judge."""

RUBRIC_SELF_PREFERENCE = pa.schema(
    [
        field("judge", pa.string(), "Judge, as approach(model); all: all judges together"),
        field("model", pa.string(), "Model of the judge's maker; all: all of its models"),
        field("maker", pa.string(), "Maker of both; null: in the row of all judges"),
        field("gamma", pa.float64(), "Points that a judge adds for models of its maker, -1 to 1: above 0, it favours them"),
        field("low", pa.float64(), f"Lower {_IN_95} of gamma"),
        field("high", pa.float64(), f"Upper {_IN_95} of gamma"),
        field("p", pa.float64(), "Two-sided p value of gamma"),
        field("p_adjusted", pa.float64(), "p adjusted over all pairs (Holm); in the row of all judges, p"),
        field("n", pa.int64(), "Judgements of models of the judge's maker that the estimate uses"),
        field("n_prompts", pa.int64(), "Prompts of these judgements"),
        field("flagged", pa.bool_(), "Flag: true where gamma is above 0 and p_adjusted below .05"),
        field("reason", pa.string(), "Why there is no estimate or no interval; empty: both exist"),
    ]
)
"""One row for all judges together, and one per judge and model of one maker."""

RUBRIC_CORRECTED = pa.schema(
    [
        field("blueprint", pa.string(), "Id of the blueprint, from its path: / is written __; null: over all blueprints"),
        field("model", pa.string(), "Model, as on the board"),
        field("judge_score", pa.float64(), "Score by judges, as on the board, 0-1: higher is better"),
        field("corrected", pa.float64(), "Score corrected by labels, 0-1: higher is better; null: under 2 labelled prompts"),
        field("corrected_low", pa.float64(), f"Lower {_IN_95} of the corrected score, for other such prompts; null: too few"),
        field("corrected_high", pa.float64(), f"Upper {_IN_95} of the corrected score, for other such prompts; null: too few"),
        field("same_prompts_low", pa.float64(), f"Lower {_IN_95} of people's score on these prompts; null: too few"),
        field("same_prompts_high", pa.float64(), f"Upper {_IN_95} of people's score on these prompts; null: too few"),
        field("power", pa.float64(), "Weight of the judges on unlabelled prompts (lambda of PPI++), 0-1: 1 uses them in full"),
        field("n_prompts", pa.int64(), "Prompts of the board row, including those without judged criteria"),
        field("n_prompts_labelled", pa.int64(), "Prompts of these with judged criteria that are all labelled"),
        field("prompts_needed", pa.float64(), "Prompts to label for an interval of width .06 on these prompts; null: too few"),
        field("labels_needed", pa.int64(), "Labels of all models for an interval of width .06 on these prompts; null: too few"),
        field("reason", pa.string(), "Why there is no interval; empty: there is one"),
    ]
)
"""One row per model over all blueprints, then one per blueprint and model."""

RUBRIC_KNOWN_CLASSES = pa.schema(
    [
        _JUDGE,
        field("human_class", pa.float64(), "Class that people chose, 0-1: the mean of the authors, rounded to quarters"),
        field("n", pa.int64(), "Judgements of the points that people gave this class"),
        field("same_class", pa.float64(), "Share of judgements with the same class, 0-1: higher is better"),
        field("within_one_class", pa.float64(), "Share of judgements at most one class off, 0-1: higher is better"),
        field("bias", pa.float64(), "Mean class of the judge minus that of people, -1 to 1: above 0, the judge is generous"),
        field("note", pa.string(), "Note if the row has fewer than 5 prompts; empty: 5 or more"),
    ]
)
"""One row per judge and class that people chose."""

_DRAW_OF_LABELS = field("draw_id", pa.string(), "Hash of a draw of prompts to label: equal for equal draws of equal tables")
_POINT_FIELDS = tuple(RUBRIC_POINTS.field(name) for name in ITEM_KEYS)

RUBRIC_LABELS = pa.schema(
    [
        _LABEL_ITEM,
        field("class", pa.string(), "Class that a person chose, such as CLASS_PARTIALLY_MET"),
        field("score", pa.float64(), "Extent to which the criterion is met, 0-1, before should_not is inverted"),
        field("author", pa.string(), "Name of the person"),
        field("reason", pa.string(), "Explanation by the person; null: none"),
        field("imported_at", pa.timestamp("us", tz="UTC"), "Time of the import: an author's later label replaces earlier ones"),
        field("line", pa.int32(), "Line of the sheet, from 1; a later line of one import replaces an earlier one"),
        field("sheet", pa.string(), "File of the label"),
    ]
)
"""One row per imported label, including replaced ones."""

RUBRIC_LABEL_DRAWS = pa.schema(
    [
        _DRAW_OF_LABELS,
        field("drawn_at", pa.timestamp("us", tz="UTC"), "Time of the draw"),
        field("imported", pa.bool_(), "Flag: true if labels of the draw's sheet were imported, which makes the draw count"),
        BLUEPRINT_FIELD,
        PROMPT_OF_BLUEPRINT,
        field("probability", pa.float64(), "Probability that the draw selects the prompt, above 0, at most 1"),
        field("drawn", pa.bool_(), "Flag: true where the prompt was drawn"),
        field("seed", pa.int64(), "Seed of the draw"),
    ]
)
"""One row per draw and prompt that could have been drawn to be labelled."""

RUBRIC_LABEL_ITEMS = pa.schema([_DRAW_OF_LABELS, *_POINT_FIELDS, _LABEL_ITEM])
"""One row per draw and point that a label of its sheet is about."""

RUBRIC_CORRECTIONS = {"rubric_corrected": RUBRIC_CORRECTED, "rubric_known_classes": RUBRIC_KNOWN_CLASSES}
"""Tables computed from labels, by name."""


_ANALYST_FIELDS = (
    field("analyst", pa.string(), "Model that wrote the summary; null: no summary"),
    field("analyst_variant", pa.string(), "Model string and sampling parameters of the analyst in the models file"),
)
RUBRIC_SUMMARIES = pa.schema(
    [
        BLUEPRINT_FIELD,
        SNAPSHOT_FIELD,
        TEST_HASH,
        *_ANALYST_FIELDS,
        field("status", pa.string(), "Status: ok, partial, unreadable, error, budget, none (no request) or name left"),
        field("reason", pa.string(), "Why the summary is incomplete; null: it is complete"),
        field(
            "findings",
            pa.list_(pa.struct([pa.field("kind", pa.string()), pa.field("text", pa.string())])),
            "Key findings, strengths, weaknesses, patterns and topics, with names in place of opaque ids",
        ),
        field("n_grades", pa.int32(), "Readable grades"),
        field("n_dropped", pa.int32(), "Grades that do not count: of an unknown model or dimension, or given twice"),
        field("missing", pa.list_(pa.string()), "Missing blocks, by kind, or by opaque ids and dimension"),
        field("share", pa.float64(), "Share of each text shown to the analyst, 0-1; 1: the whole text"),
        field("max_tokens", pa.int32(), "Token limit of the first request, enough for all grades; null: no limit"),
        field("raw", pa.list_(pa.string()), "Replies, unchanged, with opaque ids"),
        field("request_keys", pa.list_(pa.string()), "Keys of the requests in the response store"),
        field("text", pa.string(), "Summary as markdown, with names in place of opaque ids; null: no readable reply"),
        *CALL_USAGE_FIELDS,
    ]
)
"""One row per analyst of a blueprint in a snapshot; one row without an analyst if there was no request."""

RUBRIC_GRADES = pa.schema(
    [
        BLUEPRINT_FIELD,
        SNAPSHOT_FIELD,
        *_ANALYST_FIELDS,
        MODEL_FIELDS[0],
        field("dimension", pa.string(), f"Dimension: {', '.join(DIMENSIONS)}"),
        field("grade", pa.float64(), "Grade by the analyst, 1-10: higher is better; null: none"),
        field("reasoning", pa.string(), "Reason given by the analyst, with names in place of opaque ids"),
    ]
)
"""One row per analyst, model and dimension of a blueprint in a snapshot."""

RUBRIC_CHAMPIONS = pa.schema(
    [
        field("dimension", pa.string(), "Dimension that analysts grade, such as clarity"),
        field("rank", pa.int64(), "Rank by mean grade, from 1; null: not eligible (see reason)"),
        MODEL_FIELDS[0],
        field("mean", pa.float64(), "Mean grade over blueprints, 1-10: higher is better"),
        field("n_blueprints", pa.int64(), "Blueprints that the model is graded in"),
        field("n_steady", pa.int64(), "Latest blueprints with a grade of 5 or more"),
        field("n_latest", pa.int64(), "Latest blueprints considered, at most 5"),
        field("champion", pa.bool_(), "Flag: true for the best eligible model of the dimension"),
        field("reason", pa.string(), "Why the model cannot be champion; empty: it can"),
    ]
)
"""One row per dimension and model that is graded in it."""

RUBRIC_ROLLED_UP = {
    "rubric_champions": RUBRIC_CHAMPIONS,
    "rubric_agreement": RUBRIC_AGREEMENT,
    "rubric_disagreed": RUBRIC_DISAGREED,
    "rubric_self_preference": RUBRIC_SELF_PREFERENCE,
    "rubric_judges": RUBRIC_JUDGES,
}
"""Tables over all blueprints other than the boards, by name."""


_BY_ADD = "dtef rubric run {options} {models} --max-calls 0 --from ingest"
_BY_RUBRIC_RUN = "dtef rubric run {options} {models} --max-calls 0"
_BY_ROLL_UP = "dtef rubric board --refresh"
_BY_DRAW, _BY_IMPORT = "dtef export labels SHEET", "dtef import labels SHEET"
_OF_BLUEPRINT, _OF_SNAPSHOT = ("blueprint",), ("blueprint", "snapshot")
RUBRIC_TABLES: Mapping[str, TableSpec] = {
    "rubric_blueprints": TableSpec(tables.RUBRIC_BLUEPRINTS, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_ADD),
    "rubric_prompts": TableSpec(tables.RUBRIC_PROMPTS, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_ADD),
    "rubric_criteria": TableSpec(tables.RUBRIC_CRITERIA, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_ADD),
    "rubric_extractions": TableSpec(
        tables.RUBRIC_EXTRACTIONS,
        RUBRIC_SPACE,
        _OF_BLUEPRINT,
        "dtef rubric run {options} {models} --max-calls 0",
    ),
    "rubric_findings": TableSpec(tables.RUBRIC_FINDINGS, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_ADD),
    "rubric_responses": TableSpec(tables.RUBRIC_RESPONSES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_judgements": TableSpec(tables.RUBRIC_JUDGEMENTS, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_embeddings": TableSpec(tables.RUBRIC_EMBEDDINGS, RUBRIC_SPACE, _OF_BLUEPRINT, _BY_RUBRIC_RUN),
    "rubric_similarities": TableSpec(tables.RUBRIC_SIMILARITIES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_points": TableSpec(tables.RUBRIC_POINTS, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_scores": TableSpec(tables.RUBRIC_SCORES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_runs": TableSpec(tables.RUBRIC_RUNS, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_summaries": TableSpec(RUBRIC_SUMMARIES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_grades": TableSpec(RUBRIC_GRADES, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "analyst_ids": TableSpec(ANALYST_IDS, RUBRIC_SPACE, _OF_SNAPSHOT, _BY_RUBRIC_RUN),
    "rubric_label_draws": TableSpec(RUBRIC_LABEL_DRAWS, remake=_BY_DRAW),
    "rubric_label_items": TableSpec(RUBRIC_LABEL_ITEMS, remake=_BY_DRAW),
    "rubric_labels": TableSpec(RUBRIC_LABELS, remake=_BY_IMPORT),
    **{name: TableSpec(schema, remake=_BY_ROLL_UP) for name, schema in RUBRIC_CORRECTIONS.items()},
    **{
        name: TableSpec(schema, remake=_BY_ROLL_UP)
        for name, schema in {"rubric_board": tables.RUBRIC_BOARD, **RUBRIC_ROLLED_UP}.items()
    },
}
"""The family's tables by name. The first one with the space is written by ingest and defines the partitions."""
_ANALYST_CALLS = {"role": "'analyst'", "model": "analyst", "variant": "analyst_variant"}
_JUDGE_CALLS = {"role": "'judge'", "model": "judge_model", "variant": "judge_variant", "status": "reason"}
RUBRIC_CALL_TABLES = FamilyCalls(
    RUBRIC_SPACE,
    (
        Calls("rubric_responses", replies="turns", status="status", error="error"),
        Calls("rubric_judgements", **_JUDGE_CALLS),
        Calls("anchors", **_JUDGE_CALLS, first="partition", only="family = 'rubric'"),
        Calls("rubric_summaries", **_ANALYST_CALLS),
        Calls("rubric_extractions", **_ANALYST_CALLS, snapshot="NULL"),
    ),
    embeds=True,
)
