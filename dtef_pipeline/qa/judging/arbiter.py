"""Who judges answers that no rule can score: the document `judges.yaml`, and which answers are in the sample.

arbiter: {sample_rate: 0.1, daily_budget: 10.0, model: gpt-5.4-mini, evaluators: [semantic, factuality]}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from dtef_pipeline.asking.models import Models, ModelSpec, strip_settings
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError

SEMANTIC: Final = "semantic"
FACTUALITY: Final = "factuality"
RATIONALE: Final = "rationale"
"""What a judge looks at where an item has a judge read the reasons of an answer."""
EVALUATORS = (SEMANTIC, FACTUALITY)
"""What a judge looks at, each in a call of its own: whether the answer addresses what was asked, and whether it agrees with the reference."""
ARBITER_SETTINGS = {"temperature": 0.0, "max_tokens": 1024}
"""Sampling of a judge whose selector says nothing else. A model whose entry sets `temperature: null` refuses the parameter: it gets none."""
JUDGE_SNAPSHOT = "judge"
"""The snapshot of judgements, whatever that of the answer: the same answer is never judged twice by the same judge."""
NOBODY = "none"
"""In place of a judge: nothing is judged."""
_ALL_HASHES = 2.0**64


class ArbiterConfig(Part):
    """The block `arbiter` of the document."""

    sample_rate: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the answers that is judged."""
    daily_budget: Annotated[float, Field(ge=0)] | None = None
    """US dollars per day (UTC) over all runs that share the response store; None: no limit."""
    model: Annotated[str, Field(min_length=1)]
    """A model of the models files, or a litellm string."""
    evaluators: Annotated[list[Literal["semantic", "factuality"]], Field(min_length=1)] = [SEMANTIC, FACTUALITY]
    """Each is one call."""

    @field_validator("evaluators")
    @classmethod
    def _require_distinct(cls, evaluators: list[str]) -> list[str]:
        if len(set(evaluators)) < len(evaluators):
            raise ValueError(f"got {', '.join(evaluators)}; allowed: each once")
        return evaluators


class _JudgesDocument(Part):
    arbiter: ArbiterConfig


@dataclass(frozen=True, slots=True)
class Arbiter:
    """A judge that can be asked."""

    model: ModelSpec
    """With the temperature and the tokens that it judges with."""
    evaluators: tuple[str, ...] = EVALUATORS
    sample_rate: float = 1.0
    daily_budget: float | None = None


def load_arbiter(source: str | Path) -> ArbiterConfig:
    """The arbiter of a document: a `Path` is a file to read, a `str` is YAML text.

    Raises ConfigError with the file, the line and what is allowed, also for unknown keys.
    """
    document = read_document(source, "judges file", ("arbiter",), label="judges text")
    return document.validate_as(_JudgesDocument).arbiter


def resolve_arbiter(config: ArbiterConfig, models: Models) -> Arbiter:
    """The judge that a configuration names. Raises ConfigError for an unknown model, several ones, or one that cannot judge."""
    suffix = config.model.removeprefix(strip_settings(config.model))
    (named, *extras) = models.resolve([config.model])
    if extras or named.is_computed or named.is_local or named.is_imported:
        names = ", ".join(candidate.name for candidate in (named, *extras))
        raise ConfigError(f"arbiter: model {config.model!r}: got {names}; allowed: one language model with a server")
    settings = {
        key: value
        for key, value in ARBITER_SETTINGS.items()
        if f"{key}=" not in suffix
        and (key != "temperature" or named.temperature is not None)
        # A model that thinks needs the room that its entry gives it.
        and (key != "max_tokens" or "max_tokens" not in named.model_fields_set)
    }
    (judging,) = models.resolve([config.model], settings)
    model = judging.model_copy(update={"name": named.name})
    return Arbiter(model, tuple(config.evaluators), config.sample_rate, config.daily_budget)


def choose_arbiter(
    source: str | Path, models: Models, *, judge: str | None, sample_rate: float | None, daily_budget: float | None
) -> Arbiter | None:
    """The judge of a document, as `load_arbiter` takes it, with what a run says in place of it; None: the run says NOBODY.

    Raises ConfigError as `load_arbiter` and `resolve_arbiter`.
    """
    if judge == NOBODY:
        return None
    settings = {"model": judge or None, "sample_rate": sample_rate, "daily_budget": daily_budget}
    overrides = {name: value for name, value in settings.items() if value is not None}
    return resolve_arbiter(load_arbiter(source).model_copy(update=overrides), models)


def judge_snapshot(label: str | None = None) -> str:
    """`judge`, or `judge/LABEL` where everything is judged anew under a label. Raises ConfigError for one that is not allowed."""
    return JUDGE_SNAPSHOT if label is None else f"{JUDGE_SNAPSHOT}/{require_safe(label)}"


def is_in_sample(item_ids: Iterable[str], variants: Iterable[str], rate: float) -> npt.NDArray[np.bool_]:
    """(n,) whether the answer of each model variant to each item is judged, at a rate of 0-1.

    It is where the first 64 bits of the SHA-256 of (item, variant), taken as a number, lie below `rate` of all. So the same answers are judged
    at every run, whatever else there is, and a lower rate judges a part of what a higher one does. Raises ConfigError for another rate.
    """
    if not 0 <= rate <= 1:
        raise ConfigError(f"sample_rate: got {rate:g}; allowed: 0 to 1")
    places = [_hash_to_share(item, variant) for item, variant in zip(item_ids, variants, strict=True)]
    return np.array(places, dtype=np.float64) < rate


def _hash_to_share(item_id: str, variant: str) -> float:
    # As JSON, so that no two pairs are spelled alike; ASCII, so that every text can be hashed.
    digest = hashlib.sha256(json.dumps([item_id, variant]).encode()).digest()
    return int.from_bytes(digest[:8], "big") / _ALL_HASHES
