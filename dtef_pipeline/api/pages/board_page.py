"""The preference board, as the report shows it: strengths of players by the votes on their responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fastapi import Request, Response

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.pages.page_routes import build_page_router
from dtef_pipeline.api.pages.part_words import family_title, site_of
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.review.votes_version import compute_current_version, find_stale_reason
from dtef_pipeline.api.services import Services, Used

if TYPE_CHECKING:
    from dtef_pipeline.site.content import Section
    from dtef_pipeline.site.preference_page import FamilyNames
    from resources.warehouse import Warehouse

router = build_page_router()


@router.get("/board")
def board_page(request: Request, services: Used, held: Operating, family: str | None = None) -> Response:
    """The board of one family; without a name, of the first family with votes."""
    from resources.warehouse import Warehouse

    warehouse = Warehouse(services.settings.warehouse)
    is_made = bool(warehouse.tables(["preference_scores"]))
    boards = _load_boards(warehouse) if is_made else {}
    choice = family if family in boards else next(iter(boards), None)
    return page(
        request,
        "board",
        "Preference board",
        families={name: family_title(name) for name in boards},
        family=choice,
        sections=boards[choice] if choice is not None else [],
        changed=_describe_vote_change(warehouse if is_made else None, services),
    )


def _load_boards(warehouse: Warehouse) -> dict[str, list[Section]]:
    """Load the sections of the board by family, for families with votes."""
    # Pandas and DuckDB are loaded by who asks for the board, not by who starts the server.
    from dtef_pipeline.families import FAMILIES
    from dtef_pipeline.preference.paired_csv import ELSEWHERE
    from dtef_pipeline.site.content import drop_empty_sections
    from dtef_pipeline.site.preference_page import PREFERENCE_READ, build_preference_sections

    boards: dict[str, list[Section]] = {}
    for family, metrics in (
        {entry.name: entry.pair_source.metrics for entry in FAMILIES if entry.pair_source} | {ELSEWHERE: ()}
    ).items():
        site = site_of(family)
        tables = {*PREFERENCE_READ, *(name for metric in metrics for name in metric.tables)}
        titles = warehouse.query(site.read_part_titles, only=sorted(site.tables)) if site else {}
        names = _names_of(family, titles)
        sections = warehouse.query(
            partial(build_preference_sections, family=family, metrics=metrics, names=names), only=sorted(tables)
        )
        boards |= {family: drop_empty_sections([_remove_charts(section) for section in sections])} if sections else {}
    return boards


def _names_of(family: str, titles: Mapping[str, str]) -> FamilyNames:
    from dtef_pipeline.site.preference_page import FamilyNames

    site = site_of(family)
    return (
        FamilyNames(site.title, partial(site.title_part, titles), site.metric_words)
        if site
        else FamilyNames(family_title(family))
    )


def _remove_charts(section: Section) -> Section:
    """Remove charts, because the policy of these pages forbids evaluating their definitions; the report has them."""
    from dtef_pipeline.site.content import Chart, Fold

    blocks = [item for item in section.blocks if not isinstance(item, Chart)]
    parts = [
        replace(item, blocks=[part for part in item.blocks if not isinstance(part, Chart)]) if isinstance(item, Fold) else item
        for item in blocks
    ]
    return replace(section, blocks=parts)


def _describe_vote_change(warehouse: Warehouse | None, services: Services) -> str | None:
    """Say that votes have changed after the board was computed; None if they have not."""
    rows = warehouse.rows("preference_scores", columns=["votes_version"]).to_pylist() if warehouse else []
    return find_stale_reason([row["votes_version"] for row in rows], compute_current_version(services.votes))
