"""The words of a prompt: system prompt, demographic profile, context questions, target question."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

SYSTEM_PROMPT = (
    "You are an analyst of demographic survey data. For one group of people you estimate which percentage of the group chose "
    "each answer option of a survey question. Base the estimate on the group described and on any answers of the same group "
    "that are shown. Reply with a JSON array of numbers only: one percentage per answer option, in the order in which the "
    "options are listed, adding up to 100. Example for four options: [45.2, 30.1, 15.5, 9.2]"
)

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


def option_letter(index: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    first, last = divmod(index, 26)
    return (string.ascii_lowercase[first - 1] if first else "") + string.ascii_lowercase[last]


def attribute_label(attribute: str) -> str:
    """`ageGroup` as people read it; an attribute of another survey is split at its capitals."""
    return ATTRIBUTE_LABELS.get(attribute) or re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", attribute).capitalize()


def profile(attribute: str, value: str) -> str:
    """The demographic profile; a segment of several attributes (`ageGroup+country`, `18-25, Kenya`) has a line each."""
    attributes = attribute.split("+")
    values = value.split(", ") if len(attributes) > 1 else [value]
    lines = [f"{attribute_label(a)}: {v}" for a, v in zip(attributes, values, strict=True)]
    return "Demographic group\n" + "\n".join(lines)


def context_question(text: str, options: Sequence[str], observed: Sequence[float], n: int | None) -> str:
    """One context question with the group's actual answers, in percent; `n` only when the model is to see it."""
    asked = f"Question: {text}" if n is None else f"Question: {text} ({n} respondents)"
    answers = [
        f"{option_letter(i)}. {option}: {100 * share:.1f}%"
        for i, (option, share) in enumerate(zip(options, observed, strict=True))
    ]
    return "\n".join([asked, *answers])


def target_question(text: str, options: Sequence[str]) -> str:
    """The question to predict, its options and the form of the answer."""
    listed = [f"{option_letter(i)}. {option}" for i, option in enumerate(options)]
    return "\n".join(
        [
            "Question to predict",
            text,
            *listed,
            "",
            f"Which percentage of this group chose each option? Reply with only a JSON array of {len(options)} numbers that "
            "add up to 100, in the order of the options.",
        ]
    )


CONTEXT_HEADING = "How this group answered other questions of the same survey"
