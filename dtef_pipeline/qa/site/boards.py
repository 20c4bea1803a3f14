"""The leaderboards of the qa family: one for each suite, condition, metric and `measured_by`, and their summary in a sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.qa.site.qa_labels import format_board_title, format_suite_title, measure_words, scorer_words
from dtef_pipeline.qa.site.suite_scores import BoardKey, QaScores
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
)
_BOARD_MEANING = (
    "A score is the mean over items, with its 95% interval. A response that cannot be read counts 0; a response without a score for "
    "another reason is left out. Each condition and each way of scoring has a board of its own."
)
Boards = dict[BoardKey, RankedBoard]
"""Boards suite by suite, the main one of each first."""


def build_suite_boards(scores: QaScores) -> Boards:
    """Build every board with a score. Boards of suites without scores are left out."""
    frames = {key: frame for key, frame in _select_frames(scores).items() if frame["score"].notna().any()}
    titles = [format_board_title(*key[:3]) for key in frames]
    boards: Boards = {}
    for (key, frame), title in zip(frames.items(), titles, strict=True):
        number = 1 + sum(other.suite == key.suite for other in boards)
        id = scores.suites[key.suite].file + (f"-{number}" if number > 1 else "")
        scorer = f", by {scorer_words(key.measured_by)}" if titles.count(title) > 1 else ""
        boards[key] = _build_ranked_board(frame, id, f"{title}{scorer}", key)
    return boards


def _build_ranked_board(rows: pd.DataFrame, id: str, title: str, key: BoardKey) -> RankedBoard:
    frame = rows.sort_values(["rank", "score", "model"], ascending=[True, False, True], na_position="last", kind="stable")
    names = {"n_items"} | {name for name in ("coverage", "parse_rate") if (frame[name] < 1).any()}
    names |= {"macro"} if (frame["n_clusters"] != frame["n_items"]).any() else set()
    columns = [column for column in _BOARD_COLUMNS if column.name in names]
    words = "; ".join(filter(None, (measure_words(key.metric), *frame["exposure"].head(1))))
    note = f" Answers are scored by {scorer_words(key.measured_by)}." if key.measured_by else ""
    entries = []
    for row in convert_to_rows(frame):
        macro = Estimate.from_row(row, "macro_score", "macro_low", "macro_high")
        values = {**row, "macro": macro, "is_reference": is_computed(row["model_variant"])}
        entries.append(BoardRow.from_row(values, Estimate.from_row(row, "score"), columns))
    return RankedBoard(id, title, words, entries, columns=columns, guide=f"{_BOARD_MEANING}{note}")


def choose_main_keys(boards: Boards) -> dict[str, BoardKey]:
    """Return the key of the main board of each suite."""
    return {key.suite: key for key in reversed(boards)}


def verdict(boards: Boards) -> str:
    """Return `a is best in 3 of 4 suites (MMLU 0.81, ...), ahead of every other model in 2; b is best in HumanEval (0.70).`"""
    main = {suite: boards[key] for suite, key in sorted(choose_main_keys(boards).items())}
    ranked = {suite: board for suite, board in main.items() if board.models}
    if not ranked:
        return "No model is ranked on a suite yet."
    if len(ranked) == 1:
        ((suite, board),) = ranked.items()
        words = describe_best_of_models(board)
        return f"On {format_suite_title(suite)}, {words[:1].lower()}{words[1:]}"
    winners = defaultdict(list)
    for suite, board in ranked.items():
        winners[tuple(row.model for row in board.models if row.rank == board.models[0].rank)].append(suite)
    order = sorted(winners, key=lambda names: -len(winners[names]))
    return "; ".join(_describe_best(names, winners[names], ranked) for names in order) + "."


def _describe_best(names: Sequence[str], suites: Sequence[str], ranked: Mapping[str, RankedBoard]) -> str:
    """Describe the best models of these suites. A rank range of 1 only means that tests separate the model from every other."""
    is_contest = any(ranked[suite].is_contest for suite in suites)
    show_score = show if is_contest else show_with_interval
    scores = {suite: show_score(ranked[suite].models[0].score, "score") for suite in suites}
    numbers = ", ".join(f"{format_suite_title(suite)} {score}" for suite, score in scores.items())
    if not is_contest and len(suites) == len(ranked):
        return f"{names[0]} is the only ranked model: {numbers}"
    share = "all" if len(suites) == len(ranked) else f"{len(suites)} of"
    scope = f"{share} {format_count(len(ranked), 'suite')} ({numbers})"
    if not is_contest:
        return f"{names[0]} is the only ranked model in {scope}"
    if len(names) > 1:
        return f"{' and '.join(names)} share the first place in {scope}"
    ahead = sum(ranked[suite].models[0].rank_high == 1 for suite in suites if ranked[suite].is_contest)
    where = f" in {ahead} of these" if ahead < len(suites) else ""
    lead = f"ahead of every other model{where}" if ahead else "but tests do not separate it from the next"
    return f"{names[0]} is best in {scope}, {lead}"


def describe_unscored(scores: QaScores) -> Iterator[str]:
    """Describe the boards without any score."""
    for key, frame in _select_frames(scores).items():
        if frame["score"].isna().all():
            words = ", ".join(["no score", *dict.fromkeys(filter(None, frame["note"]))])
            yield f"{format_board_title(*key[:3])}: {words}."


def _select_frames(scores: QaScores) -> dict[BoardKey, pd.DataFrame]:
    """Return the rows of each board, the main one of each suite first."""
    overall = scores.select_cut("overall")
    keys = [key for suite in scores.suites.values() for key in suite.keys]
    return {key: frame for key in keys if len(frame := key.select(overall))}
