"""The drift page: verdicts on each family's models, their timelines, and the judges on anchors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import (
    NEWS,
    build_headline,
    describe_judges,
    describe_scope_lines,
    format_change,
    format_moved_items,
    format_odds,
    group_reasons,
    list_moved_judges,
    sort_key_of_verdict,
)
from dtef_pipeline.site.content import (
    Block,
    Chart,
    Column,
    Estimate,
    Fold,
    Page,
    Prose,
    Section,
    Table,
    convert_to_rows,
    is_unknown,
)
from dtef_pipeline.site.contents import FamilyEntry, SiteContents
from dtef_pipeline.site.paths import DRIFT_PAGE
from dtef_pipeline.text.number_words import list_first_names

MAX_CHARTED = 30
_MAX_NAMED = 3
"""Series that the first sentence names."""
_ONE_SNAPSHOT = "There is one snapshot only. To detect drift, ask the same items again on another day."
_DRIFT_GUIDE = (
    "The first snapshots are the reference; later ones are compared with it on the prompts that both asked. “Drift” means that the documented "
    "rule flags the model and the evidence is strong enough; the bar keeps false alarms rare however often you look. “Watch” means that the "
    "rule flags the model, but the evidence is not strong enough yet. “All models” is the verdict on all models together."
)
_VERDICT_COLUMNS = (
    Column("model", "Model", "model"),
    Column("verdict", "Verdict", always=True),
    Column("shift", "Shift", "signed", "Mean paired difference since the change, minus that before it, with its 95% interval"),
    Column("since", "First snapshot", "code", "Likeliest first snapshot of the drift"),
    Column("setting", "Setting"),
    Column("shared", "All models", meaning="Verdict on the shift that all models of the same snapshots share"),
    Column("odds", "Odds for drift", more=True),
    Column("needed", "Odds needed", more=True),
    Column("n_snapshots", "Snapshots", "count", more=True),
    Column("changes", "What changed", "long"),
    Column("net_shift", "Net of the judge", "signed", "Shift of the model minus that of its judges", more=True),
    Column("reason", "Why not compared", "note"),
)
_DRIFT_OF_JUDGES = (
    Column("judge", "Judge"),
    Column("evaluator", "Evaluator"),
    Column("verdict", "Verdict", always=True),
    Column(
        "shift",
        "Shift",
        "signed",
        "Mean paired change since the drift began, else since the reference snapshots",
        ends=("shift_low", "shift_high"),
    ),
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
    Column("n_items", "Items", "count", more=True),
)


def drift_page(contents: SiteContents) -> Page:
    """Build the page over all families."""
    loud, quiet = list[Section](), list[Section]()
    for family in contents.families:
        judges = contents.rows.frame("judge_drift", {"family": family.name})
        rows = [*contents.drift_rows[family.name], *convert_to_rows(judges)]
        has_news = any(row["verdict"] in NEWS for row in rows)
        (loud if has_news else quiet).append(_build_family_section(contents, family))
    sections = list(loud)
    if quiet:
        lines = Prose(_join_same_answers((section.title, section.answer) for section in quiet if not section.blocks))
        folds = [Fold(f"{section.title}: {section.answer}", section.blocks) for section in quiet if section.blocks]
        title, guide = ("Families without an alarm", "") if loud else ("All families", _DRIFT_GUIDE if folds else "")
        sections.append(Section("quiet", title, [*folds, lines], guide=guide))
    return Page(
        DRIFT_PAGE,
        "Drift",
        describe_drifted(contents),
        sections,
        introduction="Do models still answer the same prompts as they did before?",
    )


def describe_drifted(contents: SiteContents) -> str:
    """Describe which series drifted, over all families."""
    alarms = [
        f"{row['model']} in {family.site.title}, {row['setting']}"
        for family in contents.families
        for row in contents.drift_rows[family.name]
        if row["verdict"] == "drift"
    ]
    n_series = sum(len(contents.drift[family.name]) for family in contents.families)
    if not alarms:
        return (
            f"None of {n_series:,} watched series is known to have drifted."
            if n_series
            else "No model is watched for drift yet."
        )
    return f"{len(alarms):,} of {n_series:,} watched series drifted: {list_first_names(alarms, _MAX_NAMED, '; ')}."


def describe_families(contents: SiteContents) -> list[str]:
    """Return the main result for each family; families with the same result share a line."""
    return _join_same_answers((family.site.title, _describe_family(contents, family)) for family in contents.families)


def _join_same_answers(answers: Iterable[tuple[str, str]]) -> list[str]:
    titles: dict[str, list[str]] = {}
    for title, answer in answers:
        titles.setdefault(answer, []).append(title)
    return [f"{', '.join(names)}: {answer}" for answer, names in titles.items()]


def _describe_family(contents: SiteContents, family: FamilyEntry) -> str:
    if all(row["n_snapshots"] is None or row["n_snapshots"] < 2 for row in contents.drift_rows[family.name]):
        return _ONE_SNAPSHOT
    return build_headline(contents.drift[family.name], family.site.subject)


def _build_family_section(contents: SiteContents, family: FamilyEntry) -> Section:
    rows = contents.drift_rows[family.name]
    answer = _describe_family(contents, family)
    if answer == _ONE_SNAPSHOT:
        return Section(family.name, family.site.title, [], answer)
    compared_rows = sorted((row for row in rows if row["verdict"] is not None), key=sort_key_of_verdict)
    blocks: list[Block] = [
        build_verdict_table(family, compared_rows),
        *build_timelines(contents, family, compared_rows),
        *_build_rule_blocks(contents, family),
        *_build_judge_blocks(contents, family),
        *_build_reasons_block([row for row in rows if row["verdict"] is None]),
    ]
    return Section(family.name, family.site.title, blocks, answer, _DRIFT_GUIDE)


def build_verdict_table(family: FamilyEntry, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Build a table with one row per series, in the given order."""
    return Table("Verdict on each model", _VERDICT_COLUMNS, [_build_verdict_row(row, family.site.subject) for row in rows])


def _build_verdict_row(row: Mapping[str, Any], subject: Subject) -> dict[str, Any]:
    changes = [
        *describe_scope_lines(row),
        *filter(None, [describe_judges(row)]),
        *(format_change(change, subject) for change in row["changes"] or []),
    ]
    if row["verdict"] in NEWS and row["top_changes"]:
        changes.append(f"{subject.keys.noun}s that moved most: {format_moved_items(row['top_changes'])}")
    return {
        "model": row["model"],
        "verdict": row["verdict"] or "not compared",
        "shift": Estimate(row["shift"], row["shift_low"], row["shift_high"]),
        "since": row["first_snapshot"],
        "setting": row["setting"],
        "shared": row["shared_verdict"],
        "odds": None if row["log10_e"] is None else format_odds(row["log10_e"]),
        "needed": None if row["threshold"] is None else format_odds(row["threshold"]),
        "n_snapshots": row["n_snapshots"],
        "changes": "\n".join(changes),
        "net_shift": row["net_shift"],
        "reason": "" if row["verdict"] else row["reason"],
    }


def build_timelines(contents: SiteContents, family: FamilyEntry, rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """Yield the timelines of series: open for series with drift, folded for others."""
    series = contents.table("drift_series", family)
    if not len(series):
        return
    pairs = []
    for row in rows:
        points = series[(series["model_variant"] == row["model_variant"]) & (series["setting"] == row["setting"])]
        if len(points) > 1:
            pairs.append((row, points))
    for is_news in (True, False):
        charts = [_build_timeline(row, points) for row, points in pairs[:MAX_CHARTED] if (row["verdict"] in NEWS) is is_news]
        yield Fold("Timelines of models that moved" if is_news else "Timelines of the other models", charts, is_open=is_news)


def _build_timeline(row: Mapping[str, Any], snapshots: pd.DataFrame) -> Chart:
    """Plot a compared snapshot at the reference's mean plus its paired difference, so that failed calls do not move it."""
    reference = snapshots[snapshots["in_baseline"].eq(True) & snapshots["difference"].notna()]
    mean = float((reference["score"] - reference["difference"]).mean()) if len(reference) else None
    points = []
    for step in convert_to_rows(snapshots):
        is_compared = bool(step["compared"]) and mean is not None and not is_unknown(step["difference"])
        value = mean + step["difference"] if is_compared and mean is not None else step["score"]
        if not is_unknown(value):
            kind = "reference" if step["in_baseline"] else "compared" if is_compared else "not compared"
            points.append({"at": step["snapshot"], "value": value, "kind": kind, "note": f"{step['n_shared']} shared prompts"})
    lines = [] if mean is None else [{"value": mean, "label": "mean of the reference snapshots"}]
    caption = f"{row['model']}, {row['setting']}: {row['verdict']}. {(row['reason'] or '').capitalize()}"
    return Chart("timeline", points, caption, lines)


def build_series_chart(series: pd.DataFrame) -> Chart:
    """Build one chart of several series, a line each, from rows of the table `drift_series`."""
    points = [
        {"at": row["snapshot"], "value": row["score"], "label": f"{row['model']}, {row['setting']}"}
        for row in convert_to_rows(series)
        if not is_unknown(row["score"])
    ]
    return Chart("series", points, "Mean score of each snapshot")


def _build_rule_blocks(contents: SiteContents, family: FamilyEntry) -> Iterator[Block]:
    rules = contents.table("drift_rule", family)
    flags = rules[rules["flagged"].eq(True)] if len(rules) else rules
    if len(flags):
        ranked = flags.sort_values(["gap", "partition", "model_variant", "setting"], ascending=[False, True, True, True])
        yield Table(
            f"The documented rule flags {len(flags):,} of {len(rules):,}", _RULE_COLUMNS, convert_to_rows(ranked), first=20
        )


def _build_judge_blocks(contents: SiteContents, family: FamilyEntry) -> Iterator[Block]:
    drifts = contents.rows.frame("judge_drift", {"family": family.name})
    if not len(drifts):
        return
    rows = convert_to_rows(drifts.sort_values(["judge", "evaluator"]))
    yield Prose([f"{line[:1].upper()}{line[1:]}." for line in list_moved_judges(rows)])
    yield Table("Judges on anchors, which they judge again in every snapshot", _DRIFT_OF_JUDGES, rows)


def _build_reasons_block(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    counts = pd.Series([row["reason"] or "no reason" for row in rows]).value_counts() if rows else pd.Series(dtype=int)
    if len(counts):
        columns = (Column("reason", "Why", "long"), Column("series", "Series", "count"))
        groups = [{"reason": reason, "series": n} for reason, n in group_reasons({str(k): int(v) for k, v in counts.items()})]
        yield Fold(f"Not compared, and why ({len(rows):,} series)", [Table("Not compared", columns, groups)])
