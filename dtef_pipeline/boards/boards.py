"""Leaderboards and breakdowns over the `scores` table.

A **pair** is one item of one partition. A **cell** is a pair in one setting, averaged over its draws; of several snapshots the latest
response counts. Conditions are never mixed, so `n_pairs`, the number of cells behind a score, counts each pair once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED
from dtef_pipeline.boards.cells import (
    BoardOptions,
    BoardSubject,
    Codes,
    Noise,
    identify,
    load_cells,
    load_scores_by_metric,
    require_current_scores,
)
from dtef_pipeline.boards.intervals import board_intervals
from dtef_pipeline.boards.item_means import group_means
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import Floats, fit_effects
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.text.number_words import format_count

BY_METRIC = "metric"
"""The board of all metrics side by side; the others are the groups of the keys."""
NO_RANK = "no rank"
"""What a note begins with that says why a row is not ranked."""
_FEW_PAIRS = 0.5
"""Share of the group's pairs below which a rank comes with a caution."""


class BoardEvidence(NamedTuple):
    """The basis of intervals: the cells of the options, and the noise of their scores (None if unknown)."""

    cells: pd.DataFrame
    noise: Noise | None


def load_evidence(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> BoardEvidence:
    """Load the evidence once for several boards of the same options."""
    cells = load_cells(connection, options)
    with require_current_scores(options.subject.keys):
        return BoardEvidence(cells, options.subject.noise(connection, cells, options))


def board(
    connection: duckdb.DuckDBPyConnection, view: str, options: BoardOptions, evidence: BoardEvidence | None = None
) -> pd.DataFrame:
    """Compute a leaderboard, ranked within each group and setting, best first. `view` is a group of the keys or BY_METRIC.

    `connection` has a `scores` view. Columns: the group's keys, `rank`, `model`, `model_variant`, the settings, `score` (mean over
    the model's scored cells, 0-1, higher is better), `adjusted_score` (see `adjust_scores`; models are ranked by it), `n_pairs` (cells
    behind `score`), `parse_rate`, `note` (why a row has no rank or few cells), and `metric`; with `options.intervals` also the subject's
    `columns`, which may need other tables. `evidence`: from `load_evidence` with the same options. Raises ConfigError if the board is
    unknown.
    """
    groups = options.subject.keys.groups
    if view == BY_METRIC:
        return _rank_by_metrics(connection, options, evidence)
    if view not in groups:
        raise ConfigError(f"board {view!r}: allowed: {', '.join((*groups, BY_METRIC))}")
    cells = evidence.cells if evidence else load_cells(connection, options)
    frame = _compute_board(cells, groups[view], options.subject).assign(metric=options.metric)
    if not options.intervals:
        return frame
    with require_current_scores(options.subject.keys):
        noise = evidence.noise if evidence else options.subject.noise(connection, cells, options)
    names = [*groups[view], *options.subject.keys.asked, *MODEL]
    intervals = board_intervals(cells, noise, groups[view], options)
    intervals[names] = intervals[names].astype(frame[names].dtypes)
    table = frame.merge(intervals, on=names, how="left", validate="one_to_one", suffixes=("_of_rank", ""))
    table["note"] = ["; ".join(filter(None, notes)) for notes in zip(table["note"], table["note_of_rank"], strict=True)]
    return table.drop(columns="note_of_rank")


class _Places(NamedTuple):
    """Positions of cells in a board, as numbers from 0."""

    row: Codes  # (cells,): the row of the board that each belongs to
    rows: pd.DataFrame  # keys of the board's rows
    group: Codes  # (rows,): what is ranked together
    cell: Codes  # (cells,): equal for all models that were asked the same
    part: Codes  # (cells,): value of the space's second level
    counts: npt.NDArray[np.bool_]  # (rows,): whether a row says how easy cells are: language models and the reference
    is_reference: npt.NDArray[np.bool_]  # (rows,)


def _locate_cells(cells: pd.DataFrame, group_by: Sequence[str], subject: BoardSubject) -> _Places:
    keys = subject.keys
    row, rows = identify(cells, [*group_by, *keys.asked, *MODEL])
    group, _ = identify(rows, [*group_by, *keys.asked])
    cell, part = (identify(cells, names)[0] for names in (keys.cell, keys.space[1:]))
    model = rows["model"].astype(str)
    is_reference = (model == subject.reference).to_numpy()
    counts = is_reference | ~model.str.startswith(COMPUTED).to_numpy(dtype=bool)
    return _Places(row, rows, group, cell, part, counts, is_reference)


def _compute_board(cells: pd.DataFrame, group_by: Sequence[str], subject: BoardSubject) -> pd.DataFrame:
    """Compute the board of `cells` (see `load_cells`) without intervals."""
    places, conditions = _locate_cells(cells, group_by, subject), subject.keys.asked
    read, n_answered = (
        np.bincount(places.row, cells[name].to_numpy(np.float64), len(places.rows)) for name in ("n_ok", "n_answered")
    )
    frame = places.rows.astype(str).assign(
        **_rank_rows(places, cells["score"].to_numpy(np.float64), subject),
        parse_rate=np.divide(read, n_answered, out=np.full(len(n_answered), np.nan), where=n_answered > 0),
        size=places.rows[conditions[0]].astype(str).map(subject.size).astype(np.float64),
    )
    frame = frame.sort_values([*group_by, "size", *conditions[1:], "rank", "place", *MODEL], ignore_index=True)
    return frame[[*group_by, "rank", *MODEL, *conditions, "score", "adjusted_score", "n_pairs", "parse_rate", "note"]]


def _rank_rows(places: _Places, score: Floats, subject: BoardSubject) -> dict[str, Any]:
    """Return means and ranks of a board's rows for scores (cells,), NaN if unscored; `place`: rank if all were ranked, `note`: reason for
    none.
    """
    rows, groups = len(places.rows), int(places.group.max(initial=-1)) + 1
    has_score = np.isfinite(score)
    cell_groups = places.group[places.row]
    n_pairs = np.bincount(places.row[has_score], minlength=rows)
    n_parts = _count_distinct(places.row[has_score], places.part[has_score], rows)
    n_needed = np.minimum(subject.ranked_from, _count_shared_parts(places, has_score)[places.group])
    is_broad = (n_pairs > 0) & (n_parts >= n_needed)
    adjusted = adjust_scores(places.row, places.cell, score, places.group, places.counts & is_broad, places.is_reference)
    rank = pd.Series(rank_numbers(np.where(is_broad, adjusted, np.nan), places.group))
    pairs = _count_distinct(cell_groups, places.cell, groups)[places.group]
    return {
        "rank": rank.astype("Int32" if rank.isna().any() else "int32"),
        "place": rank_numbers(adjusted, places.group),
        "score": group_means(score, places.row, rows),
        "adjusted_score": np.clip(adjusted, 0, 1),
        "n_pairs": n_pairs,
        "note": _explain_unranked(adjusted, n_pairs, n_parts, n_needed, pairs, subject),
    }


def _count_shared_parts(places: _Places, has_score: npt.NDArray[np.bool_]) -> Codes:
    """Return (groups,), the parts of the cells that two or more counting rows have, or of all cells if there are none."""
    cell_groups, groups = places.group[places.row], int(places.group.max(initial=-1)) + 1
    says = has_score & places.counts[places.row]
    shared = says & (np.bincount(places.cell[says], minlength=int(places.cell.max(initial=-1)) + 1)[places.cell] > 1)
    parts, every = (_count_distinct(cell_groups[mask], places.part[mask], groups) for mask in (shared, np.ones_like(shared)))
    return np.where(parts > 0, parts, every)


def _explain_unranked(
    adjusted: Floats, n_pairs: Codes, n_parts: Codes, n_needed: Codes, pairs: Codes, subject: BoardSubject
) -> list[str]:
    """Explain why each row has no rank, or that its rank rests on few of its group's `pairs`; empty for other rows."""
    notes = []
    for value, size, parts, floor, every in zip(adjusted, n_pairs, n_parts, n_needed, pairs, strict=True):
        if not size:
            notes.append(f"{NO_RANK}: no score")
        elif parts < floor:
            notes.append(f"{NO_RANK}: scores in {format_count(int(parts), subject.keys.space[1])} only, and {floor} are needed")
        elif np.isnan(value):
            notes.append(f"{NO_RANK}: it shares no pair with the ranked models")
        elif size < _FEW_PAIRS * every:
            share = "less than 1%" if size < 0.01 * every else f"{size / every:.0%}"
            notes.append(f"its rank rests on {share} of the pairs and assumes the same lead on the others")
        else:
            notes.append("")
    return notes


def adjust_scores(
    row: Codes,
    cell: Codes,
    score: Floats,
    group: Codes,
    counts: npt.NDArray[np.bool_],
    is_reference: npt.NDArray[np.bool_],
) -> Floats:
    """Return (rows,) mean scores as if all rows of a group had been scored on the same cells; NaN if a row shares no cell with others.

    `row`, `cell` and `score` are (n,), NaN if unscored; the others are (rows,). Score = row + cell is fitted by least squares over the rows
    that `counts` marks (see `fit_effects`). A row's adjusted score is its effect plus the mean effect of the cells on which the group's
    reference was scored or, without a reference, of those that several rows have. Other rows are placed by the cell effects and influence
    none of them. Rows scored on the same cells are ordered by their means; two rows differ by their mean difference on shared cells. If a
    group splits into rows that share no cell, the rows that share cells with the reference are ranked, or else those with most scores. If
    no row of a group counts, each keeps its mean.
    """
    rows, cells, groups = len(group), int(cell.max(initial=-1)) + 1, int(group.max(initial=-1)) + 1
    fit = np.isfinite(score) & counts[row]
    effects = fit_effects(row[fit], cell[fit], score[fit], rows, cells)
    n_scores = np.bincount(row[fit], minlength=rows)
    is_compared = _mark_compared_rows(effects.component, n_scores, group, is_reference & counts, groups)
    mask = fit & is_compared[row]
    cell_effects = group_means(score[mask] - np.nan_to_num(effects.of_row)[row[mask]], cell[mask], cells)
    cell_groups = np.zeros(cells, dtype=np.int64)
    cell_groups[cell] = group[row]
    by_reference = np.bincount(cell[mask & is_reference[row]], minlength=cells) > 0
    has_reference = np.bincount(cell_groups[by_reference], minlength=groups) > 0
    is_known = by_reference | np.isfinite(effects.of_cell)
    # Where no cell tells two rows apart, those of the only row do for the others.
    is_known |= (np.bincount(cell_groups[is_known], minlength=groups) == 0)[cell_groups]
    cell_effects = np.where(is_known, cell_effects, np.nan)
    level = group_means(np.where(by_reference | ~has_reference[cell_groups], cell_effects, np.nan), cell_groups, groups)
    adjusted = group_means(score - cell_effects[cell], row, rows) + level[group]
    n_counting = np.bincount(group[n_scores > 0], minlength=groups)
    return np.where(n_counting[group] == 0, group_means(score, row, rows), adjusted)


def _mark_compared_rows(
    component: Codes, n_scores: Codes, group: Codes, is_reference: npt.NDArray[np.bool_], groups: int
) -> npt.NDArray[np.bool_]:
    """Return (rows,) whether a row is in the component of its group's reference or, without one, in that with most scores.

    If no two rows of a group share a cell, only the reference, or the only row, is marked.
    """
    is_known = component >= 0
    size = np.bincount(component[is_known], n_scores[is_known], minlength=1).astype(np.float64)
    size[component[is_known & is_reference]] = np.inf
    main = np.full(groups, -2)
    order = np.argsort(size[component[is_known]], kind="stable")
    main[group[is_known][order]] = component[is_known][order]
    is_only = (n_scores > 0) & (np.bincount(group[n_scores > 0], minlength=groups)[group] == 1)
    is_single = (main[group] == -2) & (n_scores > 0) & (is_reference | is_only)
    return np.asarray((component == main[group]) | is_single)


def _count_distinct(code: Codes, values: Codes, size: int) -> Codes:
    """Return (size,), the number of distinct `values` of each code."""
    many = int(values.max(initial=0)) + 1
    return np.bincount(pd.unique(code * many + values) // many, minlength=size)


def _rank_by_metrics(
    connection: duckdb.DuckDBPyConnection, options: BoardOptions, evidence: BoardEvidence | None
) -> pd.DataFrame:
    """Rank every model under every metric, with the means of its corrected errors; rows in the order of the chosen metric."""
    keys, corrected = [*MODEL, *options.subject.keys.asked], list(options.subject.corrected)
    cells = evidence.cells if evidence else load_cells(connection, options)
    frame = _compute_board(cells, (), options.subject).assign(metric=options.metric)
    frame = frame[[*keys, "n_pairs", "score", "parse_rate", "metric"]]
    for metric, ranked in _iterate_metric_ranks(connection, options):
        ranks = ranked.rename(columns={"score": metric, "rank": f"{metric}_rank"})
        frame = frame.merge(ranks, on=keys, how="left", suffixes=("", "_"))
    errors = cells.astype(dict.fromkeys(keys, str)).groupby(keys)[corrected].mean()
    return frame.merge(errors, left_on=keys, right_index=True, how="left")


def _iterate_metric_ranks(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each metric with the keys of the overall board's rows and their `score` and `rank`."""
    subject = options.subject
    names = [*MODEL, *subject.keys.asked, "score", "rank"]
    if options.cells == "shared":  # which cells these are depends on the metric
        for metric in subject.metrics:
            yield metric, _compute_board(load_cells(connection, replace(options, metric=metric)), (), subject)[names]
        return
    cells = load_scores_by_metric(connection, options)
    places = _locate_cells(cells, (), subject)
    rows = places.rows.astype(str)
    for metric in subject.metrics:
        yield metric, rows.assign(**_rank_rows(places, cells[metric].to_numpy(np.float64), subject))[names]
