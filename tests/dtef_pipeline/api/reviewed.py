"""A reviewer's browser without JavaScript, over a store with pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
from fastapi.testclient import TestClient

from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.votes import PairedResponse
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, text_of, tree_of
from tests.dtef_pipeline.api.made import begin_session, client_in, votes_of

HOSTILE = (
    "</script></textarea><script>alert(1)</script><img src=x onerror=alert(2)>&amp; \u202e\u2066 \u2028 \x1b]0;x\x07 "
    + "w" * 3_000
)


def fill(store: VoteStore, rows: Sequence[PairedResponse]) -> None:
    assert store.add_pairs(rows, make_new_pairs(rows)) > 0


@contextmanager
def reviewing(folder: Path, rows: Sequence[PairedResponse], role: str = "reviewer", asked: bool = True) -> Iterator[TestClient]:
    """A browser that is logged in, over a store with these responses in pairs. `asked`: whether the reviewer has seen the task."""
    with client_in(folder, None) as client:
        client.follow_redirects = False
        begin_session(client, role)
        client.headers.update(OWN_ORIGIN)
        if rows:
            fill(votes_of(client), rows)
        if asked:
            votes_of(client).record_consent(role, consent=False)
        yield client


def shown(answer: httpx2.Response) -> tuple[str, str, str]:
    """What a reader sees: what was asked, A, B."""
    page = tree_of(answer.text)
    prompt, a, b = (page.find(f".//*[@id='{name}']") for name in ("prompt", "run-a", "run-b"))
    assert prompt is not None
    assert a is not None
    assert b is not None
    return "".join(prompt.itertext()), "".join(a.itertext()), "".join(b.itertext())


def hidden(answer: httpx2.Response) -> dict[str, str]:
    """The fields that a browser sends without being asked: the last form of the page is the one to vote in."""
    form = tree_of(answer.text).findall(".//form")[-1]
    return {one.attrib["name"]: one.attrib["value"] for one in form.iter("input") if one.get("type") == "hidden"}


def said(answer: httpx2.Response) -> str:
    return text_of(tree_of(answer.text).find(".//*[@id='message']"))


def voted(
    client: TestClient, page: httpx2.Response, choice: str = "A", confidence: str = "4", **further: str
) -> httpx2.Response:
    return client.post("/review", data={**hidden(page), "choice": choice, "confidence": confidence, "do": "vote", **further})
