"""The tables between the stages of the rubric family: names, types and descriptions of their columns.

Every table of results has the columns blueprint and snapshot, and, as needed: prompt, model, model_variant, temperature, system_index,
draw; block, path and position of a criterion. Scores are 0-1, higher is better; a missing score is null, and `reason` says why.
"""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.asking.embeddings import EMBEDDING_FIELDS
from dtef_pipeline.boards.mean_columns import RANK_HIGH, RANK_LOW
from dtef_pipeline.judging.consensus import CONSENSUS_COLUMNS
from dtef_pipeline.keys import Space
from dtef_pipeline.tables import CUT_FIELD, MODEL_FIELDS, REPLY, SAMPLE_FIELDS, SNAPSHOT_FIELD, field

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

CRITERION_SOURCE = field("source", pa.string(), "Source: extracted (from the ideal answer), or the text before repair")

RUBRIC_BLUEPRINTS = pa.schema(
    [
        BLUEPRINT_FIELD,
        field("title", pa.string(), "Title in the file"),
        field("description", pa.string(), "Description in the file; null: none"),
        _TAGS,
        field("references", _LIST_OF_TEXTS, "Sources that the file cites"),
        TEST_HASH,
        field("models", _LIST_OF_TEXTS, "Models that the file names, as litellm strings; of collections, their members"),
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
        field("score", pa.float64(), "Extent to which the criterion is met, 0-1, before should_not is inverted; null: none"),
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
        field("ideal_similarity", pa.float64(), "Cosine similarity to the ideal answer, -1 to 1: higher is closer; null: none"),
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
        field("judges", _LIST_OF_TEXTS, "Judges, as approach(model); then people and no own judge where these settings apply"),
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
    "blueprint",
    "snapshot",
    "prompt",
    "model",
    "model_variant",
    "temperature",
    "system_index",
    "draw",
    "block",
    "path",
    "position",
)
"""A criterion of a response."""
JUDGED_UNIT = (*ITEM_KEYS, "judge_draw")
"""What several judges judge."""
