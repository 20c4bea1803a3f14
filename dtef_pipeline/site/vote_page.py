"""A page on which a reviewer without a server votes on pairs: one file, no network, and nothing in it but what a reviewer may see.

Texts of models are data of the page: the script sets them as text, and no other script or style is allowed to run (the page's own policy).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files

from markupsafe import Markup

from dtef_pipeline.identity import digest
from dtef_pipeline.preference import vote_words
from dtef_pipeline.preference.blinded_pair import BlindedPair
from dtef_pipeline.preference.votes import CHOICES, LONGEST_JUSTIFICATION
from dtef_pipeline.site.rendering import environment

_SITE_FILES = files("dtef_pipeline.site")


def vote_page(pairs: Sequence[BlindedPair], reviewer_id: str) -> str:
    """The page of these pairs for one reviewer, whose votes it hands out as lines for `dtef import votes`."""
    style = _SITE_FILES.joinpath("static", "site.css").read_text(encoding="utf-8") + vote_style()
    script = _SITE_FILES.joinpath("templates", "vote", "vote_page.js").read_text(encoding="utf-8")
    key = f"dtef-votes-{digest(reviewer_id, *(pair.pair_id for pair in pairs))}"
    return (
        environment()
        .get_template("vote/vote_page.html.j2")
        .render(
            words=vote_words,
            choices={value: value for value in CHOICES},
            longest=LONGEST_JUSTIFICATION,
            data={"key": key, "reviewer_id": reviewer_id, "pairs": [pair.as_json() for pair in pairs]},
            style=Markup(style),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            style_hash=_hash(style),
            script_hash=_hash(script),
        )
    )


def vote_style() -> str:
    """The rules of the texts and fields of a vote, which stand behind those of a page."""
    return _SITE_FILES.joinpath("templates", "vote", "vote_page.css").read_text(encoding="utf-8")


def choice_fields(title: str, name: str, words: Mapping[str, str], chosen: str | None = None) -> Markup:
    """One radio button per value under a title, one of which must be chosen. `chosen`: the value that is."""
    fields = environment().get_template("vote/vote_fields.html.j2").module.choices  # type: ignore[attr-defined]
    return Markup(fields(title, name, words, chosen, True))  # noqa: S704 - the template has escaped it


def _hash(content: str) -> str:
    """How a policy names the one script or style that may stand in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
