"""A page on which a reviewer without a server votes on pairs: one file, no network, and nothing in it but what a reviewer may see.

Texts of models are data of the page: the script sets them as text, and no other script or style is allowed to run (the page's own policy).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from dtef_pipeline.identity import digest
from dtef_pipeline.preference.blinded_pair import BlindedPair
from dtef_pipeline.preference.votes import CHOICES, LONGEST_JUSTIFICATION
from dtef_pipeline.report.page_files import packed
from dtef_pipeline.report.style import style_sheet
from dtef_pipeline.report.vote_fields import (
    CONFIDENCE_TITLE,
    CONFIDENCE_WORDS,
    JUSTIFICATION_TITLE,
    PREFERRED_TITLE,
    VOTE_TITLE,
    choice_fields,
)

_VOTE_SCRIPT = files("dtef_pipeline.report").joinpath("vote_page.js").read_text(encoding="utf-8")
_VOTE_STYLE = files("dtef_pipeline.report").joinpath("vote_page.css").read_text(encoding="utf-8")


def vote_page(pairs: Sequence[BlindedPair], reviewer_id: str) -> str:
    """The page of these pairs for one reviewer, whose votes it hands out as lines for `dtef import votes`."""
    style = style_sheet([_VOTE_STYLE])
    key = f"dtef-votes-{digest(reviewer_id, *(pair.pair_id for pair in pairs))}"
    data = {"key": key, "reviewer_id": reviewer_id, "pairs": [pair.as_json() for pair in pairs]}
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(_VOTE_SCRIPT)}; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
        f"<title>{VOTE_TITLE}</title><style>{style}</style></head><body>{_VOTE_HEAD}{_VOTE_FORM}"
        f'<script type="application/json" id="pairs">{packed(data)}</script><script>{_VOTE_SCRIPT}</script></body></html>\n'
    )


def _hash(content: str) -> str:
    """How a policy names the one script or style that may stand in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


_VOTE_HEAD = (
    f'<header id="top"><h1>{VOTE_TITLE}</h1><p class="how">Read what was asked and the two texts, then vote below. Keys: A, B or T for '
    "a tie, 1 to 5 for how certain you are, Enter to vote, S to skip, Z to go back. Your votes stay in this browser until you download them.</p>"
    '<div class="progress"><progress id="progress" aria-labelledby="where"></progress><span id="where" aria-live="polite"></span>'
    '<div id="skipped" role="group" aria-label="Skipped pairs" hidden></div></div>'
    '<p id="lost" role="alert" hidden>This browser does not keep your votes: download them before you close the page.</p>'
    "<noscript><p>This page needs JavaScript.</p></noscript></header>"
)
_VOTE_FORM = (
    '<main><section class="asked" aria-labelledby="asked"><h2 id="asked">What was asked</h2>'
    '<div class="written" id="prompt" dir="auto" tabindex="0"></div></section><div class="texts">'
    + "".join(
        f'<section aria-labelledby="{side}"><h2 id="{side}">{side}</h2>'
        f'<div class="written" id="run-{side.lower()}" dir="auto" tabindex="0"></div></section>'
        for side in ("A", "B")
    )
    + '</div></main><div class="bar" role="region" aria-label="Your vote"><div class="fields">'
    + choice_fields(PREFERRED_TITLE, "choice", {value: value for value in CHOICES})
    + choice_fields(CONFIDENCE_TITLE, "confidence", CONFIDENCE_WORDS)
    + f'<details id="reason"><summary>{JUSTIFICATION_TITLE}</summary>'
    f'<textarea id="why" aria-label="Why" maxlength="{LONGEST_JUSTIFICATION}"></textarea></details></div><div class="does">'
    '<button type="button" id="vote">Vote and go on</button>'
    '<button type="button" id="back">Back</button><button type="button" id="on">Skip</button>'
    '<button type="button" id="download">Download votes</button><span id="said" role="status"></span></div></div>'
)
