"""Personas and scenarios as lines of JSON, for exchange with other programs and installations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from pydantic import ValidationError

from dtef_pipeline.documents import format_in_one_line
from dtef_pipeline.errors import SourceError
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.text.json_values import parse_json

LINE_SCHEMA = 1
LineKind = Literal["persona", "scenario"]
LineDocument = Persona | ScenarioManifest
_MODELS: Mapping[LineKind, type[LineDocument]] = MappingProxyType({"persona": Persona, "scenario": ScenarioManifest})


def write_document_lines(kind: LineKind, documents: Iterable[LineDocument]) -> str:
    """Write one line per version of a document, in the order of ids and versions, as canonical JSON: equal documents give equal text."""
    encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
    lines = sorted(documents, key=lambda document: (document.id, document.version))
    return "".join(f"{encode({'kind': kind, 'schema': LINE_SCHEMA, **line.model_dump(mode='json')})}\n" for line in lines)


def detect_line_kind(data: bytes) -> LineKind:
    """Return the kind of documents that the first line names; `scenario` if it names no known kind."""
    try:
        first = json.loads(next(filter(None, data.decode("utf-8-sig").split("\n")), "{}"))
    except ValueError:
        return "scenario"
    return "persona" if isinstance(first, dict) and first.get("kind") == "persona" else "scenario"


def read_document_lines(kind: LineKind, data: bytes, where: str) -> dict[int, LineDocument]:
    """Read the documents of such lines by line number, from 1, each version once; blank lines are skipped.

    Raises SourceError, with the line, for bytes that are not UTF-8, an invalid line, and a version that occurs twice with different
    content.
    """
    by_line: dict[int, LineDocument] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(_decode_lines(data, where).split("\n"), start=1):
        if not line.strip():
            continue
        document = _parse_document_line(kind, line, where, number)
        earlier = lines.setdefault(format_version_name(document), number)
        if by_line.setdefault(earlier, document) != document:
            raise SourceError(
                f"line {earlier} has different content",
                where=where,
                line=number,
                arrived=format_version_name(document),
                allowed=f"each version of a {kind} only once",
            )
    return by_line


def find_new_documents(
    documents: Mapping[int, LineDocument], catalog: Iterable[LineDocument], where: str, statuses: Sequence[str] = ()
) -> dict[int, LineDocument]:
    """Return the documents, by line, that have no equal one in the catalog.

    Args:
        documents: by line.
        catalog: existing versions.
        where: name of the file in errors.
        statuses: from first to last. A version that is known with an earlier status is new, one that is known with a later status is not.
    Without statuses, a different status counts as different content.

    Raises SourceError, with the line, for a known version with different content.
    """
    versions = {format_version_name(version): version for version in catalog}
    new_documents: dict[int, LineDocument] = {}
    for line, document in documents.items():
        old = versions.get(format_version_name(document))
        fields = [name for name in type(document).model_fields if old and getattr(document, name) != getattr(old, name)]
        is_later = old is not None and fields == ["status"] and statuses
        if fields and not is_later:
            raise SourceError(
                "already exists with different content",
                where=where,
                line=line,
                arrived=format_version_name(document),
                allowed=f"the same {', '.join(fields)}, or another version",
            )
        if old is None or (is_later and statuses.index(document.status) > statuses.index(old.status)):
            new_documents[line] = document
    return new_documents


def format_version_name(document: LineDocument) -> str:
    """Return id and version, as in tables: `cautious:v2`."""
    return f"{document.id}:v{document.version}"


def _decode_lines(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SourceError(f"not UTF-8 (byte 0x{error.object[error.start]:02x})", where=where, line=line) from error


def _parse_document_line(kind: LineKind, line: str, where: str, number: int) -> LineDocument:
    def make_line_error(problem: str, text: object) -> SourceError:
        allowed = f'an object with "kind": "{kind}", "schema": {LINE_SCHEMA} and the fields of a {kind}'
        return SourceError(problem, where=where, line=number, arrived=text, allowed=allowed)

    try:
        content = parse_json(line)
        line.encode()
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise make_line_error(f"not valid JSON: {error}", line[:80]) from error
    if not isinstance(content, dict):
        raise make_line_error("no JSON object", content if len(line) <= 80 else line[:80])
    for name, value in (("kind", kind), ("schema", LINE_SCHEMA)):
        actual = content.pop(name, None)
        if actual != value or type(actual) is not type(value):
            raise make_line_error(f"{name} is not {value!r}", actual[:80] if isinstance(actual, str) else actual)
    model = _MODELS[kind]
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise SourceError(format_in_one_line(error, model), where=where, line=number) from error
