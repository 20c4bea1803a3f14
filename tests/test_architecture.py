"""The rooms of the project: who may import whom, and what importing loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("dtef_pipeline", "resources", "assets")
"""From the inside out: a package may import itself and those before it."""
EDGE = ROOT / "dtef_pipeline" / "cli"
"""The command line, the one room of the library that may import `assets`."""
DAGSTER_INTERNALS = (
    "assets/stage/dagster_internals.py",
    "resources/dagster_postgres_storage.py",
    "resources/dagster_storage.py",
)
"""The files that may import `dagster._*`: a new release of Dagster is tried against these."""
SHARED_OUTSIDE = ("resources/gateway", "resources/responses", "assets/stage")
"""The rooms beyond the library that serve every family: they know nothing of one."""
LONGEST_FILE = 400
HEAVY = ("pandas", "duckdb", "dagster", "litellm", "pyarrow")


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported_packages(path: Path) -> Iterator[tuple[int, str]]:
    """(line, top-level package) of every import statement, wherever in the file it stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports here are absolute"
            yield node.lineno, str(node.module).partition(".")[0]


@pytest.mark.parametrize("package", LAYERS)
def test_imports_never_point_outwards(package: str) -> None:
    outer = set(LAYERS[LAYERS.index(package) + 1 :]) | {"tests", "benchmarks"}
    backwards = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(package)
        if EDGE not in path.parents
        for line, name in imported_packages(path)
        if name in outer
    ]
    assert backwards == []


def test_the_command_line_is_the_one_exception_and_uses_it() -> None:
    assert "assets" in {name for path in modules("dtef_pipeline/cli") for _, name in imported_packages(path)}


def private_dagster(path: Path) -> Iterator[str]:
    """`file:line module` of every import from one of Dagster's private modules."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        found = [name for name in names if re.match(r"dagster(_\w+)?\.(\w+\.)*_", name)]
        yield from (f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)} {name}" for name in found)


def test_what_is_private_to_dagster_is_imported_in_three_files_alone() -> None:
    found = {path.relative_to(ROOT).as_posix(): list(private_dagster(path)) for name in LAYERS for path in modules(name)}
    assert [line for path, lines in found.items() if path not in DAGSTER_INTERNALS for line in lines] == []
    assert all(found[path] for path in DAGSTER_INTERNALS)


@pytest.mark.parametrize("room", SHARED_OUTSIDE)
def test_shared_rooms_beyond_the_library_name_nothing_of_a_family(room: str) -> None:
    lines = [
        f"{path.relative_to(ROOT)}:{number} {line.strip()}"
        for path in modules(room)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"survey|segment|question|round_id", line, re.IGNORECASE)
    ]
    assert lines == []


@pytest.mark.parametrize("package", LAYERS)
def test_no_file_is_longer_than_a_reader_can_hold(package: str) -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules(package)}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_no_module_is_a_grab_bag() -> None:
    names = {path.stem for package in LAYERS for path in modules(package)}
    assert names & {"utils", "util", "helpers", "common", "misc"} == set()


def loaded_by(code: str) -> set[str]:
    """Top-level packages in sys.modules after the code ran in an interpreter of its own."""
    program = f"{code}\nimport sys\nprint('\\n' + ' '.join(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_library_loads_neither_dagster_nor_litellm() -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in modules("dtef_pipeline")
        if EDGE not in path.parents
    ]
    assert len(names) > 30
    loaded = loaded_by(f"import importlib\nfor name in {names!r}: importlib.import_module(name)")
    assert "pyarrow" in loaded
    assert loaded & {"dagster", "litellm", "assets", "resources"} == set()


def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_by(
        "from dtef_pipeline.cli import main\n"
        "try: main(['--help'], prog_name='dtef')\n"
        "except SystemExit as end: assert end.code == 0"
    )
    assert "click" in loaded
    assert loaded & {*HEAVY, "numpy", "assets", "resources"} == set()
