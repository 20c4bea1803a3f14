"""Values of whole strategies, from the decision points of small games: without cards, so without luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtef_pipeline.games.exact.strategy_values import EXPLOITABLE_CORRECTED, WON
from dtef_pipeline.games.personas import BASELINE_PREFIX
from dtef_pipeline.games.site.league_rows import ScenarioResults
from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.site.content import Column, Estimate, Section, Table, is_unknown
from dtef_pipeline.site.number_text import show

_STRATEGIES_HOW = (
    "Every decision point was sent to the players. Exploitability is what the best opponent wins per hand, averaged over both seats: "
    "lower is better, 0 is perfect play. Intervals cover other draws of the same player. In a partial strategy a baseline plays at the "
    "decision points that were not sent; it says little about the player and comes last."
)
_STRATEGY_KEYS = ("persona", "model", "model_variant", "snapshot")
_STRATEGY_READ = (
    *(
        "league",
        "scenario",
        "version",
        *_STRATEGY_KEYS,
        "quantity",
        "opponent",
        "value",
        "low",
        "high",
        "unit",
        "scale",
        "reason",
    ),
    *("n_points", "n_missing", "n_draws", "n_readable", "n_filled", "filled_by"),
)
_STRATEGY_COLUMNS = (
    Column("player", "Player", "model"),
    Column("exploitability", "Exploitability ↓", "score", "What the best opponent wins per hand; lower is better"),
    Column("of_random", "Of random play", "percent", "Share of the exploitability of play at random; 0%: perfect play"),
    Column("unreadable", "Unreadable", "percent", "Responses from which no legal command was read; lower is better"),
)
_STRATEGY_COUNT_COLUMNS = (
    Column("n_points", "Points", "count", "Decision points of the strategy", more=True),
    Column("n_missing", "Missing", "count", "Decision points without a strategy", more=True),
    Column("n_draws", "Draws", "count", "Responses that the strategy follows from", more=True),
    Column("note", "Note", "note"),
)


def build_strategies_section(scenario: ScenarioResults) -> Section:
    """Build the table of players by exploitability, with their winnings against each baseline; empty without strategies."""
    rows = scenario.rows
    values = (
        rows.rows("strategy_values", _STRATEGY_READ, scenario.key_values, _STRATEGY_READ[3:])
        if rows.has("strategy_values")
        else []
    )
    groups: dict[tuple[Any, ...], list[StoredRow]] = {}
    for row in values:
        groups.setdefault(tuple(row[key] for key in _STRATEGY_KEYS), []).append(row)
    lines = [_build_line(scenario, key, rows_of) for key, rows_of in groups.items()]
    lines.sort(
        key=lambda row: (
            row["is_partial"],
            is_unknown(row["exploitability"]),
            row["exploitability"].value or 0.0,
            row["player"],
        )
    )
    opponents = sorted({row["opponent"] for row in values if row["quantity"] == WON})
    columns = [
        Column(f"won {opponent}", f"Wins from {opponent.removeprefix(BASELINE_PREFIX)}", "signed", more=True)
        for opponent in opponents
    ]
    unit = str(values[0]["unit"]) if values else ""
    table = Table(f"Exact values of strategies, in {unit}", [*_STRATEGY_COLUMNS, *columns, *_STRATEGY_COUNT_COLUMNS], lines)
    return Section("strategies", "Strategies", [table], _summarize_strategies(lines, unit), _STRATEGIES_HOW)


def _summarize_strategies(lines: Sequence[Mapping[str, Any]], unit: str) -> str:
    players = [row for row in lines if not row["is_partial"] and not is_unknown(row["exploitability"])]
    models = [row for row in players if not row["is_baseline"]]
    best = next(iter(models or players), None)
    if best is None:
        return ""
    share = f", {show(best['of_random'], 'percent')} of what random play loses" if best["of_random"] is not None else ""
    among = (
        f"the least of {len(models)} models"
        if len(models) > 1
        else "the only model"
        if models
        else "a baseline; no model has responses"
    )
    return f"{best['player']} loses at most {show(best['exploitability'])} {unit} to the best opponent{share}: {among}."


def _build_line(scenario: ScenarioResults, key: tuple[Any, ...], rows: Sequence[StoredRow]) -> dict[str, Any]:
    """Build one row per player and snapshot."""
    persona, model, variant, _ = key
    main: StoredRow = next((row for row in rows if row["quantity"] == EXPLOITABLE_CORRECTED), {})
    value, scale = main.get("value"), main.get("scale")
    return {
        **{name: main.get(name) for name in ("n_points", "n_missing", "n_draws")},
        **{f"won {row['opponent']}": Estimate(row["value"], row["low"], row["high"]) for row in rows if row["quantity"] == WON},
        "player": scenario.labels.player(persona, variant, model),
        "is_baseline": model.startswith(BASELINE_PREFIX),
        "exploitability": Estimate(value, main.get("low"), main.get("high")),
        "of_random": max(0.0, float(value)) / scale if value is not None and scale else None,
        "unreadable": 1 - main["n_readable"] / main["n_draws"] if main.get("n_draws") else None,
        "is_partial": bool(main.get("n_filled")),
        "note": _describe_filling(main) if main.get("n_filled") else main.get("reason") if value is None else "",
    }


def _describe_filling(row: StoredRow) -> str:
    """Describe the baseline that completes a strategy, and its share."""
    points = row["n_points"] + row["n_filled"]
    return f"{row['n_points']:,} of {points:,} decision points were sent, {row['filled_by']} plays at the others"
