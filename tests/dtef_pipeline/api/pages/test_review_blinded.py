"""The reviewer's page says nothing of who wrote what, and no text, form or body makes it do anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.preference.votes import make_paired_response
from dtef_pipeline.text.printable import make_visible
from tests.dtef_pipeline.api.browsed import tags_of
from tests.dtef_pipeline.api.made import votes_of
from tests.dtef_pipeline.api.reviewed import HOSTILE, hidden, reviewing, shown, voted
from tests.made.votes import responses


def test_hostile_texts_are_text(tmp_path: Path) -> None:
    rows = [
        make_paired_response("qa", "made/all/1", f"player-{number}", f"{number} {HOSTILE}", prompt=HOSTILE, names=())
        for number in (1, 2)
    ]
    with reviewing(tmp_path, rows) as client:
        page = client.get("/review")
        assert {text[2:] for text in shown(page)[1:]} == {make_visible(HOSTILE)}
        assert shown(page)[0] == make_visible(HOSTILE)
        assert "<img" not in page.text
        scripts = [attributes.get("src") for tag, attributes in tags_of(page.text) if tag == "script"]
        assert scripts == ["/static/site.js", "/static/review.js"]
        assert " style=" not in page.text
        assert "<style" not in page.text
        answer = voted(client, page, HOSTILE[:40], "5", justification=HOSTILE)
        assert answer.status_code == 422
        assert [attributes.get("src") for tag, attributes in tags_of(answer.text) if tag == "script"] == scripts
        assert answer.text.count("</textarea>") == 1


def test_a_response_that_is_empty_says_so(tmp_path: Path) -> None:
    """A box with nothing in it could be one that did not load."""
    texts = {"player-1": " \n", "player-2": "A text."}
    rows = [make_paired_response("qa", "made/all/1", name, text, prompt="What?", names=()) for name, text in texts.items()]
    with reviewing(tmp_path, rows) as client:
        assert sorted(shown(client.get("/review"))[1:]) == ["(this text is empty)", "A text."]


def test_no_body_is_a_fault_of_the_server(tmp_path: Path) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    with reviewing(tmp_path, responses(2)) as client:
        for body in (
            b"",
            b"\xff\xfe=%ff",
            b"&" * 500_000,
            b"do=vote&pair_id=%00",
            b"%ED%A0%80=1&justification=%ED%A0%80",
            b"{}",
        ):
            assert client.post("/review", content=body, headers=headers).status_code in (404, 422), body[:20]
            assert client.post("/review/consent", content=body, headers=headers).status_code == 303, body[:20]
            skipped = body.decode("latin-1")[:4_000]
            assert client.get("/review", params={"skipped": skipped, "message": "<b>\x00"}).status_code == 200, body[:20]


def test_nothing_that_is_served_says_who_wrote_what(tmp_path: Path) -> None:
    """Every byte and header of the pages and of what they load, over all states of a reviewer who votes on all pairs."""
    names = ("Zorblax", "Quuxmind", "Frobnik")
    rows = [
        make_paired_response(
            "qa", f"secretsuite/hidden/{item}", f"{name}[temperature=0]", f"I, {name.upper()}, say {place} of {item}.",
            prompt=f"{name if item else 'What'} is {item}?", names=(name,), request_keys=(f"key-{name}-{item}",),
        )
        for item in range(2)
        for place, name in enumerate(names)
    ]  # fmt: skip
    with reviewing(tmp_path, rows, asked=False) as client:
        store = votes_of(client)
        answers = [client.get("/review"), client.post("/review/consent", data={})]
        served = client.get("/api/feedback/next", params={"reviewer_id": "reviewer"})
        assert list(served.json()) == ["pair_id", "prompt", "run_a", "run_b"]
        while 'id="pair"' in (page := client.get("/review")).text:
            skipped = client.post("/review", data={**hidden(page), "do": "skip"})
            answers += [
                page,
                skipped,
                client.get(skipped.headers["location"]),
                voted(client, page, "C"),
                voted(client, page),
                voted(client, page),
            ]
        answers += [page, served, client.get("/static/review.js"), client.get("/static/review.css")]
        secrets = {*names, *(pair.left for pair in store.pairs()), *(pair.right for pair in store.pairs()), store.salt}
        secrets |= {
            "secretsuite",
            "temperature",
            "key-",
            "qa/",
            "leak",
            str(tmp_path),
            *(vote_id for vote_id, _, _ in store.votes()),
        }
    assert len(answers) == 2 + 6 * 6 + 4
    for answer in answers:
        served = f"{answer.headers}\n{answer.text}".lower()
        assert [one for one in secrets if one.lower() in served] == []
    assert "[model]" in answers[2].text


@pytest.mark.parametrize("origin", ["https://elsewhere.org", "http://testserver.elsewhere.org"])
@pytest.mark.parametrize("path", ["/review", "/review/consent"])
def test_a_form_of_another_site_changes_nothing_and_is_not_repeated(path: str, origin: str, tmp_path: Path) -> None:
    with reviewing(tmp_path, responses(2)) as client:
        fields = {
            **hidden(client.get("/review")),
            "choice": "A",
            "confidence": "5",
            "justification": "theirs",
            "consent": "yes",
        }
        client.headers["Origin"] = origin
        answer = client.post(path, data=fields)
        assert answer.status_code == 403
        assert "theirs" not in answer.text
        assert votes_of(client).votes() == []
        assert votes_of(client).reviewers()["reviewer"]["consent"] is False
