"""A run's whole result as one JSON text: prompts, responses, similarities, coverage with every judgement, scores and summaries.

Source: weval methodology, section 2, stage 4. Names are those of its result files where it has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np

from dtef_pipeline.judging.judges import consensus_id
from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.rubric.blueprint_run import (
    BlueprintRun,
    JudgedPoints,
    ResponseKey,
    RowsByPrompt,
    describe_criterion,
    make_criterion_key,
    make_response_key,
)
from dtef_pipeline.text.json_values import simplify_value

RESULT_FORMAT = "dtef-rubric-result/1"
_OF_POINT = ("score", "low", "high", "n_judges", "n_answered", "partial", "inverted", "reason", "explanation")
_OF_JUDGEMENT = (
    *("judge", "approach", "judge_model", "judge_variant", "judge_draw", "class", "score", "reflection", "reason", "error"),
    *("attempts", "list_order", "raw", "request_keys", "prompt_tokens", "completion_tokens", "cost_usd"),
)


def list_assessments(key: ResponseKey, criteria: Sequence[StoredRow], index: JudgedPoints) -> list[dict[str, Any]]:
    """Return one mapping per criterion of a response: the criterion, its score (0-1; None: unscored, with a reason) and its judgements.

    Criteria without a point or judgement are left out.
    """
    json_entries = []
    for row in criteria:
        place = (key, make_criterion_key(row))
        if place not in index.points and place not in index.judgements:
            continue
        point: Mapping[str, Any] = index.points.get(place) or dict.fromkeys(_OF_POINT)
        judgement_data = [{name: j[name] for name in _OF_JUDGEMENT if name in j} for j in index.judgements.get(place, ())]
        criterion = {name: value for name, value in row.items() if name not in ("prompt", "blueprint", "fault")}
        scores = {name: point[name] for name in _OF_POINT}
        json_entries.append({**criterion, "words": describe_criterion(row), **scores, "individual_judgements": judgement_data})
    return json_entries


def write_result_chunks(
    run: BlueprintRun, judgements: RowsByPrompt, summaries: Sequence[StoredRow], grades: Sequence[StoredRow]
) -> Iterator[str]:
    """Yield the JSON text of a run in pieces, prompt by prompt, so that memory never holds all of it. It contains no NaN.

    `judgements`: those of the run, with all columns. `summaries`, `grades`: rows of `rubric_summaries` and `rubric_grades`.
    """
    prompts = [str(row["prompt"]) for row in run.prompts]
    yield f'{{"format": {_encode_json(RESULT_FORMAT)},\n"metadata": {_encode_json(_describe_run(run))},\n"prompts": '
    yield from _write_json_list(
        {
            **convert_to_camel_case(row),
            "criteria": [_convert_part_of_prompt(c) for c in run.criteria.list_rows_of_prompt(str(row["prompt"]))],
        }
        for row in run.prompts
    )
    yield ',\n"responses": '
    yield from _write_json_object(
        (
            prompt,
            [{"modelId": run.label(row), **_convert_part_of_prompt(row)} for row in run.responses.list_rows_of_prompt(prompt)],
        )
        for prompt in prompts
    )
    yield ',\n"similarityMatrices": '
    yield from _write_json_object((prompt, _describe_similarities(run, prompt)) for prompt in prompts)
    yield ',\n"coverage": '
    yield from _write_json_object((prompt, _describe_coverage(run, prompt, judgements)) for prompt in prompts)
    yield ',\n"scores": '
    yield from _write_json_list(convert_to_camel_case(row) for row in run.scores)
    yield f',\n"executiveSummary": {_encode_json(_describe_summaries(summaries, grades))}}}\n'


def convert_to_camel_case(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with names as in result files: `model_variant` becomes modelVariant."""
    return {_camel_case_name(name): value for name, value in row.items()}


@lru_cache(maxsize=1024)
def _camel_case_name(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(map(str.capitalize, words))


def _describe_run(run: BlueprintRun) -> dict[str, Any]:
    return {
        "configId": run.id,
        "configTitle": run.header["title"],
        **convert_to_camel_case({name: run.header[name] for name in ("description", "tags", "references")}),
        "snapshot": run.snapshot,
        **convert_to_camel_case({name: value for name, value in run.run.items() if name != "snapshot"}),
        "evalMethodsUsed": ["embedding", "llm-coverage"],
        "models": run.models,
        "modelIds": list(dict.fromkeys(run.label(row, draw=False) for row in run.variants)),
        "findings": [convert_to_camel_case(row) for row in run.findings],
    }


def _convert_part_of_prompt(row: StoredRow) -> dict[str, Any]:
    return convert_to_camel_case({name: value for name, value in row.items() if name != "prompt"})


def _describe_similarities(run: BlueprintRun, prompt: str) -> dict[str, Any] | None:
    """Return the cosines of all pairs of responses, and with the ideal answer; None: no text was embedded."""
    rows = sorted(run.similarities.list_rows_of_prompt(prompt), key=lambda row: row["place"])
    if not rows:
        return None
    return {
        "modelIds": [run.label(row) for row in rows],
        "toIdeal": [row["ideal_similarity"] for row in rows],
        "matrix": _list_similarities(rows),
    }


def _list_similarities(rows: Sequence[StoredRow]) -> list[list[float | None]]:
    """Return for each response the similarities to all responses, with the digits of 32 bits."""
    places = [row["place"] for row in rows]
    matrix = np.full((len(rows), max(places) + 1), np.nan)
    for matrix_row, row in zip(matrix, rows, strict=True):
        similarities = (row["response_similarities"] or ())[: matrix.shape[1]]
        matrix_row[: len(similarities)] = similarities
    json_entries: list[list[float | None]] = matrix[:, places].round(7).tolist()
    return json_entries


def _describe_coverage(run: BlueprintRun, prompt: str, judgements: RowsByPrompt) -> list[dict[str, Any]]:
    """Return one mapping per response: the scores of its cell, and its points."""
    criteria = run.criteria.list_rows_of_prompt(prompt)
    index = run.group_judgements(prompt, judgements)
    json_entries = []
    for row in run.responses.list_rows_of_prompt(prompt):
        key = make_response_key(row)
        points = list_assessments(key, criteria, index)
        cell: Mapping[str, Any] = run.cells.get((prompt, *key[:-1])) or {}
        json_entries.append(
            {
                "modelId": run.label(row),
                "draw": row["draw"],
                "keyPointsCount": len(points),
                "avgCoverageExtent": cell.get("coverage"),
                "similarity": cell.get("similarity"),
                "hybridScore": cell.get("hybrid"),
                "pointAssessments": [_describe_assessment(point) for point in points],
            }
        )
    return json_entries


def _describe_assessment(item: Mapping[str, Any]) -> dict[str, Any]:
    details = {
        name: value
        for name, value in item.items()
        if name not in ("words", "score", "weight", "inverted", "individual_judgements")
    }
    return {
        "keyPointText": item["words"],
        "judgeModelId": consensus_id(
            judgement_data["judge"] for judgement_data in item["individual_judgements"] if judgement_data["score"] is not None
        ),
        "coverageExtent": item["score"],
        "multiplier": item["weight"],
        "isInverted": item["inverted"],
        **convert_to_camel_case(details),
        "individualJudgements": [
            {
                "judgeModelId": judgement_data["judge"],
                "coverageExtent": judgement_data["score"],
                **convert_to_camel_case(
                    {name: value for name, value in judgement_data.items() if name not in ("judge", "score")}
                ),
            }
            for judgement_data in item["individual_judgements"]
        ],
    }


def _describe_summaries(summaries: Sequence[StoredRow], grades: Sequence[StoredRow]) -> list[dict[str, Any]] | None:
    """Return the summary of each analyst, or None if there is none."""
    summary_rows = [row for row in summaries if row["analyst"] is not None]
    json_entries = [
        {
            **convert_to_camel_case(row),
            "grades": [
                convert_to_camel_case({name: grade[name] for name in ("model", "dimension", "grade", "reasoning")})
                for grade in grades
                if grade["analyst_variant"] == row["analyst_variant"]
            ],
        }
        for row in summary_rows
    ]
    return json_entries or None


def _encode_json(value: Any) -> str:
    return json.dumps(simplify_value(value, datetime.isoformat), ensure_ascii=False, allow_nan=False)


def _write_json_list(values: Iterable[Any]) -> Iterator[str]:
    yield "["
    for place, value in enumerate(values):
        yield (",\n" if place else "\n") + _encode_json(value)
    yield "\n]"


def _write_json_object(entries: Iterable[tuple[str, Any]]) -> Iterator[str]:
    yield "{"
    for place, (name, value) in enumerate(entries):
        yield (",\n" if place else "\n") + f"{_encode_json(name)}: {_encode_json(value)}"
    yield "\n}"
