"""A board: the players of a scenario by one metric, the best first, each with a bar and its interval; baselines are the yardstick."""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd

from dtef_pipeline.games.metrics import BESIDE_METRICS, DEFAULT_RATE, REFUSED_RATE, SHARE_UNIT
from dtef_pipeline.games.personas import PERSONA_STATUS, unapproved_mark
from dtef_pipeline.games.report.league_rows import ScenarioResults
from dtef_pipeline.games.same_games import GAMES_NOTE, PLAYED_COVERAGE, UNPLAYED_NOTE, places
from dtef_pipeline.report.isolated import inline
from dtef_pipeline.report.markup import (
    DASH,
    Column,
    as_is,
    fold,
    is_unknown,
    name_with_notes,
    named,
    paragraph,
    table,
    whole,
    with_interval,
)
from dtef_pipeline.report.svg import across, domain, dot, drawing, group, line
from dtef_pipeline.text.counted import and_more

PLAYERS_HOW = (
    "Players best first, with the mean over their episodes and its 95 % interval. An interval goes by seeds: both seats, "
    "all opponents and all draws of one deal hang together. Baselines play for nothing and always alike: they are the yardstick, and the "
    "dashed line stands at the best of them. Beside each mean stands how often the player's texts were no moves: a player that cannot move is "
    "not careful."
)
_SIDE_WORDS = {"higher": "higher is better", "lower": "lower is better"}
_LANE_HEIGHT = 26
_LANE_MIDDLE = _LANE_HEIGHT / 2


def per_turn(value: Any) -> str:
    """A rate per turn or episode, to two decimals."""
    return DASH if is_unknown(value) else f"{value:.2f}" if value else "0"


_PLAYER_COLUMNS_SHOWN = (
    Column("place", "Rank", whole),
    Column("who", "Player", named),
    Column("lane", "", as_is),
    Column("shown", "Mean", as_is, "Mean over episodes; 95 % interval by seed beneath"),
    Column("n_episodes", "Episodes", whole, "Episodes that say something of the metric"),
    Column("n_clusters", "Seeds", whole, "Deals, each in all seats: what the interval goes by"),
    Column("illegal_rate", "Illegal", per_turn, "Texts that were no legal move, refusals apart, per turn"),
    Column("unparsed_rate", "Unparsed", per_turn, "Texts in which no command was found, per turn: a part of the illegal ones"),
    Column(REFUSED_RATE, "Refused", per_turn, "Texts that decline to play, per turn"),
    Column(DEFAULT_RATE, "Made for it", per_turn, "Moves that were made for the player for want of a legal one, per turn"),
    Column("forfeit_rate", "Forfeited", per_turn, "Episodes lost for want of a legal move, of all episodes"),
)
_PLAIN_BOARD = (
    *(
        "player",
        PERSONA_STATUS,
        "model_variant",
        "snapshot",
        "opponent",
        "metric",
        "unit",
        "mean",
        "low",
        "high",
        "interval_kind",
    ),
    *("n_episodes", "n_total", "n_clusters", PLAYED_COVERAGE, *BESIDE_METRICS, "reason", UNPLAYED_NOTE),
)


def metric_name(metric: str) -> str:
    return metric.replace("_", " ")


def metric_boards(found: ScenarioResults, *, forms: bool = False) -> str:
    """A board for each metric that has a mean, in parts that open, of which the page's script shows one at a time; the first is open.

    `forms`: those of the form of play, too.
    """
    overall = found.overall
    held = dict(iter(overall.groupby("metric", sort=False)))
    own = [name for name in found.metrics if forms or held[name]["family"].iloc[0] != "form"]
    boards = [_of_metric(found, held[name], at == 0) for at, name in enumerate(own)]
    return (
        f'<div class="metrics" data-of="{found.name}">{"".join(boards)}</div>'
        if boards
        else paragraph("No metric has a value.")
    )


def _of_metric(found: ScenarioResults, rows: pd.DataFrame, is_open: bool) -> str:
    metric, unit = str(rows["metric"].iloc[0]), str(rows["unit"].iloc[0])
    direction, family = str(rows["direction"].iloc[0]), str(rows["family"].iloc[0])
    told = found.told_metrics.get(metric)
    meaning = told.description if told else "The weighted mean of normalised metrics." if family == "composite" else ""
    facts = ", ".join(filter(None, (unit, _SIDE_WORDS.get(direction, "neither way is better"))))
    heading = f'{inline(metric_name(metric))} <span class="count">· {inline(family)} · {inline(facts)}</span>'
    caption = f"{found.name}: {metric_name(metric)} ({facts})"
    return fold(heading, f'<p class="how">{inline(meaning)}</p>{board_of(rows, caption)}', is_open=is_open)


def board_of(rows: pd.DataFrame, caption: str) -> str:
    """The table of one metric; `rows`: best first."""
    low, high = lane_ends(rows)
    unit, first = str(rows["unit"].iloc[0]), best_baseline(rows)
    shown = rows.assign(
        place=_places(rows),
        who=who(rows),
        lane=[_lane(row, low, high, first) for row in rows.to_dict("records")],
        shown=[
            f"{mean}{_why_none(why)}{_why_none(unplayed or None)}{_why_none(note or None)}"
            for mean, why, unplayed, note in zip(
                with_interval(rows, "mean", ("low", "high")), rows["reason"], rows[UNPLAYED_NOTE], rows[GAMES_NOTE], strict=True
            )
        ],
    )
    columns = [
        one._replace(title=f"{low:g} to {high:g} {unit}") if one.name == "lane" else one for one in _PLAYER_COLUMNS_SHOWN
    ]
    return table(shown, columns, caption=caption, row_head="who", data=rows[list(_PLAIN_BOARD)]) + reasons_beneath(rows)


def _why_none(reason: Any) -> str:
    """Why there is no mean or no interval, or why it is no mean like others, beneath where it stands."""
    return short_reason(reason)


def _places(rows: pd.DataFrame) -> pd.Series[Any]:
    """As `places`, of players who have all games that others have; none for those who lack some."""
    return places(rows, ~(rows[PLAYED_COVERAGE] < 1))


def who(rows: pd.DataFrame) -> list[str]:
    """The players as markup, with what is to be known of each: that it is a baseline, or a persona that nobody approved.

    Where two have one name, with the variant; where snapshots differ, with the snapshot.
    """
    several = set(rows["player"][rows["player"].duplicated(keep=False)])
    snapshots = len(set(rows["snapshot"][~rows["is_baseline"]])) > 1
    names = []
    for row in rows.to_dict("records"):
        told = ["baseline"] if row["is_baseline"] else []
        told += [mark] if (mark := unapproved_mark(row.get(PERSONA_STATUS))) else []
        told += [row["model_variant"]] if row["player"] in several else []
        told += [f"snapshot {row['snapshot']}"] if snapshots and not row["is_baseline"] else []
        names.append(name_with_notes(str(row["player"]).removeprefix("baseline/"), told))
    return names


def lane_ends(rows: pd.DataFrame) -> tuple[float, float]:
    """The ends of the axis: 0 to 1 for shares, else around all means, their intervals and 0."""
    if (rows["unit"] == SHARE_UNIT).all():
        return 0.0, 1.0
    return domain([0.0, *rows["mean"], *rows["low"], *rows["high"]])


def best_baseline(rows: pd.DataFrame) -> float | None:
    """The mean of the best baseline, where one way is better; `rows`: best first."""
    own = rows[rows["is_baseline"] & rows["mean"].notna()]
    return float(own["mean"].iloc[0]) if len(own) and rows["direction"].iloc[0] != "none" else None


def _lane(row: dict[Any, Any], low: float, high: float, yardstick: float | None) -> str:
    """A bar from 0 to the mean with its interval, and a line where the best baseline stands."""
    mean, ends = row["mean"], (row["low"], row["high"])
    if is_unknown(mean):
        return ""
    place, kind = across(low, high), "baseline" if row["is_baseline"] else ""
    start, end = sorted((place(0.0), place(float(mean))))
    known = not any(map(is_unknown, ends))
    parts = [
        f'<rect x="{start:.2f}%" y="8" width="{end - start:.2f}%" height="10" class="reach {kind}"/>',
        line(place(0.0), 2, place(0.0), _LANE_HEIGHT - 2, "grid"),
        *([line(place(yardstick), 2, place(yardstick), _LANE_HEIGHT - 2, "yardstick")] if yardstick is not None else []),
        *([line(place(ends[0]), _LANE_MIDDLE, place(ends[1]), _LANE_MIDDLE, f"whisker {kind}")] if known else []),
        dot(place(float(mean)), _LANE_MIDDLE, f"dot {kind}", 4),
    ]
    words = f"{row['player']}: {mean:.4g} {row['unit']}" + (f", 95 % interval {ends[0]:.4g} to {ends[1]:.4g}" if known else "")
    return f'<div class="lane">{drawing([group(parts, words)], _LANE_HEIGHT, words, standalone=False)}</div>'


_FITS_A_CELL = 36
"""Characters of a reason that stand in a cell as they are."""
_MOST_SHARING_A_REASON = 4
_REASON_COLUMNS = ("reason", UNPLAYED_NOTE, GAMES_NOTE)
"""Columns of a board that say something of a mean in a sentence; a board may lack one."""


def short_reason(reason: Any) -> str:
    """What stands beneath a mean: the reason, or of a long one what stands before its colon, and the whole when it is pointed at."""
    if is_unknown(reason) or not reason:
        return ""
    words = _first_words(str(reason))
    told = f' title="{escape(str(reason))}"' if words != reason else ""
    return f'<span class="ci wrapped"{told}>{inline(words)}{"*" if told else ""}</span>'


def reasons_beneath(rows: pd.DataFrame) -> str:
    """One line per reason that was cut in the cells of a board, with the players that it is about; nothing where none was."""
    lines = []
    for column in (name for name in _REASON_COLUMNS if name in rows):
        for reason, own in rows[rows[column].notna()].groupby(column, sort=False)["player"]:
            if reason and _first_words(str(reason)) != reason:
                players = and_more(list(own), _MOST_SHARING_A_REASON)
                lines.append(f'<p class="count">* {inline(str(reason))} ({inline(players)})</p>')
    return "".join(lines)


def _first_words(reason: str) -> str:
    if len(reason) <= _FITS_A_CELL:
        return reason
    return reason.partition(": ")[0][:_FITS_A_CELL]
