"""Scores that people's labels correct: each response by people, the published tables, and how well judges recognise each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.rubric.blueprint.model import TEXT_KIND
from dtef_pipeline.rubric.board import list_test_blueprints, load_rubric_snapshot_order, select_latest_runs
from dtef_pipeline.rubric.episodes import OK
from dtef_pipeline.rubric.label_sheet import apply_human_labels, build_label_items, fill_path, select_in_force
from dtef_pipeline.rubric.levels import RESPONSE_KEYS, Codes, Floats, group_rows, number_groups, sort_unique
from dtef_pipeline.rubric.scoring import ScoringPolicy, compute_coverage, compute_hybrid, compute_hybrid_at, parse_policy
from dtef_pipeline.rubric.tables import ITEM_KEYS, RUBRIC_CORRECTED, RUBRIC_CORRECTIONS, RUBRIC_KNOWN_CLASSES
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS, explain_missing
from dtef_pipeline.statistics.prediction_powered import HALF_WIDTH, ClusterLabels, estimate_corrected_means
from dtef_pipeline.tables import convert_to_schema, convert_to_schema_or_null
from dtef_pipeline.text.number_words import format_count

_RESPONSE = list(RESPONSE_KEYS)
_DRAWN_KEY = ["blueprint", "prompt"]
_IN_LATEST = "SEMI JOIN latest ON {table}.blueprint = latest.blueprint AND {table}.snapshot = latest.snapshot"
_IN_PROMPTS = "SEMI JOIN of_prompts ON {table}.blueprint = of_prompts.blueprint AND {table}.prompt = of_prompts.prompt"
_OF_LATEST_PROMPTS = "FROM rubric_prompts WHERE blueprint::VARCHAR IN (SELECT blueprint FROM latest)"
_RESPONSE_COLUMNS = ", ".join(
    f"{name}::VARCHAR AS {name}" if name in ("blueprint", "snapshot") else name for name in ITEM_KEYS[:8]
)
_POINT_NAMES = ", ".join(ITEM_KEYS[8:])
_OF_POINTS = f"""
    SELECT {_RESPONSE_COLUMNS}, {_POINT_NAMES}, kind, weight, CASE WHEN labelled THEN judge_score ELSE score END AS score, partial,
        inverted
    FROM rubric_points {_IN_LATEST.format(table="rubric_points")}
"""
_OF_SIMILARITIES = f"""
    SELECT {_RESPONSE_COLUMNS}, ideal_similarity AS similarity
    FROM rubric_similarities {_IN_LATEST.format(table="rubric_similarities")}
"""
_OF_RESPONSES = f"""
    SELECT {_RESPONSE_COLUMNS} FROM rubric_responses {_IN_LATEST.format(table="rubric_responses")} WHERE status = 'ok'
"""
_OF_PROMPTS = """
    SELECT blueprint::VARCHAR AS blueprint, prompt, weight, ideal IS NOT NULL AS has_ideal,
        prompt IN (SELECT prompt FROM rubric_criteria AS own WHERE own.blueprint = rubric_prompts.blueprint) AS has_criteria
    FROM rubric_prompts
"""
_POLICIES = "SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, policy FROM rubric_runs"
LABELLED_SCORES_READ = (
    "rubric_points",
    "rubric_similarities",
    "rubric_responses",
    "rubric_prompts",
    "rubric_criteria",
    "rubric_runs",
)
"""The tables that labelled scores are made of."""


def compare_labelled_scores(
    connection: duckdb.DuckDBPyConnection, runs: pd.DataFrame, items: pd.DataFrame, labels: pd.DataFrame
) -> pd.DataFrame:
    """Return one row per response of `runs` with a hybrid score: its keys, the prompt's `weight`, `judge_score`, `labelled`, `can_be_labelled`.

    `judge_score`: its hybrid score by judges, even if a run was scored with labels. `labelled`: its score with labels in place of all judged
    points; NaN if a label is missing, and `judge_score` if no point is judged (`can_be_labelled` is false). `connection`: the tables of
    LABELLED_SCORES_READ. `items`: from `build_label_items`, for the responses of these runs.
    """
    connection.register("latest", runs[["blueprint", "snapshot"]])
    points, similar, responses, prompts = (
        connection.execute(sql).df() for sql in (_OF_POINTS, _OF_SIMILARITIES, _OF_RESPONSES, _OF_PROMPTS)
    )
    points_with_labels = apply_human_labels(points, items, labels)
    judged = points_with_labels[points_with_labels["kind"] == TEXT_KIND]
    completeness = judged.groupby(_RESPONSE, dropna=False, sort=False)["labelled"].all().reset_index(name="whole")
    # Sums over rows have the same bits whatever order the database returned them in.
    rows = (
        sort_unique(responses, _RESPONSE, "responses")
        .merge(prompts, on=_DRAWN_KEY)
        .merge(similar, "left", _RESPONSE)
        .merge(completeness, "left", _RESPONSE)
    )
    policies = runs.merge(connection.execute(_POLICIES).df(), on=["blueprint", "snapshot"]).groupby("policy", sort=True)
    tables = []
    for policy, blueprints in policies["blueprint"]:
        part, by_judges, by_people = (
            table[table["blueprint"].isin(blueprints)] for table in (rows, points, points_with_labels)
        )
        tables.append(_compare_under_policy(part, by_judges, by_people, str(policy)))
    return pd.concat(tables, ignore_index=True)


def apply_labels(points: pa.Table, responses: pa.Table, criteria: pa.Table, prompts: pa.Table, labels: pa.Table) -> pa.Table:
    """Return `rubric_points` with labels in place of their scores; the judges' score stays in `judge_score`.

    Tables: of one blueprint and snapshot, and `rubric_labels`.
    """
    keys = [*_RESPONSE, "text"]
    items = build_label_items(
        responses.filter(pc.equal(responses["status"], OK)).select(keys).to_pandas(),
        criteria.select([*_DRAWN_KEY, *ITEM_KEYS[8:], "kind", "text"]).to_pandas(),
        prompts.select([*_DRAWN_KEY, "messages"]).to_pandas(),
    )
    labelled_items = items[items["item"].isin(set(labels["item"].to_pylist()))]
    if labelled_items.empty:
        return points
    rows = points.to_pandas()
    points_with_labels = apply_human_labels(rows, labelled_items, labels.to_pandas())
    has_label = points_with_labels["labelled"]
    return convert_to_schema(
        points_with_labels.assign(
            judge_score=rows["score"].where(has_label), partial=points_with_labels["partial"] & ~has_label
        ),
        points.schema,
    )


def _compare_under_policy(
    table: pd.DataFrame, points: pd.DataFrame, points_with_labels: pd.DataFrame, policy: str
) -> pd.DataFrame:
    judges, people = (_compute_hybrids(table, part, parse_policy(policy)) for part in (points, points_with_labels))
    can = table["whole"].notna().to_numpy()
    is_full = table["whole"].eq(True).to_numpy()
    scores = table[[*_RESPONSE, "weight"]].assign(
        judge_score=judges, labelled=np.where(can, np.where(is_full, people, np.nan), judges), can_be_labelled=can
    )
    return scores[np.isfinite(judges)].reset_index(drop=True)


def _compute_hybrids(responses: pd.DataFrame, points: pd.DataFrame, policy: ScoringPolicy) -> Floats:
    """Return the hybrid score of each response from these points; NaN: unscored."""
    coverages = compute_coverage(points, policy)[[*_RESPONSE, "coverage"]]
    # The keys of both in one type: a null in either makes floats of whole numbers.
    kinds = {name: responses[name].dtype for name in _RESPONSE}
    coverage = responses[_RESPONSE].merge(coverages.astype(kinds), "left", _RESPONSE)["coverage"]
    hybrid = compute_hybrid(
        coverage.to_numpy(dtype=np.float64, na_value=np.nan),
        responses["similarity"],
        responses["has_criteria"],
        responses["has_ideal"],
    )
    return compute_hybrid_at(*hybrid, policy.beta)


BOARD_ROW = ("model",)
BLUEPRINT_ROW = ("blueprint", "model")
_OF_ONE_VARIANT = ("model_variant", "temperature", "system_index")


def parts(responses: pd.DataFrame, row: Sequence[str] = BOARD_ROW) -> Floats:
    """Return each response's weight in the score of its board row, (responses,); the weights of a row sum to 1.

    `responses`: one row per scored response of the latest snapshot of each blueprint, with the keys of a response and the prompt's
    `weight`. `row`: the columns of a board row, BOARD_ROW or BLUEPRINT_ROW.
    """
    rows, blueprint_keys = list(row), list(dict.fromkeys([*row, "blueprint"]))
    variant = [*blueprint_keys, *_OF_ONE_VARIANT]
    board_row, blueprint, code = (number_groups(responses, names) for names in (rows, blueprint_keys, variant))
    portion = 1 / _count_members(board_row, blueprint) / _count_members(blueprint, code)
    cell = number_groups(responses, [*variant, "prompt"])
    draws = np.bincount(cell)[cell]
    share = responses["weight"].to_numpy(dtype=np.float64) / draws
    return np.asarray(portion * share / np.bincount(code, share)[code])


def compute_corrected(responses: pd.DataFrame, draws: pd.DataFrame, row: Sequence[str] = BOARD_ROW) -> pd.DataFrame:
    """Return one row per board row: its columns `row` and those of `rubric_corrected` except labels_needed.

    `responses`: one row per scored response with the keys of a response, the prompt's `weight`, `judge_score` (its score by judges) and
    `labelled` (its score with labels in place of all judged points; NaN if a label is missing). `draws`: as in `LabelSample`, of one
    draw or several stacked; labels of prompts that were never drawn are ignored.

    `corrected_low` to `corrected_high` treats the prompts as a sample of their kind, as the board's interval does; `same_prompts_low` to
    `same_prompts_high` is for these prompts only. `power` is the lambda of PPI++ (`tuned` of `CorrectedMeans`), 0-1. `prompts_needed`: prompts
    to label for a half-width of HALF_WIDTH. Null, with a `reason`, if fewer than 5 prompts have labels.
    """
    groups = [part for _, part in responses.groupby("blueprint", sort=True)] if "blueprint" in row else [responses]
    return pd.concat([_compute_corrected_rows(part, draws, row) for part in groups], ignore_index=True)


def _compute_corrected_rows(responses: pd.DataFrame, draws: pd.DataFrame, row: Sequence[str]) -> pd.DataFrame:
    rows = responses.assign(part=parts(responses, row)).reset_index(drop=True)
    groups, units = group_rows(rows, row), group_rows(rows, _DRAWN_KEY)
    chance = units.keys.merge(_combine_chances(draws), "left", _DRAWN_KEY)["probability"].to_numpy(dtype=np.float64)
    has_label = np.isfinite(rows["labelled"].to_numpy(dtype=np.float64)) & np.isfinite(chance[units.code])
    means = estimate_corrected_means(
        _build_label_matrices(rows, units.code, groups.code, has_label, chance), half_width=HALF_WIDTH
    )
    return groups.keys.assign(
        judge_score=groups.sum(rows["part"] * rows["judge_score"]),
        corrected=np.clip(means.value, 0, 1),
        corrected_low=np.clip(means.low, 0, 1),
        corrected_high=np.clip(means.high, 0, 1),
        same_prompts_low=np.clip(means.here_low, 0, 1),
        same_prompts_high=np.clip(means.here_high, 0, 1),
        power=means.tuned,
        n_prompts=np.bincount(np.unique(np.stack([groups.code, units.code]), axis=1)[0]),
        n_prompts_labelled=means.n_labelled,
        prompts_needed=means.needed,
        reason=[explain_missing(int(n), "labelled prompt") for n in means.n_labelled],
    )


def _combine_chances(draws: pd.DataFrame) -> pd.DataFrame:
    """Return the prompts of any draw, with the probability of each to be in at least one."""
    chances = (
        draws.assign(missed=1 - draws["probability"]).groupby(_DRAWN_KEY).agg(missed=("missed", "prod"), drawn=("drawn", "any"))
    )
    return chances[chances["drawn"]].assign(probability=1 - chances["missed"])[["probability"]].reset_index()


def _build_label_matrices(
    rows: pd.DataFrame, unit: Codes, code: Codes, has_label: npt.NDArray[np.bool_], chance: Floats
) -> ClusterLabels:
    """Return sums of the responses' parts and means weighted by them, by prompt and board row."""
    shape = (len(chance), int(code.max(initial=-1)) + 1)
    part = rows["part"].to_numpy(dtype=np.float64)
    judges, people = (rows[name].to_numpy(dtype=np.float64) for name in ("judge_score", "labelled"))

    def table(values: Floats) -> Floats:
        flat = np.bincount(unit * shape[1] + code, values, minlength=shape[0] * shape[1])
        return np.asarray(flat.reshape(shape), dtype=np.float64)

    weights, base = table(part), table(part * has_label)
    mean = np.divide(table(part * judges), weights, out=np.full(shape, np.nan), where=weights > 0)
    label_scores, judged_scores = (
        np.divide(table(part * np.where(has_label, values, 0.0)), base, out=np.full(shape, np.nan), where=base > 0)
        for values in (people, judges)
    )
    return ClusterLabels(weights, mean, label_scores, judged_scores, chance)


def _count_members(group: Codes, member: Codes) -> Codes:
    """Return the number of distinct members of each row's group, (rows,)."""
    pairs = np.unique(np.stack([group, member]), axis=1)
    return np.asarray(np.bincount(pairs[0])[group])


def measure_known_classes(judgements: pd.DataFrame, items: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return one row per judge and class that people chose: how judges judge the points of this class.

    Columns: `judge`, `human_class` (number of the class, the mean of its authors rounded to quarters), `n` (judgements), `same_class` (share
    with the same number, the judge's sensitivity, 0-1: higher is better), `within_one_class` (share within a quarter), `bias` (mean judge's
    number minus people's, above 0: too generous), `note` (fewer than 5 prompts).
    """
    join = fill_path(judgements[judgements["score"].notna()]).merge(select_in_force(items, labels), on=list(ITEM_KEYS))
    gap = join["score"] - join["human"]
    join = join.assign(
        human_class=(join["human"] * 4).round() / 4,
        same_class=gap.abs() < 1 / 8,
        within_one_class=gap.abs() < 3 / 8,
        bias=gap,
        unit=join["blueprint"] + "/" + join["prompt"],
    )
    groups = join.groupby(["judge", "human_class"], sort=True)
    rows = groups.agg(
        n=("same_class", "size"),
        same_class=("same_class", "mean"),
        within_one_class=("within_one_class", "mean"),
        bias=("bias", "mean"),
        units=("unit", "nunique"),
    )
    notes = ["" if n >= MIN_CLUSTERS else f"of {format_count(int(n), 'prompt')} only" for n in rows["units"]]
    return rows.assign(note=notes).drop(columns="units").reset_index()


CORRECTED_READS = (*LABELLED_SCORES_READ, "rubric_scores", "rubric_blueprints", "rubric_judgements")
"""Tables that corrected scores are computed from, in addition to those of labels."""
OUTSIDE_DRAWS = 0.05
"""Largest part of a score that may be due to prompts that no draw included, such as newer ones. Beyond it a row is not corrected, because
the labels say nothing about these prompts."""
_OF_INTERVALS = ["corrected_low", "corrected_high", "same_prompts_low", "same_prompts_high", "prompts_needed", "labels_needed"]


def build_corrected_tables(
    connection: duckdb.DuckDBPyConnection, labels: pd.DataFrame, draws: pd.DataFrame
) -> dict[str, pa.Table]:
    """Return `rubric_corrected` and `rubric_known_classes`, for the latest run of each blueprint; no rows without labels.

    `connection`: the tables of CORRECTED_READS. `labels`: `rubric_labels`. `draws`: `rubric_label_draws`; only `imported` draws count. Rows
    over all blueprints exclude blueprints with the tag `test`.
    """
    counting = draws[draws["imported"]]
    if labels.empty or counting.empty:
        return {name: schema.empty_table() for name, schema in RUBRIC_CORRECTIONS.items()}
    runs = load_board_runs(connection)
    if runs.empty:
        return {name: schema.empty_table() for name, schema in RUBRIC_CORRECTIONS.items()}
    prompts = counting.loc[counting["drawn"], _DRAWN_KEY].drop_duplicates()
    items = build_label_items(*load_label_material(connection, runs, prompts).values())
    scores = compare_labelled_scores(connection, runs, items, labels)
    per_prompt = items[items["item"].isin(set(labels["item"]))].groupby(_DRAWN_KEY)["item"].nunique().mean()
    judgements = connection.execute(
        f"SELECT {_RESPONSE_COLUMNS}, {_POINT_NAMES}, judge, score FROM rubric_judgements {_IN_LATEST.format(table='rubric_judgements')}"
    ).df()
    classes = measure_known_classes(judgements, items, labels)
    return {
        "rubric_corrected": build_corrected_rows(scores, counting, list_test_blueprints(connection), float(per_prompt)),
        "rubric_known_classes": convert_to_schema(classes, RUBRIC_KNOWN_CLASSES),
    }


def build_corrected_rows(scores: pd.DataFrame, draws: pd.DataFrame, tests: Sequence[str], labels_per_prompt: float) -> pa.Table:
    """Return `rubric_corrected`: rows over all blueprints, then those of each.

    `scores`: from `compare_labelled_scores`. `draws`: the draws that count. `tests`: blueprints with the tag `test`. A prompt without
    judged criteria is included as known for certain, and is not counted as labelled.
    """
    certain_prompts = scores.loc[~scores["can_be_labelled"], _DRAWN_KEY].drop_duplicates()
    all_draws = pd.concat([draws[[*_DRAWN_KEY, "probability", "drawn"]], certain_prompts.assign(probability=1.0, drawn=True)])
    over_all = scores[~scores["blueprint"].isin(list(tests))]
    tables = [
        _correct_board_rows(part, all_draws, row, labels_per_prompt)
        for part, row in ((over_all, BOARD_ROW), (scores, BLUEPRINT_ROW))
        if len(part)
    ]
    if not tables:
        return RUBRIC_CORRECTED.empty_table()
    return pa.concat_tables([convert_to_schema_or_null(rows, RUBRIC_CORRECTED) for rows in tables])


def _correct_board_rows(
    scores: pd.DataFrame, draws: pd.DataFrame, row: tuple[str, ...], labels_per_prompt: float
) -> pd.DataFrame:
    """Return corrected rows, best first, within each blueprint if `row` has it."""
    names = list(row)
    rows = compute_corrected(scores, draws, row).merge(_count_certain(scores, draws, row), "left", names)
    rows["n_prompts_labelled"] -= rows["certain"]
    rows["prompts_needed"] = np.maximum(rows["prompts_needed"] - rows["certain"], 0)
    rows["labels_needed"] = np.ceil(np.ceil(rows["prompts_needed"]) * labels_per_prompt)
    few = rows["n_prompts_labelled"] < MIN_CLUSTERS
    outside = rows["outside"] > OUTSIDE_DRAWS
    rows.loc[few | outside, _OF_INTERVALS] = np.nan
    rows.loc[(rows["n_prompts_labelled"] < 2) | outside, ["corrected", "power"]] = np.nan
    rows["reason"] = [
        _explain_no_correction(*counts) for counts in zip(rows["n_prompts_labelled"], rows["n_outside"], outside, strict=True)
    ]
    return rows.sort_values(
        [*names[:-1], "corrected", "judge_score", "model"], ascending=[True] * len(names[:-1]) + [False, False, True]
    )


def _explain_no_correction(n_labelled: int, n_outside: int, outside: bool) -> str:
    # Labels of some blueprints say how judges err there, and nothing of how they err in others: a correction of all would be a guess.
    explanation = (
        f"not corrected: no draw included {format_count(n_outside, 'prompt')}; `dtef export labels` with another seed draws "
        "from all"
    )
    return explanation if outside else explain_missing(n_labelled, "labelled prompt")


def _count_certain(scores: pd.DataFrame, draws: pd.DataFrame, row: tuple[str, ...]) -> pd.DataFrame:
    """Count per board row the prompts known for certain, and those outside every draw, with their part of the score."""
    prompts = draws[_DRAWN_KEY].drop_duplicates().assign(listed=True)
    rows = scores.assign(part=parts(scores, row)).merge(prompts, "left", _DRAWN_KEY)
    unit = rows["blueprint"] + "/" + rows["prompt"]
    rows = rows.assign(unlisted=rows["listed"].isna(), sure=unit.where(~rows["can_be_labelled"]))
    rows = rows.assign(missed=unit.where(rows["unlisted"]), lost=rows["part"].where(rows["unlisted"], 0.0))
    groups = rows.groupby(list(row), sort=True)
    return groups.agg(certain=("sure", "nunique"), n_outside=("missed", "nunique"), outside=("lost", "sum")).reset_index()


def load_board_runs(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return one row per blueprint, with the `snapshot` of its latest run, as on boards."""
    scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'model'").df()
    return select_latest_runs(scores.astype({"blueprint": "str", "snapshot": "str"}), load_rubric_snapshot_order(connection))


def load_label_material(
    connection: duckdb.DuckDBPyConnection, runs: pd.DataFrame, prompts: pd.DataFrame | None = None
) -> Mapping[str, Any]:
    """Return `responses`, `criteria` and `prompts` of these runs, for `sample_labels`; `prompts` None: of all prompts."""
    connection.register("latest", runs[["blueprint", "snapshot"]])
    drawn = (
        connection.execute(f"SELECT blueprint::VARCHAR AS blueprint, prompt {_OF_LATEST_PROMPTS}").df()
        if prompts is None
        else prompts
    )
    connection.register("of_prompts", drawn[_DRAWN_KEY])
    return {
        "responses": connection.execute(
            f"SELECT {_RESPONSE_COLUMNS}, text, served_model FROM rubric_responses {_IN_LATEST.format(table='rubric_responses')} "
            f"{_IN_PROMPTS.format(table='rubric_responses')} WHERE status = 'ok'"
        ).df(),
        "criteria": connection.execute(
            f"SELECT blueprint::VARCHAR AS blueprint, prompt, {_POINT_NAMES}, criterion_id, kind, text "
            f"FROM rubric_criteria {_IN_PROMPTS.format(table='rubric_criteria')}"
        ).df(),
        "prompts": connection.execute(
            f"SELECT blueprint::VARCHAR AS blueprint, prompt, weight, messages {_OF_LATEST_PROMPTS}"
        ).df(),
    }
