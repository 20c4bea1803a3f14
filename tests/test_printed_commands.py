"""Every command of ours that docs, help texts, messages or Dagster's descriptions print exists, with these options and these choices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click

from dtef_pipeline.cli import main
from tests.conftest import ROOT

PAGES = (
    *("README.md", "CONTRIBUTING.md", "Makefile"),
    *(str(path.relative_to(ROOT)) for folder in ("docs", "data", "deploy") for path in sorted((ROOT / folder).rglob("*.*"))),
)
ROOMS = ("dtef_pipeline", "assets", "resources", "docs")
WRITTEN_BY_CODE = {"docs/reference.md", "docs/openapi.json"}
_IN_BACKTICKS = re.compile(r"`(?:[A-Z_]+=\S+ )*dtef\s+([^`]+)`")
_LINE = re.compile(r"^\s*@?(?:[A-Z_]+=\S+ )*(?:\$\(BIN\)/|\.venv/bin/)?dtef ([a-z].*)$", re.MULTILINE)
_ENDS = re.compile(r"\s{2,}|\s#|\s\||\s&&|;|\s>|\s\\|\s\(")
_LITERAL = re.compile(r"[a-z0-9][a-z0-9_.-]*")


def commands_in(text: str) -> Iterator[str]:
    """What is typed after `dtef`, of each command that a text prints in backticks or on a line of its own."""
    for match in _IN_BACKTICKS.finditer(text):
        yield " ".join(match.group(1).split())
    for match in _LINE.finditer(text):
        yield _ENDS.split(match.group(1), maxsplit=1)[0]


def texts_of_code(path: Path) -> Iterator[str]:
    """The string constants of a module; in an f-string, X stands for each value."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    within = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in within:
            yield node.value


def fault(line: str) -> str | None:
    """What of a command line does not exist: a command, an option, or a choice of an option."""
    command: click.Command = main
    words = [word.strip("'\"[](),.:") for word in line.split()]
    if words[:1] in (["X"], ["FAMILY"], ["{0}"]):  # the name of any family
        words[0] = "qa"
    while isinstance(command, click.Group) and words and _LITERAL.fullmatch(words[0]):
        below = command.get_command(click.Context(command), words[0])
        if below is None:
            return words[0]
        command = below
        words.pop(0)
    options = {
        name: one for one in command.params if isinstance(one, click.Option) for name in (*one.opts, *one.secondary_opts)
    }
    for word, following in pairwise([*words, ""]):
        name, is_joined, value = word.partition("=")
        if not name.startswith("--") or name in ("--", "--help", "--version"):
            continue
        if name not in options:
            return name
        chosen = value if is_joined else following
        kind = options[name].type
        if isinstance(kind, click.Choice) and _LITERAL.fullmatch(chosen) and chosen not in kind.choices:
            return f"{name} {chosen}"
    return None


def printed() -> Iterator[tuple[str, str]]:
    """Where a command is printed, and what is typed after `dtef`."""
    for page in PAGES:
        if page not in WRITTEN_BY_CODE and page.endswith((".md", ".yaml", ".yml", ".service", ".sh", "Makefile")):
            yield from ((page, line) for line in commands_in((ROOT / page).read_text(encoding="utf-8")))
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for text in texts_of_code(path):
                yield from ((str(path.relative_to(ROOT)), line) for line in commands_in(text))


def test_every_printed_command_exists_with_these_options() -> None:
    found = list(printed())
    assert len(found) > 500
    assert [f"{where}: dtef {line}: no {what}" for where, line in found if (what := fault(line))] == []
