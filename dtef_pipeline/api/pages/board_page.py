"""The preference board, as reports show it: strengths of players by the votes on their responses."""

from __future__ import annotations

from fastapi import Request, Response

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.pages.elements import Content, Html, element, html, link
from dtef_pipeline.api.pages.layout import page, page_router
from dtef_pipeline.api.review.votes_version import version_of_votes_now, why_not_of_now
from dtef_pipeline.api.services import Services, Used

router = page_router()


@router.get("/board")
def board_page(request: Request, services: Used, held: Operating, family: str | None = None) -> Response:
    """The board of one family; without a name, of the first whose responses were voted on."""
    chapters, made_how = _chapters(services), element("p", _how_it_is_made(), class_="how")
    if not chapters:
        return page(request, "Preference board", _what_changed(services) or element("p", "There are no votes yet."), made_how)
    shown = family if family in chapters else next(iter(chapters))
    others = [
        element("li", link(f"/board?family={name}", name, aria_current="page" if name == shown else None)) for name in chapters
    ]
    tabs = element("ul", others, class_="tabs") if len(chapters) > 1 else None
    return page(
        request,
        "Preference board",
        tabs,
        _what_changed(services),
        made_how,
        chapters[shown],
        scripts=("tables.js",),
    )


def _how_it_is_made() -> Html:
    return html(
        "Dagster makes this board of the votes, usually within a quarter of an hour after new ones (sensor ",
        element("code", "scores_after_votes"),
        "). In a shell, ",
        element("code", "dtef preference board --refresh"),
        " makes it at once.",
    )


def _chapters(services: Services) -> dict[str, Html]:
    """By family, the chapter of its page; of those whose responses were voted on."""
    # Pandas and DuckDB are loaded by who asks for the board, not by who starts the server.
    from dtef_pipeline.families import FAMILIES
    from dtef_pipeline.preference.paired_csv import ELSEWHERE
    from dtef_pipeline.report.preference_chapter import PREFERENCE_READ, preference_chapters
    from resources.warehouse import Warehouse

    warehouse = Warehouse(services.settings.warehouse)
    if not warehouse.tables(["preference_scores"]):
        return {}
    found: dict[str, Html] = {}
    metrics_of = {one.name: one.paired.metrics for one in FAMILIES if one.paired} | {ELSEWHERE: ()}
    for family, metrics in metrics_of.items():
        tables = {*PREFERENCE_READ, *(name for metric in metrics for name in metric.tables)}
        made = warehouse.query(
            lambda connection, name=family, compared=metrics: preference_chapters(connection, name, compared),  # type: ignore[misc]
            only=sorted(tables),
        )
        found |= {family: html(*(Html(chapter.markup) for chapter in made))} if made else {}
    return found


def _what_changed(services: Services) -> Content:
    """That there are other votes now than those that the board was made of; nothing where these are the same."""
    from resources.warehouse import Warehouse

    warehouse = Warehouse(services.settings.warehouse)
    is_made = bool(warehouse.tables(["preference_scores"]))
    rows = warehouse.rows("preference_scores", columns=["votes_version"]).to_pylist() if is_made else []
    changed = why_not_of_now([row["votes_version"] for row in rows], version_of_votes_now(services.votes))
    return element("p", f"{changed.capitalize()}.", role="status", class_="lost") if changed else None
