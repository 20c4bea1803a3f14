"""Labels of partitions, personas and runs on pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtef_pipeline.site.family_view import FamilySite

ITSELF = "itself"
"""Label of a model without a persona."""
_NO_PERSONA = ("", "none")
_LONGEST_SETTING = 200
"""Largest number of characters of a run's request."""


@cache
def site_of(family: str) -> FamilySite | None:
    """Return the family's part of the site, which has the labels. It imports pandas, so the first page loads it, not the server's start."""
    from dtef_pipeline.sites import load_family_sites

    return next((site for site in load_family_sites() if site.family == family), None)


def family_title(family: str) -> str:
    """`Surveys`."""
    site = site_of(family)
    return site.title if site else family.capitalize()


def find_family(title: str) -> str:
    """The family that pages call by this title, in any case; other words stay as they are."""
    from dtef_pipeline.sites import load_family_sites

    return next((site.family for site in load_family_sites() if site.title.lower() == title.lower()), title)


def part_words(family: str, key: str) -> str:
    """`GD4, Kenya` of the partition `GD4/country:kenya`."""
    site = site_of(family)
    return site.part_words(key) if site else key


def metric_words(family: str, metric: str) -> str:
    """`Jensen-Shannon` of `js`."""
    site = site_of(family)
    return site.metric_words(metric) if site else metric


def way_words(family: str, row: Mapping[str, Any]) -> str:
    """Return the condition of a row's models; empty if all have the same."""
    level, condition = (str(row[name]) if row.get(name) is not None else "" for name in ("context_level", "condition"))
    site = site_of(family)
    return (
        site.describe_asking(level, condition) if site and (level or condition) else ", ".join(filter(None, (level, condition)))
    )


def persona_words(names: Sequence[str]) -> list[str]:
    """Return the names of personas, `itself` for none."""
    return [ITSELF if name in _NO_PERSONA else name for name in names]


def describe_run_request(family: str, asks: Mapping[str, Any]) -> str:
    """Describe a run's request in one line: `Persona: calm:v2; seeds: 1-40`. Long lists are shortened; `–`: there is nothing to show."""
    texts = {_label(name): words for name, value in asks.items() if (words := _value_words(family, name, value))}
    return "; ".join(f"{name}: {words}" for name, words in texts.items()) or "–"


def _label(name: str) -> str:
    return name.removesuffix("_id").replace("_", " ")


def _value_words(family: str, name: str, value: Any) -> str:
    if name in ("persona", "persona_id"):
        return value and ", ".join(persona_words([str(value)]))
    if name in ("partition", "scenario_id"):
        return part_words(family, str(value))
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _LONGEST_SETTING else f"{text[:_LONGEST_SETTING]}…"
