"""Parts that files of another place would take the place of: what would be lost with them is told, and nothing is done unasked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.qa.added_files import AddedFiles
from dtef_pipeline.qa.item_files.layouts import INTERVIEW_LAYOUT
from dtef_pipeline.qa.item_rows import truth_id
from dtef_pipeline.qa.space import QA_RESPONSE_KEY, QA_SPACE
from dtef_pipeline.qa.suites import SuiteSpec
from dtef_pipeline.text.counted import counted
from resources.item_files import ITEM_NOTES, QaSource
from resources.warehouse import Warehouse


def refuse_replacing(warehouse: Warehouse, spec: SuiteSpec, added: AddedFiles, sources: Sequence[QaSource]) -> None:
    """Raises ConfigError where a part is known from a file of another place, and items of it would be lost.

    A changed file at its place, and a file that was moved, take the place of the earlier one as they always do.
    """
    lost = list(_lost(warehouse, added, sources))
    if not lost:
        return
    another = (
        "--part NAME gives this one another name" if spec.layout == INTERVIEW_LAYOUT else "--suites gives it a suite of its own"
    )
    more = f"; so would {counted(len(lost) - 1, 'other part')}" if lost[1:] else ""
    raise ConfigError(f"{lost[0]}{more}: {another}, --replace has it take the place")


def _lost(warehouse: Warehouse, added: AddedFiles, sources: Sequence[QaSource]) -> Iterator[str]:
    """What would be lost, a line per part."""
    new = {(item.part, item.item_id, item.text, truth_id(item)) for item in added.loaded.items}
    for source in sources:
        known = _known(warehouse, source.key)
        if known is None or _is_one_place(Path(known.path), Path(source.path)):
            continue
        columns = ["item_id", "text", "truth_id"]
        rows = warehouse.read_readable("qa_items", lambda _: None, columns=columns, **QA_SPACE.levels(source.key))
        items = [row["item_id"] for row in rows.to_pylist() if (source.part, *(row[name] for name in columns)) not in new]
        if items:
            told = f"{counted(len(items), 'item')} with {counted(_scored(warehouse, source.key, items), 'scored response')}"
            yield f"{source.key} is the part of {known.path}: {told} of it would be lost to {source.path}"


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
    rows = warehouse.read_readable("qa_scores", lambda _: None, columns=[*names, "score"], **QA_SPACE.levels(key))
    scored = rows.filter(pc.and_(pc.is_valid(rows["score"]), pc.is_in(rows["item_id"], pa.array(items, pa.string()))))
    return len(scored.group_by(names).aggregate([]))
