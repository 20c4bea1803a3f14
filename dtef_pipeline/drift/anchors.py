"""Anchors: stored answers that judges score again in every snapshot. They are chosen once, so whatever moves is the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.episodes import Episode, EpisodeResult
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.drift.subject import AnchorSubject, Row
from dtef_pipeline.drift.verdict_tables import ANCHOR_FIELDS, ANCHOR_ITEMS, ANCHORS
from dtef_pipeline.identity import digest
from dtef_pipeline.tables import build_family_rows


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
