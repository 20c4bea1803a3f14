"""docs/explanation/labels.md names columns, classes and tables that there are."""

from __future__ import annotations

import re

from dtef_pipeline.judging.classes import FIVE_CLASSES
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_CORRECTED_ROWS
from resources.warehouse import TABLES
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "explanation" / "labels.md").read_text(encoding="utf-8")


def test_columns_tables_and_classes_on_the_page_are_the_real_ones() -> None:
    heads = re.findall(r"^\| (`.*?) \|", PAGE.partition("## Read the corrected board")[2], re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(heads))) == set(RUBRIC_CORRECTED_ROWS.names) - {"blueprint", "model"}
    assert set(re.findall(r"`(rubric_\w+)`", PAGE)) - {"rubric_anchors_again"} <= set(TABLES)
    assert all(f"`{name.removeprefix('CLASS_')}`" in PAGE for name in FIVE_CLASSES.numbers)
