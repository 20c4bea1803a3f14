"""`dtef run --estimate`: counts and prices a run. Asks no model and writes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click
import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from assets.stage.snapshots import require_snapshot
from assets.survey.predictor import limited_prompts
from dtef_pipeline.asking.estimate import ESTIMATED, answer_limits, expected_answers
from dtef_pipeline.asking.models import COMPUTED_SQL, ModelSpec
from dtef_pipeline.asking.same_texts import same_texts, sources
from dtef_pipeline.boards.cells import has_table, policy_sql
from dtef_pipeline.boards.costs import answer_lengths
from dtef_pipeline.boards.reliability import detectable_difference
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.planned_table import DOLLARS, budget_lines, sent_lines, stored_responses
from dtef_pipeline.cli.survey.selection import Selection, SurveyFlags, partition_keys, selection
from dtef_pipeline.cli.terminal import print_table, say
from dtef_pipeline.errors import DtefError, WarehouseError
from dtef_pipeline.identity import request_keys, split_partition_key
from dtef_pipeline.report.terminal import render
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.boards.linked import question_clusters
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.estimate import prompts_to_ask
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.predictions import as_listed, has_duplicates, select_prompts
from dtef_pipeline.survey.question_draw import what_it_tells
from dtef_pipeline.survey.scoring.expected_error import (
    Components,
    expected_degrees,
    expected_error,
    of_difference,
    variance_components,
)
from dtef_pipeline.survey.stored_tables import SURVEY_CALL_TABLES
from resources.gateway.prices import Price, price
from resources.known_models import known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse

_TABLES_OF_PAIRS = ("survey_responses", "reference_scores", "scores")
_SERIES_OF_SCORES = ["way", "model_variant"]
_LEAST_READ = 0.5
"""Parse rate from which a model's scores say how those of another one will differ: unread responses all score alike."""


class _Spread(NamedTuple):
    """Variance components, and what they are from."""

    score: Components
    difference: Components
    source: str


def question_lines(warehouse: Warehouse, chosen: Selection) -> Iterator[str]:
    """Lines for each round, and for all where there are several. None where surveys cannot be read: whoever asks them says so."""
    there = [name for name in _TABLES_OF_PAIRS if warehouse.values(name, "round")]
    if not there:
        return

    def read(connection: duckdb.DuckDBPyConnection) -> tuple[pd.DataFrame, _Spread | None]:
        clusters = question_clusters(connection)
        return _add_batteries(_pairs(connection, chosen), clusters), _spread(connection, chosen, clusters)

    try:
        pairs, spread = warehouse.query(read, only=there, first=())
    except WarehouseError:
        return
    for round_id, own in pairs.groupby("round", sort=False):
        yield from _lines(str(round_id), own, chosen, spread)
    if len(chosen.settings.rounds) > 1:
        yield from _lines(f"{' and '.join(chosen.settings.rounds)} together", pairs, chosen, spread)


def _lines(name: str, pairs: pd.DataFrame, chosen: Selection, spread: _Spread | None) -> Iterator[str]:
    drawn = pairs.assign(draw_order=np.where(pairs["is_sampled"], pairs["draw_order"], np.inf))
    questions = drawn.groupby("question", sort=False, as_index=False).agg(
        draw_order=("draw_order", "min"), is_target=("is_target", "any"), cluster=("cluster", "first")
    )
    yield f"{name}: {what_it_tells(questions, chosen.settings.sample.questions)}"
    targets = drawn[drawn["is_target"]]
    asked = targets[targets["draw_order"] < (chosen.settings.sample.questions or np.inf)]
    of_all = f" of {len(targets):,}" if len(asked) < len(targets) else ""
    told = f"{name}: {len(asked):,}{of_all} {'pair' if len(targets) == 1 else 'pairs'} of segment and question"
    if spread and asked["cluster"].nunique() >= MIN_CLUSTERS:
        score, difference = (expected_error(of, asked) for of in (spread.score, spread.difference))
        found = detectable_difference(difference, expected_degrees(asked))
        told += (
            f"; expected standard error {score:.3f} of a score and {difference:.3f} of a difference of two models; a difference of "
            f"{found:.3f} is found with 80 % power (by {spread.source})"
        )
    yield told


def _pairs(connection: duckdb.DuckDBPyConnection, chosen: Selection) -> pd.DataFrame:
    """One row per pair of the chosen rounds and segments: `round`, `question_id`, `draw_order`, `is_target`, `is_sampled`."""
    counts = SurveyBoardOptions(segments=tuple(chosen.settings.segments)).of_answers or "true"
    return connection.execute(
        f"""SELECT {", ".join(KEYS.shared_item)}, draw_order, NOT circular AS is_target, segment_order < $3 AS is_sampled
            FROM survey_responses WHERE list_contains($1, round) AND (len($2) = 0 OR list_contains($2, segment)) AND {counts}
            ORDER BY list_position($1, round), draw_order""",
        [chosen.settings.rounds, chosen.settings.segments, chosen.settings.sample.segments or 2**31 - 1],
    ).df()


def _spread(connection: duckdb.DuckDBPyConnection, chosen: Selection, clusters: pd.DataFrame) -> _Spread | None:
    """By what language models scored when asked so, where that is enough; else by baselines. None: there are too few batteries of either."""
    baselines = _add_batteries(_baselines(connection, chosen), clusters)
    score, difference = _components(baselines.assign(score=baselines["typical"])), _components(baselines)
    if score is None or difference is None:
        return None
    stored = _add_batteries(_model_scores(connection, chosen), clusters)
    own, between = _components(stored), _components(of_difference(stored))
    by = "stored scores" if own else "the baselines' scores"
    of_difference_by = "" if bool(own) == bool(between) else ", the difference by the baselines'"
    return _Spread(own or score, between or difference, by + of_difference_by)


def _baselines(connection: duckdb.DuckDBPyConnection, chosen: Selection) -> pd.DataFrame:
    """The leave-one-out marginal's score of each pair as `typical`, and its lead over the uniform baseline as `score`."""
    metric = SurveyBoardOptions().metric
    return connection.execute(
        f"""SELECT {", ".join(KEYS.pair)}, '' AS way, '' AS model_variant,
                   coalesce(r.others.{metric}, r.population.{metric}) AS typical, typical - uniform.{metric} AS score
            FROM reference_scores r JOIN survey_responses USING ({", ".join(KEYS.pair)})
            WHERE list_contains($1, round) AND NOT circular AND typical IS NOT NULL""",
        [chosen.settings.rounds],
    ).df()


def _model_scores(connection: duckdb.DuckDBPyConnection, chosen: Selection) -> pd.DataFrame:
    """Mean scores of language models by pair, of the ways of asking that are chosen, where enough of a model's responses could be read."""
    if not has_table(connection, "scores"):
        return pd.DataFrame(columns=[*KEYS.pair, *_SERIES_OF_SCORES, "score"])
    score = policy_sql(SurveyBoardOptions())
    return connection.execute(
        f"""SELECT {", ".join(KEYS.pair)}, condition || ' ' || context_level AS way, model_variant, avg({score}) AS score FROM scores
            WHERE list_contains($1, round) AND list_contains($2, condition) AND list_contains($3, context_level)
                AND NOT {COMPUTED_SQL} AND NOT {KEYS.left_out}
            GROUP BY {", ".join(KEYS.pair)}, way, model_variant HAVING avg({score}) IS NOT NULL
            QUALIFY avg(avg((status = 'ok')::DOUBLE)) OVER (PARTITION BY way, model_variant) >= {_LEAST_READ}""",
        [chosen.settings.rounds, chosen.settings.conditions, chosen.settings.context_levels],
    ).df()


def _components(scores: pd.DataFrame) -> Components | None:
    """Means over the models of their variance components; None where no model has scores in enough batteries, and several of a question."""
    series = [
        own
        for _, own in scores.groupby(_SERIES_OF_SCORES)
        if own["cluster"].nunique() >= MIN_CLUSTERS and own["question"].duplicated().any()
    ]
    return Components(*np.mean([variance_components(own) for own in series], axis=0)) if series else None


def _add_batteries(rows: pd.DataFrame, clusters: pd.DataFrame) -> pd.DataFrame:
    """With `cluster`, and `question`, one name for round and id."""
    linked = rows.merge(clusters, on=list(KEYS.shared_item))
    return linked.assign(question=linked["round"] + "/" + linked["question_id"])


_REQUEST_COUNTS = ["requests", "replayed", "calls", "prompt_tokens", "answer_tokens", "answer_tokens_most"]
_READ = [*KEYS.cell, "prompt_id", "options", "reading", "tokens", "answer_tokens"]


@reads_tables
def estimate(warehouse: Warehouse, given: Mapping[str, Any], flags: SurveyFlags, output: str) -> None:
    settings = Settings.from_environment()
    chosen = selection(given, flags, known_models(settings, BASELINES))
    models = [model for model in chosen.models if not model.is_computed]
    keys = partition_keys(warehouse, chosen.settings.rounds, chosen.settings.segments)
    require_snapshot(warehouse, "predictions", SPACE, keys, chosen.settings.snapshot)
    frame = _estimate(warehouse, chosen, models, keys, settings)
    if output != "table":
        click.echo(render(frame, output))
        return
    for line in question_lines(warehouse, chosen):
        say(line)
    if not models:
        click.echo("baselines ask no model: no calls, no cost")
        return
    shown = _shown(frame, len(chosen.settings.conditions) > 1)
    called = set(frame.loc[frame["calls"] > 0, "model_variant"])
    print_table(
        shown,
        ESTIMATED,
        kept=["model", "condition", "calls", *DOLLARS],
        first_out=["prompt_tokens", "answer_tokens", "answer_tokens_most"],
        lines=[*_budget_lines(chosen, frame), *sent_lines([model for model in models if model.variant in called])],
    )


def _estimate(
    warehouse: Warehouse, chosen: Selection, models: list[ModelSpec], keys: list[str], settings: Settings
) -> pd.DataFrame:
    """One row per (model, condition) in which it is asked."""
    blueprints, same = _blueprints(warehouse, chosen, keys)
    prompts, only = prompts_to_ask(blueprints, chosen.blueprints), limited_prompts(blueprints, chosen.settings.limits)
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
        tables.append(select_prompts(made, survey, sample=chosen.settings.sample).select(_READ))
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

    served = sources(prompts["prompt_id"], same, model.variant, chosen.settings.draws, chosen.settings.snapshot, known)
    own = [
        request_keys(prompts["prompt_id"], model.variant, draw, chosen.settings.snapshot)
        for draw in range(chosen.settings.draws)
    ]
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
    return warehouse.query(
        lambda connection: answer_lengths(connection, SURVEY_CALL_TABLES, chosen.settings.rounds), only=["predictions"]
    )


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
    yield from budget_lines("", chosen.settings.budget, _expected(frame))
    for model in chosen.models:
        budget = chosen.settings.budgets.get(model.name, model.budget)
        yield from budget_lines(f"{model.name}: ", budget, _expected(frame[frame["model"] == model.name]))


def _expected(frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """By bound of a budget, what is usual and what is the most; NaN: unknown."""
    tokens = frame["prompt_tokens"].sum()
    return {
        "max_cost_usd": (frame["cost_usd"].sum(skipna=False), frame["cost_usd_most"].sum(skipna=False)),
        "max_calls": (frame["calls"].sum(), frame["calls"].sum()),
        "max_tokens": (tokens + frame["answer_tokens"].sum(), tokens + frame["answer_tokens_most"].sum(skipna=False)),
    }
