"""The page on which reviewers vote, without JavaScript: a plain form that loses no vote, and says nothing of who wrote what."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.api.pages.review_pages import ALL_DONE, MAX_SKIPPED, add_skipped, read_skipped
from dtef_pipeline.api.tokens import RateLimit
from dtef_pipeline.errors import StoreError
from tests.dtef_pipeline.api.browsed import tags_of, typed_in
from tests.dtef_pipeline.api.made import votes_of
from tests.dtef_pipeline.api.reviewed import hidden, reviewing, said, shown, voted
from tests.made.votes import responses


def test_a_reviewer_learns_the_task_first_and_asked_for_consent(tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(2), asked=False) as client:
        first = client.get("/review")
        assert "What was asked" not in first.text
        assert "You cannot change a vote" in first.text
        assert "checked" not in first.text
        answer = client.post("/review/consent", data={"consent": "yes"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/review?message=shown")
        then = client.get(answer.headers["location"])
        assert "exports may show your id" in said(then)
        assert " checked>" in then.text
        assert votes_of(client).reviewers()["reviewer"]["consent"] is True
        assert client.post("/review/consent", data={}).headers["location"] == "/review?message=hidden"
        assert votes_of(client).reviewers()["reviewer"]["consent"] is False
        client.post("/review/consent", data={})
        assert [one["what"] for one in votes_of(client).actions()] == ["pairs", "reviewer", "reviewer"]


@pytest.mark.parametrize("role", ["reviewer", "admin"])
def test_votes_are_stored_under_the_name_of_who_is_logged_in_until_nothing_is_left(role: str, tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(3), role) as client:
        page = client.get("/review")
        assert page.status_code == 200
        assert "You have voted on 0 pairs; 3 are left." in page.text
        assert " checked" not in page.text
        for number, choice in enumerate(("A", "tie", "B"), start=1):
            answer = voted(client, page, choice, str(number), justification="two\r\nlines", reviewer_id="somebody")
            assert (answer.status_code, answer.headers["location"]) == (303, "/review?message=voted")
            page = client.get(answer.headers["location"])
            assert said(page).startswith("Your vote is stored.")
        assert said(page).endswith(ALL_DONE)
        votes = [vote for _, vote, _ in votes_of(client).votes()]
    assert {vote.reviewer_id for vote in votes} == {role}
    assert sorted((vote.choice, vote.confidence) for vote in votes) == [("A", 1), ("B", 3), ("tie", 2)]
    assert {vote.justification for vote in votes} == {"two\nlines"}


def test_what_was_a_on_the_page_is_a_in_the_store(tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(4)) as client:
        preferred = {}
        while "counts" in (page := client.get("/review")).text and 'id="pair"' in page.text:
            preferred[hidden(page)["pair_id"]] = shown(page)[1]
            voted(client, page)
        store = votes_of(client)
        sides = {pair.pair_id: pair for pair in store.pairs()}
        rows = {one.response_id: one.text for one in responses(4)}
        assert len(preferred) == 6
        for _, vote, _ in store.votes():
            pair = sides[vote.pair_id]
            author = pair.left if vote.shown_as_a == "left" else pair.right
            assert rows[author] == preferred[vote.pair_id]


def test_a_vote_sent_twice_is_stored_once_and_the_first_stays(tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(3)) as client:
        page = client.get("/review")
        voted(client, page, "A", "1")
        again = voted(client, page, "B", "5")
        assert again.status_code == 409
        assert "your first vote counts" in said(again)
        assert hidden(again)["pair_id"] != hidden(page)["pair_id"]
        ((_, vote, _),) = votes_of(client).votes()
    assert (vote.choice, vote.confidence) == ("A", 1)


def test_a_skipped_pair_comes_last_and_nothing_of_it_is_stored(tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(3)) as client:
        page = client.get("/review")
        order = []
        for _ in range(4):
            order.append(hidden(page)["pair_id"])
            answer = client.post("/review", data={**hidden(page), "do": "skip"})
            page = client.get(answer.headers["location"])
        assert len(set(order[:3])) == 3
        assert order[3] == order[0]
        assert hidden(page)["pair_id"] == order[1]
        assert said(page) == "You will see this pair again later. You skipped this pair before."
        assert votes_of(client).votes() == []
        page = client.get(voted(client, page).headers["location"])
        assert hidden(page)["pair_id"] == order[2]
        assert order[1] not in hidden(page)["skipped"]


def test_skipped_pairs_are_ids_each_once_and_not_too_many() -> None:
    first, second = "a" * 32, "b" * 32
    assert read_skipped(f"{first}.<b>..{second}.{first}.\x00.{'A' * 32}.a") == (first, second)
    many = tuple(f"{number:032x}" for number in range(MAX_SKIPPED))
    assert add_skipped(many, first) == (*many[1:], first)
    assert add_skipped((first, second), first) == (second, first)
    assert add_skipped((first,), "no id") == (first,)
    assert len(read_skipped(f"{first}." * 30_000)) == 1


def checked_in(markup: str) -> list[tuple[str, str]]:
    """Names and values of what is chosen."""
    found = [one for tag, one in tags_of(markup) if tag == "input" and one.get("type") == "radio" and "checked" in one]
    return [(str(one["name"]), str(one["value"])) for one in found]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"choice": ""}, "Choose A, B or tie, and how certain you are."),
        ({"confidence": ""}, "Choose A, B or tie"),
        ({"choice": "C<"}, "Better: got 'C<'; allowed: A, B, tie"),
        ({"confidence": "2.5"}, "How certain: got '2.5'"),
        ({"confidence": "٣"}, "How certain: got '٣'"),
        ({"justification": "x" * 2_001}, "Why: got 'xxx"),
    ],
)
def test_a_vote_with_a_fault_is_reported_and_stays_in_the_form(fields: dict[str, str], why: str, tmp_path: Path) -> None:
    """Faults named the fields as programs do: the reason, which the page calls Why, was told as justification."""
    given = {"choice": "B", "confidence": "5", "justification": "\nwell <b>", **fields}
    with reviewing(tmp_path, responses(2)) as client:
        page = client.get("/review")
        answer = voted(client, page, **given)
        assert answer.status_code == 422
        assert why in said(answer)
        assert shown(answer) == shown(page)
        assert hidden(answer) == hidden(page)
        kept = checked_in(answer.text)
        assert set(kept) <= set(given.items())
        assert len(kept) == 2 - len({"choice", "confidence"} & set(fields))
        assert typed_in(answer.text, "justification") == given["justification"]
        assert votes_of(client).votes() == []


def test_a_pair_that_is_not_there_is_reported_and_another_is_shown(tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(2)) as client:
        for pair_id in ("0" * 32, "\x00", "../x", "", "x" * 100_000):
            answer = voted(client, client.get("/review"), pair_id=pair_id)
            assert answer.status_code == 404
            assert shown(answer)[0] == "What is 0?"


def test_a_vote_is_kept_while_the_database_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with reviewing(tmp_path, responses(2)) as client:
        page = client.get("/review")

        def away(*_: object) -> None:
            raise StoreError("cannot be reached: postgresql://secret@host")

        with monkeypatch.context() as patch:
            patch.setattr(votes_of(client).database, "read", away)
            patch.setattr(votes_of(client).database, "write", away)
            answer = voted(client, page, "tie", "2", justification='"so" <i>')
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert "Nothing you entered is lost" in answer.text
            assert "secret" not in answer.text
            assert client.get("/review").status_code == 503
        assert client.post("/review", data={**hidden(answer), "do": "vote"}).status_code == 303
        ((_, vote, _),) = votes_of(client).votes()
    assert (vote.choice, vote.confidence, vote.justification) == ("tie", 2, '"so" <i>')


def test_a_vote_of_somebody_who_was_logged_out_is_kept_and_not_stored(tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(2)) as client:
        page = client.get("/review")
        client.cookies.clear()
        answer = voted(client, page, "B", "3")
        assert answer.status_code == 401
        assert "You are logged out" in answer.text
        assert 'target="_blank"' in answer.text
        assert {"choice": "B", "confidence": "3"}.items() <= hidden(answer).items()
        assert shown(page)[1] not in answer.text
        assert votes_of(client).votes() == []
        assert client.get("/review").headers["location"] == "/login?next=/review"
        assert "Send it again" in client.post("/review/consent", data={"consent": "yes"}).text


def test_who_votes_too_fast_waits_and_keeps_the_vote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with reviewing(tmp_path, responses(2)) as client:
        page = client.get("/review")
        monkeypatch.setattr(RateLimit, "wait_s", lambda self, reviewer_id: 12)
        answer = voted(client, page, "B", "2", justification="so")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "12")
        assert said(answer).endswith("vote again in 12 seconds.")
        assert shown(answer) == shown(page)
        assert checked_in(answer.text) == [("choice", "B"), ("confidence", "2")]
        monkeypatch.undo()
        assert voted(client, answer, "B", "2").status_code == 303


def test_the_page_and_the_route_serve_the_same_pair_and_one_vote_holds_for_both(tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(4)) as client:
        page = client.get("/review")
        served = client.get("/api/feedback/next", params={"reviewer_id": "reviewer"}).json()
        assert served["pair_id"] == hidden(page)["pair_id"]
        assert (served["prompt"], served["run_a"], served["run_b"]) == shown(page)
        given = {"pair_id": served["pair_id"], "reviewer_id": "reviewer", "choice": "A", "confidence": 1}
        assert client.post("/api/feedback/votes", json=given).status_code == 201
        assert voted(client, page).status_code == 409


def test_the_id_of_a_judge_gets_no_page_to_vote_on(tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(2), asked=False) as client:
        votes_of(client).record_consent("reviewer", consent=False, reviewer_kind="judge")
        for answer in (client.get("/review"), client.post("/review/consent", data={"consent": "yes"})):
            assert answer.status_code == 422
            assert "belongs to a judge" in answer.text
        assert votes_of(client).reviewers()["reviewer"]["reviewer_kind"] == "judge"
