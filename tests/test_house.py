"""docs/explanation/architecture.md says what is so: the rooms it names, their order, the files on its two ways, the drawing."""

from __future__ import annotations

import importlib.util
import re

from tests import architecture as house
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")


def test_the_order_of_rooms_is_the_tested_one() -> None:
    (order,) = re.findall(r"in this order:\n\s+([\w, ]+)\.", PAGE)
    assert tuple(order.split(", ")) == house.ROOMS


def test_every_room_has_a_row_and_every_row_a_room() -> None:
    packages = {path.parent for _, path in house.sources(ROOT) if path.name != "__init__.py"}
    deepest = {"/".join(path.relative_to(ROOT).parts[:2]) for path in packages}
    single = {name for name, _ in house.sources(ROOT, "dtef_pipeline") if name.count("/") == 1 and "__init__" not in name}
    rows = {row.rstrip("/") for row in re.findall(r"^\| `([\w/.]+)` \|", PAGE, re.MULTILINE)}
    assert rows == deepest | single


def test_the_files_the_page_names_exist() -> None:
    named = set(re.findall(r"`((?:dtef_pipeline|resources|assets|tests|docs)/[\w/.]+)`", PAGE))
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_drawing_is_what_the_code_says() -> None:
    spec = importlib.util.spec_from_file_location("house", ROOT / "docs" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    drawn = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawn)
    assert drawn.DRAWING.read_text(encoding="utf-8") == drawn.svg(), "stale: run `python -m benchmarks.figures house.svg`"
