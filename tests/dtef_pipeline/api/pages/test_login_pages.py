"""Logging in: the token goes into a cookie that scripts and other sites cannot use, and is never said again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.api.access import SESSION_COOKIE
from dtef_pipeline.api.pages.page_routes import is_own_path
from dtef_pipeline.api.services import FAILURES_A_MINUTE
from dtef_pipeline.api.tokens import LOGGED_IN_S, Sessions
from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, browsing, hidden_fields
from tests.dtef_pipeline.api.made import ROLE_TOKENS


@pytest.mark.parametrize(("role", "home"), [("reviewer", "/review"), ("operator", "/queue"), ("admin", "/queue")])
def test_a_login_leads_to_the_page_of_the_role(role: str, home: str, tmp_path: Path) -> None:
    with browsing(tmp_path, None) as client:
        assert client.get("/").headers["location"] == "/login"
        answer = client.post("/login", data={"token": f" {ROLE_TOKENS[role]}\n"}, headers=OWN_ORIGIN)
        assert (answer.status_code, answer.headers["location"]) == (303, home)
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Max-Age=43200", "Path=/"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert client.get("/").headers["location"] == home
        assert client.post("/logout", headers=OWN_ORIGIN).headers["location"] == "/login"
        assert SESSION_COOKIE not in client.cookies


def test_the_cookie_is_for_https_alone_where_that_is_spoken(tmp_path: Path) -> None:
    with browsing(tmp_path, None) as client:
        answer = client.post(
            "https://testserver/login", data={"token": ROLE_TOKENS["admin"]}, headers={"Origin": "https://testserver"}
        )
    assert "Secure" in answer.headers["set-cookie"].split("; ")


@pytest.mark.parametrize("token", ["secret-of-mine", "", "\x00", "\ud83d", "x" * 9_000, "<script>alert(1)</script>"])
def test_a_wrong_token_is_refused_and_not_repeated(token: str, tmp_path: Path) -> None:
    with browsing(tmp_path, None) as client:
        answer = client.post("/login", content=b"token=" + token.encode("utf-8", "surrogatepass"), headers=OWN_ORIGIN)
    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert "set-cookie" not in answer.headers
    assert "This token is unknown" in answer.text
    assert not token.strip("\x00\ud83d") or token not in answer.text


def test_a_logout_ends_the_login_on_the_server(tmp_path: Path) -> None:
    """The cookie was the token itself, and whoever had a copy of it stayed logged in."""
    with browsing(tmp_path, None) as client:
        client.post("/login", data={"token": ROLE_TOKENS["admin"]}, headers=OWN_ORIGIN)
        copied = client.cookies[SESSION_COOKIE]
        assert ROLE_TOKENS["admin"] not in copied
        assert client.get("/queue").status_code == 200
        client.post("/logout", headers=OWN_ORIGIN)
        client.cookies.set(SESSION_COOKIE, copied)
        assert client.get("/queue").status_code != 200
        client.cookies.set(SESSION_COOKIE, ROLE_TOKENS["admin"])
        assert client.get("/queue").status_code != 200
        done = [(one["who"], one["what"]) for one in client.app.state.services.votes.actions()]  # type: ignore[attr-defined]
    assert done == [("admin", "log in"), ("admin", "log out")]


def test_a_login_ends_with_its_time_and_with_its_token(tmp_path: Path) -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    first = sessions.begin("a" * 64)
    now[0] = LOGGED_IN_S - 1
    assert sessions.find_token(first) == "a" * 64
    now[0] = LOGGED_IN_S
    assert (sessions.find_token(first), sessions.find_token("another")) == (None, None)
    with browsing(tmp_path, None) as client:
        client.post("/login", data={"token": ROLE_TOKENS["operator"]}, headers=OWN_ORIGIN)
        (tmp_path / "tokens.yaml").write_text("tokens: []\n", encoding="utf-8")
        assert client.get("/queue").status_code != 200


def test_wrong_tokens_have_to_wait_and_the_right_one_does_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with browsing(tmp_path, None) as client:
        tried = [client.post("/login", data={"token": "wrong"}, headers=OWN_ORIGIN) for _ in range(FAILURES_A_MINUTE)]
        assert {answer.status_code for answer in tried} == {401}
        later = client.post("/login", data={"token": "wrong"}, headers=OWN_ORIGIN)
        assert (later.status_code, 0 < int(later.headers["retry-after"]) <= 60) == (429, True)
        bearer = client.get("/api/evaluations/queue", headers={"Authorization": "Bearer wrong"})
        assert bearer.status_code == 429
        assert client.post("/login", data={"token": ROLE_TOKENS["operator"]}, headers=OWN_ORIGIN).status_code == 303
    assert "wrong token from" in caplog.text


def test_only_own_paths_are_gone_to_after_a_login(tmp_path: Path) -> None:
    foreign = [
        "//elsewhere.org",
        "https://elsewhere.org",
        "/\\elsewhere.org",
        "/a\nb",
        "/a\\b",
        "queue",
        "",
        "/\t/elsewhere.org",
    ]
    with browsing(tmp_path, None) as client:
        for wanted in [*foreign, "/queue/x?after=1"]:
            sent = {"token": ROLE_TOKENS["operator"], "next": wanted}
            location = client.post("/login", data=sent, headers=OWN_ORIGIN).headers["location"]
            assert location == (wanted if is_own_path(wanted) else "/queue")
            assert location.startswith("/queue")
        form = client.get("/login", params={"next": '/queue/x?a=<">'}).text
        assert hidden_fields(form, "/login") == {"next": '/queue/x?a=<">'}


def test_files_of_the_pages_are_kept_by_their_tag(tmp_path: Path) -> None:
    with browsing(tmp_path, None) as client:
        answer = client.get("/static/api.css")
        assert answer.headers["content-type"] == "text/css; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        assert "nav" in answer.text
        assert "--paper" in client.get("/static/site.css").text
        again = client.get("/static/api.css", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get("/static/..%2f__init__.py").status_code == 404
        assert client.get("/static/nothing.css").status_code == 404
