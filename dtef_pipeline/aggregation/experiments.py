"""Comparing the conditions of an experiment: every model in every condition, paired with the same model in the first condition.

Cells are those of `boards`: (round, segment, question) at a context level, draws averaged. Where the conditions differ in what context they
show, their context levels are paired in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pandas as pd

from dtef_pipeline.aggregation.boards import BoardOptions, cells_sql, parameters
from dtef_pipeline.aggregation.costs import REQUESTS_SQL
from dtef_pipeline.prediction.experiments import Asked


def paired_cells(connection: duckdb.DuckDBPyConnection, asked: Sequence[Asked], options: BoardOptions) -> pd.DataFrame:
    """The scored and unscored cells of an experiment, each beside the same cell of the same model in the first condition.

    `connection` has a `scores` view; `options.snapshot` is set, for answers of several snapshots do not compare. Columns: `model`,
    `condition` (the name in the experiment), `condition_place` (0: the first), `round`, `segment`, `question_id`, `context_place` (of the
    context level among those of the condition), `score` (0-1; null: unscored), `first_score`, `n_total`, `n_ok`, `n_answered`
    (predictions).
    """
    connection.execute("SET threads = 1")
    connection.register("asked", _asked_frame(asked))
    found = connection.execute(
        f"""
        {cells_sql(options)}
        , placed AS (
            SELECT asked.model, asked.name AS condition, asked.model_place, asked.condition_place, asked.context_place,
                cells.* EXCLUDE (model, condition)
            FROM cells JOIN asked ON cells.model_variant = asked.variant AND cells.condition = asked.condition
                AND cells.context_level = asked.context_level
        ), first AS (FROM placed WHERE condition_place = 0)
        SELECT model, placed.condition, placed.condition_place, round, segment, question_id, context_place,
            placed.score, first.score AS first_score, placed.n_total, placed.n_ok, placed.n_answered
        FROM placed LEFT JOIN first USING (model, round, segment, question_id, context_place)
        ORDER BY placed.model_place, placed.condition_place, round, segment, question_id, context_place
        """,
        parameters(options),
    ).df()
    connection.unregister("asked")
    return found


def comparison(cells: pd.DataFrame, usage: pd.DataFrame) -> pd.DataFrame:
    """Each model in each condition against the first condition, over the cells that both have a score for, of those asked in every condition.

    `cells` as of `paired_cells`, `usage` as of `condition_usage`. Columns: `model`, `condition`, `n_pairs`, `score` and `first_score`
    (means over the pairs), `difference` (their difference; null in the first condition, which is compared with nothing), `n_total`
    (predictions), `parse_rate`, and the columns of `usage`.
    """
    keys = ["model", "condition"]
    cells = _asked_everywhere(cells)
    paired = cells[cells["score"].notna() & cells["first_score"].notna()]
    means = paired.groupby(keys)[["score", "first_score"]].mean().assign(n_pairs=paired.groupby(keys).size())
    table = cells.groupby(keys, sort=False)[["condition_place", "n_total", "n_ok", "n_answered"]].agg(
        {"condition_place": "first", "n_total": "sum", "n_ok": "sum", "n_answered": "sum"}
    )
    table = table.join(means)
    table["n_pairs"] = table["n_pairs"].fillna(0).astype(int)
    table["difference"] = (table["score"] - table["first_score"]).where(table["condition_place"] > 0)
    table["parse_rate"] = table["n_ok"] / table["n_answered"].where(table["n_answered"] > 0)
    columns = ["n_pairs", "score", "first_score", "difference", "n_total", "parse_rate"]
    return table[columns].reset_index().merge(usage, on=keys, how="left")


def _asked_everywhere(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that a model was asked in every one of its conditions: what other runs asked in one of them compares with nothing."""
    cell = ["model", "round", "segment", "question_id", "context_place"]
    in_conditions = cells.groupby(cell)["condition"].transform("nunique")
    return cells[in_conditions == cells.groupby("model")["condition"].transform("nunique")]


def condition_usage(connection: duckdb.DuckDBPyConnection, asked: Sequence[Asked], options: BoardOptions) -> pd.DataFrame:
    """Tokens and dollars of each model in each condition.

    Columns: `model`, `condition`, `prompt_tokens`, `completion_tokens`, `cost_usd` (null: no known price), `unpriced` (answers).

    `connection` has a `predictions` view. A request that two conditions share counts in one of them, as everywhere. Baselines have no rows.
    """
    connection.register("asked", _asked_frame(asked))
    wanted: Mapping[str, object] = {"snapshot": options.snapshot, "rounds": list(options.rounds)}
    found = connection.execute(
        f"""
        SELECT asked.model, asked.name AS condition, sum(prompt_tokens)::BIGINT AS prompt_tokens,
            sum(completion_tokens)::BIGINT AS completion_tokens, sum(cost_usd) AS cost_usd,
            count(*) FILTER (answered AND cost_usd IS NULL) AS unpriced
        FROM ({REQUESTS_SQL}) AS requests JOIN asked ON requests.model_variant = asked.variant
            AND requests.condition = asked.condition AND requests.context_level = asked.context_level
        WHERE snapshot = $snapshot AND (len($rounds) = 0 OR list_contains($rounds, round)) GROUP BY ALL
        """,
        wanted,
    ).df()
    connection.unregister("asked")
    return found


def _asked_frame(asked: Sequence[Asked]) -> pd.DataFrame:
    """One row a (model, condition, context level), with their places in the experiment."""
    models = {name: place for place, name in enumerate(dict.fromkeys(one.model for one in asked))}
    names = {name: place for place, name in enumerate(dict.fromkeys(one.name for one in asked))}
    rows = [
        (one.model, models[one.model], one.name, names[one.name], one.options.condition, one.spec.variant, level, place)
        for one in asked
        for place, level in enumerate(one.options.context_levels)
    ]
    columns = ["model", "model_place", "name", "condition_place", "condition", "variant", "context_level", "context_place"]
    return pd.DataFrame(rows, columns=columns)
