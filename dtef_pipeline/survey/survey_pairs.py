"""Predictions that can be paired: one per request, identified by the first of its questions."""

from __future__ import annotations

from dtef_pipeline.preference.paired_source import MetricSource, PairedSource

_SURVEY_METRICS = MetricSource(
    ("leaderboard",),
    """
    SELECT 'all' AS partition, model_variant AS player, 'higher' AS direction,
           metric || ' [context ' || context_level || ', ' || condition || ']' AS metric, score AS value, score_low AS low, score_high AS high,
           n_pairs AS n
    FROM leaderboard WHERE targets = 'clean'
    """,
)
SURVEY_PAIRED = PairedSource(
    ("predictions", "blueprints"),
    """
    SELECT r.round AS first, r.segment AS second,
           r.round || '/' || r.segment || '/' || r.question_id || ' [' || r.context_level || ', ' || r.condition || ']' AS item_id,
           r.model, r.served_model, r.model_variant AS player, r.draw, r.snapshot,
           [{'role': 'system', 'text': p.system}, {'role': 'user', 'text': p.user}] AS messages,
           r.response AS text, [r.request_key] AS request_keys
    FROM predictions r
    JOIN blueprints p USING (round, segment, question_id, context_level, condition, prompt_id)
    WHERE r.call_status = 'answered' AND r.response IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY r.request_key ORDER BY r.question_id, p.reading) = 1
    """,
    (_SURVEY_METRICS,),
)
