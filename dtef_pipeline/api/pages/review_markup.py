"""What a reviewer reads and fills in: two texts, the fields of a vote, and what becomes of it. Nothing here says who wrote a text."""

from __future__ import annotations

from typing import NamedTuple

from dtef_pipeline.api.pages.elements import Content, Html, element, html
from dtef_pipeline.preference.blinded_pair import BlindedPair
from dtef_pipeline.preference.vote_words import CONFIDENCE_TITLE, CONFIDENCE_WORDS, JUSTIFICATION_TITLE, PREFERRED_TITLE
from dtef_pipeline.preference.votes import LONGEST_JUSTIFICATION
from dtef_pipeline.site.vote_page import choice_fields
from dtef_pipeline.text.counted import counted
from resources.votes.waiting_pairs import ReviewerProgress

REVIEW_PATH = "/review"
CONSENT_PATH = "/review/consent"
ALL_DONE = "You have voted on every pair there is. Thank you."
_PREFERRED_WORDS = {"A": "A", "tie": "tie", "B": "B"}
_REVIEW_KEYS = (
    ("A, T, B", "A is better, a tie, B is better; the arrows to the left and right are A and B"),
    ("1 to 5", "how certain you are"),
    ("Enter", "vote and go on"),
    ("S", "skip"),
    ("J", "write why; Escape leaves that field, and Ctrl with Enter votes from within it"),
    ("?", "show or hide this list"),
)
_TASK = (
    (
        "A and B",
        "Two texts that answer the same. Different models or personas wrote them. Which ones is hidden: their names are replaced by "
        "[model], and which text stands as A is drawn for each pair, so that the place says nothing.",
    ),
    (
        "Better",
        "Choose the text that does better what was asked. A tie means that neither is better, be both good or both bad.",
    ),
    ("How certain", "From 1, hardly, to 5, fully. Nothing is chosen before you choose."),
    ("Why", f"A reason in your own words, of at most {counted(LONGEST_JUSTIFICATION, 'character')}. It may stay empty."),
    ("Skip", "The pair comes again later. That you skipped it is not stored."),
)


class FilledForm(NamedTuple):
    """What a reviewer has filled in, as texts of a form."""

    pair_id: str = ""
    choice: str = ""
    confidence: str = ""
    justification: str = ""
    skipped: tuple[str, ...] = ()
    """Ids of pairs that come later, the one that was skipped first in front."""


def progress(counts: ReviewerProgress) -> Html:
    """How many votes the reviewer has given, and how many pairs are left."""
    voted = f"You have voted on {counted(counts.voted, 'pair')}"
    left = f"{'' if counts.is_exact else 'about '}{counts.left:,} {'is' if counts.left == 1 else 'are'} left"
    return element("p", f"{voted}; {left}.", id="counts", class_="how")


def pair_texts(pair: BlindedPair) -> Html:
    """What was asked, and both texts, as texts: nothing in them is markup."""
    asked = element(
        "section", element("h2", "What was asked", id="asked", tabindex=-1), _written("prompt", pair.prompt), class_="asked"
    )
    sides = [
        element("section", element("h2", side, id=side), _written(f"run-{side.lower()}", text), aria_labelledby=side)
        for side, text in (("A", pair.run_a), ("B", pair.run_b))
    ]
    return element("div", asked, element("div", sides, class_="texts"), id="pair")


def _written(name: str, text: str) -> Html:
    shown = text if text.strip() else element("em", "(this text is empty)")
    return element("div", shown, id=name, class_="written", dir="auto", tabindex=0)


def vote_bar(form: FilledForm, said: Content, is_fault: bool) -> Html:
    """The form of a vote. `said`: what became of the vote before, or is wrong with this one."""
    fields = element(
        "div",
        Html(choice_fields(PREFERRED_TITLE, "choice", _PREFERRED_WORDS, form.choice)),
        Html(choice_fields(CONFIDENCE_TITLE, "confidence", CONFIDENCE_WORDS, form.confidence)),
        _reason(form.justification),
        class_="fields",
    )
    does = element(
        "div",
        element("button", "Vote and go on", type="submit", name="do", value="vote", id="vote", class_="main"),
        element("button", "Skip", type="submit", name="do", value="skip", id="skip", formnovalidate=True),
        element("span", said, id="said", role="status", class_="fault" if is_fault else None),
        class_="does",
    )
    hidden = element(
        "div", _hidden("pair_id", form.pair_id), _hidden("skipped", ".".join(form.skipped)), id="of-pair", hidden=True
    )
    return element(
        "form", hidden, fields, does, method="post", action=REVIEW_PATH, id="ballot", class_="bar", autocomplete="off",
        aria_label="Your vote",
    )  # fmt: skip


def _hidden(name: str, value: str) -> Html:
    return element("input", type="hidden", name=name, value=value)


def _reason(words: str) -> Html:
    # The first line feed in a field of several lines is none of its text.
    field = element(
        "textarea", f"\n{words}", id="why", name="justification", maxlength=LONGEST_JUSTIFICATION, aria_labelledby="why-title",
        aria_describedby="written-so-far",
    )  # fmt: skip
    count = element("span", f"at most {counted(LONGEST_JUSTIFICATION, 'character')}", id="written-so-far", class_="count")
    return element(
        "details", element("summary", JUSTIFICATION_TITLE, id="why-title"), field, count, id="reason", open=bool(words)
    )


def key_list() -> Html:
    """The keys, which a reviewer can show and hide."""
    rows = [(element("dt", element("kbd", key)), element("dd", said)) for key, said in _REVIEW_KEYS]
    return element("details", element("summary", "Keys"), element("dl", rows), id="keys")


def task(reviewer_id: str, consent: bool | None, skipped: tuple[str, ...] = ()) -> Html:
    """What a reviewer is to do, what is stored of it, and whether exports may show the id. `consent`: None: not asked yet."""
    rows = [(element("dt", name), element("dd", said)) for name, said in _TASK]
    stored = (
        f"Stored are your vote, your id ({reviewer_id}) and the time, in the database of this project. A vote cannot be changed; an "
        "administrator can have it count no more. Exports for research show your id only if you allow it, and otherwise another one that is "
        "made up for that export."
    )
    box = element("input", type="checkbox", name="consent", value="yes", checked=consent is True)
    asked = element(
        "form",
        element("label", box, f" Exports may show my id, {reviewer_id}.", class_="consent"),
        _hidden("skipped", ".".join(skipped)),
        element("button", "Begin" if consent is None else "Keep this answer", type="submit", class_="main"),
        element("p", "You can change that at any time on this page.", class_="how"),
        method="post",
        action=CONSENT_PATH,
        autocomplete="off",
    )
    words = html(element("dl", rows), element("p", stored), asked)
    if consent is None:
        return element("div", words, id="task")
    return element("details", element("summary", "The task, and what is stored"), words, id="task")
