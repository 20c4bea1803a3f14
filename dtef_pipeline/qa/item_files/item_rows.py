"""The tables that the items of a part become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import NamedTuple

import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.model import QaItem, Quote
from dtef_pipeline.qa.tables import QA_EXAMPLES, QA_FINDINGS, QA_ITEMS

_ITEM_FIELDS = tuple(member.name for member in fields(QaItem) if member.name not in ("options", "flags", "quotes"))
_EXAMPLE_FIELDS = ("text", "options", "reference", "solution")


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
        {
            **asdict(item),
            "position": place,
            "cluster": item.cluster or item.item_id,
            "truth_id": truth_id(item),
            "scorers": list(scorers(item)),
        }
        for place, item in enumerate(items)
    ]
    examples = [
        {**key, "position": place, **{name: getattr(item, name) for name in _EXAMPLE_FIELDS}}
        for place, item in enumerate(item for item in source.examples if item.part == part)
    ]
    return ItemTables(
        pa.Table.from_pylist(rows, schema=QA_ITEMS),
        pa.Table.from_pylist(examples, schema=QA_EXAMPLES),
        pa.Table.from_pylist([{**asdict(finding), **key} for finding in findings], schema=QA_FINDINGS),
    )


def truth_id(item: QaItem) -> str:
    """Return a hash of the type, the options and the expected answer: equal if responses are scored alike."""
    return digest("truth", item.type, item.options, item.reference)


def read_stored_items(rows: pa.Table) -> list[QaItem]:
    """Return the items of rows of `qa_items`, in their order."""
    return [
        QaItem(
            **{name: row[name] for name in _ITEM_FIELDS},
            options=tuple(row["options"]),
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
            type=type,
            options=tuple(row["options"]),
            **{name: row[name] for name in ("suite", "part", "text", "reference", "solution")},
        )
        for row in rows.sort_by("position").to_pylist()
    ]
