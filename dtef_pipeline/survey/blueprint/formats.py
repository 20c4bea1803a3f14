"""How context questions are shown: the formats, each with its heading and the text of one question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtef_pipeline.survey.blueprint.narrative import narrative
from dtef_pipeline.survey.blueprint.wording import People, options_listed, percent, shares_listed

_BESIDE_EVERYONE: Mapping[str, str] = {
    "attribute-label": "",
    "distribution-context": ", with the answers of all respondents in parentheses",
    "narrative": ", and how it differs from all respondents",
}


def context_heading(form: str, people: People, *, population_known: bool) -> str:
    """The heading above the context questions; it compares with all respondents only where their answers are known beside the group's."""
    beside = _BESIDE_EVERYONE[form] if population_known else ""
    return f"How {people.name} answered other questions of the same survey{beside}"


def context_question(row: Mapping[str, Any], form: str, people: People, *, show_n: bool) -> str:
    """One context question with the people's answers; `row`: its `survey_responses` row."""
    asked = f"Question: {row['question_text']}" + (f" ({row['n']} respondents)" if show_n and row["n"] is not None else "")
    return f"{asked}\n{_answers(row, form, people)}"


def _answers(row: Mapping[str, Any], form: str, people: People) -> str:
    options, observed, population = row["options"], row["observed"], row["population"]
    if form == "narrative":
        return narrative(options, observed, population, people)
    if form == "distribution-context" and population:
        beside = zip(options, observed, population, strict=True)
        return options_listed([f"{option}: {percent(own)} ({percent(everyone)})" for option, own, everyone in beside])
    return shares_listed(options, observed)
