"""The API is closed: without a token nothing is served, and errors tell no more than what is wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from fastapi import Request

from dtef_pipeline.api.access import SESSION_COOKIE, find_foreign_reason, find_holder
from dtef_pipeline.api.app import make_app
from dtef_pipeline.api.tokens import DEVELOPER, TokenHolder, Tokens, new_token, read_tokens, token_hash
from dtef_pipeline.errors import ConfigError
from tests.dtef_pipeline.api.made import ROLE_TOKENS, client_in, services_in, session_in, written_tokens


def test_a_token_is_known_by_its_hash_until_it_is_taken_out(tmp_path: Path) -> None:
    path = written_tokens(tmp_path)
    tokens = Tokens(path)
    found = tokens.holder(ROLE_TOKENS["operator"])
    assert found
    assert found.name == "operator"
    assert found.may("reviewer")
    assert not found.may("admin")
    assert tokens.holder("another") is None
    assert Tokens(None).holder(ROLE_TOKENS["admin"]) is None
    path.write_text("tokens: []\n", encoding="utf-8")
    assert tokens.holder(ROLE_TOKENS["operator"]) is None


def test_faults_of_the_file_have_their_line(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text("tokens:\n  - {name: a, role: boss, sha256: x}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tokens.yaml:2: token 'a': role: got 'boss'; allowed: reviewer, operator, admin"):
        read_tokens(path)
    line = f"  - {{name: a, role: admin, sha256: {token_hash(new_token())}}}\n"
    path.write_text(f"tokens:\n{line}{line}", encoding="utf-8")
    with pytest.raises(ConfigError, match="a second time"):
        read_tokens(path)


def test_open_to_all_a_page_of_another_site_changes_nothing(tmp_path: Path) -> None:
    """`--dev` asks for no token, and a browser sends what any page says to this computer."""

    def asked(method: str, origin: str | None) -> TokenHolder | None:
        headers = [(b"host", b"127.0.0.1:8321"), *([(b"origin", origin.encode())] if origin is not None else [])]
        return find_holder(Request({"type": "http", "method": method, "headers": headers, "app": app}))

    services = services_in(tmp_path)
    app = make_app(dataclasses.replace(services, open_to_all=True))
    for origin in (None, "http://127.0.0.1:8321"):
        assert asked("POST", origin) == DEVELOPER
    for origin in ("https://example.org", "null", "http://127.0.0.1:80"):
        assert asked("POST", origin) is None
        assert asked("GET", origin) == DEVELOPER
    services.close()


def test_the_log_of_actions_takes_no_number_that_is_too_large(tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        # PostgreSQL keeps them as 32 bits.
        for number in (2**31, 10**25):
            assert client.get(f"/actions?before={number}").status_code == 422
            assert client.get(f"/api/feedback/actions?after={number}").status_code == 422
        assert client.get(f"/api/feedback/actions?after={2**31 - 1}").status_code == 200


@pytest.mark.parametrize(
    ("scheme", "host", "page", "reason"),
    [
        ("https", "testserver", "https://testserver", None),
        ("https", "testserver", "https://testserver:443", None),
        ("http", "127.0.0.1:8321", "http://127.0.0.1:8321", None),
        # A page without TLS may be anybody's who is on the way.
        ("https", "testserver", "http://testserver", "X-Forwarded-Proto"),
        ("http", "testserver", "https://testserver", "X-Forwarded-Proto"),
        ("http", "elsewhere.org", "http://elsewhere.org", "DTEF_ALLOWED_HOSTS"),
        ("http", "testserver", "http://testserver:81", "not sent from a page of this server"),
        ("http", "testserver", None, "not sent from a page of this server"),
    ],
)
def test_a_cookie_counts_for_forms_of_pages_with_the_scheme_and_a_known_host(
    tmp_path: Path, scheme: str, host: str, page: str | None, reason: str | None
) -> None:
    """Only the host of the page was compared with the one that was asked for: any scheme, and any name that led here."""
    services = services_in(tmp_path)
    headers = [(b"host", host.encode()), (b"cookie", f"{SESSION_COOKIE}={session_in(services, 'operator')}".encode())]
    headers += [(b"origin", page.encode())] if page is not None else []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/queue",
        "scheme": scheme,
        "headers": headers,
        "app": make_app(services),
    }
    held, found = find_holder(Request(scope)), find_foreign_reason(Request(scope))
    services.close()
    if reason is None:
        assert held is not None
        assert found is None
    else:
        assert held is None
        assert reason in str(found)
