"""The pages of one part of a suite: its board, its items to explore, what was found in its files. Many items take several pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import pandas as pd

from dtef_pipeline.qa.report.beside_boards import retrieval_section
from dtef_pipeline.qa.report.boards_part import part_board_section
from dtef_pipeline.qa.report.explored import ExploredPage, explored_pages
from dtef_pipeline.qa.report.explorer import explorer_section, explorer_style, qa_file
from dtef_pipeline.qa.report.part_rows import PartRows
from dtef_pipeline.report.isolated import inline
from dtef_pipeline.report.markup import Column, described, long_text, section, table, text, whole
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE, further_page
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
