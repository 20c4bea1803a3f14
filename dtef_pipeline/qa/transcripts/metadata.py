"""What is known of an interview, read from a file or given as a filter: the nine fields, and values of the right kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.transcripts.corpus import FILE_FIELD, METADATA_FIELDS, YEAR_FIELD, MetadataValue
from dtef_pipeline.text.beginning import beginning

_LATEST_YEAR = 9999
_YEAR_DIGITS = re.compile(r"[0-9]{1,4}")
_A_YEAR = f"a whole number, 0-{_LATEST_YEAR}"
_UNREADABLE_CHARACTERS = re.compile("[\x00\ud800-\udfff]")

METADATA_COLUMNS = {name: name.lower().replace(" ", "_") for name in METADATA_FIELDS}
"""The column of each field in tables: `RECORD LANG` is `record_lang`."""


def checked_metadata(values: Mapping[str, Any], where: str, line: int | None) -> dict[str, MetadataValue]:
    """The fields that are known, of one interview. Raises ItemError for a value of the wrong kind, and without a FILE."""
    known = {name: value for name in METADATA_FIELDS if (value := values.get(name)) is not None}
    for name, value in known.items():
        if allowed := _not_allowed(name, value):
            raise ItemError(f"metadata {name}", where=where, line=line, arrived=shortened(value), allowed=allowed)
    if not str(known.get(FILE_FIELD, "")).strip():
        arrived = shortened(values.get(FILE_FIELD, ""))
        raise ItemError("metadata without a FILE", where=where, line=line, arrived=arrived, allowed="the name of the interview")
    return known


def written_metadata(cells: Mapping[str, str], where: str, line: int | None) -> dict[str, MetadataValue]:
    """The same of cells of a table, all of which are text: YEAR is read as a number, and an empty cell says nothing."""
    values: dict[str, Any] = {name: cell for name, cell in cells.items() if cell.strip()}
    year = values.get(YEAR_FIELD, "").strip()
    if _YEAR_DIGITS.fullmatch(year):
        values[YEAR_FIELD] = int(year)
    return checked_metadata(values, where, line)


def checked_filter(where: Any) -> dict[str, str | int]:
    """The metadata that documents must have. None and an empty mapping take all.

    Raises ConfigError for what is no mapping, for a key that is none of METADATA_FIELDS and for a value of another kind: YEAR is a whole
    number, all else is text.
    """
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise ConfigError(
            f"filter: got {shortened(where)!r}; allowed: metadata and their values, such as {{'PROJECT': 'US-001'}}"
        )
    if unknown := [shortened(key) for key in where if key not in METADATA_COLUMNS]:
        raise ConfigError(f"filter: got the key {unknown[0]!r}; allowed: {', '.join(METADATA_FIELDS)}")
    for name, value in where.items():
        if allowed := _not_allowed(name, value):
            raise ConfigError(
                f"filter: {name}: got {shortened(value)!r}; allowed: {allowed}; keys: {', '.join(METADATA_FIELDS)}"
            )
    return dict(where)


def written_filter(given: Sequence[str]) -> dict[str, str | int]:
    """The same of texts such as `PROJECT=US-002` and `YEAR=2024`. Raises ConfigError also without `=`, and for a key twice."""
    found: dict[str, str | int] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name in found:
            arrived = f"{name} twice" if equals else repr(shortened(text))
            raise ConfigError(f"filter: got {arrived}; allowed: KEY=VALUE, with each key once: {', '.join(METADATA_FIELDS)}")
        found[name] = int(value) if name == YEAR_FIELD and _YEAR_DIGITS.fullmatch(value) else value
    return checked_filter(found)


def spelled_filter(where: Mapping[str, str | int]) -> str:
    """One spelling of a filter, `PROJECT=US-002,YEAR=2024`: in the order of METADATA_FIELDS, with %2C and %25 for commas and percent signs."""
    values = {name: str(where[name]).replace("%", "%25").replace(",", "%2C") for name in METADATA_FIELDS if name in where}
    return ",".join(f"{name}={value}" for name, value in values.items())


def read_filter(spelled: str) -> dict[str, str | int]:
    """What `spelled_filter` spells. Raises ConfigError as `written_filter`."""
    parts = spelled.split(",") if spelled else []
    return written_filter([part.replace("%2C", ",").replace("%25", "%") for part in parts])


def shortened(value: Any) -> Any:
    """A value as a message can show it: texts and containers by their beginning."""
    if isinstance(value, str):
        return beginning(value)
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 10**12):
        return value
    return f"a {type(value).__name__}"


def no_readable_text(text: str) -> bool:
    """Whether a text holds what no table can: half of a character, or the character NUL."""
    return bool(_UNREADABLE_CHARACTERS.search(text))


def storable(text: str) -> str:
    """The text with what no table holds, NUL and halves of characters, replaced by U+FFFD."""
    return _UNREADABLE_CHARACTERS.sub("\ufffd", text)


def is_of_field(name: str, value: Any) -> bool:
    """Whether a value is one that this field can have."""
    return _not_allowed(name, value) is None


def _not_allowed(name: str, value: Any) -> str | None:
    """What would have been allowed, in words; None: the value is."""
    if name == YEAR_FIELD:
        is_year = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LATEST_YEAR
        return None if is_year else _A_YEAR
    return None if isinstance(value, str) and not no_readable_text(value) else "text"
