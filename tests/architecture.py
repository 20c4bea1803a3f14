"""The rules of the house as functions of a checkout, to which `test_architecture.py` holds this one.

Each rule returns its offences, a line each; none: the rule holds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

LAYERS = ("dtef_pipeline", "resources", "assets")
"""From the inside out: a package imports itself and those before it."""
EDGES = ("dtef_pipeline/api", "dtef_pipeline/cli")
"""The rooms of the library that may import `resources` and `assets`."""
FAMILIES = ("survey", "rubric", "qa", "games")
SHARED = (
    "errors",
    "identity",
    "cores",
    "documents",
    "keys",
    "tables",
    "text",
    "statistics",
    "asking",
    "boards",
    "judging",
    "preference",
    "drift",
    "report",
    "site",
    "family",
)
"""Rooms of the library that serve every family, from the ground up: a room imports itself and those before it."""
ROOMS = (*SHARED, *FAMILIES, "families", "sites", "api", "cli")
NO_SURVEY_WORDS = (*(f"dtef_pipeline/{room}" for room in SHARED), "resources", "assets/stage")
SURVEY_WORD = re.compile(r"survey|segment|question|round_?id|\brounds?\b(?!\()", re.IGNORECASE)
"""A round is a wave of a survey; `round(` is Python's."""
PRIVATE_DAGSTER = (
    "assets/stage/dagster_internals.py",
    "resources/dagster_storage.py",
    "resources/dagster_postgres_storage.py",
)
LONGEST_FILE = 600


class Import(NamedTuple):
    """One name that a file imports."""

    path: str
    line: int
    module: str
    """With the imported name at its end: `dtef_pipeline.drift.rule.Rule`, or `dtef_pipeline.drift.rule` for `import ...`."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line} imports {self.module}"


def sources(root: Path, *packages: str) -> Iterator[tuple[str, Path]]:
    """(path from the root, file) of every Python file."""
    for package in packages or LAYERS:
        for path in sorted((root / package).rglob("*.py")):
            yield path.relative_to(root).as_posix(), path


@cache
def tree(path: Path) -> ast.Module:
    """A file as Python reads it. All rules look at the same files, so each is parsed once; `tree.cache_clear()` lets them go."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(root: Path, *packages: str) -> Iterator[Import]:
    """Every import, wherever in the file it stands, also by `importlib.import_module("...")` and `__import__("...")`."""
    for name, path in sources(root, *packages):
        yield from (Import(name, line, module) for line, module in imported_by(path))


@cache
def imported_by(path: Path) -> tuple[tuple[int, str], ...]:
    """(line, module) of every import of a file."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            prefix = "." * node.level + (node.module or "")
            found += [(node.lineno, f"{prefix}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Call) and (module := called_import(node)):
            found.append((node.lineno, module))
    return tuple(found)


def called_import(call: ast.Call) -> str | None:
    """The module that a call imports by name; None: it imports none, or one that only a run can tell."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    named = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "name")][:1]
    given = [part.value for part in named if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return given[0] if given and function in {"import_module", "__import__"} else None


def room_of(path_or_module: str) -> str | None:
    """The room of the library that a path or a dotted name lies in; None outside the library."""
    parts = path_or_module.removesuffix(".py").replace("/", ".").split(".")
    return parts[1] if parts[0] == "dtef_pipeline" and len(parts) > 1 and parts[1] != "__init__" else None


def imports_that_point_outwards(root: Path) -> list[str]:
    """Rule 1: dtef_pipeline -> resources -> assets, never backwards; the edges alone may import what is outside."""
    return [
        str(found)
        for place, package in enumerate(LAYERS)
        for found in imports(root, package)
        if (found.module.split(".")[0] in {"", *LAYERS[place + 1 :], "tests", "benchmarks"} or _is_edge(found.module))
        and not _is_edge(found.path)
    ]


def _is_edge(path_or_module: str) -> bool:
    name = path_or_module.removesuffix(".py").replace(".", "/")
    return any(name == edge or name.startswith(f"{edge}/") for edge in EDGES)


def imports_of_later_rooms(root: Path) -> list[str]:
    """Rule 2: a room of the library imports only rooms before it; one that is not listed is an offence."""
    offences = []
    for found in imports(root, "dtef_pipeline"):
        here, there = room_of(found.path), room_of(found.module)
        if here is None or there is None:
            continue
        if unknown := {here, there} - set(ROOMS):
            offences.append(f"{found}: no place in the order for {', '.join(sorted(unknown))}")
        elif ROOMS.index(there) > ROOMS.index(here):
            offences.append(f"{found}: {there} comes after {here}")
    return offences


def imports_of_families(root: Path, allowed: Mapping[str, str]) -> list[str]:
    """Rule 3: shared rooms import no family, no family imports another. `allowed`: files that may, with the reason."""
    offences = []
    for found in imports(root):
        parts = found.module.split(".")
        family = parts[1] if parts[0] in {"dtef_pipeline", "assets"} and len(parts) > 1 and parts[1] in FAMILIES else None
        own = set(Path(found.path).parts[1:2]) & set(FAMILIES)
        if family and family not in own and not _is_edge(found.path) and found.path not in allowed:
            offences.append(str(found))
    return offences


def survey_words(root: Path, allowed: Mapping[str, str]) -> list[str]:
    """Rule 4: shared rooms do not speak of surveys, segments, questions or rounds. `allowed`: words ("path: word"), with the reason.

    A script that is named after a family is its own, though pages need all scripts in one folder.
    """
    offences = []
    for room in NO_SURVEY_WORDS:
        base = root / room
        files = base.rglob("*") if base.is_dir() else [base.with_suffix(".py")]
        known = (file for file in files if file.suffix in {".py", ".css", ".js"} and file.stem not in FAMILIES)
        for path in sorted(file for file in known if file.exists()):
            name = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                words = {word.lower() for word in SURVEY_WORD.findall(line)}
                offences += [f"{name}:{number} says {word}" for word in sorted(words) if f"{name}: {word}" not in allowed]
    return offences


def attributes_of_dagster(root: Path, *packages: str) -> Iterator[Import]:
    """Every private name that is reached through Dagster's module, as in `dg._core.storage`, as if it were imported."""
    for name, path in sources(root, *packages):
        if not any(module.partition(".")[0] == "dagster" for _, module in imported_by(path)):
            continue
        nodes = list(ast.walk(tree(path)))
        imported = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        called = {alias.asname or "dagster" for alias in imported if alias.name.partition(".")[0] == "dagster"}
        for node in nodes:
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                module, _, inside = ast.unparse(node).partition(".")
                if module in called:
                    yield Import(name, node.lineno, f"dagster.{inside}")


def private_dagster(root: Path) -> list[str]:
    """Rule 5: what Dagster calls private is used in one file of assets, and in the two storage files; benchmarks keep to it too."""
    places = (*LAYERS, "benchmarks")
    return [
        str(found)
        for found in (*imports(root, *places), *attributes_of_dagster(root, *places))
        if re.match(r"dagster(_\w+)?\.(\w+\.)*_(?!_)|dagster_postgres\.", found.module) and found.path not in PRIVATE_DAGSTER
    ]


def long_files(root: Path) -> list[str]:
    """Rule 6: a file is no longer than a reader can hold."""
    files = sources(root, *LAYERS, "tests", "benchmarks")
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in files}
    return [f"{name} has {lines} lines" for name, lines in lengths.items() if lines > LONGEST_FILE]


def ends_at_a_line_break(root: Path) -> list[str]:
    """Rule 7: a pattern without MULTILINE says `\\Z` where it means the end of the text; `$` also matches before a final line break."""
    return [
        f"{name}:{node.lineno}: {pattern}"
        for name, path in sources(root)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and (pattern := pattern_of(node))
        and "$" in _NO_ANCHOR.sub("", pattern)
        and not re.search(r"MULTILINE|\(\?[a-z]*m", ast.unparse(node))
    ]


_NO_ANCHOR = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]", re.DOTALL)
"""An escaped character, or a class of characters."""


def pattern_of(call: ast.Call) -> str:
    """The pattern that a call of `re` is given; blank for other calls and for patterns in variables. Computed parts are left out."""
    function = call.func
    module = function.value if isinstance(function, ast.Attribute) else None
    if not (isinstance(module, ast.Name) and module.id in ("re", "regex") and call.args):
        return ""
    parts = call.args[0].values if isinstance(call.args[0], ast.JoinedStr) else [call.args[0]]
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
