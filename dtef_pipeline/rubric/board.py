"""Leaderboards of models over the latest run of each blueprint, and within blueprints, prompts, criteria and tags; comparisons of two models,
and of two runs of a blueprint.

Source: weval methodology, 5.3. Intervals are by whole blueprints; within one blueprint, by its prompts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among, order_in
from dtef_pipeline.boards.pairs import EQUIVALENT, UNDECIDED, compare_models, sort_by_difference
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.consensus import USUAL_SCALE
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
from dtef_pipeline.statistics.differences import (
    MARGIN,
    compute_paired_statistics,
    places,
    remove_rounding,
    sum_by_cluster,
    verdicts,
)
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.statistics.proportions import compute_unit_interval
from dtef_pipeline.statistics.ranks import rank_bounds_of_means, rank_numbers
from dtef_pipeline.tables import COMPARISONS, build_family_rows, stack_cuts
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
        count = f"a score in {format_count(n, 'blueprint')}, at least {least} are needed" if over_blueprints else "no score"
        why_no_rank = (f"not ranked: {count}", replaced.get(key, "")) if n < least else ()
        notes.append("; ".join(filter(None, (explain_missing(n, noun) if has_parts else "", *why_no_rank))))
    return _sort_best_first(means.assign(note=notes), names)


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


IMPROVEMENT, REGRESSION = "improvement", "regression"
_PAIRED_BY = ("prompt", "model", "model_variant", "temperature", "system_index")
RUNS_COMPARED = (
    *("blueprint", "snapshot", "other_snapshot", "model", "verdict", "difference", "low", "high", "score", "other_score"),
    *("n_prompts", "n_pairs", "effect_size", "p", "p_adjusted", "note"),
)

PROMPTS_THAT_MOVED = ("prompt", "difference", "score", "other_score", "n_pairs", "moved_model", "model_difference")
_DIGITS_THAT_ORDER = 12
"""Decimals of a change by which prompts are sorted: prompts that differ only by rounding are sorted by name."""


def compare_runs(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return one row per model that both runs scored, the largest fall first; columns RUNS_COMPARED.

    `before`, `after`: scores (see `compute_blueprint_scores`) of one run each of the same blueprint. A pair is a prompt answered by one
    variant in both runs; the difference of hybrid scores, `after` minus `before`, is averaged over pairs by the weight of the prompt in
    `after`. `low` and `high` (95 %) and `p` (t test; null with fewer than 5 prompts) treat prompts as independent; `p_adjusted` is adjusted
    over the models (Holm 1979). `score` and `other_score`: means of the pairs after and before, 0-1.

    `verdict`: regression or improvement if p_adjusted is below .05, else equivalent if the 90 % interval is within +-MARGIN, else
    undecided.
    """
    pairs = pair_run_cells(before, after)
    if not len(pairs):
        return pd.DataFrame(columns=list(RUNS_COMPARED))
    run_columns = {name: pairs[name].iloc[0] for name in ("blueprint", "snapshot", "other_snapshot")}
    results = _test_models(pairs).assign(**run_columns)
    return results.sort_values(["difference", "model"], ignore_index=True)[list(RUNS_COMPARED)]


def find_moved_prompts(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return one row per prompt on which both runs scored a model, the largest absolute change first; columns PROMPTS_THAT_MOVED.

    `before`, `after` and pairs: see `compare_runs`. `difference`: mean hybrid score after minus before, -1 to 1; `score`, `other_score`:
    the two means. `moved_model`: the model with the largest mean difference on the prompt, `model_difference`.
    """
    pairs = pair_run_cells(before, after)
    if not len(pairs):
        return pd.DataFrame(columns=list(PROMPTS_THAT_MOVED))
    pairs = pairs.assign(difference=pairs["hybrid"] - pairs["hybrid_before"])
    by_prompt = pairs.groupby("prompt", sort=True)
    moves = by_prompt[["difference", "hybrid", "hybrid_before"]].mean()
    moves = moves.rename(columns={"hybrid": "score", "hybrid_before": "other_score"}).assign(n_pairs=by_prompt.size())
    by_model = pairs.groupby(["prompt", "model"], sort=True)["difference"].mean().reset_index()
    by_model = by_model.assign(size=by_model["difference"].abs()).sort_values(["prompt", "size"], kind="stable")
    largest = by_model.drop_duplicates("prompt", keep="last").set_index("prompt")
    moves = moves.assign(moved_model=largest["model"], model_difference=largest["difference"])
    size = moves["difference"].abs().round(_DIGITS_THAT_ORDER)
    moves = moves.assign(size=size).reset_index().sort_values(["size", "prompt"], ascending=[False, True], ignore_index=True)
    return moves[list(PROMPTS_THAT_MOVED)]


def pair_run_cells(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return one row per prompt answered by one variant in both runs: `hybrid` after, `hybrid_before`, and the prompt's `weight` after."""
    old, new = (
        sort_unique(cast_keys(scores[scores["level"] == CELL_LEVEL]), CELL_KEYS, name)
        for scores, name in ((before, "before"), (after, "after"))
    )
    keys = list(_PAIRED_BY)
    old = old[[*keys, "snapshot", "hybrid"]].rename(columns={"snapshot": "other_snapshot"})
    pairs = new[[*keys, *RUN_KEYS, "weight", "hybrid"]].merge(old, "inner", keys, suffixes=("", "_before"))
    return pairs.dropna(subset=["hybrid", "hybrid_before"]).reset_index(drop=True)


def has_regression(comparisons: pd.DataFrame) -> bool:
    """Return whether a model became worse, for `--fail-on regression`; takes rows of `compare_runs`."""
    return bool((comparisons["verdict"] == REGRESSION).any())


def _test_models(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per model of `pairs`: comparisons of the weighted sums over each prompt's pairs."""
    prompt, prompts = places(pairs, ["prompt"])
    model, models = places(pairs, ["model"])
    shape = len(prompts), len(models)
    weight = pairs["weight"].to_numpy(dtype=np.float64)
    weights = sum_by_cluster(prompt, model, weight, shape)
    now, before = (sum_by_cluster(prompt, model, weight * pairs[name], shape) for name in ("hybrid", "hybrid_before"))
    differences = remove_rounding(now - before, np.abs(now) + np.abs(before))
    statistics = compute_paired_statistics(differences, weights, noun="prompt")
    total = weights.sum(axis=0)
    statistics = statistics.assign(
        n_prompts=statistics["n_clusters"],
        model=models["model"],
        score=now.sum(axis=0) / total,
        other_score=before.sum(axis=0) / total,
        n_pairs=np.bincount(model, minlength=len(models)),
        p_adjusted=holm(statistics["p"]),
    )
    words = (IMPROVEMENT, REGRESSION, EQUIVALENT, UNDECIDED)
    return statistics.assign(verdict=verdicts(statistics, words, MARGIN))


def compare_over_blueprints(table: pd.DataFrame, order: Sequence[str], blueprints: Sequence[str]) -> pd.DataFrame:
    """Return one row per two models that share a prompt, better one first, largest difference first: see `compare_models`.

    `table` and `order`: see `board`. `blueprints`: those that count. A model's score on a prompt is the mean over its scored variants.
    Within a blueprint the difference is averaged over shared prompts by their weights, then over blueprints, each counting once. Intervals
    (95 %) and `p` treat blueprints as independent, or prompts if there is only one blueprint.
    """
    cells = cast_keys(table)
    runs = select_latest_runs(cells, order)
    runs = runs[runs["blueprint"].isin(blueprints)]
    cells = cells[(cells["level"] == CELL_LEVEL) & cells["hybrid"].notna()].merge(runs, "inner", list(RUN_KEYS))
    if cells["model"].nunique() < 2:
        return pd.DataFrame()
    prompts, models, scores, weight = _build_score_matrix(cells)
    blueprint = places(prompts, ["blueprint"])[0]
    several = len(np.unique(blueprint)) > 1
    cluster, noun = (blueprint, "blueprint") if several else (np.arange(len(prompts)), "prompt")
    comparisons = compare_models(models, scores, cluster, noun=noun, weight=weight, alike=several, margin=MARGIN)
    return sort_by_difference(comparisons) if len(comparisons) else comparisons


def build_comparisons_table(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return COMPARISONS of the models over all blueprints without the tag `test`. `connection` has the tables of BOARD_READS."""
    scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level IN ('cell', 'model')").df()
    blueprints = [blueprint for blueprint, tags in load_tags(connection).items() if TEST_TAG not in tags]
    comparisons = compare_over_blueprints(scores, load_rubric_snapshot_order(connection), blueprints)
    return build_family_rows(comparisons.assign(metric="hybrid"), COMPARISONS, "rubric")


def _build_score_matrix(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, Floats, Floats]:
    """Return prompts, models, scores (prompts, models) with NaN if missing, and each prompt's weight in its blueprint (prompts,)."""
    prompt, prompts = places(cells, ["blueprint", "prompt"])
    model, models = places(cells, ["model"])
    size = len(prompts) * len(models)
    place = prompt * len(models) + model
    n = np.bincount(place, minlength=size)
    total = np.bincount(place, cells["hybrid"].to_numpy(dtype=np.float64), minlength=size)
    scores = np.divide(total, n, out=np.full(size, np.nan), where=n > 0).reshape(len(prompts), len(models))
    weight = np.zeros(len(prompts))
    weight[prompt] = cells["weight"].to_numpy(dtype=np.float64)
    return prompts, models, scores, weight


_MARKED_SCALE = re.compile(r"\[scale:(\d+)\]\Z")
_HOW_ON_ONE_SCALE = "`dtef rubric run --from judge` judges all of them on the `scale` of the panel file"
_HOW_BY_THE_SAME = "`dtef rubric run --from judge --judge APPROACH=MODEL` judges all of them with the same judges"


def select_averaged_runs(scores: pd.DataFrame, runs: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return the rows of `runs` that are the latest of their blueprint; `scores` and `order`: see `select_latest_runs`."""
    latest = select_latest_runs(scores, order).astype("str")
    return latest.merge(runs.astype({"blueprint": "str", "snapshot": "str"}), on=["blueprint", "snapshot"])


def describe_unlike_runs(runs: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each way in which the runs differ. `runs`: one row per blueprint, with `judges` (names), `judge_hash` and
    `policy`.

    Blueprints without judges are ignored when judges are compared.
    """
    yield from describe_several_policies(runs["policy"])
    names = pd.Series([list(judges) if judges is not None else [] for judges in runs["judges"]], dtype=object)
    judge_rows = pd.DataFrame({"names": names, "hash": runs["judge_hash"].tolist()})
    judge_rows = judge_rows[judge_rows["names"].map(len) > 0]
    # The judges of a run share one scale.
    marks = judge_rows["names"].map(lambda panel: [match[1] for name in panel if (match := _MARKED_SCALE.search(name))])
    scale = marks.map(lambda sizes: int(next(iter(sizes), USUAL_SCALE)))
    if len(scale.unique()) > 1:
        details = _format_groups(scale.map("{} classes".format))
        yield f"blueprints were judged on different scales, which cannot be compared: {details}; {_HOW_ON_ONE_SCALE}"
    name = judge_rows["names"].map(lambda panel: ", ".join(_MARKED_SCALE.sub("", judge) for judge in panel))
    has_one_hash = judge_rows.groupby([scale.rename("scale"), name.rename("name")])["hash"].transform("nunique") == 1
    name = name.where(has_one_hash, name + " with judge_hash " + judge_rows["hash"].str[:8])
    if len(name.unique()) > 1:
        yield f"blueprints were judged by different judges: {_format_groups(name)}; {_HOW_BY_THE_SAME}"


def describe_several_policies(policies: pd.Series) -> Iterator[str]:
    if len(policies.unique()) > 1:
        yield (
            f"blueprints were scored by different policies: {_format_groups(policies)}; `dtef rubric run --from judge` scores all by "
            "the same"
        )


def _format_groups(names: pd.Series) -> str:
    """Format counts of names: `ten (2 blueprints); five (1 blueprint)`, the most frequent first."""
    return "; ".join(f"{name} ({format_count(int(n), 'blueprint')})" for name, n in names.value_counts().items())
