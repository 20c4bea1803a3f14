"""`dtef tokens` keeps hashes and shows a token once; `dtef api` does not start where it would be open to others, or closed to all."""

from __future__ import annotations

import asyncio
import socket
import stat
import threading
from pathlib import Path

import pytest
import uvicorn

from dtef_pipeline.api.tokens import read_tokens, token_hash
from dtef_pipeline.cli import serve_api
from dtef_pipeline.cli.token_commands import add
from resources.settings import Settings
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.strict_json import strict
from tests.test_architecture import loaded_by


@pytest.fixture
def tokens(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = state / "access" / "tokens.yaml"
    monkeypatch.setenv("DTEF_API_TOKENS", str(path))
    return path


def made(name: str, role: str) -> str:
    return ok("tokens", name, "--role", role).strip()


class TestTokens:
    def test_a_token_is_shown_once_and_its_hash_kept_where_others_cannot_read_it(self, tokens: Path) -> None:
        shown = made("alice", "admin")
        assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
        assert shown not in tokens.read_text(encoding="utf-8")
        (held,) = read_tokens(tokens)
        assert (held.name, held.role, held.sha256) == ("alice", "admin", token_hash(shown))
        made("bob", "reviewer")
        assert strict(ok("tokens", "--json")) == [
            {"name": "alice", "role": "admin"},
            {"name": "bob", "role": "reviewer"},
        ]
        ok("tokens", "alice", "--remove")
        assert [one.name for one in read_tokens(tokens)] == ["bob"]

    def test_a_name_is_given_once_and_can_be_an_id(self, tokens: Path) -> None:
        made("alice", "admin")
        before = tokens.read_bytes()
        assert "'alice' has a token already" in refused("tokens", "alice", "--role", "reviewer")
        assert "got 'a b'; allowed: 1 to 100 letters" in refused("tokens", "a b", "--role", "reviewer")
        assert "'carol' has no token; names with a token: alice" in refused("tokens", "carol", "--remove")
        assert tokens.read_bytes() == before

    def test_a_file_with_a_fault_is_left_as_it_is(self, tokens: Path) -> None:
        tokens.parent.mkdir()
        tokens.write_text("tokens:\n- {name: a, role: boss}\n", encoding="utf-8")
        for words in (("b", "--role", "admin"), (), ("a", "--remove")):
            assert "tokens.yaml:2: token 'a': role: got 'boss'" in refused("tokens", *words)
        assert "boss" in tokens.read_text(encoding="utf-8")

    def test_the_rights_of_a_group_stay_and_those_of_others_go(self, tokens: Path) -> None:
        made("alice", "admin")
        tokens.chmod(0o644)
        made("bob", "operator")
        assert stat.S_IMODE(tokens.stat().st_mode) == 0o640

    def test_tokens_that_are_made_at_once_are_all_kept(self, tokens: Path) -> None:
        names = [f"r{number}" for number in range(8)]
        threads = [threading.Thread(target=add, args=(name, "reviewer")) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {one.name for one in read_tokens(tokens)} == set(names)

    def test_without_a_file_named_the_variable_is_asked_for(self, state: Path) -> None:
        assert "DTEF_API_TOKENS is not set" in refused("tokens", "alice", "--role", "admin")


class TestStart:
    """What stands in the way of a start; `tests/dtef_pipeline/api/queue/test_killed.py` starts it."""

    def test_without_tokens_it_does_not_start_and_says_how_to_make_one(self, state: Path) -> None:
        said = refused("api")
        assert "no client could use the API" in said
        assert "dtef tokens NAME --role admin" in said
        assert "dtef api --dev" in said

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
    def test_open_to_all_it_serves_loopback_alone(self, state: Path, host: str) -> None:
        assert "use 127.0.0.1 or ::1" in refused("api", "--dev", "--host", host)

    def test_a_port_in_use_is_stated(self, state: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            said = refused("api", "--dev", "--port", port)
        assert f"cannot serve at 127.0.0.1, port {port}: Address already in use" in said

    def test_an_address_of_another_computer_is_stated(self, tokens: Path) -> None:
        made("alice", "admin")
        assert "cannot serve at 192.0.2.1" in refused("api", "--host", "192.0.2.1")
        assert dtef("api", "--host", "\u2028").exit_code == 2

    def test_it_starts_without_what_stages_and_boards_need(self) -> None:
        loaded = loaded_by("import dtef_pipeline.cli.serve_api")
        assert "uvicorn" in loaded
        assert loaded & {"dagster", "litellm", "pandas", "duckdb"} == set()

    def test_what_submissions_need_is_loaded_behind_its_start(self, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The first submission of a rubric took 10 seconds and more, as it imported Dagster and litellm."""
        begun, may_end = threading.Event(), threading.Event()

        def load(_: Settings) -> None:
            begun.set()
            may_end.wait()

        monkeypatch.setattr(serve_api, "load_slow_packages", load)
        monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: asyncio.run(started_and_stopped(server, sockets)))
        try:
            assert "stop with Ctrl-C" in dtef("api", "--dev", "--port", 0).stdout
            assert begun.wait(60)
        finally:
            may_end.set()


async def started_and_stopped(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets)
    await server.shutdown(sockets)
