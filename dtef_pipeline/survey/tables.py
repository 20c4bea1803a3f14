"""The tables between the stages of the survey family: names, types and descriptions of their columns.

Distributions are fractions that sum to 1, in the survey's option order. Percentages exist only in files, prompts and reports.
"""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.drift.verdict_tables import PARTITION_DRIFT
from dtef_pipeline.tables import (
    ANSWERED_AT_FIELD,
    METRIC_FIELD,
    MODEL_FIELDS,
    PARSE_RATE_FIELD,
    PROMPT_FIELD,
    REPLY,
    REQUEST,
    SAMPLE_FIELDS,
    SNAPSHOT_FIELD,
    field,
)

DISTRIBUTION = pa.list_(pa.float64())

ROUND_FIELD = field("round", pa.string(), "Survey round, upper case: GD4")
SEGMENT_FIELD = field("segment", pa.string(), "Attribute and value as a slug: country:kenya")
ATTRIBUTE_FIELD = field("attribute", pa.string(), "Attribute of the segment: country")
VALUE_FIELD = field("value", pa.string(), "Value of the attribute: Kenya")
QUESTION_FIELD = field("question_id", pa.string(), "Question, unique within its round")
LEVEL_FIELD = field("context_level", pa.string(), "Context questions requested: 0, 5, 10, ..., all")
CONDITION_FIELD = field("condition", pa.string(), "Condition: task, profile and format, such as shift/narrative+cot")
TARGETS_FIELD = field("targets", pa.string(), "Questions that count: clean (without circular ones) or all (as published)")

_ORDER = field("question_order", pa.int32(), "Place of the question in the survey, from 0")
_OPTIONS = field("options", pa.list_(pa.string()), "Answer options in the survey's order")
_CIRCULAR = field("circular", pa.bool_(), "Flag: true where the question defines the segment's own attribute")
_N = field("n", pa.int32(), "Respondents of the observed distribution; null: not stated")
_BLUEPRINT = field("blueprint_hash", pa.string(), "Hash of the sorted prompt ids of this round and segment")
_PAIR_FIELDS = (ROUND_FIELD, SEGMENT_FIELD, QUESTION_FIELD)
_ASKED_FIELDS = (LEVEL_FIELD, CONDITION_FIELD)

SURVEY_RESPONSES = pa.schema(
    [
        ROUND_FIELD,
        SEGMENT_FIELD,
        ATTRIBUTE_FIELD,
        VALUE_FIELD,
        field("non_answer", pa.bool_(), "Flag: true for a segment of people who did not answer, such as party:refused"),
        QUESTION_FIELD,
        _ORDER,
        field("question_text", pa.string(), "Text of the question"),
        _OPTIONS,
        field("scale", pa.string(), "Kind of the list of options: ordinal or nominal"),
        field("scale_reason", pa.string(), "Reason for the kind of scale; names the don't-know options that are left out"),
        field("dont_know", pa.list_(pa.bool_()), "Flags, one per option: true if it is not on the scale (don't know)"),
        field(
            "positions",
            pa.list_(pa.float64()),
            "Positions of the options on the scale; null: not on the scale, or a nominal scale",
        ),
        field("observed", DISTRIBUTION, "Distribution of the segment's answers: fractions in option order that sum to 1"),
        _N,
        field(
            "n_source",
            pa.string(),
            "Source of n: question (count of the question) or segment (size of the segment); null: n is unknown",
        ),
        field(
            "n_effective",
            pa.float64(),
            "Effective sample size that ceilings, corrected errors and intervals use as n; null: not stated",
        ),
        field("segment_n", pa.int32(), "Stated size of the segment; null: the survey does not give it"),
        _CIRCULAR,
        field("duplicate_of", pa.string(), "First question of the round with the same text and options; null: none"),
        field("battery", pa.string(), "Battery of the question in its round; a question outside batteries is a battery of one"),
        field("draw_order", pa.int32(), "Place of the question in the random order that --questions N uses, from 0"),
        field("segment_order", pa.int32(), "Place of the segment in the random order that --sample-segments S uses, from 0"),
        field(
            "population",
            DISTRIBUTION,
            "Population marginal: n-weighted answer of all segments (unweighted if an n is unknown); null: one segment",
        ),
        field("population_n", pa.int64(), "Number of respondents of the population marginal; null: an n is unknown"),
        field(
            "leave_one_out_marginal",
            DISTRIBUTION,
            "Leave-one-out marginal: answer of the attribute's other segments, weighted by n; null: no other segment",
        ),
        field("leave_one_out_n", pa.int64(), "Number of respondents of the leave-one-out marginal; null: an n is unknown"),
        field("shuffled", DISTRIBUTION, "Answer of a random other segment of the round (seeded); null: no other segment"),
        field("shuffled_segment", pa.string(), "Segment behind shuffled"),
    ]
)

SURVEY_QUARANTINE = pa.schema(
    [
        ROUND_FIELD,
        SEGMENT_FIELD,
        field("question_id", pa.string(), "Question; null: the whole segment"),
        # Codes of dtef_pipeline.survey.observations.REASONS.
        field("reason", pa.string(), "Code of the fault: n-below-minimum, sum-not-100, ..."),
        field("detail", pa.string(), "Description of the fault: found and allowed values"),
        field("n", pa.int32(), "Respondents as stated in the file; null: not stated"),
        field("percentages", pa.list_(pa.float64()), "Percentages as in the file; null: a blank cell"),
        field("file", pa.string(), "File of the row"),
        field("line", pa.int32(), "Line of the file, from 1"),
    ]
)

SURVEY_FINDINGS = pa.schema(
    [
        ROUND_FIELD,
        field("level", pa.string(), "Severity: error, warning or info"),
        field("code", pa.string(), "Kind of finding: unknown-column, profile-question, open-ended-question, ..."),
        field("message", pa.string(), "Finding in a sentence"),
        field("items", pa.list_(pa.string()), "Columns, questions or segments that the finding is about"),
    ]
)

QUESTION_BATTERIES = pa.schema(
    [
        ROUND_FIELD,
        QUESTION_FIELD,
        field("question_text", pa.string(), "Text of the question"),
        field("battery", pa.string(), "Battery of the question in its round; a question outside batteries is a battery of one"),
        field("linked_battery", pa.string(), "Battery over all rounds: the cluster of intervals and tests"),
        field("reason", pa.string(), "Reason why the questions are in one battery; empty: a battery of one question"),
    ]
)
"""One row per question of a round. The linked batteries of a board's rows are its `n_batteries`."""

READING = pa.struct(
    [
        ("task", pa.string()),  # distribution: percentages | individuals: one letter per person
        ("order", pa.list_(pa.int32())),  # the option shown at each place, as its place in the survey; null: the survey's order
        ("place", pa.int32()),  # of the question among those of one prompt; null: the prompt has one question
        ("individuals", pa.int32()),  # how many people were to answer; null: not that task
        ("size", pa.int32()),  # how many questions the prompt has; null: one
        ("marked", pa.bool_()),  # reasoning comes first: only what follows the mark of the final line is the answer; null: no
    ]
)
"""How the response is read. Null: one distribution, options in the survey's order."""

BLUEPRINTS = pa.schema(
    [
        *_PAIR_FIELDS,
        *_ASKED_FIELDS,
        PROMPT_FIELD,
        _BLUEPRINT,
        field("recipe", pa.string(), "Settings of the prompt, as JSON"),
        field("system", pa.string(), "System prompt"),
        field("user", pa.string(), "User prompt"),
        _OPTIONS,
        field("reading", READING, "Form of the response; null: one distribution, options in the survey's order"),
        field("response_schema", pa.string(), "JSON schema of the response; null: free text"),
        field("answer_tokens", pa.int32(), "Smallest token limit for the response; null: the model's limit"),
        field("context_included", pa.int32(), "Context questions that fit into the prompt"),
        field("context_question_ids", pa.list_(pa.string()), "Identifiers of the context questions in the prompt"),
        field("tokens", pa.int32(), "Estimated prompt tokens, system and user"),
        _CIRCULAR,
    ]
)

PREDICTIONS = pa.schema(
    [
        ROUND_FIELD,
        SEGMENT_FIELD,
        SNAPSHOT_FIELD,
        QUESTION_FIELD,
        *_ASKED_FIELDS,
        PROMPT_FIELD,
        _BLUEPRINT,
        *REQUEST,
        field("reading", READING, "Form of the response; null: one distribution, options in the survey's order"),
        *REPLY,
    ]
)
"""The shared call columns with the keys of a pair. Baselines have no `reading`: they answer in the survey's order. Usage is in
the row of the first question that shares a prompt."""

_CHANCE = "minus sampling error: lower is better, below 0 by chance"
SCORES = pa.schema(
    [
        ROUND_FIELD,
        SEGMENT_FIELD,
        SNAPSHOT_FIELD,
        ATTRIBUTE_FIELD,
        VALUE_FIELD,
        QUESTION_FIELD,
        _ORDER,
        *_ASKED_FIELDS,
        PROMPT_FIELD,
        _BLUEPRINT,
        *MODEL_FIELDS,
        *SAMPLE_FIELDS,
        _N,
        _CIRCULAR,
        field(
            "truth_id", pa.string(), "Hash of the observed data that the prediction is scored against: options, distribution, n"
        ),
        field("status", pa.string(), "Outcome: ok, unparseable, wrong_length, error, refused, missing or budget"),
        field("reason", pa.string(), "How the response was read, or why it could not be read"),
        field("predicted", DISTRIBUTION, "Predicted distribution; null: the status is not ok"),
        METRIC_FIELD,
        field(
            "score",
            pa.float64(),
            "Score, 0-1, higher is better: the metric if ok, 0 if unparseable or refused, 0.1 for a wrong length, else null",
        ),
        field("js", pa.float64(), "Jensen-Shannon similarity (1 - distance), 0-1: higher is better"),
        field("cosine", pa.float64(), "Cosine similarity, 0-1: higher is better"),
        field("emd", pa.float64(), "Earth mover's similarity over the options in order, 0-1: higher is better"),
        field("emd_normalized", pa.float64(), "Earth mover's similarity over the scale, 0-1: higher is better; null: nominal"),
        field("tv", pa.float64(), "Total variation distance, 0-1: lower is better"),
        field("mae", pa.float64(), "Mean absolute error of the fractions, 0-1: lower is better"),
        field("top_hit", pa.float64(), "Share of predicted top options that are observed ones, 0-1: higher is better"),
        field("l2_corrected", pa.float64(), f"Squared error {_CHANCE}; null when n < 2 or unknown"),
        field("rps_corrected", pa.float64(), f"Ranked probability score {_CHANCE}; null when n < 2 or unknown, or nominal"),
        ANSWERED_AT_FIELD,
    ]
)

METRICS = ("js", "cosine", "emd", "emd_normalized", "tv", "mae", "top_hit")
"""Metric columns of `scores`. Similarities (higher is better) except `tv` and `mae`, which are distances."""
DISTANCES = ("tv", "mae")
CORRECTED = ("l2_corrected", "rps_corrected")
"""Noise-corrected errors in `scores`: unbiased for any n, lower is better, below 0 by chance."""

SIMILARITIES = pa.struct([(metric, pa.float64()) for metric in METRICS])
"""A similarity (higher is better, 1 = identical) under each metric: of a distance 1 - distance."""

REFERENCE_SCORES = pa.schema(
    [
        *_PAIR_FIELDS,
        field("cluster", pa.string(), "Hash of text and options: equal for the same question in several rounds"),
        _N,
        field(
            "gini", pa.float64(), "Unbiased estimate of the probability that two people of the segment answer differently, 0-1"
        ),
        field(
            "ceiling",
            SIMILARITIES,
            "Expected score of the true distribution in samples of n_effective (or else n) respondents, 0-1; null: n unknown",
        ),
        field("ceiling_low", SIMILARITIES, "Ceiling minus its estimated bias, 0-1"),
        field("uniform_score", SIMILARITIES, "Score of the uniform distribution, 0-1: higher is better"),
        field(
            "leave_one_out_score",
            SIMILARITIES,
            "Score of the leave-one-out marginal, 0-1: higher is better; null: no other segment",
        ),
        field(
            "population_score", SIMILARITIES, "Score of the population marginal, 0-1: higher is better; null: only one segment"
        ),
    ]
)
"""The ceiling and the baseline scores of each pair under each metric.

Written with `survey_responses`."""

_OF_QUESTION = pa.struct([("question_id", pa.string()), ("score", pa.float64()), ("n_scored", pa.int64())])
SEGMENT_RESULTS = pa.schema(
    [
        ROUND_FIELD,
        SEGMENT_FIELD,
        SNAPSHOT_FIELD,
        ATTRIBUTE_FIELD,
        VALUE_FIELD,
        *MODEL_FIELDS,
        *_ASKED_FIELDS,
        TARGETS_FIELD,
        field("n_total", pa.int64(), "Predictions"),
        field("n_scored", pa.int64(), "Predictions with a score"),
        PARSE_RATE_FIELD,
        METRIC_FIELD,
        field("score", pa.float64(), "Mean score, 0-1: higher is better; unreadable responses count 0"),
        field("score_low", pa.float64(), "Lower end of the 95 % interval of score; null with fewer than 5 batteries"),
        field("score_high", pa.float64(), "Upper end of the 95 % interval of score; null with fewer than 5 batteries"),
        *(
            field(metric, pa.float64(), f"Mean {metric} of readable responses, 0-1: {better} is better")
            for metric in METRICS
            for better in ["lower" if metric in DISTANCES else "higher"]
        ),
        field("questions", pa.list_(_OF_QUESTION), "Mean score and number of predictions of each question, in survey order"),
    ]
)

DRIFT_CHECKS = pa.schema([ROUND_FIELD, SEGMENT_FIELD, *PARTITION_DRIFT])
"""One row per model variant, setting and prompt set of a segment."""
