"""The published tables that follow from people's labels: corrected scores, and how well judges know each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.rubric.board import TEST_TAG, latest_runs
from dtef_pipeline.rubric.corrected import BLUEPRINT_ROW, BOARD_ROW, corrected, known_classes, parts
from dtef_pipeline.rubric.label_draws import as_table
from dtef_pipeline.rubric.label_keys import ITEM_KEYS
from dtef_pipeline.rubric.label_sheet import label_items
from dtef_pipeline.rubric.label_tables import RUBRIC_CORRECTED_ROWS
from dtef_pipeline.rubric.labelled_scores import LABELLED_SCORES_READ, labelled_scores
from dtef_pipeline.rubric.published_boards import rubric_snapshot_order
from dtef_pipeline.rubric.validity_tables import RUBRIC_KNOWN_CLASSES
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS, why_none
from dtef_pipeline.text.counted import counted

CORRECTED_READS = (*LABELLED_SCORES_READ, "rubric_scores", "rubric_blueprints", "rubric_judgements")
"""The tables that corrected scores are made of, beside those of labels."""
OUTSIDE_DRAWS = 0.05
"""Part of a score that may come of prompts which no draw could have drawn, as newer ones. Beyond it a row is not corrected, because the labels
say nothing of these prompts."""
_DRAWN_NAME = ["blueprint", "prompt"]
_OF_INTERVALS = ["corrected_low", "corrected_high", "here_low", "here_high", "prompts_needed", "labels_needed"]
_IN_LATEST = "SEMI JOIN latest ON {table}.blueprint = latest.blueprint AND {table}.snapshot = latest.snapshot"
_RESPONSE_NAMED_BY = ", ".join(
    f"{name}::VARCHAR AS {name}" if name in ("blueprint", "snapshot") else name for name in ITEM_KEYS[:8]
)
_POINT_NAMES = ", ".join(ITEM_KEYS[8:])


def corrected_tables(connection: duckdb.DuckDBPyConnection, labels: pd.DataFrame, draws: pd.DataFrame) -> dict[str, pa.Table]:
    """`rubric_corrected` and `rubric_known_classes`, of the latest run of each blueprint; without rows where nobody labelled anything.

    `connection`: the tables of CORRECTED_READS; `labels`: `rubric_labels`; `draws`: `rubric_label_draws`, of which those count that are
    `imported`. Blueprints with the tag `test` are in no row over blueprints.
    """
    counting = draws[draws["imported"]]
    if labels.empty or counting.empty:
        return {
            "rubric_corrected": RUBRIC_CORRECTED_ROWS.empty_table(),
            "rubric_known_classes": RUBRIC_KNOWN_CLASSES.empty_table(),
        }
    runs = board_runs(connection)
    drawn = counting.loc[counting["drawn"], _DRAWN_NAME].drop_duplicates()
    items = items_of(connection, runs, drawn)
    scores = labelled_scores(connection, runs, items, labels)
    per_prompt = items[items["item"].isin(set(labels["item"]))].groupby(_DRAWN_NAME)["item"].nunique().mean()
    judged = connection.execute(
        f"SELECT {_RESPONSE_NAMED_BY}, {_POINT_NAMES}, judge, score FROM rubric_judgements {_IN_LATEST.format(table='rubric_judgements')}"
    ).df()
    classes = known_classes(judged, items, labels)
    return {
        "rubric_corrected": corrected_rows(scores, counting, blueprints_of_tests(connection), float(per_prompt)),
        "rubric_known_classes": as_table(classes, RUBRIC_KNOWN_CLASSES),
    }


def corrected_rows(scores: pd.DataFrame, draws: pd.DataFrame, of_tests: Sequence[str], labels_per_prompt: float) -> pa.Table:
    """`rubric_corrected`: rows over all blueprints, then those of each.

    `scores`: as of `labelled_scores`; `draws`: the draws that count; `of_tests`: blueprints with the tag `test`. A prompt of which judges
    decide nothing takes part as known for certain, and is not counted as labelled.
    """
    known = scores.loc[~scores["can_be_labelled"], _DRAWN_NAME].drop_duplicates()
    drawn = pd.concat([draws[[*_DRAWN_NAME, "probability", "drawn"]], known.assign(probability=1.0, drawn=True)])
    over_all = scores[~scores["blueprint"].isin(list(of_tests))]
    made = [
        _rows(part, drawn, row, labels_per_prompt)
        for part, row in ((over_all, BOARD_ROW), (scores, BLUEPRINT_ROW))
        if len(part)
    ]
    if not made:
        return RUBRIC_CORRECTED_ROWS.empty_table()
    return pa.concat_tables(
        [as_table(rows.reindex(columns=RUBRIC_CORRECTED_ROWS.names), RUBRIC_CORRECTED_ROWS) for rows in made]
    )


def _rows(scores: pd.DataFrame, drawn: pd.DataFrame, row: tuple[str, ...], labels_per_prompt: float) -> pd.DataFrame:
    """Best corrected score first, within a blueprint where there are several."""
    names = list(row)
    found = corrected(scores, drawn, row).merge(_counts(scores, drawn, row), "left", names)
    found["n_prompts_labelled"] -= found["certain"]
    found["prompts_needed"] = np.maximum(found["prompts_needed"] - found["certain"], 0)
    found["labels_needed"] = np.ceil(np.ceil(found["prompts_needed"]) * labels_per_prompt)
    few = found["n_prompts_labelled"] < MIN_CLUSTERS
    outside = found["outside"] > OUTSIDE_DRAWS
    found.loc[few | outside, _OF_INTERVALS] = np.nan
    found.loc[(found["n_prompts_labelled"] < 2) | outside, ["corrected", "power"]] = np.nan
    found["reason"] = [_why(*of_row) for of_row in zip(found["n_prompts_labelled"], found["n_outside"], outside, strict=True)]
    return found.sort_values(
        [*names[:-1], "corrected", "judged", "model"], ascending=[True] * len(names[:-1]) + [False, False, True]
    )


def _why(n_labelled: int, n_outside: int, outside: bool) -> str:
    # Labels of some blueprints say how judges err there, and nothing of how they err in others: a correction of all would be a guess.
    lost = f"not corrected: {counted(n_outside, 'prompt')} in no draw so far; `dtef rubric labels sample` with another seed draws among all"
    return lost if outside else why_none(n_labelled, "labelled prompt")


def _counts(scores: pd.DataFrame, drawn: pd.DataFrame, row: tuple[str, ...]) -> pd.DataFrame:
    """Per board row: prompts known for certain, and those that no draw could have drawn, with their part of the score."""
    listed = drawn[_DRAWN_NAME].drop_duplicates().assign(listed=True)
    rows = scores.assign(part=parts(scores, row)).merge(listed, "left", _DRAWN_NAME)
    unit = rows["blueprint"] + "/" + rows["prompt"]
    rows = rows.assign(unlisted=rows["listed"].isna(), sure=unit.where(~rows["can_be_labelled"]))
    rows = rows.assign(missed=unit.where(rows["unlisted"]), lost=rows["part"].where(rows["unlisted"], 0.0))
    grouped = rows.groupby(list(row), sort=True)
    return grouped.agg(certain=("sure", "nunique"), n_outside=("missed", "nunique"), outside=("lost", "sum")).reset_index()


def board_runs(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """One row per blueprint, with the `snapshot` of its latest run, as boards have it."""
    scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'model'").df()
    return latest_runs(scores.astype({"blueprint": "str", "snapshot": "str"}), rubric_snapshot_order(connection))


def blueprints_of_tests(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Blueprints that are in no board over several."""
    rows = connection.execute("SELECT blueprint::VARCHAR, tags FROM rubric_blueprints").fetchall()
    return [blueprint for blueprint, tags in rows if TEST_TAG in (tags or ())]


def items_of(connection: duckdb.DuckDBPyConnection, runs: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """`label_items` of the responses of these runs to these prompts (`blueprint`, `prompt`)."""
    return label_items(*label_material(connection, runs, prompts).values())


def label_material(
    connection: duckdb.DuckDBPyConnection, runs: pd.DataFrame, prompts: pd.DataFrame | None = None
) -> Mapping[str, Any]:
    """What labels are about: `responses`, `criteria` and `prompts` of these runs, as `sampled` takes them; `prompts` None: of all."""
    connection.register("latest", runs[["blueprint", "snapshot"]])
    chosen = (
        ""
        if prompts is None
        else "SEMI JOIN of_prompts ON {table}.blueprint = of_prompts.blueprint AND {table}.prompt = of_prompts.prompt"
    )
    if prompts is not None:
        connection.register("of_prompts", prompts[_DRAWN_NAME])
    responses, criteria = (chosen.format(table=table) for table in ("rubric_responses", "rubric_criteria"))
    of_blueprints = "WHERE blueprint::VARCHAR IN (SELECT blueprint FROM latest)"
    return {
        "responses": connection.execute(
            f"SELECT {_RESPONSE_NAMED_BY}, text, served_model FROM rubric_responses {_IN_LATEST.format(table='rubric_responses')} {responses} "
            "WHERE status = 'ok'"
        ).df(),
        "criteria": connection.execute(
            f"SELECT blueprint::VARCHAR AS blueprint, prompt, {_POINT_NAMES}, criterion_id, kind, text "
            f"FROM rubric_criteria {criteria} {of_blueprints}"
        ).df(),
        "prompts": connection.execute(
            f"SELECT blueprint::VARCHAR AS blueprint, prompt, weight, messages FROM rubric_prompts {of_blueprints}"
        ).df(),
    }
