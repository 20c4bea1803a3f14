"""`--family`: the reading commands show rubrics by the code of `dtef rubric`, and without it they say what they always said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.request import ROLES
from dtef_pipeline.drift.rule import build_rule_table
from dtef_pipeline.families import FAMILIES, TABLES
from dtef_pipeline.rubric.rubric_drift import WATCHED
from dtef_pipeline.rubric.rubric_roll_ups import JUDGED_READ, build_validity_tables
from dtef_pipeline.tables import COSTS
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.made.rubric_pages import made_tables
from tests.made.rubric_warehouse import keep, nothing_stored
from tests.strict_json import strict

SPENT = [
    ("candidate", "a", 10, 12, 0.5, 0),
    ("candidate", "b", 5, 5, None, 5),
    ("judge", "j", 40, 41, 2.0, 0),
    ("judge", "k", 40, 40, 1.0, 1),
    ("embedder", "local", 3, 3, None, 0),
]


def write_costs(house: Warehouse, rows: list[dict[str, Any]], family: str = "rubric") -> None:
    usual = {"family": family, "failed": 0, "budget_stopped": 0, "unpriced": 0, "unknown_cost_attempts": 0}
    house.write("costs", pa.Table.from_pylist([usual | row for row in rows], schema=COSTS), family=family)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two blueprints in two snapshots, with the tables that roll-ups make of them, and costs that a hand can add up."""
    kept = keep(made_tables(2, 3, 6, snapshots=("2026-01-01", "2026-01-03")), tmp_path_factory.mktemp("made") / "warehouse")
    ruled = kept.query(lambda connection: build_rule_table(connection, WATCHED), only=WATCHED.reads)
    kept.write("drift_rule", ruled, family="rubric")
    validity = kept.query(lambda made: build_validity_tables(made, nothing_stored), only=JUDGED_READ)
    kept.write("rubric_judges", validity["rubric_judges"])
    names = ("role", "model", "answered", "calls", "cost_usd", "unpriced")
    rows = [dict(zip(names, row, strict=True)) | {"prompt_tokens": 1, "completion_tokens": 1} for row in SPENT]
    write_costs(kept, rows)
    return Path(kept.root)


def test_costs_of_rubrics_add_up_by_role_and_what_is_unknown_stays_unknown(house: Warehouse) -> None:
    rows = strict(ok("costs", "--family", "rubric", "--by", "role", "--json"))
    assert [(row["role"], row["answered"], row["calls"], row["cost_usd"]) for row in rows] == [
        ("candidate", 15, 17, pytest.approx(0.5)),
        ("judge", 80, 81, pytest.approx(3.0)),
        ("embedder", 3, 3, None),
    ]
    shown = ok("costs", "--family", "rubric")
    line = {name: next(line for line in shown.splitlines() if f" {name} " in line) for name in ("a", "b", "k", "local")}
    assert line["a"].endswith("$0.5000")
    assert line["b"].endswith("cost unknown")
    assert line["k"].endswith("$1.0000 and 1 of unknown cost")
    assert line["local"].endswith("no cost")
    assert len(strict(ok("costs", "--family", "rubric", "--json"))) == len(SPENT)


def test_costs_of_all_families_stand_side_by_side(house: Warehouse) -> None:
    of_games = {"role": "candidate", "purpose": "bold", "snapshot": "base", "answered": 7, "calls": 7, "cost_usd": 0.25}
    write_costs(house, [of_games | {"first_level": "poker", "second_level": "kuhn", "model": "m"}], "games")
    rows = strict(ok("costs", "--json"))
    assert [(row["family"], row["role"], row["answered"], row["cost_usd"]) for row in rows] == [
        ("rubric", "candidate", 15, pytest.approx(0.5)),
        ("rubric", "judge", 80, pytest.approx(3.0)),
        ("rubric", "embedder", 3, None),
        ("games", "candidate", 7, 0.25),
    ]
    assert "$0.2500" in ok("costs")
    (row,) = strict(ok("costs", "--family", "games", "--by", "scenario", "--by", "persona", "--json"))
    assert (row["scenario"], row["persona"], row["calls"]) == ("kuhn", "bold", 7)
    assert "no costs of qa in" in refused("costs", "--family", "qa")


def test_a_model_at_several_temperatures_costs_one_row_and_its_variants_are_shown_when_asked_for(house: Warehouse) -> None:
    """A model at several temperatures stood in as many rows that nothing told apart."""
    names = ("role", "model", "model_variant", "answered", "calls", "cost_usd", "unpriced")
    rows = [
        ("candidate", "b", "openai/b", 1, 1, 0.5, 0),
        ("candidate", "a", "openai/a[temperature=0]", 2, 2, 0.4, 0),
        ("candidate", "a", "openai/a[temperature=1]", 3, 4, 0.3, 1),
        ("judge", "a", "openai/a[temperature=0]", 5, 5, 0.9, 0),
    ]
    kept = [dict(zip(names, row, strict=True)) | {"prompt_tokens": 1, "completion_tokens": 1} for row in rows]
    write_costs(house, kept)
    told = strict(ok("costs", "--family", "rubric", "--json"))
    assert [(row["role"], row["model"], row["calls"], row["cost_usd"], row["unpriced"]) for row in told] == [
        ("candidate", "a", 6, pytest.approx(0.7), 1),
        ("candidate", "b", 1, pytest.approx(0.5), 0),
        ("judge", "a", 5, pytest.approx(0.9), 0),
    ]
    told = strict(ok("costs", "--family", "rubric", "--by", "variant", "--json"))
    assert [(row["model_variant"], row["calls"]) for row in told] == [
        ("openai/a[temperature=0]", 7),
        ("openai/b", 1),
        ("openai/a[temperature=1]", 4),
    ]
    assert "openai/a[temperature=1]" in ok("costs", "--family", "rubric", "--by", "role", "--by", "variant")
    assert "openai/a" not in ok("costs", "--family", "rubric")


def test_drift_of_rubrics_has_the_verdict_of_each_model_and_the_rule_of_each_blueprint(house: Warehouse) -> None:
    shown = ok("drift", "--family", "rubric")
    assert "too early: 2 of 6 snapshots" in shown
    assert "judged by standard(" in shown
    rows = strict(ok("drift", "--family", "rubric", "--by", "blueprint", "--json"))
    assert len(rows) == len(house.read("drift_rule", family="rubric")) > 0
    gaps = [row["gap"] for row in rows]
    assert gaps == sorted(gaps, reverse=True)
    last_run = {"blueprint": "health__topic-0", "snapshot": "2026-01-03"}
    house.write("rubric_scores", house.read("rubric_scores", **last_run), **last_run)
    said = " ".join(dtef("drift", "--family", "rubric", "--by", "blueprint").stderr.split())
    assert "scores of 1 snapshot are newer than this table; update it with `dtef rubric board --refresh`" in said
    for option in (("--fail-on", "drift"), ("--since", "2026-01-02")):
        said = refused("drift", "--family", "rubric", "--by", "blueprint", *option)
        assert f"{option[0]} works with --by model only" in said


def test_options_of_another_family_are_refused_with_those_that_are_allowed(house: Warehouse) -> None:
    allowed = "does not work with --family rubric; choose from family, role, model, snapshot, variant, blueprint"
    assert f"--by segment {allowed}" in refused("costs", "--family", "rubric", "--by", "segment")
    assert "--by round does not work with all families; choose from family, role" in refused("costs", "--by", "round")


def test_without_a_table_the_command_says_what_makes_it(state: Path) -> None:
    keep(made_tables(1, 2, 1), state / "warehouse")
    of_family = (("costs", "--family", "rubric"), ("drift", "--family", "rubric", "--by", "blueprint"), ("rubric", "board"))
    for words in of_family:
        assert "`dtef rubric run` or `dtef rubric board --refresh` makes" in refused(*words)


def test_every_family_says_which_of_its_tables_have_the_keys_of_its_responses() -> None:
    for family in FAMILIES:
        assert family.calls.tables
        for calls in family.calls.tables:
            schema = TABLES[calls.table].schema
            assert schema is not None
            assert calls.keys in schema.names
    assert not {role for family in FAMILIES for role in family.roles} - {*ROLES[1:]}
