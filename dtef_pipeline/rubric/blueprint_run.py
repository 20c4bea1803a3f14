"""The data of one run for a blueprint's page: read together, returned one prompt at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import groupby
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dtef_pipeline.judging.judges import consensus_id
from dtef_pipeline.report.row_reader import StoredRow, StoredRows
from dtef_pipeline.rubric.blueprint.model import TEXT_KIND
from dtef_pipeline.rubric.levels import display_id
from dtef_pipeline.rubric.scoring import CELL_LEVEL, MODEL_LEVEL, VARIANT_LEVEL
from dtef_pipeline.site.content import is_unknown
from dtef_pipeline.text.json_values import simplify_value
from dtef_pipeline.text.number_words import format_count

_OF_RESPONSE_KEY = ("model", "model_variant", "temperature", "system_index", "draw")
_OF_CRITERION_KEY = ("block", "path", "position")
_PROMPT_COLUMNS = ("prompt", "position", "weight", "messages", "systems", "temperatures", "ideal", "description", "citation")
_CRITERION_COLUMNS = (*("prompt", *_OF_CRITERION_KEY, "kind", "text", "fn", "args", "weight", "citation", "source", "fault"),)
_RESPONSE_COLUMNS = (
    *("prompt", *_OF_RESPONSE_KEY, "status", "text", "turns", "truncated", "error", "finish_reason", "served_model"),
    *("prompt_tokens", "completion_tokens", "cost_usd", "latency_s"),
)
_POINT_COLUMNS = (
    *("prompt", *_OF_RESPONSE_KEY, *_OF_CRITERION_KEY, "score", "low", "high", "n_judges", "n_answered", "partial"),
    *("inverted", "reason", "explanation", "labelled", "judge_score"),
)
_JUDGEMENT_COLUMNS = (
    *("prompt", *_OF_RESPONSE_KEY, *_OF_CRITERION_KEY, "judge", "judge_draw", "class", "score", "reason", "reflection"),
    *("error", "attempts"),
)
_SIMILARITY_COLUMNS = ("prompt", *_OF_RESPONSE_KEY, "place", "ideal_similarity", "response_similarities")
_SCORE_COLUMNS = (
    *("level", "prompt", "model", "model_variant", "temperature", "system_index", "coverage", "similarity", "hybrid"),
    *("n_planned", "n_scored", "n_partial", "n_unscored", "n_responses", "n_responses_scored", "reasons"),
)
_RUN_COLUMNS = (
    *("snapshot", "test_hash", "judge_hash", "policy_hash", "run_hash", "judges", "policy", "embedder", "answered_at"),
)
_HEADER_COLUMNS = ("title", "description", "tags", "references", "path")

ResponseKey = tuple[Any, ...]
"""Model, variant, temperature, place of the system prompt, draw."""


@dataclass(frozen=True)
class BlueprintRun:
    """One blueprint, and its results in the shown snapshot."""

    id: str
    snapshot: str | None
    """None: it was never run."""
    header: StoredRow
    run: StoredRow
    prompts: Sequence[StoredRow]
    findings: Sequence[StoredRow]
    criteria: RowsByPrompt
    responses: RowsByPrompt
    points: RowsByPrompt
    judgements: RowsByPrompt
    similarities: RowsByPrompt
    scores: Sequence[StoredRow]
    varying_settings: frozenset[str]
    """Those of temperature, system_index and draw that differ between its responses."""

    def label(self, row: Mapping[str, Any], *, draw: bool = True) -> str:
        """Return the name of a response's variant: `gpt-4o[temp:0.5][sp_idx:1]`, with the parts that differ between responses."""
        temperature = row["temperature"] if "temperature" in self.varying_settings else None
        several = 2 if "system_index" in self.varying_settings and not is_unknown(row["system_index"]) else 1
        name = display_id(str(row["model"]), temperature, row["system_index"], several)
        has_draws = draw and "draw" in self.varying_settings and not is_unknown(row.get("draw"))
        return f"{name}[draw:{row['draw']}]" if has_draws else name

    @cached_property
    def models(self) -> list[str]:
        """The models, best first; those without a score last."""
        scores = {row["model"]: row["hybrid"] for row in self.list_scores_at(MODEL_LEVEL)}
        sort_scores = {name: -math.inf if is_unknown(score) else score for name, score in scores.items()}
        return sorted(sort_scores, key=lambda name: (-sort_scores[name], name))

    def list_scores_at(self, level: str) -> list[StoredRow]:
        """Return the scores of a level: of cells, variants or models."""
        return [row for row in self.scores if row["level"] == level]

    @cached_property
    def cells(self) -> dict[tuple[Any, ...], StoredRow]:
        """The scores of each cell, by prompt and the key of a response without its draw."""
        return {(row["prompt"], *make_response_key(row)[:-1]): row for row in self.list_scores_at(CELL_LEVEL)}

    @cached_property
    def variants(self) -> list[StoredRow]:
        return self.list_scores_at(VARIANT_LEVEL)

    @cached_property
    def model_means(self) -> dict[tuple[str, str], dict[str, float | None]]:
        """The means of coverage, similarity and hybrid score over variants, by (prompt, model)."""
        groups: dict[tuple[str, str], list[StoredRow]] = {}
        for row in self.list_scores_at(CELL_LEVEL):
            groups.setdefault((row["prompt"], row["model"]), []).append(row)
        names = ("hybrid", "coverage", "similarity")
        return {key: {name: mean(row[name] for row in rows) for name in names} for key, rows in groups.items()}

    def group_judgements(self, prompt: str, judgements: RowsByPrompt | None = None) -> JudgedPoints:
        """Return the points and judgements of a prompt. `judgements`: those of the run with other columns than `self.judgements`."""
        by_point: dict[tuple[ResponseKey, tuple[Any, ...]], list[StoredRow]] = {}
        for row in (judgements or self.judgements).list_rows_of_prompt(prompt):
            by_point.setdefault((make_response_key(row), make_criterion_key(row)), []).append(row)
        points = self.points.list_rows_of_prompt(prompt)
        return JudgedPoints({(make_response_key(row), make_criterion_key(row)): row for row in points}, by_point)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The number of each prompt, from 1."""
        return {row["prompt"]: number for number, row in enumerate(self.prompts, 1)}

    def order_by_board(self, rows: Sequence[StoredRow]) -> list[StoredRow]:
        """Sort rows of responses, cells or variants: the best model first, then by temperature, system prompt and draw."""
        place = {name: index for index, name in enumerate(self.models)}

        def order(row: Mapping[str, Any]) -> tuple[Any, ...]:
            model, variant, *settings = make_response_key(row)
            # Missing values come first.
            return (place.get(model, len(place)), *((value is not None, value or 0) for value in (model, *settings, variant)))

        return sorted(rows, key=order)


def make_response_key(row: Mapping[str, Any]) -> ResponseKey:
    """Return the key of a response within its prompt, with None for missing values."""
    model, variant, temperature, system, draw = map(row.get, _OF_RESPONSE_KEY)
    return (model, variant, None if temperature != temperature else temperature, system, draw)


def make_criterion_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key of a criterion within its prompt."""
    return (row["block"], row["path"], row["position"])


def read_run(rows: StoredRows, blueprint: str, snapshot: str | None) -> BlueprintRun:
    """Read the rows of one blueprint; of its results only those of the snapshot."""
    blueprint_key = {"blueprint": blueprint}
    run_key = {**blueprint_key, "snapshot": snapshot}
    key = ("prompt", *_OF_RESPONSE_KEY)
    transcript = "transcript=CASE WHEN turns > 1 THEN transcript END"
    raw = "raw=CASE WHEN class IS NULL THEN raw END"
    responses = rows.table("rubric_responses", (*_RESPONSE_COLUMNS, transcript), run_key, key)
    points = rows.table("rubric_points", _POINT_COLUMNS, run_key, key)
    judgements = rows.table("rubric_judgements", (*_JUDGEMENT_COLUMNS, raw), run_key, (*key, "judge", "judge_draw"))
    varying = ("temperature", "system_index", "draw")
    return BlueprintRun(
        id=blueprint,
        snapshot=snapshot,
        header=next(iter(rows.rows("rubric_blueprints", _HEADER_COLUMNS, blueprint_key)), dict.fromkeys(_HEADER_COLUMNS)),
        run=next(iter(rows.rows("rubric_runs", _RUN_COLUMNS, run_key)), dict.fromkeys(_RUN_COLUMNS)),
        prompts=rows.rows("rubric_prompts", _PROMPT_COLUMNS, blueprint_key, ("position", "prompt")),
        findings=rows.rows(
            "rubric_findings", ("level", "code", "place", "line", "text"), blueprint_key, ("line", "place", "code", "text")
        ),
        criteria=RowsByPrompt(rows.table("rubric_criteria", _CRITERION_COLUMNS, blueprint_key, ("prompt", *_OF_CRITERION_KEY))),
        responses=RowsByPrompt(responses),
        points=RowsByPrompt(points),
        judgements=RowsByPrompt(judgements),
        similarities=RowsByPrompt(rows.table("rubric_similarities", _SIMILARITY_COLUMNS, run_key, ("prompt", "place"))),
        scores=rows.rows("rubric_scores", _SCORE_COLUMNS, run_key, ("level", *key)),
        varying_settings=frozenset(name for name in varying if len(set(responses[name].to_pylist())) > 1),
    )


class RowsByPrompt:
    """Rows of one blueprint, stored as columns and returned as mappings, one prompt at a time: a large blueprint has 100,000 rows."""

    def __init__(self, rows: pa.Table) -> None:
        """Index `rows`, which are sorted by their column prompt."""
        self._rows = rows
        self._slices = find_slices(rows["prompt"])

    def list_rows_of_prompt(self, prompt: str) -> list[StoredRow]:
        rows: list[StoredRow] = self._rows.slice(*self._slices.get(prompt, (0, 0))).to_pylist()
        return rows


def find_slices(column: pa.ChunkedArray) -> dict[str, tuple[int, int]]:
    """Return the first row of each value of a sorted column, and the number of its rows."""
    slices: dict[str, tuple[int, int]] = {}
    start = 0
    for value, group in groupby(column.to_pylist()):
        length = sum(1 for _ in group)
        slices[str(value)] = (start, length)
        start += length
    return slices


def mean(values: Iterable[Any]) -> float | None:
    """Return the mean of the known values, or None."""
    numbers = [float(value) for value in values if not is_unknown(value)]
    if len(numbers) == 1:
        return numbers[0]
    return fsum(numbers) / len(numbers) if numbers else None


class JudgedPoints(NamedTuple):
    """A prompt's points and judgements, by response and criterion."""

    points: Mapping[tuple[ResponseKey, tuple[Any, ...]], StoredRow]
    judgements: Mapping[tuple[ResponseKey, tuple[Any, ...]], Sequence[StoredRow]]


def describe_criterion(row: Mapping[str, Any]) -> str:
    """Return a criterion as text: as shown to judges, or the function with its argument."""
    if row["kind"] == TEXT_KIND or is_unknown(row["fn"]):
        return str(row["text"] or "")
    return f"${row['fn']}" + ("" if is_unknown(row["args"]) else f"({row['args']})")


def format_criteria_count(number: int) -> str:
    """Return `1 criterion`, `2 criteria`."""
    return "1 criterion" if number == 1 else f"{number:,} criteria"


def describe_judges_answered(point: Mapping[str, Any], judgements: Iterable[Mapping[str, Any]]) -> str:
    """Return `1 of 2 judges`; `2 of 2 judges, 1 draw missing` if a judge answered only some of its draws."""
    judgement_list = list(judgements)
    judges = {row["judge"] for row in judgement_list if not is_unknown(row["class"])}
    missing = sum(row["judge"] in judges and is_unknown(row["class"]) for row in judgement_list)
    answered_text = f"{point['n_answered']} of {format_count(int(point['n_judges'] or 0), 'judge')}"
    return answered_text + (f", {format_count(missing, 'draw')} missing" if missing else "")


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
