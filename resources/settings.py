"""Where things are: the one place that reads DTEF_* environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOME = Path(".dtef")
# Not the comma within `gpt-4.1-mini@temperature=0.7,max_tokens=512`.
_BETWEEN_MODELS = re.compile(r"(?:\s*,)+\s*(?![a-z_]+=)|\s+")


@dataclass(frozen=True, slots=True)
class Settings:
    """Places of the warehouse, the response store, the user's models and the landing folder of surveys.

    `DTEF_WAREHOUSE` (folder or `s3://bucket/prefix`), `DTEF_RESPONSES` (file or database URL), `DTEF_MODELS` (a YAML file that
    adds to the shipped models), `DTEF_SURVEYS` (folder the `new_round` sensor watches), `DTEF_NIGHTLY_MODELS` (what the nightly
    schedule asks, separated by commas), `DAGSTER_HOME`.
    """

    warehouse: str
    responses: str
    models: Path | None
    surveys: Path
    dagster_home: Path
    nightly_models: tuple[str, ...]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        env = os.environ if environment is None else environment
        return cls(
            warehouse=env.get("DTEF_WAREHOUSE") or str(HOME / "warehouse"),
            responses=env.get("DTEF_RESPONSES") or str(HOME / "responses.sqlite"),
            models=Path(env["DTEF_MODELS"]) if env.get("DTEF_MODELS") else None,
            surveys=Path(env.get("DTEF_SURVEYS") or HOME / "surveys"),
            dagster_home=Path(env.get("DAGSTER_HOME") or HOME / "dagster").absolute(),
            nightly_models=tuple(_BETWEEN_MODELS.split((env.get("DTEF_NIGHTLY_MODELS") or "baselines").strip(", "))),
        )

    @property
    def responses_url(self) -> str:
        """`DTEF_RESPONSES` as a SQLAlchemy URL; a plain path is a SQLite file."""
        return self.responses if "://" in self.responses else f"sqlite:///{Path(self.responses).absolute()}"

    def environment(self) -> dict[str, str]:
        """These settings as environment variables for another process, all places in full."""
        found = {
            "DTEF_WAREHOUSE": self.warehouse if "://" in self.warehouse else str(Path(self.warehouse).absolute()),
            "DTEF_RESPONSES": self.responses_url,
            "DTEF_SURVEYS": str(self.surveys.absolute()),
            "DTEF_NIGHTLY_MODELS": ",".join(self.nightly_models),
            "DAGSTER_HOME": str(self.dagster_home),
        }
        return found | ({"DTEF_MODELS": str(self.models.absolute())} if self.models else {})


def shipped(name: str) -> Path:
    """A file or folder that comes with the software, from the checkout (`data/` or the top level) or the installed wheel."""
    root = Path(__file__).resolve().parent.parent
    places = [root / "dtef_pipeline" / "_data" / name, root / "data" / name, root / name]
    return next((place for place in places if place.exists()), places[0])
