"""The classes that a judge chooses from, each with a name, a number and a meaning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dtef_pipeline.errors import ConfigError


class JudgedClass(NamedTuple):
    """One class: judges are shown its name and its meaning, never its number."""

    name: str
    number: float
    """0 (the criterion is not met) to 1 (it is met in full)."""
    meaning: str


@dataclass(frozen=True)
class ClassScale:
    """The classes of one scale, in ascending order of numbers."""

    classes: tuple[JudgedClass, ...]

    @property
    def size(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """The number of each class, by name."""
        return {entry.name: entry.number for entry in self.classes}

    @cached_property
    def class_lines(self) -> str:
        """The classes as shown to judges, one per line."""
        return "\n".join(f"- {entry.name}: {entry.meaning}" for entry in self.classes)


FIVE_CLASSES = ClassScale(
    (
        JudgedClass("CLASS_UNMET", 0.0, "The criterion is not met."),
        JudgedClass("CLASS_PARTIALLY_MET", 0.25, "The criterion is partially met."),
        JudgedClass("CLASS_MODERATELY_MET", 0.5, "The criterion is moderately met."),
        JudgedClass("CLASS_MAJORLY_MET", 0.75, "The criterion is mostly met."),
        JudgedClass("CLASS_EXACTLY_MET", 1.0, "The criterion is fully met."),
    )
)
"""The usual scale: five classes at equal distances (Weval methodology, section 4.2)."""
TEN_CLASSES = ClassScale(
    (
        JudgedClass("CLASS_UTTERLY_UNMET", 0.0, "The text contradicts the criterion."),
        JudgedClass("CLASS_UNMET", 0.001, "The criterion is not met."),
        JudgedClass("CLASS_TRACE", 0.125, "There is no more than a hint of what the criterion asks for."),
        JudgedClass("CLASS_SLIGHT", 0.25, "The criterion is met to a slight degree."),
        JudgedClass("CLASS_PARTIAL", 0.375, "The criterion is met in part, and important elements are missing."),
        JudgedClass("CLASS_MODERATE", 0.5, "The criterion is met to a moderate degree, with notable gaps."),
        JudgedClass("CLASS_SUBSTANTIAL", 0.625, "Most of what matters in the criterion is there."),
        JudgedClass("CLASS_MAJOR", 0.75, "The criterion is met but for minor omissions."),
        JudgedClass("CLASS_VERY_NEARLY", 0.875, "The criterion is met but for details that hardly count."),
        JudgedClass("CLASS_EXACT", 1.0, "The criterion is met exactly and in full."),
    )
)
"""Upstream's finer scale, with its names and numbers, for comparison with upstream results on it."""
CLASS_SCALES = {5: FIVE_CLASSES, 10: TEN_CLASSES}
USUAL_SCALE = FIVE_CLASSES.size


def class_scale(size: int) -> ClassScale:
    """Return the scale with `size` classes. Raises ConfigError if there is none."""
    if size not in CLASS_SCALES:
        raise ConfigError(f"scale of judges: got {size!r}; allowed: {', '.join(map(str, CLASS_SCALES))}")
    return CLASS_SCALES[size]
