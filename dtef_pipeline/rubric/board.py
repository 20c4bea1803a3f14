"""Leaderboards of models over the latest run of each blueprint, and within blueprints, prompts, criteria and tags.

Source: weval methodology, 5.3. Intervals are by whole blueprints; within one blueprint, by its prompts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among, order_in
from dtef_pipeline.boards.cuts import stack_cuts
from dtef_pipeline.errors import ConfigError
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
    convert_to_numbers,
    group_rows,
    sort_unique,
)
from dtef_pipeline.rubric.scoring import CELL_LEVEL, MODEL_LEVEL
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
    scores = cast_keys(table)
    runs = select_latest_runs(scores, order)
    parts = split_rows(scores.merge(runs, "inner", list(RUN_KEYS)), tags)
    rows = group_rows(parts, (*names, "model"))
    means = _average_parts(rows, parts)
    over_blueprints, has_parts = noun == "blueprint", view != "prompt"
    least = min_blueprints if over_blueprints else 1
    few = means["n_scored"] < least
    group = group_rows(rows.keys, names).code if names else np.zeros(len(rows), dtype=np.int64)
    means["rank"] = pd.Series(rank_numbers(means["score"].where(~few), group)).astype("Int64")
    means = means.assign(**_compute_board_intervals(rows, parts, group, means["rank"].notna().to_numpy(), has_parts))
    replaced = _describe_replaced_scores(scores, runs, tags, view) if over_blueprints and few.any() else {}
    notes = []
    for key, n in zip(rows.keys.itertuples(index=False, name=None), means["n_scored"].tolist(), strict=True):
        why_no_rank = (_explain_rubric_unranked(n, over_blueprints, least), replaced.get(key, "")) if n < least else ()
        notes.append("; ".join(filter(None, (explain_missing(n, noun) if has_parts else "", *why_no_rank))))
    return _sort_best_first(means.assign(note=notes), names)


def _explain_rubric_unranked(n: int, over_blueprints: bool, least: int) -> str:
    if over_blueprints:
        return f"not ranked: a score in {format_count(n, 'blueprint')}, at least {least} are needed"
    return "not ranked: no score"


def _describe_replaced_scores(
    scores: pd.DataFrame, runs: pd.DataFrame, tags: Mapping[str, Sequence[str]], view: str
) -> dict[tuple[str, ...], str]:
    """Return the note on scores in earlier runs of blueprints whose latest run has none of the model, by keys of the board's row."""
    scored = scores[(scores["level"] == MODEL_LEVEL) & scores["hybrid"].notna()]
    scored = scored.merge(runs.rename(columns={"snapshot": "newer"}), on="blueprint")
    is_latest = scored["snapshot"] == scored["newer"]
    has_latest = is_latest.groupby([scored["model"], scored["blueprint"]]).transform("any")
    replaced = scored[~has_latest].drop_duplicates(["model", "blueprint"])
    names, _, split_rows = _CUTS[view]
    counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for *key, newer in split_rows(replaced, tags)[[*names, "model", "newer"]].itertuples(index=False, name=None):
        counts[tuple(key)][newer] += 1
    return {
        key: "later runs without this model replaced its scores: snapshot "
        + ", ".join(f"{snapshot} ({format_count(n, 'blueprint')})" for snapshot, n in number.most_common())
        for key, number in counts.items()
    }


def select_latest_runs(table: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return one row per blueprint, with the `snapshot` of its latest run in which a model has a score, or else of its latest run.

    `table` and `order`: see `board`; snapshots that are not in `order` precede all others.
    """
    models = table[table["level"] == MODEL_LEVEL]
    place = {label: index for index, label in enumerate(among(order, dict.fromkeys(models["snapshot"].tolist())))}
    runs = group_rows(models, RUN_KEYS)
    run_rows = runs.keys.assign(scored=runs.count(models["hybrid"].notna()) > 0, place=runs.keys["snapshot"].map(place))
    latest = run_rows.sort_values(["blueprint", "scored", "place"]).drop_duplicates("blueprint", keep="last")
    return latest[list(RUN_KEYS)].reset_index(drop=True)


def build_criterion_board(points: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per criterion and model: `score` is the mean of the model's points, 0-1, inverted for should_not.

    `points`: see `compute_coverage`. `runs`: the runs that count, see `select_latest_runs`. Draws are averaged first, then variants.
    Columns: the keys of the criterion, `rank` among the models, `model`, `score` (null: no point is scored), `n_planned` and `n_scored`, in
    points.
    """
    names = (*PROMPT_KEYS, *CRITERION_KEYS)
    rows = cast_keys(points).merge(runs[list(RUN_KEYS)].astype("str"), "inner", list(RUN_KEYS))
    rows = sort_unique(rows, (*RESPONSE_KEYS, *CRITERION_KEYS), "points")
    cells = group_rows(rows, (*CELL_KEYS, *CRITERION_KEYS))
    cell_models = group_rows(cells.keys, (*names, "model"))
    models = RowGroups(cell_models.code[cells.code], cell_models.keys)
    board_rows = models.keys.assign(
        score=cell_models.mean(cells.mean(rows["score"])),
        n_planned=models.count(),
        n_scored=models.count(rows["score"].notna()),
    )
    board_rows["rank"] = pd.Series(rank_numbers(board_rows["score"], group_rows(board_rows, names).code)).astype("Int64")
    columns = [*names, "rank", "model", "score", "n_planned", "n_scored"]
    return board_rows.sort_values([*names, "rank", "model"], ignore_index=True)[columns]


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
    weight = cells["weight"].to_numpy(dtype=np.float64)
    variant_weights = variants.sum(np.where(cells["hybrid"].notna(), weight, 0.0))
    n_variants = models.count(variant_weights > 0)[models.code]
    total = (variant_weights * n_variants)[variants.code]
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
    members = parts.assign(row=rows.code)
    n_planned, n_scored = (
        np.bincount(table[["row", "part"]].drop_duplicates()["row"], minlength=len(rows))
        for table in (members, members[members["hybrid"].notna()])
    )
    return rows.keys.assign(
        score=rows.mean(parts["hybrid"], parts["portion"]),
        **{name: rows.mean(parts[name], parts["portion"]) for name in _MEASURES},
        n_scored=n_scored,
        n_planned=n_planned,
        **{name: rows.sum(parts[name]).astype(np.int64) for name in ("n_responses", "n_responses_scored")},
    )


def _compute_board_intervals(
    rows: RowGroups, parts: pd.DataFrame, group: Codes, ranked: npt.NDArray[np.bool_], has_parts: bool
) -> dict[str, Floats]:
    """Return `low`, `high`, `rank_low` and `rank_high`, (rows,) each, by the parts of each row's group; all NaN unless `has_parts`."""
    columns = {name: np.full(len(rows), np.nan) for name in ("low", "high", *_RANGES)}
    hybrid, portion = (convert_to_numbers(parts[name]) for name in ("hybrid", "portion"))
    has_score, part_groups = ~np.isnan(hybrid), group[rows.code]
    for code in np.unique(part_groups[has_score]) if has_parts else ():
        members, part_places = np.flatnonzero(group == code), np.flatnonzero(has_score & (part_groups == code))
        clusters = group_rows(parts.iloc[part_places], ("part",))
        shape = len(clusters), len(members)
        place = clusters.code * len(members) + np.searchsorted(members, rows.code[part_places])
        below, above = (
            np.bincount(place, values[part_places], len(clusters) * len(members)).astype(np.float64).reshape(shape)
            for values in (portion, portion * hybrid)
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
    tags = load_tags(connection)
    boards = {cut: board(scores, order, tags, cut) for cut in _CUTS}
    runs = select_latest_runs(scores, order)
    connection.register("runs", runs)
    boards["criterion"] = build_criterion_board(connection.execute(_POINTS).df(), runs)
    return stack_cuts(boards, RUBRIC_BOARD, RUBRIC_CUTS)


def load_rubric_snapshot_order(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the snapshots of all blueprints, the earliest first."""
    return order_in(connection, "rubric_runs")


def load_tags(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Return the tags of each blueprint."""
    rows = connection.execute("SELECT blueprint::VARCHAR, tags FROM rubric_blueprints").fetchall()
    return {blueprint: list(tags or ()) for blueprint, tags in rows}


def list_test_blueprints(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the blueprints that are excluded from boards over several."""
    return [blueprint for blueprint, tags in load_tags(connection).items() if TEST_TAG in tags]
