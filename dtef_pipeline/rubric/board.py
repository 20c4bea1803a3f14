"""Leaderboards of models over the latest run of each blueprint, and within blueprints, prompts, criteria and tags.

Source: weval methodology, 5.3. Intervals are by whole blueprints; within one blueprint, by its prompts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among, order_in
from dtef_pipeline.boards.cuts import stack_cuts
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.scoring import CELL_LEVEL, MODEL_LEVEL
from dtef_pipeline.rubric.levels import (
    CELL_KEYS,
    CRITERION_KEYS,
    MODEL_KEYS,
    PROMPT_KEYS,
    RESPONSE_KEYS,
    RUN_KEYS,
    VARIANT_KEYS,
    Codes,
    Floats,
    RowGroups,
    cast_keys,
    count,
    group_rows,
    sort_unique,
    sum_by_code,
    weighted_mean,
)
from dtef_pipeline.rubric.tables import RUBRIC_BOARD, RUBRIC_CUTS
from dtef_pipeline.statistics.cluster_robust import estimate_ratios, explain_missing
from dtef_pipeline.statistics.proportions import compute_unit_interval
from dtef_pipeline.statistics.ranks import rank_bounds_of_means, rank_numbers
from dtef_pipeline.text.number_words import format_count

MIN_BLUEPRINTS = 10
"""Blueprints that a model must have a score in to be ranked (weval methodology, 5.3)."""
TEST_TAG = "test"
"""A blueprint with this tag is in no board over several blueprints."""
_MEASURES = ("coverage", "similarity", "intercept", "slope")
_RANGES = ("rank_low", "rank_high")


def board(
    table: pd.DataFrame,
    order: Sequence[str],
    tags: Mapping[str, Sequence[str]],
    view: str = "overall",
    *,
    min_blueprints: int = MIN_BLUEPRINTS,
) -> pd.DataFrame:
    """Return one row per model of each group, best first; `view`: overall, tag, blueprint or prompt.

    `table`: scores of all runs, see `compute_blueprint_scores`. `order`: snapshots from the oldest on. `tags`: of each blueprint. Every
    blueprint counts once, by its latest run (`select_latest_runs`); blueprints with the tag `test` are left out of overall and tag.

    Columns: the group's keys, `rank` (equal scores share the better rank; null without a score, and in overall and tag with scores in fewer
    than `min_blueprints`), `model`, `score` (mean hybrid score over blueprints; within a blueprint the model's, of a prompt the mean over
    variants; 0-1, higher is better), `low` and `high` (95 %; null with fewer than 5 blueprints or prompts, and by prompt), `rank_low` and
    `rank_high` (range of the true rank among the ranked models, see `rank_bounds_of_means`), `coverage`, `similarity`, `intercept` and `slope`
    (the score at weight beta of the similarity is intercept + beta slope), `n_scored` (blueprints, prompts or variants with a score),
    `n_planned`, `n_responses`, `n_responses_scored`, `note` (why there is no interval or rank). Raises ConfigError if `view` is unknown.
    """
    if view not in _CUTS:
        raise ConfigError(f"board by {view!r}: allowed: {', '.join(_CUTS)}")
    names, noun, split_rows = _CUTS[view]
    scores = cast_keys(table, "scores", ("level", *CELL_KEYS, "hybrid"))
    latest = scores.merge(select_latest_runs(scores, order), "inner", list(RUN_KEYS)).reset_index(drop=True)
    parts = split_rows(latest, tags)
    rows = group_rows(parts, (*names, "model"))
    means = _average_parts(rows, parts)
    over_blueprints = noun == "blueprint"
    few = means["n_scored"] < min_blueprints if over_blueprints else means["n_scored"] < 1
    group = group_rows(rows.keys, names).code if names else np.zeros(len(rows), dtype=np.int64)
    means["rank"] = pd.Series(rank_numbers(means["score"].where(~few), group)).astype("Int64")
    has_parts = view != "prompt"
    means = means.assign(**_compute_board_intervals(rows, parts, group, means["rank"].notna().to_numpy(), has_parts))
    old_scores = _find_replaced_scores(table, order, tags) if over_blueprints and few.any() else []
    tag_of_row = rows.keys["tag"] if view == "tag" else [None] * len(rows)
    notes = []
    for n, is_few, model, tag in zip(means["n_scored"].tolist(), few, rows.keys["model"], tag_of_row, strict=True):
        why_no_interval = explain_missing(n, noun) if has_parts else ""
        why_no_rank = _explain_rubric_unranked(n, min_blueprints if over_blueprints else 0)
        replaced = _describe_replaced_scores(old_scores, model, tag) if is_few else ""
        notes.append("; ".join(filter(None, (why_no_interval, why_no_rank, replaced))))
    return _sort_best_first(means.assign(note=notes), names)


def _explain_rubric_unranked(n: int, min_blueprints: int) -> str:
    if n < min_blueprints:
        return f"not ranked: a score in {format_count(n, 'blueprint')}, at least {min_blueprints} are needed"
    return "" if n else "not ranked: no score"


class _ReplacedScore(NamedTuple):
    """A model's score in an earlier run of a blueprint whose latest run has no score of the model."""

    model: str
    tags: Sequence[str]
    """Tags of the blueprint."""
    newer_snapshot: str
    """Snapshot of the latest run."""


def _find_replaced_scores(table: pd.DataFrame, order: Sequence[str], tags: Mapping[str, Sequence[str]]) -> list[_ReplacedScore]:
    """Return one entry per model and blueprint, except blueprints tagged `test`."""
    models = table[(table["level"] == MODEL_LEVEL) & table["hybrid"].notna()]
    latest = dict(select_latest_runs(table, order).itertuples(index=False, name=None))
    runs: dict[tuple[str, str], set[str]] = {}
    for blueprint, snapshot, model in models[[*RUN_KEYS, "model"]].itertuples(index=False, name=None):
        runs.setdefault((model, blueprint), set()).add(snapshot)
    return [
        _ReplacedScore(model, tags.get(blueprint, ()), latest[blueprint])
        for (model, blueprint), snapshots in runs.items()
        if latest[blueprint] not in snapshots and TEST_TAG not in tags.get(blueprint, ())
    ]


def _describe_replaced_scores(old_scores: Sequence[_ReplacedScore], model: str, tag: str | None) -> str:
    """Return the note on a model's replaced scores, empty if there are none; `tag` limits them on a board by tag."""
    counts = Counter(score.newer_snapshot for score in old_scores if score.model == model and tag in (None, *score.tags))
    named = ", ".join(f"{snapshot} ({format_count(n, 'blueprint')})" for snapshot, n in counts.most_common())
    return f"later runs without this model replaced its scores: snapshot {named}" if named else ""


def select_latest_runs(table: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return one row per blueprint, with the `snapshot` of its latest run in which a model has a score, or else of its latest run.

    `table` and `order`: see `board`; snapshots that are not in `order` precede all others.
    """
    models = table[table["level"] == MODEL_LEVEL]
    place = {label: index for index, label in enumerate(among(order, dict.fromkeys(models["snapshot"].tolist())))}
    runs = group_rows(models, RUN_KEYS)
    has_score = count(runs.code, models["hybrid"].notna(), len(runs)) > 0
    run_rows = runs.keys.assign(scored=has_score, place=runs.keys["snapshot"].map(place))
    latest = run_rows.sort_values(["blueprint", "scored", "place"]).drop_duplicates("blueprint", keep="last")
    return latest[list(RUN_KEYS)].reset_index(drop=True)


def build_criterion_board(points: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per criterion and model: `score` is the mean of the model's points, 0-1, inverted for should_not.

    `points`: see `compute_coverage`. `runs`: the runs that count, see `select_latest_runs`. Draws are averaged first, then variants.
    Columns: the keys of the criterion, `rank` among the models, `model`, `score` (null: no point is scored), `n_planned` and `n_scored`, in
    points.
    """
    names = ("blueprint", "snapshot", "prompt", *CRITERION_KEYS)
    rows = cast_keys(points, "points", (*RESPONSE_KEYS, *CRITERION_KEYS, "score"))
    rows = rows.merge(runs[list(RUN_KEYS)].astype("str"), "inner", list(RUN_KEYS))
    rows = sort_unique(rows, (*RESPONSE_KEYS, *CRITERION_KEYS), "points")
    score = rows["score"].to_numpy(dtype=np.float64, na_value=np.nan)
    cells = group_rows(rows, (*CELL_KEYS, *CRITERION_KEYS))
    means = weighted_mean(cells.code, score, np.ones(len(rows)), len(cells))
    models = group_rows(cells.keys, (*names, "model"))
    board_rows = models.keys.assign(score=weighted_mean(models.code, means, np.ones(len(cells)), len(models)))
    model_code = models.code[cells.code]
    board_rows["n_planned"] = count(model_code, np.ones(len(rows), dtype=bool), len(models))
    board_rows["n_scored"] = count(model_code, ~np.isnan(score), len(models))
    group = group_rows(board_rows, names).code
    board_rows["rank"] = pd.Series(rank_numbers(board_rows["score"], group)).astype("Int64")
    return board_rows.sort_values([*names, "rank", "model"], ignore_index=True)[
        [*names, "rank", "model", "score", "n_planned", "n_scored"]
    ]


def _split_by_blueprint(table: pd.DataFrame, tags: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the rows that an overall board averages: one per model and blueprint."""
    models = sort_unique(table[table["level"] == MODEL_LEVEL], MODEL_KEYS, "scores")
    is_test = models["blueprint"].map(lambda blueprint: TEST_TAG in tags.get(blueprint, ())).astype(bool)
    return models[~is_test].reset_index(drop=True).assign(part=lambda rows: rows["blueprint"], portion=1.0)


def _split_by_tag(table: pd.DataFrame, tags: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    models = _split_by_blueprint(table, tags)
    rows = models.assign(tag=models["blueprint"].map(lambda blueprint: sorted(set(tags.get(blueprint, ())))))
    return rows.explode("tag").dropna(subset=["tag"]).reset_index(drop=True)


def _split_by_prompt(table: pd.DataFrame, _: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the rows that a prompt's board averages: one per variant."""
    cells = sort_unique(table[table["level"] == CELL_LEVEL], CELL_KEYS, "scores")
    return cells.assign(part=np.arange(len(cells)), portion=1.0)


def _split_within_blueprint(table: pd.DataFrame, _: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the rows that a blueprint's board averages: one per cell. The portions make the mean that of the variants' weighted means."""
    cells = sort_unique(table[table["level"] == CELL_LEVEL], CELL_KEYS, "scores")
    variants = group_rows(cells, VARIANT_KEYS)
    models = group_rows(variants.keys, MODEL_KEYS)
    has_score, weight = cells["hybrid"].notna().to_numpy(), cells["weight"].to_numpy(dtype=np.float64)
    variant_weights = sum_by_code(variants.code[has_score], weight[has_score], len(variants))
    n_variants = count(models.code, variant_weights > 0, len(models))[models.code[variants.code]]
    total = variant_weights[variants.code] * n_variants
    portion = np.divide(weight, total, out=np.zeros(len(cells)), where=total > 0)
    return cells.assign(part=cells["prompt"], portion=portion)


_CUTS: dict[str, tuple[tuple[str, ...], str, Callable[[pd.DataFrame, Mapping[str, Sequence[str]]], pd.DataFrame]]] = {
    "overall": ((), "blueprint", _split_by_blueprint),
    "tag": (("tag",), "blueprint", _split_by_tag),
    "blueprint": (RUN_KEYS, "prompt", _split_within_blueprint),
    "prompt": (PROMPT_KEYS, "variant", _split_by_prompt),
}
"""For each board, the keys of a group, the noun of the rows that its scores average, and the function that lists these rows."""


def _average_parts(rows: RowGroups, parts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per model of a group: means over its rows of `parts`, weighted by their portions, and counts."""
    size, portion = len(rows), parts["portion"].to_numpy(dtype=np.float64)
    has_score = parts["hybrid"].notna().to_numpy()
    means = {
        name: weighted_mean(rows.code, parts[name].to_numpy(dtype=np.float64, na_value=np.nan), portion, size)
        for name in ("hybrid", *_MEASURES)
    }
    planned_codes, scored_codes = (
        group_rows(parts[mask].assign(row=rows.code[mask]), ("row", "part")).keys["row"].to_numpy(dtype=np.int64)
        for mask in (np.ones(len(parts), dtype=bool), has_score)
    )
    counts = {
        name: sum_by_code(rows.code, parts[name], size).astype(np.int64) for name in ("n_responses", "n_responses_scored")
    }
    return rows.keys.assign(
        score=means.pop("hybrid"),
        **means,
        n_scored=np.bincount(scored_codes, minlength=size),
        n_planned=np.bincount(planned_codes, minlength=size),
        **counts,
    )


def _compute_board_intervals(
    rows: RowGroups, parts: pd.DataFrame, group: Codes, ranked: npt.NDArray[np.bool_], has_parts: bool
) -> dict[str, Floats]:
    """Return `low`, `high`, `rank_low` and `rank_high`, (rows,) each, by the parts of each row's group; all NaN unless `has_parts`."""
    columns = {name: np.full(len(rows), np.nan) for name in ("low", "high", *_RANGES)}
    hybrid, portion = (parts[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in ("hybrid", "portion"))
    has_score, part_groups = ~np.isnan(hybrid), group[rows.code]
    for code in np.unique(group[rows.code[has_score]]) if has_parts else ():
        members, part_places = np.flatnonzero(group == code), np.flatnonzero(has_score & (part_groups == code))
        clusters = group_rows(parts.iloc[part_places], ("part",))
        place = clusters.code * len(members) + np.searchsorted(members, rows.code[part_places])
        below, above = (
            sum_by_code(place, values, len(clusters) * len(members)).reshape(len(clusters), len(members))
            for values in (portion[part_places], (portion * hybrid)[part_places])
        )
        columns["low"][members], columns["high"][members] = compute_unit_interval(estimate_ratios(above, below))
        is_shown = ranked[members] & ~np.isnan(columns["low"][members])
        bounds = rank_bounds_of_means(above[:, ranked[members]], below[:, ranked[members]])
        for name, values in zip(_RANGES, bounds, strict=True):
            columns[name][members[is_shown]] = values[is_shown[ranked[members]]]
    return columns


def _sort_best_first(rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    sorted_rows = rows.sort_values([*names, "rank", "score", "model"], ascending=[True] * len(names) + [True, False, True])
    counts = ("n_scored", "n_planned", "n_responses", "n_responses_scored")
    columns = [*names, "rank", "model", "score", "low", "high", *_RANGES, *_MEASURES, *counts, "note"]
    return sorted_rows[columns].reset_index(drop=True)


BOARD_READS = ("rubric_scores", "rubric_blueprints", "rubric_runs", "rubric_points")
"""The tables that boards are made of."""
_POINTS = """
    SELECT points.* EXCLUDE (criterion_id) FROM (
        SELECT blueprint, snapshot, prompt, model, model_variant, temperature, system_index, draw, block, path, position, criterion_id, score
        FROM rubric_points
    ) AS points SEMI JOIN runs USING (blueprint, snapshot)
"""


def rubric_board(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return RUBRIC_BOARD. `connection` has the tables of BOARD_READS."""
    scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores").df()
    order = load_rubric_snapshot_order(connection)
    tag_rows = connection.execute("SELECT blueprint::VARCHAR, tags FROM rubric_blueprints").fetchall()
    tags = {blueprint: list(named or ()) for blueprint, named in tag_rows}
    boards = {cut: board(scores, order, tags, cut) for cut in _CUTS}
    runs = select_latest_runs(scores, order)
    connection.register("runs", runs)
    boards["criterion"] = build_criterion_board(connection.execute(_POINTS).df(), runs)
    return stack_cuts(boards, RUBRIC_BOARD, RUBRIC_CUTS)


def load_rubric_snapshot_order(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the snapshots of all blueprints, the earliest first."""
    return order_in(connection, "rubric_runs")
