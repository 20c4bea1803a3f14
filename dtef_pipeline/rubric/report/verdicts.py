"""Criteria and what judges and functions found: the table of a prompt's criteria against its responses, and each response's verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple

from dtef_pipeline.report.markup import is_unknown, shortened
from dtef_pipeline.report.stored_rows import StoredRow
from dtef_pipeline.rubric.blueprint.model import EXTRACTED, SHOULD_NOT
from dtef_pipeline.rubric.report.marks import Heat, HeatRow, heat_table, score_badge, source, two_digits
from dtef_pipeline.rubric.results.blueprint_run import ResponseKey, criterion_key, mean
from dtef_pipeline.rubric.results.judged_points import JudgedPoints, criteria_counted, criterion_words, judges_answered

PARTIAL_SIGN = "◐"
_SHORT_CRITERION = 110
"""Characters of a criterion beside its verdicts; its whole text stands in the table of criteria."""


class Across(NamedTuple):
    """One column of a prompt's tables: a response, or where there are too many of them a model."""

    name: str
    keys: Sequence[ResponseKey]
    anchor: str = ""
    """Of the response; empty: the column is of several."""


def criteria_table(
    criteria: Sequence[StoredRow], across: Sequence[Across], found: JudgedPoints, cells: Sequence[HeatRow]
) -> str:
    """Criteria down, responses across; `cells` are the rows of the scores that they come to."""
    rows: list[HeatRow] = []
    group = None
    for number, row in enumerate(criteria, 1):
        if (row["block"], row["path"]) != group:
            group = (row["block"], row["path"])
            rows.append(HeatRow(_group_words(row)))
        rows.append(HeatRow(_criterion_head(number, row), [_point_cell(one, number, row, found) for one in across]))
    caption = f"Criteria against {'responses' if all(one.anchor for one in across) else 'models (means over their responses)'}"
    return heat_table(caption, "Criterion", [one.name for one in across], [*rows, *cells])


def _group_words(row: Mapping[str, Any]) -> str:
    wanted = "Should not: a point is 1 less how far it is met" if row["block"] == SHOULD_NOT else "Should"
    return wanted if is_unknown(row["path"]) else f"{wanted}, alternative path {int(row['path']) + 1}"


def _criterion_head(number: int, row: Mapping[str, Any]) -> str:
    weight = "" if is_unknown(row["weight"]) or row["weight"] == 1 else f' <span class="flag">weight {row["weight"]:g}</span>'
    parts = [
        f'<span class="what" dir="auto">{number}. {escape(criterion_words(row))}{weight}</span>',
        *([f'<span class="small">{_source_words(str(row["source"]))}</span>'] if row["source"] else []),
        *(
            [f'<span class="small flagged">Cannot be scored: <bdi>{escape(str(row["fault"]))}</bdi></span>']
            if row["fault"]
            else []
        ),
        *([f'<span class="small">Source: {source(row["citation"])}</span>'] if row["citation"] else []),
    ]
    return "".join(parts)


def _source_words(written: str) -> str:
    if written == EXTRACTED:
        return "extracted: a model found it in the ideal answer"
    return f"written as <bdi>{escape(written)}</bdi>"


def _point_cell(one: Across, number: int, criterion: StoredRow, found: JudgedPoints) -> Heat | None:
    key = criterion_key(criterion)
    points = [point for response in one.keys if (point := found.points.get((response, key))) is not None]
    if not points:
        return None
    score = mean(point["score"] for point in points)
    partial = any(point["partial"] for point in points)
    reasons = sorted({str(point["reason"]) for point in points if not is_unknown(point["reason"])})
    said = [row for response in one.keys for row in found.judgements.get((response, key), ())]
    state = _state(points[0], said) if len(points) == 1 else ""
    told = f"{one.name}: {two_digits(score)}" + (f"; {state}" if state else "")
    told += f"; unscored: {', '.join(reasons)}" if reasons and len(points) > 1 else ""
    link = f"#{one.anchor}c{number}" if one.anchor else ""
    return Heat(score, told, link, f"&#8239;{PARTIAL_SIGN}" if partial else "")


def _state(point: Mapping[str, Any], judgements: Iterable[Mapping[str, Any]]) -> str:
    """Why a point is unscored, or between which bounds it lies where votes are missing; nothing where it is whole."""
    if is_unknown(point["score"]):
        return f"unscored: {point['reason'] or 'no reason was kept'}"
    if not point["partial"]:
        return ""
    within = (
        ""
        if is_unknown(point["low"])
        else f", between {two_digits(point['low'])} and {two_digits(point['high'])} whatever the missing would say"
    )
    return f"partial: {judges_answered(point, judgements)}{within}"


def verdicts(anchor: str, key: ResponseKey, criteria: Sequence[StoredRow], found: JudgedPoints) -> str:
    """Every criterion of one response, met or not: its point, and each judge's class and reflection or what the function found."""
    items = [
        _verdict(
            f"{anchor}c{number}",
            number,
            row,
            found.points.get((key, criterion_key(row))),
            found.judgements.get((key, criterion_key(row)), ()),
        )
        for number, row in enumerate(criteria, 1)
        if (key, criterion_key(row)) in found.points or (key, criterion_key(row)) in found.judgements
    ]
    if not items:
        return ""
    return (
        f'<details class="verdicts"><summary>Verdicts on {criteria_counted(len(items))}</summary>'
        f"<ul>{''.join(items)}</ul></details>"
    )


def _verdict(anchor: str, number: int, row: StoredRow, point: StoredRow | None, judgements: Sequence[StoredRow]) -> str:
    words = _short_markup(criterion_words(row))
    badge = score_badge(None if point is None else point["score"])
    state = "" if point is None else _state(point, judgements)
    turned = '<span class="flag">should not</span>' if row["block"] == SHOULD_NOT else ""
    flags = turned + (f'<span class="flag warn">{escape(state)}</span>' if state else "")
    explained = (
        ""
        if point is None or is_unknown(point["explanation"])
        else f'<p class="reflection" dir="auto">{escape(str(point["explanation"]))}</p>'
    )
    told = "".join(map(_judgement, judgements))
    return (
        f'<li id="{anchor}"><p class="criterion" dir="auto">{badge} {number}. {words} {flags}</p>{explained}'
        f"{f'<ul>{told}</ul>' if told else ''}</li>"
    )


@lru_cache(maxsize=4096)
def _short_markup(words: str) -> str:
    """A criterion stands beside each response to its prompt."""
    return escape(shortened(words, _SHORT_CRITERION))


@lru_cache(maxsize=4096)
def _name_markup(judge: str) -> str:
    return escape(judge)


def _judgement(row: Mapping[str, Any]) -> str:
    again = '<span class="flag">asked twice</span>' if (row["attempts"] or 1) > 1 else ""
    whose = _name_markup(str(row["judge"])) + (f", draw {row['judge_draw']}" if row["judge_draw"] else "")
    reflection = (
        "" if is_unknown(row["reflection"]) else f'<span class="reflection" dir="auto">{escape(str(row["reflection"]))}</span>'
    )
    return f'<li><bdi class="judge">{whose}</bdi> {_class(row)} {again}{reflection}{_raw(row)}</li>'


def _class(row: Mapping[str, Any]) -> str:
    if is_unknown(row["class"]):
        why = row["reason"] or "no reason was kept"
        return f'<span class="flag warn">no verdict: {escape(str(why))}</span>'
    words = str(row["class"]).removeprefix("CLASS_").lower().replace("_", " ")
    return f'<span class="class">{escape(words)}</span> <span class="count">{two_digits(row["score"])}</span>'


def _raw(row: Mapping[str, Any]) -> str:
    """The replies of a judge that could not be read, and why there is none."""
    replies = [str(reply) for reply in row["raw"] or () if reply]
    error = "" if is_unknown(row["error"]) else f'<span class="reflection" dir="auto">{escape(str(row["error"]))}</span>'
    if not replies or not is_unknown(row["class"]):
        return error
    shown = "".join(f'<div class="said" dir="auto">{escape(reply)}</div>' for reply in replies)
    return f"{error}<details><summary>What the judge wrote</summary>{shown}</details>"
