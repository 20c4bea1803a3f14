"""Where things are: the one place that reads DTEF_* environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.origins import listed_hosts

HOME = Path(".dtef")
SOCIOSCOPE_AUTH = "DTEF_SOCIOSCOPE_AUTH"
"""Name of the variable with the secret of the server that looks up chunks of interviews."""
API_ANY_MODEL = "DTEF_API_ANY_MODEL"
ALLOWED_HOSTS = "DTEF_ALLOWED_HOSTS"
"""Name of the variable with the host names under which browsers reach Dagster's web server and the HTTP API."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Places of the warehouse, the response store, the user's models and the landing folder of surveys.

    `DTEF_WAREHOUSE` (folder or `s3://bucket/prefix`), `DTEF_RESPONSES` (file or database URL), `DTEF_MODELS` (a YAML file that
    adds to the shipped models), `DTEF_SURVEYS` (folder the `new_round` sensor watches), `DTEF_BLUEPRINTS` (folder that the sensor
    `new_blueprint` watches), `DTEF_PANEL` (a YAML file that says
    what is asked every night),
    `DTEF_WEBHOOK` (URL that verdicts on drift are sent to: a secret, never shown whole), `DAGSTER_HOME`,
    `DTEF_SOCIOSCOPE_URL` (server that looks up chunks of interviews: of its URL only the host is shown), `DTEF_SOCIOSCOPE_AUTH` (its secret,
    which is read where it is sent, and kept nowhere), `DTEF_SOCIOSCOPE_MODEL` (what the server is told to answer with, where it wants that),
    `DTEF_SCENARIOS` (folder with scenarios of games, `<league>/<scenario>.yaml`, that adds to the shipped ones), `DTEF_PERSONAS` (folder with
    personas, `*.yaml`, that adds to the shipped ones and that `dtef games import personas` writes to),
    `DTEF_API_TOKENS` (a YAML file with the hashes of the tokens that the HTTP API takes),
    `DTEF_ALLOWED_HOSTS` (names under which browsers reach Dagster's web server and the HTTP API, besides those of this computer:
    `dtef.example.org, dagster.example.org`),
    `DTEF_API_ANY_MODEL` (1: the HTTP API takes any litellm string as a model, not those of the models files alone),
    `DTEF_PARTITIONS_PER_RUN` (the most partitions of one run of a backfill, so that several workers share it; not set: as few runs as can be),
    `DTEF_PROVIDER_LIMITS` (calls in flight at once to a provider over all runs that share the response store: `openai=60,anthropic=20`),
    `DTEF_BROKER` (the queue of runs that several machines share: `redis://:PASSWORD@HOST:6379/0`, never shown whole),
    `DTEF_SANDBOX` (how programs that models wrote are kept apart: `auto`, or the name of a level),
    `DTEF_TRACEBACK` (1: commands show the traceback of every error).
    """

    warehouse: str
    responses: str
    models: Path | None
    surveys: Path
    dagster_home: Path
    panel: Path | None
    webhook: str | None = field(repr=False)
    traceback: bool = False
    blueprints: Path | None = None
    sandbox: str = "auto"
    socioscope_url: str | None = field(default=None, repr=False)
    socioscope_auth_env: str | None = None
    """Name of the variable with the secret of the server; None: it is not set, and the server gets none."""
    socioscope_model: str | None = None
    scenarios: Path | None = None
    personas: Path | None = None
    api_tokens: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    api_any_model: bool = False
    partitions_per_run: int | None = None
    # Left out of the hash: settings are keys of caches, and a mapping has none.
    provider_limits: Mapping[str, int] = field(default_factory=dict, hash=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        env = os.environ if environment is None else environment
        return cls(
            warehouse=env.get("DTEF_WAREHOUSE") or str(HOME / "warehouse"),
            responses=env.get("DTEF_RESPONSES") or str(HOME / "responses.sqlite"),
            models=Path(env["DTEF_MODELS"]) if env.get("DTEF_MODELS") else None,
            surveys=Path(env.get("DTEF_SURVEYS") or HOME / "surveys"),
            dagster_home=Path(env["DAGSTER_HOME"]) if env.get("DAGSTER_HOME") else (HOME / "dagster").absolute(),
            panel=Path(env["DTEF_PANEL"]) if env.get("DTEF_PANEL") else None,
            webhook=env.get("DTEF_WEBHOOK") or None,
            blueprints=Path(env["DTEF_BLUEPRINTS"]) if env.get("DTEF_BLUEPRINTS") else None,
            sandbox=env.get("DTEF_SANDBOX") or "auto",
            socioscope_url=env.get("DTEF_SOCIOSCOPE_URL", "").strip() or None,
            socioscope_auth_env=SOCIOSCOPE_AUTH if env.get(SOCIOSCOPE_AUTH, "").strip() else None,
            socioscope_model=env.get("DTEF_SOCIOSCOPE_MODEL", "").strip() or None,
            scenarios=Path(env["DTEF_SCENARIOS"]) if env.get("DTEF_SCENARIOS") else None,
            personas=Path(env["DTEF_PERSONAS"]) if env.get("DTEF_PERSONAS") else None,
            api_tokens=Path(env["DTEF_API_TOKENS"]) if env.get("DTEF_API_TOKENS") else None,
            allowed_hosts=_hosts(ALLOWED_HOSTS, env.get(ALLOWED_HOSTS, "")),
            api_any_model=env.get(API_ANY_MODEL, "0") not in ("", "0"),
            partitions_per_run=_positive("DTEF_PARTITIONS_PER_RUN", env.get("DTEF_PARTITIONS_PER_RUN", "").strip()),
            provider_limits=_limits("DTEF_PROVIDER_LIMITS", env.get("DTEF_PROVIDER_LIMITS", "")),
            traceback=env.get("DTEF_TRACEBACK", "0") not in ("", "0"),
        )

    @property
    def home_problem(self) -> str | None:
        """Why `DAGSTER_HOME` cannot be used as it is given; None: it can. Dagster takes a full path alone."""
        if self.dagster_home.is_absolute():
            return None
        return f"DAGSTER_HOME is {self.dagster_home}, which is not a full path: name it as DAGSTER_HOME={self.dagster_home.absolute()}"

    @property
    def responses_url(self) -> str:
        """`DTEF_RESPONSES` as a SQLAlchemy URL; a plain path is a SQLite file."""
        return self.responses if "://" in self.responses else f"sqlite:///{Path(self.responses).absolute()}"

    def places(self) -> dict[str, str]:
        """Where the state is, by the variable that names the place."""
        store = self.responses.partition("sqlite:///")[2] or self.responses
        found = {"DTEF_WAREHOUSE": self.warehouse, "DTEF_RESPONSES": store, "DAGSTER_HOME": str(self.dagster_home)}
        return {name: place if "://" in place else str(Path(place).absolute()) for name, place in found.items()}

    def environment(self) -> dict[str, str]:
        """The places as environment variables for another process, all in full. The webhook's URL is no place, and passes by itself."""
        found = {
            "DTEF_WAREHOUSE": self.warehouse if "://" in self.warehouse else str(Path(self.warehouse).absolute()),
            "DTEF_RESPONSES": self.responses_url,
            "DTEF_SURVEYS": str(self.surveys.absolute()),
            "DAGSTER_HOME": str(self.dagster_home),
        }
        files = {
            "DTEF_MODELS": self.models,
            "DTEF_PANEL": self.panel,
            "DTEF_BLUEPRINTS": self.blueprints,
            "DTEF_SCENARIOS": self.scenarios,
            "DTEF_PERSONAS": self.personas,
        }
        return found | {name: str(path.absolute()) for name, path in files.items() if path}


def _positive(name: str, given: str) -> int | None:
    """A whole number from 1; None: nothing is given."""
    if given and not (given.isascii() and given.isdigit() and int(given)):
        raise ConfigError(f"{name} is {given!r}; allowed: a whole number from 1")
    return int(given) if given else None


def _hosts(name: str, given: str) -> tuple[str, ...]:
    try:
        return listed_hosts(given)
    except ValueError as error:
        raise ConfigError(f"{name} has {str(error)[:80]!r}; allowed: names of hosts, such as dtef.example.org") from None


def _limits(name: str, given: str) -> dict[str, int]:
    """`openai=60, openai/127.0.0.1:8000=4` as a mapping."""
    found: dict[str, int] = {}
    for item in filter(None, map(str.strip, given.split(","))):
        provider, _, limit = (part.strip() for part in item.rpartition("="))
        if not provider or provider in found or (number := _positive(f"{name}: {provider}", limit)) is None:
            raise ConfigError(
                f"{name} has {item!r}; allowed: PROVIDER=CALLS, each provider once, such as openai=60,anthropic=20"
            )
        found[provider] = number
    return found


def shipped(name: str) -> Path:
    """A file or folder that comes with the software, from the checkout (`data/` or the top level) or the installed wheel."""
    root = Path(__file__).resolve().parent.parent
    places = [root / "dtef_pipeline" / "_data" / name, root / "data" / name, root / name]
    return next((place for place in places if place.exists()), places[0])
