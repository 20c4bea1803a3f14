"""The shared data of all pages of rubrics: blueprints, the shown run of each, boards and their best model, and addresses of pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.report.row_reader import StoredRow, StoredRows
from dtef_pipeline.rubric.results.blueprint_run import find_shown_runs, list_snapshots_in_order, load_model_scores
from dtef_pipeline.rubric.tables import RUBRIC_BOARD
from dtef_pipeline.site.content import Column, Estimate, Link, is_unknown
from dtef_pipeline.site.family_content import BoardRow, RankedBoard
from dtef_pipeline.site.number_text import show, show_with_interval
from dtef_pipeline.site.paths import address_id, choose_file_names
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.shortening import shorten_to_line

_ABOUT_COLUMNS = (
    *("blueprint", "title", "description", "tags", "references", "path"),
    *("n_prompts", "n_criteria", "n_errors"),
)
_LONGEST_PROMPT = 140
_JUDGE_NAME = re.compile(r"([a-z-]+)\((.*)\)(?:\[scale:(\d+)\])?\Z")


class RubricRows:
    """The tables of rubrics. A missing table has no rows."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.rows = StoredRows(connection)
        self.order = list_snapshots_in_order(self.rows)
        self.scores = load_model_scores(self.rows)
        """Scores of whole models, in all runs."""
        self.runs = find_shown_runs(self.rows, self.scores, self.order)
        """The snapshot of each blueprint that is shown: the latest with a score."""

    @cached_property
    def about(self) -> dict[str, StoredRow]:
        """The facts about each blueprint that was read or run, by id."""
        read = {str(row["blueprint"]): row for row in self.rows.rows("rubric_blueprints", _ABOUT_COLUMNS, {})}
        return {name: read.get(name, dict.fromkeys(_ABOUT_COLUMNS)) for name in sorted({*read, *self.runs})}

    @cached_property
    def files(self) -> dict[str, str]:
        """The file name of each blueprint's page, without its ending."""
        return choose_file_names(self.about)

    @cached_property
    def _tag_files(self) -> dict[str, str]:
        return choose_file_names(self.tags)

    @cached_property
    def tags(self) -> dict[str, list[str]]:
        """The blueprints of each tag."""
        by_tag: dict[str, list[str]] = {}
        for blueprint, row in self.about.items():
            for tag in row["tags"] or ():
                by_tag.setdefault(str(tag), []).append(blueprint)
        return {tag: list(dict.fromkeys(by_tag[tag])) for tag in sorted(by_tag)}

    def title(self, blueprint: str) -> str:
        """Return the title of a blueprint in its file, else its id."""
        return str(self.about[blueprint]["title"] or blueprint)

    def page(self, blueprint: str) -> str:
        """Return the path of a blueprint's page."""
        return f"rubric/blueprints/{self.files[blueprint]}.html"

    def link(self, blueprint: str) -> Link:
        """Return a link to a blueprint's page with its title."""
        return Link(self.title(blueprint), self.page(blueprint))

    def tag_link(self, tag: str) -> Link:
        """Return a link to a tag's page."""
        return Link(tag, f"rubric/tags/{self._tag_files[tag]}.html")

    def cut(self, name: str) -> pd.DataFrame:
        """Return the rows of one cut of the board: overall, tag, blueprint, prompt or criterion."""
        return self._cuts.get(name, self._nothing)

    def select_part_rows(self, cut: str, value: str) -> pd.DataFrame:
        """Return the rows of one tag or blueprint, from the cut of that name."""
        rows = self.cut(cut)
        return rows[rows[cut] == value]

    @cached_property
    def _cuts(self) -> dict[Any, pd.DataFrame]:
        board_rows = self.rows.frame("rubric_board")
        return dict(list(board_rows.groupby("cut"))) if len(board_rows) else {}

    @cached_property
    def _nothing(self) -> pd.DataFrame:
        return pd.DataFrame(columns=RUBRIC_BOARD.names)

    @cached_property
    def prompts(self) -> dict[tuple[str, str], tuple[int, str]]:
        """The number from 1 and the text of each prompt, by (blueprint, prompt)."""
        rows = self.rows.rows(
            "rubric_prompts", ("blueprint", "prompt", "position", "messages"), {}, ("blueprint", "position", "prompt")
        )
        entries: dict[tuple[str, str], tuple[int, str]] = {}
        counts: dict[str, int] = {}
        for row in rows:
            counts[row["blueprint"]] = counts.get(row["blueprint"], 0) + 1
            entries[row["blueprint"], row["prompt"]] = (
                counts[row["blueprint"]],
                prompt_words(row["messages"]) or str(row["prompt"]),
            )
        return entries

    def build_prompt_address(self, blueprint: str, prompt: str) -> str:
        """Return the address of a prompt on its blueprint's page."""
        exists = (blueprint, prompt) in self.prompts
        return f"{self.page(blueprint)}#prompt-{address_id(prompt)}" if exists else self.page(blueprint)


def prompt_words(messages: Sequence[Any] | None) -> str:
    """Return the beginning of the first user message on one line."""
    texts = [message["text"] for message in messages or () if message["role"] == "user" and message["text"]]
    return shorten_to_line(str(texts[0]), _LONGEST_PROMPT) if texts else ""


def judge_words(judge: str) -> str:
    """Format a judge, or a pair, for people: `prompt-aware(gpt-4.1)` becomes `gpt-4.1 (prompt-aware)`."""
    if " x " in judge and all(_JUDGE_NAME.match(name) for name in judge.split(" x ")):
        return " and ".join(map(judge_words, judge.split(" x ")))
    match = _JUDGE_NAME.match(judge)
    return f"{match[2]} ({match[1]}{f', {match[3]} classes' if match[3] else ''})" if match else judge


def build_ranked_board(measure: str, rows: Iterable[Mapping[str, Any]], parts: str, how: str = "") -> RankedBoard:
    """Return the board of rows of `rubric_board`, best first. `parts`: heading of the parts that a score averages."""
    columns = (
        Column("coverage", "Coverage", "number", "Weighted share of the criteria that are met, 0-1"),
        Column("similarity", "Similarity", "number", "Cosine similarity to the ideal answer, -1 to 1"),
        Column("n_scored", parts, "count", more=True),
        Column("n_responses_scored", "Responses", "count", "Responses with a score", more=True),
    )
    board_rows = [BoardRow.from_row(row, Estimate.from_row(row, "score", "low", "high"), columns) for row in rows]
    return RankedBoard("", "", measure, board_rows, columns=columns, guide=how)


def describe_best_model(board: RankedBoard) -> str:
    """Return `amber scores best of 24 models: 0.81 (0.78 to 0.84); their mean is 0.62.`, ranked or not."""
    scored_rows = [row for row in board.rows if not is_unknown(row.score)]
    if not scored_rows:
        return "No model has a score yet."
    best, numbers = scored_rows[0], show_with_interval(scored_rows[0].score, "score")
    if len(scored_rows) == 1:
        return f"{best.model}, the only model, scores {numbers}."
    mean = sum(float(row.score.value or 0.0) for row in scored_rows) / len(scored_rows)
    return f"{best.model} scores best of {format_count(len(scored_rows), 'model')}: {numbers}; their mean is {show(mean, 'score')}."
