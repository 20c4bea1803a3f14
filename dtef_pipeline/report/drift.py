"""Drift: verdicts on each model, what changed, and a timeline of its snapshots; and how far repeated draws agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import (
    NEWS,
    about_words,
    by_verdict,
    change_words,
    grouped_reasons,
    headline,
    moved_words,
    odds,
)
from dtef_pipeline.report.drift_chart import HEIGHT, Rows, described, grouped, key, series_of, timeline
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    estimate,
    fold,
    is_unknown,
    name_with_notes,
    named,
    note,
    only_varying,
    paragraph,
    section,
    table,
    text,
    whole,
    with_intervals,
)
from dtef_pipeline.report.stored_rows import Names
from dtef_pipeline.report.svg import drawing
from dtef_pipeline.report.terminal import rows_named_apart

_MOST_REASONS_TOLD = 20
_HOW_TO_READ_DRIFT = (
    "Whether a model still answers the same prompts as it did. The first snapshots are the baseline, and later ones are compared with "
    "it on the prompts that both asked, {item} by {item}. “drift”: the documented rule flags the series, and the evidence reaches the odds "
    "that are needed, which keep the chance of a false drift among these series at alpha (0.05 unless the panel says otherwise), however "
    "often one looks. “watch”: the rule flags it, the evidence does not reach them (yet). Where other models were asked in the same nights, "
    "the verdict is of what a model did beyond them, and “night” is the verdict on what all of them did together: look then for what they "
    "share. A series at a temperature other than 0 has a timeline and no verdict."
)
_ODDS = (
    "The highest e-value so far: how much likelier the snapshots are with a shift than without; needed so that the chance of a false drift "
    "among these series is alpha"
)
_WAY = Column("way", "Asked as", text)
_MOST_TIMELINES = 60
"""Timelines that are drawn; no reader looks at more, and they would weigh megabytes."""


def drift(found: ModelDrift, subject: Subject, beneath: str) -> str:
    """The section: verdicts on models, timelines, then the markup that is to stand `beneath` them."""
    rows = sorted(rows_named_apart(found.checks.to_pylist()), key=by_verdict)
    body = (
        paragraph(headline(found.checks, subject)) + _models(rows, subject) + _timelines(rows, found, subject)
        if rows
        else paragraph("No model was asked.")
    )
    return section(
        "drift",
        "Drift",
        _HOW_TO_READ_DRIFT.format(item=subject.keys.noun),
        body + beneath,
    )


def _models(rows: Sequence[Mapping[str, Any]], subject: Subject) -> str:
    frame = pd.DataFrame(
        [
            {
                **{name: row[name] for name in ("model", "way", "shift_low", "shift", "shift_high")},
                "verdict": name_with_notes(
                    row["verdict"] or "not compared", [] if row["verdict"] else [_why_not(row["reason"])]
                ),
                "night": row["night_verdict"],
                "since": _unbroken(row["first_snapshot"]),
                "odds": _unbroken(odds(row["log10_e"]))
                + (f'<span class="ci">of {odds(row["threshold"])} needed</span>' if row["threshold"] else ""),
                "n_snapshots": row["n_snapshots"],
                "changes": _wide([*about_words(row), *_changes(row, subject)]),
            }
            for row in rows
        ]
    )
    columns = [
        Column("model", "Model", text),
        Column("verdict", "Verdict", named),
        Column("night", "Night", text, "Verdict on what all models of the same nights did together"),
        _WAY,
        Column("shift", "Shift", as_is, "Mean paired difference since the change, less that before it; 95 % interval"),
        Column("since", "Since", named, "Likeliest first snapshot of the drift"),
        Column("odds", "Odds for drift", named, _ODDS),
        Column("n_snapshots", "Snapshots", whole),
        Column("changes", "What changed", named),
    ]
    shown = with_intervals(frame, [("shift", "shift_low", "shift_high")], sign="+")
    held = (
        pd.DataFrame(rows)
        .drop(columns=["moved", "changes"])
        .assign(changes=["; ".join(_changes(row, subject)) for row in rows])
    )
    return table(shown, columns, caption="Verdict on each model", row_head="model", data=held)


def _why_not(reason: Any) -> str:
    return "" if is_unknown(reason) else str(reason).removeprefix("not compared: ")


def _changes(row: Mapping[str, Any], subject: Subject) -> list[str]:
    return [change_words(change, subject) for change in row["changes"] or []]


def _columns(titles: Mapping[str, str]) -> list[Column]:
    return [Column(name, title, text) for name, title in titles.items()]


def _unbroken(words: str | None) -> str:
    return f'<span style="white-space:nowrap">{text(words)}</span>'


def _wide(lines: Sequence[str]) -> str:
    """Lines of text that would make a narrow column a page long."""
    return f'<span style="display:block;min-width:16rem">{"<br>".join(map(escape, lines))}</span>' if lines else ""


def _figure(row: Mapping[str, Any], own: Rows, subject: Subject) -> str:
    """The timeline of a series; beneath it what the rule says, and for one that moved which items did."""
    moved = moved_words(row["moved"] or []) if row["verdict"] in NEWS else ""
    lines = [
        f"Rule: {row['reason']}.",
        *([f"{subject.keys.noun.capitalize()}s that moved most: {moved}."] if moved else []),
    ]
    chart = drawing([timeline(own, row)], HEIGHT, described(own, row), standalone=False)
    return f"<figure>{chart}<figcaption>{'<br>'.join(map(escape, lines))}</figcaption></figure>"


def _timelines(rows: Sequence[Mapping[str, Any]], found: ModelDrift, subject: Subject) -> str:
    """Those of models that moved in sight, the others folded."""
    series = grouped(found.series.to_pylist())
    drawn = [(row, own) for row in rows if (own := series.get(series_of(row)))]
    if not drawn:
        return paragraph("No series has two snapshots.")
    parts = {
        is_news: "".join(
            _figure(row, own, subject) for row, own in drawn[:_MOST_TIMELINES] if (row["verdict"] in NEWS) is is_news
        )
        for is_news in (True, False)
    }
    facets = {is_news: f'<div class="panels">{markup}</div>' for is_news, markup in parts.items() if markup}
    quiet = (
        fold("Timelines of the other series", facets[False]) if True in facets and False in facets else facets.get(False, "")
    )
    rest = (
        paragraph(f"Timelines of {len(drawn) - _MOST_TIMELINES} more series are left out.")
        if len(drawn) > _MOST_TIMELINES
        else ""
    )
    return key() + facets.get(True, "") + quiet + rest


def partition_checks(connection: duckdb.DuckDBPyConnection, names: Names) -> str:
    """What the stage `drift_checks` found of single partitions; a line where it has not run."""
    if not has_table(connection, "drift_checks"):
        return paragraph(f"No drift checks of {names.part}s yet.")
    checked, compared, flagged, drifted = connection.execute(
        "SELECT count(*), count(gap), coalesce(sum(flagged::INT), 0), count(*) FILTER (verdict = 'drift') FROM drift_checks"
    ).fetchall()[0]
    counts = f"Single {names.part}s: {flagged} flagged of {compared} compared ({checked} series in all); {drifted} drifted."
    return paragraph(counts) + _reasons(connection) + _flagged(connection, names)


def _reasons(connection: duckdb.DuckDBPyConnection) -> str:
    """Why series were not compared, where that was so."""
    rows = connection.execute(
        "SELECT coalesce(reason, ''), count(*) FROM drift_checks WHERE gap IS NULL GROUP BY ALL"
    ).fetchall()
    most = grouped_reasons(dict(rows))[:_MOST_REASONS_TOLD]
    frame = pd.DataFrame(most, columns=["reason", "series"])
    columns = [Column("reason", "Why not compared", text), Column("series", "Series", whole)]
    return table(frame, columns, caption="Series that were not compared (most frequent reasons)") if len(frame) else ""


def _flagged(connection: duckdb.DuckDBPyConnection, names: Names) -> str:
    order = ", ".join([*names.place, "model_variant", "way", "prompt_set"])
    frame = connection.execute(f"SELECT * FROM drift_checks WHERE flagged ORDER BY verdict, gap DESC, {order}").df()
    columns = [
        Column("verdict", "Verdict", text),
        *_columns(names.place),
        Column("model", "Model", text),
        _WAY,
        Column("first_snapshot", "Since", text),
        Column("reason", "What was compared", text),
    ]
    caption = f"{names.part.capitalize()}s that the documented rule flags"
    return table(frame, columns, caption=caption) if len(frame) else ""


_RELIABILITY_HOW = (
    "From repeated draws of the same prompts: the share of the variance of single draws that is between prompts (1: draws agree), how far "
    "draws of one prompt differ, and the smallest differences that would be found in 80 % of cases. Nothing is tested here."
)


def reliability(frame: pd.DataFrame, names: Names) -> str:
    """The section, from the rows of `reliability` (empty: there is no such table)."""
    columns = [
        Column("model", "Model", text),
        *_columns(names.asked),
        Column("icc", "Intraclass correlation", as_is),
        Column("within_sd", "SD within", estimate, "Standard deviation of the score between draws of one prompt"),
        Column("between_sd", "SD between", estimate, "Standard deviation of the prompts' true scores"),
        Column(
            "rerun_detectable", "Detectable: rerun", estimate, "Difference of two reruns' means that is found in 80 % of cases"
        ),
        Column(
            "model_detectable",
            "Detectable: models",
            estimate,
            f"Difference of two models' means on as many {names.item}s that is found in 80 % of cases",
        ),
        Column("n_cells", f"{names.cell.capitalize()}s", whole),
        Column("n_draws", "Draws", whole),
        Column("note", "Note", note),
    ]
    shown = with_intervals(frame, [("icc", "low", "high")])
    body = (
        table(
            shown,
            only_varying(frame, columns, names.usual),
            caption="Agreement of repeated draws",
            row_head="model",
            data=frame,
        )
        if len(frame)
        else paragraph("No repeated draws.")
    )
    return section("reliability", "Reliability", _RELIABILITY_HOW, body)
