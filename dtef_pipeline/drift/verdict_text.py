"""Drift verdicts in words and numbers for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten
from typing import Any

from dtef_pipeline.drift.rule import MIN_HOURS, TOO_CLOSE
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.keys import Keys
from dtef_pipeline.text.number_words import format_count

VERDICTS = ("drift", "watch", "none")
"""Worst first."""
NEWS = ("drift", "watch")
"""Verdicts of series that moved."""
_QUOTED = 60
"""Longest displayed text of an item, in characters."""
_HUGE = 6.0
"""log10 from which odds are displayed as a power of ten."""


def format_odds(log10_e: float | None) -> str:
    """Return how much more likely the snapshots are with a shift than without: `1,200 to 1`, `10^14 to 1`; `-` if unknown."""
    if log10_e is None or log10_e != log10_e:
        return "-"
    if log10_e >= _HUGE:
        return f"10^{log10_e:.0f} to 1"
    return f"{float(f'{10**log10_e:.2g}'):,.3g} to 1" if log10_e < 1 else f"{float(f'{10**log10_e:.2g}'):,.0f} to 1"


def format_series(row: Mapping[str, Any], keys: Keys) -> str:
    """Return `gpt-4.1 on GD4/country:kenya, context 0`, without a place for a series over all partitions."""
    return f"{row['model']}{_format_place(row, keys)}, {row['setting']}"


def _format_place(row: Mapping[str, Any], keys: Keys) -> str:
    place = "/".join(row[name] for name in keys.space if row.get(name))
    return f" on {place}" if place else ""


def format_moved_items(items: Sequence[Mapping[str, Any]]) -> str:
    """Return `GD4/q26 “Do you trust …?” -0.2144, GD4/q21 “How often do you …” -0.2132`."""
    texts = [f" “{shorten(text, _QUOTED, placeholder=' …')}”" if (text := item.get("text")) else "" for item in items]
    return ", ".join(f"{item['item']}{text} {item['shift']:+.4f}" for item, text in zip(items, texts, strict=True))


def sort_key_of_verdict(row: Mapping[str, Any]) -> tuple[int, float, str, str]:
    """Return the sort key of rows with a verdict: drift first, then the largest shift or range."""
    rank = VERDICTS.index(row["verdict"]) if row["verdict"] in VERDICTS else len(VERDICTS)
    size = (row["shift"] if row["verdict"] == "drift" else row["gap"]) or 0.0
    return rank, -abs(size), row["model_variant"], row["setting"]


def is_at_least(rows: Sequence[Mapping[str, Any]], verdict: str) -> bool:
    """Return whether a row has this verdict or a worse one, on its model or on all models."""
    worse = VERDICTS[: VERDICTS.index(verdict) + 1]
    return any(row["verdict"] in worse or row.get("shared_verdict") in worse for row in rows)


def describe_early(count: int, minimum: int) -> str:
    """Return the reason of a series with too few snapshots for evidence: `too early: 3 of 6 snapshots`."""
    return f"too early: {count} of {minimum} snapshots"


_EARLY_IN_REASON = re.compile(re.escape(describe_early(0, 0)).replace("0", r"\d+"))


def describe_too_early(row: Mapping[str, Any]) -> str | None:
    """Return `too early: 3 of 6 snapshots` if drift cannot be determined yet, or None if it can or the series is not compared."""
    if row["verdict"] is None or row["log10_e"] is not None:
        return None
    match = _EARLY_IN_REASON.search(row["reason"] or "")
    return match[0] if match else None


def has_shared_shift(row: Mapping[str, Any]) -> bool:
    """Return whether all models moved together from one snapshot on."""
    return row["shared_first_snapshot"] is not None


def describe_shared_shift(row: Mapping[str, Any]) -> str:
    """Return `all models together moved down by 0.0812 since 2026-03-06`, for a row with `has_shared_shift`."""
    return f"all models together moved {format_shift(row['shared_shift'])} since {row['shared_first_snapshot']}"


def format_shift(shift: float) -> str:
    """Return `down by 0.0812`."""
    return f"{'up' if shift > 0 else 'down'} by {abs(shift):.4f}"


def list_changes(row: Mapping[str, Any], subject: Subject) -> list[str]:
    """Return what a verdict is about, a line each: which scores moved, the shift that all models share, other changes such as
    `parse rate since 2026-01-11: parsed 98.0 %, then parsed 85.0 %`, and of series that moved the items that moved most.
    """
    lines = [*(row["shift_notes"] or ())]
    if has_shared_shift(row):
        lines.append(f"{describe_shared_shift(row)}; look for what they share (provider, network, prompts, parser)")
        lines.append("the verdict is `watch`, not `drift`, because no other model stayed the same in these snapshots")
    for change in row.get("changes") or ():
        label = subject.truths if change["kind"] == subject.truth else change["kind"].replace("_", " ")
        lines.append(f"{label} since {change['snapshot']}: {change['before']}, then {change['after']}")
    if row["verdict"] in NEWS and row["top_changes"]:
        lines.append(f"{subject.keys.noun}s that moved most: {format_moved_items(row['top_changes'])}")
    return lines


def describe_judges(row: Mapping[str, Any]) -> str:
    """Return the judges' part in a series that moved; empty if there is none or it did not move."""
    return (row.get("judges_note") or "") if row["verdict"] in NEWS else ""


def list_moved_judges(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence per judge and evaluator whose verdict is drift or watch. `rows`: of JUDGE_DRIFT."""
    return [_judge_words(row) for row in rows if row["verdict"] in NEWS]


def _judge_words(row: Mapping[str, Any]) -> str:
    """Return the sentence of a judge. Early on, the documented rule may have a gap but no shift."""
    size = f"gap {row['gap']:.4f}"
    if row["shift"] is not None:
        has_interval = None not in (row["shift_low"], row["shift_high"])
        interval = f" (95 %: {row['shift_low']:+.4f} to {row['shift_high']:+.4f})" if has_interval else ""
        size = f"shift {row['shift']:+.4f}{interval}"
    since = f" since {row['first_snapshot']}" if row["first_snapshot"] else ""
    anchors = format_count(row["n_items"], "anchor")
    judge = ", ".join(filter(None, (row["judge"], row["evaluator"])))
    return f"judge {judge}: {row['verdict']}{since} on {anchors}, {size}; scores by this judge may have shifted with it"


def build_headline(rows: Sequence[Mapping[str, Any]], subject: Subject) -> str:
    """Return the main finding: the largest drift (model, direction, size, start), else series to watch, else the number compared.

    The largest is by shift; among series to watch by the rule's range.
    """
    if not rows:
        return "No language model was asked; baselines do not drift."
    headline, shifts = _build_headline(rows, subject), list(filter(has_shared_shift, rows))
    if not shifts:
        return headline
    worst = max(shifts, key=lambda row: (abs(row["shared_shift"]), row["model"]))
    words = describe_shared_shift(worst)
    return f"{headline} {words[0].upper()}{words[1:]}{_format_place(worst, subject.keys)}, {worst['setting']}."


def _build_headline(rows: Sequence[Mapping[str, Any]], subject: Subject) -> str:
    drifts = [row for row in rows if row["verdict"] == "drift"]
    watches = [row for row in rows if row["verdict"] == "watch"]
    if drifts:
        top_row = max(drifts, key=lambda row: (abs(row["shift"]), row["model"]))
        return (
            f"Drift in {len(drifts)} of {len(rows)} series. Largest: {format_series(top_row, subject.keys)}, {format_shift(top_row['shift'])} "
            f"since {top_row['first_snapshot']}." + (f" {len(watches)} more to watch." if watches else "")
        )
    if watches:
        top_row = max(watches, key=lambda row: (row["gap"] or 0, row["model"]))
        extremes = top_row["reason"].partition(";")[0]
        return (
            f"{_describe_no_drift(rows)}; {len(watches)} of {len(rows)} series to watch. Largest: "
            f"{format_series(top_row, subject.keys)}: {extremes}."
        )
    n_compared = sum(row["verdict"] is not None for row in rows)
    if not n_compared:
        close = sum(row["reason"].startswith(TOO_CLOSE) for row in rows)
        reason = f": {close} repeated the prompts after less than {MIN_HOURS:.0f} hours" if close else ""
        return f"Nothing could be compared yet ({len(rows)} series){reason}."
    return f"{_describe_no_drift(rows)}: {n_compared} of {len(rows)} series could be compared."


def _describe_no_drift(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return that no series drifted, or that it is too early to tell for some or all compared series."""
    early = list(filter(None, map(describe_too_early, rows)))
    if not early:
        return "No drift"
    words = " and ".join(sorted(set(early)))
    if len(early) == sum(row["verdict"] is not None for row in rows):
        return f"{words[0].upper()}{words[1:]}"
    return f"No drift in {sum(row['log10_e'] is not None for row in rows)} series, and {len(early)} {words}"


_VALUES_IN_REASONS = (
    (re.compile(r"the scores are equal, -?\d+\.\d+ in "), "the scores are equal in "),
    (re.compile(r" \(the scores are equal in [^()]*\)"), ""),
    (re.compile(r" \(-?\d+\.\d+ in [^ ()]+, -?\d+\.\d+ in [^ ()]+\)"), ""),
    (re.compile(r"-?\d+\.\d+ in [^ ;:]+, -?\d+\.\d+ in [^ ;:]+"), "the scores differ"),
    (re.compile(r"the snapshots span \d+\.\d h, "), "the snapshots span too little time, "),
    (re.compile(r"\d[\d,]* of \d[\d,]* prompts of "), "not all prompts of "),
)
"""Values in reasons, and replacements that hold for every series with the reason."""


def group_reasons(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return reasons with the number of their series, the most frequent first. `counts`: series by reason.

    Reasons that differ only in scores, times and counts are merged without these; a single one keeps them.
    """
    totals, texts = Counter[str](), dict[str, str]()
    for reason, series in counts.items():
        group = reason
        for values, words in _VALUES_IN_REASONS:
            group = values.sub(words, group)
        texts[group] = reason if group not in totals else group
        totals[group] += series
    return sorted(((texts[group], series) for group, series in totals.items()), key=lambda pair: (-pair[1], pair[0]))
