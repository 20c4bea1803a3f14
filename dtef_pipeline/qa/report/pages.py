"""The pages of the qa family: an index with boards, and a page per part with its items. Self-contained files, no network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

import duckdb

from dtef_pipeline.qa.latest_scores import latest_scores, qa_snapshot_order
from dtef_pipeline.qa.report.index_page import index_page
from dtef_pipeline.qa.report.part_page import part_pages
from dtef_pipeline.qa.report.part_rows import PartName, SuiteTables, part_names, read_part, shown_runs
from dtef_pipeline.report.page_files import INDEX_PAGE, page_names
from dtef_pipeline.report.stored_rows import StoredRows

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
