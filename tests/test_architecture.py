"""The rooms of the project: who may import whom, and what importing loads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests import architecture as house
from tests.conftest import ROOT

MAY_NAME_A_FAMILY = {
    "dtef_pipeline/families.py": "the list of families: what each brings",
}
MAY_SAY = {
    "dtef_pipeline/errors.py: survey": "SurveyError is the name that adapters in other packages raise",
    "resources/settings.py: survey": "DTEF_SURVEYS and the landing folder are what users have set; another family's is another field",
    "resources/sources.py: round": "the field of the manifests that lie in warehouses, and the option that registers a source",
    "resources/sources.py: round_id": "the same, as functions are given it",
}
"""Words of surveys in shared rooms ("path: word") and why; this list only shrinks."""
RULES: dict[str, Callable[[Path], list[str]]] = {
    "1": house.imports_that_point_outwards,
    "2": house.imports_of_later_rooms,
    "3": lambda root: house.imports_of_families(root, MAY_NAME_A_FAMILY),
    "4": lambda root: house.survey_words(root, MAY_SAY),
    "5": house.private_dagster,
    "6": house.long_files,
    "7": house.ends_at_a_line_break,
}


def test_the_house_keeps_its_rules_and_has_no_exception_that_nobody_needs() -> None:
    """An exception that has outlived its offence hides the next one."""
    try:
        assert {rule: offences for rule, holds in RULES.items() if (offences := holds(ROOT))} == {}
        files = {found.split(":")[0] for found in house.imports_of_families(ROOT, {})}
        assert set(MAY_NAME_A_FAMILY) - files == set()
        said = {f"{found.partition(':')[0]}: {found.rpartition(' ')[2]}" for found in house.survey_words(ROOT, {})}
        assert set(MAY_SAY) - said == set()
        assert any(found.module.startswith("assets.") for found in house.imports(ROOT, *house.EDGES))
    finally:
        house.tree.cache_clear()


def test_no_module_is_a_grab_bag() -> None:
    names = {path.stem for _, path in house.sources(ROOT)}
    assert names & {"utils", "util", "helpers", "common", "misc"} == set()


def loaded_by(code: str) -> set[str]:
    """Top-level packages in sys.modules after the code ran in an interpreter of its own."""
    program = f"{code}\nimport sys\nprint('\\n' + ' '.join(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_library_loads_neither_dagster_nor_litellm() -> None:
    names = [
        name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for name, _ in house.sources(ROOT, "dtef_pipeline")
        if not name.startswith(house.EDGES)
    ]
    assert len(names) > 30
    loaded = loaded_by(f"import importlib\nfor name in {names!r}: importlib.import_module(name)")
    assert "pyarrow" in loaded
    assert loaded & {"dagster", "litellm", "assets", "resources"} == set()
