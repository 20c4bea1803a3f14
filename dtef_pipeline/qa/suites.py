"""The document `suites.yaml`: the layout of each suite's files, the scorers of its items, and its date of publication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from dtef_pipeline.documents import Document, Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.name_matching import list_nearest

_SUITES_KEY = "suites"
ScorerNames = Annotated[list[str], Field(min_length=1)]
YearAndMonth = Annotated[str, StringConstraints(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")]


class SuiteSpec(Part):
    """One suite of items."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    layout: Literal["mmlu", "gsm8k", "humaneval", "socioscope"]
    """Layout of its files."""
    scorers: ScorerNames | None = None
    """Scorers of its items; boards rank by the first."""
    scorers_by_type: dict[str, ScorerNames] | None = None
    """Scorers by type of item, if types have their own."""
    public_since: YearAndMonth | None = None
    """Year and month in which its items and answers were published; None: never."""
    licence: str | None = None
    source: str | None = None
    """Source of its files."""

    @model_validator(mode="after")
    def _has_scorers(self) -> SuiteSpec:
        if (self.scorers is None) == (self.scorers_by_type is None):
            got = "neither" if self.scorers is None else "both"
            raise ValueError(f"scorers, scorers_by_type: got {got}; allowed: one of the two")
        return self

    def scorers_of(self, type: str) -> tuple[str, ...]:
        """Return the scorers of a type by name, first the one that boards rank by; empty: the type has no scorer."""
        if self.scorers_by_type is None:
            return tuple(self.scorers or ())
        return tuple(self.scorers_by_type.get(type, ()))

    @property
    def exposure(self) -> str | None:
        """The boards' note on models that may know the answers, or None if never published."""
        if self.public_since is None:
            return None
        return f"answers may be in the training data (public since {self.public_since})"


@dataclass(frozen=True)
class Suites:
    """All known suites, by name."""

    specs: Mapping[str, SuiteSpec]

    @property
    def exposure(self) -> dict[str, str]:
        """The note of each suite that may be in training data."""
        return {name: spec.exposure for name, spec in self.specs.items() if spec.exposure}

    def route(self, suite: str) -> SuiteSpec:
        """Return how a suite is read and scored. Raises ConfigError for an unknown suite, with the known ones."""
        if suite not in self.specs:
            raise ConfigError(f"unknown suite {suite!r}; known: {list_nearest(suite, self.specs)}")
        return self.specs[suite]


def load_suites(*sources: str | Path) -> Suites:
    """Read files of suites in order; a suite in a later file completely replaces one of the same name.

    Args:
        sources: a `Path` is a file to read, a `str` is YAML text.

    Raises:
        ConfigError: with file, line, suite, the value found and the allowed values.
    """
    specs: dict[str, SuiteSpec] = {}
    for number, source in enumerate(sources, start=1):
        document = read_document(source, "suites file", [_SUITES_KEY], {_SUITES_KEY: "suite"}, label=f"suites text {number}")
        document.mapping((), known_keys=[_SUITES_KEY])
        for name in document.mapping((_SUITES_KEY,)):
            specs[str(name)] = _read_suite(name, document)
    return Suites(specs)


def _read_suite(name: Any, document: Document) -> SuiteSpec:
    place = (_SUITES_KEY, name)
    values = document.mapping(place, known_keys=[field for field in SuiteSpec.model_fields if field != "name"])
    return document.validate_as(SuiteSpec, {**values, "name": str(name)}, place)
