"""The scores of one blueprint: its models and their variants, and prompts against models as heat maps."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import pandas as pd

from dtef_pipeline.report.isolated import inline, missing, wrapping_name
from dtef_pipeline.report.markup import Column, fold, is_unknown, named, note, section, table, three, whole
from dtef_pipeline.report.page_files import rows_for_download
from dtef_pipeline.report.stored_rows import StoredRow
from dtef_pipeline.rubric.aggregate import MODEL_LEVEL
from dtef_pipeline.rubric.report.marks import Heat, HeatRow, heat_table, two_digits
from dtef_pipeline.rubric.results.blueprint_run import BlueprintRun, pairs_of

_SCORES_HOW = (
    "Mean scores in this run, 0 to 1, higher is better. Coverage is how far the criteria are met, similarity how near the response comes to "
    "the ideal answer, and the hybrid score both together; look at the two before you trust the one. Partial: scored, though some of it is "
    "not known. What could not be scored is in no mean."
)
_NOTHING_SCORED = '<p class="count">No response of this run has a score; the table above says why.</p>'
_PARTS_SHOWN = {
    "hybrid": "Hybrid score",
    "coverage": "Coverage of the criteria",
    "similarity": "Similarity to the ideal answer",
}
_MEANS = (
    Column("name", "Model", named),
    Column("hybrid", "Hybrid", three),
    Column("coverage", "Coverage", three),
    Column("similarity", "Similarity", three),
)
_PROMPT_COUNTS = (
    Column("n_planned", "Prompts", whole, "Prompts that were planned"),
    Column("n_scored", "Prompts scored", whole, "Prompts of which a draw or more has a hybrid score"),
    Column("n_partial", "Prompts in part", whole, "Prompts that are scored though not all of it is known"),
    Column("n_unscored", "Prompts unscored", whole, "Prompts of which no draw has a hybrid score"),
)
_RESPONSE_COUNTS = (
    Column("n_responses", "Responses", whole, "Responses that were planned, each draw of its own"),
    Column("n_responses_scored", "Responses scored", whole, "Responses with a hybrid score"),
    Column(
        "why", "Why responses are unscored", note, "Reasons of responses without a hybrid score, with the number of responses"
    ),
)


def scores_section(run: BlueprintRun, prompt_link: Callable[[int], str]) -> str:
    """The section; `prompt_link` gives the address of a prompt by its number."""
    models = run.at(MODEL_LEVEL)
    if not models:
        made = missing("No scores yet", "`dtef rubric run` makes rubric_scores from the verdicts and similarities of a run")
        return section("scores", "Scores", _SCORES_HOW, made)
    maps = "".join(
        fold(escape(title), _grid(run, part, title, prompt_link), is_open=part == "hybrid")
        for part, title in _PARTS_SHOWN.items()
        if any(not is_unknown(scores[part]) for scores in run.by_model.values())
    )
    grid = f"<h3>Prompts against models</h3>{maps or _NOTHING_SCORED}"
    return section("scores", "Scores", _SCORES_HOW, _model_table(run) + _variant_table(run) + grid)


def model_anchor(run: BlueprintRun, model: str) -> str:
    """The id of a model's row."""
    return f"model-{run.models.index(model) + 1}"


def _model_table(run: BlueprintRun) -> str:
    by_name = {row["model"]: row for row in run.at(MODEL_LEVEL)}
    rows = [by_name[model] for model in run.models]
    heads = [f'<span id="{model_anchor(run, row["model"])}">{wrapping_name(row["model"])}</span>' for row in rows]
    return _scores_of(rows, heads, "Models", (*_MEANS, *_RESPONSE_COUNTS))


def _variant_table(run: BlueprintRun) -> str:
    if not run.has_several & {"temperature", "system_index"}:
        return ""
    rows = run.in_board_order(run.variants)
    heads = [wrapping_name(run.label(row, draw=False)) for row in rows]
    caption, columns = "Variants: temperature and place of the system prompt", (*_MEANS, *_PROMPT_COUNTS, *_RESPONSE_COUNTS)
    return fold("Variants of the models", _scores_of(rows, heads, caption, columns))


def _scores_of(rows: list[StoredRow], heads: list[str], caption: str, columns: tuple[Column, ...]) -> str:
    frame = pd.DataFrame(rows)
    frame = frame.assign(name=heads, why=[_reasons(row["reasons"]) for row in rows])
    data = frame.drop(columns=["name", "reasons", "prompt"], errors="ignore").dropna(axis=1, how="all")
    return table(frame, columns, caption=caption, row_head="name", data=data)


def _reasons(value: Any) -> str:
    return "; ".join(f"{reason} ({count:,})" for reason, count in pairs_of(value))


def _grid(run: BlueprintRun, part: str, title: str, prompt_link: Callable[[int], str]) -> str:
    by_name = {row["model"]: row for row in run.at(MODEL_LEVEL)}
    rows = [HeatRow("<strong>Blueprint</strong>", [Heat(by_name[model][part], model) for model in run.models])]
    for prompt in run.prompts:
        at = run.positions[prompt["prompt"]]
        head = f'<a href="{prompt_link(at)}">{at}. {inline(prompt["prompt"])}</a>' + _weight(prompt)
        rows.append(HeatRow(head, [_cell(run, prompt["prompt"], model, part) for model in run.models]))
    shown = heat_table(f"{title}: prompts against models", "Prompt", run.models, rows)
    return shown + rows_for_download(_plain_rows(run, part))


def _weight(prompt: StoredRow) -> str:
    return (
        ""
        if is_unknown(prompt["weight"]) or prompt["weight"] == 1
        else f' <span class="flag">weight {prompt["weight"]:g}</span>'
    )


def _cell(run: BlueprintRun, prompt: str, model: str, part: str) -> Heat | None:
    found = run.by_model.get((prompt, model))
    return None if found is None else Heat(found[part], f"{model}, {prompt}: {two_digits(found[part])}")


def _plain_rows(run: BlueprintRun, part: str) -> pd.DataFrame:
    return pd.DataFrame(
        [{"prompt": prompt, "model": model, part: scores[part]} for (prompt, model), scores in run.by_model.items()]
    )
