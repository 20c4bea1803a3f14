"""The verdict on one series from the rule and the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.drift.evidence import NO_OUTAGES, Evidence, Outages, estimate_shift, evidence, find_outages
from dtef_pipeline.drift.paired import Control, Paired, Scores, choose_control, compute_known_evidence, pair_with_baseline
from dtef_pipeline.drift.verdict_tables import EVIDENCE
from dtef_pipeline.drift.verdict_text import describe_early
from dtef_pipeline.text.number_words import list_first_names

Floats = npt.NDArray[np.float64]
_OWN, _OTHERS = 2 / 3, 1 / 3
"""Shares of a difference to the other models: from the first on the series itself moved, up to the second the others."""
_MOST_NAMED = 3
_NO_CONTROL = "at most watch without a control, since a shift that all {0}s share cannot be excluded: add another {0} to the same snapshots"
_BEGIN_UNPARSED = (
    "fewer responses of the first snapshots could be parsed, and those that could did not move: the first snapshots were off"
)
DriftKind = Literal["score and parsed", "parse rate", "score"]
VerdictWord = Literal["none", "watch", "drift"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on one series.

    The published fields are those of EVIDENCE, described there. The others: `baseline`: the first snapshots, with which later ones are
    compared. `outage`: snapshots that were off for a while and came back. `top_changes`: the items that changed most; None without evidence.
    `notes`: additions to the rule's reason. `since`: the place of the first snapshot of a change: of the shift if the evidence dates it,
    else of the best-fitting single change if the range is large, else the first snapshot after the baseline. `outage_places`: places of
    outages, which `top_changes` excludes.
    """

    verdict: VerdictWord
    log10_e: float | None
    threshold: float
    shift: float | None
    shift_low: float | None
    shift_high: float | None
    first_snapshot: str | None
    control: str
    shift_notes: tuple[str, ...] = ()

    baseline: tuple[str, ...]
    outage: tuple[str, ...] = ()
    top_changes: list[dict[str, Any]] | None
    pairs: Paired
    evidence: Evidence
    since: int
    outage_places: frozenset[int]
    controls: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the columns of EVIDENCE, the `top_changes`, and the snapshots of the `baseline` and of an `outage`."""
        names = (*(column.name for column in EVIDENCE), "top_changes", "baseline", "outage")
        return {name: getattr(self, name) for name in names}


class _ScoreEvidence(NamedTuple):
    """The evidence of one kind of scores.

    `evidence`: the evidence against the others, or of the series without others; its shift is the series' own. `is_dated`: whether range and
    evidence date the series' shift. With others that is `drift`; without, it is unknown whether only this series moved.
    """

    verdict: VerdictWord
    pairs: Paired
    evidence: Evidence
    is_dated: bool
    control: Control | None = None
    shift_vs_peers: float | None = None
    """The shift beyond that of the other models."""
    own_share: float | None = None
    """The series' own share of the difference to the other models, if a change was found."""

    @property
    def is_drift(self) -> bool:
        return self.verdict == "drift"


def compute_verdict(
    values: pd.DataFrame,
    clusters: Sequence[str],
    *,
    baseline: int,
    threshold: float,
    parsed_values: pd.DataFrame | None = None,
    peers: Mapping[str, Scores] | None = None,
    items: Sequence[str] | None = None,
    peer: str = "model",
) -> Verdict:
    """Return the verdict on a series.

    It is `drift` if the range reaches the rule's thresholds, the highest e-value so far of the difference to the others reaches the
    threshold, and the series itself moved, not the others. Without others it is at most `watch`. The range is that of the paired means
    (`Paired.is_large`): the rule itself uses only prompts scored in every snapshot, and each failed call reduces these. `values`,
    `clusters`, `baseline`, `items`: see `pair_with_baseline`. `threshold`: log10 of the e-value needed. `parsed_values`: as `values`, of parsed
    responses. `peers`: by name, the models of the same snapshots. `peer`: the word for one of them.
    """
    peers = peers or {}
    result = _collect_evidence(values, clusters, {name: s.policy for name, s in peers.items()}, baseline, threshold, items)
    read = None
    if parsed_values is not None and result.pairs.is_large and len(parsed_values):
        parsed_peers = {name: s.parsed for name, s in peers.items() if s.parsed is not None}
        read = _collect_evidence(parsed_values, clusters, parsed_peers, baseline, threshold)
    pairs, signal = result.pairs, result.evidence
    parsed_shift = _compute_parsed_shift(read.pairs, pairs, signal) if read and signal.first is not None else None
    drift_kind: DriftKind | None = None
    if result.is_drift and parsed_values is not None:
        is_unparsed = parsed_shift is None or abs(parsed_shift) < abs(signal.shift or 0.0) / 2
        drift_kind = "score and parsed" if read and read.is_drift else "parse rate" if is_unparsed else "score"
    if is_begin_unparsed := drift_kind == "parse rate" and (signal.shift or 0.0) > 0 and (signal.first or 0) < pairs.baseline:
        result, drift_kind = result._replace(verdict="watch", is_dated=False), None
    outages = find_outages(pairs.means, 0.0) if signal.first is not None else NO_OUTAGES
    return replace(
        _build_verdict(result, threshold, frozenset(outages.ended)),
        outage=tuple(pairs.snapshots[place] for place in outages.ended),
        shift_notes=tuple(_describe_scope(result, drift_kind, parsed_shift)),
        notes=(*_build_notes(result, outages, baseline, peer), *([_BEGIN_UNPARSED] if is_begin_unparsed else [])),
    )


def _build_verdict(result: _ScoreEvidence, threshold: float, off_places: frozenset[int]) -> Verdict:
    """Return the verdict of the scores under the policy. `off_places`: places of snapshots that were off and back, excluded from changes."""
    pairs, signal = result.pairs, result.evidence
    dated = signal.first if result.is_dated else None
    since = dated if dated is not None else pairs.split if pairs.is_large else pairs.begin
    return Verdict(
        verdict=result.verdict,
        log10_e=signal.highest,
        threshold=threshold,
        shift=signal.shift,
        shift_low=signal.low,
        shift_high=signal.high,
        first_snapshot=pairs.snapshots[dated] if dated is not None else None,
        baseline=pairs.snapshots[: pairs.baseline],
        control=", ".join(result.control.models) if result.control else "none",
        top_changes=pairs.list_top_changes(since, signal.until, without=off_places) if signal.first is not None else None,
        pairs=pairs,
        evidence=signal,
        since=since,
        outage_places=off_places,
        controls=result.control.models if result.control else (),
    )


def _collect_evidence(
    values: pd.DataFrame,
    clusters: Sequence[str],
    peers: Mapping[str, pd.DataFrame],
    baseline: int,
    threshold: float,
    items: Sequence[str] | None = None,
) -> _ScoreEvidence:
    pairs = pair_with_baseline(values, clusters, baseline=baseline, items=items)
    control = choose_control(values, pairs, peers) if peers and len(pairs.snapshots) > baseline else None
    # Without a large range there is no shift to date; it is then measured since the baseline.
    limit = threshold if pairs.is_large else None
    word: VerdictWord = "watch" if pairs.is_large else "none"
    if control is None:
        signal = evidence(pairs.means, pairs.spread, pairs.sampling, baseline=baseline, threshold=limit)
        return _ScoreEvidence(word, pairs, signal, _is_found(pairs, signal, threshold))
    spread, sampling = control.spread(pairs.spread), control.spread(pairs.sampling)
    against = compute_known_evidence(control.excess, spread, sampling, baseline=baseline, threshold=limit)
    has_change = _is_found(pairs, against, threshold)
    share = _compute_own_share(pairs.means, control, against) if has_change else None
    is_drift = share is not None and share >= _OWN
    result = _add_own_shift(pairs, against, has_change)
    return _ScoreEvidence("drift" if is_drift else word, pairs, result, is_drift, control, against.shift, share)


def _is_found(pairs: Paired, signal: Evidence, threshold: float) -> bool:
    return pairs.is_large and signal.highest is not None and signal.highest >= threshold


def _add_own_shift(pairs: Paired, against: Evidence, has_change: bool) -> Evidence:
    """Return the evidence against the others with the series' own shift: at the change if one was found, else since the baseline."""
    begin, end = pairs.baseline, len(pairs.snapshots)
    first, stop = (against.first or begin, against.until or end) if has_change else (begin, end)
    outages = find_outages(pairs.means[:stop], 0.0)
    means, spread, sampling = (part[:stop] for part in (pairs.means, pairs.spread, pairs.sampling))
    shift = estimate_shift(means, spread, sampling, first, outages.places if has_change else frozenset())
    return Evidence(against.log10_e, first, *shift, stop, against.outages if has_change else outages)


def _compute_own_share(means: Floats, control: Control, signal: Evidence) -> float | None:
    """Return the share of the difference to the others at a change that is the series' own move: 1 if they stayed, 0 if only they moved.

    With two others, one may have moved, and with it their mean. The difference is then that to the nearer one, and a series that is not
    beyond both did not move itself.
    """
    if signal.first is None or signal.until is None:
        return None
    # Outages of the series or of its difference are excluded from both sides.
    off_places = signal.outages.places | find_outages(means[: signal.until], 0.0).places
    mask = np.isfinite(control.excess[: signal.until]) & [place not in off_places for place in range(signal.until)]
    later = np.arange(signal.until) >= signal.first
    if not (mask & ~later).any() or not (mask & later).any():
        return None
    move, gap, beyond = (
        float(path[: signal.until][mask & later].mean() - path[: signal.until][mask & ~later].mean())
        for path in (means, control.excess, control.beyond)
    )
    return move / beyond if gap and beyond / gap > _OTHERS else 0.0


def _compute_parsed_shift(read: Paired, pairs: Paired, signal: Evidence) -> float | None:
    """Return the shift of the parsed scores between the same snapshots as the shift of all, or None if a side has none."""
    place = {label: position for position, label in enumerate(pairs.snapshots)}
    positions = np.array([place.get(label, -1) for label in read.snapshots])
    first, end = signal.first or 0, signal.until or 0
    mask = np.array([index >= 0 and index not in signal.outages.places for index in positions.tolist()], dtype=bool)
    before, after = mask & (positions < first), mask & (positions >= first) & (positions < end)
    return float(read.means[after].mean() - read.means[before].mean()) if before.any() and after.any() else None


def _describe_scope(result: _ScoreEvidence, drift_kind: str | None, parsed_shift: float | None) -> Iterator[str]:
    """Yield which scores moved, and how far beyond the other models, if notable."""
    if drift_kind == "parse rate":
        yield f"a drift of the parse rate: the responses that could be parsed moved by {_format_signed(parsed_shift)}"
    elif drift_kind == "score":
        yield f"not significant on parsed responses only, which moved by {_format_signed(parsed_shift)}"
    if result.verdict != "none" and result.control:
        yield f"beyond the other models of these snapshots ({', '.join(result.control.models)}): {_format_signed(result.shift_vs_peers)}"


def _format_signed(value: float | None) -> str:
    return "an unknown amount" if value is None else f"{value:+.4f}"


def _build_notes(result: _ScoreEvidence, outages: Outages, baseline: int, peer: str) -> tuple[str, ...]:
    """Return notes on the evidence.

    These are that there is none yet; else the latest snapshot's place if the range is large and the shift does not last, outages, and who
    moved if not only the series, or that it is unknown.
    """
    pairs, signal = result.pairs, result.evidence
    if signal.first is None:
        return (describe_early(len(pairs.snapshots), baseline + 1),)
    notes = []
    lasts = result.is_dated and signal.until == len(pairs.snapshots)
    if pairs.is_large and not lasts:
        notes.append(f"the latest, {pairs.snapshots[-1]}, is {pairs.means[-1]:+.4f} from the reference snapshots")
    past, pending = ([pairs.snapshots[place] for place in part] for part in (outages.ended, outages.pending))
    if past:
        notes.append(f"off and back, which is an outage and no drift: {list_first_names(past, _MOST_NAMED)}")
    if pending:
        notes.append(f"off up to the latest, an outage or a shift: {list_first_names(pending, _MOST_NAMED)}")
    if pairs.is_large and not result.is_drift:
        notes.append(_describe_who_moved(result, result.control.models, peer) if result.control else _NO_CONTROL.format(peer))
    return tuple(notes)


def _describe_who_moved(result: _ScoreEvidence, models: Sequence[str], peer: str) -> str:
    names = list_first_names(list(models), _MOST_NAMED)
    if result.own_share is None:
        return f"not shown to move apart from the other {peer}s of these snapshots ({names})"
    if result.own_share > _OTHERS:
        return f"this {peer} or {names} moved: the data do not show which"
    return f"moved apart from {names}, but not by a move of its own"
