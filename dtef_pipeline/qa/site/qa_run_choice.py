"""The runs whose responses the site shows: those that the boards read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import sort_labels
from dtef_pipeline.report.row_reader import StoredRows

RUN_OF_A_PART = ("suite", "part", "condition", "model_variant", "snapshot")
"""Key of a run among the runs of all parts."""


def choose_shown_runs(rows: StoredRows, latest: pa.Table, snapshot_order: Sequence[str]) -> pa.Table:
    """Return one row per run, with the columns RUN_OF_A_PART: the runs that boards read, and the latest run of what has no score.

    `latest`: rows of `latest_scores`; `snapshot_order`: the snapshots of the scores, earliest first.
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
