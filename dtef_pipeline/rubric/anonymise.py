"""Opaque ids for makers, models, system prompts and temperatures, and the mapping back: analysts must not know the models they summarise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from dtef_pipeline.asking.makers import find_maker
from dtef_pipeline.identity import digest
from dtef_pipeline.tables import SNAPSHOT_FIELD, field

_Key = TypeVar("_Key")
_FIRST_IDS = {"maker": ("MK", 5000), "model": ("MD", 6000), "system": ("S", 7000), "temperature": ("T", 8000)}

ANALYST_IDS = pa.schema(
    [
        field("blueprint", pa.string(), "Blueprint of the summary"),
        SNAPSHOT_FIELD,
        field("kind", pa.string(), "Kind of the name: maker, model, system (place in the list of system prompts), temperature"),
        field("id", pa.string(), "Opaque id that replaced it: MK_5000 and on, MD_6000, S_7000, T_8000"),
        field("name", pa.string(), "Name that the id replaced"),
    ]
)
"""One row per opaque id of a blueprint in a snapshot."""


@dataclass(frozen=True, slots=True)
class Participant:
    """One variant of a model in a blueprint's run."""

    model: str
    """The model string without settings, which all variants of a model share."""
    temperature: float | None = None
    system: int | None = None
    """Place in the list of system prompts; None: there is no list."""


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """The ids of one blueprint in one snapshot."""

    makers: Mapping[str, str]
    """Id by name, here and below. A model with an unknown maker counts as its own maker."""
    models: Mapping[str, str]
    systems: Mapping[int, str]
    temperatures: Mapping[float, str]

    def format_pseudonym(self, participant: Participant) -> str:
        """Return the analyst's name for a variant: `MK_5001/MD_6001 (sys:S_7000, temp:T_8000)`."""
        settings = [
            *([f"sys:{self.systems[participant.system]}"] if participant.system is not None else []),
            *([f"temp:{self.temperatures[participant.temperature]}"] if participant.temperature is not None else []),
        ]
        base = self.name_model(participant.model)
        return f"{base} ({', '.join(settings)})" if settings else base

    def name_model(self, model: str) -> str:
        return f"{self.makers[_find_maker_or_model(model)]}/{self.models[model]}"

    def find_model_by_id(self, maker: str | None, model: str) -> str | None:
        """Return the model with these ids, or None if it is unknown or of another maker."""
        name = _find_by_id(self.models, model)
        if name is None or (maker is not None and maker.upper() != self.makers[_find_maker_or_model(name)]):
            return None
        return name

    def find_participant(
        self, maker: str | None, model: str, system: str | None, temperature: str | None
    ) -> Participant | None:
        """Return the variant with these ids, or None if any of them is unknown."""
        name = self.find_model_by_id(maker, model)
        place, heat = _find_by_id(self.systems, system or ""), _find_by_id(self.temperatures, temperature or "")
        if name is None or (system and place is None) or (temperature and heat is None):
            return None
        return Participant(name, heat, place)

    def find_maker_by_id(self, maker: str) -> str | None:
        return _find_by_id(self.makers, maker)

    def table(self, blueprint: str, snapshot: str, names: Mapping[str, str]) -> pa.Table:
        """Return `ANALYST_IDS`, sorted by kind and id. `names`: models' names in tables, by model string."""
        named = {
            "maker": self.makers,
            "model": self.models,
            "system": {str(place): pseudonym for place, pseudonym in self.systems.items()},
            "temperature": {f"{heat:g}": pseudonym for heat, pseudonym in self.temperatures.items()},
        }
        rows = [
            {"blueprint": blueprint, "snapshot": snapshot, "kind": kind, "id": pseudonym, "name": names.get(name, name)}
            for kind, ids in named.items()
            for name, pseudonym in sorted(ids.items(), key=lambda pair: pair[1])
        ]
        return pa.Table.from_pylist(rows, schema=ANALYST_IDS)


def derive_summary_seed(blueprint: str, snapshot: str, test_hash: str) -> int:
    """Return the seed of all random choices for a summary."""
    return int(digest("executive summary", blueprint, snapshot, test_hash), 16)


def draw_pseudonyms(participants: Iterable[Participant], seed: int) -> Pseudonyms:
    """Assign ids to makers, models, system prompts and temperatures at random; variants share the model's ids.

    `seed`: from `derive_summary_seed`. The order of participants does not matter.
    """
    all_of_them = list(participants)
    rng = np.random.default_rng(seed)
    models = {p.model for p in all_of_them}
    return Pseudonyms(
        makers=_draw_ids("maker", sorted({_find_maker_or_model(model) for model in models}), rng),
        models=_draw_ids("model", sorted(models), rng),
        systems=_draw_ids("system", sorted({p.system for p in all_of_them if p.system is not None}), rng),
        temperatures=_draw_ids("temperature", sorted({p.temperature for p in all_of_them if p.temperature is not None}), rng),
    )


def _draw_ids(kind: str, names: Sequence[_Key], rng: np.random.Generator) -> dict[_Key, str]:
    prefix, first = _FIRST_IDS[kind]
    return {name: f"{prefix}_{first + place}" for name, place in zip(names, rng.permutation(len(names)).tolist(), strict=True)}


def _find_maker_or_model(model: str) -> str:
    return find_maker(model) or model


def _find_by_id(ids: Mapping[_Key, str], pseudonym: str) -> _Key | None:
    """Return the meaning of an id in either case, or None if unknown."""
    return next((name for name, value in ids.items() if value == pseudonym.upper()), None)
