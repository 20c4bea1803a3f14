"""The leaderboards of surveys, models ranked among models, with the verdict on the first; and the sections below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.boards.comparisons import rank_ranges
from dtef_pipeline.boards.pairs import AMONG_MODELS, BETTER, OF_REFERENCE, WORSE
from dtef_pipeline.site.content import Block, Column, Estimate, Fold, Section, Table, convert_to_rows, is_unknown
from dtef_pipeline.site.family_content import BoardRow, RankedBoard, Reference
from dtef_pipeline.site.leaderboard import describe_best_of_models
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.blueprint.wording import format_attribute
from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS, CONSISTENCY, RESPONSIVENESS
from dtef_pipeline.survey.boards.survey_subject import SCORED
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.site.contents import GUIDES, SENTENCES, SurveyContents
from dtef_pipeline.survey.site.survey_labels import A_PERFECT_MODEL, METRIC_NAMES, describe_baseline, format_condition
from dtef_pipeline.survey.tables import CORRECTED, DISTANCES, METRICS
from dtef_pipeline.tables import description

PERFECT_LINE = f"A {A_PERFECT_MODEL}"
SURVEY_MEASURE = "Similarity of predicted and observed answers, 0-1, higher is better"
_COLUMNS = (
    Column("skill", "Skill", "number", BOARD_COLUMNS["skill"]),
    Column("adjusted_score", "Ranked by", "score", BOARD_COLUMNS["adjusted_score"], more=True),
    Column("worth", "Worth", "number", BOARD_COLUMNS["worth"], more=True),
    Column("n_pairs", "Pairs", "count", BOARD_COLUMNS["n_pairs"], more=True),
    Column("parse_rate", "Read", "percent", BOARD_COLUMNS["parse_rate"], more=True),
)


def build_ranked_boards(contents: SurveyContents) -> Iterator[RankedBoard]:
    """Yield a board for each setting, first that of the front page."""
    guide = write_sentence(GUIDES, "board", ranked_from=SCORED.ranked_from)
    for index, setting in enumerate(contents.settings):
        rows = _add_ranks(setting.select_rows(contents.board("overall")), setting.select_rows(contents.board("comparisons")))
        ceiling = rows["ceiling"].median() if "ceiling" in rows else np.nan
        lines = [] if is_unknown(ceiling) else [Reference(PERFECT_LINE, float(ceiling))]
        marginals = rows.loc[(rows["model"] == LEAVE_ONE_OUT) & rows["score"].notna(), ["name", "score"]]
        lines += [Reference(name, float(score)) for name, score in marginals.itertuples(index=False, name=None)]
        title = contents.title(setting) if len(contents.settings) > 1 else ""
        board = []
        for row in convert_to_rows(rows):
            note = row.get("note") or describe_baseline(row["model"])
            values = {**row, "skill": Estimate.from_row(row, "skill"), "note": note}
            board.append(BoardRow.from_row(values, Estimate.from_row(row, "score"), _COLUMNS, "name"))
        yield RankedBoard(str(index) if index else "", title, SURVEY_MEASURE, board, lines, _COLUMNS, guide)


def _add_ranks(rows: pd.DataFrame, comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `rank`, `rank_low` and `rank_high` among models only, best first; baselines have none."""
    models = rows[~rows["is_reference"] & rows["rank"].notna()]
    values = models["adjusted_score"] if "adjusted_score" in models else models["score"]
    models = models.assign(rank=rank_numbers(values))
    ranks = models[["rank"]].copy()
    if len(comparisons):
        tests = comparisons[comparisons["adjusted_over"] == AMONG_MODELS]
        ranks = ranks.join(rank_ranges(models, tests, KEYS))
    ranked_rows = rows.drop(columns=["rank", "rank_low", "rank_high"], errors="ignore").join(ranks)
    by_score = ranked_rows["rank"].fillna(np.inf) if len(models) else -ranked_rows["score"]
    order = np.lexsort((ranked_rows["name"].astype(str), -ranked_rows["score"].fillna(-1), by_score))
    return ranked_rows.iloc[order]


def verdict(contents: SurveyContents, board: RankedBoard) -> str:
    """Return whether models beat the leave-one-out marginal, by the tested comparisons of the first board.

    `No model beats the leave-one-out marginal (the average answer of the other groups): the best of 3 models, gpt-4.1, scores 0.768
    against 0.821 on the pairs that both have; a perfect model would score 0.867 on all pairs.`
    """
    models, tests = [row.model for row in board.models], _compare_with_marginal(contents)
    if not models or models[0] not in tests:
        return describe_best_of_models(board)
    return write_sentence(
        SENTENCES,
        "verdict",
        best=models[0],
        n_models=len(models),
        n_beating=sum(tests[model]["verdict"] == BETTER for model in models if model in tests),
        test=tests[models[0]],
        ceiling=next((line.value for line in board.references if line.label == PERFECT_LINE), None),
    )


def _compare_with_marginal(contents: SurveyContents) -> dict[str, dict[str, Any]]:
    """Return each model's test in the setting of the first leaderboard, by name: `verdict`, and `score` and `marginal` on shared pairs."""
    rows = contents.settings[0].select_rows(contents.board("comparisons"))
    tests: dict[str, dict[str, Any]] = {}
    for row in convert_to_rows(rows[rows["adjusted_over"] == OF_REFERENCE]) if len(rows) else []:
        if row["model_variant"] != LEAVE_ONE_OUT:
            tests[row["name"]] = {"verdict": row["verdict"], "score": row["score"], "marginal": row["other_score"]}
        else:
            words = WORSE if row["verdict"] == BETTER else row["verdict"]
            name = contents.names.get(row["other_variant"], row["other_model"])
            tests[name] = {"verdict": words, "score": row["other_score"], "marginal": row["score"]}
    return tests


_MODEL = Column("name", "Model", "model")


def board_sections(contents: SurveyContents) -> Iterator[Section]:
    """Yield the sections in order."""
    for board, build in (
        ("attribute", _build_attributes_section),
        ("context", _build_context_section),
        ("metric", _build_metrics_section),
        ("consistency", _build_evenness_section),
    ):
        if len(rows := contents.board(board)):
            yield build(contents, rows)


def build_model_tables(
    contents: SurveyContents,
    board: pd.DataFrame,
    caption: str,
    columns: Sequence[Column],
    sort_by: str = "score",
    **formatters: Callable[[Any], Any],
) -> list[Block]:
    """Return a table of models for each setting of a board; all but the first are folded. Baselines are shown on demand.

    `formatters`: by column, the function that formats its values.
    """
    blocks: list[Block] = []
    for setting in contents.settings:
        frame = setting.select_rows(board)
        if not len(frame):
            continue
        frame = frame.sort_values([sort_by, "name"], ascending=[sort_by != "score", True], kind="stable")
        kinds = frame["is_reference"].map({True: "reference", False: "model"})
        rows = convert_to_rows(frame.assign(_kind=kinds), **formatters)
        table = Table(f"{caption}, {contents.title(setting).lower()}", columns, rows)
        blocks.append(Fold(contents.title(setting), [table]) if blocks else table)
    return blocks


def _build_attributes_section(contents: SurveyContents, board: pd.DataFrame) -> Section:
    scored = board[board["score"].notna()]
    if not len(scored):
        return Section("attributes", "By attribute", [])
    values = [name for name in ("score", "score_low", "score_high") if name in board]
    series = ["model_variant", "name", "is_reference", "context_level", "condition"]
    wide = scored.pivot_table(index=series, columns="attribute", values=values, observed=True, sort=False)
    wide.columns = wide.columns.map(" ".join)
    means = scored.groupby(series, observed=True)["score"].mean()
    columns = [_MODEL]
    for place, name in enumerate(sorted({*board["attribute"]})):
        ends = (f"score_low {name}", f"score_high {name}")
        columns.append(Column(f"score {name}", format_attribute(name), "score", more=place > 4, ends=ends))
    caption = "Mean score by attribute, with 95% intervals where there are any"
    tables = build_model_tables(contents, wide.assign(score=means).reset_index(), caption, columns)
    models = contents.select_models("attribute").groupby("attribute", observed=True)["score"].mean().dropna()
    by_attribute = [(format_attribute(str(name)), score) for name, score in models.sort_values(ascending=False).items()]
    answer = write_sentence(SENTENCES, "attributes", means=by_attribute)
    return Section("attributes", "By attribute", tables, answer, write_sentence(GUIDES, "attributes"))


_CONTEXT_COLUMNS = (
    _MODEL,
    Column("verdict", "Verdict", always=True),
    Column("difference", "Difference", "signed", description(RESPONSIVENESS.field("difference")), ends=("low", "high")),
    Column("score_at_lowest_context", "Least context", "score"),
    Column("score_at_highest_context", "Most context", "score"),
    Column("condition", "Condition"),
    Column("levels", "Levels", meaning=description(RESPONSIVENESS.field("levels")), more=True),
    Column("p_adjusted", "p (adjusted)", "p", description(RESPONSIVENESS.field("p_adjusted")), more=True),
    Column("note", "Note", "note"),
)


def _build_context_section(_: SurveyContents, board: pd.DataFrame) -> Section:
    rows = convert_to_rows(board[~board["is_reference"]], condition=format_condition)
    table = Table("Responsiveness to context", _CONTEXT_COLUMNS, rows)
    answer = write_sentence(SENTENCES, "context", verdicts=Counter(row["verdict"] for row in rows))
    return Section("context", "What context does", [table], answer, write_sentence(GUIDES, "context", margin=MARGIN))


def _build_metrics_section(contents: SurveyContents, board: pd.DataFrame) -> Section:
    names = {name: f"1 - {METRIC_NAMES[name].lower()}" if name in DISTANCES else METRIC_NAMES[name] for name in METRICS}
    columns = [Column(name, title, "score", more=place > 3) for place, (name, title) in enumerate(names.items())]
    columns += [Column(name, METRIC_NAMES[name], "score", "Corrected error: lower is better", more=True) for name in CORRECTED]
    rows = contents.select_models("metric")
    firsts = Counter(rows["name"].iloc[rows[name].argmax()] for name in METRICS if len(rows) > 1 and rows[name].notna().any())
    answer = write_sentence(SENTENCES, "metrics", firsts=firsts)
    guide = write_sentence(GUIDES, "metrics", distances=[names[name] for name in DISTANCES])
    tables = build_model_tables(contents, board, "Mean score under each metric", [_MODEL, *columns])
    return Section("metrics", "Other metrics", tables, answer, guide)


_EVENNESS_COLUMNS = (
    _MODEL,
    Column("segment_sd_true", "Spread", "score", CONSISTENCY["segment_sd_true"], ends=("segment_sd_low", "segment_sd_high")),
    Column("lowest_segment", "Lowest"),
    Column("lowest", "Its score", "score"),
    Column("highest_segment", "Highest"),
    Column("highest", "Its score", "score"),
    Column("segment_p", "p", "p", CONSISTENCY["segment_p"], more=True),
    Column("n_segments", "Segments", "count", CONSISTENCY["n_segments"], more=True),
    Column("consistency_note", "Note", "note"),
)


def _build_evenness_section(contents: SurveyContents, board: pd.DataFrame) -> Section:
    if "segment_sd_true" not in board:  # boards without intervals
        return Section("evenness", "Consistency over segments", [])
    links = {segment.segment: segment.link for segment in contents.segments}
    models = contents.select_models("consistency").dropna(subset="segment_sd_true").sort_values("segment_sd_true")
    spreads = {"names": list(models["name"]), "spreads": list(models["segment_sd_true"])}
    answer = write_sentence(SENTENCES, "evenness", **spreads)
    tables = build_model_tables(
        contents,
        board,
        "Spread of the segments' mean scores, the most even first",
        _EVENNESS_COLUMNS,
        sort_by="segment_sd_true",
        lowest_segment=lambda id: links.get(id, id),
        highest_segment=lambda id: links.get(id, id),
    )
    return Section("evenness", "Consistency over segments", tables, answer, write_sentence(GUIDES, "evenness"))
