"""What a stranger installs: the lock file, and a wheel that works outside the checkout. No test here needs the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN_LITELLM = re.compile(r"1\.82\.7|1\.82\.8|1\.107(\..*)?")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    """Name and everything that belongs to it: `name==version`, marker, hashes."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    entries = [entry for entry in re.split(r"\n(?=\S)", lines.strip().replace("\\\n", " ")) if entry.strip()]
    return {normal(re.split(r"[=\s;\[]", entry, maxsplit=1)[0]): entry for entry in entries}


def requirement_name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return normal(found[0])


class TestLock:
    def test_every_pin_is_exact_and_has_hashes(self, pins: dict[str, str]) -> None:
        assert len(pins) > 50
        unpinned = [name for name, entry in pins.items() if not re.match(r"\S+==\S+", entry)]
        unhashed = [name for name, entry in pins.items() if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)]
        assert unpinned == []
        assert unhashed == []

    def test_no_download_address_is_in_it(self) -> None:
        text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
        assert re.findall(r"\S*://\S*|^\s*(?:-i|--index-url|--extra-index-url|--find-links)\b.*", text, re.MULTILINE) == []

    def test_withdrawn_releases_of_litellm_are_locked_out(self, pins: dict[str, str]) -> None:
        version = re.match(r"\S+==([^\s;]+)", pins["litellm"])
        assert version
        assert not FORBIDDEN_LITELLM.fullmatch(version[1])
        (requirement,) = (r for r in project()["dependencies"] if requirement_name(r) == "litellm")
        assert {"!=1.82.7", "!=1.82.8", "!=1.107.*"} <= set(requirement.removeprefix("litellm").split(","))

    def test_every_dependency_and_extra_is_covered(self, pins: dict[str, str]) -> None:
        extras = [r for group in project()["optional-dependencies"].values() for r in group]
        build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
        wanted = {requirement_name(r) for r in [*project()["dependencies"], *extras, *build]}
        assert wanted - set(pins) == set()


def project() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built offline and unpacked into an empty folder, as an installer would."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run_installed(installed: Path, elsewhere: Path, code: str) -> str:
    """Run code against the unpacked wheel alone, in a folder that is not the checkout."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DTEF_", "DAGSTER_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=elsewhere,
        env={**environment, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestWheel:
    def test_it_holds_the_packages_and_what_they_ship(self, installed: Path) -> None:
        shipped = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
        places = {name: name for name in ("assets", "dtef_pipeline", "resources")} | {"data": "dtef_pipeline/_data"}
        wanted = {
            f"{place}/{path.relative_to(ROOT / folder)}"
            for folder, place in places.items()
            for path in (ROOT / folder).rglob("*.*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert {*wanted, "dtef_pipeline/_data/dagster.yaml"} - shipped == set()
        assert [name for name in shipped if name.startswith(("tests/", "benchmarks/"))] == []

    def test_the_command_the_definitions_and_the_shipped_models_load_from_it(self, installed: Path, tmp_path: Path) -> None:
        code = (
            "import assets.definitions as d; from resources.settings import find_shipped; from assets.stage.resources import Store\n"
            "from assets.stage.partitions import load_store_models\n"
            "print(d.__file__); print(len(list(d.defs.resolve_all_job_defs()))); print(find_shipped('rounds') / 'S1')\n"
            "print('baselines' in load_store_models(Store()).collections)\n"
            "import sys; print(*[name for name in sys.modules if name.startswith(('dagster_k8s', 'kubernetes'))])\n"
            "import dtef_pipeline.cli as c; c.main(['--help'])"
        )
        file, jobs, sample, has_baselines, of_kubernetes, *help_lines = run_installed(installed, tmp_path, code).splitlines()
        assert file.startswith(str(installed))
        assert int(jobs) >= 3
        assert sample.startswith(str(installed))
        assert Path(sample).is_dir()
        assert has_baselines == "True"
        assert of_kubernetes == "", "the extra is not needed"
        assert "dtef board" in "".join(help_lines)
        assert list(tmp_path.iterdir()) == []
