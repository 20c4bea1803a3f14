"""`dtef qa add`, `check`, `list` and `remove`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import click
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.cli.families import boards_follow, remove_parts, stored_family
from dtef_pipeline.cli.opened_warehouse import open_warehouse, reads_tables, say_skipped
from dtef_pipeline.cli.qa_run import known_parts
from dtef_pipeline.cli.started_runs import check_home_path, dagster_instance
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.qa.added_files import AddedFiles, read_added
from dtef_pipeline.qa.item_files.layouts import INTERVIEW_LAYOUT
from dtef_pipeline.qa.item_files.loaded import ANSWERS_CODE, ERROR_LEVEL, ItemFinding
from dtef_pipeline.qa.item_rows import truth_id
from dtef_pipeline.qa.space import QA_RESPONSE_KEY, QA_SPACE
from dtef_pipeline.qa.stored_tables import QA_TABLES, RESULTS_OF_PARTS
from dtef_pipeline.qa.suites import Suites, SuiteSpec
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.counted import counted
from resources.gateway.progress import kept_terminal, waiting
from resources.item_files import ITEM_NOTES, QaSource, source_hash
from resources.settings import Settings
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


_FINDINGS_NAMED, _ALIKE_NAMED = 10, 5
_LIST_COLUMNS = ("suite", "part", "items", "left_out", "types", "examples", "documents", "public_since")


def check(suite: str, path: Path, corpus: Path | None, suites: Path | None, as_json: bool) -> int:
    """The exit code: 1 where a row has an error."""
    _, added = read_files(suite, path, corpus, suites)
    findings = added.loaded.findings
    if as_json:
        types = dict(Counter(item.type for item in added.loaded.items))
        told = {"items": len(added.loaded.items), "types": types, "findings": [asdict(one) for one in findings]}
        click.echo(json.dumps(told, ensure_ascii=False))
    else:
        for one, alike in _first_of_each_kind(findings):
            say(f"{one.level}: {one}")
            if alike:
                say(f"{one.level}: {_more_alike(alike)}; --json lists them all")
        click.echo(_summary(added))
    return 1 if added.loaded.errors else 0


def add(
    suite: str,
    path: Path,
    corpus: Path | None,
    suites: Path | None,
    strict: bool,
    part: str | None = None,
    replace: bool = False,
) -> int:
    """The exit code: 1 where a part could not be read, 0 also where rows were left out.

    `part`: the name of the part, of a file that is one; `replace`: whether a part may be lost to a file of another place.
    """
    check_home_path(Settings.from_environment())
    with kept_terminal():
        with waiting("reading items"):
            spec, added = read_files(suite, path, corpus, suites, part=part, strict=strict)
            from assets.launch import OF_PARTS, materialize  # takes seconds, in which something is to be seen
            from assets.qa.files import add_parts
        if corpus is None and spec.layout == INTERVIEW_LAYOUT:
            raise ConfigError(
                f"{suite} needs --corpus: the file of documents, or the folder of interviews, that its items are about"
            )
        if not added.parts:
            for line in _told(added.loaded.findings):
                say(line, err=True)
            raise ConfigError(f"{path}: no item of it can be used; `dtef qa check` lists all that is wrong")
        sources = _sources(spec, added, path, corpus, suites)
        warehouse = open_warehouse(new=True)
        lost = list(lost_items(warehouse, added, sources))
        if not replace:
            refuse_replacing(lost, spec)
        with dagster_instance() as instance:
            drop_lost(warehouse, lost)
            found = add_parts(instance, warehouse, sources)
            outcome = materialize(instance, ["qa_items"], found.keys, {}, space=OF_PARTS)
    say_skipped(outcome, warehouse)
    for one in lost:
        say(f"{one.source.key}: gone with {one.earlier}: {one}; stored responses stay")
    if any(one.scored for one in lost):
        say(boards_follow(warehouse, stored_family("qa"), RESULTS_OF_PARTS))
    click.echo(f"{counted(len(sources), 'part')} of {suite} added, {len(found.changed)} new or changed: {_summary(added)}")
    for line in (*_told(added.loaded.findings), *(f"error: {failure}" for failure in outcome.failures)):
        say(line, err=True)
    if not outcome.failures:
        say("`dtef qa run --estimate` says what asking would cost, `dtef qa run --model MODEL` asks")
    return 1 if outcome.failures else 0


@reads_tables
def list_parts(warehouse: Warehouse, output: str) -> None:
    """One line per part."""
    if not (keys := known_parts(warehouse)):
        raise ConfigError(f"no questions in {warehouse.root} yet: `dtef qa add SUITE PATH` adds some")
    from assets.qa.known_suites import known_suites

    suites = cache(known_suites)  # many parts come from one file of suites
    frame = pd.DataFrame([_listed(warehouse, key, suites) for key in keys], columns=list(_LIST_COLUMNS))
    click.echo(render(frame, output))


def remove(patterns: Sequence[str]) -> None:
    """Take the parts that fit away, and say what went and what stays. Files stay too."""
    check_home_path(Settings.from_environment())
    warehouse = open_warehouse()
    with kept_terminal():
        with waiting("looking at what is known"):
            import assets.launch  # noqa: F401 - takes seconds, and keeps Dagster's own warnings from the terminal
            from assets.qa.files import known_parts as registered
            from assets.qa.files import remove_parts as remove_registered
        remove_parts(
            warehouse,
            stored_family("qa"),
            patterns,
            noun="part",
            adds="dtef qa add SUITE PATH",
            known=lambda instance: [
                *registered(instance),
                *known_parts(warehouse),
                *(source.key for source in ITEM_NOTES.all(warehouse)),
            ],
            take_away=remove_registered,
            counted_rows={"qa_responses": "response"},
            results=RESULTS_OF_PARTS,
        )


def read_files(
    suite: str, path: Path, corpus: Path | None, suites: Path | None, *, part: str | None = None, strict: bool = False
) -> tuple[SuiteSpec, AddedFiles]:
    """The suite, and what is at the path. Raises ConfigError for an unknown suite, ItemError where nothing can be read."""
    from assets.qa.known_suites import known_suites

    spec = known_suites(str(suites) if suites else None).route(suite)
    return spec, read_added(spec, path, corpus, part=part, strict=strict)


def _sources(spec: SuiteSpec, added: AddedFiles, path: Path, corpus: Path | None, suites: Path | None) -> list[QaSource]:
    places = [str(one.absolute()) if one else None for one in (corpus, suites)]
    content = source_hash(path, corpus, suites)
    return [QaSource(spec.name, part, str(path.absolute()), places[0], places[1], content) for part in added.parts]


def _summary(added: AddedFiles) -> str:
    types = Counter(item.type for item in added.loaded.items)
    kinds = ", ".join(f"{number:,} {type}" for type, number in sorted(types.items()))
    documents = f", {counted(len(added.documents), 'chunk')} of documents" if added.documents is not None else ""
    examples = f", {counted(len(added.loaded.examples), 'example')}" if added.loaded.examples else ""
    codes = [one.code for one in added.loaded.errors]
    answers = codes.count(ANSWERS_CODE)
    left_out = {"row": len(codes) - answers, "answer": answers}
    bad = "".join(f", {counted(number, what)} left out" for what, number in left_out.items() if number)
    return f"{counted(len(added.loaded.items), 'item')} ({kinds or 'none'}){examples}{documents}{bad}"


def _told(findings: Sequence[ItemFinding]) -> Iterator[str]:
    """A line per finding, errors first, and how many more there are."""
    shown = list(_first_of_each_kind(sorted(findings, key=lambda one: one.level != ERROR_LEVEL)))
    for one, alike in shown[:_FINDINGS_NAMED]:
        level = "left out" if one.level == ERROR_LEVEL else "warning"
        yield f"{level}: {one}"
        if alike:
            yield f"{level}: {_more_alike(alike)}"
    if more := sum(1 + alike for _, alike in shown[_FINDINGS_NAMED:]):
        yield f"and {more:,} more; `dtef qa check` lists them"


def _first_of_each_kind(findings: Sequence[ItemFinding]) -> Iterator[tuple[ItemFinding, int]]:
    """The first findings of each kind, in order, and with the last of them how many more are like it: a wrong file has one per row."""
    kinds = [(one.level, one.code, one.text, one.allowed) for one in findings]
    total, seen = Counter(kinds), Counter[tuple[str, str, str, str | None]]()
    for one, kind in zip(findings, kinds, strict=True):
        seen[kind] += 1
        if seen[kind] <= _ALIKE_NAMED:
            yield one, total[kind] - _ALIKE_NAMED if seen[kind] == _ALIKE_NAMED else 0


def _more_alike(number: int) -> str:
    return f"and {counted(number, 'more row')} like it"


def _listed(warehouse: Warehouse, key: str, suites: Callable[[str | None], Suites]) -> tuple[object, ...]:
    at = QA_SPACE.levels(key)
    house = warehouse
    items = warehouse.rows("qa_items", columns=["type"], **at)
    types = Counter(items["type"].to_pylist())
    findings = house.read_or_empty("qa_findings", columns=["level", "code"], **at).to_pylist()
    return (
        at["suite"],
        at["part"],
        len(items),
        sum(one["level"] == ERROR_LEVEL and one["code"] != ANSWERS_CODE for one in findings),
        ", ".join(f"{type} {number}" for type, number in sorted(types.items())),
        len(house.read_or_empty("qa_examples", columns=["position"], **at)),
        len(house.read_or_empty("qa_documents", columns=["doc_id"], **at)),
        _public_since(house, key, suites) or "",
    )


def _public_since(warehouse: Warehouse, key: str, suites: Callable[[str | None], Suites]) -> str | None:
    """None also where the file of the user's suites, or the note of where it is, cannot be read: what is known is listed all the same."""
    try:
        source = ITEM_NOTES.read(warehouse, key)
        return suites(source.suites if source else None).route(QA_SPACE.split(key)[0]).public_since
    except (ConfigError, WarehouseError):
        return None
