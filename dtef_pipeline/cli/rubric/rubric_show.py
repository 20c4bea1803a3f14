"""`dtef rubric show`: one stored run of a blueprint, or a comparison of two."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import sort_snapshots
from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.families import require_table
from dtef_pipeline.cli.terminal import compute_terminal_fit, print_rows, say
from dtef_pipeline.cli.warehouse_access import reads_tables
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.report.terminal import render
from dtef_pipeline.rubric.blueprint.model import EXTRACTED
from dtef_pipeline.rubric.blueprint_run import (
    BlueprintRun,
    RowsByPrompt,
    describe_judges_answered,
    list_assessments,
    make_response_key,
    read_run,
    write_result_chunks,
)
from dtef_pipeline.rubric.board import compare_runs, find_moved_prompts, has_regression
from dtef_pipeline.rubric.levels import display_id
from dtef_pipeline.rubric.tables import ITEM_KEYS
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.text.json_values import simplify_value
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import format_count, list_first_names
from dtef_pipeline.text.printable import escape_terminal
from resources.file_systems import write_chunks
from resources.warehouse import Warehouse

_TABLES_OF_A_RUN = (
    *("rubric_blueprints", "rubric_prompts", "rubric_criteria", "rubric_findings", "rubric_runs", "rubric_responses"),
    *("rubric_judgements", "rubric_points", "rubric_similarities", "rubric_scores", "rubric_summaries", "rubric_grades"),
)
_ORDER_OF_JUDGEMENTS = (*ITEM_KEYS[2:], "judge", "judge_draw")


def require_blueprint(warehouse: Warehouse, blueprint: str) -> None:
    """Raise an error, with the nearest names, if the blueprint has no scores."""
    require_table(warehouse, "rubric_scores", "`dtef rubric run` makes them")
    names = warehouse.values("rubric_scores", "blueprint")
    if blueprint not in names:
        keys = warehouse.values("rubric_blueprints", "blueprint")
        remedy = f"it has no scores yet: `dtef rubric run --blueprint {blueprint}` makes them" if blueprint in keys else ""
        raise ConfigError(f"blueprint {blueprint!r}: {remedy or f'not known; known: {list_nearest(blueprint, names)}'}")


def list_scored_snapshots(warehouse: Warehouse, blueprint: str) -> list[str]:
    """Return the blueprint's scored snapshots, the earliest first."""
    times: dict[str, Any] = {}
    for snapshot in warehouse.values("rubric_scores", "snapshot", blueprint=blueprint):
        rows = warehouse.rows("rubric_responses", columns=["answered_at"], blueprint=blueprint, snapshot=snapshot)
        times[snapshot] = pc.min(rows["answered_at"]).as_py() if len(rows) else None
    return sort_snapshots(times)


def choose_snapshot(blueprint: str, snapshot: str | None, snapshots: Sequence[str]) -> str:
    """Return the given snapshot, by default the latest. Raises ConfigError if it has no scores of the blueprint."""
    if snapshot is None:
        return snapshots[-1]
    if snapshot not in snapshots:
        raise ConfigError(f"snapshot {snapshot!r}: no scores of {blueprint}; known: {list_nearest(snapshot, snapshots)}")
    return snapshot


def load_stored_run(warehouse: Warehouse, blueprint: str, snapshot: str | None) -> BlueprintRun:
    """Return all stored data of a blueprint in a snapshot, by default its latest. Raises ConfigError for an unknown name."""
    require_blueprint(warehouse, blueprint)
    label = choose_snapshot(blueprint, snapshot, list_scored_snapshots(warehouse, blueprint))
    run: BlueprintRun = warehouse.query(
        lambda connection: read_run(StoredRows(connection), blueprint, label), only=_TABLES_OF_A_RUN, first=[blueprint]
    )
    return run


def escape_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with texts that are safe on a terminal."""
    texts = frame.map(lambda value: escape_terminal(value) if isinstance(value, str) else value)
    return texts.set_axis([escape_terminal(str(name)) for name in frame], axis=1)


def _export(warehouse: Warehouse, run: BlueprintRun, blueprint: str, file: Path) -> None:
    partition = {"blueprint": blueprint, "snapshot": str(run.snapshot)}
    summaries, grades = (warehouse.rows(name, **partition).to_pylist() for name in ("rubric_summaries", "rubric_grades"))
    rows = warehouse.rows("rubric_judgements", **partition)
    judgements = RowsByPrompt(rows.take(pc.sort_indices(rows, [(name, "ascending") for name in _ORDER_OF_JUDGEMENTS])))
    write_chunks(file, write_result_chunks(run, judgements, summaries, grades))
    prompts = format_count(len(run.prompts), "prompt")
    say(f"wrote {file}: {blueprint}, snapshot {run.snapshot}, {prompts}, {format_count(len(run.models), 'model')}", err=True)


MODEL_WORSE = 3
"""Exit code of `--fail-on regression` if a model is worse."""
_MODELS_NAMED = _PROMPTS_SHOWN = 10
_HASHES = {"test_hash": "the prompts or criteria", "judge_hash": "the judges", "policy_hash": "the scoring policy"}
RUN_COMPARISON_COLUMNS = {
    "model": "Model, over all its temperatures and system prompts",
    "verdict": "Decision: regression, improvement, equivalent or undecided",
    "difference": "Mean hybrid score in B minus that in A, over pairs, by the weights of prompts",
    "interval": "95 % interval of the difference; empty: too few prompts",
    "other_score": "Mean hybrid score of the pairs in A, 0-1",
    "score": "Mean hybrid score of the pairs in B, 0-1",
    "n_prompts": "Prompts with a pair",
    "n_pairs": "Pairs of a prompt and a variant with responses in both runs",
    "p_adjusted": "Probability of so large a difference by chance, adjusted over the models (Holm)",
    "moved_model": "Model whose score changed most on the prompt",
    "model_difference": "Its mean hybrid score on the prompt in B minus that in A",
}


_COMPARISON_LAYOUT = TableLayout(
    tuple(RUN_COMPARISON_COLUMNS), ("model", "verdict", "difference"), ("n_pairs", "n_prompts"), "difference"
)


@reads_tables
def compare(
    warehouse: Warehouse,
    blueprint: str,
    before: str | None,
    after: str | None,
    by: str,
    fail_on: str | None,
    output: str,
) -> int:
    """Print the comparison of two runs, and return the exit code."""
    require_blueprint(warehouse, blueprint)
    snapshots = list_scored_snapshots(warehouse, blueprint)
    first, second = _choose_pair(blueprint, snapshots, before, after)
    old, new = (warehouse.rows("rubric_scores", blueprint=blueprint, snapshot=label).to_pandas() for label in (first, second))
    models, prompts = compare_runs(old, new), find_moved_prompts(old, new)
    if output != "table":
        click.echo(render(models if by == "model" else prompts, output))
    else:
        _print(warehouse, blueprint, (first, second), models, prompts.head(_PROMPTS_SHOWN))
    if not fail_on:
        return 0
    for line in _describe_unchecked_models(models, fail_on):
        say(f"warning: {line}", err=True)
    return MODEL_WORSE if has_regression(models) else 0


def _describe_unchecked_models(models: pd.DataFrame, fail_on: str) -> Iterator[str]:
    """Yield models that `--fail-on` cannot cover, however much worse they are."""
    if not len(models):
        yield f"--fail-on {fail_on} has no effect: no model has a score for the same prompt in both runs"
        return
    few = models[models["n_prompts"] < MIN_CLUSTERS]
    if len(few):
        counts = zip(few["model"], few["n_prompts"].tolist(), strict=True)
        names = [f"{model} ({format_count(n, 'prompt')})" for model, n in counts]
        requirement = f"at least {format_count(MIN_CLUSTERS, 'prompt')} in both runs are needed to show a {fail_on}"
        yield f"--fail-on {fail_on} does not cover {list_first_names(names, _MODELS_NAMED)}: {requirement}"


def _choose_pair(blueprint: str, snapshots: Sequence[str], before: str | None, after: str | None) -> tuple[str, str]:
    if before is None or after is None:
        raise ConfigError(
            f"two snapshots of {blueprint} are needed, --before A and --after B; known, earliest first: {', '.join(snapshots)}"
        )
    pair = choose_snapshot(blueprint, before, snapshots), choose_snapshot(blueprint, after, snapshots)
    if before == after:
        raise ConfigError(f"snapshot {before!r} twice: allowed are two that differ; known: {', '.join(snapshots)}")
    return pair


def _print(warehouse: Warehouse, blueprint: str, pair: tuple[str, str], models: pd.DataFrame, prompts: pd.DataFrame) -> None:
    click.echo(f"{blueprint}: A = {pair[0]}, B = {pair[1]}\n")
    for line in _describe_other_differences(warehouse, blueprint, pair):
        say(f"note: {line}")
    if not len(models):
        say("no model has a score for the same prompt in both")
        return
    print_rows(_COMPARISON_LAYOUT, escape_frame(models), "table", (), number_ends={"difference": ("low", "high")})
    prompt_rows = escape_frame(prompts)
    click.echo(f"\n{format_count(len(prompt_rows), 'prompt')} that changed most\n")
    print_rows(TableLayout((), ("prompt", "difference"), ("n_pairs",)), prompt_rows, "table", (), "rubric/runs")


def _describe_other_differences(warehouse: Warehouse, blueprint: str, pair: tuple[str, str]) -> Iterator[str]:
    """Yield which other inputs differ between the runs, so that a difference may not come from the models."""
    rows: list[list[dict[str, Any]]] = [
        warehouse.rows("rubric_runs", blueprint=blueprint, snapshot=label).to_pylist() for label in pair
    ]
    if not all(rows):
        return
    differ = [words for name, words in _HASHES.items() if rows[0][0][name] != rows[1][0][name]]
    if differ:
        yield f"{', '.join(differ)} differ between the two runs, so a difference may not come from the models"


_SCORES_SHOWN = ("hybrid", "coverage", "similarity")
_ALL_PROMPTS = "all prompts"


@reads_tables
def show(
    warehouse: Warehouse,
    blueprint: str,
    prompt: str | None,
    models: Sequence[str],
    snapshot: str | None,
    out: Path | None,
    output: str,
) -> None:
    run = load_stored_run(warehouse, blueprint, snapshot)
    if out is not None:
        if prompt is not None or models:
            raise ConfigError("--out does not work with PROMPT or --model, since the file has the whole run")
        _export(warehouse, run, blueprint, out)
        return
    for model in models:
        if model not in run.models:
            raise ConfigError(f"--model {model!r}: no response of it; known: {list_nearest(model, run.models)}")
    selection = list(models) or run.models
    if prompt is None:
        _show_table(run, selection, output)
        return
    if prompt not in run.positions:
        raise ConfigError(f"prompt {prompt!r}: {blueprint} has no such prompt; known: {list_nearest(prompt, run.positions)}")
    responses = _collect_responses(run, prompt, selection)
    if output == "json":
        click.echo(json.dumps(responses, allow_nan=False, indent=1))
    elif output == "csv":
        click.echo(render(pd.DataFrame(list(_flatten_responses(responses))), "csv"))
    else:
        row = next(row for row in run.prompts if row["prompt"] == prompt)
        lines = [*_format_prompt(run, row)]
        for response in responses:
            lines += _format_response(response, len(row["systems"] or ()))
        click.echo(escape_terminal("\n".join(lines)))


def _show_table(run: BlueprintRun, models: Sequence[str], output: str) -> None:
    prompts = [str(row["prompt"]) for row in run.prompts]
    empty: Mapping[str, float | None] = dict.fromkeys(_SCORES_SHOWN)
    if output != "table":
        rows = [
            {"prompt": prompt, "model": model, **run.model_means.get((prompt, model), empty)}
            for prompt in prompts
            for model in models
        ]
        click.echo(render(pd.DataFrame(rows, columns=["prompt", "model", *_SCORES_SHOWN]), output))
        return
    totals = {row["model"]: row["hybrid"] for row in run.list_scores_at("model")}
    columns: dict[str, list[Any]] = {"prompt": [*prompts, _ALL_PROMPTS]}
    for model in models:
        prompt_scores = [run.model_means.get((prompt, model), empty)["hybrid"] for prompt in prompts]
        columns[model] = [*prompt_scores, totals.get(model)]
    click.echo(
        f"{escape_terminal(str(run.header['title'] or run.id))}, snapshot {run.snapshot}: hybrid score, 0-1, higher is better\n"
    )
    frame = escape_frame(pd.DataFrame(columns))
    click.echo(render(frame, "table", as_named=True, fit=compute_terminal_fit(["prompt"], list(frame.columns[:0:-1]))))


def _collect_responses(run: BlueprintRun, prompt: str, models: Sequence[str]) -> list[dict[str, Any]]:
    """Return one mapping per response, the best model first: its text, its scores, and every criterion with every judgement."""
    criteria, judgements = run.criteria.list_rows_of_prompt(prompt), run.group_judgements(prompt)
    response_rows = []
    for row in run.order_by_board([row for row in run.responses.list_rows_of_prompt(prompt) if row["model"] in models]):
        key = make_response_key(row)
        scores = {name: run.cells.get((prompt, *key[:-1]), {}).get(name) for name in _SCORES_SHOWN}
        response_rows.append({**row, **scores, "criteria": list_assessments(key, criteria, judgements)})
    simplified: list[dict[str, Any]] = simplify_value(response_rows, datetime.isoformat)
    return simplified


def _format_prompt(run: BlueprintRun, row: Mapping[str, Any]) -> Iterator[str]:
    weight = "" if row["weight"] == 1 else f", weight {row['weight']:g}"
    yield f"{run.id}, snapshot {run.snapshot}, prompt {row['prompt']}{weight}"
    systems = row["systems"] or []
    for place, system in enumerate(systems):
        if system is not None or len(systems) > 1:
            yield from _format_block(f"system prompt {place}" if len(systems) > 1 else "system prompt", system or "(none)")
    for message in row["messages"]:
        yield from _format_block(message["role"], "(written by the model)" if message["text"] is None else message["text"])
    if row["ideal"] is not None:
        yield from _format_block("ideal answer", row["ideal"])


def _format_block(name: str, text: str) -> Iterator[str]:
    yield f"  {name}:"
    yield from (f"    {line}" for line in text.strip().split("\n"))


def _format_response(response: Mapping[str, Any], systems: int) -> Iterator[str]:
    """Yield the lines of a response. `systems`: number of system prompts of the prompt."""
    draw = f", draw {response['draw']}" if response["draw"] else ""
    name = display_id(response["model"], response["temperature"], response["system_index"], systems)
    scores = ", ".join(f"{kind} {_format_number(response[kind])}" for kind in _SCORES_SHOWN if response[kind] is not None)
    yield f"\n{name}{draw}: {scores or 'unscored'}"
    if response["status"] != "ok":
        yield f"  {response['status']}: {response['error'] or 'no text'}"
    if response["text"]:
        yield from _format_block("response (cut by max_tokens)" if response["truncated"] else "response", response["text"])
    for criterion in response["criteria"]:
        yield from _format_criterion(criterion)


def _format_criterion(row: Mapping[str, Any]) -> Iterator[str]:
    path = "" if row["path"] is None else f" path {row['path']}"
    weight = "" if row["weight"] == 1 else f", weight {row['weight']:g}"
    partial = f", {describe_judges_answered(row, row['individual_judgements'])}" if row["partial"] else ""
    origin = f", {EXTRACTED}" if row["source"] == EXTRACTED else ""
    yield f"  {_format_number(row['score'])}  {row['block']}{path} [{row['position']}]{weight}{partial}{origin}: {row['words']}"
    if row["score"] is None:
        yield f"        unscored: {row['reason'] or 'no reason was kept'}"
    if row["explanation"]:
        yield f"        {row['explanation']}"
    for judgement in row["individual_judgements"]:
        verdict = f"no verdict ({judgement['reason'] or 'no reason was kept'})"
        if judgement["class"] is not None:
            verdict = f"{judgement['class']} ({judgement['score']:g})"
        yield f"        {judgement['judge']}: {verdict}"
        response_rows = judgement["reflection"] or judgement["error"]
        yield from (f"          {line}" for line in (response_rows or "").strip().split("\n") if line)


def _format_number(value: float | None) -> str:
    return "   -" if value is None else f"{value:.2f}"


def _flatten_responses(responses: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield one row per criterion of a response, or one for a response without criteria."""
    for response in responses:
        base = {name: value for name, value in response.items() if name != "criteria"}
        for criterion in response["criteria"] or [{}]:
            fields = {name: value for name, value in criterion.items() if name != "individual_judgements"}
            judges = [
                f"{judgement['judge']}: {judgement['class'] or judgement['reason']}"
                for judgement in criterion.get("individual_judgements", [])
            ]
            yield {**base, **{f"criterion_{name}": value for name, value in fields.items()}, "judges": "; ".join(judges)}
