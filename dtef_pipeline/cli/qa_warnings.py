"""What `dtef qa run` warns of when it is done: models whose calls failed, so that their scores rest on fewer responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.text.counted import counted
from resources.warehouse import Warehouse

_FAILED_CALL = "error"


def failed_models(warehouse: Warehouse, keys: Sequence[str], snapshot: str) -> Iterator[str]:
    """A line per model with responses that failed, in parts and a snapshot, by name."""
    asked, failed = Counter[str](), Counter[str]()
    for key in keys:
        at = {**QA_SPACE.levels(key), "snapshot": snapshot}
        rows = warehouse.read_or_empty("qa_responses", columns=["model", "call_status"], **at)
        for model, status in zip(rows["model"].to_pylist(), rows["call_status"].to_pylist(), strict=True):
            asked[model] += 1
            failed[model] += status == _FAILED_CALL
    for model in sorted(failed):
        if failed[model]:
            yield f"warning: {model}: {counted(failed[model], 'response')} of {asked[model]:,} failed; the same command asks again"
