"""Parts that files of another place would take the place of: what would be lost with them is told, and goes when that is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.qa.added_files import AddedFiles
from dtef_pipeline.qa.item_files.layouts import INTERVIEW_LAYOUT
from dtef_pipeline.qa.item_rows import truth_id
from dtef_pipeline.qa.space import QA_RESPONSE_KEY, QA_SPACE
from dtef_pipeline.qa.stored_tables import QA_TABLES
from dtef_pipeline.qa.suites import SuiteSpec
from dtef_pipeline.text.counted import counted
from resources.item_files import ITEM_NOTES, QaSource
from resources.warehouse import Warehouse

_OF_FILES = ("qa_items", "qa_findings")
"""Tables that the files of a part are read into."""


@dataclass(frozen=True, slots=True)
class LostItems:
    """The items of a part that a file of another place has not."""

    source: QaSource
    """The part as it would be."""
    earlier: str
    """The file that the part is of."""
    items: Sequence[str]
    scored: int
    """How many responses to them have a score."""

    def __str__(self) -> str:
        return f"{counted(len(self.items), 'item')} with {counted(self.scored, 'scored response')}"


def refuse_replacing(lost: Sequence[LostItems], spec: SuiteSpec) -> None:
    """Raises ConfigError where items would be lost."""
    if not lost:
        return
    another = (
        "--part NAME gives this one another name" if spec.layout == INTERVIEW_LAYOUT else "--suites gives it a suite of its own"
    )
    more = f"; so would {counted(len(lost) - 1, 'other part')}" if lost[1:] else ""
    first = f"{lost[0].source.key} is the part of {lost[0].earlier}: {lost[0]} of it would be lost to {lost[0].source.path}"
    raise ConfigError(f"{first}{more}: {another}, --replace has it take the place")


def drop_lost(warehouse: Warehouse, lost: Sequence[LostItems]) -> None:
    """Take the rows of the items out of all tables of their parts, so that no board has them. Stored responses stay."""
    for one in lost:
        at, gone = QA_SPACE.levels(one.source.key), pa.array(one.items, pa.string())
        for table, spec in QA_TABLES.items():
            if spec.space != QA_SPACE or table in _OF_FILES or spec.schema is None or "item_id" not in spec.schema.names:
                continue
            below = [level for level in spec.levels if level not in at]
            for levels in [{**at, below[0]: value} for value in warehouse.values(table, below[0], **at)] if below else [at]:
                _drop_rows(warehouse, table, levels, gone)


def _drop_rows(warehouse: Warehouse, table: str, levels: Mapping[str, str], items: pa.Array) -> None:
    """What cannot be read stays for the command that makes it anew."""
    rows = warehouse.rows(table, **levels)
    left = rows.filter(pc.invert(pc.is_in(rows["item_id"], items)))
    if not len(rows) or len(left) == len(rows):
        return
    if len(left):
        warehouse.write(table, left, **levels)
    else:
        warehouse.fs.delete_dir(warehouse.folder(table, **levels))


def lost_items(warehouse: Warehouse, added: AddedFiles, sources: Sequence[QaSource]) -> Iterator[LostItems]:
    """By part what would be lost to a file of another place, where something would.

    A changed file at its place, and a file that was moved, take the place of the earlier one as they always do.
    """
    new = {(item.part, item.item_id, item.text, truth_id(item)) for item in added.loaded.items}
    for source in sources:
        known = _known(warehouse, source.key)
        if known is None or _is_one_place(Path(known.path), Path(source.path)):
            continue
        columns = ["item_id", "text", "truth_id"]
        rows = warehouse.rows("qa_items", columns=columns, **QA_SPACE.levels(source.key))
        items = [row["item_id"] for row in rows.to_pylist() if (source.part, *(row[name] for name in columns)) not in new]
        if items:
            yield LostItems(source, known.path, items, _scored(warehouse, source.key, items))


def _known(warehouse: Warehouse, key: str) -> QaSource | None:
    """None also where the note cannot be read: adding writes it anew."""
    try:
        return ITEM_NOTES.read(warehouse, key)
    except WarehouseError:
        return None


def _is_one_place(known: Path, new: Path) -> bool:
    """Whether two paths are the same, or one is a folder with the other in it."""
    known, new = known.resolve(), new.resolve()
    return known.is_relative_to(new) or new.is_relative_to(known)


def _scored(warehouse: Warehouse, key: str, items: Sequence[str]) -> int:
    names = [*QA_RESPONSE_KEY, "snapshot"]
    rows = warehouse.rows("qa_scores", columns=[*names, "score"], **QA_SPACE.levels(key))
    scored = rows.filter(pc.and_(pc.is_valid(rows["score"]), pc.is_in(rows["item_id"], pa.array(items, pa.string()))))
    return len(scored.group_by(names).aggregate([]))
