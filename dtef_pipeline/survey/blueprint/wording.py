"""Texts of a prompt that do not depend on the form of the answer: profile, lists of options, target questions."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class People:
    """The names that a prompt uses for the people whose answers it predicts."""

    name: str
    one: str
    some: str
    everyone: str
    were: str


GROUP = People("this group", "a person of this group", "people of this group", "Everyone in this group", "This group was")
RESPONDENTS = People("the respondents", "a respondent", "respondents", "Every respondent", "The respondents were")


def people(profile: str) -> People:
    """Return the names for a profile, `segment` or `population`."""
    return RESPONDENTS if profile == "population" else GROUP


ATTRIBUTE_LABELS = {
    "ageGroup": "Age",
    "aiConcern": "Feeling about the growing use of AI in daily life",
    "country": "Country",
    "environment": "Place of residence",
    "gender": "Gender",
    "language": "Language",
    "religion": "Religion",
    "ukRegion": "Region of the United Kingdom",
}


def format_option_letter(index: int) -> str:
    """Return a, b, ..., z, aa, ab, ..."""
    first, last = divmod(index, 26)
    return (string.ascii_lowercase[first - 1] if first else "") + string.ascii_lowercase[last]


def format_attribute(attribute: str) -> str:
    """Return `ageGroup` as a label. An attribute of another survey is split at its capitals."""
    return ATTRIBUTE_LABELS.get(attribute) or re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", attribute).capitalize()


def format_percent(share: float) -> str:
    """Return a fraction as prompts write it: 0.4521 is `45.2%`."""
    return f"{100 * share:.1f}%"


def join_words(items: Sequence[str], word: str = "and") -> str:
    """Return `x`, `x and y`, or `x, y and z`. `word` stands before the last item."""
    *first, last = items
    return f"{', '.join(first)} {word} {last}" if first else last


def profile(attribute: str, value: str) -> str:
    """Return the demographic profile. A segment of several attributes (`ageGroup+country`, `18-25, Kenya`) has a line for each."""
    attributes = attribute.split("+")
    values = value.split(", ") if len(attributes) > 1 else [value]
    lines = [f"{format_attribute(a)}: {v}" for a, v in zip(attributes, values, strict=True)]
    return "Demographic group\n" + "\n".join(lines)


POPULATION_PROFILE = "Respondents\nAll respondents of the survey"
"""The profile for prompts about all respondents."""


def list_lettered_options(options: Sequence[str]) -> str:
    return "\n".join(f"{format_option_letter(i)}. {option}" for i, option in enumerate(options))


def list_lettered_shares(options: Sequence[str], shares: Sequence[float]) -> str:
    """Return one line per option, with its letter and its share in percent."""
    return list_lettered_options([f"{option}: {format_percent(share)}" for option, share in zip(options, shares, strict=True)])


def write_target_questions(questions: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return the questions of a batch (text and options of each), named Q1, Q2, ..."""
    blocks = [
        f"{make_batch_key(place)}. {text}\n{list_lettered_options(options)}" for place, (text, options) in enumerate(questions)
    ]
    return "\n\n".join(["Questions to predict" if len(blocks) > 1 else "Question to predict", *blocks])


def make_batch_key(place: int) -> str:
    """Return a question's name in its batch: `Q1` at place 0."""
    return f"Q{place + 1}"
