"""The tables between the stages of the rubric family: names, types and descriptions of their columns.

Every table of results has the columns blueprint and snapshot, and, as needed: prompt, model, model_variant, temperature, system_index,
draw; block, path and position of a criterion. Scores are 0-1, higher is better; a missing score is null, and `reason` says why.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dtef_pipeline.asking.embeddings import EMBEDDING_FIELDS
from dtef_pipeline.boards.family_calls import Calls, FamilyCalls
from dtef_pipeline.boards.mean_columns import RANK_HIGH, RANK_LOW
from dtef_pipeline.judging.consensus import CONSENSUS_COLUMNS
from dtef_pipeline.keys import Space
from dtef_pipeline.rubric.anonymise import ANALYST_IDS
from dtef_pipeline.tables import CUT_FIELD, MODEL_FIELDS, REPLY, SAMPLE_FIELDS, SNAPSHOT_FIELD, TableSpec, field

BLUEPRINT_FIELD = field("blueprint", pa.string(), "Id of the blueprint, from its path: / is written __")
PROMPT_OF_BLUEPRINT = field("prompt", pa.string(), "Id of the prompt, unique within its blueprint")
SYSTEM_INDEX = field("system_index", pa.int32(), "Place of the system prompt in the prompt's list, from 0")
CONVERSATION = pa.list_(pa.struct([("role", pa.string()), ("text", pa.string())]))
TEST_HASH = field("test_hash", pa.string(), "Hash of all prompts and criteria: equal if the test is the same")
_LIST_OF_TEXTS = pa.list_(pa.string())
_TAGS = field("tags", _LIST_OF_TEXTS, "Tags of the blueprint in their normal form: lower case, words joined by -")
_OF_CRITERION = (
    field("block", pa.string(), "Block of the criterion: should, or should_not whose points are inverted"),
    field("path", pa.int32(), "Number of the alternative path within the block, from 0; null: the criterion is required"),
    field("position", pa.int32(), "Place of the criterion in its block or path, from 0"),
)
_OF_RESPONSE = (
    BLUEPRINT_FIELD,
    PROMPT_OF_BLUEPRINT,
    *MODEL_FIELDS,
    SAMPLE_FIELDS[0],
    SYSTEM_INDEX,
    SAMPLE_FIELDS[1],
    SNAPSHOT_FIELD,
)
"""The columns that name one response."""
CALL_USAGE_FIELDS = (
    field("prompt_tokens", pa.int64(), "Tokens of prompts, of all calls of the row"),
    field("completion_tokens", pa.int64(), "Tokens of responses, of all calls of the row"),
    field("cost_usd", pa.float64(), "Cost of the row's calls in US dollars; null: unknown"),
)

CRITERION_SOURCE = field(
    "source",
    pa.string(),
    "Source: extracted (from the ideal answer), or the text before repair",
)

RUBRIC_BLUEPRINTS = pa.schema(
    [
        BLUEPRINT_FIELD,
        field("title", pa.string(), "Title in the file"),
        field("description", pa.string(), "Description in the file; null: none"),
        _TAGS,
        field("references", _LIST_OF_TEXTS, "Sources that the file cites"),
        TEST_HASH,
        field(
            "models",
            _LIST_OF_TEXTS,
            "Models that the file names, as litellm strings; collections are replaced by their members",
        ),
        field("judges", _LIST_OF_TEXTS, "Judges that the file names, as approach=model; none: the default judges"),
        field("n_prompts", pa.int64(), "Prompts"),
        field("n_criteria", pa.int64(), "Criteria of all prompts"),
        field("n_errors", pa.int64(), "Errors; their parts of the file were left out and block a run"),
        field("path", pa.string(), "File of the blueprint"),
    ]
)
"""One row per blueprint."""

RUBRIC_PROMPTS = pa.schema(
    [
        BLUEPRINT_FIELD,
        PROMPT_OF_BLUEPRINT,
        field("position", pa.int32(), "Place of the prompt in the blueprint, from 0"),
        field("weight", pa.float64(), "Weight of the prompt in means over the blueprint"),
        field("messages", CONVERSATION, "Conversation without the system prompt; null text: a turn that the model writes"),
        field("systems", _LIST_OF_TEXTS, "System prompts; each gets its own response; null: no system prompt"),
        field("temperatures", pa.list_(pa.float64()), "Sampling temperatures; each gets its own response"),
        field("ideal", pa.string(), "Ideal answer that responses are compared with; null: none"),
        field("description", pa.string(), "Description in the file; null: none"),
        field("citation", pa.string(), "Source of the prompt; null: none"),
        _TAGS,
        TEST_HASH,
    ]
)
"""One row per prompt of a blueprint."""

RUBRIC_CRITERIA = pa.schema(
    [
        BLUEPRINT_FIELD,
        PROMPT_OF_BLUEPRINT,
        *_OF_CRITERION,
        field("criterion_id", pa.string(), "Hash of the criterion: kind, text, function and its argument"),
        field("kind", pa.string(), "Kind of the criterion: text (judged) or function (computed)"),
        field("text", pa.string(), "Criterion as shown to judges; null: it is a function"),
        field("fn", pa.string(), "Function that computes the point; null: it is judged"),
        field("args", pa.string(), "Argument of the function, as JSON; null: none"),
        field("weight", pa.float64(), "Weight of the point in the coverage of its prompt, 0.1 to 10"),
        field("citation", pa.string(), "Source of the criterion; null: none"),
        CRITERION_SOURCE,
        field("fault", pa.string(), "Why the criterion cannot be scored; null: it can"),
    ]
)
"""One row per criterion of a prompt."""

RUBRIC_EXTRACTIONS = pa.schema(
    [
        BLUEPRINT_FIELD,
        PROMPT_OF_BLUEPRINT,
        field("analyst", pa.string(), "Model that extracted the key points from the ideal answer"),
        field("analyst_variant", pa.string(), "Model string of the analyst plus every sampling parameter"),
        field("n_points", pa.int32(), "Number of key points, each a criterion of the prompt; 0: none (see reason)"),
        field("reason", pa.string(), "Why there are no key points: unreadable, empty, error or budget; null: there are some"),
        field("attempts", pa.int32(), "Number of requests: 2 if the first reply was unreadable"),
        field("raw", _LIST_OF_TEXTS, "Replies, unchanged"),
        field("request_keys", _LIST_OF_TEXTS, "Keys of the calls in the response store"),
        *CALL_USAGE_FIELDS,
        field("error", pa.string(), "Why there is no reply"),
    ]
)
"""One row per ideal answer that a model extracted key points from."""

RUBRIC_FINDINGS = pa.schema(
    [
        BLUEPRINT_FIELD,
        field("level", pa.string(), "Severity: error, unscorable, warning or info"),
        field("code", pa.string(), "Kind of finding: dollar-string, duplicate-prompt-id, ..."),
        field("place", pa.string(), "Place in the file, such as prompt 3 should[0][1], counted from 0; empty: the whole file"),
        field("line", pa.int32(), "Line of the file, from 1; null: not known"),
        field("text", pa.string(), "What is wrong, and what to write instead"),
    ]
)
"""One row per finding in a blueprint's file."""

RUBRIC_RESPONSES = pa.schema(
    [
        *_OF_RESPONSE,
        field("conversation_hash", pa.string(), "Hash of the messages and of the places of the model's turns"),
        field("status", pa.string(), "State of the response: ok, empty (blank, or only reasoning), error or budget"),
        field("text", pa.string(), "Text that is judged: all turns of the model without thinking; null: none"),
        field("transcript", CONVERSATION, "Whole conversation, with the system prompt and the model's turns"),
        field("turns", pa.int32(), "Turns that the model wrote"),
        field("truncated", pa.bool_(), "Flag: true where max_tokens ended a turn"),
        field("request_keys", _LIST_OF_TEXTS, "Keys of the calls in the response store, one per turn"),
        *(column for column in REPLY if column.name in {"error", "finish_reason", "served_model", "fingerprint"}),
        *CALL_USAGE_FIELDS,
        field("latency_s", pa.float64(), "Duration of all calls in seconds"),
        field("attempts", pa.int32(), "Calls for all turns, with retries"),
        *(column for column in REPLY if column.name == "answered_at"),
    ]
)
"""One row per response: a draw of a prompt by a model variant with one system prompt."""

RUBRIC_JUDGEMENTS = pa.schema(
    [
        *_OF_RESPONSE,
        *_OF_CRITERION,
        field("criterion_id", pa.string(), "Hash of the criterion: kind, text, function and its argument"),
        field("judge", pa.string(), "Judge, as approach(model); with [scale:10] if it chose from ten classes"),
        field("approach", pa.string(), "Approach of the judge: standard, prompt-aware or holistic"),
        field("judge_model", pa.string(), "Name of the judge's model"),
        field("judge_variant", pa.string(), "Model string of the judge and its sampling parameters"),
        field("judge_draw", pa.int32(), "Repeated judgement of the same response, from 0"),
        field("scale", pa.int32(), "Classes that the judge chose from: 5 or 10"),
        field("class", pa.string(), "Class that the judge chose, such as CLASS_PARTIALLY_MET; null: none"),
        field(
            "score", pa.float64(), "Extent to which the criterion is met, 0-1, before should_not is inverted: higher is better"
        ),
        field("reason", pa.string(), "Why the class is missing: unreadable, cut, empty, declined, error or budget"),
        field("reflection", pa.string(), "Explanation by the judge; null: none was read"),
        field("attempts", pa.int32(), "Number of requests: 2 if the first reply was unreadable"),
        field("list_order", pa.list_(pa.int32()), "Order of criteria that a holistic judge saw; null: it saw one criterion"),
        field("raw", _LIST_OF_TEXTS, "Replies, unchanged"),
        field("request_keys", _LIST_OF_TEXTS, "Keys of the calls in the response store"),
        *CALL_USAGE_FIELDS,
        field("error", pa.string(), "Why there is no reply"),
    ]
)
"""One row per judgement: a draw of a judge on one criterion of one response."""

RUBRIC_POINTS = pa.schema(
    [
        *_OF_RESPONSE,
        *_OF_CRITERION,
        field("criterion_id", pa.string(), "Hash of the criterion: kind, text, function and its argument"),
        field("kind", pa.string(), "Kind of the criterion: text (judged) or function (computed)"),
        field("weight", pa.float64(), "Weight of the point in the coverage of its prompt, 0.1 to 10"),
        CRITERION_SOURCE,
        *CONSENSUS_COLUMNS,
        field("explanation", pa.string(), "What the function found; null: the point is judged"),
        field("labelled", pa.bool_(), "Flag: true if a person's label replaced the judges' score"),
        field("judge_score", pa.float64(), "Score by judges that a label replaced, 0-1; null: no label, or no such score"),
    ]
)
"""One row per criterion of a response: the consensus of its judges, or what its function found."""

RUBRIC_EMBEDDINGS = pa.schema([BLUEPRINT_FIELD, *EMBEDDING_FIELDS])
"""One row per text of a blueprint and embedder."""

RUBRIC_SIMILARITIES = pa.schema(
    [
        *_OF_RESPONSE,
        field("embedder", pa.string(), "Model that embedded the texts"),
        field("place", pa.int32(), "Place of the response among those of its prompt and snapshot, from 0"),
        field(
            "ideal_similarity", pa.float64(), "Cosine similarity to the ideal answer, -1 to 1: higher is closer; null: no ideal"
        ),
        field("response_similarities", pa.list_(pa.float32()), "Cosine similarities to all responses, by place, -1 to 1"),
    ]
)
"""One row per response with a text: a row of its prompt's similarity matrix."""

RUBRIC_SCORES = pa.schema(
    [
        field("level", pa.string(), "Level of the row: cell (a prompt), variant (a blueprint) or model (all its variants)"),
        BLUEPRINT_FIELD,
        SNAPSHOT_FIELD,
        field("prompt", pa.string(), "Id of the prompt, unique within its blueprint; null: a row of a variant or model"),
        MODEL_FIELDS[0],
        field("model_variant", pa.string(), "Model string plus every sampling parameter; null: a row of a model"),
        field("temperature", pa.float64(), "Sampling temperature; null: not set, or a row of a model"),
        field("system_index", pa.int32(), "Place of the system prompt in the prompt's list, from 0; null: a row of a model"),
        field("coverage", pa.float64(), "Weighted share of the criteria that are met, 0-1: higher is better; null: unscored"),
        field("similarity", pa.float64(), "Cosine similarity to the ideal answer, -1 to 1: higher is closer; null: none"),
        field("hybrid", pa.float64(), "Hybrid score, 0-1: higher is better; null: unscored"),
        field("intercept", pa.float64(), "Hybrid score if similarity had weight 0, 0-1"),
        field("slope", pa.float64(), "Change of the hybrid score as the weight of similarity goes from 0 to 1, -1 to 1"),
        field("weight", pa.float64(), "Weight of the prompt in means over its blueprint; null: a row of a variant or model"),
        field("n_planned", pa.int64(), "Planned points (level cell), prompts (variant) or variants (model)"),
        field("n_scored", pa.int64(), "Planned points, prompts or variants with a score"),
        field("n_partial", pa.int64(), "Points, prompts or variants that have a score although something is missing"),
        field("n_unscored", pa.int64(), "Planned points, prompts or variants without a score"),
        field("n_responses", pa.int64(), "Planned responses; each draw counts"),
        field("n_responses_scored", pa.int64(), "Responses with a hybrid score"),
        field("reasons", pa.map_(pa.string(), pa.int64()), "Why responses have no hybrid score, with the number of responses"),
    ]
)
"""One row per cell, per variant and per model of a blueprint and snapshot."""

RUBRIC_BOARD = pa.schema(
    [
        CUT_FIELD,
        field("tag", pa.string(), "Tag of blueprints, in its normal form"),
        BLUEPRINT_FIELD,
        SNAPSHOT_FIELD,
        PROMPT_OF_BLUEPRINT,
        *_OF_CRITERION,
        field("rank", pa.int64(), "Rank by score, from 1; equal scores share the better rank; null: not ranked (see note)"),
        MODEL_FIELDS[0],
        field("score", pa.float64(), "Mean hybrid score (--by criterion: mean point), 0-1: higher is better; null: unscored"),
        field("low", pa.float64(), "Lower end of the 95 % interval of score; null: too few blueprints or prompts"),
        field("high", pa.float64(), "Upper end of the 95 % interval of score; null: too few blueprints or prompts"),
        field("rank_low", pa.float64(), RANK_LOW),
        field("rank_high", pa.float64(), RANK_HIGH),
        field("coverage", pa.float64(), "Mean share of the criteria that are met, 0-1: higher is better"),
        field("similarity", pa.float64(), "Mean cosine similarity to ideal answers, -1 to 1: higher is closer; null: no ideal"),
        field("intercept", pa.float64(), "Score if similarity had weight 0, 0-1"),
        field("slope", pa.float64(), "Change of the score as the weight of similarity goes from 0 to 1, -1 to 1"),
        field("n_scored", pa.int64(), "Scored blueprints (--by blueprint: prompts; prompt: variants; criterion: points)"),
        field("n_planned", pa.int64(), "Planned blueprints (--by blueprint: prompts; prompt: variants; criterion: points)"),
        field("n_responses", pa.int64(), "Planned responses"),
        field("n_responses_scored", pa.int64(), "Responses with a hybrid score"),
        field("note", pa.string(), "Why there is no rank or no interval; empty: both exist"),
    ]
)
"""Models ranked over all blueprints, by tag, in each blueprint, at each prompt and at each criterion. One row per cut and model."""
RUBRIC_CUTS = {
    "overall": (),
    "tag": ("tag",),
    "blueprint": ("blueprint", "snapshot"),
    "prompt": ("blueprint", "snapshot", "prompt"),
    "criterion": ("blueprint", "snapshot", "prompt", *(column.name for column in _OF_CRITERION)),
}
"""By the name of each cut of RUBRIC_BOARD, the columns that only some cuts have."""

RUBRIC_RUNS = pa.schema(
    [
        BLUEPRINT_FIELD,
        SNAPSHOT_FIELD,
        TEST_HASH,
        field("judge_hash", pa.string(), "Hash of the judges, their prompts, the scale and how replies are read"),
        field("policy_hash", pa.string(), "Hash of the weight of similarity, the rules for paths and the embedder"),
        field("run_hash", pa.string(), "Hash of the three other hashes: runs with the same hash can be compared for drift"),
        field(
            "judges",
            _LIST_OF_TEXTS,
            "Judges, each as approach(model); then people if labels count, and no own judge if judges of a model's maker do not count",
        ),
        field("policy", pa.string(), "Scoring policy in words, such as beta=0.35"),
        field("embedder", pa.string(), "Embedding model for similarity"),
        field("answered_at", pa.timestamp("us", tz="UTC"), "Time when the last response of a model under test arrived"),
    ]
)
"""One row per blueprint and snapshot: how its scores were made."""


RUBRIC_SPACE = Space("rubric_blueprint", first="blueprint", second="", order=str.casefold)
"""One partition is one blueprint, by its id: `compass__introverted`."""
RUBRIC_CELL = ("prompt", "model", "model_variant", "temperature", "system_index")
"""Key of the responses of a blueprint's snapshot, without the draw."""
RUBRIC_RESPONSE = (*RUBRIC_CELL, "draw")
"""One response of a blueprint's snapshot."""
RUBRIC_POINT = ("prompt", "block", "path", "position")
"""One criterion of a blueprint, by its place."""


ITEM_KEYS = (
    *("blueprint", "snapshot", "prompt", "model", "model_variant", "temperature", "system_index", "draw"),
    *("block", "path", "position"),
)
"""A criterion of a response."""
JUDGED_UNIT = (*ITEM_KEYS, "judge_draw")
"""What several judges judge."""


_IN_95 = "end of the 95 % interval"
_JUDGE = RUBRIC_JUDGEMENTS.field("judge")
_SCALE = field("scale", pa.int64(), "Number of classes to choose from, 5 or 10 (never compared); null: no judgement")
_LABEL_ITEM = field("item", pa.string(), "Hash of prompt, response text and criterion")

RUBRIC_AGREEMENT = pa.schema(
    [
        field("cut", pa.string(), "Kind of the cut: overall, blueprint, judges (a pair), criterion (its kind) or language"),
        field("value", pa.string(), "Value of the cut, such as a blueprint's id"),
        _SCALE,
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
        *_OF_CRITERION,
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
        field(
            "score", pa.float64(), "Extent to which the criterion is met, 0-1, before should_not is inverted: higher is better"
        ),
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
        field(
            "dimension",
            pa.string(),
            "Dimension: adherence, clarity, tone, depth, coherence, helpfulness, credibility, empathy, creativity, safety, humility, "
            "argumentation, efficiency",
        ),
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

_ROLLED_UP = {
    **RUBRIC_CORRECTIONS,
    "rubric_board": RUBRIC_BOARD,
    "rubric_champions": RUBRIC_CHAMPIONS,
    "rubric_agreement": RUBRIC_AGREEMENT,
    "rubric_disagreed": RUBRIC_DISAGREED,
    "rubric_self_preference": RUBRIC_SELF_PREFERENCE,
    "rubric_judges": RUBRIC_JUDGES,
}
_BY_ADD = "dtef rubric run {options} {models} --max-calls 0 --from ingest"
_BY_RUBRIC_RUN = "dtef rubric run {options} {models} --max-calls 0"
_BY_ROLL_UP = "dtef rubric board --refresh"
_BY_DRAW, _BY_IMPORT = "dtef export labels SHEET", "dtef import labels SHEET"
_PARTITIONED = {
    "rubric_blueprints": RUBRIC_BLUEPRINTS,
    "rubric_prompts": RUBRIC_PROMPTS,
    "rubric_criteria": RUBRIC_CRITERIA,
    "rubric_extractions": RUBRIC_EXTRACTIONS,
    "rubric_findings": RUBRIC_FINDINGS,
    "rubric_responses": RUBRIC_RESPONSES,
    "rubric_judgements": RUBRIC_JUDGEMENTS,
    "rubric_embeddings": RUBRIC_EMBEDDINGS,
    "rubric_similarities": RUBRIC_SIMILARITIES,
    "rubric_points": RUBRIC_POINTS,
    "rubric_scores": RUBRIC_SCORES,
    "rubric_runs": RUBRIC_RUNS,
    "rubric_summaries": RUBRIC_SUMMARIES,
    "rubric_grades": RUBRIC_GRADES,
    "analyst_ids": ANALYST_IDS,
}
_OF_FILES = ("rubric_blueprints", "rubric_prompts", "rubric_criteria", "rubric_findings")
_OF_ALL_SNAPSHOTS = (*_OF_FILES, "rubric_extractions", "rubric_embeddings")
RUBRIC_TABLES: Mapping[str, TableSpec] = {
    **{
        name: TableSpec(
            schema,
            RUBRIC_SPACE,
            ("blueprint",) if name in _OF_ALL_SNAPSHOTS else ("blueprint", "snapshot"),
            _BY_ADD if name in _OF_FILES else _BY_RUBRIC_RUN,
        )
        for name, schema in _PARTITIONED.items()
    },
    "rubric_label_draws": TableSpec(RUBRIC_LABEL_DRAWS, remake=_BY_DRAW),
    "rubric_label_items": TableSpec(RUBRIC_LABEL_ITEMS, remake=_BY_DRAW),
    "rubric_labels": TableSpec(RUBRIC_LABELS, remake=_BY_IMPORT),
    **{name: TableSpec(schema, remake=_BY_ROLL_UP) for name, schema in _ROLLED_UP.items()},
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
