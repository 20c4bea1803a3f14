"""The conditions under which an item can be shown, each with one spelling: `letters`, `cot,5-shot-turns,rotated-1`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Self

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.mmlu import CHOICE_TYPE

LETTERS, PARENS, COT, PLAIN_TEMPLATE = "letters", "parens", "cot", "plain"
CHOICE_TEMPLATES = (LETTERS, PARENS, COT)
"""Templates of items with options: `A. text`, `(A) text`, or letters with the request to think first."""
ITEM_TEMPLATES = (*CHOICE_TEMPLATES, PLAIN_TEMPLATE)
"""All templates; `plain` is for items without options."""
MOST_SHOTS, MOST_ROTATION = 100, 3
_CONDITION = re.compile(
    r"(?P<template>[a-z]+)(?:,(?P<shots>[1-9]\d{0,3})-shot(?P<turns>-turns)?)?(?:,rotated-(?P<rotation>\d))?"
)
_CONDITION_FORM = "TEMPLATE[,K-shot[-turns]][,rotated-N], such as cot,5-shot-turns,rotated-1"


@dataclass(frozen=True, slots=True)
class QaCondition:
    """A condition. Raises ConfigError for settings that no prompt can have."""

    template: str = LETTERS
    """One of ITEM_TEMPLATES."""
    shots: int = 0
    """Number of examples shown before the item, 0-100."""
    as_turns: bool = False
    """Whether examples are turns of a conversation instead of parts of one message."""
    rotation: int = 0
    """Number of places by which the options are rotated to the left, 0-3."""

    def __post_init__(self) -> None:
        if self.template not in ITEM_TEMPLATES:
            raise ConfigError(f"template {self.template!r}: allowed: {', '.join(ITEM_TEMPLATES)}")
        if not 0 <= self.shots <= MOST_SHOTS:
            raise ConfigError(f"few-shot {self.shots}: allowed: 0 to {MOST_SHOTS}")
        if self.as_turns and not self.shots:
            raise ConfigError("few-shot as turns without examples; allowed: few-shot 1 or more")
        if not 0 <= self.rotation <= MOST_ROTATION:
            raise ConfigError(
                f"order rotated-{self.rotation}: allowed: rotated-1 to rotated-{MOST_ROTATION}, or the file's order"
            )
        if self.rotation and self.template == PLAIN_TEMPLATE:
            raise ConfigError(f"order rotated-{self.rotation} for items without options; allowed: the file's order")

    def __str__(self) -> str:
        """Return the spelling in the column `condition`; `parse_text` reads it back."""
        shots = f",{self.shots}-shot{'-turns' if self.as_turns else ''}" if self.shots else ""
        return f"{self.template}{shots}{f',rotated-{self.rotation}' if self.rotation else ''}"

    @classmethod
    def parse_text(cls, text: str) -> Self:
        """Parse a spelling. Raises ConfigError for one that `str` never returns."""
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise ConfigError(f"condition {text!r}: allowed: {_CONDITION_FORM}")
        condition = cls(match["template"], int(match["shots"] or 0), bool(match["turns"]), int(match["rotation"] or 0))
        if str(condition) != text:
            raise ConfigError(f"condition {text!r}: allowed: {_CONDITION_FORM}; did you mean {condition}?")
        return condition

    def adapt_to_type(self, type: str) -> QaCondition:
        """Adapt the condition to items of a type: items without options have only one template, whatever the setting.

        Raises ConfigError for rotated options of items without options.
        """
        return self if type == CHOICE_TYPE or self.template == PLAIN_TEMPLATE else replace(self, template=PLAIN_TEMPLATE)
