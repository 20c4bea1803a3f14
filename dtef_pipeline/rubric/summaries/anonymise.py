"""Opaque ids for makers, models, system prompts and temperatures, and the way back: who sums up a blueprint must not know whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from dtef_pipeline.asking.makers import maker_of
from dtef_pipeline.identity import digest
from dtef_pipeline.tables import SNAPSHOT_FIELD, field

_Key = TypeVar("_Key")
_FIRST_IDS = {"maker": ("MK", 5000), "model": ("MD", 6000), "system": ("S", 7000), "temperature": ("T", 8000)}

ANALYST_IDS = pa.schema(
    [
        field("blueprint", pa.string(), "Blueprint that was summed up"),
        SNAPSHOT_FIELD,
        field(
            "kind", pa.string(), "Kind of the name: maker, model, system (place in the list of system prompts) or temperature"
        ),
        field("id", pa.string(), "Opaque id that stood in its place: MK_5000 and on, MD_6000, S_7000, T_8000"),
        field("name", pa.string(), "Name that the id stood for"),
    ]
)
"""One row per opaque id of a blueprint in a snapshot."""


@dataclass(frozen=True, slots=True)
class Participant:
    """One variant of a model, as a blueprint asks it."""

    model: str
    """The model string without settings, which all variants of a model share."""
    temperature: float | None = None
    system: int | None = None
    """Place in the list of system prompts; None: there is no list."""


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """The ids of one blueprint in one snapshot."""

    makers: Mapping[str, str]
    """Id by name, here and below. A model whose maker nobody knows is a maker of its own."""
    models: Mapping[str, str]
    systems: Mapping[int, str]
    temperatures: Mapping[float, str]

    def of(self, participant: Participant) -> str:
        """As the analyst reads it: `MK_5001/MD_6001 (sys:S_7000, temp:T_8000)`."""
        settings = [
            *([f"sys:{self.systems[participant.system]}"] if participant.system is not None else []),
            *([f"temp:{self.temperatures[participant.temperature]}"] if participant.temperature is not None else []),
        ]
        base = self.of_model(participant.model)
        return f"{base} ({', '.join(settings)})" if settings else base

    def of_model(self, model: str) -> str:
        return f"{self.makers[_maker(model)]}/{self.models[model]}"

    def model_of(self, maker: str | None, model: str) -> str | None:
        """The model that ids stand for; None where there is none, or where it is not of that maker."""
        found = _look_up(self.models, model)
        if found is None or (maker is not None and maker.upper() != self.makers[_maker(found)]):
            return None
        return found

    def participant_of(self, maker: str | None, model: str, system: str | None, temperature: str | None) -> Participant | None:
        """The variant that ids stand for; None where any of them is unknown."""
        found = self.model_of(maker, model)
        place, heat = _look_up(self.systems, system or ""), _look_up(self.temperatures, temperature or "")
        if found is None or (system and place is None) or (temperature and heat is None):
            return None
        return Participant(found, heat, place)

    def maker_of_id(self, maker: str) -> str | None:
        return _look_up(self.makers, maker)

    def table(self, blueprint: str, snapshot: str, names: Mapping[str, str]) -> pa.Table:
        """`ANALYST_IDS`, sorted by kind and id. `names`: by model string, what tables call the model."""
        named = {
            "maker": self.makers,
            "model": self.models,
            "system": {str(place): one for place, one in self.systems.items()},
            "temperature": {f"{heat:g}": one for heat, one in self.temperatures.items()},
        }
        rows = [
            {"blueprint": blueprint, "snapshot": snapshot, "kind": kind, "id": one, "name": names.get(name, name)}
            for kind, ids in named.items()
            for name, one in sorted(ids.items(), key=lambda pair: pair[1])
        ]
        return pa.Table.from_pylist(rows, schema=ANALYST_IDS)


def summary_seed(blueprint: str, snapshot: str, test_hash: str) -> int:
    """The seed of everything that is drawn for a summary."""
    return int(digest("executive summary", blueprint, snapshot, test_hash), 16)


def pseudonyms(participants: Iterable[Participant], seed: int) -> Pseudonyms:
    """An id for each maker, model, system prompt and temperature, drawn without order; variants of a model share those of the model.

    `seed`: `summary_seed`. The order in which the participants come does not matter.
    """
    all_of_them = list(participants)
    rng = np.random.default_rng(seed)
    models = {one.model for one in all_of_them}
    return Pseudonyms(
        makers=_drawn("maker", sorted({_maker(model) for model in models}), rng),
        models=_drawn("model", sorted(models), rng),
        systems=_drawn("system", sorted({one.system for one in all_of_them if one.system is not None}), rng),
        temperatures=_drawn(
            "temperature", sorted({one.temperature for one in all_of_them if one.temperature is not None}), rng
        ),
    )


def _drawn(kind: str, names: Sequence[_Key], rng: np.random.Generator) -> dict[_Key, str]:
    prefix, first = _FIRST_IDS[kind]
    return {name: f"{prefix}_{first + place}" for name, place in zip(names, rng.permutation(len(names)).tolist(), strict=True)}


def _maker(model: str) -> str:
    return maker_of(model) or model


def _look_up(ids: Mapping[_Key, str], wanted: str) -> _Key | None:
    """What the id stands for, in whatever case an analyst writes it."""
    return next((name for name, one in ids.items() if one == wanted.upper()), None)
