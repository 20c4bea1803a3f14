"""Responses to prompts of blueprints for paired comparison, under the same system prompt. A conversation's text is all turns of the model."""

from __future__ import annotations

from dtef_pipeline.preference.paired_source import MetricSource, PairedSource

_VARIANTS = "(SELECT DISTINCT model, model_variant FROM rubric_responses)"
_RUBRIC_METRICS = (
    MetricSource(
        ("rubric_board", "rubric_responses"),
        f"""
        SELECT 'all' AS partition, model_variant AS player, 'higher' AS direction, 'hybrid score' AS metric,
               score AS value, low, high, n_responses_scored AS n
        FROM rubric_board JOIN {_VARIANTS} USING (model) WHERE cut = 'overall'
        """,
    ),
    MetricSource(
        ("rubric_board", "rubric_responses"),
        f"""
        SELECT blueprint AS partition, model_variant AS player, 'higher' AS direction, blueprint || ': hybrid score' AS metric,
               score AS value, low, high, n_responses_scored AS n
        FROM rubric_board JOIN {_VARIANTS} USING (model) WHERE cut = 'blueprint'
        """,
    ),
)
"""Boards of rubrics know models by name: two variants of one name share their score."""
RUBRIC_PAIRED = PairedSource(
    ("rubric_responses",),
    """
    SELECT blueprint AS first, '' AS second,
           blueprint || '/' || prompt || COALESCE(' [system ' || system_index || ']', '') AS item_id,
           model, served_model, model_variant AS player, draw, snapshot,
           [one FOR one IN transcript IF one.role <> 'assistant'] AS messages, text, request_keys
    FROM rubric_responses
    WHERE status = 'ok' AND text IS NOT NULL
    """,
    _RUBRIC_METRICS,
)
