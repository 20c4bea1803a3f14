"""The leaderboard of each way of asking: a forest plot and its table. And what models cannot be told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.families import BETTER, WORSE
from dtef_pipeline.report.charts import SAME_SCORE, Mark, forest
from dtef_pipeline.report.markup import (
    DASH,
    Column,
    Group,
    Shown,
    as_is,
    breakable,
    by_interval,
    figure,
    fold,
    is_unknown,
    name_with_notes,
    named,
    note,
    p_value,
    paragraph,
    scrolling,
    section,
    signed,
    table,
    text,
    whole,
    with_interval,
    with_intervals,
)
from dtef_pipeline.report.stored_rows import Names


class Beneath(NamedTuple):
    """What stands in small beneath a number: a column of the board, how it is shown, and the words around it (`{}` is the number)."""

    name: str
    shown: Shown
    words: str


class BoardColumn(NamedTuple):
    """A column of a board: its heading, how its numbers are shown (none given: by the digits of its interval), and what stands beneath them.

    `ends` are the columns of its interval, `sign` + shows that of positive numbers. `instead` puts something else where a number is unknown:
    it takes the rows and their cells (markup) and returns the cells.
    """

    name: str
    title: str
    shown: Shown | None = None
    meaning: str = ""
    ends: tuple[str, str] | None = None
    sign: str = ""
    beneath: Beneath | None = None
    instead: Callable[[pd.DataFrame, list[str]], list[str]] | None = None


class Board(NamedTuple):
    """How a family's board is read: the text above it, its columns, and the scores to read others by.

    `adjusted` is the sentence for boards where models are ranked by `adjusted_score` and that is not their score.
    """

    how: str
    columns: Sequence[BoardColumn]
    marks: Callable[[pd.DataFrame], Sequence[Mark]]
    adjusted: str


RANK = BoardColumn(
    "rank",
    "Rank",
    whole,
    "Place; beneath it the best and the worst place that the comparisons leave",
    ends=("rank_low", "rank_high"),
)
TIER = BoardColumn("tier", "Tier", whole, "Models of one tier cannot be told apart from its first")
MODEL_COLUMN = BoardColumn("model", "Model", named)


def leaderboard(groups: Iterable[Group], board: Board) -> str:
    """The section; a group is the rows of the overall board that compare, under their heading."""
    parts = [fold(title, _group(rows, board), is_open=at == 0) for at, (title, rows) in enumerate(groups)]
    return section("leaderboard", "Leaderboard", board.how, "".join(parts) or paragraph("No scores yet."))


def _group(rows: pd.DataFrame, board: Board) -> str:
    is_adjusted = _is_adjusted(rows)
    known = [
        column for column in board.columns if _has_any(rows, column.name) and (is_adjusted or column.name != "adjusted_score")
    ]
    cells = {column.name: _cells(rows, column) for column in known if column.name in rows}
    shown = rows.assign(**{**cells, "model": _names(rows)})
    scored = rows[rows["score"].notna()]
    drawn = forest(scored, board.marks(scored), standalone=False) if len(scored) else ""
    chart = figure(drawn, "Hollow dots are baselines. The numbers are in the table below.") if drawn else ""
    why = paragraph(board.adjusted) if is_adjusted else ""
    columns = [
        Column(column.name, column.title, named if column is MODEL_COLUMN else as_is, column.meaning) for column in known
    ]
    return chart + why + table(shown, columns, caption="Leaderboard", row_head="model", data=rows)


def _has_any(rows: pd.DataFrame, name: str) -> bool:
    """Whether a column says anything; the tier does not where models could not be told apart at all. Others stay, with dashes."""
    return name != "tier" or (name in rows and bool(rows[name].notna().any()))


def _is_adjusted(rows: pd.DataFrame) -> bool:
    """Whether some model's adjusted score, which ranks, is not its score."""
    if "adjusted_score" not in rows:
        return False
    apart = (rows["adjusted_score"].astype(float) - rows["score"].astype(float)).abs()
    return bool((apart > SAME_SCORE).any())


def _cells(rows: pd.DataFrame, column: BoardColumn) -> list[str]:
    """Markup for each row: the number, then beneath it its interval and what else belongs to it, where the board has them."""
    cells = list(with_interval(rows, column.name, column.ends or ("", ""), sign=column.sign, shown=column.shown))
    cells = column.instead(rows, cells) if column.instead else cells
    small = column.beneath
    if small is None or small.name not in rows:
        return cells
    return [
        cell + ("" if is_unknown(value) else f'<span class="ci">{small.words.format(small.shown(value))}</span>')
        for cell, value in zip(cells, rows[small.name], strict=True)
    ]


def _names(rows: pd.DataFrame) -> list[str]:
    """Names with what is to be known of them beneath: why there is no interval, that one marginal has seen the answers."""
    notes = rows["note"] if "note" in rows else [None] * len(rows)
    return [name_with_notes(model, [words]) for model, words in zip(rows["model"], notes, strict=True)]


_COMPARISONS_HOW = (
    "Two models compare on the {cell}s that both have a score for, by a t test over whole {clusters}. Two models that are not told apart are in "
    "no order: either may be the better one. p is adjusted (Holm) within three families that were asked in the same way: pairs of language "
    "models, each language model against {reference}, and the other pairs with a baseline. So the probability of any false finding in a "
    "family is at most 5 %. Where readable responses alone say something else than the published policy, their difference is shown too."
)
_SIDES = {"model": "model_variant", "other_model": "other_variant"}
_TURNED = (("model", "other_model"), ("model_variant", "other_variant"), ("score", "other_score"))
_TURNED_ENDS = (("low", "high"), ("high", "low"), ("parsed_low", "parsed_high"), ("parsed_high", "parsed_low"))
_TURNED_VERDICTS = {BETTER: WORSE, WORSE: BETTER}
_INTERVALS = [("difference", "low", "high"), ("parsed_difference", "parsed_low", "parsed_high")]


def comparisons(groups: Iterable[tuple[Group, pd.DataFrame]], names: Names) -> str:
    """The section, from groups of the overall board, each with its own rows of `comparisons` (empty: there are none)."""
    parts, groups = [], list(groups)
    for at, ((title, rows), pairs) in enumerate(groups):
        body = (
            _primary(rows, pairs, names)
            + _tiers(rows, pairs)
            + (_matrix(rows, pairs, names) + _neighbours(rows, pairs, names) if len(pairs) else "")
        )
        if body:
            parts.append(fold(title, body, is_open=at == 0))
    how = _COMPARISONS_HOW.format(clusters=names.clusters, cell=names.cell, reference=names.reference)
    return section("comparisons", "Comparisons", how, "".join(parts) or paragraph("No comparisons yet."))


def _pair_columns(names: Names, pairs: pd.DataFrame) -> list[Column]:
    """Those of readable responses alone where they say something else than the policy."""
    apart = "parsed_note" in pairs and pairs["parsed_note"].fillna("").ne("").any()
    spread = f"Difference over the standard deviation of the differences of the {names.clusters}"
    readable = (
        Column("parsed_difference", "Read alone", as_is, f"Difference over the {names.cell}s that both answered readably"),
        Column("parsed_verdict", "Verdict on these", text),
    )
    return [
        Column("model", "Model", text),
        Column("other_model", "against", text),
        Column("difference", "Difference", as_is, "Mean score of the first less that of the second"),
        Column(
            "p_adjusted",
            "p (adjusted)",
            p_value,
            "Adjusted by Holm over the family's pairs that were asked in the same way",
        ),
        Column("verdict", "Verdict", text),
        *(column for column in readable if apart),
        Column("note", "Note", note),
        Column("effect_size", "Effect size", signed, spread),
        Column("p", "p", p_value),
        Column("n_items", f"{names.item.capitalize()}s", whole),
        Column("n_clusters", names.clusters.capitalize(), whole),
        Column("n_pairs", f"{names.cell.capitalize()}s", whole),
    ]


def _primary(rows: pd.DataFrame, pairs: pd.DataFrame, names: Names) -> str:
    """Each language model against the reference, in the order of the board."""
    if not len(pairs):
        return ""
    models = dict(zip(rows["model_variant"], rows["model"], strict=True))
    found = []
    for pair in pairs.to_dict("records"):
        sides = [pair[variant] for variant in _SIDES.values()]
        if names.reference in sides and not all(map(is_computed, sides)):
            found.append(pair if sides[1] == names.reference else _turned(pair))
    place = {variant: at for at, variant in enumerate(rows["model_variant"])}
    found.sort(key=lambda pair: place.get(pair["model_variant"], len(place)))
    if not found:
        return ""
    frame = pd.DataFrame(found)
    frame = frame.assign(**{name: _called(frame[variant], frame[name], models) for name, variant in _SIDES.items()})
    shown = with_intervals(frame, _INTERVALS, sign="+")
    caption = f"Each language model against {names.reference}"
    return table(shown, _pair_columns(names, frame), caption=caption, row_head="model", data=frame)


def _turned(pair: dict[Any, Any]) -> dict[Any, Any]:
    """The comparison seen from its other side."""
    swapped = {name: pair[other] for one in _TURNED for name, other in (one, one[::-1]) if other in pair}
    minus = (*_TURNED_ENDS, *((name, name) for name in ("difference", "effect_size", "parsed_difference")))
    signs = {name: None if is_unknown(pair.get(other)) else -pair[other] for name, other in minus}
    words = {name: _TURNED_VERDICTS.get(pair[name], pair[name]) for name in ("verdict", "parsed_verdict") if name in pair}
    return {**pair, **swapped, **signs, **words}


def _tiers(rows: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """The tiers; where there are none because no pair could have been told apart, why that is so."""
    if "tier" not in rows or rows["tier"].isna().all():
        reasons = Counter(str(words) for words in pairs["note"] if not is_unknown(words) and words) if len(pairs) else Counter()
        return paragraph(f"No tiers: {reasons.most_common(1)[0][0]}.") if reasons else ""
    tiers = rows[rows["tier"].notna()].groupby("tier", sort=True)["model"].apply(list)
    items = "".join(f"<li>{', '.join(text(model) for model in models)}</li>" for models in tiers)
    return f"<p>Tiers, best first: the first model of a line is not told apart from the others of its line.</p><ol>{items}</ol>"


def _matrix(rows: pd.DataFrame, pairs: pd.DataFrame, names: Names) -> str:
    """Every model against every other, in the order of the board: how much the model of the row leads that of the column."""
    variants = [variant for variant in rows["model_variant"] if variant in {*pairs["model_variant"], *pairs["other_variant"]}]
    models = dict(zip(rows["model_variant"], rows["model"], strict=True))
    cells: dict[tuple[str, str], str] = {}
    for pair in pairs.to_dict("records"):
        for sign, key in ((1, ("model_variant", "other_variant")), (-1, ("other_variant", "model_variant"))):
            cells[pair[key[0]], pair[key[1]]] = _lead(pair, sign)
    head = "".join(f'<th scope="col" title="{text(models[variant])}">{at}</th>' for at, variant in enumerate(variants, 1))
    body = "".join(
        f'<tr><th scope="row" class="text">{at}. {breakable(text(models[one]))}</th>'
        + "".join("<td></td>" if one == other else cells.get((one, other), f"<td>{DASH}</td>") for other in variants)
        + "</tr>"
        for at, one in enumerate(variants, 1)
    )
    marked = f"in grey with ≈ where the two are not told apart, without ≈ where there are too few {names.clusters} to tell"
    caption = f"Lead of the row's model over the column's; {marked}"
    titles = f'<thead><tr><th scope="col" class="text">Model</th>{head}</tr></thead>'
    shown = f'<table class="matrix"><caption>{caption}</caption>{titles}<tbody>{body}</tbody></table>'
    return scrolling(shown, caption, pairs)


def _lead(pair: dict[Any, Any], sign: int) -> str:
    apart = pair["verdict"] == BETTER
    difference = None if is_unknown(pair["difference"]) else sign * pair["difference"]
    shown = by_interval(difference, pair.get("low"), pair.get("high"), sign="+")(difference)
    if apart:
        return f'<td title="p (adjusted) {p_value(pair.get("p_adjusted"))}">{shown}</td>'
    why = "" if is_unknown(pair["note"]) else str(pair["note"])
    if why or pair["verdict"] != "not told apart":  # nothing could have been told apart: that is no sign of being alike
        return f'<td class="even" title="{text(why)}">{shown}</td>'
    return f'<td class="even">≈ {shown}</td>'


def _neighbours(rows: pd.DataFrame, pairs: pd.DataFrame, names: Names) -> str:
    """Each model against the next one of the board."""
    order = list(rows["model_variant"])
    nearby: set[frozenset[str]] = {frozenset(both) for both in pairwise(order)}
    near = pairs[[frozenset(both) in nearby for both in zip(pairs["model_variant"], pairs["other_variant"], strict=True)]]
    place = {variant: at for at, variant in enumerate(order)}
    near = near.iloc[
        [
            *np.argsort(
                [min(place[one], place[two]) for one, two in zip(near["model_variant"], near["other_variant"], strict=True)]
            )
        ]
    ]
    models = dict(zip(rows["model_variant"], rows["model"], strict=True))
    near = near.assign(**{name: _called(near[variant], near[name], models) for name, variant in _SIDES.items()})
    shown = with_intervals(near, _INTERVALS, sign="+")
    return table(shown, _pair_columns(names, near), caption="Neighbours on the board", row_head="model", data=near)


def _called(variants: Iterable[str], names: Iterable[str], models: dict[str, str]) -> list[str]:
    return [models.get(variant, name) for variant, name in zip(variants, names, strict=True)]
