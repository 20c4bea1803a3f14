"""What the fields of a vote are called: with the same words on a page without a server and on a server's."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.preference.votes import MOST_CONFIDENT

VOTE_TITLE = "Which text is better?"
VOTE_FIELD_TITLES: Mapping[str, str] = {"choice": "Better", "confidence": "How certain", "justification": "Why"}
"""By field of a vote, what forms call it."""
CONFIDENCE_WORDS: Mapping[str, str] = {
    str(place): {1: "1 hardly", MOST_CONFIDENT: f"{MOST_CONFIDENT} fully"}.get(place, str(place))
    for place in range(1, MOST_CONFIDENT + 1)
}
"""By value of the field, what stands beside it."""
CHOICE_WORDS: Mapping[str, str] = {"A": "A", "tie": "tie", "B": "B"}
"""By value of the field, what stands beside it, in the order of the texts."""
