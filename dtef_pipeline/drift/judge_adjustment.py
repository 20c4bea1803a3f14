"""What the judges' own drift has to do with the shift of a model, and what is left of it without their part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtef_pipeline.drift.judge_verdicts import JudgeDrift
from dtef_pipeline.drift.verdict_text import NEWS
from dtef_pipeline.text.quantity_words import format_count, list_first_names

_MOSTLY, _HARDLY = 2 / 3, 1 / 3
"""Shares of a model's shift that judges account for: from the first on it is theirs, up to the second it is the model's."""
_JUDGES_NAMED = 3


class NetDrift(NamedTuple):
    """The columns of `drift` on the judges of a series."""

    net_shift: float | None
    """The model's shift minus the judges' part, in units of the score; None: not known."""
    judges_note: str
    """Whose shift it is; empty: the model did not move."""


def subtract_judges_of_row(row: Mapping[str, Any], judges: Sequence[JudgeDrift], weight: float = 1.0) -> NetDrift:
    """Attributes a model's drift to the model, its judges or both. `row`: of `ModelDrift`. `judges`: those whose mean scored the model.

    The judges' part is the mean shift of their stored answers, times `weight`: how far a score moves when all its judged points move by 1. The
    shift is the mean of their nights from the first snapshot of the model's drift on, less the mean of those before it, without the model's
    outages. If a judge moved (verdict drift or watch), the drift is reported as the judges' when their part has the same direction and is at
    least two thirds of the model's shift, and as both's when it is more than a third. If the model's shift has no first snapshot, the judges'
    part is not computed.
    """
    if row.get("verdict") not in NEWS or not row.get("shift"):
        return NetDrift(None, "")
    first = row.get("first_snapshot")
    if first is None and judges:
        return NetDrift(None, _describe_not_settled(judges))
    shifts = [shift for j in judges if (shift := j.compute_shift_since(str(first), row.get("outage") or ())) is not None]
    if not judges or len(shifts) < len(judges):
        lacking = f"stored answers of {format_count(len(judges) - len(shifts), 'judge')} are missing"
        lacking = lacking if shifts else "no judge was shown stored answers again"
        return NetDrift(None, f"model or judges: {lacking} in these snapshots")
    shift, part = float(row["shift"]), float(np.mean(shifts)) * weight
    names = [judge.judge for judge in judges if judge.moved]
    return NetDrift(shift - part, f"{_describe_cause(shift, part, names)}{_describe_nights(judges, row)}")


def _describe_not_settled(judges: Sequence[JudgeDrift]) -> str:
    """The cause of a drift without a known first snapshot: the model if every judge has a verdict and none moved, otherwise unsettled."""
    if all(judge.verdict is not None and not judge.moved for judge in judges):
        return "of the model: on stored answers the judges did not move"
    moves = [f"{judge.judge} moved by {move}" for judge in judges if (move := _format_judge_shift(judge)) is not None]
    judge_notes = f"; on stored answers {list_first_names(moves, _JUDGES_NAMED)}" if moves else ""
    return f"model or judges: it is not settled since when the model has moved{judge_notes}"


def _describe_cause(shift: float, part: float, judges: Sequence[str]) -> str:
    """`judges`: those that moved."""
    if not judges:
        return f"a shift of the model: on stored answers the judges did not move ({part:+.4f})"
    words = f"on stored answers {list_first_names(list(judges), _JUDGES_NAMED)} moved too, which makes"
    numbers = f"{part:+.4f} of {shift:+.4f}; net of the judges {shift - part:+.4f}"
    if part / shift >= _MOSTLY:
        return f"a shift of the judges, not of the model: {words} {numbers}"
    if part / shift > _HARDLY:
        return f"model and judges moved: {words} {numbers}"
    return f"a shift of the model: {words} only {numbers}"


def _describe_nights(judges: Sequence[JudgeDrift], row: Mapping[str, Any]) -> str:
    """The judges' nights that differ from the model's, as the end of the text about its shift; empty: none differ."""
    nights = {drift.judge: _describe_other_nights(drift, row) for drift in judges}
    if len(set(nights.values())) == 1:
        return f"; judges shown answers {next(iter(nights.values()))}" if any(nights.values()) else ""
    judge_notes = [f"{judge} {note}" for judge, note in nights.items() if note]
    return f"; judges shown answers: {list_first_names(judge_notes, _JUDGES_NAMED)}"


def _describe_other_nights(judge: JudgeDrift, row: Mapping[str, Any]) -> str:
    """In which nights a judge was shown stored answers, where they are not those of the model; nothing where they are.

    `row`: of MODEL_DRIFT, with a first snapshot of the shift. `in 2026-11-04 to 2026-11-06 and from 2026-11-07 on`.
    """
    sides = judge.sides(row["first_snapshot"])
    if judge.pairs is None or sides is None:
        return ""
    labels, latest = judge.pairs.snapshots, row.get("latest_snapshot")
    first, begin = labels[sides.after[0]], (row.get("baseline") or [None])[0]
    n_nights = row.get("n_snapshots")
    if (
        first == row["first_snapshot"]
        and begin in (None, labels[0])
        and latest in (None, labels[-1])
        and n_nights in (None, len(labels))
    ):
        return ""
    after = f"from {first} on" if latest in (None, labels[-1]) else f"in {_format_span(labels[sides.after[0] :])}"
    gaps = "" if n_nights in (None, len(labels)) else f" ({format_count(len(labels), 'night')}, the model {n_nights})"
    return f"in {_format_span(labels[: sides.after[0]])} and {after}{gaps}"


def _format_span(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"


def _format_judge_shift(judge: JudgeDrift) -> str | None:
    """How far a judge has moved on stored answers by its own verdict: `-0.2003 since 2026-11-06`; None: not known."""
    verdict = judge.verdict
    if verdict is None or verdict.shift is None:
        return None
    return f"{verdict.shift:+.4f} since {verdict.first_snapshot or 'its first nights'}"
