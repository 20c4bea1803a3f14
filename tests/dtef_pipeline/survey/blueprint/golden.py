"""The golden prompts: what a small survey is asked in every condition, word for word, one readable file per task in `golden/`.

After a deliberate change of the prompts, which makes every stored answer to them obsolete, write the files again and read the difference:

    python -m tests.dtef_pipeline.survey.blueprint.golden
"""

from __future__ import annotations

import tomllib
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

_INPUTS = tomllib.loads(Path(__file__).with_name("golden_survey.toml").read_text(encoding="utf-8"))


def segments() -> list[pa.Table]:
    """`survey_responses` of the two segments."""
    return [
        survey_rows(
            *(
                {**asked, **segment, "n": n, "observed": observed}
                for asked, n, observed in zip(_INPUTS["questions"], segment["n"], segment["observed"], strict=True)
            )
        )
        for segment in _INPUTS["segments"]
    ]


def conditions_of(task: str) -> list[str]:
    """Every combination of context format, reasoning and structure for a task."""
    return [
        BlueprintOptions(format=form, task=task, reasoning=reasoning, structured=structured).condition
        for form, reasoning, structured in product(FORMATS, REASONINGS, (False, True))
    ]


FILES: Mapping[str, Sequence[str]] = {**{f"{task}.md": conditions_of(task) for task in TASKS}, **_INPUTS["conditions"]}


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
