"""The files of questions with expected answers: for `dtef qa add`, `check`, `list` and `remove`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.cli.family_verbs import Addition, AddReport, CheckReport, FamilyFiles, describe_board_update
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.cli.warehouse_access import list_stored_keys
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.qa.item_files.item_log import ANSWERS_CODE, ERROR_LEVEL, ItemFinding
from dtef_pipeline.qa.item_files.socioscope import INTERVIEW_LAYOUT
from dtef_pipeline.qa.item_files.suite_files import AddedFiles, read_added
from dtef_pipeline.qa.prompt_rows import truth_id
from dtef_pipeline.qa.suites import Suites, SuiteSpec
from dtef_pipeline.qa.tables import QA_RESPONSE_KEY, QA_SPACE, QA_TABLES
from dtef_pipeline.text.number_words import format_count
from resources.notes import ITEM_NOTES, QaSource, source_hash
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.stage.file_notes import AddResult

_OF_FILES = ("qa_items", "qa_findings")
"""Tables that a part's files are read into."""


@dataclass(frozen=True, slots=True)
class ItemLoss:
    """The items of a part that a file from another path lacks."""

    source: QaSource
    """The part with the new file."""
    earlier: str
    """The file that the part was read from."""
    items: Sequence[str]
    n_scored: int
    """The number of their responses that have a score."""

    def __str__(self) -> str:
        return f"{format_count(len(self.items), 'item')} with {format_count(self.n_scored, 'scored response')}"


def refuse_replacing(losses: Sequence[ItemLoss], spec: SuiteSpec) -> None:
    """Raise ConfigError if items would be lost."""
    if not losses:
        return
    another = "--part NAME gives it another name" if spec.layout == INTERVIEW_LAYOUT else "--suites gives it a suite of its own"
    suffix = f"; so would {format_count(len(losses) - 1, 'other part')}" if losses[1:] else ""
    first = f"{losses[0].source.key} was added from {losses[0].earlier}: {losses[0].source.path} would remove {losses[0]} of it"
    raise ConfigError(f"{first}{suffix}: {another}, --replace replaces it")


def remove_lost_items(warehouse: Warehouse, losses: Sequence[ItemLoss]) -> None:
    """Remove the rows of the items from all tables of their parts, and so from boards. Stored responses stay."""
    for loss in losses:
        key, item_ids = QA_SPACE.levels(loss.source.key), pa.array(loss.items, pa.string())
        for table, spec in QA_TABLES.items():
            if spec.space != QA_SPACE or table in _OF_FILES or spec.schema is None or "item_id" not in spec.schema.names:
                continue
            below = [level for level in spec.levels if level not in key]
            for levels in [{**key, below[0]: value} for value in warehouse.values(table, below[0], **key)] if below else [key]:
                _remove_rows(warehouse, table, levels, item_ids)


def _remove_rows(warehouse: Warehouse, table: str, levels: Mapping[str, str], items: pa.Array) -> None:
    """Remove the rows of the items from a table. Unreadable tables stay until the command that makes them runs again."""
    rows = warehouse.rows(table, **levels)
    remainder = rows.filter(pc.invert(pc.is_in(rows["item_id"], items)))
    if not len(rows) or len(remainder) == len(rows):
        return
    if len(remainder):
        warehouse.write(table, remainder, **levels)
    else:
        warehouse.fs.delete_dir(warehouse.folder(table, **levels))


def find_lost_items(warehouse: Warehouse, files: AddedFiles, sources: Sequence[QaSource]) -> Iterator[ItemLoss]:
    """Yield the items of each part that a file from another path would remove.

    A changed file at the same path, or a moved file, replaces the earlier one as usual.
    """
    new = {(item.part, item.item_id, item.text, truth_id(item)) for item in files.loaded_items.items}
    for source in sources:
        try:
            old_source = ITEM_NOTES.read(warehouse, source.key)
        except WarehouseError:
            continue  # adding rewrites the note
        if old_source is None:
            continue
        old, new_path = Path(old_source.path).resolve(), Path(source.path).resolve()
        if old.is_relative_to(new_path) or new_path.is_relative_to(old):
            continue
        columns = ["item_id", "text", "truth_id"]
        rows = warehouse.rows("qa_items", columns=columns, **QA_SPACE.levels(source.key))
        items = [row["item_id"] for row in rows.to_pylist() if (source.part, *(row[name] for name in columns)) not in new]
        if items:
            yield ItemLoss(source, old_source.path, items, _count_scored(warehouse, source.key, items))


def _count_scored(warehouse: Warehouse, key: str, items: Sequence[str]) -> int:
    names = [*QA_RESPONSE_KEY, "snapshot"]
    rows = warehouse.rows("qa_scores", columns=[*names, "score"], **QA_SPACE.levels(key))
    scores = rows.filter(pc.and_(pc.is_valid(rows["score"]), pc.is_in(rows["item_id"], pa.array(items, pa.string()))))
    return len(scores.group_by(names).aggregate([]))


_FINDINGS_NAMED, _ALIKE_NAMED = 10, 5


def _check(suite: str, path: Path, corpus: Path | None, suites: Path | None) -> CheckReport:
    _, files = read_files(suite, path, corpus, suites)
    content = files.loaded_items
    types = dict(Counter(item.type for item in content.items))
    document = {"items": len(content.items), "types": types, "findings": [asdict(finding) for finding in content.findings]}
    lines = _format_groups(_group_findings(content.findings), ERROR_LEVEL, "; --json lists them all")
    return CheckReport(document, [*lines, _summarize_added(files)], not content.errors)


def _read(
    warehouse: Warehouse,
    suite: str,
    path: Path,
    corpus: Path | None,
    suites: Path | None,
    strict: bool,
    part: str | None,
    replace: bool,
) -> list[Addition]:
    """Read the files of `add`. `part`: name of the part that a file is; `replace`: whether a file from another path may replace a part."""
    spec, files = read_files(suite, path, corpus, suites, part=part, strict=strict)
    if corpus is None and spec.layout == INTERVIEW_LAYOUT:
        raise ConfigError(
            f"{suite} needs --corpus: the file of documents, or the folder of interviews, that its items are about"
        )
    if not files.parts:
        for line in _describe_left_out(files.loaded_items.findings):
            say(line, err=True)
        raise ConfigError(f"{path}: no item of it can be used; `dtef qa check` lists all that is wrong")
    sources = _build_sources(spec, files, path, corpus, suites)
    losses = list(find_lost_items(warehouse, files, sources))
    if not replace:
        refuse_replacing(losses, spec)

    def add(instance: Any) -> AddResult:
        from assets.stage.file_notes import add_noted

        remove_lost_items(warehouse, losses)
        return add_noted(instance, warehouse, FAMILY_BY_NAME["qa"], ITEM_NOTES, sources)

    def report(parts: AddResult) -> AddReport:
        lines = [f"{loss.source.key}: gone with {loss.earlier}: {loss}; stored responses stay" for loss in losses]
        if any(loss.n_scored for loss in losses):
            lines.append(describe_board_update(warehouse, FAMILY_BY_NAME["qa"]))
        lines.append(f"{parts.line('part', f' of {suite}')}: {_summarize_added(files)}")
        return AddReport(lines, _describe_left_out(files.loaded_items.findings))

    return [Addition(add, report)]


def _list_all_parts(warehouse: Warehouse) -> dict[str, list[dict[str, Any]]]:
    from assets.qa.part_checks import load_known_suites

    suites = cache(load_known_suites)  # many parts share a suites file
    return {"parts": [_build_row(warehouse, key, suites) for key in list_stored_keys(warehouse, FAMILY_BY_NAME["qa"])]}


def read_files(
    suite: str, path: Path, corpus: Path | None, suites: Path | None, *, part: str | None = None, strict: bool = False
) -> tuple[SuiteSpec, AddedFiles]:
    """Return the suite and the contents of the path. Raises ConfigError for an unknown suite, ItemError if nothing can be read."""
    from assets.qa.part_checks import load_known_suites

    spec = load_known_suites(str(suites) if suites else None).route(suite)
    return spec, read_added(spec, path, corpus, part=part, strict=strict)


def _build_sources(spec: SuiteSpec, files: AddedFiles, path: Path, corpus: Path | None, suites: Path | None) -> list[QaSource]:
    places = [str(file.absolute()) if file else None for file in (corpus, suites)]
    content = source_hash(path, corpus, suites)
    return [QaSource(spec.name, part, str(path.absolute()), places[0], places[1], content) for part in files.parts]


def _summarize_added(files: AddedFiles) -> str:
    types = Counter(item.type for item in files.loaded_items.items)
    kinds = ", ".join(f"{number:,} {type}" for type, number in sorted(types.items()))
    documents = f", {format_count(len(files.documents), 'chunk')} of documents" if files.documents is not None else ""
    examples = f", {format_count(len(files.loaded_items.examples), 'example')}" if files.loaded_items.examples else ""
    codes = [error.code for error in files.loaded_items.errors]
    answers = codes.count(ANSWERS_CODE)
    left_out = {"row": len(codes) - answers, "answer": answers}
    bad = "".join(f", {format_count(number, noun)} left out" for noun, number in left_out.items() if number)
    return f"{format_count(len(files.loaded_items.items), 'item')} ({kinds or 'none'}){examples}{documents}{bad}"


def _describe_left_out(findings: Sequence[ItemFinding]) -> Iterator[str]:
    """Yield a line per finding, errors first, and the number of further ones."""
    groups = list(_group_findings(sorted(findings, key=lambda finding: finding.level != ERROR_LEVEL)))
    yield from _format_groups(groups[:_FINDINGS_NAMED], "left out")
    if remaining := sum(1 + alike for _, alike in groups[_FINDINGS_NAMED:]):
        yield f"and {remaining:,} more; `dtef qa check` lists them"


def _group_findings(findings: Sequence[ItemFinding]) -> Iterator[tuple[ItemFinding, int]]:
    """Yield the first findings of each kind, in order, the last with the number of further ones: a wrong file has one per row."""
    kinds = [(finding.level, finding.code, finding.text, finding.allowed) for finding in findings]
    total, counts = Counter(kinds), Counter[tuple[str, str, str, str | None]]()
    for finding, kind in zip(findings, kinds, strict=True):
        counts[kind] += 1
        if counts[kind] <= _ALIKE_NAMED:
            yield finding, total[kind] - _ALIKE_NAMED if counts[kind] == _ALIKE_NAMED else 0


def _format_groups(groups: Iterable[tuple[ItemFinding, int]], error_word: str, suffix: str = "") -> Iterator[str]:
    """Yield a line per finding, and one with the number of further ones like it. `error_word`: what errors begin with."""
    for finding, alike in groups:
        word = error_word if finding.level == ERROR_LEVEL else finding.level
        yield f"{word}: {finding}"
        if alike:
            yield f"{word}: and {format_count(alike, 'more row')} like it{suffix}"


def _build_row(warehouse: Warehouse, key: str, suites: Callable[[str | None], Suites]) -> dict[str, Any]:
    levels = QA_SPACE.levels(key)
    types = Counter(warehouse.rows("qa_items", columns=["type"], **levels)["type"].to_pylist())
    findings = warehouse.read_or_empty("qa_findings", columns=["level", "code"], **levels).to_pylist()
    return {
        **levels,
        "items": types.total(),
        "left_out": sum(finding["level"] == ERROR_LEVEL and finding["code"] != ANSWERS_CODE for finding in findings),
        "types": ", ".join(f"{type} {number}" for type, number in sorted(types.items())),
        "examples": len(warehouse.read_or_empty("qa_examples", columns=["position"], **levels)),
        "documents": len(warehouse.read_or_empty("qa_documents", columns=["doc_id"], **levels)),
        "public_since": _find_public_date(warehouse, key, suites) or "",
    }


def _find_public_date(warehouse: Warehouse, key: str, suites: Callable[[str | None], Suites]) -> str | None:
    """Return the date, or None if there is none or if the note or the user's suites file cannot be read, so that listing works."""
    try:
        source = ITEM_NOTES.read(warehouse, key)
        return suites(source.suites if source else None).route(QA_SPACE.split(key)[0]).public_since
    except (ConfigError, WarehouseError):
        return None


QA_FILES = FamilyFiles(
    noun="part",
    adds="dtef qa add SUITE PATH",
    read=_read,
    check=_check,
    list_tables=_list_all_parts,
    notes=ITEM_NOTES,
    counted_rows={"qa_responses": "response"},
    stage="qa_items",
    next_step="`dtef qa run --estimate` prints the cost, `dtef qa run --model MODEL` asks a model",
)
