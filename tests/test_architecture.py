"""The rooms of the project: who may import whom, what importing loads, and that each rule notices when it is broken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import architecture as house
from tests.conftest import ROOT

HEAVY = ("pandas", "duckdb", "dagster", "litellm", "pyarrow")
MAY_NAME_A_FAMILY = {
    "assets/definitions.py": "Dagster loads one module, which lists the jobs, schedules and sensors of every family",
    "assets/launch.py": "starts runs of the families' stages, whose names and partitions it asks for",
    "dtef_pipeline/families.py": "the list of families: what each brings",
}
MAY_SAY = {
    "dtef_pipeline/errors.py: survey": "SurveyError is the name that adapters in other packages raise",
    "resources/settings.py: survey": "DTEF_SURVEYS and the landing folder are what users have set; another family's is another field",
    "resources/sources.py: round": "the field of the manifests that lie in warehouses, and the option that registers a source",
    "resources/sources.py: round_id": "the same, as functions are given it",
}
"""Words of surveys in shared rooms ("path: word") and why; this list only shrinks."""
SAME_NAMES = {
    "dtef_pipeline: models.py": "the models that are asked, and drift of whole models: HOUSE names both rooms so",
    "dtef_pipeline: changes.py": "what changed between snapshots, and between two files of a survey",
    "dtef_pipeline: settings.py": "the same, and the settings of drift",
}
RULES: dict[str, Callable[[Path], list[str]]] = {
    "1": house.imports_that_point_outwards,
    "2": house.imports_of_later_rooms,
    "3": lambda root: house.imports_of_families(root, MAY_NAME_A_FAMILY),
    "4": lambda root: house.survey_words(root, MAY_SAY),
    "5": house.private_dagster,
    "6 length": house.long_files,
    "6 constants": house.constants_of_two_values,
    "6 classes": house.classes_of_one_name,
    "6 names": lambda root: house.files_of_one_name(root, SAME_NAMES),
    "7": house.ends_at_a_line_break,
}
BROKEN = {
    "1": {"dtef_pipeline/drift/rule.py": "from resources.warehouse import Warehouse"},
    "1 outermost": {"resources/json_posts.py": "def send():\n    import assets.launch"},
    "1 edges": {"assets/launch.py": "from dtef_pipeline.cli.survey.survey_run import SURVEY_RUN"},
    "1 by name": {"dtef_pipeline/drift/rule.py": "import importlib\nimportlib.import_module('assets.launch')"},
    "1 by __import__": {"resources/json_posts.py": "launch = __import__(name='assets.launch')"},
    "2": {"dtef_pipeline/boards/cells.py": "from dtef_pipeline.site.build import site_files"},
    "2 unlisted": {"dtef_pipeline/attic/box.py": "from dtef_pipeline.tables import STATUSES"},
    "3": {"assets/stage/roll_up.py": "from dtef_pipeline.survey.tables import SCORES"},
    "3 resources": {"resources/gateway/dispatch.py": "from dtef_pipeline.survey import tables"},
    "3 at the top": {"assets/run_launcher.py": "from assets.survey.rounds import known_keys"},
    "4": {"dtef_pipeline/drift/paired.py": '"""Pairs by question."""'},
    "4 style": {"dtef_pipeline/site/static/site.css": ".segment { color: red }"},
    "4 rounds": {"dtef_pipeline/boards/cells.py": "wrong = 'score those rounds again'\nright = round(1.5)"},
    "4 resources": {"resources/sources.py": "def register(segment): ..."},
    "5": {"assets/launch.py": "from dagster._core.storage.tags import PRIORITY_TAG"},
    "5 attribute": {
        "assets/launch.py": "import dagster as dg\nPRIORITY = dg._core.storage.tags.PRIORITY_TAG\n__version__ = dg.__version__",
    },
    "5 whole module": {"benchmarks/scale.py": "import dagster\nseen = dagster._check.opt_int"},
    "5 by name": {
        "assets/stage/checks.py": "from importlib import import_module\ntags = import_module('dagster._core.storage.tags')"
    },
    "6 length": {"assets/definitions.py": "x = 1\n" * (house.LONGEST_FILE + 1)},
    "6 constants": {"dtef_pipeline/boards/cells.py": "DRAWS = 1", "assets/stage/checks.py": "DRAWS: int = 2"},
    "6 constants private": {"dtef_pipeline/boards/cells.py": "SAME = 1e-9", "dtef_pipeline/report/charts.py": "_SAME = 1e-12"},
    "6 constants together": {
        "assets/launch.py": "LEFT, RIGHT = 1, 2",
        "assets/stage/checks.py": "(TOP, _LEFT), RIGHT = (1, 2), 2",
    },
    "6 classes": {
        "dtef_pipeline/boards/boards.py": "class Evidence: ...",
        "dtef_pipeline/drift/evidence.py": "class Evidence: ...",
    },
    "7 end": {
        "dtef_pipeline/text/labels.py": 'import re\nNAME = re.compile(r"[a-z$]+$")\nLINES = re.compile(r"(?m)^a$|[$]|\\$")'
    },
    "6 names": {"dtef_pipeline/drift/notes.py": "", "dtef_pipeline/report/notes.py": ""},
}


def test_the_house_keeps_its_rules_and_has_no_exception_that_nobody_needs() -> None:
    """An exception that has outlived its offence hides the next one."""
    try:
        assert {rule: offences for rule, holds in RULES.items() if (offences := holds(ROOT))} == {}
        files = {found.split(":")[0] for found in house.imports_of_families(ROOT, {})}
        assert set(MAY_NAME_A_FAMILY) - files == set()
        said = {f"{found.partition(':')[0]}: {found.rpartition(' ')[2]}" for found in house.survey_words(ROOT, {})}
        assert set(MAY_SAY) - said == set()
        named = {" ".join(found.split(" ")[:2]) for found in house.files_of_one_name(ROOT, ())}
        assert set(SAME_NAMES) - named == set()
        assert any(found.module.startswith("assets.") for found in house.imports(ROOT, *house.EDGES))
    finally:
        house.tree.cache_clear()


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_noticed(case: str, tmp_path: Path) -> None:
    for name, text in BROKEN[case].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    rule = next(rule for rule in sorted(RULES, key=len, reverse=True) if case.startswith(rule))
    (offence,) = RULES[rule](tmp_path)
    assert next(iter(BROKEN[case])).rpartition("/")[0].split("/")[0] in offence


def test_every_rule_was_broken_once() -> None:
    assert {rule for rule in RULES if not any(case.startswith(rule) for case in BROKEN)} == set()


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


def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_by(
        "from dtef_pipeline.cli import main\n"
        "try: main(['--help'], prog_name='dtef')\n"
        "except SystemExit as end: assert end.code == 0"
    )
    assert "click" in loaded
    assert loaded & {*HEAVY, "numpy", "assets", "resources"} == set()
