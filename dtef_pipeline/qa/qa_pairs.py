"""Responses that can be compared in pairs: to one item under one condition."""

from __future__ import annotations

from dtef_pipeline.preference.paired_source import MetricSource, PairedSource

_QA_METRICS = MetricSource(
    ("qa_board",),
    """
    SELECT suite AS partition, model_variant AS player, 'higher' AS direction,
           suite || ': ' || metric || ' [' || concat_ws(', ', condition, nullif(measured_by, '')) || ']' AS metric,
           score AS value, score_low AS low, score_high AS high, n_items AS n
    FROM qa_board WHERE cut = 'overall'
    """,
)
QA_PAIRED = PairedSource(
    ("qa_responses", "qa_prompts"),
    """
    SELECT r.suite AS first, r.part AS second,
           r.suite || '/' || r.part || '/' || r.item_id || ' [' || r.condition || ']' AS item_id,
           r.model, r.served_model, r.model_variant AS player, r.draw, r.snapshot, p.messages,
           r.response AS text, [r.request_key] AS request_keys
    FROM qa_responses r
    JOIN qa_prompts p USING (suite, part, item_id, condition, prompt_id)
    WHERE r.call_status = 'answered' AND r.response IS NOT NULL
    """,
    (_QA_METRICS,),
)
