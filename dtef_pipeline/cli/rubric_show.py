"""What `dtef rubric show` does; the words are in `dtef_pipeline/cli/rubric_show_group.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import pandas as pd

from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.rubric_stored_run import printable_frame, require_models, stored_run
from dtef_pipeline.cli.terminal_width import terminal_fit
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.report.terminal import render
from dtef_pipeline.rubric.levels import display_id
from dtef_pipeline.rubric.model import EXTRACTED
from dtef_pipeline.rubric.report.blueprint_run import BlueprintRun, response_key
from dtef_pipeline.rubric.report.result_file import assessments, plain
from dtef_pipeline.rubric.report.verdicts import judged, judges_answered
from dtef_pipeline.text.nearest import nearest
from dtef_pipeline.text.printable import printable
from resources.warehouse import Warehouse

_SCORES_SHOWN = ("hybrid", "coverage", "similarity")
_ALL_PROMPTS = "all prompts"


@reads_tables
def show(
    warehouse: Warehouse,
    blueprint: str,
    prompt: str | None,
    models: Sequence[str],
    snapshot: str | None,
    score: str,
    output: str,
) -> None:
    run = stored_run(warehouse, blueprint, snapshot)
    require_models(models, run.models)
    chosen = list(models) or run.models
    if prompt is None:
        _show_table(run, chosen, score, output)
        return
    if prompt not in run.positions:
        raise ConfigError(f"prompt {prompt!r}: {blueprint} has none such; known: {nearest(prompt, run.positions)}")
    responses = _responses(run, prompt, chosen)
    if output == "json":
        click.echo(json.dumps(responses, ensure_ascii=False, allow_nan=False, indent=1))
    elif output == "csv":
        click.echo(render(pd.DataFrame(list(_flat(responses))), "csv"))
    else:
        systems = next(len(row["systems"] or ()) for row in run.prompts if row["prompt"] == prompt)
        click.echo(printable("\n".join([*_asked(run, prompt), *(line for one in responses for line in _told(one, systems))])))


def _show_table(run: BlueprintRun, models: Sequence[str], score: str, output: str) -> None:
    prompts = [str(row["prompt"]) for row in run.prompts]
    nothing: Mapping[str, float | None] = dict.fromkeys(_SCORES_SHOWN)
    if output != "table":
        rows = [
            {"prompt": prompt, "model": model, **run.by_model.get((prompt, model), nothing)}
            for prompt in prompts
            for model in models
        ]
        click.echo(render(pd.DataFrame(rows, columns=["prompt", "model", *_SCORES_SHOWN]), output))
        return
    whole = {row["model"]: row[score] for row in run.at("model")}
    columns: dict[str, list[Any]] = {"prompt": [*prompts, _ALL_PROMPTS]}
    for model in models:
        of_prompts = [run.by_model.get((prompt, model), nothing)[score] for prompt in prompts]
        columns[model] = [*of_prompts, whole.get(model)]
    click.echo(f"{printable(str(run.about['title'] or run.id))}, snapshot {run.snapshot}: {score}, 0-1, higher is better\n")
    frame = printable_frame(pd.DataFrame(columns))
    click.echo(render(frame, "table", as_named=True, fit=terminal_fit(["prompt"], list(frame.columns[:0:-1]))))


def _responses(run: BlueprintRun, prompt: str, models: Sequence[str]) -> list[dict[str, Any]]:
    """One mapping per response, the best model first: what was written, its scores, and every criterion with every judgement."""
    criteria, found = run.criteria.of(prompt), judged(run.points.of(prompt), run.judgements.of(prompt))
    cells = {response_key(row)[:-1]: row for row in run.cells.get(prompt, [])}
    told = []
    for row in run.in_board_order([row for row in run.responses.of(prompt) if row["model"] in models]):
        cell = cells.get(response_key(row)[:-1], {})
        scores = {name: cell.get(name) for name in _SCORES_SHOWN}
        told.append(plain({**row, **scores, "criteria": assessments(response_key(row), criteria, found)}))
    return told


def _asked(run: BlueprintRun, prompt: str) -> Iterator[str]:
    row = next(one for one in run.prompts if one["prompt"] == prompt)
    weight = "" if row["weight"] == 1 else f", weight {row['weight']:g}"
    yield f"{run.id}, snapshot {run.snapshot}, prompt {prompt}{weight}"
    systems = row["systems"] or []
    for place, system in enumerate(systems):
        if system is not None or len(systems) > 1:
            yield from _block(f"system prompt {place}" if len(systems) > 1 else "system prompt", system or "(none)")
    for message in row["messages"]:
        yield from _block(message["role"], "(written by the model)" if message["text"] is None else message["text"])
    if row["ideal"] is not None:
        yield from _block("ideal answer", row["ideal"])


def _block(name: str, text: str) -> Iterator[str]:
    yield f"  {name}:"
    yield from (f"    {line}" for line in text.strip().split("\n"))


def _told(response: Mapping[str, Any], systems: int) -> Iterator[str]:
    """The lines of a response. `systems`: with how many system prompts the prompt is asked."""
    draw = f", draw {response['draw']}" if response["draw"] else ""
    name = display_id(response["model"], response["temperature"], response["system_index"], systems)
    scores = ", ".join(f"{what} {_number(response[what])}" for what in _SCORES_SHOWN if response[what] is not None)
    yield f"\n{name}{draw}: {scores or 'unscored'}"
    if response["status"] != "ok":
        yield f"  {response['status']}: {response['error'] or 'no text'}"
    if response["text"]:
        yield from _block("response (cut by max_tokens)" if response["cut"] else "response", response["text"])
    for one in response["criteria"]:
        yield from _criterion(one)


def _criterion(one: Mapping[str, Any]) -> Iterator[str]:
    path = "" if one["path"] is None else f" path {one['path']}"
    weight = "" if one["weight"] == 1 else f", weight {one['weight']:g}"
    partial = f", {judges_answered(one, one['individual_judgements'])}" if one["partial"] else ""
    found = f", {EXTRACTED}" if one["source"] == EXTRACTED else ""
    yield f"  {_number(one['score'])}  {one['block']}{path} [{one['position']}]{weight}{partial}{found}: {one['words']}"
    if one["score"] is None:
        yield f"        unscored: {one['reason'] or 'no reason was kept'}"
    if one["explanation"]:
        yield f"        {one['explanation']}"
    for judgement in one["individual_judgements"]:
        verdict = f"no verdict ({judgement['reason'] or 'no reason was kept'})"
        if judgement["class"] is not None:
            verdict = f"{judgement['class']} ({judgement['score']:g})"
        yield f"        {judgement['judge']}: {verdict}"
        told = judgement["reflection"] or judgement["error"]
        yield from (f"          {line}" for line in (told or "").strip().split("\n") if line)


def _number(value: float | None) -> str:
    return "   -" if value is None else f"{value:.2f}"


def _flat(responses: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row per criterion of a response; a response without any has a row of its own."""
    for response in responses:
        own = {name: value for name, value in response.items() if name != "criteria"}
        for one in response["criteria"] or [{}]:
            of_criterion = {name: value for name, value in one.items() if name != "individual_judgements"}
            judges = [f"{said['judge']}: {said['class'] or said['reason']}" for said in one.get("individual_judgements", [])]
            yield {**own, **{f"criterion_{name}": value for name, value in of_criterion.items()}, "judges": "; ".join(judges)}
