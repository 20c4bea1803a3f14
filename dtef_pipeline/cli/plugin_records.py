"""The records of a plugin family: its files, its runs, and its boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtef_pipeline.boards.named_boards import Board, comparisons_board
from dtef_pipeline.cli.families import CommandFamily, family_settings
from dtef_pipeline.cli.family_run import FamilyRun, RunContextOfCommand, RunSelection, Steps, choose_all
from dtef_pipeline.cli.family_verbs import Addition, AddReport, CheckReport, FamilyFiles
from dtef_pipeline.cli.warehouse_access import list_stored_keys
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.family.item_scores import BY_PART, OVERALL, list_cuts
from dtef_pipeline.family.item_site import item_subject
from dtef_pipeline.family.record import Family, load_parts
from dtef_pipeline.family.stage import Stage
from dtef_pipeline.text.name_matching import filter_by_patterns
from dtef_pipeline.text.number_words import format_count, format_plural
from resources.notes import PartFile, open_part_notes, source_hash
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.stage.file_notes import AddResult


def plugin_files(family: Family) -> FamilyFiles:
    """Return the record of its files."""
    return FamilyFiles(
        noun=family.part,
        adds=f"dtef {family.name} add PATH",
        read=partial(_read, family),
        check=partial(_check, family),
        list_tables=partial(_list_parts, family),
        counted_rows={family.responses: "response"},
        stage=family.first_table,
        notes=open_part_notes(family.name),
        next_step=f"`dtef {family.name} run --model MODEL` asks",
    )


def _read(family: Family, warehouse: Warehouse, paths: Sequence[Path]) -> list[Addition]:
    files: dict[str, PartFile] = {}
    for path in paths:
        for key in load_parts(family, path):
            if key in files:
                raise ConfigError(f"{path}: {key} is in {files[key].path}, too; remove it from one of the files")
            files[key] = PartFile(key, str(path.absolute()), source_hash(path))

    def add(instance: Any) -> AddResult:
        from assets.stage.file_notes import add_noted

        return add_noted(instance, warehouse, family, open_part_notes(family.name), list(files.values()))

    return [Addition(add, lambda result: AddReport([result.line(family.part)]))]


def _check(family: Family, paths: Sequence[Path]) -> CheckReport:
    entries, faults, lines = list[dict[str, Any]](), list[str](), list[str]()
    for path in paths:
        try:
            parts = {key: len(part.rows) for key, part in load_parts(family, path).items()}
        except DtefError as error:
            faults.append(str(error))
            entries.append({"file": str(path), "fault": str(error)})
            continue
        entries.append({"file": str(path), "parts": parts})
        lines += [f"{path}: {key}, {format_count(items, 'item')}" for key, items in parts.items()]
    return CheckReport(entries, [*lines, *(f"error: {fault}" for fault in faults)], not faults)


def _list_parts(family: Family, warehouse: Warehouse) -> Mapping[str, list[dict[str, Any]]]:
    paths = {note.key: note.path for note in open_part_notes(family.name).read_all(warehouse)}
    rows = []
    for key in list_stored_keys(warehouse, family):
        levels = family.space.levels(key)
        rows.append(
            {
                family.part: key,
                "items": len(warehouse.read_or_empty(family.first_table, columns=[family.space.first], **levels)),
                "snapshots": warehouse.values(family.scores_table, "snapshot", **levels),
                "file": paths.get(key, ""),
            }
        )
    return {format_plural(family.part): rows}


def plugin_run(family: Family) -> FamilyRun:
    """Return the record of its runs."""
    return FamilyRun(
        family.name,
        family.part,
        partial(_stages, family),
        partial(family_settings, family.name),
        _choose,
        steps=_steps,
        sized_by=(family.responses, "response"),
        failure_columns=("call_status", "error"),
    )


def _stages(family: Family) -> Sequence[Stage]:
    from assets.engine.stage_assets import all_stages

    return all_stages(family)


def _choose(context: RunContextOfCommand) -> RunSelection:
    """Return the partitions that match the settings' patterns. Raises ConfigError if a pattern matches nothing."""
    every = choose_all(context)
    return every._replace(keys=filter_by_patterns(every.keys, context.options.parts, "--part"))


def _steps(context: RunContextOfCommand, keys: Sequence[str], stages: Sequence[Stage]) -> Steps:
    """Return all stages; the first, which loads files, only if the run begins with it."""
    return [(stage, keys) for stage in (stages if context.flags.first == "ingest" else stages[1:])]


_RANKED = ("rank", "model", "score", "interval", "rank_low", "rank_high", "n_items", "n_clusters", "coverage", "parse_rate")
_HIDDEN_FIRST = ("coverage", "n_clusters", "rank_low", "rank_high", "parse_rate", "metric")


def list_boards(family: Family) -> tuple[Board, ...]:
    """Return the boards of `board --by`."""
    asks = f"`dtef {family.name} run --model MODEL` asks and scores"

    def build_ranking(name: str, shows: str, *levels: str) -> Board:
        return Board(
            (*levels, *family.scores.board, *_RANKED),
            (*levels, "rank", "model", "score"),
            _HIDDEN_FIRST,
            name=name,
            table=family.board,
            shows=shows,
            needs=f"a score: {asks}",
            ends=("score_low", "score_high"),
            name_columns=(*levels, "model"),
        )

    return (
        build_ranking(OVERALL, "each model's mean score over items, with a 95 % interval"),
        build_ranking(BY_PART, f"the same in each {family.part}", family.space.first, family.space.second),
        comparisons_board("every two models on the items that both have a score for", f"scores of two models: {asks}"),
    )


def plugin_commands(family: Family) -> CommandFamily:
    """Return its record for `dtef costs`, `drift` and its board."""
    return CommandFamily(family.name, item_subject(family), list_boards(family), list_cuts(family.space))
