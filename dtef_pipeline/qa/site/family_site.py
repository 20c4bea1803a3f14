"""The qa family on the site: models ranked in each suite, a page per suite with every item, and comparisons of models."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.qa.score_drift import QA_WATCHED
from dtef_pipeline.qa.site.boards import (
    SuiteBoard,
    build_suite_boards,
    choose_main_boards,
    describe_unscored,
    format_board_title,
    verdict,
)
from dtef_pipeline.qa.site.explorer import build_explorer_files, compute_kept_share
from dtef_pipeline.qa.site.model_sections import QaModelSections
from dtef_pipeline.qa.site.qa_labels import (
    describe_watched_setting,
    format_part_title,
    format_qa_condition,
    format_suite_title,
    partition_words,
    ranked_metric_words,
)
from dtef_pipeline.qa.site.suite_page import build_item_address, build_suites_section, suite_page
from dtef_pipeline.qa.site.suite_scores import QaScores, SuiteScores
from dtef_pipeline.qa.site.validity_sections import build_pass_section, build_validity_section
from dtef_pipeline.qa.tables import QA_TABLES
from dtef_pipeline.site.content import Column, DataFile, Link, Page, Prose, Section, Table, convert_to_rows
from dtef_pipeline.site.family_content import ITEM_COLUMNS, FamilyContent, FamilySite
from dtef_pipeline.text.number_words import format_count

_QA_METHOD = (
    "Each response to an item is read by the scorer of its type: a letter or an option, a number, the tests of a program, the words of a metric "
    "with their weights, or quotations that are looked up in the passages. A score is 0-1, higher is better. A response that cannot be read "
    "counts 0; one without a score for another reason (a failed call, judge or sandbox) is left out of every mean and counted.",
    "The score of a model is the mean over items of the mean over its draws, `mean_i(mean_d(s_id))`. Its 95% interval treats subjects or "
    "transcripts as independent; with fewer than 5 of them it treats items so. The mean of groups is the mean over subjects or transcripts.",
    "A model needs scores on 90 % of the items to be ranked. Every two models are compared by the t test of the paired differences of "
    "cluster means, adjusted over all pairs of a board (Holm); the range of ranks counts those that are significantly better or worse.",
    "`pass@k = mean_i(1 - C(n_i - c_i, k) / C(n_i, k))` for n draws of an item of which c pass; items with fewer than k draws are left out.",
    "Each part counts with its latest snapshot in which at least half of its items have a score. Another setting, metric, judge or "
    "version has a board of its own and is never averaged with this one.",
)
_FINDINGS = (
    Column("where", "Part"),
    Column("level", "Level"),
    Column("text", "What was found", "long"),
    Column("file", "File", "code"),
    Column("line", "Line", "count", more=True),
    Column("item_id", "Item", more=True),
    Column("allowed", "Allowed", "long", more=True),
)
_SHOWN_FINDINGS = 500


def read(connection: duckdb.DuckDBPyConnection) -> FamilyContent:
    """Read the family's pages. `connection` has `qa_scores` and optionally the family's other tables."""
    scores = QaScores(connection)
    boards = build_suite_boards(scores)
    main = choose_main_boards(boards)
    missing = list(describe_unscored(scores))
    return FamilyContent(
        verdict(boards)
        if len(scores.board)
        else "Answers are scored, but there is no board yet. Run `dtef qa board --refresh` to make it.",
        [board.board for board in boards],
        sections=[
            build_suites_section(scores.suites, main),
            build_pass_section(scores),
            build_validity_section(scores),
            Section("unscored", "Without a score", [Prose(missing)]),
        ],
        build_model_sections=QaModelSections(scores, main).build_model_sections,
        item_scores=item_scores(scores),
        pages=lambda: _build_pages(scores, boards),
        data=[_build_items_section(scores), _build_findings_section(scores)],
        method=_QA_METHOD,
        setting_text=format_board_title,
        variants={name: variant for variant, name in scores.names.items()},
    )


def _build_pages(scores: QaScores, boards: list[SuiteBoard]) -> Iterator[Page | DataFile]:
    share = compute_kept_share(scores)
    for name, suite in scores.suites.items():
        yield suite_page(scores, suite, [board for board in boards if board.suite == name], share)
        yield from build_explorer_files(scores, suite, share)


def item_scores(scores: QaScores) -> pd.DataFrame:
    """Return every score of each suite's main measure, with ITEM_COLUMNS."""
    frames = [_build_suite_items(scores, suite) for suite in scores.suites.values() if suite.scores]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(ITEM_COLUMNS))


def _build_suite_items(scores: QaScores, suite: SuiteScores) -> pd.DataFrame:
    grid = suite.main
    model, item = np.nonzero(~np.isnan(grid))
    ids = [str(item_id) for item_id in suite.items["item_id"]]
    texts = {
        "item": [f"{suite.suite}/{part}/{item_id}" for part, item_id in zip(suite.items["part"], ids, strict=True)],
        "label": [f"{format_suite_title(suite.suite)}: {line}" for line in suite.lines],
        "page": [build_item_address(suite, item_id) for item_id in ids],
    }
    names = np.array([scores.names[variant] for variant in suite.models], dtype=object)
    columns = {name: np.array(values, dtype=object)[item] for name, values in texts.items()}
    return pd.DataFrame({"model": names[model], **columns, "score": grid[model, item]})


def _build_items_section(scores: QaScores) -> Section:
    """Build the list of suites and parts, with whether their answers are public."""
    columns = (
        Column("suite", "Suite"),
        Column("parts", "Parts", "count", always=True),
        Column("items", "Items", "count", always=True),
        Column("models", "Models", "count", always=True),
        Column("exposure", "Exposure", "long"),
    )
    overall = scores.overall
    exposure = dict(zip(overall["suite"], overall["exposure"], strict=True)) if len(overall) else {}
    rows = [
        {
            "suite": Link(format_suite_title(name), suite.page),
            "parts": suite.items["part"].nunique(),
            "items": len(suite.items),
            "models": len(suite.models),
            "exposure": exposure.get(name, ""),
        }
        for name, suite in scores.suites.items()
    ]
    n_exposed = sum(bool(row["exposure"]) for row in rows)
    answer = f"{format_count(sum(row['items'] for row in rows), 'item')} in {format_count(len(rows), 'suite')}."
    note = f" Answers of {n_exposed} may be in training data." if n_exposed else ""
    return Section(
        "items", "what was asked", [Table("Suites, and whether their answers are public", columns, rows)], answer + note
    )


def _build_findings_section(scores: QaScores) -> Section:
    """Build the list of rows that were left out, and of warnings."""
    findings = scores.rows.frame("qa_findings")
    if not len(findings):
        return Section("findings", "rows set aside", [])
    frame = findings.sort_values(["level", "suite", "part", "file", "line"], kind="stable")
    errors = int((findings["level"] == "error").sum())
    rows = [
        {**row, "where": f"{format_suite_title(str(row['suite']))}, {format_part_title(str(row['part']))}"}
        for row in convert_to_rows(frame.head(_SHOWN_FINDINGS))
    ]
    answer = f"{format_count(errors, 'row')} of files left out, {format_count(len(findings) - errors, 'warning')}."
    note = "" if len(findings) <= _SHOWN_FINDINGS else f" The first {_SHOWN_FINDINGS} are shown; the table qa_findings has all."
    return Section("findings", "rows set aside", [Table("Findings, errors first", _FINDINGS, rows, first=10)], answer + note)


QA_SITE = FamilySite(
    "qa",
    "Questions",
    tuple(QA_TABLES),
    "qa_scores",
    read,
    QA_WATCHED,
    partition_words=partition_words,
    metric_words=ranked_metric_words,
    describe_asking=lambda level, condition: format_qa_condition(condition),
    describe_watched_setting=describe_watched_setting,
    responses="qa_responses",
)
