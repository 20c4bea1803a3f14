"""`dtef export labels` draws again what a lost file held. Sheets, imports and corrections: `tests/assets/rubric/test_labels.py`."""

from __future__ import annotations

import csv
from pathlib import Path

from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.made.rubric_pages import made_tables
from tests.made.rubric_warehouse import keep


def test_items_whose_file_is_damaged_come_back_by_the_named_command_after_an_import(state: Path) -> None:
    """The command that the warning names drew nothing, as all items had labels."""
    keep(made_tables(2, 2, 6), state / "warehouse")
    sample = ("export", "labels", "--prompts", 4)
    ok(*sample, state / "sheet.csv")
    with (state / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    with (state / "sheet.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "class": "UNMET", "author": "Ada"} for row in rows)
    ok("import", "labels", state / "sheet.csv")
    house = Warehouse(state / "warehouse")
    before = house.read("rubric_label_items").sort_by("item")
    (file_of_items,) = (state / "warehouse" / "rubric_label_items").rglob("*.parquet")
    file_of_items.write_bytes(b"rubbish" * 99)
    assert "makes it again: dtef export labels SHEET" in dtef("rubric", "board", "--by", "labels").stderr
    dtef(*sample, state / "again.csv")
    assert Warehouse(state / "warehouse").read("rubric_label_items").sort_by("item").equals(before)


def test_without_scores_a_sheet_is_refused_with_the_command_that_makes_them(state: Path) -> None:
    (state / "warehouse").mkdir()
    assert "no rubric_scores" in (text := refused("export", "labels", state / "sheet.csv"))
    assert "dtef rubric run" in text
