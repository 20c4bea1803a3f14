"""The fields of a vote as markup: with the same words on a page without a server and on a server's."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

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


def choice_fields(title: str, name: str, words: Mapping[str, str], chosen: str | None = None, further: str = "") -> str:
    """One radio button per value under a title. `chosen`: the value that is; `further`: attributes of each button, as markup."""
    radios = "".join(
        f'<label><input type="radio" name="{name}" value="{value}"{further}{" checked" if value == chosen else ""}> {escape(said)}</label>'
        for value, said in words.items()
    )
    return f'<div class="choices" role="radiogroup" aria-labelledby="of-{name}"><b id="of-{name}">{escape(title)}</b>{radios}</div>'
