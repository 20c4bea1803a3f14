"""What whole strategies are worth that were read off the decision points of a small game: a chapter of the scenario's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.games.persona_results import player_names
from dtef_pipeline.games.players import BASELINE_PREFIX
from dtef_pipeline.games.report.league_rows import ScenarioResults
from dtef_pipeline.games.report.player_board import who
from dtef_pipeline.games.strategy_values import EXPLOITABLE_CORRECTED, WON
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    is_unknown,
    named,
    note,
    percent,
    section,
    table,
    text,
    whole,
    with_interval,
)
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows

_STRATEGIES_HOW = (
    "Players were asked at the decision points of the game, so that their strategies are known and what these are worth can be worked out: no "
    "cards, and so no luck. Exploitability is what the best opponent wins per hand, mean of both seats: 0 is perfect play. Intervals are over "
    "other draws of the same player. Least exploitable first; partial strategies, where a baseline "
    "plays in the decision points that nobody asked, stand behind the whole ones: they say little of the player."
)
_STRATEGY_KEYS = ("persona", "model", "model_variant", "snapshot")
_OF_STRATEGIES = (
    *("league", "scenario", "version", *_STRATEGY_KEYS, "quantity", "opponent"),
    *("value", "low", "high", "unit", "scale", "reason", "n_points", "n_missing", "n_draws", "n_readable"),
    *("status", "n_filled", "filled_by"),
)
_ENDS_OF_WON = (("won", "value"), ("low", "low"), ("high", "high"))


def strategy_chapters(rows: StoredRows, found: ScenarioResults) -> list[Chapter]:
    """The chapter; none where no strategy is known."""
    league, _, scenario = found.name.partition("/")
    where = {"league": league, "scenario": scenario, "version": found.version}
    held = rows.rows("strategy_values", _OF_STRATEGIES, where, _OF_STRATEGIES[3:]) if rows.has("strategy_values") else []
    if not held:
        return []
    body = _strategies(found.name, held)
    return [Chapter("strategies", "Strategies", section("strategies", "Strategies", _STRATEGIES_HOW, body))]


def _strategies(name: str, held: Sequence[StoredRow]) -> str:
    own: dict[tuple[str, ...], list[StoredRow]] = {}
    for row in held:
        own.setdefault(tuple(row[key] for key in _STRATEGY_KEYS), []).append(row)
    opponents = sorted({row["opponent"] for row in held if row["quantity"] == WON})
    lines = pd.DataFrame([_line(key, rows, opponents) for key, rows in own.items()])
    lines = lines.sort_values(["is_partial", "value", *_STRATEGY_KEYS], na_position="last", ignore_index=True, kind="stable")
    shown = lines.assign(who=who(lines), exploitability=with_interval(lines, "value", ("low", "high")))
    for at, _ in enumerate(opponents):
        shown[f"against {at}"] = with_interval(lines, f"won {at}", (f"low {at}", f"high {at}"))
    unit = str(held[0]["unit"])
    columns = [
        Column("who", "Player", named),
        Column(
            "exploitability", f"Exploitability ({unit}) ↓", as_is, "What the best opponent wins per hand; 95 % interval beneath"
        ),
        Column("of_random", "Of random play", percent, "Share of the exploitability of play at random: 0 % is perfect play"),
        *(
            Column(f"against {at}", f"against {name_of.removeprefix(BASELINE_PREFIX)}", as_is)
            for at, name_of in enumerate(opponents)
        ),
        Column("unreadable", "Unreadable", percent, "Responses from which no legal command was read"),
        Column("status", "Status", text, "partial: a baseline plays where nobody asked"),
        Column("n_points", "Points", whole, "Decision points of the strategy"),
        Column("n_missing", "Missing", whole, "Decision points without a strategy"),
        Column("n_draws", "Draws", whole, "Responses that the strategy follows from"),
        Column("why", "Note", note),
    ]
    plain = pd.DataFrame(held)
    return table(shown, columns, caption=f"{name}: exact values of strategies, in {unit} per hand", row_head="who", data=plain)


def _line(key: tuple[str, ...], rows: Sequence[StoredRow], opponents: Sequence[str]) -> dict[str, Any]:
    """One row per player and snapshot."""
    persona, model, variant, snapshot = key
    main = next((row for row in rows if row["quantity"] == EXPLOITABLE_CORRECTED), {})
    won = {row["opponent"]: row for row in rows if row["quantity"] == WON}
    (player,) = player_names([persona], [model])
    value, scale = main.get("value"), main.get("scale")
    return {
        **dict(zip(_STRATEGY_KEYS, (persona, model, variant, snapshot), strict=True)),
        **{name: main.get(name) for name in ("value", "low", "high", "n_points", "n_missing", "n_draws", "status")},
        **{f"{name} {at}": won.get(one, {}).get(end) for at, one in enumerate(opponents) for name, end in _ENDS_OF_WON},
        "player": player,
        "is_baseline": model.startswith(BASELINE_PREFIX),
        "of_random": max(0.0, float(value)) / scale if value is not None and scale else None,
        "unreadable": 1 - main["n_readable"] / main["n_draws"] if main.get("n_draws") else None,
        "is_partial": bool(main.get("n_filled")),
        "why": _filled_in(main) if main.get("n_filled") else main.get("reason") if is_unknown(value) else "",
    }


def _filled_in(row: StoredRow) -> str:
    """Who plays how much of a strategy in place of the player."""
    points = row["n_points"] + row["n_filled"]
    return f"{row['n_points']:,} of {points:,} decision points were asked, {row['filled_by']} plays in the others"
