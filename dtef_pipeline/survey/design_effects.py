"""The n of rounds: given design effects (Kish 1965), and pairs without n, both stored as findings of the round."""

from __future__ import annotations

from collections.abc import Collection, Mapping

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


def load_design_effects(connection: duckdb.DuckDBPyConnection, rounds: Collection[str] = ()) -> dict[str, float]:
    """Return the design effects other than 1, by round, from `survey_findings`, of these `rounds` (empty: all)."""
    if not has_table(connection, "survey_findings"):
        return {}
    rows = connection.execute("SELECT round, items[1]::DOUBLE FROM survey_findings WHERE code = ?", [_CODE]).fetchall()
    effects = {round_id: effect for round_id, effect in rows if not rounds or round_id in rounds}
    return {round_id: effects[round_id] for round_id in sorted(effects, key=make_round_order)}


def describe_design_effects(effects: Mapping[str, float]) -> str:
    """Return one line on the design effects of rounds, or a blank."""
    rounds = {effect: [name for name, round_effect in effects.items() if round_effect == effect] for effect in effects.values()}
    effect_text = "; ".join(f"{effect:g} for {', '.join(names)}" for effect, names in rounds.items())
    return (
        f"design effect given at ingest: {effect_text}; ceilings, corrected errors and intervals use n divided by it"
        if effect_text
        else ""
    )


def describe_n(connection: duckdb.DuckDBPyConnection, rounds: Collection[str] = ()) -> list[str]:
    """Return lines on the n of the `rounds` (empty: all): given design effects, and rounds with an unknown n; empty if there are none."""
    lines = [describe_design_effects(load_design_effects(connection, rounds))]
    if has_table(connection, "survey_findings"):
        rows = connection.execute("SELECT round, items[1] FROM survey_findings WHERE code = 'n-unknown'").fetchall()
        unknown = {round_id: pairs for round_id, pairs in rows if not rounds or round_id in rounds}
        named = ", ".join(f"{round_id} ({unknown[round_id]})" for round_id in sorted(unknown, key=make_round_order))
        lines.append(f"n is unknown in {named}: {_WITHOUT_N}" if named else "")
    return [line for line in lines if line]
