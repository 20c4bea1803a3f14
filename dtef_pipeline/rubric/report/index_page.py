"""The first page: the leaderboard with its slider, the blueprints, champions, agreement, drift, costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.report.drift_chapter import drift_chapters
from dtef_pipeline.report.isolated import inline, missing, wrapping_name
from dtef_pipeline.report.markup import (
    DASH,
    Column,
    as_is,
    fold,
    is_unknown,
    named,
    note,
    paragraph,
    scrolling,
    section,
    table,
    text,
    three,
    whole,
)
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import packed
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.rubric.aggregate import rescored
from dtef_pipeline.rubric.board import MIN_BLUEPRINTS, TEST_TAG, board
from dtef_pipeline.rubric.hybrid import ScoringPolicy, crossing, hybrid_at
from dtef_pipeline.rubric.levels import RUN_KEYS
from dtef_pipeline.rubric.report.marks import own_file, two_digits
from dtef_pipeline.rubric.report.shared_tables import agreement_section, champions_section
from dtef_pipeline.rubric.report.spending import all_costs_section
from dtef_pipeline.rubric.runs_compared import averaged_runs, unlike_runs
from dtef_pipeline.rubric.watched_drift import WATCHED

_BLUEPRINTS_HOW = (
    "Every blueprint that was read, with the run that its page shows. Best: the model with the highest hybrid score in that run. A blueprint "
    "with errors was read without the parts that they are in."
)
_INTRODUCTION = (
    "<p>How well language models meet the criteria that people wrote down for them. Criteria are judged by several language models or "
    "computed, and answers are compared with ideal ones where there are any. Each blueprint has a page with every response and every "
    "verdict.</p>"
)
_SEARCH = (
    '<label class="search">Find a blueprint <input type="search" data-filters="blueprint-table" autocomplete="off"></label>'
    '<p class="count" role="status" data-counts="blueprint-table">{n} of {n} blueprints</p>'
)
_BLUEPRINT_COLUMNS = (
    Column("link", "Blueprint", named),
    Column("tags", "Tags", named),
    Column("n_prompts", "Prompts", whole),
    Column("n_criteria", "Criteria", whole),
    Column("n_models", "Models", whole, "Models with a score"),
    Column("mean", "Mean", three, "Mean hybrid score of its models, 0-1"),
    Column("best", "Best", named),
    Column("best_score", "Its score", three),
    Column("snapshot", "Run", text),
    Column("n_errors", "Errors", whole, "Findings of the loader that left a part out"),
)


def index_page(
    rows: StoredRows,
    scores: pd.DataFrame,
    order: Sequence[str],
    runs: Mapping[str, str],
    pages: Mapping[str, str],
    *,
    further: Sequence[Chapter] = (),
) -> str:
    """The page. `scores`: rows of whole models; `runs`: the snapshot of each blueprint that is shown; `pages`: the file of each; `further`: its
    last chapters."""
    known = {row["blueprint"]: row for row in rows.rows("rubric_blueprints", _LISTED_FACTS, {})}
    tags = {name: list(row["tags"] or ()) for name, row in known.items()}
    chapters = [
        Chapter(
            "leaderboard",
            "Leaderboard",
            board_section(scores, order, tags, _warnings(rows, scores, order, tags)),
            style=own_file("slider.css"),
            script=own_file("slider.js"),
        ),
        Chapter("blueprints", "Blueprints", _blueprints(scores, runs, pages, known)),
        Chapter("champions", "Champions", champions_section(rows)),
        Chapter("agreement", "Agreement", agreement_section(rows)),
        *drift_chapters(rows, WATCHED, "blueprints"),
        Chapter("costs", "Costs", all_costs_section(rows, runs)),
        *further,
    ]
    return build_report("DTEF: rubrics", _INTRODUCTION, chapters)


def _warnings(rows: StoredRows, scores: pd.DataFrame, order: Sequence[str], tags: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """How the runs on the leaderboard differ, but for beta, at which the page scores all of them anew."""
    runs = rows.frame("rubric_runs")
    if not len(scores) or not {*RUN_KEYS, "judges", "judge_hash", "policy"} <= set(runs):
        return ()
    shown = averaged_runs(scores, runs, order)
    shown = shown[~shown["blueprint"].isin([name for name, own in tags.items() if TEST_TAG in own])]
    return list(unlike_runs(shown.assign(policy=shown["policy"].str.replace(_BETA, "", regex=True))))


_BETA = r"^beta=[^,]*, "
_LISTED_FACTS = ("blueprint", "title", "tags", "n_prompts", "n_criteria", "n_errors")


def _blueprints(scores: pd.DataFrame, runs: Mapping[str, str], pages: Mapping[str, str], known: Mapping[str, StoredRow]) -> str:
    if not pages:
        body = missing("No blueprints yet", "`dtef rubric run` reads them and makes rubric_blueprints")
        return section("blueprints", "Blueprints", _BLUEPRINTS_HOW, body)
    best = _of_runs(scores, runs)
    found = [_listed(name, page, known.get(name, {}), runs.get(name), best.get(name)) for name, page in pages.items()]
    frame = pd.DataFrame(found)
    data = frame.assign(blueprint=list(pages)).drop(columns=["link", "tags", "best"])
    shown = table(frame, _BLUEPRINT_COLUMNS, caption="Blueprints", row_head="link", anchor="blueprint-table", data=data)
    return section("blueprints", "Blueprints", _BLUEPRINTS_HOW, _SEARCH.format(n=len(found)) + shown)


def _of_runs(scores: pd.DataFrame, runs: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """The scored models of each blueprint in the run that is shown, best first."""
    if not len(scores):
        return {}
    here = scores[scores["snapshot"].astype(str) == scores["blueprint"].astype(str).map(runs)]
    here = here[here["hybrid"].notna()].sort_values(["hybrid", "model"], ascending=[False, True])
    return {str(name): own for name, own in here.groupby("blueprint", sort=True)}


def _listed(name: str, page: str, about: Mapping[str, Any], snapshot: str | None, models: pd.DataFrame | None) -> StoredRow:
    title = about.get("title") or name
    beneath = f'<span class="note"><bdi>{escape(name)}</bdi></span>' if title != name else ""
    tags = "".join(f'<span class="tag">{inline(tag)}</span>' for tag in about.get("tags") or ())
    return {
        "link": f'<span class="name"><a href="{page}">{inline(title)}</a></span>{beneath}',
        "tags": tags,
        **{count: about.get(count) for count in ("n_prompts", "n_criteria", "n_errors")},
        "snapshot": snapshot,
        "n_models": 0 if models is None else len(models),
        "mean": None if models is None else float(models["hybrid"].mean()),
        "best": "" if models is None else inline(models["model"].iloc[0]),
        "best_score": None if models is None else float(models["hybrid"].iloc[0]),
    }


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


_MOST_CHANGES = 60
"""Changes that are listed, those of the best places."""
_EDGE = 1e-9
"""What differs by less is the same weight, or the same score."""
_CHANGE_COLUMNS = (
    Column(
        "beta",
        "Weight (beta)",
        as_is,
        "Weight of similarity at which the two have the same score; a press shows the board there",
    ),
    Column("rises", "Model ahead above it", named, "Better where similarity weighs more"),
    Column("falls", "Model ahead below it", named, "Better where coverage weighs more"),
    Column("place", "Place", whole, "Place that they change about, 1 is the best"),
)


class PlaceChange(NamedTuple):
    """Two models that have the same score at one weight, and change places there."""

    beta: float
    """Weight of the similarity, above 0 and below 1."""
    rises: str
    """The model that is better above it."""
    falls: str
    place: int
    """The place of both at this weight, from 1."""


def place_changes(models: Sequence[Mapping[str, Any]], least: int) -> list[PlaceChange]:
    """All changes among the ranked, by weight. `models`: as of `slider_data`; ranked are those with a score in at least `least` blueprints."""
    ranked = [one for one in models if one["at_0"] is not None and one["n"] >= least]
    at_0, slope = (np.array([one[name] for one in ranked], dtype=np.float64) for name in ("at_0", "slope"))
    found = []
    for one, other in combinations(ranked, 2):
        beta = crossing((one["at_0"], one["slope"]), (other["at_0"], other["slope"]))
        if beta is None or not _EDGE < beta < 1 - _EDGE:
            continue
        rises, falls = (one, other) if one["slope"] > other["slope"] else (other, one)
        ahead = hybrid_at(at_0, slope, beta) > float(hybrid_at(one["at_0"], one["slope"], beta)) + _EDGE
        found.append(PlaceChange(beta, str(rises["model"]), str(falls["model"]), int(ahead.sum()) + 1))
    return sorted(found)


def changes_part(changes: Sequence[PlaceChange]) -> str:
    """The changes in words and as a table, beneath the slider; of many, those of the best places."""
    listed = sorted(sorted(changes, key=lambda change: (change.place, change))[:_MOST_CHANGES])
    if not listed:
        return '<p class="count">No two ranked models change places at any weight.</p>'
    frame = pd.DataFrame(listed)
    shown = frame.assign(
        beta=[f'<button type="button" class="to-beta" data-beta="{beta:.4f}">{beta:.3f}</button>' for beta in frame["beta"]],
        rises=frame["rises"].map(wrapping_name),
        falls=frame["falls"].map(wrapping_name),
    )
    more = f" Listed are the {len(listed)} at the best places." if len(changes) > len(listed) else ""
    body = table(shown, _CHANGE_COLUMNS, caption="Weights at which two models change places", data=frame)
    return f'<p class="count">{_first_place(changes)}.{more}</p>' + fold("Where models change places", body)


def _first_place(changes: Sequence[PlaceChange]) -> str:
    first = [change for change in changes if change.place == 1]
    told = "; ".join(f"from {change.beta:.3f} on {inline(change.rises)} is before {inline(change.falls)}" for change in first)
    times = "once" if len(changes) == 1 else f"{len(changes):,} times"
    leader = f", and the first place changes: {told}" if told else ", and the first place never"
    return f"Between 0 and 1 two models change places {times}{leader}"
