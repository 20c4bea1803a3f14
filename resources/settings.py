"""The reader of all DTEF_* environment variables except the secret DTEF_SOCIOSCOPE_AUTH."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasGenerator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.origins import parse_hosts

HOME = Path(".dtef")
SOCIOSCOPE_AUTH = "DTEF_SOCIOSCOPE_AUTH"
"""Name of the variable with the secret of the server that looks up chunks of interviews."""
API_ANY_MODEL = "DTEF_API_ANY_MODEL"
ALLOWED_HOSTS = "DTEF_ALLOWED_HOSTS"
"""Name of the variable with the host names under which browsers reach Dagster's web server and the HTTP API."""


def _limits(text: str) -> dict[str, int]:
    """Parse `openai=60, openai/127.0.0.1:8000=4` into a mapping."""
    limits: dict[str, int] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        provider, _, limit = (part.strip() for part in item.rpartition("="))
        if not provider or provider in limits or not limit.isdecimal() or int(limit) < 1:
            raise ValueError(item)
        limits[provider] = int(limit)
    return limits


class Settings(BaseModel):
    """The environment variables, each named `DTEF_` and the field in capitals; a blank one counts as not set.

    `DAGSTER_POSTGRES_URL` is read by Dagster, through `dagster.yaml`.
    """

    model_config = ConfigDict(frozen=True, alias_generator=AliasGenerator(validation_alias=lambda name: f"DTEF_{name.upper()}"))

    warehouse: str = Field(str(HOME / "warehouse"), description="a folder, or s3://bucket/prefix")
    responses: str = Field(str(HOME / "responses.sqlite"), description="a file, or the URL of a database")
    dagster_home: Path = Field((HOME / "dagster").absolute(), validation_alias="DAGSTER_HOME", description="a full path")
    models: Path | None = Field(None, description="a YAML file that adds to the shipped models")
    surveys: Path = Field(HOME / "surveys", description="the folder that the sensor `new_round` watches")
    blueprints: Path | None = Field(None, description="the folder that the sensor `new_blueprint` watches")
    panel: Path | None = Field(None, description="a YAML file with the nightly runs")
    scenarios: Path | None = Field(None, description="a folder of `<league>/<scenario>.yaml` that adds to the shipped ones")
    personas: Path | None = Field(None, description="a folder of `*.yaml` that `dtef games add` writes to")
    webhook: str | None = Field(None, repr=False, description="the URL that verdicts on drift are sent to: a secret")
    socioscope_url: str | None = Field(None, repr=False, description="the server that looks up chunks of interviews")
    socioscope_auth_env: Annotated[str | None, BeforeValidator(lambda secret: SOCIOSCOPE_AUTH)] = Field(
        None, validation_alias=SOCIOSCOPE_AUTH, description="its secret, of which only the variable's name is kept"
    )
    socioscope_model: str | None = Field(None, description="the model that the server answers with")
    sandbox: Literal["auto", "sandlock", "bwrap", "off"] = Field(
        "auto", description="auto, sandlock, bwrap or off: how programs that models wrote are isolated"
    )
    api_tokens: Path | None = Field(None, description="a YAML file with the hashes of the tokens that the HTTP API takes")
    api_any_model: bool = Field(False, description="1 or 0: whether the HTTP API accepts any model that LiteLLM knows")
    allowed_hosts: Annotated[tuple[str, ...], BeforeValidator(parse_hosts)] = Field(
        (), description="names of hosts, such as dtef.example.org, under which browsers reach Dagster and the HTTP API"
    )
    partitions_per_run: int | None = Field(
        None, ge=1, description="a whole number from 1: the most partitions of one run of a backfill"
    )
    provider_limits: Annotated[dict[str, int], BeforeValidator(_limits)] = Field(
        {},
        description="PROVIDER=CALLS, calls of one process in flight at once, each provider once, such as openai=60,anthropic=20",
    )
    traceback: bool = Field(False, description="1 or 0: whether commands show the traceback of every error")

    @classmethod
    def read_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Return the settings. Raises ConfigError with the variable and its allowed values."""
        variables = os.environ if environment is None else environment
        try:
            return cls.model_validate({name: value.strip() for name, value in variables.items() if value.strip()})
        except ValidationError as error:
            name = str(error.errors()[0]["loc"][0])
            choices = next(field.description for field in cls.model_fields.values() if field.validation_alias == name)
            raise ConfigError(f"{name} is {variables[name][:80]!r}; allowed: {choices}") from None

    def __hash__(self) -> int:
        """Return a hash: settings are cache keys."""
        return hash(repr(self))

    @property
    def home_problem(self) -> str | None:
        """Why `DAGSTER_HOME` cannot be used as given, or None. Dagster takes only a full path."""
        if self.dagster_home.is_absolute():
            return None
        return f"DAGSTER_HOME is {self.dagster_home}, which is not a full path: name it as DAGSTER_HOME={self.dagster_home.absolute()}"

    @property
    def responses_url(self) -> str:
        """`DTEF_RESPONSES` as a SQLAlchemy URL; a plain path is a SQLite file."""
        return self.responses if "://" in self.responses else f"sqlite:///{Path(self.responses).absolute()}"

    def places(self) -> dict[str, str]:
        """Return the state's locations by variable."""
        store = self.responses.partition("sqlite:///")[2] or self.responses
        paths = {"DTEF_WAREHOUSE": self.warehouse, "DTEF_RESPONSES": store, "DAGSTER_HOME": str(self.dagster_home)}
        return {name: place if "://" in place else str(Path(place).absolute()) for name, place in paths.items()}

    def environment(self) -> dict[str, str]:
        """Return the places as environment variables for another process, as full paths. The webhook's URL is left out; it is inherited."""
        paths = {"DTEF_SURVEYS": self.surveys, "DTEF_MODELS": self.models, "DTEF_PANEL": self.panel}
        paths |= {"DTEF_BLUEPRINTS": self.blueprints, "DTEF_SCENARIOS": self.scenarios, "DTEF_PERSONAS": self.personas}
        files = {name: str(path.absolute()) for name, path in paths.items() if path}
        return {**self.places(), "DTEF_RESPONSES": self.responses_url, **files}


def require_named_path(variable: str, path: Path, *, folder: bool = False) -> None:
    """Raises ConfigError unless the file, or the folder, that a variable names exists."""
    if not path.exists():
        raise ConfigError(f"{variable} names {path}, which does not exist")
    if path.is_dir() is not folder:
        raise ConfigError(f"{variable} names {path}, which is {'a file; a folder' if folder else 'a folder; a file'} is needed")


def find_shipped(name: str) -> Path:
    """Return a file or folder shipped with the software, from the checkout (`data/` or the top level) or the installed wheel."""
    root = Path(__file__).resolve().parent.parent
    places = [root / "dtef_pipeline" / "_data" / name, root / "data" / name, root / name]
    return next((place for place in places if place.exists()), places[0])
