"""What makes two blueprints the same test."""

from __future__ import annotations

import math
from typing import Any

from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.model import Blueprint, Criterion, PromptItem


def prompt_hash(prompt: PromptItem) -> str:
    """Hash of what a prompt asks, and of how its responses are judged: 32 hexadecimal digits.

    Id, description, citations, temperatures and how a response is shown do not enter.
    """
    turns = [[turn.role, turn.text] for turn in prompt.turns]
    criteria = [_criterion_content(criterion) for criterion in prompt.criteria]
    return digest("prompt", turns, list(prompt.systems), prompt.ideal, float(prompt.weight), criteria)


def test_hash(blueprint: Blueprint) -> str:
    """Hash of the prompts of a blueprint, whatever their order: 32 hexadecimal digits.

    One changed word, weight, ideal answer or criterion changes it; title, description, tags, citations and models do not enter.
    """
    return digest("test", sorted(map(prompt_hash, blueprint.prompts)))


def _criterion_content(criterion: Criterion) -> list[Any]:
    """What is computed, however it was written: a repaired text and the function that it stands for are one."""
    args = _plain_numbers(criterion.args)
    return [criterion.block, criterion.path, criterion.kind, criterion.text, criterion.fn, args, float(criterion.weight)]


def _plain_numbers(value: Any) -> Any:
    """3.0 as 3, wherever in a value it stands: JSON and YAML know one kind of number."""
    if isinstance(value, dict):
        return {key: _plain_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and math.isfinite(value) and value.is_integer() else value
