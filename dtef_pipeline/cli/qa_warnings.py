"""What `dtef qa run` warns of when it is done: look-ups and calls that failed, so that scores rest on fewer responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dtef_pipeline.cli.unanswered import unanswered_lines
from dtef_pipeline.qa.prompt_rows import AskedHow
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.transcripts.remote import REMOTE
from dtef_pipeline.text.counted import and_more, counted
from resources.warehouse import Warehouse

_REASONS_NAMED = 3


def look_ups_that_failed(warehouse: Warehouse, keys: Sequence[str], how: AskedHow) -> Iterator[str]:
    """A line where a server found nothing for questions of these parts, because it failed, with its most frequent reasons."""
    if how.retriever != REMOTE:
        return
    condition, reasons, asked = how.condition((), about_documents=True), Counter[str](), 0
    for key in keys:
        rows = warehouse.read_or_empty(
            "qa_context", columns=["item_id", "condition", "problem"], **QA_SPACE.levels(key)
        ).to_pylist()
        own = {row["item_id"]: row["problem"] for row in rows if row["condition"] == condition}
        asked += len(own)
        reasons.update(problem for problem in own.values() if problem)
    if failed := reasons.total():
        told = and_more([f"{reason} ({number:,})" for reason, number in reasons.most_common()], _REASONS_NAMED, "; ")
        failed_of = f"{counted(failed, 'look-up')} of {asked:,} failed, so that nobody was asked"
        yield f"warning: {failed_of}: {told}; the same command looks up again"


def nothing_scored(warehouse: Warehouse, keys: Sequence[str], snapshot: str, stored: Sequence[str]) -> Iterator[str]:
    """A line where parts have no responses in a snapshot, so that there was nothing to judge or score.

    `stored`: names of models whose responses were imported in the snapshot: only a run that names them takes them over.
    """
    for key in keys:
        at = {**QA_SPACE.levels(key), "snapshot": snapshot}
        if len(warehouse.read_or_empty("qa_responses", columns=["model"], **at)):
            return
    named = and_more([f"--model {name}" for name in stored], _REASONS_NAMED)
    imported = f"imported responses are scored by a run with {named}" if stored else "--model MODEL asks one"
    yield f"warning: nothing was judged or scored, because no responses of snapshot {snapshot!r} are in the tables: {imported}"


def failed_models(warehouse: Warehouse, keys: Sequence[str], snapshot: str) -> Iterator[str]:
    """The lines of `unanswered_lines` of parts and a snapshot."""
    names = ["model", "call_status", "error"]
    calls: list[tuple[str, str, str | None]] = []
    for key in keys:
        rows = warehouse.read_or_empty("qa_responses", columns=names, **QA_SPACE.levels(key), snapshot=snapshot)
        calls += zip(*(rows[name].to_pylist() for name in names), strict=True)
    yield from unanswered_lines(calls)
