"""The tables between the stages: column names, types and meanings, in one place.

Distributions are fractions that sum to 1, in the survey's option order. Percentages exist only at the edges
(files, prompts, reports).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dtef_pipeline.keys import Space

DISTRIBUTION = pa.list_(pa.float64())

SURVEY_RESPONSES = pa.schema(
    [
        ("round", pa.string()),  # survey wave, upper case: GD4
        ("segment", pa.string()),  # attribute:value-slug: country:kenya
        ("attribute", pa.string()),
        ("value", pa.string()),  # the segment's value as people read it: Kenya
        ("question_id", pa.string()),
        ("question_order", pa.int32()),  # 0-based place in the survey
        ("question_text", pa.string()),
        ("options", pa.list_(pa.string())),
        ("scale", pa.string()),  # ordinal | nominal
        ("scale_reason", pa.string()),  # why, naming don't-know options set aside
        ("dont_know", pa.list_(pa.bool_())),  # per option: off the scale (don't know, prefer not to say, never used)
        ("observed", DISTRIBUTION),
        ("n", pa.int32()),  # respondents behind `observed`
        ("n_source", pa.string()),  # question (its own n) | segment (fallback)
        ("segment_n", pa.int32()),
        ("circular", pa.bool_()),  # the question that defines this segment's own attribute
        ("duplicate_of", pa.string()),  # id of the first question of the round with the same text and options
        ("population", DISTRIBUTION),  # n-weighted over all segments of the round (it contains this segment)
        ("population_n", pa.int64()),
        (
            "others",
            DISTRIBUTION,
        ),  # leave-one-out: n-weighted over the other segments of the same attribute; null if none
        ("others_n", pa.int64()),
        ("shuffled", DISTRIBUTION),  # the answer of another segment of the round, drawn by a seed; null if there is none
        ("shuffled_segment", pa.string()),
    ]
)

SURVEY_QUARANTINE = pa.schema(
    [
        ("round", pa.string()),
        ("segment", pa.string()),
        ("question_id", pa.string()),  # null: the whole segment
        ("reason", pa.string()),  # a code of dtef_pipeline.survey.quarantine.REASONS
        ("detail", pa.string()),  # what arrived and what is allowed
        ("n", pa.int32()),
        ("percentages", pa.list_(pa.float64())),  # as they arrived; null where a cell was blank
        ("file", pa.string()),
        ("line", pa.int32()),
    ]
)

SURVEY_FINDINGS = pa.schema(
    [
        ("round", pa.string()),
        ("level", pa.string()),  # error | warning | info
        ("code", pa.string()),  # unknown-column, profile-question, open-ended-question, ...
        ("message", pa.string()),
        ("items", pa.list_(pa.string())),  # the columns, questions or segments it is about
    ]
)

READING = pa.struct(
    [
        ("task", pa.string()),  # distribution: percentages | individuals: a letter a person
        ("order", pa.list_(pa.int32())),  # the option shown at each place, as its place in the survey; null: the survey's order
        ("place", pa.int32()),  # of the question among those of one prompt; null: the prompt has one question
        ("individuals", pa.int32()),  # how many people were to answer; null: not that task
        ("size", pa.int32()),  # how many questions the prompt has; null: one
        ("marked", pa.bool_()),  # reasoning comes first: only what follows the mark of the final line is the answer; null: no
    ]
)
"""How the answer to a prompt is read. Null: one distribution, options in the survey's order."""

BLUEPRINTS = pa.schema(
    [
        ("round", pa.string()),
        ("segment", pa.string()),
        ("question_id", pa.string()),
        ("context_level", pa.string()),  # requested number of context questions: 0, 5, 10, ..., all
        ("condition", pa.string()),  # how it is asked, in short: distribution/attribute-label, shift/narrative+cot
        ("prompt_id", pa.string()),  # hash of system, user, question ids, options and what else reaches the model
        ("blueprint_hash", pa.string()),  # hash of the sorted prompt_ids of this (round, segment)
        ("recipe", pa.string()),  # the options that made the prompt, as JSON: `condition` in full
        ("system", pa.string()),
        ("user", pa.string()),
        ("options", pa.list_(pa.string())),  # of this question, in the survey's order
        ("reading", READING),
        ("response_schema", pa.string()),  # JSON schema the answer must have; null: free text
        ("answer_tokens", pa.int32()),  # fewest tokens the model may answer with; null: as many as the model's own setting says
        ("context_requested", pa.int32()),  # null: all
        ("context_included", pa.int32()),
        ("context_question_ids", pa.list_(pa.string())),
        ("tokens", pa.int32()),  # estimated prompt tokens (system + user)
        ("circular", pa.bool_()),
    ]
)

PREDICTIONS = pa.schema(
    [
        ("round", pa.string()),
        ("segment", pa.string()),
        ("snapshot", pa.string()),
        ("question_id", pa.string()),
        ("context_level", pa.string()),
        ("condition", pa.string()),
        ("prompt_id", pa.string()),
        ("blueprint_hash", pa.string()),
        ("model", pa.string()),  # the name people use: baseline/uniform, gpt-4.1-mini
        ("model_variant", pa.string()),  # model string plus every sampling parameter
        ("temperature", pa.float64()),
        ("draw", pa.int32()),
        ("request_key", pa.string()),  # hash(prompt_id, model_variant, draw, snapshot)
        ("reading", READING),  # null for baselines: they answer in the survey's order whatever the condition
        ("call_status", pa.string()),  # answered | error | missing | budget
        ("response", pa.string()),  # raw text, as served
        ("error", pa.string()),  # why there is no response
        ("finish_reason", pa.string()),
        ("served_model", pa.string()),
        ("fingerprint", pa.string()),  # the provider's name for the configuration that answered
        # Usage stands once a request: at the first of the questions that share a prompt; 0 at the others.
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("cost_usd", pa.float64()),  # null: unknown
        ("latency_s", pa.float64()),
        ("attempts", pa.int32()),
        ("answered_at", pa.timestamp("us", tz="UTC")),  # null for baselines: they ask nobody
    ]
)

SCORES = pa.schema(
    [
        ("round", pa.string()),
        ("segment", pa.string()),
        ("snapshot", pa.string()),
        ("attribute", pa.string()),
        ("value", pa.string()),
        ("question_id", pa.string()),
        ("question_order", pa.int32()),
        ("context_level", pa.string()),
        ("condition", pa.string()),
        ("prompt_id", pa.string()),
        ("blueprint_hash", pa.string()),
        ("model", pa.string()),
        ("model_variant", pa.string()),
        ("temperature", pa.float64()),
        ("draw", pa.int32()),
        ("n", pa.int32()),
        ("circular", pa.bool_()),
        ("truth_id", pa.string()),  # hash of what the prediction was scored against: options, observed distribution and n
        ("status", pa.string()),  # ok | unparseable | wrong_length | error | refused | missing | budget
        ("reason", pa.string()),  # how it was read, or why it was not
        ("predicted", DISTRIBUTION),  # null unless ok
        ("metric", pa.string()),  # the metric behind `score`
        (
            "score",
            pa.float64(),
        ),  # published policy: metric if ok, 0 unparseable or refused, 0.1 wrong length, null otherwise
        ("js", pa.float64()),
        ("cosine", pa.float64()),
        ("emd", pa.float64()),
        ("emd_normalized", pa.float64()),  # null on nominal scales
        ("tv", pa.float64()),  # total variation distance: lower is better
        ("mae", pa.float64()),  # mean absolute error of the fractions: lower is better
        ("top_hit", pa.float64()),  # 1 if the predicted top option is an observed top option
        (
            "l2_corrected",
            pa.float64(),
        ),  # squared error less what the segment's n alone explains; can be below 0; null when n < 2
        ("rps_corrected", pa.float64()),  # the same of the ranked probability score; null on nominal scales
        ("answered_at", pa.timestamp("us", tz="UTC")),
    ]
)

STATUSES = ("ok", "unparseable", "wrong_length", "error", "refused", "missing", "budget")
ANSWERED = ("ok", "unparseable", "wrong_length", "refused")
"""Statuses of a prediction whose model said something: what a parse rate is a rate of."""
METRICS = ("js", "cosine", "emd", "emd_normalized", "tv", "mae", "top_hit")
"""Metric columns of `scores`. Similarities (higher is better) except `tv` and `mae`, which are distances."""
DISTANCES = ("tv", "mae")
CORRECTED = ("l2_corrected", "rps_corrected")
"""Noise-corrected errors in `scores`: unbiased whatever the segment's n, lower is better, below 0 by chance. No policy applies to them."""

SIMILARITIES = pa.struct([(metric, pa.float64()) for metric in METRICS])
"""A similarity (higher is better, 1 = identical) under each metric: of a distance 1 - distance."""

REFERENCE_SCORES = pa.schema(
    [
        ("round", pa.string()),
        ("segment", pa.string()),
        ("question_id", pa.string()),
        ("cluster", pa.string()),  # of text and options: the same question has one cluster in all segments and rounds
        ("n", pa.int32()),
        ("gini", pa.float64()),  # unbiased 1 - sum p^2 of the segment's true distribution: (1 - sum observed^2) n / (n - 1)
        ("shrinkage", pa.float64()),  # weight of the population in the truth that the ceiling is simulated from, 0-1
        ("ceiling", SIMILARITIES),  # expected score of the true distribution against a sample of n
        ("uniform", SIMILARITIES),  # score of the uniform distribution
        ("others", SIMILARITIES),  # of the leave-one-out marginal; null where there is none
        ("population", SIMILARITIES),  # of the population marginal
    ]
)
"""What a score of each pair could be at best, and what it is for those who know nothing of the segment. Written with `survey_responses`."""

COUNTS = pa.schema(
    [
        ("n_total", pa.int64()),  # predictions
        ("n_scored", pa.int64()),  # those with a score under the published policy
        ("n_ok", pa.int64()),
        ("n_unparseable", pa.int64()),
        ("n_wrong_length", pa.int64()),
        ("n_refused", pa.int64()),
        ("n_error", pa.int64()),
        ("n_missing", pa.int64()),
        ("n_budget", pa.int64()),  # not asked: a budget was reached
        ("parse_rate", pa.float64()),  # ok / answered (ok, unparseable, wrong length, refused)
    ]
)

SEGMENT_RESULTS = pa.schema(
    [
        ("round", pa.string()),
        ("segment", pa.string()),
        ("snapshot", pa.string()),
        ("attribute", pa.string()),
        ("value", pa.string()),
        ("model", pa.string()),
        ("model_variant", pa.string()),
        ("context_level", pa.string()),
        ("condition", pa.string()),
        ("targets", pa.string()),  # clean: without circular questions | all: as published
        *COUNTS,
        ("metric", pa.string()),
        ("score", pa.float64()),  # mean under the published policy
        ("score_low", pa.float64()),  # 95 % interval over questions; null with fewer than 5 of them
        ("score_high", pa.float64()),
        *((metric, pa.float64()) for metric in METRICS),  # means over parsed predictions
        (
            "questions",
            pa.list_(
                pa.struct([("question_id", pa.string()), ("score", pa.float64()), ("n_scored", pa.int64())]),
            ),
        ),  # mean score per target question, in survey order
    ]
)

RULE = (
    ("hours", pa.float64()),  # from the oldest to the newest snapshot; null when a time is unknown
    ("lowest", pa.float64()),
    ("lowest_snapshot", pa.string()),
    ("highest", pa.float64()),
    ("highest_snapshot", pa.string()),
    ("gap", pa.float64()),  # highest - lowest
    ("relative_gap", pa.float64()),  # gap / lowest; infinite when lowest is 0
    ("flagged", pa.bool_()),  # the documented rule
    ("reason", pa.string()),  # the comparison in words, or why none was made
)
EVIDENCE = (
    (
        "verdict",
        pa.string(),
    ),  # none | watch (flagged alone) | drift (flagged, and the evidence reaches the threshold); null: not compared
    (
        "log10_e",
        pa.float64(),
    ),  # highest e-value against "no drift" so far, as log10: 2 is 100 to 1; null: fewer snapshots than needed
    ("threshold", pa.float64()),  # log10 of the e-value needed: what is watched together shares one error rate
    ("direction", pa.string()),  # up | down
    ("shift", pa.float64()),  # mean paired difference since the change less that before it; without a drift: since the baseline
    ("shift_low", pa.float64()),  # 95 %, valid however often one looks
    ("shift_high", pa.float64()),
    ("first_snapshot", pa.string()),  # likeliest first snapshot of the shift; null unless the verdict is drift
    ("baseline", pa.list_(pa.string())),  # the first snapshots, frozen: what later ones are compared with
    (
        "moved",
        pa.list_(pa.struct([("question", pa.string()), ("shift", pa.float64()), ("text", pa.string())])),
    ),  # questions that moved most, most first
)
DRIFT_CHECKS = pa.schema(
    [
        ("round", pa.string()),
        ("segment", pa.string()),
        ("model", pa.string()),
        ("model_variant", pa.string()),
        ("context_level", pa.string()),
        ("condition", pa.string()),
        (
            "prompt_set",
            pa.string(),
        ),  # hash of the prompts asked in every snapshot of the series, and of what they were scored against
        ("n_snapshots", pa.int64()),
        ("n_prompts", pa.int64()),  # (prompt, question) pairs scored in every snapshot: what the means are over
        *RULE,
        *EVIDENCE,
    ]
)

MODEL_DRIFT = pa.schema(
    [
        ("model", pa.string()),
        ("model_variant", pa.string()),
        ("context_level", pa.string()),
        ("condition", pa.string()),
        ("metric", pa.string()),
        ("rounds", pa.list_(pa.string())),
        ("n_segments", pa.int64()),
        ("n_questions", pa.int64()),  # whole questions: what the differences are paired by
        ("n_prompts", pa.int64()),  # of the baseline: (round, segment, question, prompt, truth)
        ("n_snapshots", pa.int64()),  # that are compared: baseline and later
        ("latest_snapshot", pa.string()),
        *RULE,
        *EVIDENCE,
        # What else changed at the first snapshot of the shift, or since the baseline where there is none: in words that stand alone.
        (
            "changes",
            pa.list_(
                pa.struct(
                    [
                        (
                            "what",
                            pa.string(),
                        ),  # answers | parse_rate | served_model | fingerprint | prompts | survey | metric | panel
                        ("snapshot", pa.string()),  # since when
                        ("before", pa.string()),
                        ("after", pa.string()),
                    ]
                )
            ),
        ),
        ("told", pa.string()),  # the verdict that was last sent to the webhook; null: none
    ]
)
"""One row a (model variant, context level, condition) over all its rounds and segments; not compared (`verdict` null) at another temperature
than 0 or with one snapshot."""

DRIFT_SERIES = pa.schema(
    [
        ("model", pa.string()),
        ("model_variant", pa.string()),
        ("context_level", pa.string()),
        ("condition", pa.string()),
        ("snapshot", pa.string()),
        ("compared", pa.bool_()),  # false: other prompts, another survey or metric than the baseline's, or too few answers
        ("in_baseline", pa.bool_()),
        ("score", pa.float64()),  # mean over the prompts shared with the baseline; over all its own where not compared
        ("difference", pa.float64()),  # mean paired difference to the baseline
        ("answers_difference", pa.float64()),  # the same over the prompts that were parsed in both
        ("parse_rate", pa.float64()),
        ("n_shared", pa.int64()),  # prompts shared with the baseline
        ("n_prompts", pa.int64()),  # prompts of the snapshot
        ("log10_e", pa.float64()),  # e-value at this snapshot
        ("served_models", pa.list_(pa.string())),
        ("fingerprints", pa.list_(pa.string())),
    ]
)
"""One row a (series of MODEL_DRIFT, snapshot): the timeline."""

COSTS = pa.schema(
    [
        ("round", pa.string()),
        ("segment", pa.string()),
        ("snapshot", pa.string()),
        ("model", pa.string()),
        ("model_variant", pa.string()),
        ("condition", pa.string()),
        ("answered", pa.int64()),  # requests: one draw of one prompt, whatever number of questions it holds
        ("failed", pa.int64()),  # requests that got no answer for good; a rerun asks them again
        ("budget_stopped", pa.int64()),  # requests not sent, because a budget was reached
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost_usd", pa.float64()),  # of the answers whose price is known; null: of none
        ("unpriced", pa.int64()),  # answers whose price is unknown
    ]
)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table's columns and where it is kept; a null schema is taken from the rows written."""

    schema: pa.Schema | None
    space: Space | None = None
    """Whose partitions it is about, from the first level on; None: it is one file."""
    levels: tuple[str, ...] = ()
    """The folder levels above its files."""
