"""Whether scenario packs are whole: manifest, adapter, tests and playbook, each where it belongs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.manifest import ScenarioManifest, read_manifest
from dtef_pipeline.games.pack_faults import opponent_faults, weighing_faults
from dtef_pipeline.games.packs import ADAPTERS_GROUP, Pack, adapters, lacking_names
from dtef_pipeline.games.trial_play import trial_faults

MANIFEST_FOLDERS = ("data/scenarios", "scenarios")
PLAYBOOKS = "docs/scenarios"


@dataclass(slots=True)
class PackFiles:
    """One pack of a checkout, and what is wrong with it."""

    name: str
    """League and scenario."""
    manifest: ScenarioManifest | None = None
    place: Path | None = None
    """The file of its manifest; None: there is none."""
    faults: list[str] = field(default_factory=list)
    """Each one sentence: what it lacks or where its manifest is at fault."""


def check_packs(folder: Path, own: Path | None = None) -> list[PackFiles]:
    """All packs of a checkout by name: those with a manifest, with an entry point in its pyproject.toml, or with a playbook alone.

    `own`: a folder <league>/<scenario>.yaml of manifests outside the checkout. A manifest there takes the place of one with the same id; of
    a scenario that the checkout does not have, tests and playbook are not asked for, as they stand elsewhere. Raises ConfigError where there is
    no scenario.
    """
    found = _with_manifests([folder / where for where in MANIFEST_FOLDERS])
    outside = {} if own is None else _with_manifests([own])
    elsewhere = set(outside) - set(found)
    found |= outside
    declared = _declared(folder)
    for name in declared:
        found.setdefault(name, PackFiles(name, faults=[_no_manifest(name)]))
    scenarios = {name.rpartition("/")[2] for name in found}
    for playbook in sorted((folder / PLAYBOOKS).glob("*.md")):
        if playbook.stem not in scenarios and playbook.stem != "README":
            name = f"*/{playbook.stem}"
            found[name] = PackFiles(name, faults=[_no_manifest(name)])
    if not found:
        raise ConfigError(f"{folder}: no scenario; allowed: a folder with {MANIFEST_FOLDERS[0]}/<league>/<scenario>.yaml")
    tests = {path: path.read_text(encoding="utf-8", errors="replace") for path in sorted((folder / "tests").rglob("test_*.py"))}
    for one in found.values():
        one.faults += _of_adapter(one, declared)
        if one.name not in elsewhere:
            one.faults += [*_of_tests(one.name, tests), *_of_playbook(one.name, folder)]
    return [found[name] for name in sorted(found)]


def _with_manifests(folders: Iterable[Path]) -> dict[str, PackFiles]:
    found: dict[str, PackFiles] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*/*.yaml")):
        name = f"{path.parent.name}/{path.stem}"
        try:
            found[name] = PackFiles(name, read_manifest(path), path)
        except ConfigError as error:
            found[name] = PackFiles(name, None, path, [f"its manifest has a fault: {error}"])
    return found


def _declared(folder: Path) -> Mapping[str, str]:
    """The adapters that the checkout's pyproject.toml names."""
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not readable: {error}") from error
    points: Mapping[str, str] = given.get("project", {}).get("entry-points", {}).get(ADAPTERS_GROUP, {})
    return points


def _no_manifest(name: str) -> str:
    return f"it lacks a manifest: {MANIFEST_FOLDERS[0]}/{name}.yaml"


def _of_adapter(one: PackFiles, declared: Mapping[str, str]) -> Iterator[str]:
    name = one.name if one.manifest is None else one.manifest.adapter_name
    if name not in adapters():
        known = f"; pyproject.toml names {declared[name]}: install the package again" if name in declared else ""
        yield f"it lacks an adapter: an entry point {name} in the group {ADAPTERS_GROUP}{known}"
    elif one.manifest is not None:
        try:
            scenario = adapters()[name](one.manifest)
        except Exception as error:  # an engine may fail in any way while it is imported
            yield f"its adapter cannot be used: {type(error).__name__}: {error}"
            return
        if lacking := lacking_names(scenario):
            yield f"its adapter makes a scenario without {', '.join(lacking)}: see dtef_pipeline/games/contract.py"
            return
        if scenario.name not in (one.name, name):
            yield f"its adapter makes {scenario.name}; allowed: {one.name}"
        if len(scenario.seats) != len(one.manifest.seats):
            yield f"its manifest has {len(one.manifest.seats)} seats; allowed: {len(scenario.seats)}, as the adapter has"
            return
        made = Pack(one.manifest, scenario)
        yield from opponent_faults(made)
        yield from (f"its manifest: {fault}" for fault in weighing_faults(made))
        yield from trial_faults(made)


def _of_tests(name: str, tests: Mapping[Path, str]) -> Iterator[str]:
    scenario = name.rpartition("/")[2].replace("-", "_")
    if not any(path.name.startswith(f"test_{scenario}") or name in text for path, text in tests.items()):
        yield f"it lacks tests: tests/**/test_{scenario}*.py, or a test file that names {name}"


def _of_playbook(name: str, folder: Path) -> Iterator[str]:
    path = f"{PLAYBOOKS}/{name.rpartition('/')[2]}.md"
    if not (folder / path).is_file() or not (folder / path).read_text(encoding="utf-8", errors="replace").strip():
        yield f"it lacks a playbook: {path}"
