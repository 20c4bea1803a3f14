"""What the verbs `add`, `check`, `list` and `remove` know of the files of a plugin family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtef_pipeline.cli.family_verbs import Checked, FamilyFiles
from dtef_pipeline.cli.opened_warehouse import stored_keys
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.family.record import Family, loaded_parts
from dtef_pipeline.text.counted import counted, plural
from resources.item_files import source_hash
from resources.part_files import PartFile, part_notes
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.launch import Launched


def plugin_files(family: Family) -> FamilyFiles:
    """The record of the verbs."""
    return FamilyFiles(
        noun=family.part,
        adds=f"dtef {family.name} add PATH",
        read=partial(_read, family),
        check=partial(_check, family),
        listed=partial(_list_parts, family),
        counted_rows={family.responses: "response"},
        results=(family.board, *(one.table or one.name for one in family.boards)),
        stage=family.ingested,
        notes=part_notes(family.name),
        next_step=f"`dtef {family.name} run --model MODEL` asks",
    )


@dataclass
class _Parts:
    """Partitions of files that were read."""

    warehouse: Warehouse
    family: Family
    files: Sequence[PartFile]
    changed: list[str] = field(default_factory=list)

    is_clean = True

    def register(self, instance: Any) -> Sequence[str]:
        import dagster as dg

        from assets.stage.noted_files import add_files

        for file in self.files:
            part_notes(self.family.name).write(self.warehouse, file)
        files = {file.key: file for file in self.files}
        added = add_files(instance, dg.AssetKey(f"{self.family.name}_files"), self.family.space, files, list(files))
        self.changed = added.changed
        return added.keys

    def lines(self, outcome: Launched | None) -> Iterator[str]:
        yield f"{counted(len(self.files), self.family.part)} added, {len(self.changed)} new or changed"

    def problems(self) -> Iterator[str]:
        return iter(())


def _read(family: Family, warehouse: Warehouse, paths: Sequence[Path]) -> list[_Parts]:
    files: dict[str, PartFile] = {}
    for path in paths:
        for key in loaded_parts(family, path):
            if key in files:
                raise ConfigError(f"{path}: {key} stands in {files[key].path} too; allowed: each {family.part} once")
            files[key] = PartFile(key, str(path.absolute()), source_hash(path))
    return [_Parts(warehouse, family, list(files.values()))]


def _check(family: Family, paths: Sequence[Path]) -> Checked:
    found, faults, lines = list[dict[str, Any]](), list[str](), list[str]()
    for path in paths:
        try:
            parts = {key: len(one.rows) for key, one in loaded_parts(family, path).items()}
        except DtefError as error:
            faults.append(str(error))
            found.append({"file": str(path), "fault": str(error)})
            continue
        found.append({"file": str(path), "parts": parts})
        lines += [f"{path}: {key}, {counted(items, 'item')}" for key, items in parts.items()]
    return Checked(found, [*lines, *(f"error: {fault}" for fault in faults)], not faults)


def _list_parts(family: Family, warehouse: Warehouse) -> Mapping[str, list[dict[str, Any]]]:
    paths = {note.key: note.path for note in part_notes(family.name).all(warehouse)}
    rows = []
    for key in stored_keys(warehouse, family):
        at = family.space.levels(key)
        rows.append(
            {
                family.part: key,
                "items": len(warehouse.read_or_empty(family.ingested, columns=[family.space.first], **at)),
                "snapshots": warehouse.values(family.scored, "snapshot", **at),
                "file": paths.get(key, ""),
            }
        )
    return {plural(family.part): rows}
