"""The runs whose responses the site shows: those that the boards are made of."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import sort_labels
from dtef_pipeline.report.row_reader import StoredRows

RUN_OF_A_PART = ("suite", "part", "condition", "model_variant", "snapshot")
"""What tells the runs of all parts apart."""


def choose_shown_runs(rows: StoredRows, latest: pa.Table, snapshot_order: Sequence[str]) -> pa.Table:
    """Columns RUN_OF_A_PART, one row per run: those that boards are made of, and of what has no score the latest run.

    `latest`: rows of `latest_scores`; `snapshot_order`: the snapshots of the scores, the earliest first.
    """
    runs = dict.fromkeys(_list_distinct(latest))
    if rows.has("qa_responses"):
        query = f"(SELECT DISTINCT {', '.join(RUN_OF_A_PART)} FROM qa_responses)"
        candidates = _list_distinct(rows.table(query, RUN_OF_A_PART, {}))
        later = {run[-1]: None for run in candidates if run[-1] not in set(snapshot_order)}
        place = {label: at for at, label in enumerate((*snapshot_order, *sort_labels(later)))}
        keys = {run[:-1] for run in runs}
        for run in sorted(candidates, key=lambda candidate: -place[candidate[-1]]):
            if run[:-1] not in keys:
                keys.add(run[:-1])
                runs[run] = None
    return pa.table({name: pa.array([run[at] for run in runs], pa.string()) for at, name in enumerate(RUN_OF_A_PART)})


def _list_distinct(table: pa.Table) -> list[tuple[str, ...]]:
    plain = pa.table({name: pc.cast(table[name], pa.string()) for name in RUN_OF_A_PART})
    groups = plain.group_by(list(RUN_OF_A_PART)).aggregate([])
    return sorted(zip(*(groups[name].to_pylist() for name in RUN_OF_A_PART), strict=True))
