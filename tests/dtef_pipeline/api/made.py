"""An API over stores of its own, for tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import jsonschema_rs  # comes with schemathesis
import yaml
from fastapi import FastAPI
from fastapi.testclient import TestClient

from dtef_pipeline.api.access import SESSION_COOKIE
from dtef_pipeline.api.app import make_app, use_services
from dtef_pipeline.api.plans.plan import use_home
from dtef_pipeline.api.services import Services
from dtef_pipeline.api.tokens import TOKEN_ROLES, Tokens, token_hash
from resources.evaluations.evaluation_store import EvaluationStore
from resources.settings import Settings, find_shipped
from resources.votes.vote_store import VoteStore
from tests.made.run_events import RUN_LOG

_SPARE_APPS: list[FastAPI] = []
"""Applications that serve nobody now: making one takes a tenth of a second."""
PINNED_GAME: Mapping[str, object] = {"persona": "", "scenario_version": 1, "seeds": "1", "opponents": []}
"""What every run of games says of itself beside its persona and its scenario."""
ROLE_TOKENS: Mapping[str, str] = {role: f"token of the {role}" for role in TOKEN_ROLES}


def written_tokens(folder: Path) -> Path:
    """A file with one token per role, each named after its role."""
    path = folder / "tokens.yaml"
    held = [{"name": role, "role": role, "sha256": token_hash(token)} for role, token in ROLE_TOKENS.items()]
    path.write_text(yaml.safe_dump({"tokens": held}), encoding="utf-8")
    return path


def settings_in(folder: Path, **further: str) -> Settings:
    """All places below a folder."""
    places = {"DTEF_WAREHOUSE": "warehouse", "DTEF_RESPONSES": "responses.sqlite", "DAGSTER_HOME": "dagster"}
    named = {name: str(folder / place) for name, place in places.items()}
    # What the test client calls itself; most tests name models that are in no file.
    usual = {"DTEF_ALLOWED_HOSTS": "testserver", "DTEF_API_ANY_MODEL": "1"}
    return Settings.read_environment({**named, **usual, **further})


def add_partitions(settings: Settings, partitions: Mapping[str, Sequence[str]]) -> None:
    """Have Dagster know them, by the name of their space, as where they were added; nothing of them is made."""
    import dagster as dg

    home = settings.dagster_home
    home.mkdir(parents=True)
    shutil.copyfile(find_shipped("dagster.yaml"), home / "dagster.yaml")
    with use_home(str(home)), dg.DagsterInstance.from_config(str(home)) as instance:
        for name, keys in partitions.items():
            instance.add_dynamic_partitions(name, list(keys))


@cache
def _empty_store() -> bytes:
    """The file of a store that has all tables, and no row: making them takes longer than most tests."""
    with TemporaryDirectory() as folder:
        Services.open_services(settings_in(Path(folder)), Tokens(None)).close()
        return (Path(folder) / "responses.sqlite").read_bytes()


def services_in(folder: Path) -> Services:
    """Services over stores in a folder, with the tokens of `ROLE_TOKENS`; what runs tell is what a test tells."""
    if not (store := folder / "responses.sqlite").exists():
        store.write_bytes(_empty_store())
    services = Services.open_services(settings_in(folder), Tokens(written_tokens(folder)))
    services.evaluations.log = RUN_LOG
    return services


def session_in(services: Services, role: str) -> str:
    """The id of a new login by the token of a role."""
    return services.sessions.begin(token_hash(ROLE_TOKENS[role]))


def begin_session(client: TestClient, role: str) -> None:
    """Give the client the cookie of a login."""
    client.cookies.set(SESSION_COOKIE, session_in(client.app.state.services, role))  # type: ignore[attr-defined]


@contextmanager
def client_in(folder: Path, role: str | None = "admin") -> Iterator[TestClient]:
    """A client that holds the token of a role; None: none."""
    services = services_in(folder)
    app = _SPARE_APPS.pop() if _SPARE_APPS else make_app(services)
    use_services(app, services)
    with TestClient(app, raise_server_exceptions=False) as client:
        if role is not None:
            client.headers["Authorization"] = f"Bearer {ROLE_TOKENS[role]}"
        yield client
    _SPARE_APPS.append(app)


def votes_of(client: TestClient) -> VoteStore:
    """The store of the votes that the client's API serves."""
    store: VoteStore = client.app.state.services.votes  # type: ignore[attr-defined]
    return store


def evaluations_of(client: TestClient) -> EvaluationStore:
    """The store of the evaluations that the client's API serves."""
    store: EvaluationStore = client.app.state.services.evaluations  # type: ignore[attr-defined]
    return store


def faults_of(answer: httpx2.Response, told: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """What is wrong with the body of an answer: members, types, times, and members that are not named. `told`: its description."""
    kind = answer.headers["content-type"].partition(";")[0]
    whole = closed({**told["content"][kind]["schema"], "components": document["components"]})
    checked = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
    return [f"{one.instance_path}: {one.message[:500]}" for one in checked.iter_errors(answer.json())]


def closed(schema: Any) -> Any:
    """The schema, so that an object may have no members but those that are named."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: closed(one) for name, one in schema.items()}
    return {**found, "additionalProperties": False} if isinstance(found.get("properties"), Mapping) else found
