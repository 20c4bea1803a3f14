"""The page on drift: of each family the verdicts on its models, a timeline of each, and the judges on stored answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import (
    NEWS,
    about_words,
    beside_judges,
    by_verdict,
    change_words,
    grouped_reasons,
    headline,
    moved_judges,
    moved_words,
    odds,
)
from dtef_pipeline.site.content import Block, Chart, Column, Estimate, Fold, Page, Prose, Section, Table, is_unknown, table_rows
from dtef_pipeline.site.contents import ShownFamily, SiteContents
from dtef_pipeline.site.paths import DRIFT_PAGE
from dtef_pipeline.text.counted import and_more

MOST_CHARTED = 30
_MOST_NAMED = 3
"""Series that the first sentence names."""
_ONE_SNAPSHOT = "There is one snapshot only. To detect drift, ask the same items again on another day."
_DRIFT_HOW = (
    "The first snapshots are the baseline; later ones are compared with it on the prompts that both asked. “Drift” means that the documented "
    "rule flags the model and the evidence is strong enough; the bar keeps false alarms rare however often you look. “Watch” means that the "
    "rule flags the model, but the evidence is not strong enough yet. “Night” is the verdict on all models of a night together."
)
_VERDICT_COLUMNS = (
    Column("model", "Model"),
    Column("verdict", "Verdict", always=True),
    Column("shift", "Shift", "signed", "Mean paired difference since the change, less that before it, with its 95% interval"),
    Column("since", "Since", "code", "Likeliest first snapshot of the drift"),
    Column("way", "Asked as"),
    Column("night", "Night", meaning="Verdict on what all models of the same nights did together"),
    Column("odds", "Odds for drift", more=True),
    Column("needed", "Odds needed", more=True),
    Column("n_snapshots", "Snapshots", "count", more=True),
    Column("changes", "What changed", "long"),
    Column("net_shift", "Net of the judge", "signed", "Shift of the model less that of its judges", more=True),
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
        "Mean paired change since the drift began, else since the baseline",
        ends=("shift_low", "shift_high"),
    ),
    Column("n_snapshots", "Nights", "count"),
    Column("n_items", "Answers", "count", "Stored answers with a score in every night"),
    Column("reason", "Why", "note"),
)
_RULE_COLUMNS = (
    Column("partition", "Where", "code"),
    Column("model", "Model"),
    Column("way", "Asked as"),
    Column("gap", "Gap", "score"),
    Column("lowest", "Lowest", "score"),
    Column("lowest_snapshot", "in", "code"),
    Column("highest", "Highest", "score"),
    Column("highest_snapshot", "in", "code"),
    Column("n_items", "Items", "count", more=True),
)


def drift_page(contents: SiteContents) -> Page:
    """The page over all families."""
    sections = [_family_section(contents, one) for one in contents.families]
    loud = [section for section, one in zip(sections, contents.families, strict=True) if _has_news(contents, one)]
    quiet = [section for section in sections if section not in loud]
    shown = [*loud, *([_quiet_section(quiet, bool(loud))] if quiet else [])]
    return Page(
        DRIFT_PAGE,
        "Drift",
        drifted_words(contents),
        shown,
        introduction="Do models still answer the same prompts as they did before?",
    )


def _quiet_section(sections: Sequence[Section], is_beside: bool) -> Section:
    """The families without an alarm, each folded. `is_beside`: whether others have one."""
    lines = Prose([f"{one.title}: {one.answer}" for one in sections if not one.blocks])
    folds = [Fold(f"{one.title}: {one.answer}", one.blocks) for one in sections if one.blocks]
    title = "Families without an alarm" if is_beside else "All families"
    return Section("quiet", title, [*folds, lines], how=_DRIFT_HOW if folds and not is_beside else "")


def _has_news(contents: SiteContents, family: ShownFamily) -> bool:
    """Whether a series of the family drifted or is on watch, or its judges are."""
    judges = contents.rows.frame("judge_drift", {"family": family.name})
    verdicts = [*(row["verdict"] for row in contents.drift_rows[family.name]), *(judges["verdict"] if len(judges) else ())]
    return any(verdict in NEWS for verdict in verdicts)


def drifted_words(contents: SiteContents) -> str:
    """Which series drifted, over all families."""
    found = [f"{row['model']} in {one.site.title}, {row['way']}" for one in contents.families for row in _alarms(contents, one)]
    if not found:
        return "No model is known to have drifted."
    watched = sum(len(contents.drift[one.name]) for one in contents.families)
    return f"{len(found):,} of {watched:,} watched series drifted: {and_more(found, _MOST_NAMED, '; ')}."


def drift_answer(contents: SiteContents, family: ShownFamily) -> str:
    """What a reader should know first of a family's drift."""
    rows = contents.drift[family.name]
    if not len(rows):
        return _ONE_SNAPSHOT
    return headline(rows, family.site.subject)


def _alarms(contents: SiteContents, family: ShownFamily) -> list[dict[str, Any]]:
    return [row for row in contents.drift_rows[family.name] if row["verdict"] == "drift"]


def _family_section(contents: SiteContents, family: ShownFamily) -> Section:
    rows = contents.drift_rows[family.name]
    if all(row["n_snapshots"] is None or row["n_snapshots"] < 2 for row in rows):
        return Section(family.name, family.site.title, [], _ONE_SNAPSHOT)
    compared = sorted((row for row in rows if row["verdict"] is not None), key=by_verdict)
    blocks: list[Block] = [
        verdict_table(contents, family, compared),
        *timelines(contents, family, compared),
        *_rule_blocks(contents, family),
        *_judges(contents, family),
        *_reasons_block([row for row in rows if row["verdict"] is None]),
    ]
    return Section(family.name, family.site.title, blocks, drift_answer(contents, family), _DRIFT_HOW)


def verdict_table(contents: SiteContents, family: ShownFamily, rows: Sequence[Mapping[str, Any]]) -> Table:
    """One row per series, the worst verdict first."""
    return Table("Verdict on each model", _VERDICT_COLUMNS, [_verdict_row(contents, row, family.site.subject) for row in rows])


def _verdict_row(contents: SiteContents, row: Mapping[str, Any], subject: Subject) -> dict[str, Any]:
    changes = [
        *about_words(row),
        *filter(None, [beside_judges(row)]),
        *(change_words(change, subject) for change in row["changes"] or []),
    ]
    if row["verdict"] in NEWS and row["moved"]:
        changes.append(f"{subject.keys.noun}s that moved most: {moved_words(row['moved'])}")
    return {
        "model": contents.model_cell(row["model"]),
        "verdict": row["verdict"] or "not compared",
        "shift": Estimate(row["shift"], row["shift_low"], row["shift_high"]),
        "since": row["first_snapshot"],
        "way": row["way"],
        "night": row["night_verdict"],
        "odds": None if row["log10_e"] is None else odds(row["log10_e"]),
        "needed": None if row["threshold"] is None else odds(row["threshold"]),
        "n_snapshots": row["n_snapshots"],
        "changes": "\n".join(changes),
        "net_shift": Estimate(row["net_shift"], row["net_low"], row["net_high"]),
        "reason": "" if row["verdict"] else row["reason"],
    }


def timelines(contents: SiteContents, family: ShownFamily, rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """The timelines of series: those that moved in sight, the others folded."""
    series = contents.table("drift_series", family.name)
    if not len(series):
        return
    drawn = [(row, own) for row in rows if len(own := _series_of(series, row)) > 1]
    for is_news in (True, False):
        charts = [_timeline(row, own) for row, own in drawn[:MOST_CHARTED] if (row["verdict"] in NEWS) is is_news]
        yield Fold("Timelines of models that moved" if is_news else "Timelines of the other models", charts, is_open=is_news)


def _series_of(series: pd.DataFrame, row: Mapping[str, Any]) -> pd.DataFrame:
    own: pd.DataFrame = series[(series["model_variant"] == row["model_variant"]) & (series["way"] == row["way"])]
    return own


def _timeline(row: Mapping[str, Any], own: pd.DataFrame) -> Chart:
    """A compared snapshot stands at the baseline's mean plus its paired difference, so that failed calls do not move it."""
    based = own[own["in_baseline"].eq(True) & own["difference"].notna()]
    mean = float((based["score"] - based["difference"]).mean()) if len(based) else None
    points = []
    for one in table_rows(own):
        is_compared = bool(one["compared"]) and mean is not None and not is_unknown(one["difference"])
        value = mean + one["difference"] if is_compared and mean is not None else one["score"]
        if not is_unknown(value):
            kind = "baseline" if one["in_baseline"] else "compared" if is_compared else "not compared"
            points.append({"at": one["snapshot"], "value": value, "kind": kind, "note": f"{one['n_shared']} shared prompts"})
    lines = [] if mean is None else [{"value": mean, "label": "mean of the baseline"}]
    caption = f"{row['model']}, {row['way']}: {row['verdict']}. {(row['reason'] or '').capitalize()}"
    return Chart("timeline", points, caption, lines)


def series_chart(series: pd.DataFrame) -> Chart:
    """The scores of several series in one chart, a line each. Takes rows of `drift_series`."""
    shown = [
        {"at": one["snapshot"], "value": one["score"], "label": f"{one['model']}, {one['way']}"}
        for one in table_rows(series)
        if not is_unknown(one["score"])
    ]
    return Chart("series", shown, "Mean score of each snapshot")


def _rule_blocks(contents: SiteContents, family: ShownFamily) -> Iterator[Block]:
    found = contents.table("drift_rule", family.name)
    flagged = found[found["flagged"].eq(True)] if len(found) else found
    if len(flagged):
        ranked = flagged.sort_values(["gap", "partition", "model_variant", "way"], ascending=[False, True, True, True])
        yield Table(
            f"The documented rule flags {len(flagged):,} of {len(found):,}", _RULE_COLUMNS, table_rows(ranked), first=20
        )


def _judges(contents: SiteContents, family: ShownFamily) -> Iterator[Block]:
    found = contents.rows.frame("judge_drift", {"family": family.name})
    if not len(found):
        return
    rows = table_rows(found.sort_values(["judge", "evaluator"]))
    yield Prose([f"{line[:1].upper()}{line[1:]}." for line in moved_judges(rows)])
    yield Table("Judges on stored answers that they judge again every night", _DRIFT_OF_JUDGES, rows)


def _reasons_block(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    counts = pd.Series([row["reason"] or "no reason" for row in rows]).value_counts() if rows else pd.Series(dtype=int)
    if len(counts):
        columns = (Column("reason", "Why", "long"), Column("series", "Series", "count"))
        grouped = [
            {"reason": reason, "series": n} for reason, n in grouped_reasons({str(k): int(v) for k, v in counts.items()})
        ]
        yield Fold(f"Not compared, and why ({len(rows):,} series)", [Table("Not compared", columns, grouped)])
