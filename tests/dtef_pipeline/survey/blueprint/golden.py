"""The golden prompts: what a small survey is asked in every condition, word for word, one readable file per task in `golden/`.

After a deliberate change of the prompts, which makes every stored answer to them obsolete, write the files again and read the difference:

    python -m tests.dtef_pipeline.survey.blueprint.golden
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from dtef_pipeline.survey.blueprint.options import FORMATS, REASONINGS, TASKS, BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from tests.made.scores import survey_rows

FOLDER = Path(__file__).parent / "golden"
TARGET = "lonely"
OWN_SYSTEM = {"plain-words": "You answer questions about surveys in plain words."}

_TRUST = ["Strongly distrust", "Somewhat distrust", "Neither trust nor distrust", "Somewhat trust", "Strongly trust"]
_ASKED: Sequence[dict[str, Any]] = (
    {
        "question_id": "ai-feeling",
        "question_text": "Overall, would you say the increased use of artificial intelligence (AI) in daily life makes you feel…",
        "options": ["More excited than concerned", "Equally concerned and excited", "More concerned than excited"],
        "population": [0.363, 0.537, 0.1],
    },
    {
        "question_id": "trust-doctor",
        "question_text": "To what extent, if at all, do you trust your family doctor?",
        "options": _TRUST,
        "population": [0.02, 0.08, 0.155, 0.42, 0.325],
    },
    {
        "question_id": TARGET,
        "question_text": "How often do you feel this way?\n“I feel alone.”",
        "options": ["Never", "Rarely", "Sometimes", "Often"],
        "population": [0.241, 0.329, 0.314, 0.116],
    },
    {
        "question_id": "own-home",
        "question_text": "Do you own the home you live in?",
        "options": ["Yes", "No"],
        "population": [0.496, 0.504],
    },
    {
        "question_id": "ai-feeling-again",
        "question_text": "Overall, would you say the increased use of artificial intelligence (AI) in daily life makes you feel…",
        "options": ["More excited than concerned", "Equally concerned and excited", "More concerned than excited"],
        "duplicate_of": "ai-feeling",
        "population": [0.4, 0.5, 0.1],
    },
)
_ANSWERED: Mapping[tuple[str, str, str], Sequence[tuple[int, list[float]]]] = {
    ("country:kenya", "country", "Kenya"): (
        (116, [0.259, 0.672, 0.069]),
        (115, [0.0, 0.061, 0.061, 0.548, 0.33]),
        (115, [0.183, 0.296, 0.391, 0.13]),
        (112, [0.5, 0.5]),
        (110, [0.31, 0.62, 0.07]),
    ),
    ("ageGroup+environment:18-25", "ageGroup+environment", "18-25, Rural"): (
        (48, [1.0, 0.0, 0.0]),
        (48, [0.2, 0.2, 0.2, 0.2, 0.2]),
        (47, [0.24, 0.33, 0.31, 0.12]),
        (46, [0.496, 0.504]),
        (48, [0.4, 0.4, 0.2]),
    ),
}


def segments() -> list[pa.Table]:
    """`survey_responses` of the two segments."""
    return [
        survey_rows(
            *(
                {**asked, "segment": segment, "attribute": attribute, "value": value, "n": n, "observed": observed}
                for asked, (n, observed) in zip(_ASKED, answers, strict=True)
            )
        )
        for (segment, attribute, value), answers in _ANSWERED.items()
    ]


def conditions_of(task: str) -> list[str]:
    """Every combination of context format, reasoning and structure for a task."""
    return [
        BlueprintOptions(format=form, task=task, reasoning=reasoning, structured=structured).condition
        for form, reasoning, structured in product(FORMATS, REASONINGS, (False, True))
    ]


FILES: Mapping[str, Sequence[str]] = {
    **{f"{task}.md": conditions_of(task) for task in TASKS},
    "population.md": [
        *(f"{task}/{form}+population" for task in TASKS if task != "shift" for form in ("attribute-label", "narrative")),
        "distribution+population+cot",
        "distribution+population+structured+cot",
        "distribution/narrative+population+show-n",
        "distribution+population+system=brief",
        "distribution+population+system=persona",
        "synthetic-individuals=1+population",
    ],
    "variants.md": [
        "distribution+reversed",
        "distribution+rotated-1",
        "distribution+rotated-6",
        "distribution/distribution-context+random+show-n",
        "distribution+random+seed=7",
        "distribution/narrative+show-n",
        "distribution+tokens=400+reserve=60",
        "distribution+system=brief",
        "distribution+system=persona",
        "distribution+system=none",
        "distribution+system=plain-words",
        "shift+rotated-3",
        "shift+cot+reversed+system=persona",
        "synthetic-individuals=1",
        "synthetic-individuals=50+reversed+structured",
        "synthetic-individuals+cot+system=none",
        "batch=2+reversed",
        "batch=5+cot+structured+rotated-1",
        "batch=4+system=brief",
    ],
}


def document(conditions: Sequence[str]) -> str:
    """One section per condition: what is stored and what the model sees, for one question (or its batch) of each segment.

    The second segment's text stands where the condition has no flags: elsewhere its hash is enough.
    """
    return "".join(f"## {condition}\n\n{_section(condition)}\n" for condition in conditions)


def _section(condition: str) -> str:
    options = BlueprintOptions.parse_condition(condition, ("2",), OWN_SYSTEM)
    kenya, young = (_prompt(table, options) for table in segments())
    shared = [f"- {name}: {kenya[name]}" for name in ("answer_tokens", "response_schema")]
    system = ["", _quoted("system", kenya["system"]), ""]
    parts = [*_of_prompt(kenya, in_full=True), *_of_prompt(young, in_full="+" not in condition)]
    return "\n".join([*shared, *system, *parts])


def _prompt(table: pa.Table, options: BlueprintOptions) -> dict[str, Any]:
    rows: list[dict[str, Any]] = build_blueprints(table, options).to_pylist()
    return next(row for row in rows if row["question_id"] == TARGET)


def _of_prompt(row: dict[str, Any], *, in_full: bool) -> Iterator[str]:
    names = ("prompt_id", "blueprint_hash", "reading", "tokens", "context_question_ids")
    yield f"### {row['segment']}"
    yield ""
    yield from (f"- {name}: {row[name]}" for name in names)
    yield ""
    if in_full:
        yield _quoted("user", row["user"])
        yield ""


def _quoted(what: str, text: str) -> str:
    return f"```{what}\n{text}\n```"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, conditions in FILES.items():
        (FOLDER / name).write_text(document(conditions), encoding="utf-8")
