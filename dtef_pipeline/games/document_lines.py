"""Personas as lines of JSON, for other programs and other places."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from dtef_pipeline.documents import in_one_line
from dtef_pipeline.errors import SourceError
from dtef_pipeline.games.personas import Persona

PERSONA_KIND, PERSONA_SCHEMA = "persona", 1
_LINE_ALLOWED = f'an object with "kind": "{PERSONA_KIND}", "schema": {PERSONA_SCHEMA} and the fields of a persona'


def persona_lines(personas: Iterable[Persona]) -> str:
    """One line per version of a persona, in the order of ids and versions, as canonical JSON: equal personas give equal text."""
    ordered = sorted(personas, key=lambda one: (one.id, one.version))
    return "".join(f"{_line_of(one)}\n" for one in ordered)


def read_persona_lines(text: str, where: str) -> dict[int, Persona]:
    """By number of its line, counted from 1, the personas of such lines, each version once; blank lines are passed over.

    Raises SourceError, with the line, for one that is no persona, and for a version that stands twice with different content.
    """
    found: dict[int, Persona] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        persona = _persona_of(line, where, number)
        earlier = lines.setdefault(persona.name, number)
        if found.setdefault(earlier, persona) != persona:
            raise SourceError(
                f"line {earlier} has other content",
                where=where,
                line=number,
                arrived=persona.name,
                allowed="each version of a persona once",
            )
    return found


def new_personas(given: Mapping[int, Persona], there: Mapping[str, Persona], where: str) -> dict[int, Persona]:
    """Those of the given personas, by line, that are not there yet, by name.

    Raises SourceError, with the line, for a version that is there with another content.
    """
    for number, persona in given.items():
        if there.get(persona.name, persona) != persona:
            raise SourceError(
                "is there already with other content",
                where=where,
                line=number,
                arrived=persona.name,
                allowed="the same content, or another version",
            )
    return {number: persona for number, persona in given.items() if persona.name not in there}


def _line_of(persona: Persona) -> str:
    told = {"kind": PERSONA_KIND, "schema": PERSONA_SCHEMA, **persona.model_dump()}
    return json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _persona_of(line: str, where: str, number: int) -> Persona:
    def fault(problem: str, arrived: object) -> SourceError:
        return SourceError(problem, where=where, line=number, arrived=arrived, allowed=_LINE_ALLOWED)

    try:
        given = json.loads(line, object_pairs_hook=_of_unique_keys)
        line.encode()
        json.dumps(given, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise fault(f"no usable JSON: {error}", line[:80]) from error
    if not isinstance(given, dict):
        raise fault("no JSON object", given if len(line) <= 80 else line[:80])
    for name, value in (("kind", PERSONA_KIND), ("schema", PERSONA_SCHEMA)):
        arrived = given.pop(name, None)
        if arrived != value or type(arrived) is not type(value):
            raise fault(f"{name} is not {value!r}", arrived)
    try:
        return Persona.model_validate(given)
    except ValidationError as error:
        raise SourceError(in_one_line(error, Persona), where=where, line=number) from error


def _of_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found
