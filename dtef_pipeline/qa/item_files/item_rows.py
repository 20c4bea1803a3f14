"""The tables that the items of a part become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.qa.item_files.item_log import ItemFinding, LoadedItems
from dtef_pipeline.qa.model import QaItem, Quote
from dtef_pipeline.qa.tables import QA_EXAMPLES, QA_FINDINGS, QA_ITEMS


class ItemTables(NamedTuple):
    """The tables of a part's file."""

    qa_items: pa.Table
    qa_examples: pa.Table
    qa_findings: pa.Table


def build_item_tables(suite: str, part: str, source: LoadedItems, scorers: Callable[[QaItem], Sequence[str]]) -> ItemTables:
    """Build the tables of one part; findings that are about no single item are included in every part.

    `scorers`: returns the names of an item's scorers.
    """
    items = [item for item in source.items if item.part == part]
    findings = [finding for finding in source.findings if finding.part in (None, part)]
    key = {"suite": suite, "part": part}
    rows = [
        {**key, "position": place, **_make_item_row(item), "scorers": list(scorers(item))} for place, item in enumerate(items)
    ]
    examples = [
        {**key, "position": place, **_make_example_row(item)} for place, item in enumerate(source.select_examples(part))
    ]
    return ItemTables(
        pa.Table.from_pylist(rows, schema=QA_ITEMS),
        pa.Table.from_pylist(examples, schema=QA_EXAMPLES),
        pa.Table.from_pylist([{**key, **_make_finding_row(finding)} for finding in findings], schema=QA_FINDINGS),
    )


def truth_id(item: QaItem) -> str:
    """Return a hash of the type, the options and the expected answer: equal if responses are scored alike."""
    return digest("truth", item.type, item.options, item.reference)


def read_stored_items(rows: pa.Table) -> list[QaItem]:
    """Return the items of rows of `qa_items`, in their order."""
    return [
        QaItem(
            item_id=row["item_id"],
            suite=row["suite"],
            part=row["part"],
            type=row["type"],
            text=row["text"],
            options=tuple(row["options"]),
            reference=row["reference"],
            solution=row["solution"],
            cluster=row["cluster"],
            source_line=row["source_line"],
            flags=tuple(row["flags"]),
            quotes=tuple(Quote(**quote) for quote in row["quotes"]),
        )
        for row in rows.to_pylist()
    ]


def read_stored_examples(rows: pa.Table, type: str) -> list[QaItem]:
    """Return the examples of rows of `qa_examples`, as items of a type."""
    return [
        QaItem(
            item_id=f"example/{row['position']}",
            suite=row["suite"],
            part=row["part"],
            type=type,
            text=row["text"],
            options=tuple(row["options"]),
            reference=row["reference"],
            solution=row["solution"],
        )
        for row in rows.sort_by("position").to_pylist()
    ]


def _make_item_row(item: QaItem) -> dict[str, object]:
    return {
        "item_id": item.item_id,
        "type": item.type,
        "text": item.text,
        "options": list(item.options),
        "reference": item.reference,
        "solution": item.solution,
        "cluster": item.cluster or item.item_id,
        "truth_id": truth_id(item),
        "quotes": [{"text": quote.text, "file": quote.file, "turn": quote.turn} for quote in item.quotes],
        "flags": list(item.flags),
        "source_line": item.source_line,
    }


def _make_example_row(item: QaItem) -> dict[str, object]:
    return {"text": item.text, "options": list(item.options), "reference": item.reference, "solution": item.solution}


def _make_finding_row(finding: ItemFinding) -> dict[str, object]:
    return {
        "level": finding.level,
        "code": finding.code,
        "file": finding.file,
        "line": finding.line,
        "item_id": finding.item_id,
        "found": finding.found,
        "allowed": finding.allowed,
        "text": finding.text,
    }
