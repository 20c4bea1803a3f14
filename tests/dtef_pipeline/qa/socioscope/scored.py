"""Scores of answers, for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dtef_pipeline.qa.model import ItemScore, Scorer, ScorerSettings, WrittenResponse

NO_SYNONYMS = ScorerSettings(synonyms={})


def score(
    scorer: Scorer, answer: str | None, metric: Any, options: Sequence[str] = (), settings: ScorerSettings = NO_SYNONYMS
) -> ItemScore:
    """The score of one answer; a metric that is not text is written as JSON."""
    reference = metric if isinstance(metric, str) else json.dumps(metric)
    return scorer.prepare_item(reference, options, settings)(WrittenResponse(answer))
