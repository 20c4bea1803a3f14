"""The pages of one part of a suite: its board, its items to explore, what was found in its files. Many items take several pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.qa.latest_scores import latest_scores, qa_snapshot_order
from dtef_pipeline.qa.report.boards_part import part_board_section, retrieval_section
from dtef_pipeline.qa.report.explorer import explorer_section, explorer_style, qa_file
from dtef_pipeline.qa.report.index_page import index_page
from dtef_pipeline.qa.site.item_entries import ExploredPage, explored_pages
from dtef_pipeline.qa.site.part_rows import PartName, PartRows, SuiteTables, part_names, read_part, shown_runs
from dtef_pipeline.report.isolated import inline
from dtef_pipeline.report.markup import Column, described, long_text, section, table, text, whole
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE, further_page, page_names
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.text.counted import counted

_LOADED_HOW = "What was noticed on reading the files of this part. A row with an error was left out. For a warning it is said what was read."
_PART_HOW = (
    "Which items these are, and which responses the page shows: the latest snapshot that scored at least half of the items."
)
_FINDINGS_TABLE = (
    Column("level", "Level", text),
    Column("code", "Code", text),
    Column("file", "File", long_text),
    Column("line", "Line", whole),
    Column("item_id", "Item", long_text),
    Column("text", "What was found", long_text),
    Column("allowed", "Allowed", long_text),
)


def part_pages(rows: StoredRows, part: PartRows, page: str, most_bytes: int, exposure: str = "") -> Iterator[tuple[str, str]]:
    """The files of one part with what they hold; `page` is the first one's name."""
    title = f"{part.suite}/{part.part}"
    explored = list(explored_pages(part, most_bytes)) or [ExploredPage(0, 0, {"items": []})]
    names = [page, *(further_page(page, "items", number) for number in range(2, len(explored) + 1))]
    places = _places(explored, names, len(part.items))
    chapters = [Chapter("board", "Board", part_board_section(rows, part.suite, part.part)), _items(explored[0])]
    if part.retrieval:
        chapters.append(Chapter("retrieval", "Retrieval", retrieval_section(rows, part.suite, part.part)))
    chapters += [Chapter("findings", "Findings", _findings(rows, part)), Chapter("about", "About", _about(part, exposure))]
    yield page, build_report(title, _introduction(part, exposure, places), chapters)
    for number, own in enumerate(explored[1:], 2):
        back = f'<p><a href="{INDEX_PAGE}">All suites</a> · <a href="{page}">{escape(title)}</a></p>'
        yield names[number - 1], build_report(f"{title}, page {number}", back + places, [_items(own)])


def _items(explored: ExploredPage) -> Chapter:
    return Chapter("items", "Items", explorer_section(explored.data), style=explorer_style(), script=qa_file("explorer.js"))


def _introduction(part: PartRows, exposure: str, places: str) -> str:
    exposed = f'<p class="flagged">{inline(exposure[:1].upper() + exposure[1:])}.</p>' if exposure else ""
    responses = sum(map(len, part.responses.values()))
    held = f"{counted(len(part.items), 'item')}, {counted(responses, 'response')}"
    return f'<p><a href="{INDEX_PAGE}">All suites</a></p>{exposed}<p>{held}.</p>{places}'


def _places(explored: Sequence[ExploredPage], names: Sequence[str], total: int) -> str:
    """Links to all pages of a part, where it has several."""
    if len(explored) == 1:
        return ""
    links = (
        f'<li><a href="{name}#items">items {own.first + 1:,} to {own.first + own.n_items:,}</a></li>'
        for own, name in zip(explored, names, strict=True)
    )
    return f"<p>{counted(total, 'item')} on {len(explored)} pages, because one page for all would be very large:</p><ul>{''.join(links)}</ul>"


def _findings(rows: StoredRows, part: PartRows) -> str:
    wanted = [column.name for column in _FINDINGS_TABLE]
    found = rows.rows("qa_findings", wanted, {"suite": part.suite, "part": part.part}, ("level", "file", "line", "code"))
    if not found:
        return section("findings", "Findings", _LOADED_HOW, "<p>Nothing was found wrong.</p>")
    return section(
        "findings", "Findings", _LOADED_HOW, table(pd.DataFrame(found), _FINDINGS_TABLE, caption="Findings of the loader")
    )


def _about(part: PartRows, exposure: str) -> str:
    kinds = sorted({str(row["type"]) for row in part.items if row["type"]})
    scorers = sorted({str(name) for row in part.items for name in row["scorers"] or ()})
    responses = [row for rows in part.responses.values() for row in rows]
    facts: dict[str, Any] = {
        "Suite": inline(part.suite),
        "Part": inline(part.part),
        "Items": f"{len(part.items):,}",
        "Types": ", ".join(map(inline, kinds)),
        "Scorers": ", ".join(map(inline, scorers)),
        "Asked as": ", ".join(map(inline, _distinct_of(responses, "condition"))),
        "Snapshots": ", ".join(map(inline, _distinct_of(responses, "snapshot"))),
        "Public": inline(exposure) if exposure else "",
    }
    return section("about", "About", _PART_HOW, described({name: value for name, value in facts.items() if value}))


def _distinct_of(responses: Sequence[StoredRow], name: str) -> list[str]:
    return sorted({str(row[name]) for row in responses if row[name]})


MOST_PAGE_BYTES = 3_000_000
"""Of the items' data on one page, roughly; a part with more has several pages."""
QA_PAGES_FOLDER = "qa_report"
"""What the folder of the pages is called, in the warehouse and where a command writes them."""
_SHOWN_RUNS = "shown_runs_of_qa"
"""The table of a connection that says which runs the pages show."""
_SUITE_FROM_PART = "__"
"""Between suite and part in the name of a page."""


def qa_pages(connection: duckdb.DuckDBPyConnection, *, most_bytes: int = MOST_PAGE_BYTES) -> Iterator[tuple[str, str]]:
    """(file name, HTML) of each page, `index.html` first, one at a time. Equal tables give equal pages.

    `connection` has `qa_scores` and views named as the family's other tables; a part of a page whose table is missing says what makes it.
    Of each way of asking and model the pages show the snapshot that the boards are made of. A part whose items take more than `most_bytes`
    has further pages, named after its own.
    """
    rows = StoredRows(connection)
    latest, order = latest_scores(connection), qa_snapshot_order(connection)
    connection.register(_SHOWN_RUNS, shown_runs(rows, latest, order))
    pages = files_of_parts(part_names(rows))
    exposed = _exposed(rows)
    yield INDEX_PAGE, index_page(rows, connection, latest, pages)
    for suite, names in groupby(pages, key=lambda name: name[0]):
        tables = SuiteTables(rows, suite, _SHOWN_RUNS)
        for name in names:
            yield from part_pages(rows, read_part(tables, name[1]), pages[name], most_bytes, exposed.get(suite, ""))


def files_of_parts(parts: list[PartName]) -> dict[PartName, str]:
    """The file of each part's page: `SUITE__PART.html` where both are plain names."""
    ids = {part: _SUITE_FROM_PART.join(part) if _is_told_apart(part) else json.dumps(part) for part in parts}
    files = page_names(ids.values())
    return {part: files[name] for part, name in ids.items()}


def _is_told_apart(part: PartName) -> bool:
    """Whether the two names, joined, are those of no other part."""
    return not any(_SUITE_FROM_PART in name or name.startswith("_") or name.endswith("_") for name in part)


def _exposed(rows: StoredRows) -> dict[str, str]:
    """Of each suite whether its answers may be in the training data; a suite without a board has no such sentence."""
    if "exposure" not in rows.columns("qa_board"):
        return {}
    found = rows.rows("(SELECT DISTINCT suite, exposure FROM qa_board)", ("suite", "exposure"), {}, ("suite", "exposure"))
    return {str(row["suite"]): str(row["exposure"]) for row in found if row["exposure"]}
