"""`dtef rubric board --by`: champions, agreement, judges, self-preference, models side by side, labels that a lost file held."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest

from assets.rubric.roll_ups import rubric_champions
from assets.stage.resources import Store
from dtef_pipeline.rubric.board import BOARD_READS, rubric_board
from dtef_pipeline.rubric.rubric_roll_ups import JUDGED_READ, build_agreement_tables, build_validity_tables
from dtef_pipeline.rubric.site.family_site import build_unlike_section
from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from dtef_pipeline.rubric.tables import RUBRIC_CHAMPIONS, RUBRIC_GRADES, RUBRIC_TABLES
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import dtef, name_panel, ok, refused
from tests.made.rubric_pages import JUDGES, made_tables
from tests.made.rubric_warehouse import keep, nothing_stored
from tests.strict_json import strict


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six blueprints of four models, with the tables that roll-ups make of their judgements; nobody was graded."""
    kept = keep(made_tables(6, 4, 3), tmp_path_factory.mktemp("made") / "warehouse")
    for build in (build_agreement_tables, partial(build_validity_tables, usage=nothing_stored)):
        for name, rows in kept.query(build, only=JUDGED_READ).items():
            kept.write(name, rows)
    kept.write("rubric_champions", RUBRIC_CHAMPIONS.empty_table())
    return Path(kept.root)


def grade(house: Warehouse, model: str, *grades: float) -> None:
    """One grade of clarity in each of the blueprints, the first in the oldest run."""
    for at, value in enumerate(grades):
        row = {"blueprint": f"health__topic-{at}", "snapshot": "base", "analyst": "x", "model": model, "dimension": "clarity"}
        before = house.read_or_empty("rubric_grades", blueprint=row["blueprint"], snapshot="base").to_pylist()
        rows = pa.Table.from_pylist([*before, {**row, "grade": value}], schema=RUBRIC_GRADES)
        house.write("rubric_grades", rows, blueprint=row["blueprint"], snapshot="base")


def test_agreement_has_alpha_with_its_interval_for_every_cut_and_says_which_criteria_judges_differ_on(house: Warehouse) -> None:
    shown = ok("rubric", "board", "--by", "agreement")
    stored = house.read("rubric_agreement").to_pylist()
    assert {row["cut"] for row in stored} == {"overall", "blueprint", "judges", "criterion", "language"}
    assert all(row["value"] in shown for row in stored)
    assert "unreliable" in shown
    n = len(house.read("rubric_disagreed"))
    assert f"{n} criteria whose judges differ by more than 0.3" in shown
    assert shown.endswith("Columns: dtef explain rubric/agreement\n")
    assert strict(ok("rubric", "board", "--by", "agreement", "--json")) == stored


def test_agreement_of_chosen_blueprints_is_that_of_the_cut_by_blueprint(house: Warehouse) -> None:
    rows = strict(ok("rubric", "board", "--by", "agreement", "--blueprint", "*-1", "--json"))
    assert [(row["cut"], row["value"]) for row in rows] == [("blueprint", "health__topic-1")]


def test_self_preference_says_why_nothing_can_be_reported_of_judges_of_one_maker(house: Warehouse) -> None:
    shown = ok("rubric", "board", "--by", "self-preference")
    assert "all, all: cannot be separated" in shown
    assert "and 3 more: no judge of another maker judged the same responses" in shown
    rows = strict(ok("rubric", "board", "--by", "self-preference", "--json"))
    assert (rows[0]["judge"], rows[0]["gamma"]) == ("all", None)


def test_models_are_compared_pair_by_pair_and_within_one_blueprint_by_its_prompts(house: Warehouse) -> None:
    rows = strict(ok("rubric", "board", "--by", "comparisons", "--json"))
    assert len(rows) == 6
    assert {row["n_clusters"] for row in rows} == {6}
    assert all(row["difference"] == pytest.approx(row["score"] - row["other_score"], abs=1e-9) for row in rows)
    assert "95 % interval of difference" in ok("explain", "rubric/comparisons")
    for model in {row["model"] for row in rows} | {row["other_model"] for row in rows}:
        chosen = strict(ok("rubric", "board", "--by", "comparisons", "--model", model, "--json"))
        assert chosen == [row for row in rows if model in (row["model"], row["other_model"])]
    one = strict(ok("rubric", "board", "--by", "comparisons", "--blueprint", "health__topic-2", "--json"))
    assert max(row["n_items"] for row in one) == 3
    assert {row["n_items"] for row in one} == {2, 3}
    assert {row["note"] for row in one} == {f"no interval and no test: {n} prompts, at least 5 are needed" for n in (2, 3)}


def test_the_panel_can_make_the_steadier_model_champion(
    house: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(house, "openai/bright", 10, 10, 10, 4, 4)
    grade(house, "openai/steady", 6, 6, 6, 6, 6)
    champions = []
    for wanted in (False, True):
        name_panel(tmp_path, monkeypatch, rubric={"consistent_champions": wanted})
        assert dg.materialize([rubric_champions], resources={"store": Store()}).success
        rows = strict(ok("rubric", "board", "--by", "champions", "--json"))
        champions += [row["model"] for row in rows if row["champion"]]
    assert champions == ["openai/bright", "openai/steady"]


def test_boards_over_blueprints_and_the_page_say_what_was_judged_on_another_scale(state: Path) -> None:
    """Numbers of two scales were averaged without a word."""
    made = made_tables(4, 3, 3)
    made.rows["rubric_runs"][0] |= {"judges": [f"{judge}[scale:10]" for judge in JUDGES], "judge_hash": "k" * 32}
    kept = keep(made, state / "warehouse")
    kept.write("rubric_board", kept.query(rubric_board, only=BOARD_READS))
    told = "cannot be compared: 5 classes (3 blueprints); 10 classes (1 blueprint)"
    for by in ("overall", "tag", "comparisons"):
        assert told in " ".join(ok("rubric", "board", "--by", by).split())
    assert told in kept.query(lambda connection: build_unlike_section(RubricRows(connection)).answer, only=RUBRIC_TABLES)
    assert "classes" not in ok("rubric", "board", "--by", "comparisons", "--blueprint", "health__topic-[123]")
    paths = {row["path"] for row in strict(ok("rubric", "board", "--by", "criterion", "--json"))}
    assert {type(path) for path in paths} == {int, type(None)}, "it was printed as 0.0000"


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
