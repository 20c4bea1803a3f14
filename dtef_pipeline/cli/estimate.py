"""What `dtef run --estimate` does: the run is counted and priced. Asks no model and writes nothing."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import sqlalchemy as sa

from assets.stage.snapshots import require_snapshot
from assets.survey.predictor import limited_prompts
from dtef_pipeline.asking.estimate import ESTIMATED, answer_limits, expected_answers
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.same_texts import same_texts, sources
from dtef_pipeline.boards.costs import answer_lengths
from dtef_pipeline.cli.asked_questions import question_lines
from dtef_pipeline.cli.budget_lines import budget_lines, sent_lines
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.selection import RunOptions, Selection, partition_keys, selection
from dtef_pipeline.cli.terminal_width import say, terminal_fit
from dtef_pipeline.errors import DtefError
from dtef_pipeline.identity import request_keys, split_partition_key
from dtef_pipeline.report.column_lines import column_lines
from dtef_pipeline.report.fitting import shown_columns
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.estimate import prompts_to_ask
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.predictions import as_listed, has_duplicates, select_prompts
from resources.gateway.prices import Price, price
from resources.known_models import known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse

_REQUEST_COUNTS = ["requests", "replayed", "calls", "prompt_tokens", "answer_tokens", "answer_tokens_most"]
DOLLARS = ["cost_usd", "cost_usd_most"]
_READ = [*KEYS.cell, "prompt_id", "options", "reading", "tokens", "answer_tokens"]


@reads_tables
def estimate(warehouse: Warehouse, options: RunOptions, output: str) -> None:
    settings = Settings.from_environment()
    chosen = selection(options, known_models(settings, BASELINES))
    models = [model for model in chosen.models if not model.is_computed]
    keys = partition_keys(warehouse, chosen.rounds, chosen.segments)
    require_snapshot(warehouse, "predictions", SPACE, keys, chosen.snapshot)
    frame = _estimate(warehouse, chosen, models, keys, settings)
    if output != "table":
        click.echo(render(frame, output))
        return
    for line in question_lines(warehouse, chosen):
        say(line)
    if not models:
        click.echo("baselines ask no model: no calls, no cost")
        return
    shown = _shown(frame, len(chosen.spelled) > 1)
    fit = terminal_fit(["model", "condition", "calls", *DOLLARS], ["prompt_tokens", "answer_tokens", "answer_tokens_most"])
    click.echo(render(shown, "table", fit=fit))
    for line in _budget_lines(chosen, frame):
        say(line)
    called = set(frame.loc[frame["calls"] > 0, "model_variant"])
    for line in sent_lines([model for model in models if model.variant in called]):
        say(line)
    click.echo(column_lines(shown_columns([*map(str, shown)], fit), ESTIMATED, fit.width))


def _estimate(
    warehouse: Warehouse, chosen: Selection, models: list[ModelSpec], keys: list[str], settings: Settings
) -> pd.DataFrame:
    """One row per (model, condition) in which it is asked."""
    blueprints, same = _blueprints(warehouse, chosen, keys)
    prompts, only = prompts_to_ask(blueprints, chosen.blueprints), limited_prompts(blueprints, chosen.limits)
    measured = _measured(warehouse, chosen)
    with stored_responses(settings) as store:
        asked = {model: _requests(_prompts_of(model, prompts, chosen, only), same, chosen, model, store) for model in models}
    rows = [row for model, requests in asked.items() for row in _rows(requests, chosen, model, measured)]
    return pd.DataFrame(rows, columns=["model", "model_variant", "condition", *_REQUEST_COUNTS, *DOLLARS])


def _blueprints(warehouse: Warehouse, chosen: Selection, keys: list[str]) -> tuple[pa.Table, dict[str, tuple[str, ...]]]:
    """The prompts of all partitions, and which of a partition read the same."""
    tables = []
    same: dict[str, tuple[str, ...]] = {}
    for key in keys:
        round_id, segment = split_partition_key(key)
        survey = warehouse.rows("survey_responses", round=round_id, segment=segment)
        if not len(survey):
            continue
        try:
            made = build_blueprints(survey, *chosen.blueprints)
        except DtefError as error:
            say(f"warning: {error}", err=True)
            continue
        tables.append(select_prompts(made, survey, sample=chosen.sample).select(_READ))
        if has_duplicates(survey):
            same |= same_texts(made, as_listed)
    if not tables:
        raise DtefError(
            "no prompt can be made: see the warnings above"
            if warehouse.skipped
            else "no prompt can be made: give more tokens, such as --condition distribution+tokens=8000"
        )
    return pa.concat_tables(tables), same


def _prompts_of(model: ModelSpec, prompts: pd.DataFrame, chosen: Selection, only: Mapping[str, pa.Array]) -> pd.DataFrame:
    """The prompts the model is asked, each once."""
    wanted = prompts[prompts["condition"].isin(chosen.conditions_of(model))]
    if model.name in only:
        wanted = wanted[wanted["prompt_id"].isin(only[model.name].to_pylist())]
    return wanted.drop_duplicates("prompt_id")


def _requests(
    prompts: pd.DataFrame,
    same: Mapping[str, tuple[str, ...]],
    chosen: Selection,
    model: ModelSpec,
    store: ResponseStore | None,
) -> pd.DataFrame:
    """The prompts with two counts: `requests`, one per draw that no prompt of the same text serves, and `replayed`, those that are stored."""

    def known(keys: Sequence[str]) -> set[str]:
        return store.known(keys) if store else set()

    served = sources(prompts["prompt_id"], same, model.variant, chosen.draws, chosen.snapshot, known)
    own = [request_keys(prompts["prompt_id"], model.variant, draw, chosen.snapshot) for draw in range(chosen.draws)]
    first: dict[str, int] = {}
    for of_draw in own:
        for place, key in enumerate(of_draw):
            first.setdefault(served[key].request_key if key in served else key, place)
    stored = known(list(first))
    replayed = [place for key, place in first.items() if key in stored]
    return prompts.assign(requests=_times(list(first.values()), prompts), replayed=_times(replayed, prompts))


def _times(places: list[int], prompts: pd.DataFrame) -> npt.NDArray[np.int64]:
    """How often the place of each prompt is among the places."""
    return np.bincount(np.array(places, np.int64), minlength=len(prompts))


@contextmanager
def stored_responses(settings: Settings) -> Iterator[ResponseStore | None]:
    """The response store. One that is not there yet is not made for the asking."""
    url = sa.make_url(settings.responses_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        yield None
        return
    with ResponseStore(settings.responses_url) as store:
        yield store


def _rows(
    requests: pd.DataFrame, chosen: Selection, model: ModelSpec, measured: Mapping[tuple[str, str], float]
) -> Iterator[dict[str, Any]]:
    found = price(model)
    table = requests.assign(
        calls=requests["requests"] - requests["replayed"],
        expected=expected_answers(requests, model, measured),
        most=answer_limits(requests, model),
    )
    for condition, part in table.groupby("condition", sort=False):
        prompt, answer, most = ((part["calls"] * part[name]).sum(skipna=False) for name in ("tokens", "expected", "most"))
        yield {
            "model": model.name,
            "model_variant": model.variant,
            "condition": condition,
            **{name: int(part[name].sum()) for name in ("requests", "replayed", "calls")},
            "prompt_tokens": int(prompt),
            "answer_tokens": round(answer),
            "answer_tokens_most": most,
            "cost_usd": found.of(int(prompt), round(answer)) if found else None,
            "cost_usd_most": _most_cost(found, int(prompt), most),
        }


def _most_cost(found: Price | None, prompt_tokens: int, answer_tokens: float) -> float | None:
    """US dollars for responses of such a length; None: unknown, as is that of responses without a limit."""
    if found is None or (math.isnan(answer_tokens) and found.completion > 0):
        return None
    return found.of(prompt_tokens, 0 if math.isnan(answer_tokens) else round(answer_tokens))


def _measured(warehouse: Warehouse, chosen: Selection) -> dict[tuple[str, str], float]:
    if not warehouse.values("predictions", "round"):
        return {}
    found = warehouse.query(lambda connection: answer_lengths(connection, KEYS, chosen.rounds), only=["predictions"])
    return {(variant, condition): mean for (variant, condition), mean in found.items()}


def _shown(frame: pd.DataFrame, several_conditions: bool) -> pd.DataFrame:
    """The rows as people read them, with their sum; a sum with an unknown part says from what on it is."""
    total: dict[str, Any] = {"model": "total", "condition": ""} | {
        name: frame[name].sum(skipna=False) for name in _REQUEST_COUNTS
    }
    total |= {name: frame[name].sum() if frame[name].notna().any() else None for name in DOLLARS}
    shown = pd.concat([frame, pd.DataFrame([total])], ignore_index=True)
    shown["answer_tokens_most"] = [f"{value:,.0f}" if pd.notna(value) else "no limit" for value in shown["answer_tokens_most"]]
    for name in DOLLARS:
        unknown = bool(frame[name].isna().any())
        texts = [f"${value:,.4f}" if pd.notna(value) else "unknown" for value in shown[name]]
        texts[-1] = f"{texts[-1]} and the unknown" if unknown and texts[-1] != "unknown" else texts[-1]
        shown[name] = texts
    return shown[["model", *(["condition"] if several_conditions else []), *_REQUEST_COUNTS, *DOLLARS]]


def _budget_lines(chosen: Selection, frame: pd.DataFrame) -> Iterator[str]:
    """How the budgets of the run and of its models compare with the estimate."""
    yield from budget_lines("", chosen.budget, _expected(frame))
    for model in chosen.models:
        budget = chosen.budgets.get(model.name, model.budget)
        yield from budget_lines(f"{model.name}: ", budget, _expected(frame[frame["model"] == model.name]))


def _expected(frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """By bound of a budget, what is usual and what is the most; NaN: unknown."""
    tokens = frame["prompt_tokens"].sum()
    return {
        "max_cost_usd": (frame["cost_usd"].sum(skipna=False), frame["cost_usd_most"].sum(skipna=False)),
        "max_calls": (frame["calls"].sum(), frame["calls"].sum()),
        "max_tokens": (tokens + frame["answer_tokens"].sum(), tokens + frame["answer_tokens_most"].sum(skipna=False)),
    }
