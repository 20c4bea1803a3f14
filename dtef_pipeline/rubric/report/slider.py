"""The leaderboard over blueprints, and what the page needs to rank it anew at another weight of the similarity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.report.download import packed
from dtef_pipeline.report.isolated import missing, wrapping_name
from dtef_pipeline.report.markup import DASH, is_unknown, note, paragraph, scrolling, section
from dtef_pipeline.rubric.aggregate import rescored
from dtef_pipeline.rubric.board import MIN_BLUEPRINTS, board
from dtef_pipeline.rubric.policy import ScoringPolicy
from dtef_pipeline.rubric.report.marks import two_digits
from dtef_pipeline.rubric.report.place_changes import PlaceChange, changes_part, place_changes

_INTERVAL_STEPS = 20
"""Steps from 0 to 1 of the weight at which intervals are computed; between them the page takes the line from one to the next."""
_BOARD_HOW = (
    "Each blueprint counts once, by its latest run that has scores, and each model's score is the plain mean over its blueprints. The hybrid "
    "score of a response is beta times its similarity to the ideal answer plus 1 - beta times its coverage of the rubric; a prompt that defines "
    "one of the two is scored by that one alone. 0 to 1, higher is better. Beneath a score is its 95 % interval, for other blueprints "
    "like these (at each 0.05 of beta; the page takes a straight line between). Beneath a rank are the ranks that the model may truly have, "
    "such as 1 to 3: those of models that tests do not tell apart from it. Two models whose intervals overlap widely may be in "
    "either order. Blueprints are of very different kinds: look at the "
    "one that is like your use before you choose by this table."
)
_NO_SCORES = missing("No leaderboard yet", "`dtef rubric run` makes the table rubric_scores, of which it is the mean")
_EXTENTS = ("low", "high", "rank_low", "rank_high")
_SHOWN_DIGITS = 6
_MARKED_PLACES = 3
_NEARLY = 1e-6
"""Of a tenth: a sum that is one but for its last bits is one."""


def board_section(
    scores: pd.DataFrame, order: Sequence[str], tags: Mapping[str, Sequence[str]], warnings: Sequence[str] = ()
) -> str:
    """The section, with the warnings above its table. `scores`: rows of whole models as of `aggregate.scores`; `order`, `tags` as of `board`."""
    if not len(scores):
        return section("leaderboard", "Leaderboard", _BOARD_HOW, _NO_SCORES)
    data, usual = slider_data(scores, order, tags), ScoringPolicy().beta
    rows = board(rescored(scores, usual), order, tags)
    changes = place_changes(data["models"], data["least"])
    told = "".join(paragraph(f"Warning: {line}.") for line in warnings)
    shown = told + _control(usual, changes) + _table(rows, data) + changes_part(changes)
    return section("leaderboard", "Leaderboard", _BOARD_HOW, shown)


def slider_data(scores: pd.DataFrame, order: Sequence[str], tags: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Per model the score at 0 and its slope, whole, and the ends of its interval and of its places at each of 21 weights from 0 to 1."""
    first = board(rescored(scores, 0.0), order, tags).set_index("model")
    extents = _extents(scores, order, tags)
    models = [
        {
            "model": model,
            "at_0": _plain(row["at_0"]),
            "slope": _plain(row["slope"]),
            "n": int(row["n_parts"]),
            **{name: extents[name, str(model)] for name in _EXTENTS},
        }
        for model, row in first.iterrows()
    ]
    low, high = _drawn_from(models)
    return {"least": MIN_BLUEPRINTS, "steps": _INTERVAL_STEPS, "low": low, "high": high, "models": models}


def _drawn_from(models: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The tenths around all scores and ends of intervals, at whatever weight: where the lines of the table begin and end."""
    known = [one["at_0"] + part * one["slope"] for one in models if one["at_0"] is not None for part in (0, 1)]
    known += [end for one in models for name in ("low", "high") for end in one[name] if end is not None]
    if not known:
        return 0.0, 1.0
    low, high = math.floor(10 * min(known) + _NEARLY) / 10, math.ceil(10 * max(known) - _NEARLY) / 10
    return max(low, 0.0), min(max(high, low + 0.1), 1.0)


def _extents(
    scores: pd.DataFrame, order: Sequence[str], tags: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], list[float | None]]:
    """Each of the ends and each model: its values at the weights from 0 to 1."""
    found: dict[tuple[str, str], list[float | None]] = {}
    for beta in np.linspace(0, 1, _INTERVAL_STEPS + 1):
        rows = board(rescored(scores, float(beta)), order, tags)
        for row in rows.to_dict("records"):
            for name in _EXTENTS:
                found.setdefault((name, row["model"]), []).append(_plain(row[name], _SHOWN_DIGITS))
    return found


def _plain(value: Any, digits: int | None = None) -> float | None:
    return None if is_unknown(value) else float(value) if digits is None else round(float(value), digits)


def _control(beta: float, changes: Sequence[PlaceChange]) -> str:
    """The slider; its marks are the usual weight and those at which the best three change places."""
    places = sorted({f"{beta:.2f}", *(f"{change.beta:.2f}" for change in changes if change.place <= _MARKED_PLACES)})
    marks = "".join(f'<option value="{at}"></option>' for at in ("0", *places, "1"))
    return (
        '<div class="slider"><label for="beta">Weight of similarity (beta) '
        f'<output id="beta-shown" for="beta">{beta:.2f}</output></label>'
        f'<input type="range" id="beta" min="0" max="1" step="0.01" value="{beta}" list="beta-marks" aria-describedby="beta-told">'
        f'<datalist id="beta-marks">{marks}</datalist>'
        '<span class="ends"><span>0: coverage of the rubric alone</span><span>1: similarity to the ideal alone</span></span>'
        f'<p id="beta-told" class="count" role="status">The usual weight is {beta:.2f}. <button type="button" id="beta-usual" '
        f'data-beta="{beta}" hidden>Back to it</button></p></div>'
    )


def _table(rows: pd.DataFrame, data: Mapping[str, Any]) -> str:
    place = {one["model"]: at for at, one in enumerate(data["models"])}
    body = "".join(_row(row, place[row["model"]], data) for row in rows.to_dict("records"))
    ends = f'<span class="ends"><span>{data["low"]:.1f}</span><span>{data["high"]:.1f}</span></span>'
    heads = "".join(
        f'<th scope="col"{kind}{f" title={chr(34)}{meaning}{chr(34)}" if meaning else ""}>{title or ends}</th>'
        for title, kind, meaning in _HEADS
    )
    caption = "Models by mean hybrid score over blueprints"
    shown = f'<table id="board"><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    held = f'<script type="application/json" id="board-data">{packed(data)}</script>'
    return held + scrolling(shown, caption, rows)


_HEADS = (
    ("Rank", "", "Place; beneath it the places that it may truly have"),
    ("Model", ' class="text"', ""),
    ("Hybrid", "", "Mean hybrid score over blueprints; 95 % interval beneath"),
    ("", ' class="text bar" aria-hidden="true"', ""),
    ("Coverage", "", "Mean coverage of the rubrics, over the blueprints that have any"),
    ("Similarity", "", "Mean similarity to the ideal answers, over the blueprints that have any"),
    ("Blueprints", "", "Blueprints with a score"),
    ("Responses", "", "Responses with a score, of those planned"),
)


def _row(row: Mapping[Any, Any], at: int, data: Mapping[str, Any]) -> str:
    ends = "" if is_unknown(row["low"]) else f"{row['low']:.3f} to {row['high']:.3f}"
    places = "" if is_unknown(row["rank_low"]) else f"{row['rank_low']:.0f} to {row['rank_high']:.0f}"
    rank = DASH if is_unknown(row["rank"]) else str(int(row["rank"]))
    return (
        f'<tr data-at="{at}"><td><span class="place">{rank}</span><span class="ci places">{places}</span></td>'
        f'<th scope="row" class="text">{wrapping_name(row["model"])}{note(row["note"])}</th>'
        f'<td><span class="number">{_three(row["score"])}</span><span class="ci extent">{ends}</span></td>'
        f'<td class="bar" aria-hidden="true">{_bar(row, data)}</td>'
        f"<td>{two_digits(row['coverage'])}</td><td>{two_digits(row['similarity'])}</td>"
        f"<td>{int(row['n_parts']):,}</td><td>{int(row['n_responses_scored']):,} of {int(row['n_responses']):,}</td></tr>"
    )


def _three(value: Any) -> str:
    return DASH if is_unknown(value) else f"{float(value):.3f}"


def _bar(row: Mapping[Any, Any], data: Mapping[str, Any]) -> str:
    """The score as a dot on a line, and its interval."""
    if is_unknown(row["score"]):
        return ""
    known = not is_unknown(row["low"])
    low, high, score = (
        100 * (float(end) - data["low"]) / (data["high"] - data["low"])
        for end in (*((row["low"], row["high"]) if known else (row["score"], row["score"])), row["score"])
    )
    return (
        f'<span class="track"><span class="span" style="left:{low:.2f}%;width:{high - low:.2f}%"></span>'
        f'<span class="point" style="left:{score:.2f}%"></span></span>'
    )
