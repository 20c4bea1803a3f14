"""Responses to prompts of blueprints as they may stand in pairs: under one system prompt. Of a conversation, all that the model wrote."""

from __future__ import annotations

from dtef_pipeline.preference.paired_source import PairedSource

RUBRIC_PAIRED = PairedSource(
    ("rubric_responses",),
    """
    SELECT blueprint AS first, '' AS second,
           blueprint || '/' || prompt || COALESCE(' [system ' || system_index || ']', '') AS item_id,
           model, model_variant AS player, draw, snapshot,
           [one FOR one IN transcript IF one.role <> 'assistant'] AS messages, text, request_keys
    FROM rubric_responses
    WHERE status = 'ok' AND text IS NOT NULL
    """,
)
