"""A blueprint after reading: prompts, the criteria that their responses are judged by, and findings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.identity import digest

SHOULD, SHOULD_NOT = "should", "should_not"
BLOCKS = (SHOULD, SHOULD_NOT)
"""What a response should have, and what it should not have: a criterion of the second block scores 1 minus how far it is met."""
TEXT_KIND, FUNCTION_KIND = "text", "function"
"""A criterion in words, which judges decide, and one that is computed."""
EXTRACTED = "extracted"
"""The source of a criterion that a model found in the ideal answer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a prompt."""

    role: str
    """system | user | assistant | tool."""
    text: str | None
    """As it is sent; None (of the assistant alone): the model under test writes this turn."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One point of a rubric."""

    block: str
    """should | should_not."""
    path: int | None
    """Which of the alternative paths of its block it belongs to, from 0; None: it is required."""
    position: int
    """Its place in the block, or in its path, from 0."""
    kind: str
    """text | function."""
    text: str | None
    """What judges are shown; None: it is a function."""
    fn: str | None = None
    """The function's canonical name, or the name as it was written where no function has it."""
    args: Any = None
    """What the function is given, as YAML has it."""
    weight: float = 1.0
    """0.1 to 10."""
    citation: str | None = None
    source: str | None = None
    """What was written where something else was meant: of a function that stood in a text, that text; `extracted`: nobody wrote it."""
    fault: str | None = None
    """Why it cannot be scored, whatever is responded; None: it can."""
    ref: str | None = None
    """The definition of the header that it was written as; None: it stands in the prompt itself."""

    @property
    def repaired(self) -> bool:
        """Whether the file has another text than what is computed."""
        return self.source not in (None, EXTRACTED)


@dataclass(frozen=True, slots=True)
class PromptItem:
    """One prompt: the messages to a model, and what its response is judged by."""

    id: str
    """Unique within the blueprint."""
    turns: tuple[Turn, ...]
    """Without the system prompt, which `systems` has."""
    systems: tuple[str | None, ...]
    """The system prompts that it is asked with, each in a response of its own; None: it is asked without one."""
    temperatures: tuple[float, ...]
    """At which it is asked, each in a response of its own."""
    criteria: tuple[Criterion, ...] = ()
    """Of both blocks, `should` first, in the order of the file."""
    ideal: str | None = None
    """The answer that responses are to be similar to."""
    weight: float = 1.0
    """Of this prompt in the means of its blueprint."""
    description: str | None = None
    citation: str | None = None
    render_as: str | None = None
    """How its responses are to be shown: markdown | html | plaintext; nothing else depends on it."""

    @property
    def generated(self) -> int:
        """How many turns the model under test writes."""
        blanks = sum(turn.text is None for turn in self.turns)
        return blanks + (self.turns[-1].role == "user")


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge that a blueprint names: a model and an approach."""

    model: str
    approach: str


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The contents of one file."""

    id: str
    """From the file's path below the folder of blueprints: `/` becomes `__`."""
    title: str
    description: str | None
    tags: tuple[str, ...]
    """In their normal form."""
    prompts: tuple[PromptItem, ...]
    systems: tuple[str | None, ...] | None
    """The list of system prompts that every prompt is asked with; None: there is no list, each prompt has its own."""
    models: tuple[str, ...]
    """Model strings of litellm, collections replaced by their members, each once, in the order of the file."""
    judges: tuple[Judge, ...] = ()
    """Those of `evaluationConfig`; none: the usual ones judge."""
    references: tuple[str, ...] = ()
    temperatures: tuple[float, ...] = ()
    """Those that the header names, at each of which every prompt is asked; none: each prompt has its own."""


@dataclass(frozen=True, slots=True)
class BlueprintFinding:
    """A fault in a file, or a note about it."""

    code: str
    level: str
    """error | unscorable | warning | info."""
    place: str
    """Such as `prompt 3 should[0][1]`; empty: it is about the file."""
    text: str
    """What was found, and what to write in its place."""
    line: int | None = None
    """In the file, from 1."""


@dataclass(frozen=True, slots=True)
class ReadBlueprint:
    """The readable part of a file's blueprint, and all findings."""

    blueprint: Blueprint | None
    """None: nothing in the file can be asked."""
    findings: tuple[BlueprintFinding, ...]
    structure: str | None = None
    """How header and prompts are written: header+list | header+lists | header+stream | list | lists | stream | prompts | prompt | header.

    None: the file cannot be parsed.
    """
    left_out: int = 0
    """How many prompts and criteria are not in the blueprint, because each of them has an error."""


def hash_prompt(prompt: PromptItem) -> str:
    """Hash of a prompt and of how its responses are judged: 32 hexadecimal digits.

    It ignores id, description, citations, temperatures and the display format.
    """
    turns = [[turn.role, turn.text] for turn in prompt.turns]
    criteria = [_list_criterion_content(criterion) for criterion in prompt.criteria]
    return digest("prompt", turns, list(prompt.systems), prompt.ideal, float(prompt.weight), criteria)


def test_hash(blueprint: Blueprint) -> str:
    """Hash of the prompts of a blueprint, whatever their order: 32 hexadecimal digits.

    Any change of a word, weight, ideal answer or criterion changes it; it ignores title, description, tags, citations and models.
    """
    return digest("test", sorted(map(hash_prompt, blueprint.prompts)))


def _list_criterion_content(criterion: Criterion) -> list[Any]:
    """What is computed, however it was written: a repaired text and the function that it stands for are one."""
    args = _convert_whole_numbers(criterion.args)
    return [criterion.block, criterion.path, criterion.kind, criterion.text, criterion.fn, args, float(criterion.weight)]


def _convert_whole_numbers(value: Any) -> Any:
    """3.0 as 3, wherever in a value it stands: JSON and YAML know one kind of number."""
    if isinstance(value, dict):
        return {key: _convert_whole_numbers(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_convert_whole_numbers(member) for member in value]
    return int(value) if isinstance(value, float) and math.isfinite(value) and value.is_integer() else value
