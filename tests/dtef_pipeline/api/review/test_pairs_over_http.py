"""Operators make pairs of stored responses over HTTP, as of the command, until there is nothing left to pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, assert_inert
from tests.dtef_pipeline.api.made import client_in, votes_of
from tests.dtef_pipeline.cli.test_preference_votes import asked
from tests.made.qa_scores import keep_in

PAIRS_PATH = "/api/feedback/pairs"
PLAYED = ("one", "two", "three")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """An operator's, over the responses of three models to one item."""
    with client_in(tmp_path, "operator") as found:
        folder = Path(found.app.state.services.settings.warehouse)  # type: ignore[attr-defined]
        place = {"suite": "made", "part": "all", "item_id": "1", "condition": "plain", "prompt_id": "p"}
        prompts = [place | {"messages": [{"role": "user", "text": "What is it?"}]}]
        keep_in(folder, {"qa_prompts": prompts, "qa_responses": [place | {"snapshot": "base"} | asked(one) for one in PLAYED]})
        yield found


def test_pairs_are_made_served_and_made_once(client: TestClient) -> None:
    assert client.get("/api/feedback/next", params={"reviewer_id": "r1"}).status_code == 204
    first = client.post(PAIRS_PATH, json={"family": "qa", "max_pairs": 1})
    assert (first.status_code, first.json()["pairs"], len(first.json()["pair_ids"])) == (201, 1, 1)
    assert client.get("/api/feedback/next", params={"reviewer_id": "r1"}).json()["pair_id"] == first.json()["pair_ids"][0]
    second = client.post(PAIRS_PATH, json={"family": "qa", "pattern": ["made/*"], "baselines": False})
    assert second.json()["pairs"] == 2
    assert {*first.json()["pair_ids"], *second.json()["pair_ids"]} == {pair.pair_id for pair in votes_of(client).pairs()}
    third = client.post(PAIRS_PATH, json={"family": "qa"})
    assert (third.status_code, third.json()["detail"]) == (409, "nothing is left to pair: 3 stored responses found")
    assert [(one["who"], one["what"]) for one in votes_of(client).actions()] == [("operator", "pairs")] * 2


@pytest.mark.parametrize("path", ["/api/feedback/next", "/api/feedback/scores"])
def test_a_family_that_there_is_none_of_is_refused(client: TestClient, path: str) -> None:
    """It was answered as if there were no pair left."""
    answer = client.get(path, params={"reviewer_id": "r1", "family": "zz"})
    said = "got 'zz'; allowed: survey, rubric, qa, games, elsewhere"
    assert (answer.status_code, answer.json()["errors"]) == (422, [{"path": "query.family", "message": said}])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"family": "chess"}, "family: got 'chess'; allowed: survey, rubric, qa, games"),
        ({}, "family"),
        ({"family": "qa", "max_pairs": 0}, "max_pairs"),
        ({"family": "qa", "per_item": 1.5}, "per_item"),
        ({"family": "qa", "pattern": "made/*"}, "pattern"),
        ({"family": "qa", "snapshot": "../x"}, "snapshot"),
        ({"family": "qa", "baselines": "yes"}, "baselines"),
        ({"family": "qa", "players": []}, "players"),
    ],
)
def test_what_is_wrong_with_a_wish_is_stated(client: TestClient, body: dict[str, Any], said: str) -> None:
    answer = client.post(PAIRS_PATH, json=body)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


@pytest.mark.parametrize(
    "body", [{"family": "games"}, {"family": "qa", "pattern": ["other/*"]}, {"family": "qa", "snapshot": "june"}]
)
def test_where_nothing_fits_there_is_nothing_to_pair(client: TestClient, body: dict[str, Any]) -> None:
    answer = client.post(PAIRS_PATH, json=body)
    assert (answer.status_code, answer.json()["detail"]) == (409, "nothing is left to pair: no stored response matches")


def test_pairs_are_made_by_a_form_and_it_says_how_many_or_why_none(client: TestClient) -> None:
    """Votes could not be collected by pages alone: only programs could make pairs."""
    assert 'action="/votes"' in client.get("/votes").text

    def sent(**fields: str) -> str:
        shown = client.post("/votes", data=fields, headers=OWN_ORIGIN).text
        assert_inert(shown)
        return shown

    assert " 2 pairs." in sent(family="qa", max_pairs="2")
    assert " 1 pair." in sent(family="qa", max_pairs="")
    assert "nothing is left to pair: 3 stored responses found" in sent(family="qa", max_pairs="5")
    assert "no stored response matches" in sent(family="games", max_pairs="5")
    for most in ("0", "many"):
        assert 'id="max_pairs-fault"' in sent(family="qa", max_pairs=most)
    assert 'id="family-fault"' in sent(family="<b>")
    assert len(votes_of(client).pairs()) == 3
