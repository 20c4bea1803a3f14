"""One prompt on its blueprint's page: its messages, criteria against models, and the data of its responses with all judgements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.rubric.blueprint.model import EXTRACTED, SHOULD_NOT
from dtef_pipeline.rubric.blueprint_run import (
    BlueprintRun,
    describe_criterion,
    describe_judges_answered,
    make_criterion_key,
    make_response_key,
    mean,
)
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, judge_words
from dtef_pipeline.site.content import DataFile, TemplateBlock
from dtef_pipeline.site.matrix import Cell, MatrixRow, matrix
from dtef_pipeline.site.paths import address_id
from dtef_pipeline.text.shortening import shorten_to_line

POINT_ENDS = ("0: not met", "1: met in full")
_PARTIAL_SIGN = "◐"
_LONGEST_CRITERION, _LONGEST_RESPONSE = 600, 20_000
"""Characters of a criterion in the matrix, and of a response or a reason; of a longer one the beginning is shown."""
_SCORE_PARTS = {"hybrid": "Score", "coverage": "Coverage", "similarity": "Similarity"}


def build_prompt_part(
    rows: RubricRows, run: BlueprintRun, prompt: StoredRow, data: DataFile | None, is_sampled: bool
) -> TemplateBlock:
    """Build the prompt's part of the page. `data`: its responses; None: not on the site. `is_sampled`: whether the page itself contains the
    first and last.
    """
    name = prompt["prompt"]
    responses = data.value["responses"] if data else []
    values = {
        "prompt": prompt,
        "number": run.positions[name],
        "id": address_id(name),
        "words": rows.prompts[run.id, name][1],
        "score": mean_of_prompt(run, name),
        "matrix": _build_criteria_matrix(run, name),
        "n_responses": len(run.responses.list_rows_of_prompt(name)),
        "path": data and data.path,
        "data": data and is_sampled and {**data.value, "sample": [*responses[:1], *responses[1:][-1:]]},
        "blueprint": run.id,
    }
    return TemplateBlock("rubric/prompt.html.j2", values)


def mean_of_prompt(run: BlueprintRun, prompt: str) -> float | None:
    """Return the mean score of the models on a prompt, 0-1."""
    return mean(run.model_means.get((prompt, model), {}).get("hybrid") for model in run.models)


def _build_criteria_matrix(run: BlueprintRun, prompt: str) -> TemplateBlock | None:
    """Build the matrix of criteria and scores against models. Cells are means over responses."""
    points: dict[tuple[Any, ...], list[StoredRow]] = defaultdict(list)
    for point in run.points.list_rows_of_prompt(prompt):
        points[point["model"], *make_criterion_key(point)].append(point)
    responding = {response["model"] for response in run.responses.list_rows_of_prompt(prompt)}
    models = [model for model in run.models if model in responding]
    matrix_rows: list[MatrixRow] = []
    for number, row in enumerate(run.criteria.list_rows_of_prompt(prompt), 1):
        heading = "Should not (1: avoided in full)" if row["block"] == SHOULD_NOT else "Should"
        heading += "" if row["path"] is None else f", alternative {row['path'] + 1}"
        if heading not in [previous.head for previous in matrix_rows]:
            matrix_rows.append(MatrixRow(heading))
        words = f"{number}. {shorten_to_line(describe_criterion(row), _LONGEST_CRITERION)}"
        cells = [_build_point_cell(points.get((model, *make_criterion_key(row)), [])) for model in models]
        matrix_rows.append(MatrixRow(words, cells, _list_criterion_notes(row)))
    scores = [run.model_means.get((prompt, model), dict.fromkeys(_SCORE_PARTS)) for model in models]
    parts = [part for part in _SCORE_PARTS if any(score[part] is not None for score in scores)]
    # With a single part, the score equals the part.
    for part in parts if len(parts) == len(_SCORE_PARTS) else parts[:1]:
        matrix_rows.append(MatrixRow(_SCORE_PARTS[part], [Cell(score[part]) for score in scores]))
    is_partial = any(cell and cell.mark for row in matrix_rows for cell in row.cells)
    legend = f"; {_PARTIAL_SIGN} judged in part" if is_partial else ""
    return matrix(f"Criteria against models{legend}.", "Criterion", models, matrix_rows, POINT_ENDS) if matrix_rows else None


def _list_criterion_notes(row: Mapping[str, Any]) -> list[str]:
    source = "a model found it in the ideal answer" if row["source"] == EXTRACTED else f"written as {row['source']}"
    notes = (
        "" if row["weight"] in (None, 1) else f"weight {row['weight']:g}",
        source if row["source"] else "",
        f"cannot be scored: {row['fault']}" if row["fault"] else "",
        f"source: {row['citation']}" if row["citation"] else "",
    )
    return [note for note in notes if note]


def _build_point_cell(points: Sequence[StoredRow]) -> Cell | None:
    if not points:
        return None
    reasons = sorted({point["reason"] for point in points if point["reason"]})
    mark = _PARTIAL_SIGN if any(point["partial"] for point in points) else ""
    return Cell(mean(point["score"] for point in points), mark, f"unscored: {', '.join(reasons)}" if reasons else "")


def build_prompt_data(run: BlueprintRun, prompt: str, path: str) -> DataFile:
    """Return the responses with their verdicts for the page's script."""
    criteria = run.criteria.list_rows_of_prompt(prompt)
    points, judgements = run.group_judgements(prompt)
    responses = []
    for row in run.order_by_board(run.responses.list_rows_of_prompt(prompt)):
        places = [(make_response_key(row), make_criterion_key(criterion)) for criterion in criteria]
        verdicts = [_build_verdict(points.get(place), judgements.get(place, ())) for place in places]
        responses.append({**_build_response(run, row), "points": verdicts})
    words = [[describe_criterion(criterion), criterion["block"] == SHOULD_NOT] for criterion in criteria]
    return DataFile(path, {"criteria": words, "responses": responses})


def _build_response(run: BlueprintRun, row: StoredRow) -> dict[str, Any]:
    key = make_response_key(row)
    cell = run.cells.get((row["prompt"], *key[:-1]), {})
    reasons = ", ".join(reason for reason, _ in cell.get("reasons") or ())
    states = (
        "" if row["status"] in (None, "ok") else f"{row['status']}: {row['error'] or 'no text'}",
        "cut off by the token limit" if row["truncated"] else "",
        f"unscored: {reasons}" if reasons and cell["hybrid"] is None else "",
    )
    transcript = row["transcript"] if (row["turns"] or 1) > 1 else []
    return {
        "id": address_id(*key),
        "label": run.label(row),
        "model": row["model"],
        "text": truncate_model_text(row["text"]),
        "turns": [[message["role"], truncate_model_text(message["text"])] for message in transcript or ()],
        "states": [state for state in states if state],
        "scores": [[words, cell[part]] for part, words in _SCORE_PARTS.items() if cell.get(part) is not None],
    }


def truncate_model_text(text: str | None) -> str:
    """Return a text of a model; if it is very long, its beginning and its length."""
    text = text or ""
    if len(text) <= _LONGEST_RESPONSE:
        return text
    return f"{text[:_LONGEST_RESPONSE]}… (the first {_LONGEST_RESPONSE:,} of {len(text):,} characters)"


def _build_verdict(point: StoredRow | None, judgements: Sequence[StoredRow]) -> list[Any] | None:
    """Return the score of a criterion, its state, explanation and judgements (judge, class, score, reason); None if there is none."""
    if point is None and not judgements:
        return None
    point = point or {}
    state = _describe_point_state(point, judgements) if point else ""
    return [point.get("score"), state, point.get("explanation") or "", list(map(_format_judgement, judgements))]


def _describe_point_state(point: Mapping[str, Any], judgements: Sequence[Mapping[str, Any]]) -> str:
    """Describe why a point is unscored, its bounds if judgements are missing, or that people labelled it."""
    if point["score"] is None:
        return f"unscored: {point['reason'] or 'reason unknown'}"
    if point["labelled"]:
        judges_part = "" if point["judge_score"] is None else f", by judges {point['judge_score']:.2f}"
        return f"labelled by people{judges_part}"
    if not point["partial"]:
        return ""
    bounds = "" if point["low"] is None else f", between {point['low']:.2f} and {point['high']:.2f} for any missing judgement"
    return f"{describe_judges_answered(point, judgements)}{bounds}"


def _format_judgement(row: Mapping[str, Any]) -> list[Any]:
    """Return judge, class (`partially met`, or why there is none), score 0-1 and reason of a judgement for people."""
    label = f"no class: {row['reason'] or 'reason unknown'}"
    if row["class"]:
        label = row["class"].removeprefix("CLASS_").lower().replace("_", " ")
    draw = f", draw {row['judge_draw']}" if row["judge_draw"] else ""
    reply = "" if row["class"] else "\n\n".join(text for text in row["raw"] or () if text)
    remarks = [row["reflection"], row["error"], f"What the judge wrote: {reply}" if reply else ""]
    reason = "\n".join(truncate_model_text(remark) for remark in remarks if remark)
    return [judge_words(row["judge"]), f"{label}{draw}", row["score"], reason]
