"""The form of answer that a prompt asks for is the form that is read: an answer that obeys comes back as it was meant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.survey.blueprint.options import PROFILES, REASONINGS, TASKS, BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.blueprint.wording import format_option_letter
from dtef_pipeline.survey.reading.parsing import parse_responses
from tests.made.scores import survey_rows

EVERY_WAY = [
    BlueprintOptions(task=task, profile=profile, reasoning=reasoning, structured=structured, option_order=order, individuals=10)
    for task, profile, reasoning, structured, order in product(
        TASKS, PROFILES, REASONINGS, (False, True), ("given", "reversed", "rotated-2")
    )
    if (task, profile) != ("shift", "population")
]
DEEDS = [[0.5, 0.3, 0.2], [0.1, 0.9, 0.0], [0.2, 0.2, 0.6], [0.0, 0.4, 0.6]]
SURVEY = survey_rows(*({"observed": deed} for deed in DEEDS))


def obedient(rows: Sequence[dict[str, Any]], options: BlueprintOptions) -> str:
    """The answer of a model that knows the truth and keeps to the form; its reasoning holds an array that is none."""
    observed = {row["question_id"]: row["observed"] for row in SURVEY.to_pylist()}
    listed = [[observed[row["question_id"]][place] for place in options.order_of(3)] for row in rows]
    percentages = [[100 * share for share in shares] for shares in listed]
    if options.task == "batch":
        payload: dict[str, Any] = {f"Q{place + 1}": shares for place, shares in enumerate(percentages)}
    elif options.task == "synthetic-individuals":
        people = [format_option_letter(place) for place, share in enumerate(listed[0]) for _ in range(round(10 * share))]
        payload = {"answers": people}
    else:
        payload = {"distribution": percentages[0]}
    reasoning = "All respondents may be at [10, 20, 70], the group is not."
    if options.structured:
        return json.dumps({"reasoning": reasoning, **payload} if options.reasoning == "cot" else payload)
    value = json.dumps(payload if options.task == "batch" else next(iter(payload.values())))
    markers = {"batch": "DISTRIBUTIONS", "synthetic-individuals": "ANSWERS"}
    return f"{reasoning}\n{markers.get(options.task, 'DISTRIBUTION')}: {value}" if options.reasoning == "cot" else value


@pytest.mark.parametrize("options", EVERY_WAY, ids=lambda options: options.condition)
def test_an_answer_that_keeps_to_the_form_is_read_as_intended(options: BlueprintOptions) -> None:
    prompts = build_blueprints(SURVEY, options)
    rows = prompts.to_pylist()
    texts = [obedient([row for row in rows if row["prompt_id"] == one["prompt_id"]], options) for one in rows]
    parsed = parse_responses(pa.array(texts), prompts["options"].combine_chunks(), prompts["reading"].combine_chunks())
    assert parsed.status.to_pylist() == ["ok"] * len(DEEDS)
    for found, meant in zip(parsed.distribution.to_pylist(), DEEDS, strict=True):
        assert found == pytest.approx(meant)
