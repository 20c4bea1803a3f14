"""The qa family on the site: models ranked in each suite, a page per suite with every item, and comparisons of models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb

from dtef_pipeline.qa.score_drift import QA_WATCHED
from dtef_pipeline.qa.site.boards import Boards, build_suite_boards, choose_main_keys, describe_unscored, verdict
from dtef_pipeline.qa.site.explorer import build_explorer_files, compute_kept_share
from dtef_pipeline.qa.site.model_sections import prepare_model_sections
from dtef_pipeline.qa.site.qa_labels import (
    CHECK_WORDS,
    describe_watched_setting,
    format_board_title,
    format_qa_condition,
    partition_words,
    ranked_metric_words,
)
from dtef_pipeline.qa.site.suite_page import suite_page
from dtef_pipeline.qa.site.suite_scores import QaScores
from dtef_pipeline.qa.tables import QA_TABLES
from dtef_pipeline.site.content import Column, DataFile, Estimate, Page, Prose, Section, Table, convert_to_rows
from dtef_pipeline.site.family_content import ITEM_COLUMNS, FamilyContent, FamilySite
from dtef_pipeline.site.number_text import show
from dtef_pipeline.text.number_words import format_count, list_first_names

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
    Column("allowed", "Allowed", "long", more=True),
)
_SUITE_COLUMNS = (
    Column("suite", "Suite"),
    Column("parts", "Parts", "count", always=True),
    Column("items", "Items", "count", always=True),
    Column("models", "Models", "count", always=True),
    Column("best", "Best model", "model"),
    Column("score", "Its score", "score"),
    Column("exposure", "Exposure", "long"),
)
_VALIDITY_HOW = (
    "Order of the options: how far a model's mean moves when the options are shown in another order. Judge against the number: how often a "
    "judge and the number in the answer disagree. Same maker: judgements by a model of the maker of the judged one. Length: the rank "
    "correlation of a judge's score with the length of the answer."
)
_VALIDITY_COLUMNS = (
    Column("check", "Check"),
    Column("suite", "Suite"),
    Column("model", "Model", "model"),
    Column("value", "Value", "number", "A range of means, a share, or a rank correlation", ends=("low", "high")),
    Column("is_suspect", "Look into it", always=True),
    Column("n", "Rests on", "count", "Items, judgements or responses", more=True),
    Column("condition", "Condition"),
    Column("metric", "Metric"),
    Column("note", "Note", "note"),
)
_PROGRAM_COLUMNS = (
    Column("model", "Model", "model"),
    Column("suite", "Suite"),
    Column("part", "Part"),
    Column("k", "k", "count", always=True),
    Column("pass_at_k", "pass@k", "score", ends=("pass_low", "pass_high")),
    Column("n_items", "Items", "count", always=True),
    Column("condition", "Condition"),
    Column("note", "Note", "note"),
)
_SHOWN_FINDINGS = 500


def read(connection: duckdb.DuckDBPyConnection) -> FamilyContent:
    """Read the family's pages. `connection` has `qa_scores` and optionally the family's other tables."""
    scores = QaScores(connection)
    boards = build_suite_boards(scores)
    suites = _build_suites_section(scores, boards)
    unscored = Section("unscored", "Without a score", [Prose(list(describe_unscored(scores)))])
    missing = "Answers are scored, but there is no board yet. Run `dtef qa board --refresh` to make it."
    return FamilyContent(
        verdict(boards) if len(scores.board) else missing,
        list(boards.values()),
        sections=[suites, _build_pass_section(scores), _build_validity_section(scores), unscored],
        build_model_sections=prepare_model_sections(scores, boards),
        item_scores=scores.item_scores[list(ITEM_COLUMNS)],
        pages=lambda: _build_pages(scores, boards),
        data=[suites, _build_findings_section(scores)],
        method=_QA_METHOD,
        setting_text=lambda row: format_board_title(row["first_level"], row["condition"], row["metric"]),
        variants={name: variant for variant, name in scores.names.items()},
    )


def _build_pages(scores: QaScores, boards: Boards) -> Iterator[Page | DataFile]:
    share = compute_kept_share(scores)
    for suite in scores.suites.values():
        yield suite_page(scores, suite, boards, share)
        yield from build_explorer_files(scores, suite, share)


def _build_suites_section(scores: QaScores, boards: Boards) -> Section:
    """Build the list of suites with links to their pages, their best models, and whether their answers are public."""
    main = choose_main_keys(boards)
    rows: list[dict[str, Any]] = []
    for name, suite in scores.suites.items():
        best = boards[main[name]].models[:1] if name in main else []
        rows.append(
            {
                "suite": suite.link,
                "parts": len(suite.parts),
                "items": len(suite.items),
                "models": len(suite.models),
                **({"best": best[0].model, "score": best[0].score} if best else {}),
                "exposure": scores.exposure.get(name),
            }
        )
    answer = f"{format_count(len(rows), 'suite')} with {format_count(sum(row['items'] for row in rows), 'item')}: each page opens every item."
    n_exposed = sum(bool(row["exposure"]) for row in rows)
    note = f" Answers of {n_exposed} may be in training data." if n_exposed else ""
    return Section("suites", "Suites", [Table("Suites", _SUITE_COLUMNS, rows)], answer + note)


def _build_validity_section(scores: QaScores) -> Section:
    """Build the section on factors other than the answer that affect scores, warnings first."""
    frame = scores.rows.frame("qa_validity").sort_values("is_suspect", ascending=False, kind="stable")
    rows = scores.read_rows(frame.assign(check=frame["check"].replace(CHECK_WORDS)))
    warnings = [
        f"{row['check']} ({row['model']}, {show(Estimate.from_row(row, 'value', 'low', 'high'), 'number')})"
        for row in rows
        if row["is_suspect"]
    ]
    names = f" {list_first_names(warnings, 2, '; ')}." if warnings else ""
    answer = f"Needs a look: {len(warnings)} of {format_count(len(rows), 'check')}.{names}" if rows else ""
    table = Table("Checks, warnings first", _VALIDITY_COLUMNS, rows, first=15)
    return Section("validity", "Validity of the scores", [table], answer, _VALIDITY_HOW if rows else "")


def _build_pass_section(scores: QaScores) -> Section:
    """Build the section on pass@k of every model and suite of programs; rows without an item with enough draws are left out."""
    frame = scores.rows.frame("qa_pass_at_k")
    rows = scores.read_rows(frame[frame["n_items"] > 0])
    best = max(rows, key=lambda row: (row["k"], row["pass_at_k"]), default=None)
    answer = f"Best at k = {best['k']}: {best['model']}, {show(best['pass_at_k'], 'score')}." if best else ""
    caption = "The chance that at least one of k programs for an item passes its tests"
    return Section("pass-at-k", "pass@k", [Table(caption, _PROGRAM_COLUMNS, rows, first=15)], answer)


def _build_findings_section(scores: QaScores) -> Section:
    """Build the list of rows that were left out, and of warnings."""
    findings = scores.rows.frame("qa_findings").sort_values(["level", "suite", "part", "file", "line"], kind="stable")
    where = [partition_words(f"{suite}/{part}") for suite, part in zip(findings["suite"], findings["part"], strict=True)]
    rows = convert_to_rows(findings.assign(where=where).head(_SHOWN_FINDINGS))
    errors = int((findings["level"] == "error").sum())
    answer = f"{format_count(errors, 'row')} of files left out, {format_count(len(findings) - errors, 'warning')}."
    note = f" The first {_SHOWN_FINDINGS} are shown; the table qa_findings has all." if len(findings) > _SHOWN_FINDINGS else ""
    table = Table("Findings, errors first", _FINDINGS, rows, first=10)
    return Section("findings", "rows set aside", [table], answer + note if rows else "")


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
