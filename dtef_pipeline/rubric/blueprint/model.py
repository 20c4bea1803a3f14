"""A blueprint after reading: prompts, their criteria, and findings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.identity import digest
from dtef_pipeline.judging.prompts import Turn

SHOULD, SHOULD_NOT = "should", "should_not"
BLOCKS = (SHOULD, SHOULD_NOT)
"""Blocks of criteria: desired and unwanted content. A criterion of the second block scores 1 minus how far it is met."""
TEXT_KIND, FUNCTION_KIND = "text", "function"
"""A criterion in words, which judges decide, and one that is computed."""
EXTRACTED = "extracted"
"""The source of a criterion that a model found in the ideal answer."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One point of a rubric."""

    block: str
    """should | should_not."""
    path: int | None
    """Number of its alternative path within the block, from 0; None: it is required."""
    position: int
    """Its position in the block or path, from 0."""
    kind: str
    """text | function."""
    text: str | None
    """Text for judges; None: it is a function."""
    fn: str | None = None
    """Canonical name of the function, or the name in the file if it is unknown."""
    args: Any = None
    """Argument of the function, as in YAML."""
    weight: float = 1.0
    """0.1 to 10."""
    citation: str | None = None
    source: str | None = None
    """Text in the file before a repair, such as a function written as a text; `extracted`: a model extracted it from the ideal answer."""
    fault: str | None = None
    """Why it cannot be scored for any response; None: it can."""
    ref: str | None = None
    """Name of its definition in the header; None: it is defined in the prompt."""

    @property
    def is_repaired(self) -> bool:
        """Whether the text in the file differs from the criterion that is computed."""
        return self.source not in (None, EXTRACTED)


@dataclass(frozen=True, slots=True)
class PromptItem:
    """One prompt: the messages to a model, and the criteria of its response."""

    id: str
    """Unique within the blueprint."""
    turns: tuple[Turn, ...]
    """The messages without the system prompt, which is in `systems`."""
    systems: tuple[str | None, ...]
    """Its system prompts; each gets its own response; None: no system prompt."""
    temperatures: tuple[float, ...]
    """Sampling temperatures; each gets its own response."""
    criteria: tuple[Criterion, ...] = ()
    """Criteria of both blocks, `should` first, in the order of the file."""
    ideal: str | None = None
    """Ideal answer that responses are compared with."""
    weight: float = 1.0
    """Weight of the prompt in means over its blueprint."""
    description: str | None = None
    citation: str | None = None

    @property
    def n_generated_turns(self) -> int:
        """Number of turns that the model under test writes."""
        blanks = sum(turn.text is None for turn in self.turns)
        return blanks + (self.turns[-1].role == "user")


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The contents of one file."""

    id: str
    """Path of the file below the folder of blueprints: `/` becomes `__`."""
    title: str
    description: str | None
    tags: tuple[str, ...]
    """Tags in their normal form."""
    prompts: tuple[PromptItem, ...]
    systems: tuple[str | None, ...] | None
    """System prompts for every prompt; None: there is no list, each prompt has its own."""
    models: tuple[str, ...]
    """LiteLLM model strings in the order of the file, without duplicates; collections are replaced by their members."""
    judges: tuple[str, ...] = ()
    """Judges of `evaluationConfig`, as `approach=model`; none: the default judges."""
    references: tuple[str, ...] = ()
    temperatures: tuple[float, ...] = ()
    """Temperatures in the header, which apply to every prompt; none: each prompt has its own."""


@dataclass(frozen=True, slots=True)
class BlueprintFinding:
    """A fault in a file, or a note about it."""

    code: str
    level: str
    """error | unscorable | warning | info."""
    place: str
    """Place in the file, such as `prompt 3 should[0][1]`; empty: the whole file."""
    text: str
    """What is wrong, and what to write instead."""
    line: int | None = None
    """Line of the file, from 1."""


@dataclass(frozen=True, slots=True)
class ParsedBlueprint:
    """The readable part of a file's blueprint, and all findings."""

    blueprint: Blueprint | None
    """None: the file has no usable prompt."""
    findings: tuple[BlueprintFinding, ...]
    structure: str | None = None
    """How header and prompts are written: header+list | header+lists | header+stream | list | lists | stream | prompts | prompt | header.

    None: the file cannot be parsed.
    """
    n_omitted: int = 0
    """Number of prompts and criteria that are not in the blueprint because they have an error."""


def hash_prompt(prompt: PromptItem) -> str:
    """Return the hash of a prompt and its criteria: 32 hexadecimal digits.

    Id, description, citations, and temperatures are ignored.
    """
    turns = [[turn.role, turn.text] for turn in prompt.turns]
    # The content of criteria, independent of spelling: a repaired text equals the function that it means.
    criteria = [
        [part.block, part.path, part.kind, part.text, part.fn, _convert_whole_numbers(part.args), float(part.weight)]
        for part in prompt.criteria
    ]
    return digest("prompt", turns, list(prompt.systems), prompt.ideal, float(prompt.weight), criteria)


def test_hash(blueprint: Blueprint) -> str:
    """Return the hash of the prompts of a blueprint, regardless of their order: 32 hexadecimal digits.

    Any change of a word, weight, ideal answer or criterion changes it; title, description, tags, citations and models are ignored.
    """
    return digest("test", sorted(map(hash_prompt, blueprint.prompts)))


def _convert_whole_numbers(value: Any) -> Any:
    """Convert 3.0 to 3 anywhere in a value, because JSON and YAML do not distinguish them."""
    if isinstance(value, dict):
        return {key: _convert_whole_numbers(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_convert_whole_numbers(member) for member in value]
    return int(value) if isinstance(value, float) and math.isfinite(value) and value.is_integer() else value
