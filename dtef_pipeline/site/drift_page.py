"""The drift page: verdicts on each family's models, their timelines, and the judges on anchors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.drift.verdict_text import (
    NEWS,
    build_headline,
    describe_judges,
    group_reasons,
    list_changes,
    list_moved_judges,
    sort_key_of_verdict,
)
from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.site.content import Block, Chart, Column, Fold, Page, Prose, Section, Table, convert_to_rows, is_unknown
from dtef_pipeline.site.contents import FamilyEntry, SiteContents
from dtef_pipeline.site.paths import DRIFT_PAGE
from dtef_pipeline.text.number_words import list_first_names

_MAX_CHARTED = 30
_MAX_NAMED = 3
"""Series that the first sentence names."""
_DRIFT_GUIDE = (
    "The first snapshots are the reference; later ones are compared with it on the prompts that both asked. “Drift” means that the documented "
    "rule flags the model and the evidence is strong enough; the bar keeps false alarms rare however often you look. “Watch” means that the "
    "rule flags the model, but the evidence is not strong enough yet. “All models” is the verdict on all models together."
)
_SHIFT_ENDS = ("shift_low", "shift_high")
_VERDICT_COLUMNS = (
    Column("model", "Model", "model"),
    Column("verdict", "Verdict", always=True),
    Column("shift", "Shift", "signed", "Mean paired difference since the change, minus that before it", ends=_SHIFT_ENDS),
    Column("first_snapshot", "First snapshot", "code", "Likeliest first snapshot of the drift"),
    Column("setting", "Setting"),
    Column("shared_verdict", "All models", meaning="Verdict on the shift that all models of the same snapshots share"),
    Column("what_changed", "What changed", "long"),
)
_JUDGE_COLUMNS = (
    Column("judge", "Judge"),
    Column("evaluator", "Evaluator"),
    Column("verdict", "Verdict", always=True),
    Column("shift", "Shift", "signed", "Mean paired change since the drift began, else since the reference", ends=_SHIFT_ENDS),
    Column("n_snapshots", "Snapshots", "count"),
    Column("n_items", "Answers", "count", "Anchors with a score in every snapshot"),
    Column("reason", "Why", "note"),
)
_RULE_COLUMNS = (
    Column("partition", "Where", "code"),
    Column("model", "Model", "model"),
    Column("setting", "Setting"),
    Column("gap", "Gap", "score"),
    Column("lowest", "Lowest", "score"),
    Column("lowest_snapshot", "in", "code"),
    Column("highest", "Highest", "score"),
    Column("highest_snapshot", "in", "code"),
)
_REASON_COLUMNS = (Column("reason", "Why", "long"), Column("series", "Series", "count"))


def drift_page(contents: SiteContents) -> Page:
    """Build the page over all families; those without an alarm come last, with their tables folded."""
    families = [family for family in contents.families if _has_comparisons(contents, family)]
    sections = [_build_family_section(contents, family) for family in families]
    return Page(
        DRIFT_PAGE,
        "Drift",
        describe_drifted(contents),
        sorted(sections, key=lambda section: section.is_folded),
        introduction="Do models still answer the same prompts as they did before?",
    )


def describe_drifted(contents: SiteContents) -> str:
    """Describe which series drifted, over all families."""
    alarms = [
        f"{row['model']} in {family.site.title}, {row['setting']}"
        for family in contents.families
        for row in contents.drift[family.name]
        if row["verdict"] == "drift"
    ]
    n_series = sum(map(len, contents.drift.values()))
    waiting = [family.site.title for family in contents.families if not _has_comparisons(contents, family)]
    hint = (
        f" One snapshot only: {', '.join(waiting)}. To detect drift, ask the same items again on another day."
        if waiting
        else ""
    )
    if not n_series:
        return f"No model is watched for drift yet.{hint}"
    if not alarms:
        return f"None of {n_series:,} watched series is known to have drifted.{hint}"
    return f"{len(alarms):,} of {n_series:,} watched series drifted: {list_first_names(alarms, _MAX_NAMED, '; ')}.{hint}"


def _has_comparisons(contents: SiteContents, family: FamilyEntry) -> bool:
    return any((row["n_snapshots"] or 0) > 1 for row in contents.drift[family.name])


def describe_families(contents: SiteContents) -> list[str]:
    """Return the main result for each family with two snapshots or more."""
    families = [family for family in contents.families if _has_comparisons(contents, family)]
    return [f"{family.site.title}: {build_headline(contents.drift[family.name], family.site.subject)}" for family in families]


def _build_family_section(contents: SiteContents, family: FamilyEntry) -> Section:
    rows = sorted((row for row in contents.drift[family.name] if row["verdict"] is not None), key=sort_key_of_verdict)
    reasons = Counter(row["reason"] or "no reason" for row in contents.drift[family.name] if row["verdict"] is None)
    judges = convert_to_rows(contents.table("judge_drift", family))
    judges.sort(key=lambda row: (row["judge"], row["evaluator"] or ""))
    unexplained = [{"reason": reason, "series": n} for reason, n in group_reasons(reasons)]
    blocks: list[Block] = [
        build_verdict_table(family, rows),
        *build_timelines(contents, family, rows),
        *_build_rule_table(contents, family),
        Prose([f"{line[:1].upper()}{line[1:]}." for line in list_moved_judges(judges)]),
        Table("Judges on anchors, which they judge again in every snapshot", _JUDGE_COLUMNS, judges),
        Fold(f"Not compared, and why ({reasons.total():,} series)", [Table("Not compared", _REASON_COLUMNS, unexplained)]),
    ]
    has_news = any(row["verdict"] in NEWS for row in [*rows, *judges])
    answer = build_headline(contents.drift[family.name], family.site.subject)
    return Section(family.name, family.site.title, blocks, answer, _DRIFT_GUIDE, is_folded=not has_news)


def build_verdict_table(family: FamilyEntry, rows: Sequence[StoredRow]) -> Table:
    """Build a table with one row per series, in the given order."""
    table_rows = []
    for row in rows:
        lines = filter(None, [describe_judges(row), *list_changes(row, family.site.subject)])
        table_rows.append({**row, "what_changed": "\n".join(lines)})
    return Table("Verdict on each model", _VERDICT_COLUMNS, table_rows)


def build_timelines(contents: SiteContents, family: FamilyEntry, rows: Sequence[StoredRow]) -> Iterator[Block]:
    """Yield the timelines of series: open for series with drift, folded for others."""
    series = contents.table("drift_series", family)
    points = dict(list(series.groupby(["model_variant", "setting"]))) if len(series) else {}
    for title, is_news in (("Timelines of models that moved", True), ("Timelines of the other models", False)):
        charts = [
            _build_timeline(row, points[key])
            for row in rows[:_MAX_CHARTED]
            if (row["verdict"] in NEWS) is is_news
            and (key := (row["model_variant"], row["setting"])) in points
            and len(points[key]) > 1
        ]
        yield Fold(title, charts, is_open=is_news)


def _build_timeline(row: Mapping[str, Any], snapshots: pd.DataFrame) -> Chart:
    """Plot a compared snapshot at the reference's mean plus its paired difference, so that failed calls do not move it."""
    reference = snapshots[snapshots["in_baseline"].eq(True)]
    mean = (reference["score"] - reference["difference"]).mean()
    compared = (mean + snapshots["difference"]).where(snapshots["compared"].eq(True))
    steps = snapshots.assign(
        at=snapshots["snapshot"],
        value=compared.fillna(snapshots["score"]),
        kind=compared.notna()
        .map({True: "compared", False: "not compared"})
        .mask(snapshots["in_baseline"].eq(True), "reference"),
        note=[f"{n} shared prompts" for n in snapshots["n_shared"]],
    )
    points = convert_to_rows(steps[steps["value"].notna()][["at", "value", "kind", "note"]])
    lines = [] if is_unknown(mean) else [{"value": float(mean), "label": "mean of the reference snapshots"}]
    caption = f"{row['model']}, {row['setting']}: {row['verdict']}. {(row['reason'] or '').capitalize()}"
    return Chart("timeline", points, caption, lines)


def _build_rule_table(contents: SiteContents, family: FamilyEntry) -> Iterator[Block]:
    rules = contents.table("drift_rule", family)
    if len(rules) and len(flags := rules[rules["flagged"].eq(True)]):
        ranked = flags.sort_values(["gap", "partition", "model_variant", "setting"], ascending=[False, True, True, True])
        caption = f"The documented rule flags {len(flags):,} of {len(rules):,}"
        yield Table(caption, _RULE_COLUMNS, convert_to_rows(ranked), first=20)
