"""A blueprint's runs over time, and the lowest and highest run of models that changed, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT
from dtef_pipeline.rubric.results.blueprint_run import BlueprintRun
from dtef_pipeline.rubric.results.point_judgements import describe_criterion
from dtef_pipeline.rubric.site.prompt_parts import truncate_model_text
from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from dtef_pipeline.site.content import Block, Chart, Column, Fold, Section, Table, TemplateBlock, convert_to_rows, is_unknown
from dtef_pipeline.text.quantity_words import format_count

MOST_RUNS, _MOST_DRAWN = 12, 4
_MOST_APART, _MOST_PROMPTS, _MOST_CRITERIA = 3, 2, 5
_RUNS_HOW = (
    "Each run repeated the same blueprint. Runs are comparable if test, judges and policy are the same; “other test” marks the others. "
    "The sections below show the models whose mean changed most between two such runs, on the prompts that changed most."
)


def build_history_section(rows: RubricRows, run: BlueprintRun) -> Section:
    """Build the section; empty with fewer than two runs."""
    scores = rows.scores[rows.scores["blueprint"] == run.id] if len(rows.scores) else rows.scores
    grid = (
        scores.pivot_table(index="model", columns="snapshot", values="hybrid", aggfunc="mean")
        if len(scores)
        else pd.DataFrame()
    )
    if len(grid.columns) < 2:
        return Section("runs", "Runs over time", [])
    snapshots = among(rows.order, grid.columns)[-MOST_RUNS:]
    grid = grid[snapshots]
    labels = _format_labels(rows, run)
    change = (grid[snapshots[-1]] - grid[snapshots[-2]]).dropna()
    answer = f"{format_count(len(snapshots), 'run')}. "
    if len(change):
        model = str(change.abs().idxmax())
        answer += (
            f"Since the previous run, {model} changed most: {change[model]:+.3f}; all models {change.mean():+.3f} on average."
        )
    blocks: list[Block] = [
        _build_chart(grid, labels, labels.get(snapshots[-1])),
        _build_table(rows, grid),
        *_build_two_run_blocks(rows, run),
    ]
    return Section("runs", "Runs over time", blocks, answer, _RUNS_HOW)


def _format_labels(rows: RubricRows, run: BlueprintRun) -> dict[str, str]:
    run_rows = rows.rows.rows("rubric_runs", ("snapshot", "run_label"), {"blueprint": run.id})
    return {str(row["snapshot"]): str(row["run_label"]) for row in run_rows}


def _build_chart(grid: pd.DataFrame, labels: dict[str, str], latest: str | None) -> Chart:
    """Chart the mean of all models, and those that changed most."""
    movers = (grid.max(axis=1) - grid.min(axis=1)).sort_values(ascending=False, kind="stable").index[:_MOST_DRAWN]
    lines = {"mean of all models": grid.mean(), **{str(model): grid.loc[model] for model in sorted(movers)}}
    points = [
        {"at": f"{snapshot}{'' if labels.get(snapshot) == latest else ', other test'}", "value": float(value), "label": label}
        for label, line in lines.items()
        for snapshot, value in line.items()
        if not is_unknown(value)
    ]
    return Chart(
        "series", points, f"Mean score by run: all models, and the {format_count(len(movers), 'model')} that changed most"
    )


def _build_table(rows: RubricRows, grid: pd.DataFrame) -> Fold:
    last = grid.columns[-3:]
    columns = [Column("model", "Model", "model"), Column("change", "Last change", "signed")]
    columns += [Column(f"run {name}", name, "score", more=name not in last) for name in grid.columns]
    table_rows = [
        {
            "model": str(model),
            "change": line.iloc[-1] - line.iloc[-2],
            **{f"run {name}": value for name, value in line.items()},
        }
        for model, line in grid.iterrows()
    ]
    return Fold("Scores of all models in each run", [Table("Mean score by run", columns, table_rows)])


def _build_two_run_blocks(rows: RubricRows, run: BlueprintRun) -> Iterator[Block]:
    """Yield two runs, prompt by prompt, of the models that moved most."""
    drifts = rows.rows.frame("drift_rule", {"family": "rubric", "partition": run.id})
    if not len(drifts):
        return
    shifts = drifts[drifts["gap"].gt(0) & drifts["lowest_snapshot"].notna() & drifts["highest_snapshot"].notna()]
    sorted_rows = shifts.sort_values(["flagged", "gap", "model_variant"], ascending=[False, False, True])
    for row in convert_to_rows(sorted_rows.head(_MOST_APART)):
        prompts = list(_find_moved_prompts(rows, run, row))
        flag = ", flagged by the documented rule" if row["flagged"] else ""
        title = (
            f"{row['model']}: lowest run {row['lowest_snapshot']} ({row['lowest']:.3f}), "
            f"highest run {row['highest_snapshot']} ({row['highest']:.3f}){flag}"
        )
        if prompts:
            part = TemplateBlock(
                "rubric/two_runs.html.j2", {"prompts": prompts, "sides": [row["lowest_snapshot"], row["highest_snapshot"]]}
            )
            yield Fold(title, [part], is_open=bool(row["flagged"]))


def _find_moved_prompts(rows: RubricRows, run: BlueprintRun, drift: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    """Yield the prompts on which a variant moves most between two runs, with both responses and changed criteria."""
    sides = [drift["lowest_snapshot"], drift["highest_snapshot"]]
    where = {"blueprint": run.id, "model_variant": drift["model_variant"]}
    cells = rows.rows.frame("rubric_scores", {**where, "level": "cell"})
    grid = (
        cells.pivot_table(index="prompt", columns="snapshot", values="hybrid", aggfunc="mean").reindex(columns=sides).dropna()
    )
    for prompt in rank_by_change(grid, sides)[:_MOST_PROMPTS]:
        texts = _read_texts(rows, {**where, "prompt": prompt})
        number, words = rows.prompts.get((run.id, prompt), (0, prompt))
        yield {
            "words": f"{number}. {words}" if number else words,
            "runs": [{"snapshot": side, "score": grid.loc[prompt, side], "text": texts.get(side, "")} for side in sides],
            "criteria": _find_moved_criteria(rows, run, {**where, "prompt": prompt}, sides),
        }


def rank_by_change(scores: pd.DataFrame, sides: Sequence[str]) -> list[str]:
    """Return the prompts (index) by the size of the change between two runs (columns), up or down, the largest first."""
    changes = (scores[sides[1]] - scores[sides[0]]).abs()
    return [str(prompt) for prompt in changes.sort_values(ascending=False, kind="stable").index]


def _read_texts(rows: RubricRows, where: dict[str, Any]) -> dict[str, str]:
    """Return the first response of each snapshot."""
    responses = rows.rows.rows("rubric_responses", ("snapshot", "text"), where, ("system_index", "draw"))
    return {str(row["snapshot"]): truncate_model_text(row["text"]) for row in reversed(responses)}


def _find_moved_criteria(rows: RubricRows, run: BlueprintRun, where: dict[str, Any], sides: list[str]) -> list[dict[str, Any]]:
    """Return the criteria whose mean points differ most between two runs."""
    keys = ["block", "path", "position"]
    points = rows.rows.frame("rubric_points", where)
    if not len(points):
        return []
    # A required criterion has no path; in a pivot null is no key.
    frame = points.assign(path=points["path"].astype("float64").fillna(-1))
    grid = frame.pivot_table(index=keys, columns="snapshot", values="score", aggfunc="mean").reindex(columns=sides).dropna()
    scores = dict(zip(map(tuple, grid.index), grid.to_numpy().tolist(), strict=True))
    criteria = [
        {"words": describe_criterion(row), "scores": pair, "is_unwanted": row["block"] == SHOULD_NOT}
        for row in run.criteria.list_rows_of_prompt(where["prompt"])
        if (pair := scores.get((row["block"], -1 if row["path"] is None else row["path"], row["position"])))
        and pair[0] != pair[1]
    ]
    return sorted(criteria, key=lambda criterion: -abs(criterion["scores"][1] - criterion["scores"][0]))[:_MOST_CRITERIA]
