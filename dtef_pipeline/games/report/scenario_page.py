"""The page of one scenario: its rules, boards, all metrics, who met whom, personas, how rewards scatter, and episodes to follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.games.exact.strategy_values import EXPLOITABLE_CORRECTED, WON
from dtef_pipeline.games.in_play import unit_in_words
from dtef_pipeline.games.metrics import EXPECTED_RETURN
from dtef_pipeline.games.persona_results import ALL_OPPONENTS, player_names
from dtef_pipeline.games.personas import BASELINE_PREFIX, NO_PERSONA
from dtef_pipeline.games.report.episode_page import ChosenEpisode
from dtef_pipeline.games.report.league_rows import FAMILY_ORDER, MADE_BY_LEAGUE, PLAYER_KEYS, ScenarioResults
from dtef_pipeline.games.report.look import games_file, games_style
from dtef_pipeline.games.report.player_board import PLAYERS_HOW, board_of, metric_boards, metric_name, who
from dtef_pipeline.games.same_games import PLAYED_COVERAGE, whole_coverage
from dtef_pipeline.report.isolated import inline, missing, wrapping_name
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    described,
    estimate,
    fold,
    is_unknown,
    named,
    note,
    paragraph,
    percent,
    section,
    table,
    text,
    whole,
    with_interval,
)
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.report.svg import across, domain, drawing, group, line
from dtef_pipeline.text.counted import counted

_METRICS_HOW = "Every metric of each player, by family, over all opponents; players stand in the order of their mean reward."
_MATCHUPS_HOW = (
    "How the player of a row fares against the opponent of a column, over the same deals in all seats. The ground is the stronger, the "
    "further the mean is from 0."
)
_PERSONAS_HOW = "Read a row: one model as several personas. Read a column: one persona, played by several models. The board has all of them."
_SPREAD_HOW = "The mean reward of each seed, over its seats, opponents and draws, as a histogram: how much of a mean is luck with the deals."
_EPISODES_HOW = "Some episodes, move by move: the best and the worst of a model, and such as went wrong. Ties go to the first by seed and seat."
_EPISODE_TABLE = (
    Column("link", "Why it is shown", named),
    Column("player", "Player", text),
    Column("opponent", "Against", text),
    Column("cluster", "Seed", text),
    Column("outcome", "Outcome", text),
    Column("reward", "Reward", estimate),
    Column("n_turns", "Turns", whole),
    Column("illegal", "Illegal texts", whole),
    Column("noticed", "Noticed", note),
)


class EpisodeLink(NamedTuple):
    """An episode that has a page."""

    page: str
    chosen: ChosenEpisode


def scenario_page(rows: StoredRows, found: ScenarioResults, episodes: Sequence[EpisodeLink]) -> str:
    """The page."""
    chapters = [
        Chapter("rules", "Rules", _rules(found), style=games_style(), script=games_file("games.js")),
        *(_results(rows, found) if len(found.overall) else [Chapter("board", "Board", _no_board())]),
        *same_games_chapters(found),
        *strategy_chapters(rows, found),
        Chapter("episodes", "Episodes", _episodes(episodes)),
    ]
    told = found.pack.manifest.description if found.pack else "This scenario is not installed any more."
    introduction = f'<p><a href="{INDEX_PAGE}">All scenarios</a></p><p>{inline(told)}</p>{_versions(found)}'
    return build_report(found.name, introduction, chapters)


def _results(rows: StoredRows, found: ScenarioResults) -> list[Chapter]:
    overall = found.overall
    players = overall[overall["metric"] == EXPECTED_RETURN]
    return [
        Chapter("board", "Board", section("board", "Board", PLAYERS_HOW, metric_boards(found, forms=True))),
        Chapter("metrics", "All metrics", section("metrics", "All metrics", _METRICS_HOW, metrics_by_family(found))),
        Chapter("matchups", "Matchups", section("matchups", "Matchups", _MATCHUPS_HOW, matchups_grid(found))),
        Chapter("personas", "Personas", section("personas", "Personas", _PERSONAS_HOW, personas_grids(found))),
        Chapter(
            "spread", "Rewards by seed", section("spread", "Rewards by seed", _SPREAD_HOW, reward_spread(rows, found, players))
        ),
    ]


def _no_board() -> str:
    return section("board", "Board", PLAYERS_HOW, missing("No board yet", MADE_BY_LEAGUE))


def _versions(found: ScenarioResults) -> str:
    if not found.older:
        return ""
    earlier = ", ".join(map(str, found.older))
    return paragraph(f"This is version {found.version}; versions are never averaged. The tables also have: {earlier}.")


def _rules(found: ScenarioResults) -> str:
    how = "What every player is told, and how the scenario is played."
    if found.pack is None:
        return section("rules", "Rules", how, paragraph("They are in the manifest of the scenario, which is not installed."))
    manifest = found.pack.manifest
    other = "" if found.playable else f" (installed; these results are of version {found.version})"
    illegal = "it forfeits" if manifest.on_illegal == "forfeit" else "a move is made for it"
    zero_sum = "; what one seat wins, the others lose" if found.pack.scenario.zero_sum else ""
    facts: dict[str, Any] = {
        "Version": f"{manifest.version}{escape(other)}, {escape(manifest.status)}",
        "Seats": joined(manifest.seats),
        "Reward": inline(unit_in_words(found.pack.scenario.unit)) + zero_sum,
        "Usual opponents": joined(manifest.opponents) or "none",
        "Turn limit": f"{manifest.turn_limit:,}",
        "A text that is no move": f"{counted(manifest.retries, 'more text')} in the same turn, then {illegal}",
        "Legal commands": "told in every turn" if manifest.show_legal else "not told",
    }
    words = [manifest.rules, *(f"You must not: {one}" for one in manifest.constraints), manifest.reply_format]
    whole_text = "".join(f'<div class="raw">{escape(one.strip())}</div>' for one in words)
    folded = f'<details class="seen"><summary>The rules, word for word</summary>{whole_text}</details>'
    return section("rules", "Rules", how, described(facts) + folded)


def _episodes(episodes: Sequence[EpisodeLink]) -> str:
    if not episodes:
        return section("episodes", "Episodes", _EPISODES_HOW, missing("No episodes yet", MADE_BY_LEAGUE))
    listed = [
        {
            **one.chosen.row,
            "link": f'<span class="name"><a href="{one.page}">{escape(one.chosen.why)}</a></span>',
            "outcome": str(one.chosen.row["outcome"]).replace("_", " "),
            "noticed": ", ".join(one.chosen.row["flags"] or ()).replace("_", " "),
        }
        for one in episodes
    ]
    frame = pd.DataFrame(listed)
    data = frame.drop(columns=["link", "trace", "flags"])
    return section(
        "episodes",
        "Episodes",
        _EPISODES_HOW,
        table(frame, _EPISODE_TABLE, caption="Episodes move by move", row_head="link", data=data),
    )


AS_ITSELF_TOLD = "as itself"
_ARROWS = {"higher": " ↑", "lower": " ↓"}
_TINTS = 4


def metrics_by_family(found: ScenarioResults) -> str:
    """A table of each family of metrics: one row per player, a column per metric, with its interval."""
    overall = found.overall
    families = [name for name in FAMILY_ORDER if (overall["family"] == name).any()]
    return "".join(_family(found, overall[overall["family"] == name], name, at < 2) for at, name in enumerate(families))


def _family(found: ScenarioResults, rows: pd.DataFrame, family: str, is_open: bool) -> str:
    scored = [name for name in found.metrics if (rows["metric"] == name).any()]
    if not scored:
        return ""
    players = _main_order(found)
    keys = _keys_of(players)
    shown: dict[str, list[str | None]] = {"who": list(who(players))}
    columns = [Column("who", "Player", named)]
    for name in scored:
        own = rows[rows["metric"] == name]
        cells = dict(zip(_keys_of(own), with_interval(own, "mean", ("low", "high")), strict=True))
        shown[name] = [cells.get(key) for key in keys]
        unit, direction, told = own["unit"].iloc[0], str(own["direction"].iloc[0]), found.told_metrics.get(name)
        title = f"{metric_name(name)} ({unit}){_ARROWS.get(direction, '')}"
        columns.append(Column(name, title, as_is, told.description if told else ""))
    plain = rows[[*PLAYER_KEYS, "metric", "unit", "mean", "low", "high", "n_episodes", "n_clusters", "reason"]]
    caption = f"{found.name}: {family}; ↑ higher is better, ↓ lower is better"
    return fold(
        inline(family), table(pd.DataFrame(shown), columns, caption=caption, row_head="who", data=plain), is_open=is_open
    )


def _keys_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Who each row is about."""
    return list(zip(*(frame[name] for name in PLAYER_KEYS), strict=True))


def _main_order(found: ScenarioResults) -> pd.DataFrame:
    """The players, one row each, best first by the mean reward."""
    overall = found.overall
    return overall[overall["metric"] == EXPECTED_RETURN]


def matchups_grid(found: ScenarioResults) -> str:
    """The mean reward of each player (rows) against each opponent (columns)."""
    met = found.matchups
    if not len(met):
        return paragraph("Nobody meets an opponent here: the scenario has one seat.")
    players = _main_order(found)
    order = {(row["persona"], row["model_variant"]): at for at, row in enumerate(players.to_dict("records"))}
    met = met.assign(order=[order.get(pair, len(order)) for pair in zip(met["persona"], met["model_variant"], strict=True)])
    opponents = sorted(met["opponent"].unique(), key=lambda name: (not name.startswith("baseline/"), name))
    met = met.assign(is_baseline=met["model"].str.startswith("baseline/"), cell=_tinted(met))
    lines = met.drop_duplicates(PLAYER_KEYS).sort_values(["order", "model", "model_variant", "persona"], ignore_index=True)
    cells = {(key, against): cell for key, against, cell in zip(_keys_of(met), met["opponent"], met["cell"], strict=True)}
    keys = _keys_of(lines)
    shown = {f"against {at}": [cells.get((key, name)) for key in keys] for at, name in enumerate(opponents)}
    frame = pd.DataFrame({"who": who(lines), **shown})
    columns = [Column("who", "Player", named)]
    columns += [
        Column(f"against {at}", f"against {name.removeprefix('baseline/')}", as_is) for at, name in enumerate(opponents)
    ]
    met = met.sort_values(["order", "model", "model_variant", "persona", "opponent"], ignore_index=True)
    caption = f"{found.name}: mean reward ({met['unit'].iloc[0]}) of the row's player against the column's, with 95 % intervals"
    plain = met[["player", *PLAYER_KEYS, "opponent", "unit", "mean", "low", "high", "n_episodes", "n_clusters", "reason"]]
    return f'<div class="tinted">{table(frame, columns, caption=caption, row_head="who", data=plain)}</div>'


def _tinted(met: pd.DataFrame) -> list[str]:
    """Means with intervals, on a ground that says how far above or below 0 they are."""
    most = float(met["mean"].abs().max()) or 1.0
    cells = with_interval(met, "mean", ("low", "high"))
    return [f'<div class="tint {_tint(mean, most)}">{cell}</div>' for cell, mean in zip(cells, met["mean"], strict=True)]


def _tint(mean: float, most: float) -> str:
    if is_unknown(mean):
        return ""
    step = min(_TINTS, round(abs(mean) / most * _TINTS))
    return f"{'up' if mean > 0 else 'down'}{step}" if step else ""


def personas_grids(found: ScenarioResults) -> str:
    """Of each metric a grid of models (rows) and personas (columns): a row is a model across personas, a column a persona across models."""
    models = found.overall[~found.overall["is_baseline"]] if len(found.overall) else found.overall
    personas = sorted(set(models["persona"])) if len(models) else []
    if set(personas) <= {NO_PERSONA}:
        return paragraph("No persona was played: `--persona ID` of `dtef games run` has every model play one.")
    held = dict(iter(models[models["mean"].notna()].groupby("metric", sort=False)))
    names = [name for name in found.metrics if name in held]
    grids = [_personas_of(held[name], personas, at == 0) for at, name in enumerate(names)]
    return f'<div class="metrics" data-of="{found.name}, personas">{"".join(grids)}</div>'


def _personas_of(rows: pd.DataFrame, personas: list[str], is_open: bool) -> str:
    metric, unit = str(rows["metric"].iloc[0]), str(rows["unit"].iloc[0])
    known = with_interval(rows, "mean", ("low", "high"))
    cells = {
        (variant, persona): cell for variant, persona, cell in zip(rows["model_variant"], rows["persona"], known, strict=True)
    }
    lines = sorted(set(zip(rows["model"], rows["model_variant"], strict=True)))
    names = [model for model, _ in lines]
    shown = {f"persona {at}": [cells.get((variant, persona)) for _, variant in lines] for at, persona in enumerate(personas)}
    told = [wrapping_name(variant if names.count(model) > 1 else model) for model, variant in lines]
    columns = [Column("who", "Model", named)]
    columns += [Column(f"persona {at}", persona or AS_ITSELF_TOLD, as_is) for at, persona in enumerate(personas)]
    caption = f"{metric_name(metric)} ({unit}): {counted(len(lines), 'model')} by {counted(len(personas), 'persona')}"
    plain = rows[
        ["model", "model_variant", "persona", "snapshot", "metric", "unit", "mean", "low", "high", "n_episodes", "n_clusters"]
    ]
    grid = table(pd.DataFrame({"who": told, **shown}), columns, caption=caption, row_head="who", data=plain)
    return fold(f'{inline(metric_name(metric))} <span class="count">· {inline(unit)}</span>', grid, is_open=is_open)


def joined(parts: Iterable[str], shown: Callable[[str], str] = inline) -> str:
    """Names as markup with commas between them."""
    return ", ".join(map(shown, parts))


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


_SAME_GAMES_HOW = (
    "Not all players have played the same seeds against the same opponents, so that the order of the board above compares means of different "
    "games. Here means and intervals are over the games alone (seed, seat and opponent) that all of them have."
)
_NO_GAMES_SHARED = "They have no game in common: `dtef games board --games shared --player NAME` compares some of them."


def same_games_chapters(found: ScenarioResults) -> list[Chapter]:
    """The chapter; none where all players have the same games."""
    overall = found.overall
    if not len(overall) or not (overall[PLAYED_COVERAGE] < 1).any():
        return []
    body, rows = paragraph(_NO_GAMES_SHARED), found.shared
    if len(rows):
        own = rows[(rows["metric"] == EXPECTED_RETURN) & (rows["opponent"] == ALL_OPPONENTS)]
        alike = whole_coverage(own, 1.0)
        body = board_of(alike, f"{found.name}: mean reward on the games that all players have")
    return [Chapter("same-games", "Same games", section("same-games", "Same games", _SAME_GAMES_HOW, body))]


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
