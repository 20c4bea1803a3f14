"""The sections below the leaderboards: attributes, context, metrics and evenness, with their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import Block, Column, Fold, Section, Table, convert_to_rows
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.survey.blueprint.wording import format_attribute
from dtef_pipeline.survey.boards.schemas import CONSISTENCY, RESPONSIVENESS
from dtef_pipeline.survey.site.contents import GUIDES, SENTENCES, SurveyContents
from dtef_pipeline.survey.site.survey_labels import METRIC_NAMES, format_condition
from dtef_pipeline.survey.tables import CORRECTED, DISTANCES, METRICS
from dtef_pipeline.tables import description

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
    totals = wide["score"].mean(axis=1)
    wide.columns = [f"{value} {attribute}" for value, attribute in wide.columns]
    columns = [_MODEL]
    for place, name in enumerate(sorted({*board["attribute"]})):
        ends = (f"score_low {name}", f"score_high {name}")
        columns.append(Column(f"score {name}", format_attribute(name), "score", more=place > 4, ends=ends))
    caption = "Mean score by attribute, with 95% intervals where there are any"
    tables = build_model_tables(contents, wide.assign(score=totals).reset_index(), caption, columns)
    models = contents.select_models("attribute").groupby("attribute", observed=True)["score"].mean()
    means = [(format_attribute(str(name)), score) for name, score in models.sort_values(ascending=False).items()]
    answer = write_sentence(SENTENCES, "attributes", means=means)
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
    firsts = Counter(rows.loc[rows[name].idxmax(), "name"] for name in METRICS if len(rows) > 1 and rows[name].notna().any())
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
