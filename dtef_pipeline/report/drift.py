"""Drift: verdicts on each model, what changed, and a timeline of its snapshots; and how far repeated draws agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.drift.checks import headline
from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.drift.verdict_text import by_verdict, change_words, moved_words, odds
from dtef_pipeline.report.drift_chart import HEIGHT, Rows, described, grouped, key, timeline
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    fold,
    four,
    named,
    note,
    paragraph,
    section,
    signed,
    table,
    text,
    three,
    whole,
    with_intervals,
    without_lone_condition,
)
from dtef_pipeline.report.svg import drawing
from dtef_pipeline.report.terminal import named_apart
from dtef_pipeline.survey.drift import SUBJECT
from dtef_pipeline.survey.report.tables import _found

_HOW = (
    "Whether a model answers the same prompts otherwise than it did. The first snapshots are the baseline, and later ones are compared with "
    "it on the prompts that both asked, question by question. “drift”: the documented rule flags the series, and the evidence reaches the odds "
    "that are needed, which keep the chance of a false drift among these series at alpha (0.05 unless the panel says otherwise), however "
    "often one looks. “watch”: the rule alone. A series at a temperature other than 0 has a timeline and no verdict."
)
_ODDS = (
    "The highest e-value so far: how much likelier the snapshots are with a shift than without; needed so that the chance of a false drift "
    "among these series is alpha"
)
_NEWS = ("drift", "watch")
_MOST = 60
"""Timelines that are drawn; the rest would be read by nobody and weigh megabytes."""


def drift(connection: duckdb.DuckDBPyConnection) -> str:
    """The section: verdicts on models, timelines, then the segments that the documented rule flags, where there is `drift_checks`."""
    found = _found(connection)
    rows = sorted(_named(found.checks.to_pylist()), key=by_verdict(SUBJECT.keys))
    body = (
        paragraph(headline(found.checks, SUBJECT)) + _models(rows) + _timelines(rows, found)
        if rows
        else paragraph("No model was asked.")
    )
    return section("drift", "Drift", _HOW, body + _segments(connection))


def _named(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows, models of several variants called by their variant."""
    names = (
        named_apart(pd.DataFrame([{name: row[name] for name in ("model", "model_variant")} for row in rows])) if rows else None
    )
    return [{**row, "model": name} for row, name in zip(rows, names["model"], strict=True)] if names is not None else []


def _models(rows: Sequence[Mapping[str, Any]]) -> str:
    frame = pd.DataFrame(
        [
            {
                **{name: row[name] for name in ("model", "context_level", "condition", "shift_low", "shift", "shift_high")},
                "verdict": row["verdict"] or "not compared",
                "since": _unbroken(row["first_snapshot"]),
                "odds": _unbroken(odds(row["log10_e"]))
                + (f'<span class="ci">of {odds(row["threshold"])} needed</span>' if row["threshold"] else ""),
                "n_snapshots": row["n_snapshots"],
                "changes": _wide([change_words(change, SUBJECT) for change in row["changes"] or []]),
            }
            for row in rows
        ]
    )
    columns = [
        Column("model", "Model", text),
        Column("verdict", "Verdict", text),
        Column("context_level", "Context", text),
        Column("condition", "Asked as", text),
        Column("shift", "Shift", as_is, "Mean paired difference since the change, less that before it; 95 % interval"),
        Column("since", "Since", named, "Likeliest first snapshot of the drift"),
        Column("odds", "Odds for drift", named, _ODDS),
        Column("n_snapshots", "Snapshots", whole),
        Column("changes", "What changed", named),
    ]
    shown = with_intervals(frame, [("shift", "shift_low", "shift_high")], shown=signed, bounds=signed)
    return table(shown, without_lone_condition(frame, columns), caption="Verdict on each model", row_head="model")


def _unbroken(words: str | None) -> str:
    return f'<span style="white-space:nowrap">{text(words)}</span>'


def _wide(lines: Sequence[str]) -> str:
    """Lines of text that would make a narrow column a page long."""
    return f'<span style="display:block;min-width:21rem">{"<br>".join(map(escape, lines))}</span>' if lines else ""


def _figure(row: Mapping[str, Any], own: Rows) -> str:
    """The timeline of a series; beneath it what the rule says, and for one that moved which questions did."""
    moved = moved_words(row["moved"] or [], SUBJECT) if row["verdict"] in _NEWS else ""
    said = [
        f"Rule: {'flagged; ' if row['flagged'] else ''}{row['reason']}.",
        *([f"Questions that moved most: {moved}."] if moved else []),
    ]
    chart = drawing([timeline(own, row)], HEIGHT, described(own, row), standalone=False)
    return f"<figure>{chart}<figcaption>{'<br>'.join(map(escape, said))}</figcaption></figure>"


def _timelines(rows: Sequence[Mapping[str, Any]], found: ModelDrift) -> str:
    """Those of models that moved in sight, the others folded."""
    series = grouped(found.series.to_pylist())
    drawn = [(row, own) for row in rows if (own := series.get((row["model_variant"], row["context_level"], row["condition"])))]
    if not drawn:
        return paragraph("No series has two snapshots.")
    parts = {
        is_news: "".join(_figure(row, own) for row, own in drawn[:_MOST] if (row["verdict"] in _NEWS) is is_news)
        for is_news in (True, False)
    }
    panels = {is_news: f'<div class="panels">{markup}</div>' for is_news, markup in parts.items() if markup}
    quiet = (
        fold("Timelines of the other series", panels[False]) if True in panels and False in panels else panels.get(False, "")
    )
    rest = paragraph(f"Timelines of {len(drawn) - _MOST} more series are left out.") if len(drawn) > _MOST else ""
    return key() + panels.get(True, "") + quiet + rest


def _segments(connection: duckdb.DuckDBPyConnection) -> str:
    if not has_table(connection, "drift_checks"):
        return paragraph("No drift checks of segments yet.")
    checked, compared, flagged, drifted = connection.execute(
        "SELECT count(*), count(gap), coalesce(sum(flagged::INT), 0), count(*) FILTER (verdict = 'drift') FROM drift_checks"
    ).fetchall()[0]
    said = f"Single segments: {flagged} flagged of {compared} compared ({checked} series in all); {drifted} drifted."
    return paragraph(said) + _reasons(connection) + _flagged(connection)


def _reasons(connection: duckdb.DuckDBPyConnection) -> str:
    """Why series were not compared, where that was so."""
    frame = connection.execute(
        "SELECT reason, count(*) AS series FROM drift_checks WHERE gap IS NULL GROUP BY reason ORDER BY series DESC, reason LIMIT 20"
    ).df()
    columns = [Column("reason", "Why not compared", text), Column("series", "Series", whole)]
    return table(frame, columns, caption="Series that were not compared (most frequent reasons)") if len(frame) else ""


def _flagged(connection: duckdb.DuckDBPyConnection) -> str:
    frame = connection.execute(
        """SELECT * FROM drift_checks WHERE flagged
        ORDER BY verdict, gap DESC, round, segment, model_variant, context_level, condition, prompt_set"""
    ).df()
    titles = {
        "verdict": "Verdict",
        "round": "Round",
        "segment": "Segment",
        "model": "Model",
        "context_level": "Context",
        "condition": "Asked as",
        "first_snapshot": "Since",
        "reason": "What was compared",
    }
    columns = [Column(n, t, text) for n, t in titles.items()]
    return (
        table(frame, without_lone_condition(frame, columns), caption="Segments that the documented rule flags")
        if len(frame)
        else ""
    )


_RELIABILITY_HOW = (
    "From repeated draws of the same prompts: the share of the variance of single draws that is between prompts (1: draws agree), how far "
    "draws of one prompt differ, and the smallest differences that would be found in 80 % of cases."
)


def reliability(frame: pd.DataFrame) -> str:
    """The section, from the rows of `reliability` (empty: there is no such table)."""
    columns = [
        Column("model", "Model", text),
        Column("context_level", "Context", text),
        Column("condition", "Asked as", text),
        Column("icc", "Intraclass correlation", as_is),
        Column("within_sd", "SD within", four, "Standard deviation of the score between draws of one prompt"),
        Column("between_sd", "SD between", four, "Standard deviation of the prompts' true scores"),
        Column("rerun_detectable", "Detectable: rerun", four, "Difference of two reruns' means that is found in 80 % of cases"),
        Column(
            "model_detectable",
            "Detectable: models",
            four,
            "Difference of two models' means on as many questions that is found in 80 % of cases",
        ),
        Column("n_cells", "Pairs", whole),
        Column("n_draws", "Draws", whole),
        Column("note", "Note", note),
    ]
    shown = with_intervals(frame, [("icc", "low", "high")], shown=three, bounds=three)
    body = (
        table(shown, without_lone_condition(frame, columns), caption="Agreement of repeated draws", row_head="model")
        if len(frame)
        else paragraph("No repeated draws.")
    )
    return section("reliability", "Reliability", _RELIABILITY_HOW, body)
