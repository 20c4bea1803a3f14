"""A full disk is one line: where, that nothing is lost, what to do. On a real one, where the tests may mount it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import CHOSEN, SAMPLE, dtef, refused, skip_board

REMEDY = "; free space on that disk and repeat the command: stored data is kept, and only the rest is done\n"


@pytest.fixture
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A disk of 2 MB."""
    folder = tmp_path_factory.mktemp("disk")
    if (
        not shutil.which("mount")
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("no right to mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, but: int = 0) -> None:
    free = shutil.disk_usage(disk).free
    (disk / "filler").write_bytes(bytes(free - but))


@pytest.mark.parametrize(
    ("variable", "place", "command", "said"),
    [
        ("DTEF_WAREHOUSE", "warehouse", ["add", SAMPLE], "cannot write {}/sources/S1.json: No space left on device"),
        ("DAGSTER_HOME", "dagster", ["add", SAMPLE], "cannot write {}/dagster.yaml: No space left on device"),
        (
            "DTEF_RESPONSES",
            "responses.sqlite",
            ["run", "--round", "S1", *CHOSEN],
            "cannot open the response store sqlite:///{}: database or disk is full",
        ),
    ],
)
def test_a_place_on_a_full_disk_is_named(
    ingested: Path, disk: Path, monkeypatch: pytest.MonkeyPatch, variable: str, place: str, command: list[str], said: str
) -> None:
    """These were tracebacks of Dagster, SQLAlchemy and pyarrow."""
    fill(disk)
    monkeypatch.setenv(variable, str(disk / place))
    assert refused(*command) == f"error: {said.format(disk / place)}{REMEDY}"
    if variable == "DTEF_WAREHOUSE":
        said = refused("run", "--round", "S1")
        assert said.endswith(f"`dtef add PATH` ingests it; the disk of {disk / place} is full: make room first\n")
    assert [path.name for path in disk.rglob("*") if path.is_file() and path.stat().st_size == 0 and path.name[0] == "."] == []


def test_a_run_on_a_full_disk_continues_with_the_same_command(
    ingested: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ingested / "warehouse", disk / "warehouse")
    monkeypatch.setenv("DTEF_WAREHOUSE", str(disk / "warehouse"))
    fill(disk)
    run = ["run", "--round", "S1", *CHOSEN, "--questions", "2"]
    result = dtef(*run)
    assert result.exit_code == 1
    assert "blueprint: 2 of 2 partitions failed: S1/country:brazil (cannot write " in result.stderr
    assert result.stderr.endswith(REMEDY)
    (disk / "filler").unlink()
    skip_board(monkeypatch)
    assert dtef(*run, "--no-roll-ups").exit_code == 0
