"""Data of the pages of the qa family: boards, and the items of each suite with the score of every model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import sort_snapshots
from dtef_pipeline.qa.score_rows import load_latest_scores, load_qa_snapshot_order
from dtef_pipeline.qa.site.qa_labels import rank_metric
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.report.terminal import rename_variants
from dtef_pipeline.site.paths import choose_file_names

Scores = npt.NDArray[np.float64]
UNREAD_SCORE, NO_SCORE = -1.0, -2.0
"""Codes in place of a score: the response could not be read (it counts 0), or has no score for another reason."""
RIGHT_FROM = 0.5
"""Lowest score of an answer that counts as right, for partial scores."""
QA_LATEST, SHOWN_RUNS = "latest_scores_of_qa", "shown_runs_of_qa"
"""Tables of the connection: the scores that boards read, and the runs whose responses are shown."""
LINE_CHARACTERS, SEARCHED_CHARACTERS = 90, 1_500
"""Characters of a question in lists, and of a question with its options in the search index."""


class BoardMeasure(NamedTuple):
    """Key of a board within its suite."""

    condition: str
    metric: str
    measured_by: str


@dataclass(frozen=True)
class SuiteScores:
    """The items of a suite in their order, with the score of each model."""

    suite: str
    file: str
    """Base name of its files."""
    items: pd.DataFrame
    """`part`, `item_id`, `text` (its beginning) and `words` (for the search); both are empty for an item that was removed."""
    models: Sequence[str]
    """Model variants, best first."""
    scores: Mapping[BoardMeasure, Scores]
    """(models, items) mean score over draws, UNREAD_SCORE, NO_SCORE, or NaN if there is no response; the first is the main measure."""

    @property
    def page(self) -> str:
        return f"qa/suites/{self.file}.html"

    @cached_property
    def lines(self) -> list[str]:
        """The beginning of each question on one line; without a text, its id."""
        texts = (
            " ".join(text.split()) or str(item) for text, item in zip(self.items["text"], self.items["item_id"], strict=True)
        )
        return [text if len(text) <= LINE_CHARACTERS else f"{text[: LINE_CHARACTERS - 1]}…" for text in texts]

    @property
    def main(self) -> Scores:
        """The scores of the main measure (models, items); NaN: no score."""
        first = next(iter(self.scores.values()), np.full((len(self.models), len(self.items)), np.nan))
        return np.where(first == NO_SCORE, np.nan, np.where(first == UNREAD_SCORE, 0.0, first))


class QaScores:
    """The scores on all pages. `connection` has `qa_scores` and views named like the family's other tables."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.rows = StoredRows(connection)
        self.connection = connection
        latest = load_latest_scores(connection)
        connection.register(QA_LATEST, latest)
        connection.register(SHOWN_RUNS, choose_shown_runs(self.rows, latest, load_qa_snapshot_order(connection)))
        variants = rename_variants(self._read_variants())
        self.names: dict[str, str] = dict(zip(variants["model_variant"], variants["model"], strict=True))
        self.board = self._read_board()

    def _read_variants(self) -> pd.DataFrame:
        """Return every model variant with its model."""
        query = f"SELECT DISTINCT model::VARCHAR AS model, model_variant::VARCHAR AS model_variant FROM {QA_LATEST}"
        if self.rows.has("qa_responses"):
            query += " UNION SELECT DISTINCT model::VARCHAR, model_variant::VARCHAR FROM qa_responses"
        frame: pd.DataFrame = self.connection.sql(f"FROM ({query}) ORDER BY ALL").df()
        return frame

    def _read_board(self) -> pd.DataFrame:
        """Read `qa_board` with the models' names on the site; empty without the table."""
        board = self.rows.frame("qa_board")
        if not len(board):
            return board
        texts = {
            name: board[name].fillna("").astype(str) for name in ("condition", "metric", "measured_by", "note", "exposure")
        }
        return board.assign(**texts, model=board["model_variant"].map(self.names).fillna(board["model"]))

    @cached_property
    def overall(self) -> pd.DataFrame:
        """The rows of the board over whole suites; empty without the table."""
        return self.board[self.board["cut"] == "overall"] if len(self.board) else self.board

    @cached_property
    def suites(self) -> dict[str, SuiteScores]:
        """Every suite with items or scores, by name."""
        names: set[str] = set()
        for table in (QA_LATEST, "qa_items"):
            if self.rows.has(table):
                names |= {str(row[0]) for row in self.connection.sql(f"SELECT DISTINCT suite FROM {table}").fetchall()}
        return {name: self._build_suite(name, file) for name, file in choose_file_names(sorted(names)).items()}

    def _build_suite(self, name: str, file: str) -> SuiteScores:
        means = self.connection.execute(_MEAN_SCORES, [name]).df()
        items = self._build_items(name, means)
        place = pd.MultiIndex.from_frame(items[["part", "item_id"]])
        means = means.assign(at=place.get_indexer(pd.MultiIndex.from_frame(means[["part", "item_id"]])))
        groups = {BoardMeasure(*map(str, key)): frame for key, frame in means.groupby(["condition", "metric", "measured_by"])}
        first = sorted(groups, key=lambda kind: (rank_metric(kind.metric), -groups[kind]["model_variant"].nunique(), kind))
        rows = self.connection.execute(f"SELECT DISTINCT model_variant FROM {SHOWN_RUNS} WHERE suite = ?", [name]).fetchall()
        models = _sort_models({str(row[0]) for row in rows} | {*means["model_variant"]}, groups[first[0]] if first else means)
        return SuiteScores(name, file, items, models, {kind: _build_grid(groups[kind], models, len(items)) for kind in first})

    def _build_items(self, suite: str, means: pd.DataFrame) -> pd.DataFrame:
        words = f"words=left(concat_ws(' ', text, array_to_string(options, ' ')), {SEARCHED_CHARACTERS})"
        columns = ("part=part::VARCHAR", "item_id", f"text=left(text, {4 * LINE_CHARACTERS})", words)
        items = self.rows.table("qa_items", columns, {"suite": suite}, ("part", "position", "item_id")).to_pandas()
        extras = means[["part", "item_id"]].drop_duplicates().sort_values(["part", "item_id"])
        all_items = pd.concat([items, extras], ignore_index=True).drop_duplicates(["part", "item_id"])
        frame: pd.DataFrame = all_items.sort_values("part", kind="stable", ignore_index=True)
        return frame.assign(**{name: frame[name].astype(object).fillna("") for name in ("text", "words")})


_MEAN_SCORES = f"""
    SELECT part::VARCHAR AS part, item_id::VARCHAR AS item_id, condition::VARCHAR AS condition, metric::VARCHAR AS metric,
        measured_by::VARCHAR AS measured_by, model_variant::VARCHAR AS model_variant,
        CASE WHEN count(score) = 0 THEN {NO_SCORE} WHEN bool_and(status = 'unparseable') THEN {UNREAD_SCORE}
            ELSE round(avg(score), 4) END AS score
    FROM {QA_LATEST} WHERE suite::VARCHAR = ? GROUP BY ALL
"""


def _sort_models(models: set[str], main: pd.DataFrame) -> list[str]:
    """Sort the variants by their mean in the main measure, the best first, then by name."""
    frame = main[main["score"] != NO_SCORE]
    best = frame["score"].clip(lower=0).groupby(frame["model_variant"]).mean().to_dict()
    return sorted(models, key=lambda model: (-best.get(model, -1.0), model))


def _build_grid(frame: pd.DataFrame, models: Sequence[str], n_items: int) -> Scores:
    grid = np.full((len(models), n_items), np.nan)
    row = {model: index for index, model in enumerate(models)}
    grid[frame["model_variant"].map(row).to_numpy(), frame["at"].to_numpy()] = frame["score"].to_numpy(dtype=np.float64)
    return grid


RUN_OF_A_PART = ("suite", "part", "condition", "model_variant", "snapshot")
"""Key of a run among the runs of all parts."""


def choose_shown_runs(rows: StoredRows, latest: pa.Table, snapshot_order: Sequence[str]) -> pa.Table:
    """Return one row per run, with the columns RUN_OF_A_PART: the runs that boards read, and the latest run of what has no score.

    `latest`: rows of `latest_scores`; `snapshot_order`: the snapshots of the scores, earliest first.
    """
    runs = dict.fromkeys(_list_distinct(latest))
    if rows.has("qa_responses"):
        query = f"(SELECT DISTINCT {', '.join(RUN_OF_A_PART)} FROM qa_responses)"
        candidates = _list_distinct(rows.table(query, RUN_OF_A_PART, {}))
        later = {run[-1]: None for run in candidates if run[-1] not in set(snapshot_order)}
        place = {label: index for index, label in enumerate((*snapshot_order, *sort_snapshots(later)))}
        keys = {run[:-1] for run in runs}
        for run in sorted(candidates, key=lambda candidate: -place[candidate[-1]]):
            if run[:-1] not in keys:
                keys.add(run[:-1])
                runs[run] = None
    return pa.table({name: pa.array([run[index] for run in runs], pa.string()) for index, name in enumerate(RUN_OF_A_PART)})


def _list_distinct(table: pa.Table) -> list[tuple[str, ...]]:
    plain = pa.table({name: pc.cast(table[name], pa.string()) for name in RUN_OF_A_PART})
    groups = plain.group_by(list(RUN_OF_A_PART)).aggregate([])
    return sorted(zip(*(groups[name].to_pylist() for name in RUN_OF_A_PART), strict=True))
