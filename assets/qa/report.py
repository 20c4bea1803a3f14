"""The pages of the qa family: boards, and a page per part with its items."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.preference.voted_scores import preference_scores
from assets.qa.boards import qa_board, require_qa_scores
from assets.qa.drift import qa_drift
from assets.qa.files import QA_GROUP
from assets.qa.roll_ups import qa_costs, qa_validity
from assets.stage.partitions import roll_up
from assets.stage.published import published_pages
from assets.stage.resources import Store
from dtef_pipeline.families import SHARED_TABLES
from dtef_pipeline.qa.report.pages import QA_PAGES_FOLDER, qa_pages
from dtef_pipeline.qa.stored_tables import QA_TABLES
from dtef_pipeline.report.preference_chapter import PREFERENCE_READ

_LARGEST_TOLD = 10


@dg.asset(
    deps=[qa_board, qa_costs, qa_validity, qa_drift, preference_scores],
    **{**roll_up(code_version="2", kinds={"html"}), **QA_GROUP},
)
def qa_report(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Self-contained pages for researchers: boards of every suite with bars by subject and transcript, and a page per part with its items.

    An item is shown with what was expected, what each model said, how that was read, and quotations marked in the context that was shown;
    programs with their verdicts, judged responses with each evaluator's score. Kept in the folder `qa_report` of the warehouse, where pages of
    parts that are no more are removed; `dtef report --family qa` writes the pages elsewhere.
    """
    require_qa_scores(store)
    return published_pages(store, QA_PAGES_FOLDER, qa_pages, (*QA_TABLES, *SHARED_TABLES, *PREFERENCE_READ), _largest)


def _largest(sizes: Mapping[str, int]) -> dict[str, Any]:
    """The largest pages as a markdown table."""
    rows = sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))[:_LARGEST_TOLD]
    lines = ["| page | bytes |", "| --- | ---: |", *(f"| {name} | {size:,} |" for name, size in rows)]
    return {"largest": dg.MetadataValue.md("\n".join(lines))}
