"""The n of rounds: given design effects (Kish 1965), and pairs without n, both stored as findings of the round."""

from __future__ import annotations

from collections.abc import Collection

import duckdb

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.survey.identity import make_round_order
from dtef_pipeline.survey.model import Finding

_CODE = "design-effect"
_WITHOUT_N = "these pairs have no ceiling, skill, worth, corrected error or expected gap, and their intervals ignore the choice of respondents"


def report_design_effect(design_effect: float) -> tuple[Finding, ...]:
    """Return the finding of a round whose effective respondents are n / `design_effect`, or none if it is 1."""
    message = "A design effect is given; ceilings, corrected errors and intervals use n / design effect respondents."
    return (Finding("info", _CODE, message, (f"{design_effect:g}",)),) if design_effect != 1 else ()


def describe_n(connection: duckdb.DuckDBPyConnection, rounds: Collection[str] = ()) -> list[str]:
    """Return lines on the n of the `rounds` (empty: all): given design effects, and rounds with an unknown n; empty if there are none."""
    if not has_table(connection, "survey_findings"):
        return []
    rows = connection.execute(
        "SELECT code, round, items[1] FROM survey_findings WHERE code IN (?, 'n-unknown')", [_CODE]
    ).fetchall()
    rows = sorted((row for row in rows if not rounds or row[1] in rounds), key=lambda row: make_round_order(row[1]))
    by_effect: dict[str, list[str]] = {}
    for code, round_id, effect in rows:
        if code == _CODE:
            by_effect.setdefault(effect, []).append(round_id)
    effects = "; ".join(f"{effect} for {', '.join(names)}" for effect, names in by_effect.items())
    unknown = ", ".join(f"{round_id} ({pairs})" for code, round_id, pairs in rows if code != _CODE)
    lines = []
    if effects:
        lines.append(f"design effect given at ingest: {effects}; ceilings, corrected errors and intervals use n divided by it")
    if unknown:
        lines.append(f"n is unknown in {unknown}: {_WITHOUT_N}")
    return lines
