"""The leaderboards of the qa family: one for each suite, condition, metric and `measured_by`, and their summary in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.qa.site.qa_labels import (
    format_metric,
    format_qa_condition,
    format_suite_title,
    measure_words,
    rank_metric,
    scorer_words,
)
from dtef_pipeline.qa.site.suite_scores import BoardMeasure, QaScores
from dtef_pipeline.site.content import Column, Estimate, convert_to_rows
from dtef_pipeline.site.family_content import BoardRow, RankedBoard
from dtef_pipeline.site.leaderboard import describe_best_of_models
from dtef_pipeline.site.number_text import show, show_with_interval
from dtef_pipeline.text.number_words import format_count

_BOARD_COLUMNS = (
    Column("n_items", "Items", "count", "Items with a scored response", always=True),
    Column("coverage", "Coverage", "percent", "Share of the items that were to be scored that the model has a score for"),
    Column("parse_rate", "Read", "percent", "Share of the scored responses that could be read"),
    Column("macro", "Mean of groups", "score", "Mean over subjects or transcripts of their means over items", more=True),
    Column("score_given_parsed", "Of those read", "score", "Mean over items of the responses that could be read", more=True),
    Column("n_failed", "Without a score", "count", "Responses for which a judge, a sandbox or a call failed", more=True),
    Column("n_uncited", "Cite nothing", "count", "Responses without a quotation, and so without a score", more=True),
    Column("n_skipped", "Not judged", "count", "Responses that are not in the sample, or over the budget", more=True),
    Column("n_sampled_out", "Left out", "count", "Items that the random sample of judged responses leaves out", more=True),
)
_BOARD_MEANING = (
    "A score is the mean over items, with its 95% interval. A response that cannot be read counts 0; a response without a score for "
    "another reason is left out. Each condition and each way of scoring has a board of its own."
)


@dataclass(frozen=True)
class SuiteBoard:
    """A leaderboard with its key."""

    suite: str
    measure: BoardMeasure
    board: RankedBoard

    def filter_alike(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of `qa_board` that are measured alike."""
        mask = frame["suite"] == self.suite
        for name, value in self.measure._asdict().items():
            mask &= frame[name] == value
        return frame[mask]


def build_suite_boards(scores: QaScores) -> list[SuiteBoard]:
    """Build every board with a score, suite by suite, the main one of each first. Boards of suites without scores are left out."""
    if not len(scores.board):
        return []
    overall = scores.board[(scores.board["cut"] == "overall") & scores.board["suite"].astype(str).isin(list(scores.suites))]
    boards = []
    for suite, group in overall.groupby("suite", sort=True):
        groups = [(key, rows) for key, rows in _group_by_measure(group) if rows["score"].notna().any()]
        groups.sort(key=lambda pair: (rank_metric(pair[0].metric), -pair[1]["rank"].notna().sum(), pair[0]))
        titles = [_format_title(str(suite), key) for key, _ in groups]
        for i, (key, rows) in enumerate(groups):
            title = titles[i] if titles.count(titles[i]) == 1 else f"{titles[i]}, by {scorer_words(key.measured_by)}"
            name = scores.suites[str(suite)].file
            board = _build_ranked_board(rows, f"{name}-{i + 1}" if i else name, title, key)
            boards.append(SuiteBoard(str(suite), key, board))
    return boards


def _group_by_measure(rows: pd.DataFrame) -> Iterator[tuple[BoardMeasure, pd.DataFrame]]:
    for key, group in rows.groupby(list(BoardMeasure._fields), sort=True):
        yield BoardMeasure(*map(str, key)), group


def format_board_title(row: Mapping[str, Any]) -> str:
    """Return the title of the board of a row of `comparisons`."""
    return _format_condition_title(str(row["first_level"]), str(row["condition"]), str(row["metric"]))


def _format_title(suite: str, measure: BoardMeasure) -> str:
    return _format_condition_title(suite, measure.condition, measure.metric)


def _format_condition_title(suite: str, condition: str, metric: str) -> str:
    label = format_qa_condition(condition)
    suffix = "" if metric in ("correct", "passed", "score") else f": {format_metric(metric)}"
    return f"{format_suite_title(suite)}{', ' if label else ''}{label}{suffix}"


def _build_ranked_board(rows: pd.DataFrame, id: str, title: str, key: BoardMeasure) -> RankedBoard:
    frame = rows.sort_values(["rank", "score", "model"], ascending=[True, False, True], na_position="last", kind="stable")
    exposure = next((words for words in frame["exposure"] if words), "")
    measure = f"{measure_words(key.metric)}{'; ' if exposure else ''}{exposure}"
    note = f"{_BOARD_MEANING} Answers are scored by {scorer_words(key.measured_by)}." if key.measured_by else _BOARD_MEANING
    records = convert_to_rows(frame)
    columns = [column for column in _BOARD_COLUMNS if _is_informative(column.name, frame)]
    return RankedBoard(id, title, measure, [_build_row(record, columns) for record in records], columns=columns, guide=note)


def _is_informative(name: str, rows: pd.DataFrame) -> bool:
    """Return whether a column has more than counts of 0, shares of 1, or means over groups of one item."""
    if name == "macro":
        return bool((rows["n_clusters"] != rows["n_items"]).any())
    if name in ("coverage", "parse_rate"):
        return bool((rows[name] < 1).any())
    if name == "score_given_parsed":
        return bool((rows["parse_rate"] < 1).any())
    return name == "n_items" or bool(rows[name].fillna(0).any())


def _build_row(row: Mapping[str, Any], columns: Sequence[Column]) -> BoardRow:
    macro = Estimate.from_row(row, "macro_score", "macro_low", "macro_high")
    values = {**row, "macro": macro, "is_reference": is_computed(row["model_variant"])}
    return BoardRow.from_row(values, Estimate.from_row(row, "score"), columns)


def choose_main_boards(boards: Sequence[SuiteBoard]) -> dict[str, SuiteBoard]:
    """Return the main board of each suite."""
    return {board.suite: board for board in reversed(boards)}


def verdict(boards: Sequence[SuiteBoard]) -> str:
    """Return `a is best in 3 of 4 suites (MMLU 0.81, ...), ahead of every other model in 2; b is best in HumanEval (0.70).`"""
    ranked = {suite: entry.board for suite, entry in sorted(choose_main_boards(boards).items()) if entry.board.models}
    if not ranked:
        return "No model is ranked on a suite yet."
    models = {row.model for board in ranked.values() for row in board.models}
    if len(models) == 1:
        numbers = "; ".join(
            f"{format_suite_title(suite)} {show_with_interval(board.models[0].score, 'score')}"
            for suite, board in ranked.items()
        )
        return f"{models.pop()} is the only model: {numbers}."
    if len(ranked) == 1:
        ((suite, board),) = ranked.items()
        words = describe_best_of_models(board)
        return f"On {format_suite_title(suite)}, {words[:1].lower()}{words[1:]}"
    firsts: dict[tuple[str, ...], list[str]] = {}
    for suite, board in ranked.items():
        firsts.setdefault(tuple(row.model for row in board.models if row.rank == board.models[0].rank), []).append(suite)
    order = sorted(firsts, key=lambda names: -len(firsts[names]))
    return "; ".join(_describe_best(names, firsts[names], ranked) for names in order) + "."


def _describe_best(names: Sequence[str], suites: Sequence[str], ranked: Mapping[str, RankedBoard]) -> str:
    """Describe the best models of these suites. A rank range of 1 only means that tests separate the model from every other."""
    numbers = ", ".join(f"{format_suite_title(suite)} {show(ranked[suite].models[0].score, 'score')}" for suite in suites)
    suites_words = format_count(len(ranked), "suite")
    scope = f"all {suites_words}" if len(suites) == len(ranked) else f"{len(suites)} of {suites_words}"
    if len(names) > 1:
        return f"{' and '.join(names)} share the first place in {scope} ({numbers})"
    ahead = sum(ranked[suite].models[0].rank_high == 1 for suite in suites if len(ranked[suite].models) > 1)
    lead = ", but tests do not separate it from the next" if not ahead else ", ahead of every other model"
    where = "" if ahead in (0, len(suites)) else f" in {ahead} of these"
    return f"{names[0]} is best in {scope} ({numbers}){lead}{where}"


def describe_unscored(scores: QaScores) -> Iterator[str]:
    """Describe the boards without any score."""
    overall = scores.overall
    for suite, group in overall.groupby("suite", sort=True) if len(overall) else ():
        for key, rows in _group_by_measure(group):
            if rows["score"].isna().all():
                notes = "; ".join(dict.fromkeys(filter(None, rows["note"])))
                yield f"{_format_title(str(suite), key)}: no score{', ' if notes else ''}{notes}."
