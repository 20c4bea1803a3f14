"""How the rewards of each player scatter over seeds: a small histogram per player, all on one axis."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dtef_pipeline.games.report.league_rows import ScenarioResults
from dtef_pipeline.games.report.player_board import who
from dtef_pipeline.report.markup import Column, as_is, estimate, named, paragraph, table, whole
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.report.svg import across, domain, drawing, group, line

SPREAD_BINS = 24
_SPREAD_HEIGHT = 34
_BY_SEED = (
    "(SELECT league, scenario, version, persona, model, model_variant, snapshot, cluster, avg(reward) AS reward FROM episodes "
    "WHERE status = 'played' GROUP BY ALL)"
)
_SEED_KEYS = ("persona", "model_variant", "snapshot")
_SEED_REWARD_COLUMNS = (
    Column("who", "Player", named),
    Column("spread", "", as_is),
    Column("lowest", "Lowest", estimate),
    Column("median", "Median", estimate),
    Column("highest", "Highest", estimate),
    Column("seeds", "Seeds", whole),
)


def reward_spread(rows: StoredRows, found: ScenarioResults, players: pd.DataFrame) -> str:
    """One row per player: the mean reward of each seed, over its seats, opponents and draws. `players`: one row each, best first."""
    league, _, scenario = found.name.partition("/")
    where = {"league": league, "scenario": scenario, "version": found.version}
    held = (
        rows.table(_BY_SEED, (*_SEED_KEYS, "cluster", "reward"), where, ("cluster",)).to_pandas()
        if rows.has("episodes")
        else None
    )
    if held is None or not len(held) or not len(players):
        return paragraph("No episode was played to its end.")
    own = {key: group["reward"].to_numpy(dtype=np.float64) for key, group in held.groupby(list(_SEED_KEYS))}
    low, high = domain(held["reward"])
    rewards = [own.get(key, np.empty(0)) for key in zip(*(players[name] for name in _SEED_KEYS), strict=True)]
    ends = [np.quantile(one, [0, 0.5, 1]) if len(one) else (np.nan,) * 3 for one in rewards]
    frame = players.assign(
        who=who(players),
        spread=[
            _spread(one, low, high, name, "bar baseline" if base else "bar")
            for one, name, base in zip(rewards, players["player"], players["is_baseline"], strict=True)
        ],
        seeds=[len(one) for one in rewards],
        **{name: [end[at] for end in ends] for at, name in enumerate(("lowest", "median", "highest"))},
    )
    unit = str(players["unit"].iloc[0])
    columns = [
        one._replace(title=f"{low:g} to {high:g} {unit}") if one.name == "spread" else one for one in _SEED_REWARD_COLUMNS
    ]
    return table(frame, columns, caption=f"{found.name}: mean reward of each seed ({unit})", row_head="who")


def _spread(rewards: np.ndarray[tuple[int], np.dtype[np.float64]], low: float, high: float, player: str, kind: str) -> str:
    counts, edges = np.histogram(rewards, bins=SPREAD_BINS, range=(low, high))
    place, most = across(low, high), max(int(counts.max()), 1)
    bottom = _SPREAD_HEIGHT - 3
    bars = [
        group([_spread_bar(place(left), place(right), count / most, bottom, kind)], f"{left:.3g} to {right:.3g}: {count:,}")
        for count, left, right in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        if count
    ]
    base = [line(2, bottom, 98, bottom, "axis"), line(place(0.0), 2, place(0.0), bottom, "grid")]
    return (
        f'<div class="lane">{drawing([*base, *bars], _SPREAD_HEIGHT, f"Rewards of {player} by seed", standalone=False)}</div>'
    )


def _spread_bar(left: float, right: float, share: float, bottom: float, kind: str) -> str:
    tall = max(2.0, (bottom - 4) * share)
    place = f'x="{left + 0.2:.2f}%" y="{bottom - tall:.1f}" width="{right - left - 0.4:.2f}%" height="{tall:.1f}"'
    return f'<rect {place} class="{kind}"/>'
