"""Models by demographic attribute, under every metric, and how even they are over the segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.boards.boards import load_evidence
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.boards.cuts import of_cut
from dtef_pipeline.drift.models import ModelDrift, model_drift
from dtef_pipeline.drift.verdict_tables import DRIFT, DRIFT_SERIES
from dtef_pipeline.report.leaderboard import MODEL_COLUMN, RANK, TIER, Beneath, Board, BoardColumn
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    estimate,
    fold,
    four,
    name_with_notes,
    named,
    p_value,
    paragraph,
    percent,
    section,
    table,
    text,
    whole,
    with_interval,
    with_intervals,
    with_name,
)
from dtef_pipeline.report.terminal import named_apart, with_ranks
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.survey.boards.meanings import ENDS
from dtef_pipeline.survey.boards.published import BREAKDOWNS, PUBLISHED
from dtef_pipeline.survey.boards.scored import SCORED, SurveyBoardOptions
from dtef_pipeline.survey.boards.views import view
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.report.charts import references
from dtef_pipeline.survey.report.groups import asked_alike
from dtef_pipeline.survey.tables import CORRECTED, DISTANCES, METRICS
from dtef_pipeline.text.counted import counted


def attributes(frame: pd.DataFrame) -> str:
    """The section, from rows of the board by attribute."""
    how = (
        "Mean score of each model over the segments of one demographic attribute, with its 95 % interval, and its skill (see the methodology). "
        "A model that has no score on some pairs has beneath its mean the number of its pairs and their share: means over different pairs do "
        "not compare, and nothing here makes up for that."
    )
    groups = [
        fold(title, _by_attribute(rows), is_open=at == 0) for at, (title, rows) in enumerate(asked_alike(frame, richest=True))
    ]
    return section("attributes", "Attributes", how, "".join(groups) or paragraph("No scores yet."))


_OF_SKILL = ("attribute", "model", "model_variant", "context_level", "condition", "skill", "skill_low", "skill_high")


def _by_attribute(rows: pd.DataFrame) -> str:
    scores = with_interval(rows, "score", ("score_low", "score_high")) + _pairs_behind(rows)
    tables = _wide(rows, scores, "Mean score by attribute", "ceiling")
    if "skill" in rows and rows["skill"].notna().any():
        skills = with_interval(rows, "skill", ("skill_low", "skill_high")) + _pairs_behind(rows)
        of_skill = rows[[name for name in rows if name in _OF_SKILL]]
        tables += _wide(rows, skills, "Skill by attribute: 0 is the leave-one-out marginal, 1 the ceiling", "", of_skill)
    return tables


def _pairs_behind(rows: pd.DataFrame) -> pd.Series[Any]:
    """Markup for each row: the pairs behind its numbers, where other models have more of the attribute's."""
    if "n_pairs" not in rows:
        return pd.Series("", index=rows.index, dtype=object)
    most = rows.groupby("attribute", observed=True)["n_pairs"].transform("max")
    cells = [
        f'<span class="ci">{counted(int(n), "pair")}, {percent(n / of)}</span>' if 0 < n < of else ""
        for n, of in zip(rows["n_pairs"], most, strict=True)
    ]
    return pd.Series(cells, index=rows.index, dtype=object)


def _wide(rows: pd.DataFrame, cells: pd.Series[Any], caption: str, last: str, data: pd.DataFrame | None = None) -> str:
    """Models down (by their mean score), attributes across; `last` names a column whose medians are a row of their own at the end."""
    means = rows.groupby("model", observed=True)["score"].mean()
    order = means.index[np.argsort(ranks(means), kind="stable")]
    wide = (
        rows.assign(cell=cells).pivot_table(index="model", columns="attribute", values="cell", aggfunc="first").reindex(order)
    )
    if last in rows:
        medians = rows.groupby("attribute", observed=True)[last].median()
        wide.loc[last] = [estimate(medians[name]) for name in wide.columns]
    columns = [Column("model", "Model", text), *(Column(name, name, as_is) for name in map(str, wide.columns))]
    return table(
        wide.rename_axis("model").reset_index(), columns, caption=caption, row_head="model", data=rows if data is None else data
    )


_METRIC_COLUMNS = [
    Column("model", "Model", text),
    *(Column(metric, metric, as_is) for metric in METRICS),
    *(Column(name, name.replace("_", " "), four) for name in CORRECTED),
]
_CONSISTENCY_COLUMNS = [
    Column("rank", "Rank", whole),
    Column("model", "Model", named),
    Column("segment_sd_true", "True SD", as_is, "Standard deviation of the segments' true means: what the rank is by"),
    Column("segment_sd", "SD of segment means", estimate, "As seen, with the sampling noise of small segments"),
    Column("segment_sd_expected", "Expected SD", estimate, "Standard deviation that sample sizes alone would give"),
    Column("segment_p", "p", p_value, "Of the hypothesis that the segments' true means are all the same"),
    Column("lowest", "Lowest", as_is, "Mean score of the lowest segment"),
    Column("highest", "Highest", as_is, "Mean score of the highest segment"),
    Column("n_segments", "Segments", whole, "Segments with a score, counted in each round"),
]


def metrics(frame: pd.DataFrame) -> str:
    """The section, from rows of the board by metric."""
    how = (
        "The same predictions under each metric: the mean over the pairs that a model has a score on, and in brackets its rank. Ranks are by "
        "the adjusted score under that metric, which makes up for models that were asked different pairs, so they need not follow the means. A "
        "model that does well on one and badly on another gets the shape "
        f"right but misplaces mass, or the reverse. {' and '.join(DISTANCES)} are shown as 1 - distance. Corrected errors do not grow as "
        "samples shrink: lower is better, and chance can take them below 0."
    )
    shown = with_ranks(frame, METRICS)
    return section("metrics", "Metrics", how, _tables(shown, _METRIC_COLUMNS, "Scores under every metric", frame))


def consistency(frame: pd.DataFrame) -> str:
    """The section, from rows of the consistency board."""
    how = (
        "How far a model's segment means lie apart: small is even, and says nothing of how good they are. Part of the standard deviation seen "
        "is sampling noise of small segments (expected); what is left is that of the segments' true means. A segment counts once in each round. "
        "The p of a model is not adjusted for the other models. "
        "Spreads over different segments do not compare: a note says where a model has a score in fewer than others. "
    )
    is_parted = "segment_sd_true" in frame and bool(frame["segment_sd_true"].notna().any())
    how += f"Models are ranked by {'that of the true means' if is_parted else 'the one seen'}: the smallest first."
    shown = with_intervals(frame, [("segment_sd_true", "segment_sd_low", "segment_sd_high")])
    notes = frame["consistency_note"] if "consistency_note" in frame else [None] * len(frame)
    shown["model"] = [name_with_notes(model, [words]) for model, words in zip(frame["model"], notes, strict=True)]
    shown = shown.assign(**{end: with_name(frame, end, f"{end}_segment") for end in ("lowest", "highest")})
    return section("consistency", "Consistency", how, _tables(shown, _CONSISTENCY_COLUMNS, "Consistency over segments", frame))


def _tables(shown: pd.DataFrame, columns: list[Column], caption: str, frame: pd.DataFrame) -> str:
    """A table for each context level and condition, the first one open; `frame` has the numbers of what is shown, row by row."""
    groups = [
        fold(title, table(rows, columns, caption=caption, row_head="model", data=frame.loc[rows.index]), is_open=at == 0)
        for at, (title, rows) in enumerate(asked_alike(shown))
    ]
    return "".join(groups) or paragraph("No scores yet.")


Boards = Mapping[str, pd.DataFrame]
"""Boards by view."""
_ON_PAGE = {view.name: view.table for view in PUBLISHED if view.is_board and view.on_page}


def published(connection: duckdb.DuckDBPyConnection, table: str, view: str = "") -> pd.DataFrame:
    """Rows of a published table without circular questions, models called apart; an empty frame when there is no such table.

    `view`: whose rows, of a table of several.
    """
    if not has_table(connection, table):
        return pd.DataFrame()
    frame = connection.execute(f"SELECT * FROM {table} WHERE targets = 'clean'").df()
    if table == BREAKDOWNS:
        frame = of_cut(frame, view, KEYS.groups)
    return named_apart(frame) if len(frame) else frame


def boards(connection: duckdb.DuckDBPyConnection) -> Boards:
    """Every board that the page shows."""
    options = SurveyBoardOptions()
    evidence = None if all(has_table(connection, table) for table in _ON_PAGE.values()) else load_evidence(connection, options)
    return {
        by: published(connection, table, by)
        if has_table(connection, table)
        else named_apart(view(connection, by, options, evidence))
        for by, table in _ON_PAGE.items()
    }


def published_drift(connection: duckdb.DuckDBPyConnection) -> ModelDrift:
    """The published tables where they exist, else the same computed from the scores."""
    if has_table(connection, "drift") and has_table(connection, "drift_series"):
        of_family = f"WHERE family = '{SUBJECT.family}'"
        checks, series = (
            connection.sql(f"SELECT {', '.join(schema.names)} FROM {name} {of_family}").to_arrow_table()
            for name, schema in (("drift", DRIFT), ("drift_series", DRIFT_SERIES))
        )
        if len(checks):
            return ModelDrift(checks, series)
    return model_drift(connection, SUBJECT)


_HOW_TO_READ_BOARD = (
    "Higher is better: a dot is a model's mean score, its whisker the 95 % interval. A model left of the marginal lines does worse than "
    "answering for everybody alike; the ceiling is what a perfect predictor would reach on samples of these sizes. The population marginal "
    "contains the answers of the very group it predicts, so it can come near the ceiling or pass it; the leave-one-out marginal does not. "
    f"A model without a score in {SCORED.ranked_from} segments (or in all, if there are fewer) is shown without a rank."
)
_RANKED_BY = (
    "Not every model has a score on every pair, and some pairs are easier than others. So models are ranked by the adjusted score: the score "
    "that each would have, had all been asked the same pairs (least squares of model and pair, over the pairs that two models or more have)."
)


_SHOWN_COLUMNS = [
    RANK,
    TIER,
    MODEL_COLUMN,
    BoardColumn(
        "score",
        "Score",
        meaning="Mean under the published policy: unparseable and refused responses count 0, wrong lengths 0.1",
        ends=ENDS["score"],
    ),
    BoardColumn(
        "adjusted_score",
        "Ranked by",
        meaning="Adjusted score: the score had every model been asked the same pairs",
    ),
    BoardColumn(
        "parsed_score",
        "Parsed only",
        meaning="Mean over the responses that could be read; beneath it their share of all responses",
        beneath=Beneath("parse_rate", percent, "{} read"),
    ),
    BoardColumn(
        "skill",
        "Skill",
        meaning="Position between the leave-one-out marginal (0) and the ceiling (1)",
        ends=ENDS["skill"],
    ),
    BoardColumn(
        "worth",
        "Worth",
        meaning="Size of a real sample of the group that would predict as well as the responses that could be read, in respondents",
    ),
    BoardColumn("n_pairs", "Pairs", whole, "Segment and question pairs behind the score"),
    BoardColumn(
        "n_questions",
        "Questions",
        whole,
        "Different questions behind the score; beneath it their batteries, by which intervals go",
        beneath=Beneath("n_batteries", whole, "{} batteries"),
    ),
]
SURVEY_BOARD = Board(_HOW_TO_READ_BOARD, _SHOWN_COLUMNS, references, _RANKED_BY)
