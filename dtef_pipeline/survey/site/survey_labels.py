"""The labels on pages: baselines, settings, attributes and segments in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.report.terminal import rename_variants
from dtef_pipeline.survey.baselines.names import (
    DIRICHLET,
    EMPIRICAL_BAYES,
    LEAVE_ONE_OUT,
    NEAREST_SEGMENTS,
    POPULATION_MARGINAL,
    PREVIOUS_ROUND,
    SHUFFLED_SEGMENT,
    UNIFORM,
)
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.blueprint.wording import format_attribute

METRIC_NAMES: Mapping[str, str] = {
    "js": "Jensen-Shannon",
    "cosine": "Cosine",
    "emd": "Earth mover",
    "emd_normalized": "Earth mover on the scale",
    "tv": "Total variation",
    "mae": "Mean error",
    "top_hit": "Top answer",
    "l2_corrected": "Squared error",
    "rps_corrected": "Ranked error",
}
"""Titles of metrics."""
_METRIC_OF_BOARD = re.compile(r"(\w+) \[context (all|[0-9]{1,6}), (.+)\]")
_SETTING_TEXT = re.compile(r"context (all|[0-9]{1,6})(?:, condition (.+))?")
BASELINE_MEANINGS: Mapping[str, tuple[str, str]] = {
    LEAVE_ONE_OUT: ("leave-one-out marginal", "the average answer of the other groups"),
    POPULATION_MARGINAL: ("population marginal", "the average answer of all groups, including the one predicted"),
    EMPIRICAL_BAYES: ("empirical Bayes", "the leave-one-out marginal, corrected by the context"),
    NEAREST_SEGMENTS: ("nearest segments", "the answer of the most similar groups"),
    PREVIOUS_ROUND: ("previous round", "the group's answer in the previous round"),
    SHUFFLED_SEGMENT: ("shuffled segment", "the answer of a random other group"),
    UNIFORM: ("uniform", "the same share for every option"),
    DIRICHLET: ("Dirichlet", "random shares"),
}
"""The name of each baseline, and what it predicts."""
MARGINAL, MARGINAL_MEANING = BASELINE_MEANINGS[LEAVE_ONE_OUT]
A_PERFECT_MODEL = "perfect model"

_CONDITION_WORDS = {
    "distribution": "asked directly",
    "shift": "given the population marginal",
    "synthetic-individuals": "answered as {} imagined people",
    "batch": "{} questions in one prompt",
    "attribute-label": "",
    "distribution-context": "context with the population marginal",
    "narrative": "context as prose",
    "population": "about the whole population",
    "cot": "reasoning first",
    "structured": "answer as JSON",
    "reversed": "options reversed",
    "random": "context drawn at random",
    "show-n": "group sizes shown",
    "rotated": "options rotated by {}",
    "system": "system prompt {}",
    "seed": "seed {}",
    "tokens": "at most {} tokens",
    "reserve": "{} tokens for the answer",
}
"""Of the task, the format and the options of a condition; {}: their value."""


def format_condition(condition: str) -> str:
    """Return `asked directly, context as prose, reasoning first` for `distribution/narrative+cot`."""
    parts = [part.partition("=") for part in re.split("[/+]", condition.replace("rotated-", "rotated="))]
    return ", ".join(filter(None, (_CONDITION_WORDS.get(name, name).format(value) for name, _, value in parts)))


def map_variant_names(board: pd.DataFrame) -> dict[str, str]:
    """Return the name on pages of each variant of a board. A model with several variants is named by its variant."""
    variants = rename_variants(board[["model", "model_variant"]].astype(str).drop_duplicates())
    return {
        variant: format_baseline_name(model) if is_computed(variant) else model
        for model, variant in zip(variants["model"], variants["model_variant"], strict=True)
    }


def format_baseline_name(model: str) -> str:
    """Return `Leave-one-out marginal`, with the seed if there are several."""
    name, _, settings = model.partition("[")
    if name not in BASELINE_MEANINGS:
        return model
    words = BASELINE_MEANINGS[name][0]
    return f"{words[0].upper()}{words[1:]}" + (f" ({settings.removesuffix(']')})" if settings else "")


def describe_baseline(model: str) -> str:
    """Return what a baseline predicts; empty for other models."""
    return BASELINE_MEANINGS.get(model.partition("[")[0], ("", ""))[1]


def format_segment_label(attribute: str, value: str) -> str:
    """Return `Kenya` or, for attributes other than countries, `Age: 18-25`."""
    return value if attribute == "country" else f"{format_attribute(attribute)}: {value}"


def partition_words(key: str) -> str:
    """Return `GD4, Kenya` for the partition `GD4/country:kenya`, and `GD4` for a round."""
    round, _, segment = key.partition("/")
    attribute, _, value = segment.partition(":")
    if not value:
        return key
    plain = re.sub(r"(?<![0-9])-|-(?![0-9])", " ", value)
    label = plain.title() if attribute == "country" else f"{plain[:1].upper()}{plain[1:]}"
    return f"{round}, {format_segment_label(attribute, label)}"


def ranked_metric_words(metric: str) -> str:
    """Return the words for a metric in preference tables, such as `js`, or `js [context 5, distribution]`."""
    match = _METRIC_OF_BOARD.fullmatch(metric)
    if match is None:
        return METRIC_NAMES.get(metric, metric)
    return f"{METRIC_NAMES.get(match[1], match[1])}, {describe_asking(match[2], match[3])}"


def describe_asking(level: str, condition: str) -> str:
    """Return `with 5 context questions, asked directly`."""
    return f"{ContextLevel(level).heading.lower()}, {format_condition(condition)}"


def describe_watched_setting(text: str) -> str:
    """Return a drift table's setting in words: `with 5 context questions` for `context 5`. Other texts are unchanged."""
    match = _SETTING_TEXT.fullmatch(text)
    if match is None:
        return text
    return describe_asking(match[1], match[2]) if match[2] else ContextLevel(match[1]).heading.lower()
