"""The words of the fields of a vote, the same on a page without a server and on a server's."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.preference.votes import MOST_CONFIDENT

PREFERRED_TITLE, CONFIDENCE_TITLE, JUSTIFICATION_TITLE = "Better", "How certain", "Why (may stay empty)"
VOTE_TITLE = "Which text is better?"
VOTE_FIELD_TITLES: Mapping[str, str] = {
    "choice": PREFERRED_TITLE,
    "confidence": CONFIDENCE_TITLE,
    "justification": JUSTIFICATION_TITLE.partition(" (")[0],
}
"""By field of a vote, what forms call it."""
CONFIDENCE_WORDS: Mapping[str, str] = {
    str(place): {1: "1 hardly", MOST_CONFIDENT: f"{MOST_CONFIDENT} fully"}.get(place, str(place))
    for place in range(1, MOST_CONFIDENT + 1)
}
"""By value of the field, what stands beside it."""
