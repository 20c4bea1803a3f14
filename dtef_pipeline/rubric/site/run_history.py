"""The runs of a blueprint over time: scores in each, and the lowest and the highest run of the models that moved most side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.rubric.blueprint_run import BlueprintRun, describe_criterion
from dtef_pipeline.rubric.board import find_moved_prompts
from dtef_pipeline.rubric.site.prompt_parts import truncate_model_text
from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from dtef_pipeline.site.content import Block, Chart, Column, Fold, Section, Table, TemplateBlock, convert_to_rows
from dtef_pipeline.text.number_words import format_count

_MOST_RUNS, _MAX_DRAWN = 12, 4
_MAX_SERIES, _MAX_PROMPTS = 3, 2
_RUNS_HOW = (
    "Each run repeated the same blueprint. Runs are comparable if test, judges and policy are the same; “other test” marks the others. "
    "The sections below show the models whose mean changed most between two such runs, on the prompts that changed most."
)
_MOVED_CRITERIA = """
    SELECT criteria.*, avg(score) FILTER (snapshot = $lowest) AS before, avg(score) FILTER (snapshot = $highest) AS after
    FROM rubric_points AS points JOIN rubric_criteria AS criteria
        ON points.blueprint = criteria.blueprint AND points.prompt = criteria.prompt AND points.block = criteria.block
        AND points.path IS NOT DISTINCT FROM criteria.path AND points.position = criteria.position
    WHERE points.blueprint = $blueprint AND points.prompt = $prompt AND model_variant = $model_variant
    GROUP BY ALL HAVING before <> after ORDER BY round(abs(after - before), 9) DESC, block, path NULLS FIRST, position LIMIT 5"""


def build_history_section(rows: RubricRows, run: BlueprintRun) -> Section:
    """Build the section; empty with fewer than two runs."""
    scores = rows.all_scores[rows.all_scores["blueprint"] == run.id]
    grid = scores.pivot_table(index="model", columns="snapshot", values="hybrid", aggfunc="mean")
    if len(grid.columns) < 2:
        return Section("runs", "Runs over time", [])
    grid = grid[among(rows.order, grid.columns)[-_MOST_RUNS:]]
    change = grid.iloc[:, -1] - grid.iloc[:, -2]
    answer = f"{format_count(len(grid.columns), 'run')}. "
    if change.notna().any():
        model = str(change.abs().idxmax())
        answer += f"Since the previous run, {model} changed most: {change[model]:+.3f}; "
        answer += f"all models {change.mean():+.3f} on average."
    columns = [Column("model", "Model", "model"), Column("change", "Last change", "signed")]
    columns += [Column(f"run {name}", name, "score") for name in grid.columns]
    table_rows = convert_to_rows(grid.add_prefix("run ").assign(change=change).reset_index())
    table = Fold("Scores of all models in each run", [Table("Mean score by run", columns, table_rows)])
    blocks: list[Block] = [_build_chart(rows, run, grid), table, *_build_two_runs(rows, run)]
    return Section("runs", "Runs over time", blocks, answer, _RUNS_HOW)


def _build_chart(rows: RubricRows, run: BlueprintRun, grid: pd.DataFrame) -> Chart:
    """Chart the mean of all models, and those that changed most. `grid`: scores by model and run."""
    run_rows = rows.shown.rows("rubric_runs", ("snapshot", "run_hash"), {"blueprint": run.id})
    hashes = {row["snapshot"]: row["run_hash"] for row in run_rows}
    titles = {name: name if hashes.get(name) == hashes.get(grid.columns[-1]) else f"{name}, other test" for name in grid}
    movers = (grid.max(axis=1) - grid.min(axis=1)).sort_values(ascending=False, kind="stable").index[:_MAX_DRAWN]
    lines = {"mean of all models": grid.mean(), **{model: grid.loc[model] for model in sorted(movers)}}
    points = [
        {"at": titles[snapshot], "value": value, "label": label}
        for label, line in lines.items()
        for snapshot, value in line.dropna().items()
    ]
    changed = format_count(len(movers), "model")
    return Chart("series", points, f"Mean score by run: all models, and the {changed} that changed most")


def _build_two_runs(rows: RubricRows, run: BlueprintRun) -> Iterator[Fold]:
    """Yield the lowest and the highest run of the models that moved most, prompt by prompt."""
    drifts = rows.rows.frame("drift_rule", {"family": "rubric", "partition": run.id})
    if not len(drifts):
        return
    moved = drifts[drifts["gap"] > 0].dropna(subset=["lowest_snapshot", "highest_snapshot"])
    moved = moved.sort_values(["flagged", "gap", "model_variant"], ascending=[False, False, True])
    for row in convert_to_rows(moved.head(_MAX_SERIES)):
        flag = ", flagged by the documented rule" if row["flagged"] else ""
        ends = [f"{end} run {row[f'{end}_snapshot']} ({row[end]:.3f})" for end in ("lowest", "highest")]
        if prompts := _find_moved_prompts(rows, run, row):
            yield Fold(
                f"{row['model']}: {', '.join(ends)}{flag}",
                [TemplateBlock("rubric/two_runs.html.j2", {"prompts": prompts})],
                bool(row["flagged"]),
            )


def _find_moved_prompts(rows: RubricRows, run: BlueprintRun, drift: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the prompts on which a variant moves most between two runs, with both responses and changed criteria."""
    variant = {"blueprint": run.id, "model_variant": drift["model_variant"]}
    sides = [drift["lowest_snapshot"], drift["highest_snapshot"]]
    before, after = (rows.rows.frame("rubric_scores", {**variant, "snapshot": side}) for side in sides)
    prompts = []
    for moved in convert_to_rows(find_moved_prompts(before, after).head(_MAX_PROMPTS)):
        where = {**variant, "prompt": moved["prompt"]}
        responses = rows.rows.rows("rubric_responses", ("snapshot", "text"), where, ("system_index", "draw"))
        texts = {row["snapshot"]: truncate_model_text(row["text"]) for row in reversed(responses)}
        criteria = rows.query(_MOVED_CRITERIA, {**where, "lowest": sides[0], "highest": sides[1]})
        prompts.append(
            {
                "words": rows.prompts.get((run.id, moved["prompt"]), (0, moved["prompt"]))[1],
                "runs": list(zip(sides, (moved["other_score"], moved["score"]), map(texts.get, sides), strict=True)),
                "criteria": [{**row, "words": describe_criterion(row)} for row in criteria],
            }
        )
    return prompts
