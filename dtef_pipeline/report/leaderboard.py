"""The leaderboard of each context level and condition: a forest plot and its table. And what models cannot be told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.boards.boards import MIN_SEGMENTS
from dtef_pipeline.report.charts import forest
from dtef_pipeline.report.markup import (
    DASH,
    Column,
    as_is,
    figure,
    fold,
    four,
    is_unknown,
    name_with_notes,
    named,
    note,
    one,
    p_value,
    paragraph,
    percent,
    section,
    signed,
    signed_three,
    table,
    text,
    three,
    two,
    whole,
    with_intervals,
)
from dtef_pipeline.survey.report.groups import asked_alike

_HOW = (
    "Higher is better: a dot is a model's mean score, its whisker the 95 % interval. A model left of the marginal lines does worse than "
    "answering for everybody alike; the ceiling is what a perfect predictor would reach on samples of these sizes. The population marginal "
    "contains the answers of the very group it predicts, so it can come near the ceiling or pass it; the leave-one-out marginal does not. "
    f"A model without a score in {MIN_SEGMENTS} segments (or in all, if there are fewer) is shown without a rank."
)
_COLUMNS = [
    Column(
        "rank",
        "Rank",
        as_is,
        "Place; beneath it the places taken in 95 % of resamples, and the share of resamples in which it is first",
    ),
    Column("tier", "Tier", whole, "Models of one tier cannot be told apart from its first"),
    Column("model", "Model", named),
    Column(
        "score", "Score", as_is, "Mean under the published policy: unparseable and refused answers count 0, wrong lengths 0.1"
    ),
    Column(
        "adjusted_score",
        "Ranked by",
        four,
        "Adjusted score: the population marginal's score on all pairs plus the model's advantage over it",
    ),
    Column(
        "parsed_score", "Parsed only", as_is, "Mean over the answers that could be read; beneath it their share of all answers"
    ),
    Column(
        "skill",
        "Skill",
        as_is,
        "Position between the leave-one-out marginal (0) and the ceiling (1); beneath it between the uniform distribution (0) and the ceiling",
    ),
    Column("worth", "Worth", as_is, "Size of a real sample of the group that would predict as well, in respondents"),
    Column("vs_marginal", "vs marginal", as_is, "Mean advantage over the population marginal on the pairs both have"),
    Column(
        "n_pairs", "Pairs", as_is, "Segment and question pairs behind the score; beneath it their share of the board's pairs"
    ),
]
_RANKED_BY = (
    "Not every model has a score on every pair, and some pairs are easier than others. So models are ranked by the adjusted score: what the "
    "population marginal scores on all pairs, plus the model's mean advantage over it on the pairs that both have."
)
_SAME = 1e-9
"""Two scores nearer than this are one: sums in another order."""


def leaderboard(frame: pd.DataFrame) -> str:
    """The section, from rows of the overall board."""
    groups = [fold(title, _group(rows, title), is_open=at == 0) for at, (title, rows) in enumerate(asked_alike(frame))]
    return section("leaderboard", "Leaderboard", _HOW, "".join(groups) or paragraph("No scores yet."))


def _group(rows: pd.DataFrame, title: str) -> str:
    shown = with_intervals(rows, [("score", "score_low", "score_high")], shown=four, bounds=three)
    shown = with_intervals(shown, [("skill", "skill_low", "skill_high")], shown=two, bounds=two)
    shown = with_intervals(shown, [("worth", "worth_low", "worth_high")], shown=one, bounds=one)
    shown = with_intervals(shown, [("vs_marginal", "vs_marginal_low", "vs_marginal_high")], shown=signed, bounds=signed_three)
    shown = with_intervals(shown, [("rank", "rank_low", "rank_high")], shown=whole, bounds=whole)
    shown = shown.assign(worth=_worth(rows, shown["worth"])) if "worth" in rows else shown
    shown = shown.assign(**_with_small_print(rows, shown), model=_names(rows))
    is_adjusted = _is_adjusted(rows)
    known = [column for column in _COLUMNS if _has_any(rows, column.name) and (is_adjusted or column.name != "adjusted_score")]
    drawn = forest(rows, standalone=False) if rows["score"].notna().any() else ""
    chart = figure(drawn, "Hollow dots are baselines. The numbers are in the table below.") if drawn else ""
    why = paragraph(_RANKED_BY) if is_adjusted else ""
    return chart + why + table(shown, known, caption="Leaderboard", row_head="model")


def _has_any(rows: pd.DataFrame, name: str) -> bool:
    """Whether a column says anything; the tier does not where models could not be told apart at all. Others stay, with dashes."""
    return name != "tier" or (name in rows and bool(rows[name].notna().any()))


def _is_adjusted(rows: pd.DataFrame) -> bool:
    """Whether some model's adjusted score, which ranks, is not its score."""
    if "adjusted_score" not in rows:
        return False
    apart = (rows["adjusted_score"].astype(float) - rows["score"].astype(float)).abs()
    return bool((apart > _SAME).any())


def _with_small_print(rows: pd.DataFrame, shown: pd.DataFrame) -> dict[str, list[str]]:
    """Cells with what belongs to them beneath in small: P(best) with the rank, and so on. Only of columns that the board has."""
    beneath = (
        ("rank", "p_best", percent, "first in {}"),
        ("parsed_score", "parse_rate", percent, "{} read"),
        ("skill", "skill_from_uniform", two, "from uniform {}"),
        ("n_pairs", "coverage", percent, "{} of all"),
    )
    plain = {"parsed_score": four, "n_pairs": whole}
    found = {}
    for name, small, shown_as, words in beneath:
        if name not in rows:
            continue
        cells = [plain[name](value) for value in shown[name]] if name in plain else list(shown[name].astype(str))
        extra = rows[small] if small in rows else [None] * len(rows)
        found[name] = [
            cell + ("" if is_unknown(value) else f'<span class="ci">{words.format(shown_as(value))}</span>')
            for cell, value in zip(cells, extra, strict=True)
        ]
    return found


def _names(rows: pd.DataFrame) -> list[str]:
    """Names with what is to be known of them beneath: why there is no interval, that one marginal has seen the answers."""
    notes = rows["note"] if "note" in rows else [None] * len(rows)
    return [name_with_notes(model, [words]) for model, words in zip(rows["model"], notes, strict=True)]


def _worth(rows: pd.DataFrame, cells: pd.Series[Any]) -> pd.Series[Any]:
    """Cells of the column `worth`: an error not above 0 is that of a sample of any size."""
    boundless = rows["worth"].isna() & (rows["l2_corrected"] <= 0)
    return cells.where(~boundless, '<span class="note">more than can be told</span>')


_COMPARISONS_HOW = (
    "Two models compare on the pairs that both have a score for; whole questions are flipped in the permutation test, and p is adjusted for "
    "the number of comparisons (Holm). A difference that is not told apart from none is no ranking."
)
_PAIR_COLUMNS = [
    Column("model", "Model", text),
    Column("other_model", "against", text),
    Column("difference", "Difference", as_is, "Mean score of the first less that of the second"),
    Column("effect_size", "Effect size", signed_three, "Difference over the standard deviation of the questions' differences"),
    Column("p", "p", p_value),
    Column("p_holm", "p (Holm)", p_value, "Adjusted over all comparisons of the group"),
    Column("n_questions", "Questions", whole),
    Column("n_pairs", "Pairs", whole),
    Column("verdict", "Verdict", text),
    Column("note", "Note", note),
]


_SIDES = {"model": "model_variant", "other_model": "other_variant"}


def comparisons(board: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """The section, from the overall board and the rows of `comparisons` (empty: there is no such table)."""
    parts = []
    for at, (title, rows) in enumerate(asked_alike(board)):
        own = _of_group(pairs, rows)
        body = _tiers(rows, own) + (_matrix(rows, own) + _neighbours(rows, own) if len(own) else "")
        if body:
            parts.append(fold(title, body, is_open=at == 0))
    return section("comparisons", "Comparisons", _COMPARISONS_HOW, "".join(parts) or paragraph("No comparisons yet."))


def _of_group(pairs: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    if not len(pairs):
        return pairs
    level, condition = rows["context_level"].iloc[0], rows["condition"].iloc[0]
    own: pd.DataFrame = pairs[(pairs["context_level"] == level) & (pairs["condition"] == condition)]
    return own


def _tiers(rows: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """The tiers; where there are none because no pair could have been told apart, why that is so."""
    if "tier" not in rows or rows["tier"].isna().all():
        reasons = Counter(str(words) for words in pairs["note"] if not is_unknown(words) and words) if len(pairs) else Counter()
        return paragraph(f"No tiers: {reasons.most_common(1)[0][0]}.") if reasons else ""
    tiers = rows[rows["tier"].notna()].groupby("tier", sort=True)["model"].apply(list)
    items = "".join(f"<li>{', '.join(text(model) for model in models)}</li>" for models in tiers)
    return f"<p>Tiers, best first: the first model of a line is not told apart from the others of its line.</p><ol>{items}</ol>"


def _matrix(rows: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """Every model against every other, in the order of the board: how much the model of the row leads that of the column."""
    variants = [variant for variant in rows["model_variant"] if variant in {*pairs["model_variant"], *pairs["other_variant"]}]
    names = dict(zip(rows["model_variant"], rows["model"], strict=True))
    cells: dict[tuple[str, str], str] = {}
    for pair in pairs.to_dict("records"):
        for sign, key in ((1, ("model_variant", "other_variant")), (-1, ("other_variant", "model_variant"))):
            cells[pair[key[0]], pair[key[1]]] = _lead(pair, sign)
    head = "".join(f'<th scope="col" title="{text(names[variant])}">{at}</th>' for at, variant in enumerate(variants, 1))
    body = "".join(
        f'<tr><th scope="row" class="text">{at}. {text(names[one])}</th>'
        + "".join("<td></td>" if one == other else cells.get((one, other), f"<td>{DASH}</td>") for other in variants)
        + "</tr>"
        for at, one in enumerate(variants, 1)
    )
    marked = "in grey with ≈ where the two are not told apart, without ≈ where there are too few questions to tell"
    caption = f"Lead of the row's model over the column's; {marked}"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}</caption>'
        f'<thead><tr><th scope="col" class="text">Model</th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _lead(pair: dict[Any, Any], sign: int) -> str:
    apart = not is_unknown(pair["p_holm"]) and pair["verdict"] == "better"
    shown = signed_three(None if is_unknown(pair["difference"]) else sign * pair["difference"])
    if apart:
        return f'<td title="p (Holm) {p_value(pair["p_holm"])}">{shown}</td>'
    why = "" if is_unknown(pair["note"]) else str(pair["note"])
    if why or pair["verdict"] != "not told apart":  # nothing could have been told apart: that is no sign of being alike
        return f'<td class="even" title="{text(why)}">{shown}</td>'
    return f'<td class="even">≈ {shown}</td>'


def _neighbours(rows: pd.DataFrame, pairs: pd.DataFrame) -> str:
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
    names = dict(zip(rows["model_variant"], rows["model"], strict=True))
    near = near.assign(**{name: _called(near[variant], near[name], names) for name, variant in _SIDES.items()})
    shown = with_intervals(near, [("difference", "low", "high")], shown=signed, bounds=signed_three)
    return table(shown, _PAIR_COLUMNS, caption="Neighbours on the board", row_head="model")


def _called(variants: Iterable[str], models: Iterable[str], names: dict[str, str]) -> list[str]:
    return [names.get(variant, model) for variant, model in zip(variants, models, strict=True)]
