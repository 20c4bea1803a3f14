"""A page for voting on pairs without a server: one file, no network, and only content that reviewers may see.

Model texts are data of the page: the script sets them as text, and the page's policy blocks all other scripts and styles.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

from dtef_pipeline.identity import digest
from dtef_pipeline.preference.pairing import BlindedPair
from dtef_pipeline.preference.votes import CHOICE_WORDS, CONFIDENCE_WORDS, LONGEST_JUSTIFICATION, VOTE_FIELD_TITLES, VOTE_TITLE
from dtef_pipeline.site.rendering import environment
from dtef_pipeline.text.printable import make_visible


def vote_page(pairs: Sequence[BlindedPair], reviewer_id: str) -> str:
    """Render the page of these pairs for one reviewer; it exports votes as lines for `dtef import votes`."""
    style = _read_static("static/site.css") + _read_static("templates/vote_page.css")
    script = _read_static("templates/vote_page.js")
    key = f"dtef-votes-{digest(reviewer_id, *(pair.pair_id for pair in pairs))}"
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    texts = [{name: make_visible(text) for name, text in pair.serialize().items()} for pair in pairs]
    template = environment().get_template("vote_page.html.j2")
    return template.render(
        policy=policy,
        title=VOTE_TITLE,
        style=Markup(style),  # noqa: S704 - files of this package
        script=Markup(script),  # noqa: S704
        choices=CHOICE_WORDS,
        confidences=CONFIDENCE_WORDS,
        titles=VOTE_FIELD_TITLES,
        longest=LONGEST_JUSTIFICATION,
        data={"key": key, "reviewer_id": reviewer_id, "pairs": texts},
    )


def _read_static(path: str) -> str:
    return files("dtef_pipeline.site").joinpath(path).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """Return the policy's name for the only script or style allowed in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
