"""What the scorer of items with options reads."""

from __future__ import annotations

from collections.abc import Sequence

from dtef_pipeline.qa.model import ItemScore, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.reading.choice import ExactChoice, LetterReading


def score_choice(response: str | None, reference: str, options: Sequence[str], finish_reason: str | None = None) -> ItemScore:
    return ExactChoice().prepare_item(reference, tuple(options), ScorerSettings())(WrittenResponse(response, finish_reason))


def read_letter(text: str, options: Sequence[str] = (), *, was_cut: bool = False) -> LetterReading:
    """What the scorer of an item without a reference reads."""
    score = score_choice(text, "", options, "length" if was_cut else None)
    return LetterReading(score.details["letter"], score.read_by, score.flags)
