"""Tables of the qa family that are shown as they are published: pass@k, comparisons, validity, retrieval, costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from dtef_pipeline.qa.report.boards_part import MADE_BY_RUN
from dtef_pipeline.report.isolated import missing, wrapping_name
from dtef_pipeline.report.markup import (
    UNKNOWN_COST_COLUMNS,
    Column,
    as_is,
    dollars,
    estimate,
    fold,
    is_unknown,
    named,
    note,
    p_value,
    section,
    table,
    text,
    three,
    whole,
    with_intervals,
)
from dtef_pipeline.report.stored_rows import StoredRows

_OF_SUITE, _IN_PART = Column("suite", "Suite", named), Column("part", "Part", named)
_BOARD_WAY = (
    Column("condition", "Asked as", named),
    Column("metric", "Metric", text),
    Column("measured_by", "Measured by", named),
)
_BY_MODEL, _WITH_NOTE = Column("model", "Model", named), Column("note", "Note", note)


def _warned(value: Any) -> str:
    return "look into it" if value is True or value == 1 else ""


class PublishedPart(NamedTuple):
    """A section that shows one table."""

    anchor: str
    title: str
    how: str
    table: str
    columns: Sequence[Column]
    ends: tuple[str, str, str]
    """The estimate with the ends of its interval."""
    none: str
    """Where there are no rows: what is missing."""
    made_by: str = MADE_BY_RUN


PASS_RATES = PublishedPart(
    "pass-at-k",
    "pass@k",
    "The chance that of k programs for an item one or more pass its tests, 0-1, as a mean over items with a 95 % interval over items. Items "
    "with fewer scored draws than k are left out.",
    "qa_pass_at_k",
    (
        _OF_SUITE,
        _IN_PART,
        Column("k", "k", whole),
        _BY_MODEL,
        Column("pass_at_k", "pass@k", as_is, "95 % interval beneath"),
        Column("n_items", "Items", whole),
        Column("n_too_few", "Too few draws", whole, "Items with fewer scored draws than k"),
        *_BOARD_WAY,
        _WITH_NOTE,
    ),
    ("pass_at_k", "pass_low", "pass_high"),
    "No programs yet",
    "`dtef qa run --part 'humaneval/*' --model MODEL --draws 10` asks for some and runs them",
)
COMPARED_PAIRS = PublishedPart(
    "comparisons",
    "Comparisons",
    "Every two models of a board on the items that both have a score for, the better one first: the difference of their means with a 95 % "
    "interval, and p of the t test by whole subjects or transcripts, adjusted over all pairs of the board (Holm).",
    "comparisons",
    (
        _OF_SUITE,
        *_BOARD_WAY[:2],
        _BY_MODEL,
        Column("other_model", "Compared with", named),
        Column("verdict", "Verdict", text),
        Column("difference", "Difference", as_is, "Mean score less that of the other model; 95 % interval beneath"),
        Column("p_adjusted", "p (adjusted)", p_value),
        Column("score", "Score", estimate),
        Column("other_score", "Of the other", estimate),
        Column("n_items", "Items", whole),
        Column("n_clusters", "Clusters", whole, "Subjects or transcripts; of fewer than 5, or of none, items"),
        _BOARD_WAY[2],
        _WITH_NOTE,
    ),
    ("difference", "low", "high"),
    "Nothing to compare",
    "`dtef qa run --model A --model B` asks two models the same items",
)
CHECKED_SCORES = PublishedPart(
    "validity",
    "Validity",
    "Whether scores rest on something besides the answer. Position bias: how far a model's mean moves when the options are shown in another "
    "order. Judge against numeric: how often a judge and the number in the answer disagree. Self-judged: judgements of a model by one of the "
    "same maker. Judge failures: judgements that failed. Length and semantic: whether longer answers get better scores.",
    "qa_validity",
    (
        Column("check", "Check", text),
        _OF_SUITE,
        _BY_MODEL,
        Column("value", "Value", as_is, "A range of means, a share, or a rank correlation; 95 % interval beneath"),
        Column("warn", "Warning", _warned),
        Column("n", "Rests on", whole, "Items, judgements or responses"),
        *_BOARD_WAY,
        _WITH_NOTE,
    ),
    ("value", "low", "high"),
    "Nothing was checked",
    "`dtef qa run --order rotated-1` and judges make something to check",
)
PUBLISHED_PARTS = (PASS_RATES, COMPARED_PAIRS, CHECKED_SCORES)
_RETRIEVAL_HOW = (
    "How well the chunks were found that hold the evidence which items name, before any model was asked: means over items with such evidence, "
    "0-1, higher is better. A chunk is relevant when it holds a quote."
)
_RETRIEVAL_TABLE = (
    _OF_SUITE,
    _IN_PART,
    Column("condition", "Asked as", named),
    Column("k", "k", whole, "Chunks that were asked for"),
    Column("hit", "Hit", three, "Share of the items with a relevant chunk among the first k"),
    Column("recall", "Recall", three, "Share of the relevant chunks that are among the first k"),
    Column("precision", "Precision", three, "Share of the first k chunks that are relevant"),
    Column("mrr", "MRR", three, "Mean reciprocal rank of the first relevant chunk"),
    Column(
        "ndcg", "nDCG at 10", three, "How early relevant chunks stand among the first 10, as a share of the best order: 0-1"
    ),
    Column("n_items", "Items", whole, "Items that name a quote which stands in a chunk"),
    Column("n_left_out", "Left out", whole, "Items whose quotes stand in no chunk"),
)
_QUALITIES = ("hit", "recall", "precision", "mrr", "ndcg")
_PAID_HOW = (
    "What was paid for everything in these tables. Each call counts once, with what it cost when it was bought. Unpriced: answered ones whose "
    "price is unknown, which are in no sum."
)
_USED_COLUMNS = (
    Column("answered", "Answered", whole),
    Column("calls", "Calls", whole),
    Column("prompt_tokens", "Prompt tokens", whole),
    Column("completion_tokens", "Reply tokens", whole),
    Column("cost_usd", "US dollars", dollars),
    Column("unpriced", "Unpriced", whole),
    *UNKNOWN_COST_COLUMNS,
)
_COST_CUTS = (
    ("Costs by role", ("role",), (Column("role", "Role", text),)),
    ("Costs by evaluator", ("role", "evaluator"), (Column("role", "Role", text), Column("evaluator", "Evaluator", text))),
    ("Costs by model and suite", ("role", "model", "suite"), (Column("role", "Role", text), _BY_MODEL, _OF_SUITE)),
)


def published_section(rows: StoredRows, part: PublishedPart) -> str:
    """The section of one of the family's tables."""
    found = rows.frame(part.table, {"family": "qa"}).rename(columns={"first_level": "suite"})
    if not len(found):
        return section(part.anchor, part.title, part.how, missing(part.none, part.made_by))
    if "warn" in found:
        found = found.sort_values("warn", ascending=False, kind="stable", ignore_index=True)
    return section(part.anchor, part.title, part.how, as_published(found, part.columns, part.title, part.ends))


def as_published(found: pd.DataFrame, columns: Sequence[Column], caption: str, ends: tuple[str, str, str]) -> str:
    """The rows as a table; names of things, which are data, stand isolated."""
    data = found.drop(columns=[name for name in found if name == "exposure"])
    shown = with_intervals(found, [ends] if {*ends} <= set(found) else [], sign="+" if ends[0] == "difference" else "")
    words = found["check"].str.replace("_", " ") if "check" in found else None
    shown = shown.assign(**({} if words is None else {"check": words}))
    return table(isolated_names(shown, columns), columns, caption=caption, data=data)


def isolated_names(frame: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The frame with the values of columns of names as markup."""
    names = [column.name for column in columns if column.shown is named and column.name in frame]
    shown = frame.assign(**{name: frame[name].map(wrapping_name) for name in names})
    return (
        shown.assign(measured_by=[f'<span class="by">{one}</span>' for one in shown["measured_by"]])
        if "measured_by" in names
        else shown
    )


def retrieval_section(rows: StoredRows, suite: str | None = None, part: str | None = None) -> str:
    """Means over items of how well chunks were found: of one part, or of all; empty where nothing is looked up at all."""
    where = {name: value for name, value in (("suite", suite), ("part", part)) if value is not None}
    found = rows.frame("qa_retrieval", where)
    if not len(found):
        nothing = missing(
            "Nothing was looked up",
            "suites with documents have chunks of them shown: `dtef qa add socioscope FILE --corpus DIR`",
        )
        return section("retrieval", "Retrieval", _RETRIEVAL_HOW, nothing)
    groups = found.groupby(["suite", "part", "condition", "k"], sort=True, dropna=False)
    means = groups[list(_QUALITIES)].mean().reset_index()
    known = groups["recall"].count().to_numpy()
    means = means.assign(n_items=known, n_left_out=groups.size().to_numpy() - known)
    shown = table(isolated_names(means, _RETRIEVAL_TABLE), _RETRIEVAL_TABLE, caption="Retrieval", data=means)
    return section("retrieval", "Retrieval", _RETRIEVAL_HOW, shown)


def costs_section(rows: StoredRows) -> str:
    """What candidates and judges cost: by role, by evaluator, by model and suite."""
    found = rows.frame("costs", {"family": "qa"}).rename(columns={"first_level": "suite", "purpose": "evaluator"})
    if not len(found):
        return section("costs", "Costs", _PAID_HOW, missing("No costs yet", MADE_BY_RUN))
    (_, first), *others = (
        (title, table(isolated_names(own, named_by), (*named_by, *_USED_COLUMNS), caption=title, data=own))
        for title, own, named_by in _cuts(found)
    )
    folded = "".join(fold(title, own, is_open=True) for title, own in others)
    return section("costs", "Costs", _PAID_HOW, first + folded)


def _cuts(found: pd.DataFrame) -> list[tuple[str, pd.DataFrame, Sequence[Column]]]:
    cuts = [(title, _summed(found, list(by)), columns) for title, by, columns in _COST_CUTS]
    return [cut for cut in cuts if len(cut[1])]  # without judges there are no evaluators


def _summed(found: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Costs added up, candidates before judges, the dearest first; of an unknown price alone, unknown."""
    whole_rows = found if "evaluator" not in by else found[[not is_unknown(one) for one in found["evaluator"]]]
    used = [column.name for column in _USED_COLUMNS]
    summed = whole_rows.groupby(by, sort=True, dropna=False)[used].sum(min_count=1).reset_index()
    return summed.sort_values(
        ["role", "cost_usd"], ascending=[True, False], na_position="last", kind="stable", ignore_index=True
    )
