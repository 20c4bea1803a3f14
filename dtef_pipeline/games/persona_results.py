"""The table `persona_results`: means over the episodes of the latest snapshot, by player, metric and opponent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import stdtrit

from dtef_pipeline.asking.snapshot_order import order_in
from dtef_pipeline.boards.item_board import build_latest_sql
from dtef_pipeline.games.contract import (
    EXPECTED_RETURN,
    EXPLOITATION,
    FORFEIT_RATE,
    FORM_RATES,
    SHARE_UNIT,
    UNIT_SCALE,
    VOLATILITY,
)
from dtef_pipeline.games.personas import BASELINE_PREFIX, NO_PERSONA
from dtef_pipeline.games.tables import PERSONA_RESULTS
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS, Floats, estimate_groups, explain_missing
from dtef_pipeline.statistics.proportions import compute_unit_interval, compute_wilson_interval
from dtef_pipeline.tables import convert_to_schema

if TYPE_CHECKING:
    import pandas as pd


NO_YARDSTICK = "no baseline has played all of these games against this opponent"
_GAME_VERSION = "league, scenario, version"
_MEETING = "persona, model, model_variant, snapshot, opponent"


def build_exploitation_sql(source: str) -> str:
    """Return the SQL of what a player wins against each baseline, minus what the best of all baselines wins against the same one.

    Both are means over the same games, with the same luck of the deal. The best baseline has the highest mean on the player's games;
    because it is chosen on the same deals, exploitation is slightly too low, more so with fewer seeds.

    One row per episode against a baseline, for scenarios with the metric, with the columns that `_sum_by_seed` reads. `source`: a relation with
    rows of `episode_scores`.
    """
    return f"""
        WITH scenario_metric AS (
            SELECT {_GAME_VERSION}, any_value(metric_family) AS metric_family, any_value(unit) AS unit, any_value(direction) AS direction
            FROM {source} WHERE metric = '{EXPLOITATION}' GROUP BY ALL
        ), own AS (
            SELECT {_GAME_VERSION}, {_MEETING}, item_id, cluster, numerator, reason FROM {source} SEMI JOIN scenario_metric USING
            ({_GAME_VERSION}) WHERE metric = '{EXPECTED_RETURN}' AND starts_with(opponent, '{BASELINE_PREFIX}')
        ), made AS (
            SELECT {_GAME_VERSION}, opponent, item_id, model AS yardstick, avg(numerator) AS won FROM own
            WHERE starts_with(model, '{BASELINE_PREFIX}') AND numerator IS NOT NULL GROUP BY ALL
        ), games AS (
            SELECT {_GAME_VERSION}, {_MEETING}, count(*) AS n FROM own WHERE numerator IS NOT NULL GROUP BY ALL
        ), tried AS (
            SELECT {_GAME_VERSION}, {_MEETING}, yardstick, count(*) AS n, avg(won) AS mean
            FROM own JOIN made USING ({_GAME_VERSION}, opponent, item_id) WHERE numerator IS NOT NULL GROUP BY ALL
        ), best AS (
            SELECT * FROM tried SEMI JOIN games USING ({_GAME_VERSION}, {_MEETING}, n)
            QUALIFY row_number() OVER (PARTITION BY {_GAME_VERSION}, {_MEETING} ORDER BY mean DESC, yardstick) = 1
        )
        SELECT {_GAME_VERSION}, {_MEETING}, cluster, '{EXPLOITATION}' AS metric, metric_family, unit, direction,
            CAST(NULL AS DOUBLE) AS weight, numerator - won AS numerator, 1.0 AS denominator,
            CASE WHEN numerator - won IS NULL THEN 'unscored' ELSE 'scored' END AS status,
            CASE WHEN numerator - won IS NULL THEN coalesce(reason, '{NO_YARDSTICK}') END AS reason
        FROM own LEFT JOIN best USING ({_GAME_VERSION}, {_MEETING})
            LEFT JOIN made USING ({_GAME_VERSION}, opponent, item_id, yardstick) JOIN scenario_metric USING ({_GAME_VERSION})
    """


PLAYED_SERIES = "league, scenario, version, persona, model_variant"
"""Key columns of a player in a version of a scenario."""
_LATEST_SCORES = "latest_scores"


def create_latest_scores(connection: duckdb.DuckDBPyConnection, snapshot: str | None = None) -> str:
    """Create a temporary view of the rows of `episode_scores` in the snapshots that count, and return its name.

    `snapshot`: the only one that counts; baselines that did not play in it count with their latest, because they always play alike.
    """
    played = f"""
        SELECT {PLAYED_SERIES}, snapshot, snapshot::VARCHAR = $chosen AS is_chosen, count(*) FILTER (status = 'scored') AS n
        FROM episode_scores WHERE metric = '{EXPECTED_RETURN}'
            AND ($chosen IS NULL OR snapshot::VARCHAR = $chosen OR starts_with(model_variant, '{BASELINE_PREFIX}'))
        GROUP BY ALL
        """
    order = order_in(connection, "episode_scores")
    latest = build_latest_sql(played, PLAYED_SERIES, order, "coalesce(is_chosen, false) DESC")
    connection.execute(f"CREATE OR REPLACE TEMP TABLE latest_snapshots AS {latest}", {"chosen": snapshot})
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP VIEW {_LATEST_SCORES} AS
        SELECT * FROM episode_scores SEMI JOIN latest_snapshots USING ({PLAYED_SERIES}, snapshot)
        """
    )
    return _LATEST_SCORES


ALL_OPPONENTS = "all"
COMPOSITE_METRIC = "composite"
GAME_RESULTS_READS = ("episode_scores", "episode_turns")
"""The tables that results read."""
SHARED_REQUESTS = "no interval: most turns share their requests with other seeds, so that seeds are not independent"
FORFEITED_ALL = "every episode was forfeited"
SHARED_FROM = 0.5
"""Seeds are not independent if a larger share of a player's turns shares its requests with other seeds."""
_PLAYER_COLUMNS = ("league", "scenario", "version", "persona", "model", "model_variant", "snapshot")
_OF_METRIC_COLUMNS = ("metric", "metric_family", "unit", "direction", "weight")
_GROUP_COLUMNS = (*_PLAYER_COLUMNS, "opponent", *_OF_METRIC_COLUMNS)


def compute_game_results(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Compute PERSONA_RESULTS. `connection` has GAME_RESULTS_READS.

    For each scenario, version and player one snapshot counts: the latest with at least half as many episodes as the largest one.
    """
    return convert_to_schema(compute_results_of(connection, create_latest_scores(connection)), PERSONA_RESULTS)


def compute_results_of(connection: duckdb.DuckDBPyConnection, source: str) -> pd.DataFrame:
    """Compute PERSONA_RESULTS from `source`, a relation with rows of the latest snapshots (see `create_latest_scores`)."""
    frame = _compute_player_means(_sum_by_seed(connection, source))
    _remove_shared_intervals(frame, _find_sharing_players(connection))
    frame = _add_composite(_add_form_rates(frame))
    return frame.sort_values([*_PLAYER_COLUMNS[:4], "model_variant", "metric", "opponent"], ignore_index=True)


def _sum_by_seed(connection: duckdb.DuckDBPyConnection, source: str) -> pd.DataFrame:
    group = ", ".join(_GROUP_COLUMNS)
    columns = ", ".join(column for column in _GROUP_COLUMNS if column != "opponent")
    is_scored = "status = 'scored'"
    frame: pd.DataFrame = connection.sql(
        f"""
        WITH exploitation AS ({build_exploitation_sql(source)}), episode_metrics AS (
            SELECT {group}, cluster, numerator, denominator, status, reason FROM {source}
            WHERE metric <> '{EXPLOITATION}' OR NOT EXISTS (FROM exploitation)
            UNION ALL BY NAME FROM exploitation
        )
        SELECT {group.replace("opponent", f"coalesce(opponent, '{ALL_OPPONENTS}') AS opponent")}, cluster,
            coalesce(sum(numerator) FILTER ({is_scored}), 0) AS numerator,
            coalesce(sum(numerator * numerator) FILTER ({is_scored}), 0) AS squares,
            coalesce(sum(denominator) FILTER ({is_scored}), 0) AS denominator,
            count(*) FILTER ({is_scored}) AS episodes,
            count(*) AS n_total,
            any_value(reason) AS unscored
        FROM episode_metrics
        GROUP BY GROUPING SETS (({group}, cluster), ({columns}, cluster))
        HAVING opponent IS NULL OR opponent <> ''
        ORDER BY {group}, cluster
        """
    ).df()
    return frame


def _compute_player_means(sums: pd.DataFrame) -> pd.DataFrame:
    names = list(_GROUP_COLUMNS)
    groups = sums.groupby(names, dropna=False, sort=True)
    code = np.asarray(groups.ngroup(), dtype=np.int64)
    frame = groups.agg(n_episodes=("episodes", "sum"), n_total=("n_total", "sum"), unscored=("unscored", "first")).reset_index()
    is_scored = sums["episodes"].to_numpy() > 0
    columns = [sums[name].to_numpy(dtype=np.float64)[is_scored] for name in ("numerator", "squares", "denominator", "episodes")]
    spread, shares = (frame["metric"] == VOLATILITY).to_numpy(), frame["unit"].isin(UNIT_SCALE).to_numpy()
    means = group_means_of(SeedSums(code[is_scored], *columns), spread, shares)
    fallback = frame["unscored"].fillna("the metric is not defined in any episode")
    return frame.assign(**means | {"reason": np.where(means["n_clusters"] == 0, fallback, means["reason"])})


def _find_sharing_players(connection: duckdb.DuckDBPyConnection) -> set[tuple[Any, ...]]:
    """Find the players with sampled models, as `PLAYED_SERIES` and snapshot, for whom several seeds share most requests."""
    player = f"{PLAYED_SERIES}, snapshot"
    rows = connection.sql(
        f"""
        WITH keys AS (
            SELECT {player}, request_key, count(*) AS n, count(DISTINCT cluster) AS seeds FROM episode_turns
            WHERE under_test AND call_status = 'answered' AND temperature IS DISTINCT FROM 0 GROUP BY ALL
        )
        SELECT {player} FROM keys GROUP BY ALL HAVING sum(n) FILTER (seeds > 1) > {SHARED_FROM} * sum(n)
        """
    ).fetchall()
    return set(rows)


def _remove_shared_intervals(frame: pd.DataFrame, players: set[tuple[Any, ...]]) -> None:
    """Remove, in place, the intervals of players whose seeds are not independent."""
    if not players:
        return
    named = [*PLAYED_SERIES.split(", "), "snapshot"]
    shared = np.array([tuple(row) in players for row in frame[named].itertuples(index=False)])
    void = shared & frame["interval_kind"].notna().to_numpy()
    frame.loc[void, ["low", "high"]] = np.nan
    frame.loc[void, "interval_kind"] = None
    frame.loc[void, "reason"] = SHARED_REQUESTS


def _add_form_rates(frame: pd.DataFrame) -> pd.DataFrame:
    keys = [*_PLAYER_COLUMNS, "opponent"]
    form = frame[frame["metric"].isin(FORM_RATES)].pivot_table(index=keys, columns="metric", values="mean", dropna=False)
    form = form.reindex(columns=list(FORM_RATES)).dropna(how="all").reset_index()
    return frame.merge(form, on=keys, how="left")


def _add_composite(frame: pd.DataFrame) -> pd.DataFrame:
    """Add a row with the composite score of each player and opponent, if the scenario has one: the weighted mean of normalised metrics."""
    import pandas as pd

    parts = frame[frame["weight"].fillna(0) > 0]
    if not len(parts):
        return frame
    upward = np.where(parts["direction"] == "higher", parts["mean"], 1 - parts["mean"])
    missing = parts["mean"].isna()
    # A player that forfeits every episode does nothing measurable: missing values count as the worst, 0 in the sum.
    is_worst = missing & (parts[FORFEIT_RATE] >= 1)
    keys = [*_PLAYER_COLUMNS, "opponent", *FORM_RATES]
    parts = parts.assign(
        weighted=upward * parts["weight"],
        part=[  # `3 x completion_rate`, `1 x (1 - forfeit_rate)`
            f"{weight:g} x {metric if direction == 'higher' else f'(1 - {metric})'}"
            for metric, direction, weight in zip(parts["metric"], parts["direction"], parts["weight"], strict=True)
        ],
        missing=parts["metric"].where(missing & ~is_worst),
        worst=parts["metric"].where(is_worst),
    )
    sums = parts.groupby(keys, dropna=False).agg(
        weighted=("weighted", "sum"),
        weight=("weight", "sum"),
        parts=("part", ", ".join),
        missing=("missing", lambda names: ", ".join(names.dropna())),
        worst=("worst", lambda names: ", ".join(names.dropna())),
        n_episodes=("n_episodes", "min"),
        n_total=("n_total", "max"),
        n_clusters=("n_clusters", "min"),
    )
    rows = sums.reset_index().assign(
        metric=COMPOSITE_METRIC, metric_family=COMPOSITE_METRIC, unit=SHARE_UNIT, direction="higher"
    )
    is_missing = rows["missing"] != ""
    rows["mean"] = np.where(is_missing, np.nan, rows["weighted"] / rows["weight"])
    none, no_interval = "no value of " + rows["missing"] + ", a part of: ", "no interval is computed for the weighted mean of: "
    note = np.where(rows["worst"] != "", f"{FORFEITED_ALL}, so these count as the worst: " + rows["worst"] + "; ", "")
    rows["reason"] = note + np.where(is_missing, none, no_interval) + rows["parts"]
    return pd.concat([frame, rows.assign(low=np.nan, high=np.nan, interval_kind=None)], ignore_index=True)


def format_player_names(personas: Sequence[str], models: Sequence[str]) -> list[str]:
    """Return the players' names in the form of opponents: `persona@model`, or only the model."""
    return [model if persona == NO_PERSONA else f"{persona}@{model}" for persona, model in zip(personas, models, strict=True)]


WILSON_MEAN, T_MEAN, JACKKNIFED = "wilson", "t", "jackknifed"
ALIKE_SEEDS = "no interval: all seeds have the same value, so that their spread is unknown"


class SeedSums(NamedTuple):
    """One row per group and seed, (n,) each: sums over its episodes in which the metric is defined."""

    group: npt.NDArray[np.int64]
    numerator: Floats
    squares: Floats
    """Sum of squared totals."""
    denominator: Floats
    episodes: Floats


def group_means_of(sums: SeedSums, spread: npt.NDArray[np.bool_], shares: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
    """Return the mean of each group, sum(numerator) / sum(denominator), with its 95 % interval clustered by seed (`estimate_ratios`).

    `spread` (groups,): flags groups whose value is the standard deviation of the totals (population), with the interval of
    `_compute_variance_interval`. `shares` (groups,): flags metrics on 0-1, with the interval of `compute_unit_interval`, or Wilson's if
    each seed has one episode that counts 0 or 1 of 1. There is no interval with fewer than 5 seeds, nor, except for shares, if all seeds
    have the same value.

    Columns as in PERSONA_RESULTS, (groups,) each; mean is NaN, and the reason None, if the metric is not defined in any episode.
    """
    groups = len(spread)
    n_seeds = np.bincount(sums.group, minlength=groups)
    ratios = estimate_groups(_compute_numerators(sums, spread), sums.denominator, sums.group, groups)
    mean, bounded = ratios.value, shares & ~spread
    wilson = _is_wilson(sums, bounded & (n_seeds > 0))
    wins = np.where(wilson, np.bincount(sums.group, sums.numerator, groups), 0)
    enough, alike = n_seeds >= MIN_CLUSTERS, ~bounded & (ratios.se == 0)
    ends = []
    for exact, unit, plain, variance in zip(
        compute_wilson_interval(wins, np.where(wilson, n_seeds, 0)),
        compute_unit_interval(ratios),
        ratios.interval(),
        _compute_variance_interval(sums, groups),
        strict=True,
    ):
        end = np.select([wilson, ~enough, spread, bounded], [exact, np.nan, variance, unit], np.where(alike, np.nan, plain))
        ends.append(np.where(spread, np.sqrt(np.maximum(end, 0)), end))
    kind = np.where(wilson, WILSON_MEAN, np.where(spread, JACKKNIFED, T_MEAN)).astype(object)
    kind[np.isnan(ends[0])] = None
    reason = np.array([explain_missing(int(n), "seed") or ALIKE_SEEDS for n in n_seeds], dtype=object)
    reason[(n_seeds == 0) | ~np.isnan(ends[0])] = None
    mean = np.where(spread, np.sqrt(np.maximum(mean, 0)), np.where(bounded, np.clip(mean, 0, 1), mean))
    return {"mean": mean, "low": ends[0], "high": ends[1], "interval_kind": kind, "reason": reason, "n_clusters": n_seeds}


def _compute_numerators(sums: SeedSums, spread: npt.NDArray[np.bool_]) -> Floats:
    """Return the values to average over seeds: the totals, or for a spread the sums of squared distances from the mean of the group."""
    groups = len(spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (np.bincount(sums.group, sums.numerator, groups) / np.bincount(sums.group, sums.denominator, groups))[sums.group]
    squared = sums.squares - 2 * mean * sums.numerator + mean**2 * sums.denominator
    return np.where(spread[sums.group], np.maximum(squared, 0), sums.numerator)


def _is_wilson(sums: SeedSums, shares: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the groups with a share as metric in which each seed has one episode that counts 0 or 1 of 1."""
    is_single = (sums.episodes == 1) & (sums.denominator == 1) & ((sums.numerator == 0) | (sums.numerator == 1))
    return np.asarray(shares & (np.bincount(sums.group, ~is_single, len(shares)) == 0), dtype=bool)


def _compute_variance_interval(sums: SeedSums, groups: int) -> tuple[Floats, Floats]:
    """Return low and high of the variance of each group, (groups,): the jackknife over seeds of the logarithm of the variance. NaN if all
    seeds, or all but one, have the same value.

    With C seeds, l the logarithm over all and l(i) that without seed i, the C pseudo-values C l - (C - 1) l(i) are treated as independent:
    the interval is their mean -+ t of C - 1 degrees of freedom times its standard error. Source: Miller (1968), Jackknifing variances.
    """
    group = sums.group
    n_seeds = np.bincount(group, minlength=groups)
    squares, totals, counts = (
        np.bincount(group, column, groups) for column in (sums.squares, sums.numerator, sums.denominator)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        every = np.log(squares / counts - (totals / counts) ** 2)
        weight = counts[group] - sums.denominator
        jackknife = np.log((squares[group] - sums.squares) / weight - ((totals[group] - sums.numerator) / weight) ** 2)
        pseudo = n_seeds[group] * every[group] - (n_seeds[group] - 1) * jackknife
        mean = np.bincount(group, pseudo, groups) / n_seeds
        variance = np.bincount(group, (pseudo - mean[group]) ** 2, groups) / (n_seeds - 1)
        reach = stdtrit(np.maximum(n_seeds - 1, 1), (1 + CONFIDENCE) / 2) * np.sqrt(variance / n_seeds)
        low, high = np.exp(mean - reach), np.exp(mean + reach)
    is_finite = np.isfinite(low) & np.isfinite(high)
    return np.where(is_finite, low, np.nan), np.where(is_finite, high, np.nan)
