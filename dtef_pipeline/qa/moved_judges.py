"""What is told of a judge that moved, beside the drift of models that it judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dtef_pipeline.drift.verdict_text import NEWS
from dtef_pipeline.text.counted import counted


def moved_judges(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence per judge and evaluator whose verdict is drift or watch. `rows`: of `qa_judge_drift`."""
    return [_moved(row) for row in rows if row["verdict"] in NEWS]


def _moved(row: Mapping[str, Any]) -> str:
    """The documented rule alone may have a gap and no shift yet."""
    size = f"gap {row['gap']:.4f}"
    if row["shift"] is not None:
        known = None not in (row["shift_low"], row["shift_high"])
        interval = f" (95 %: {row['shift_low']:+.4f} to {row['shift_high']:+.4f})" if known else ""
        size = f"shift {row['shift']:+.4f}{interval}"
    since = f" since {row['first_snapshot']}" if row["first_snapshot"] else ""
    shown = counted(row["n_items"], "stored answer")
    return f"judge {row['judge_model']}, {row['evaluator']}: {row['verdict']}{since} on {shown}, {size}; what it judged may have moved with it"
