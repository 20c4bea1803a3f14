"""One prompt on its blueprint's page: its messages, criteria against models, and the data of its responses with all judgements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.rubric.blueprint.model import EXTRACTED, SHOULD_NOT
from dtef_pipeline.rubric.results.blueprint_run import (
    BlueprintRun,
    JudgedPoints,
    ResponseKey,
    describe_criterion,
    describe_judges_answered,
    iterate_counts,
    make_criterion_key,
    make_response_key,
    mean,
)
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, judge_words, prompt_words
from dtef_pipeline.site.content import DataFile, TemplateBlock, is_unknown
from dtef_pipeline.site.matrix import Cell, MatrixRow, matrix
from dtef_pipeline.site.paths import address_id
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.shortening import shorten_to_line

PARTIAL_SIGN, LABEL_SIGN = "◐", "✎"
POINT_ENDS = ("0: not met", "1: met in full")
MAX_RESPONSES = 120
"""Per prompt, with about equally many of each model."""
_LONGEST_CRITERION, _LONGEST_RESPONSE = 600, 20_000
"""Characters of a criterion in the matrix, and of a response or a reason; of a longer one the beginning is shown."""
_SCORE_PARTS = {"hybrid": "Score", "coverage": "Coverage", "similarity": "Similarity"}


def build_prompt_part(
    rows: RubricRows, run: BlueprintRun, prompt: StoredRow, data: DataFile | None, is_open: bool, is_sampled: bool
) -> TemplateBlock:
    """Build the prompt's part of the page. `data`: its responses; None: not on the site. `is_sampled`: whether the page itself contains the
    first and last.
    """
    name = prompt["prompt"]
    number, responses = run.positions[name], run.responses.list_rows_of_prompt(name)
    values = {
        "number": number,
        "id": address_id(name),
        "name": name,
        "words": prompt_words(prompt["messages"]),
        "score": mean(run.model_means.get((name, model), {}).get("hybrid") for model in run.models),
        "facts": _describe_prompt(prompt),
        "systems": list(prompt["systems"] or ()),
        "turns": [(message["role"], message["text"]) for message in prompt["messages"] or ()],
        "ideal": prompt["ideal"],
        "matrix": _build_criteria_matrix(rows, run, name),
        "n_responses": len(responses),
        "path": data and data.path,
        "data": data and is_sampled and {**data.value, "sample": _select_ends(data.value["responses"])},
        "blueprint": run.id,
        "is_open": is_open,
    }
    return TemplateBlock("rubric/prompt.html.j2", values)


def _select_ends(responses: Sequence[Any]) -> list[Any]:
    """Return the first and the last response; the only one once."""
    return [*responses[:1], *responses[1:][-1:]]


def _describe_prompt(prompt: StoredRow) -> dict[str, str]:
    weight = prompt["weight"]
    facts = {
        "Weight": "" if is_unknown(weight) or weight == 1 else f"{weight:g}",
        "Description": prompt["description"],
        "Source": prompt["citation"],
    }
    return {name: str(value) for name, value in facts.items() if value}


def _build_criteria_matrix(rows: RubricRows, run: BlueprintRun, prompt: str) -> TemplateBlock | None:
    """Build the matrix of criteria and scores against models. Cells are means over responses."""
    criteria, index = run.criteria.list_rows_of_prompt(prompt), run.group_judgements(prompt)
    keys: dict[str, list[ResponseKey]] = {}
    for response in run.responses.list_rows_of_prompt(prompt):
        keys.setdefault(response["model"], []).append(make_response_key(response))
    models = [model for model in run.models if model in keys]
    matrix_rows: list[MatrixRow] = []
    group = None
    for number, row in enumerate(criteria, 1):
        if (row["block"], row["path"]) != group:
            group = (row["block"], row["path"])
            heading = "Should not (1: avoided in full)" if row["block"] == SHOULD_NOT else "Should"
            matrix_rows.append(
                MatrixRow(heading if is_unknown(row["path"]) else f"{heading}, alternative {int(row['path']) + 1}")
            )
        cells = [_build_point_cell(keys[model], row, index) for model in models]
        matrix_rows.append(
            MatrixRow(
                f"{number}. {shorten_to_line(describe_criterion(row), _LONGEST_CRITERION)}", cells, _list_criterion_notes(row)
            )
        )
    matrix_rows += _score_rows(run, prompt, models)
    if not matrix_rows:
        return None
    marks = {PARTIAL_SIGN: "judged in part", LABEL_SIGN: "by people's labels"}
    used_marks = {cell.mark for row in matrix_rows for cell in row.cells if cell}
    legend = "".join(f"; {sign} {words}" for sign, words in marks.items() if any(sign in mark for mark in used_marks))
    return matrix(f"Criteria against models{legend}.", "Criterion", models, matrix_rows, POINT_ENDS)


def _list_criterion_notes(row: Mapping[str, Any]) -> list[str]:
    source = row["source"] and (
        "a model found it in the ideal answer" if row["source"] == EXTRACTED else f"written as {row['source']}"
    )
    notes = (
        "" if is_unknown(row["weight"]) or row["weight"] == 1 else f"weight {row['weight']:g}",
        source,
        row["fault"] and f"cannot be scored: {row['fault']}",
        row["citation"] and f"source: {row['citation']}",
    )
    return [note for note in notes if note]


def _build_point_cell(keys: Sequence[ResponseKey], criterion: StoredRow, index: JudgedPoints) -> Cell | None:
    points = [point for key in keys if (point := index.points.get((key, make_criterion_key(criterion)))) is not None]
    if not points:
        return None
    reasons = sorted({str(point["reason"]) for point in points if not is_unknown(point["reason"])})
    mark = PARTIAL_SIGN if any(point["partial"] for point in points) else ""
    mark += LABEL_SIGN if any(point["labelled"] for point in points) else ""
    return Cell(mean(point["score"] for point in points), mark, f"unscored: {', '.join(reasons)}" if reasons else "")


def _score_rows(run: BlueprintRun, prompt: str, models: Sequence[str]) -> list[MatrixRow]:
    scores = [run.model_means.get((prompt, model), dict.fromkeys(_SCORE_PARTS)) for model in models]
    names = [part for part in _SCORE_PARTS if any(not is_unknown(score[part]) for score in scores)]
    parts = names if len(names) == len(_SCORE_PARTS) else names[:1]  # with a single part, the score equals the part
    return [MatrixRow(_SCORE_PARTS[part], [Cell(score[part]) for score in scores]) for part in parts]


def build_prompt_data(run: BlueprintRun, prompt: StoredRow, path: str) -> DataFile:
    """Return the responses with their verdicts for the page's script."""
    name = prompt["prompt"]
    criteria, index = run.criteria.list_rows_of_prompt(name), run.group_judgements(name)
    responses = _choose_shown_responses(run.order_by_board(run.responses.list_rows_of_prompt(name)))
    alike = _find_most_alike(run, name)
    judges = sorted({row["judge"] for rows in index.judgements.values() for row in rows})
    value = {
        "criteria": [[describe_criterion(row), row["block"] == SHOULD_NOT] for row in criteria],
        "judges": [judge_words(judge) for judge in judges],
        "responses": [
            {
                **_build_response(run, row, run.cells.get((name, *make_response_key(row)[:-1]), {})),
                "alike": alike.get(make_response_key(row), ""),
                "points": _build_verdicts(make_response_key(row), criteria, index, judges),
            }
            for row in responses
        ],
    }
    return DataFile(path, value)


def _choose_shown_responses(responses: Sequence[StoredRow]) -> list[StoredRow]:
    """Return at most MAX_RESPONSES, the first of each model, in their order."""
    turns: Counter[str] = Counter()
    turn = []
    for row in responses:
        turns[row["model"]] += 1
        turn.append(turns[row["model"]])
    sample = sorted(sorted(range(len(responses)), key=lambda index: (turn[index], index))[:MAX_RESPONSES])
    return [responses[index] for index in sample]


def _build_response(run: BlueprintRun, row: StoredRow, cell: Mapping[str, Any]) -> dict[str, Any]:
    status = "" if row["status"] in (None, "ok") else f"{row['status']}: {row['error'] or 'no text'}"
    reasons = ", ".join(reason for reason, _ in iterate_counts(cell.get("reasons")))
    states = [
        status,
        "cut off by the token limit" if row["truncated"] else "",
        f"unscored: {reasons}" if cell and is_unknown(cell["hybrid"]) and reasons else "",
    ]
    turns = (
        [[message["role"], truncate_model_text(message["text"])] for message in row["transcript"] or ()]
        if (row["turns"] or 1) > 1
        else []
    )
    return {
        "id": address_id(*make_response_key(row)),
        "label": run.label(row),
        "model": row["model"],
        "text": truncate_model_text(row["text"]),
        "turns": turns,
        "states": [state for state in states if state],
        "scores": [[words, cell[part]] for part, words in _SCORE_PARTS.items() if cell and not is_unknown(cell[part])],
        "used": _describe_usage(row),
    }


def truncate_model_text(text: Any) -> str:
    """Return a text of a model; if it is very long, its beginning and its length."""
    text = "" if is_unknown(text) else str(text)
    return (
        text
        if len(text) <= _LONGEST_RESPONSE
        else f"{text[:_LONGEST_RESPONSE]}… (the first {_LONGEST_RESPONSE:,} of {len(text):,} characters)"
    )


def _describe_usage(row: Mapping[str, Any]) -> str:
    parts = [
        f"served by {row['served_model']}" if row["served_model"] else "",
        "" if is_unknown(row["completion_tokens"]) else format_count(int(row["completion_tokens"]), "token"),
        "" if is_unknown(row["latency_s"]) else f"{row['latency_s']:.1f} s",
    ]
    return ", ".join(part for part in parts if part)


def _find_most_alike(run: BlueprintRun, prompt: str) -> dict[ResponseKey, str]:
    """Return for each response the most similar other response, with the cosine similarity."""
    rows = run.similarities.list_rows_of_prompt(prompt)
    labels = {row["place"]: run.label(row) for row in rows}
    closest = {}
    for row in rows:
        neighbours = [
            (value, place)
            for place, value in enumerate(row["response_similarities"] or ())
            if place != row["place"] and place in labels and value is not None
        ]
        if neighbours:
            value, place = max(neighbours)
            closest[make_response_key(row)] = f"{labels[place]} ({value:.2f})"
    return closest


def _build_verdicts(key: ResponseKey, criteria: Sequence[StoredRow], index: JudgedPoints, judges: Sequence[str]) -> list[Any]:
    """Return for each criterion its score, state, explanation and judgements (judge, class, score, reason); null if there is none."""
    verdicts: list[Any] = []
    for row in criteria:
        place = (key, make_criterion_key(row))
        point, judgements = index.points.get(place), index.judgements.get(place, ())
        if point is None and not judgements:
            verdicts.append(None)
            continue
        state = "" if point is None else describe_point_state(point, judgements)
        explanation = "" if point is None or is_unknown(point["explanation"]) else str(point["explanation"])
        verdicts.append([point and point["score"], state, explanation, [_build_judgement(item, judges) for item in judgements]])
    return verdicts


def describe_point_state(point: Mapping[str, Any], judgements: Sequence[Mapping[str, Any]]) -> str:
    """Describe why a point is unscored, its bounds if judgements are missing, or that people labelled it."""
    if is_unknown(point["score"]):
        return f"unscored: {point['reason'] or 'reason unknown'}"
    if point["labelled"]:
        judges_part = "" if is_unknown(point["judge_score"]) else f", by judges {point['judge_score']:.2f}"
        return f"labelled by people{judges_part}"
    if not point["partial"]:
        return ""
    bounds = (
        "" if is_unknown(point["low"]) else f", between {point['low']:.2f} and {point['high']:.2f} for any missing judgement"
    )
    return f"{describe_judges_answered(point, judgements)}{bounds}"


def _build_judgement(row: Mapping[str, Any], judges: Sequence[str]) -> list[Any]:
    reply = "" if not is_unknown(row["class"]) else "\n\n".join(str(text) for text in row["raw"] or () if text)
    remarks = [row["reflection"], row["error"], f"What the judge wrote: {reply}" if reply else ""]
    attempt = ", second request" if (row["attempts"] or 1) > 1 else ""
    draw = f", draw {row['judge_draw']}" if row["judge_draw"] else ""
    remark_text = "\n".join(truncate_model_text(remark) for remark in remarks if remark)
    return [judges.index(row["judge"]), f"{format_class(row)}{attempt}{draw}", row["score"], remark_text]


def format_class(row: Mapping[str, Any]) -> str:
    """Format the class of a judgement for people: `partially met`; or why there is none."""
    if is_unknown(row["class"]):
        return f"no class: {row['reason'] or 'reason unknown'}"
    return str(row["class"]).removeprefix("CLASS_").lower().replace("_", " ")
