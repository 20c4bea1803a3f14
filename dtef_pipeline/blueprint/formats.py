"""How context questions are shown: the formats, each with its heading and the text of one question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtef_pipeline.blueprint.narrative import narrative
from dtef_pipeline.blueprint.wording import options_listed, percent, shares_listed

_HEADING = "How this group answered other questions of the same survey"
_BESIDE_EVERYONE: Mapping[str, str] = {
    "attribute-label": _HEADING,
    "distribution-context": f"{_HEADING}, with the answers of all respondents in parentheses",
    "narrative": f"{_HEADING}, and how it differs from all respondents",
}


def context_heading(form: str, *, population_known: bool) -> str:
    """The heading above the context questions; it speaks of all respondents only where their answers are known."""
    return _BESIDE_EVERYONE[form] if population_known else _HEADING


def context_question(row: Mapping[str, Any], form: str, *, show_n: bool) -> str:
    """One context question with the group's answers; `row`: its `survey_responses` row."""
    asked = f"Question: {row['question_text']}" + (f" ({row['n']} respondents)" if show_n else "")
    return f"{asked}\n{_answers(row, form)}"


def _answers(row: Mapping[str, Any], form: str) -> str:
    options, observed, population = row["options"], row["observed"], row["population"]
    if form == "narrative":
        return narrative(options, observed, population)
    if form == "distribution-context" and population:
        beside = zip(options, observed, population, strict=True)
        return options_listed([f"{option}: {percent(own)} ({percent(everyone)})" for option, own, everyone in beside])
    return shares_listed(options, observed)
