"""The shared data of all pages of rubrics: blueprints, the shown run of each, boards and their best model, and addresses of pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among, order_in
from dtef_pipeline.boards.cells import register_missing_tables
from dtef_pipeline.report.row_reader import StoredRow, StoredRows
from dtef_pipeline.rubric.blueprint_run import find_slices
from dtef_pipeline.rubric.board import select_latest_runs
from dtef_pipeline.rubric.scoring import MODEL_LEVEL
from dtef_pipeline.rubric.tables import RUBRIC_TABLES
from dtef_pipeline.site.content import Column, Estimate, Link, convert_to_rows, is_unknown
from dtef_pipeline.site.family_content import BoardRow, RankedBoard
from dtef_pipeline.site.leaderboard import describe_best_of_models
from dtef_pipeline.site.number_text import show_with_interval
from dtef_pipeline.site.paths import address_id, choose_file_names
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.shortening import shorten_to_line

_LONGEST_PROMPT = 140
_JUDGE_NAME = re.compile(r"([a-z-]+)\((.*)\)(?:\[scale:(\d+)\])?\Z")
_ABOUT_COLUMNS = ("blueprint", "title", "description", "tags", "references", "n_errors")
_SHOWN_SCORES = """
    SELECT blueprint, model, hybrid AS score, scores.coverage, scores.similarity, low, high, rank, rank_low, rank_high, board.n_scored,
        [format('unscored: {} ({})', one.key, one.value) FOR one IN map_entries(reasons)] AS unscored,
        array_to_string([part FOR part IN [board.note] || coalesce(unscored, []) IF part <> ''], '; ') AS note
    FROM rubric_scores AS scores SEMI JOIN shown_runs USING (blueprint, snapshot)
    LEFT JOIN (FROM rubric_board WHERE cut = 'blueprint') AS board USING (blueprint, snapshot, model)
    WHERE level = 'model' ORDER BY blueprint, hybrid DESC NULLS LAST, model"""
_RUN_TIMES = """(
    SELECT snapshot, answered_at FROM rubric_runs
    UNION ALL FROM (SELECT snapshot, answered_at FROM rubric_responses ANTI JOIN rubric_runs USING (snapshot)))"""
_RUNS = "SELECT blueprint, snapshot FROM rubric_responses UNION SELECT blueprint, snapshot FROM rubric_runs"
_PROMPTS = """
    SELECT blueprint, prompt, row_number() OVER (PARTITION BY blueprint ORDER BY position, prompt) AS number,
        [message.text FOR message IN messages IF message.role = 'user' AND message.text <> ''][1] AS text
    FROM rubric_prompts"""


class TablesOfBlueprints(StoredRows):
    """Returns the rows of one blueprint at a time. Reads a table once for all, because a query of its many files takes a moment."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__(connection)
        self._tables: dict[tuple[str, ...], tuple[pa.Table, dict[str, tuple[int, int]]]] = {}

    def table(self, name: str, names: Sequence[str], where: Mapping[str, Any], order: Sequence[str] = ()) -> pa.Table:
        """Return the rows of the blueprint in `where`, in order; if a snapshot is in it, those of the shown run."""
        key = (name, *names)
        if key not in self._tables:
            shown_only = f"(FROM {name} SEMI JOIN shown_runs USING (blueprint, snapshot))"
            rows = super().table(shown_only if "snapshot" in where else name, ("blueprint", *names), {}, ("blueprint", *order))
            self._tables[key] = (rows, find_slices(rows["blueprint"]))
        rows, slices = self._tables[key]
        return rows.slice(*slices.get(where["blueprint"], (0, 0)))


class RubricRows:
    """The tables of rubrics, with the view `shown_runs` (blueprint, snapshot) of the latest run of each blueprint with a score.

    Missing tables are empty.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.rows = StoredRows(connection)
        register_missing_tables(connection, {name: spec.schema for name, spec in RUBRIC_TABLES.items()})
        self.order = order_in(connection, _RUN_TIMES)
        self.all_scores = self.rows.frame("rubric_scores", {"level": MODEL_LEVEL})
        """Scores of whole models, in all runs."""
        self.runs = self._find_shown_runs()
        """The shown snapshot of each blueprint."""
        shown_runs = pd.DataFrame({"blueprint": list(self.runs), "snapshot": list(self.runs.values())}, dtype="str")
        connection.register("shown_runs", shown_runs)
        self.shown = TablesOfBlueprints(connection)

    def _find_shown_runs(self) -> dict[str, str]:
        """Return each blueprint's latest snapshot with a score, else its latest; blueprints without a run are left out."""
        runs = self.query_frame(_RUNS).astype("str").groupby("blueprint")["snapshot"]
        scored = select_latest_runs(self.all_scores, self.order).astype("str").itertuples(index=False, name=None)
        return {str(name): among(self.order, snapshots)[-1] for name, snapshots in runs} | dict(scored)

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[StoredRow]:
        """Return the rows of a query with named parameters."""
        rows: list[StoredRow] = self.rows.connection.sql(sql, params=dict(parameters or {})).to_arrow_table().to_pylist()
        return rows

    def query_frame(self, sql: str) -> pd.DataFrame:
        """Return the rows of a query as a frame."""
        frame: pd.DataFrame = self.rows.connection.sql(sql).to_arrow_table().to_pandas()
        return frame

    @cached_property
    def about(self) -> dict[str, StoredRow]:
        """The facts about each blueprint that was read or run, by id."""
        read = {str(row["blueprint"]): row for row in self.rows.rows("rubric_blueprints", _ABOUT_COLUMNS, {})}
        return {name: read.get(name, dict.fromkeys(_ABOUT_COLUMNS)) for name in sorted({*read, *self.runs})}

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The models in the shown run of each blueprint, best first; with ranks and intervals if the board has them."""
        return self.query_frame(_SHOWN_SCORES)

    def cut(self, name: str, **values: str) -> pd.DataFrame:
        """Return the rows of one cut of the board (overall, tag, prompt or criterion), or of one tag in it, the best models first."""
        rows = self.rows.frame("rubric_board", {"cut": name, **values})
        return rows.sort_values(["rank", "score", "model"], ascending=[True, False, True])

    @cached_property
    def files(self) -> dict[str, str]:
        """The file name of each blueprint's page, without its ending."""
        return choose_file_names(self.about)

    def link(self, blueprint: str) -> Link:
        """Return a link to a blueprint's page, with its title in the file, else its id."""
        return Link(str(self.about[blueprint]["title"] or blueprint), f"rubric/blueprints/{self.files[blueprint]}.html")

    @cached_property
    def blueprints_of_tags(self) -> dict[str, list[str]]:
        """The blueprints of each tag."""
        pairs = [(str(tag), name) for name, row in self.about.items() for tag in dict.fromkeys(row["tags"] or ())]
        return {tag: [name for other, name in pairs if other == tag] for tag in sorted(dict(pairs))}

    @cached_property
    def tag_links(self) -> dict[str, Link]:
        """A link to the page of each tag."""
        files = choose_file_names(self.blueprints_of_tags)
        return {tag: Link(tag, f"rubric/tags/{file}.html") for tag, file in files.items()}

    @cached_property
    def prompts(self) -> dict[tuple[str, str], tuple[int, str]]:
        """The number from 1 and the first words of each prompt, by (blueprint, prompt)."""
        return {
            (row["blueprint"], row["prompt"]): (row["number"], shorten_to_line(row["text"] or row["prompt"], _LONGEST_PROMPT))
            for row in self.query(_PROMPTS)
        }

    def prompt_link(self, blueprint: str, prompt: str, text: str = "") -> Link:
        """Return a link to a prompt on its blueprint's page, by default with the title of the blueprint and the prompt's number."""
        title, page = self.link(blueprint)
        number, _ = self.prompts.get((blueprint, prompt), (0, ""))
        return Link(text or f"{title}, prompt {number}", f"{page}#prompt-{address_id(prompt)}" if number else page)


def judge_words(judge: str) -> str:
    """Format a judge, or a pair, for people: `prompt-aware(gpt-4.1)` becomes `gpt-4.1 (prompt-aware)`."""
    if " x " in judge and all(_JUDGE_NAME.match(name) for name in judge.split(" x ")):
        return " and ".join(map(judge_words, judge.split(" x ")))
    match = _JUDGE_NAME.match(judge)
    return f"{match[2]} ({match[1]}{f', {match[3]} classes' if match[3] else ''})" if match else judge


def build_ranked_board(measure: str, rows: pd.DataFrame, parts: str, how: str = "") -> RankedBoard:
    """Build the board of rows of `rubric_board`, best first. `parts`: heading of the number of parts that a score averages."""
    columns = (
        Column("coverage", "Coverage", "number", "Weighted share of the criteria that are met, 0-1"),
        Column("similarity", "Similarity", "number", "Cosine similarity to the ideal answer, -1 to 1"),
        Column("n_scored", parts, "count", more=True),
    )
    board_rows = [
        BoardRow.from_row(row, Estimate.from_row(row, "score", "low", "high"), columns) for row in convert_to_rows(rows)
    ]
    return RankedBoard("", "", measure, board_rows, columns=columns, guide=how)


def describe_best_model(board: RankedBoard) -> str:
    """Describe the best model and the next, or if no model is ranked, the one with the highest score."""
    scored_rows = [row for row in board.rows if not is_unknown(row.score)]
    if board.models or not scored_rows:
        return describe_best_of_models(board)
    best, n_models = scored_rows[0], format_count(len(scored_rows), "model")
    result = f"the best of {n_models} is {best.model}, {show_with_interval(best.score, 'score')}"
    return f"No model is ranked yet; {result} ({best.note})." if best.note else f"No model is ranked yet; {result}."
