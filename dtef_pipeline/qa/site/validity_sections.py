"""Sections other than boards: checks of validity, pass@k, retrieval, and every pair of models of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dtef_pipeline.qa.site.qa_labels import (
    CHECK_WORDS,
    format_metric,
    format_part_title,
    format_qa_condition,
    format_suite_title,
    scorer_words,
)
from dtef_pipeline.qa.site.suite_scores import QaScores
from dtef_pipeline.qa.suites import RETRIEVAL_COUNT, compute_retrieval_means
from dtef_pipeline.site.content import Block, Column, Estimate, Fold, Section, Table, convert_to_rows
from dtef_pipeline.site.number_text import show
from dtef_pipeline.text.number_words import format_count, list_first_names

_VALIDITY_HOW = (
    "Order of the options: how far a model's mean moves when the options are shown in another order. Judge against the number: how often a "
    "judge and the number in the answer disagree. Same maker: judgements by a model of the maker of the judged one. Length: the rank "
    "correlation of a judge's score with the length of the answer."
)
_PROGRAMS_HOW = "pass@k is the chance that at least one of k programs for an item passes its tests, averaged over items with at least k draws."
_RETRIEVAL_HOW = "How well passages with evidence were found: means over items, 0-1, higher is better. No model is involved."
_COMPARISONS_HOW = (
    "The better model first, on the items scored for both. The test treats subjects or transcripts as independent units; p is adjusted "
    "over all pairs of the board (Holm)."
)
_CONDITION_COLUMNS = (Column("condition", "Condition"), Column("metric", "Metric"))
_VALIDITY_COLUMNS = (
    Column("check", "Check"),
    Column("suite", "Suite"),
    Column("model", "Model", "model"),
    Column("value", "Value", "number", "A range of means, a share, or a rank correlation"),
    Column("is_suspect", "Look into it", always=True),
    Column("n", "Rests on", "count", "Items, judgements or responses", more=True),
    *_CONDITION_COLUMNS,
    Column("measured_by", "Measured by", more=True),
    Column("note", "Note", "note"),
)
_PROGRAM_COLUMNS = (
    Column("model", "Model", "model"),
    Column("suite", "Suite"),
    Column("part", "Part"),
    Column("k", "k", "count", always=True),
    Column("value", "pass@k", "score"),
    Column("n_items", "Items", "count", always=True),
    Column("n_too_few", "Too few draws", "count", "Items with fewer scored draws than k", more=True),
    Column("condition", "Condition"),
)
_RETRIEVAL_COLUMNS = (
    Column("part", "Part"),
    Column("condition", "Condition"),
    Column("hit", "Hit", "score", "Share of the items whose passages include evidence"),
    Column("recall", "Recall", "score", "Share of the passages with evidence that were shown"),
    Column("precision", "Precision", "score", "Share of the shown passages that hold evidence"),
    Column("mrr", "MRR", "score", "Mean reciprocal rank of the first passage with evidence", more=True),
    Column("ndcg", "nDCG at 10", "score", "How early evidence comes, as a share of the best order", more=True),
    Column(RETRIEVAL_COUNT, "Items", "count", more=True),
)
_PAIR_COLUMNS = (
    Column("model", "Model", "model"),
    Column("other_model", "Compared with", "model"),
    Column("verdict", "Verdict", always=True),
    Column("value", "Difference", "signed"),
    Column("p_adjusted", "p (adjusted)", "p"),
    Column("n_items", "Items", "count", more=True),
    *_CONDITION_COLUMNS,
    Column("note", "Note", "note"),
)


def build_validity_section(scores: QaScores) -> Section:
    """Build the section on factors other than the answer that affect scores, warnings first."""
    frame = scores.rows.frame("qa_validity")
    if not len(frame):
        return Section("validity", "Validity", [])
    frame = frame.sort_values("is_suspect", ascending=False, kind="stable")
    rows = [
        {
            **_build_row(scores, record, ("value", "low", "high")),
            "check": CHECK_WORDS.get(record["check"], record["check"]),
            "is_suspect": bool(record["is_suspect"]),
        }
        for record in convert_to_rows(frame)
    ]
    warnings = [row for row in rows if row["is_suspect"]]
    names = list_first_names([f"{row['check']} ({row['model']}, {show(row['value'], 'number')})" for row in warnings], 2, "; ")
    answer = f"Needs a look: {len(warnings)} of {format_count(len(rows), 'check')}.{f' {names}.' if warnings else ''}"
    return Section(
        "validity",
        "Validity of the scores",
        [Table("Checks, warnings first", _VALIDITY_COLUMNS, rows, first=15)],
        answer,
        _VALIDITY_HOW,
    )


def build_pass_section(scores: QaScores) -> Section:
    """Build the section on pass@k of every model and suite of programs; rows without an item with enough draws are left out."""
    frame = scores.rows.frame("qa_pass_at_k")
    rows = (
        [_build_row(scores, rate, ("pass_at_k", "pass_low", "pass_high")) for rate in convert_to_rows(frame) if rate["n_items"]]
        if len(frame)
        else []
    )
    if not rows:
        return Section("pass-at-k", "pass@k", [])
    best = max(rows, key=lambda row: (row["k"], row["value"].value))
    answer = f"Best at k = {best['k']}: {best['model']}, {show(best['value'], 'score')}."
    return Section(
        "pass-at-k", "pass@k", [Table("Programs that pass", _PROGRAM_COLUMNS, rows, first=15)], answer, _PROGRAMS_HOW
    )


def build_retrieval_section(scores: QaScores, suite: str) -> Section:
    """Build the section on retrieval for the items of a suite."""
    frame = scores.rows.frame("qa_retrieval", {"suite": suite})
    rows = [_build_row(scores, record) for record in convert_to_rows(compute_retrieval_means(frame))] if len(frame) else []
    if not rows:
        return Section("retrieval", "Retrieval", [])
    best = max(rows, key=lambda row: row["recall"])
    answer = f"{show(best['hit'], 'percent')} of the questions were shown with a passage that contains the evidence."
    return Section(
        "retrieval", "Retrieval", [Table("Passages with evidence", _RETRIEVAL_COLUMNS, rows)], answer, _RETRIEVAL_HOW
    )


def build_comparison_section(scores: QaScores, suite: str) -> Section:
    """Build the section on every pair of models of a suite."""
    frame = scores.rows.frame("comparisons", {"family": "qa", "first_level": suite})
    rows = [_build_row(scores, record, ("difference", "low", "high")) for record in convert_to_rows(frame)]
    if not rows:
        return Section("compared", "Every two models", [])
    n_decided = sum(row["verdict"] in ("better", "worse") for row in rows)
    blocks: list[Block] = [Fold("All comparisons", [Table("Differences of mean scores", _PAIR_COLUMNS, rows, first=25)])]
    return Section(
        "compared",
        "Every two models",
        blocks,
        f"{n_decided} of {format_count(len(rows), 'comparison')} tell two models apart.",
        _COMPARISONS_HOW,
    )


def _build_row(scores: QaScores, record: Mapping[str, Any], ends: tuple[str, str, str] | None = None) -> dict[str, Any]:
    """Return a row with its names in words and its estimate in `value`."""
    row = {str(name): None if value is pd.NA else value for name, value in record.items()}
    for column, variant in (("model", "model_variant"), ("other_model", "other_variant")):
        if variant in row:
            row[column] = scores.names.get(str(row[variant]), row[column])
    words = {
        "suite": format_suite_title,
        "part": lambda part: "" if part == "all" else format_part_title(part),
        "metric": format_metric,
        "measured_by": scorer_words,
    }
    row |= {name: make(str(row[name])) for name, make in words.items() if row.get(name)}
    return {
        **row,
        "condition": format_qa_condition(str(row.get("condition") or "")),
        **({"value": Estimate(*(row[name] for name in ends))} if ends else {}),
    }
