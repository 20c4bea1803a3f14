"""Anchors: stored answers that judges score again in every snapshot. The answers never change, so whatever moves is the judge; what of a
model's shift is the judges' is subtracted.

The evidence is that of drift of models: an item is an anchor, and a series is a judge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.episodes import Episode, EpisodeResult
from dtef_pipeline.asking.models import ModelSpec, strip_settings
from dtef_pipeline.asking.snapshot_order import snapshot_time, sort_snapshots
from dtef_pipeline.drift.paired import Scores
from dtef_pipeline.drift.rule import apply_drift_rule
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.subject import AnchorSubject, Row, Subject
from dtef_pipeline.drift.verdict import Verdict, compute_verdict
from dtef_pipeline.drift.verdict_tables import ANCHOR_FIELDS, ANCHOR_ITEMS, ANCHORS, JUDGE_DRIFT
from dtef_pipeline.drift.verdict_text import NEWS
from dtef_pipeline.identity import digest
from dtef_pipeline.tables import build_family_rows
from dtef_pipeline.text.number_words import format_count, list_first_names


class AnchorJudging(NamedTuple):
    """One judge's judgement of one anchor."""

    anchor: Row
    """A row of ANCHOR_ITEMS."""
    judge: ModelSpec
    episode: Episode


def add_anchors(
    family: str, subject: AnchorSubject, anchors: pa.Table, n: int, seed: int, connection: duckdb.DuckDBPyConnection
) -> pa.Table:
    """Return `anchors` (ANCHOR_ITEMS) filled up to `n`, or fewer if the pool is smaller. Existing ones stay. `connection`: has the tables
    `subject.reads`.

    New anchors are spread over the subject's strata: one of each in turn, in the order of a hash of the seed and the anchor. So the choice
    does not depend on the order of rows, any first few anchors are spread too, and large strata do not crowd out small ones.
    """
    new = subject.pool(connection).drop_duplicates("anchor")
    new = new[~new["anchor"].isin(anchors["anchor"].to_pylist())]
    new = new.assign(place=[digest("anchor", seed, key) for key in new["anchor"]], stratum=subject.stratum(new))
    new = new.sort_values("place", kind="stable")
    known = subject.stratum(anchors.to_pandas()).value_counts()
    turn = new.groupby("stratum").cumcount() + new["stratum"].map(known).fillna(0)
    chosen = new.assign(turn=turn).sort_values(["turn", "place"], kind="stable").head(max(0, n - len(anchors)))
    if chosen.empty:
        return anchors
    return pa.concat_tables([anchors, build_family_rows(subject.add_texts(chosen, connection), ANCHOR_ITEMS, family)])


def build_anchor_rows(
    snapshot: str,
    judgings: Sequence[AnchorJudging],
    outcomes: Sequence[EpisodeResult],
    read: Callable[[Any, EpisodeResult], Row],
) -> pa.Table:
    """Return the rows of ANCHORS, in the order of `judgings`. `read`: see `AnchorSubject`."""
    rows = [
        {**{column.name: judging.anchor[column.name] for column in ANCHOR_FIELDS}, **read(judging.episode, outcome)}
        for judging, outcome in zip(judgings, outcomes, strict=True)
    ]
    return pa.Table.from_pylist([{**row, "snapshot": snapshot} for row in rows], schema=ANCHORS)


_BY = ("judge", "judge_variant", "evaluator")
"""Columns that identify a judge, its label first."""


@dataclass(frozen=True, slots=True)
class JudgeDrift:
    """The verdict on one judge. `verdict`: None without anything to compare."""

    judge: str
    row: dict[str, Any]
    """The judge's columns, `latest_snapshot`, the rule's columns, and those of EVIDENCE if there is a verdict."""
    verdict: Verdict | None

    @property
    def has_shifted(self) -> bool:
        """Whether its range reaches the rule's thresholds. A judge without a control has at most the verdict watch."""
        return self.verdict is not None and self.verdict.verdict in NEWS

    def compute_shift_since(self, first: str, exclusions: Collection[str] = ()) -> float | None:
        """Return the mean difference of its points from the snapshot `first` on, less that before, by time; None if a side is empty.

        The judge need not have `first`. `exclusions`: snapshots that count on neither side.
        """
        if self.verdict is None:
            return None
        labels, means = self.verdict.pairs.snapshots, self.verdict.pairs.means
        order = list(sort_snapshot_times([*labels, first]))
        is_later = np.array([order.index(label) >= order.index(first) for label in labels])
        counts = np.array([label not in exclusions for label in labels])
        before, after = means[counts & ~is_later], means[counts & is_later]
        return float(after.mean() - before.mean()) if len(before) and len(after) else None


def judge_drift(subject: Subject, anchors: pa.Table, options: WatchOptions) -> pa.Table:
    """Return the verdicts on a family's judges, in the schema JUDGE_DRIFT. `anchors`: its rows of ANCHORS."""
    if subject.anchors is None:
        return JUDGE_DRIFT.empty_table()
    drifts = compute_judge_drifts(read_anchors(anchors), options)
    return pa.Table.from_pylist([{**drift.row, "family": subject.family} for drift in drifts], JUDGE_DRIFT)


def read_anchors(anchors: pa.Table) -> pd.DataFrame:
    """Return rows of ANCHORS for `compute_judge_drifts`."""
    frame: pd.DataFrame = anchors.to_pandas().astype({"snapshot": "str"})
    return frame


def compute_judge_drifts(anchors: pd.DataFrame, options: WatchOptions | None = None) -> list[JudgeDrift]:
    """Return one verdict per judge and evaluator, sorted by name.

    `anchors`: rows of ANCHORS. A shift below 0 means that the judge became stricter. The chance of a false `drift` anywhere is
    `options.alpha`, split evenly over the judges with two snapshots or more; controls of a judge are judges by other models. Anchors of one
    item are a cluster. Snapshots before a date of `options.since` for the judge, or for all unnamed ones, are left out. Dates may name a
    judge by variant, by label, or by its model: with settings or without.
    """
    options = options or WatchOptions()
    times = sort_snapshot_times(anchors["snapshot"].unique().tolist())
    groups = anchors.groupby([*_BY], sort=True)
    names = {key: _list_judge_names(str(key[0]), group) for key, group in groups}
    series = {
        key: _build_grid(group, [label for label, time in times.items() if options.is_any_counted(time, names[key])])
        for key, group in groups
    }
    threshold = options.threshold(sum(len(values.columns) > 1 for values, _ in series.values()))
    verdicts = []
    for key, (values, clusters) in series.items():
        # Other settings or evaluators are the same model.
        peers = [candidate for candidate in series if names[candidate][-1] != names[key][-1]]
        peer_scores = {f"{peer[0]} {peer[2]}".strip(): Scores(series[peer][0]) for peer in peers}
        rule = apply_drift_rule(values, times, temperature=0.0)
        verdict = (
            compute_verdict(values, clusters, baseline=options.baseline, threshold=threshold, peers=peer_scores, peer="judge")
            if rule.is_comparable
            else None
        )
        latest = str(values.columns[-1]) if len(values.columns) else None
        row = {**dict(zip(_BY, key, strict=True)), "latest_snapshot": latest, **asdict(rule)}
        if verdict:
            row |= {**verdict.row(), "reason": "; ".join([rule.reason, *verdict.notes])}
        verdicts.append(JudgeDrift(str(key[0]), row, verdict))
    return verdicts


def sort_snapshot_times(labels: Sequence[str]) -> dict[str, datetime | None]:
    """Return each snapshot once, in chronological order, with its time."""
    return {
        label: snapshot_time(label, None) for label in sort_snapshots({label: snapshot_time(label, None) for label in labels})
    }


def _list_judge_names(label: str, rows: pd.DataFrame) -> list[str]:
    """Return the names by which a date may refer to the judge, the most specific first."""
    variant, model = (str(rows[name].iloc[0]) if name in rows else label for name in ("judge_variant", "judge_model"))
    return [variant, label, model, *(strip_settings(name.partition("[")[0]) for name in (label, model))]


def _build_grid(rows: pd.DataFrame, labels: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the (anchors, snapshots) scores of these snapshots, and each anchor's cluster."""
    values = rows.pivot_table(index="anchor", columns="snapshot", values="score", aggfunc="mean", dropna=False)
    values = values[[label for label in labels if label in values.columns]]
    clusters = (
        rows.assign(cluster=rows["partition"] + "/" + rows["item"]).drop_duplicates("anchor").set_index("anchor")["cluster"]
    )
    return values, clusters.reindex(values.index).tolist()


_MOSTLY, _HARDLY = 2 / 3, 1 / 3
"""Shares of a model's shift due to judges: from the first on it is theirs, up to the second the model's."""
_JUDGES_NAMED = 3


class NetDrift(NamedTuple):
    """The columns of `drift` on the judges of a series."""

    net_shift: float | None
    """The model's shift minus the judges' part, in units of the score; null if unknown."""
    judges_note: str
    """Whether the shift is the model's or the judges'."""


def subtract_judges(
    rows: Iterable[Mapping[str, Any]], subject: AnchorSubject, anchors: pa.Table, options: WatchOptions
) -> Iterator[dict[str, Any]]:
    """Yield each series' row (`ModelDrift.rows`) with the judges' part of its shift, if it has one.

    `anchors`: the family's rows of ANCHORS. Judges are compared before the first snapshot of the model's shift and from it on.
    """
    frame = read_anchors(anchors)
    for row in rows:
        judged = subject.judgements(row, frame) if row["verdict"] in NEWS and row["shift"] else None
        if judged is None:
            yield dict(row)
            continue
        judges = compute_judge_drifts(judged, options.settings_for_judges(row["model"], row["model_variant"]))
        net = subtract_judges_of_row(row, judges, subject.weight)
        note = subject.note if net.net_shift is not None else ""
        yield {**row, "net_shift": net.net_shift, "judges_note": f"{net.judges_note}{note}"}


def subtract_judges_of_row(row: Mapping[str, Any], judges: Sequence[JudgeDrift], weight: float = 1.0) -> NetDrift:
    """Attribute a model's drift to the model, its judges or both. `row`: of `ModelDrift`, with a shift. `judges`: those whose mean
    scored the model.

    The judges' part is the mean shift of their stored answers, times `weight`: the change of a score when all its judged points change by
    1. The shift is the mean of their snapshots from the first snapshot of the model's drift on, less the mean of those before it, without the
    model's outages. If a judge moved (verdict drift or watch), the drift is reported as the judges' when their part has the same direction
    and is at least two thirds of the model's shift, and as both's when it is more than a third. If the model's shift has no first snapshot,
    the judges' part is not computed.
    """
    first = row.get("first_snapshot")
    if first is None and judges:
        if all(judge.verdict is not None and not judge.has_shifted for judge in judges):
            return NetDrift(None, "of the model: on anchors the judges did not move")
        return NetDrift(None, "model or judges: the first snapshot of the shift is unknown")
    shifts = [shift for j in judges if (shift := j.compute_shift_since(str(first), row.get("outage") or ())) is not None]
    if not judges or len(shifts) < len(judges):
        lacking = f"anchors of {format_count(len(judges) - len(shifts), 'judge')} are missing"
        lacking = lacking if shifts else "no judge was shown anchors again"
        return NetDrift(None, f"model or judges: {lacking} in these snapshots")
    shift, part = float(row["shift"]), float(np.mean(shifts)) * weight
    names = [judge.judge for judge in judges if judge.has_shifted]
    return NetDrift(shift - part, _describe_cause(shift, part, names))


def _describe_cause(shift: float, part: float, judges: Sequence[str]) -> str:
    """Describe the cause of a shift. `judges`: those that moved."""
    if not judges:
        return f"a shift of the model: on anchors the judges did not move ({part:+.4f})"
    words = f"on anchors {list_first_names(list(judges), _JUDGES_NAMED)} moved too, which makes"
    numbers = f"{part:+.4f} of {shift:+.4f}; net of the judges {shift - part:+.4f}"
    if part / shift >= _MOSTLY:
        return f"a shift of the judges, not of the model: {words} {numbers}"
    if part / shift > _HARDLY:
        return f"model and judges moved: {words} {numbers}"
    return f"a shift of the model: {words} only {numbers}"
