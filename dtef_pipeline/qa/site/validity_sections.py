"""Sections other than boards: checks of validity, pass@k and retrieval."""

from __future__ import annotations

from dtef_pipeline.qa.site.qa_labels import CHECK_WORDS
from dtef_pipeline.qa.site.suite_scores import QaScores
from dtef_pipeline.qa.suites import compute_retrieval_means
from dtef_pipeline.site.content import Column, Estimate, Section, Table
from dtef_pipeline.site.number_text import show
from dtef_pipeline.text.number_words import format_count, list_first_names

_VALIDITY_HOW = (
    "Order of the options: how far a model's mean moves when the options are shown in another order. Judge against the number: how often a "
    "judge and the number in the answer disagree. Same maker: judgements by a model of the maker of the judged one. Length: the rank "
    "correlation of a judge's score with the length of the answer."
)
_PROGRAMS_HOW = "pass@k is the chance that at least one of k programs for an item passes its tests, averaged over items with at least k draws."
_RETRIEVAL_HOW = "How well passages with evidence were found: means over items, 0-1, higher is better. No model is involved."
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
_RETRIEVAL_COLUMNS = (
    Column("part", "Part"),
    Column("condition", "Condition"),
    Column("hit", "Hit", "score", "Share of the items whose passages include evidence"),
    Column("recall", "Recall", "score", "Share of the passages with evidence that were shown"),
    Column("precision", "Precision", "score", "Share of the shown passages that hold evidence"),
)


def build_validity_section(scores: QaScores) -> Section:
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


def build_pass_section(scores: QaScores) -> Section:
    """Build the section on pass@k of every model and suite of programs; rows without an item with enough draws are left out."""
    frame = scores.rows.frame("qa_pass_at_k")
    rows = scores.read_rows(frame[frame["n_items"] > 0])
    best = max(rows, key=lambda row: (row["k"], row["pass_at_k"]), default=None)
    answer = f"Best at k = {best['k']}: {best['model']}, {show(best['pass_at_k'], 'score')}." if best else ""
    return Section(
        "pass-at-k", "pass@k", [Table("Programs that pass", _PROGRAM_COLUMNS, rows, first=15)], answer, _PROGRAMS_HOW
    )


def build_retrieval_section(scores: QaScores, suite: str) -> Section:
    """Build the section on retrieval for the items of a suite."""
    rows = scores.read_rows(compute_retrieval_means(scores.rows.frame("qa_retrieval", {"suite": suite})))
    hits = max(rows, key=lambda row: row["recall"])["hit"] if rows else None
    answer = f"{show(hits, 'percent')} of the questions were shown with a passage that contains the evidence." if rows else ""
    return Section(
        "retrieval", "Retrieval", [Table("Passages with evidence", _RETRIEVAL_COLUMNS, rows)], answer, _RETRIEVAL_HOW
    )
