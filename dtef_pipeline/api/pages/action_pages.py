"""The log of actions of administrators and operators, with the changes of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from fastapi import Query, Request, Response

from dtef_pipeline.api.access import AdminToken
from dtef_pipeline.api.pages.page_routes import build_page_router
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.review.feedback_routes import LARGEST_PLACE
from dtef_pipeline.api.services import ServicesDep
from resources.votes.vote_queries import list_latest_actions
from resources.votes.vote_tables import decode_time

_ACTIONS_A_PAGE = 100
_Place = Annotated[int | None, Query(ge=0, le=LARGEST_PLACE)]

router = build_page_router()


class ChangedMember(NamedTuple):
    """A member that an action changed."""

    name: str
    before: str | None
    """None: it did not exist."""
    after: str | None
    """None: it was removed."""


@router.get("/actions")
def actions_page(request: Request, services: ServicesDep, held: AdminToken, before: _Place = None) -> Response:
    """The log of actions, latest first."""
    rows = list_latest_actions(services.votes.database, _ACTIONS_A_PAGE, before)
    actions = [
        {
            "at": decode_time(row["done_at"]),
            "who": row["who"] or "–",
            "what": row["what"],
            "changes": changes(json.loads(row["before"]), json.loads(row["after"])),
        }
        for row in rows
    ]
    older = f"/actions?before={rows[-1]['place']}" if len(rows) == _ACTIONS_A_PAGE else None
    return page(request, "actions", "Actions", actions=actions, older=older)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ChangedMember]:
    """Return the members that differ between two objects, including nested ones: `traits.risk`."""
    old, new = _flatten_document(before), _flatten_document(after)
    return [ChangedMember(name, old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)]


def _flatten_document(document: Mapping[str, Any], above: str = "") -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in document.items():
        if isinstance(value, dict) and value:
            texts |= _flatten_document(value, f"{above}{name}.")
        else:
            texts[f"{above}{name}"] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return texts
