"""The verbs of every family: what `check`, `list` and `remove` do alike, and that other programs can read what they write."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.cli.stage_runs import open_dagster_instance
from tests.assets.conftest import write_survey
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import SAMPLE, dtef, ok, query, refused, run_stages
from tests.dtef_pipeline.cli.conftest import Base
from tests.strict_json import strict

SURVEY_TABLES = ("survey_responses", "survey_quarantine", "predictions", "scores")


def partitions(space: str) -> list[str]:
    with open_dagster_instance() as instance:
        return list(instance.get_dynamic_partitions(space))


def test_check_of_a_round_says_what_add_says_and_stores_nothing(base: Base, state: Path) -> None:
    refused("list")
    checked = ok("check", SAMPLE)
    assert "S1: 26 segments, 16 questions, 415 pairs" in checked
    assert not (state / "warehouse").exists()
    (found,) = strict(ok("check", SAMPLE, "--json"))
    assert (found["round"], found["pairs"]) == ("S1", 415)
    assert (found["quarantined_pairs"], found["quarantined_segments"], len(found["quarantined"])) == (1, 5, 6)
    added = base.printed.splitlines()
    assert [line for line in checked.splitlines()[1:] if line not in added] == []


def test_a_round_that_is_removed_is_gone_and_can_be_added_again(state: Path) -> None:
    survey = write_survey(state / "round.csv", ["A1"], questions=2)
    (added,) = strict(ok("add", survey, "--json"))
    run_stages("--round", "A1")
    (listed,) = strict(ok("list", "--json"))
    assert (listed["round"], listed["segments"], listed["snapshots"]) == ("A1", len(added["added"]), ["base"])
    assert "ROUND 'S2' matches none; known: A1" in refused("remove", "S2")
    before = query("SELECT count(*) AS n FROM survey_responses")
    removed = ok("remove", "A*")
    assert "removed A1: " in removed
    assert "of base" in removed
    assert "no scores are left: boards and pages were removed too" in removed
    assert partitions("round_segment") == []
    assert not any((state / "warehouse" / table / "round=A1").exists() for table in SURVEY_TABLES)
    assert "no rounds in" in refused("list")
    assert "no round in" in refused("remove", "A1")
    ok("add", survey)
    assert query("SELECT count(*) AS n FROM survey_responses") == before


def test_lists_of_every_family_can_be_read_by_other_programs(state: Path) -> None:
    ok("rubric", "add", ROOT / "data" / "blueprints")
    listed = strict(ok("rubric", "list", "--json"))
    assert [(row["blueprint"], row["prompts"]) for row in listed] == [("demo-facts", 5), ("demo-letters", 5)]
    assert ok("rubric", "list", "--csv").startswith("blueprint,prompts,")
    games = strict(ok("games", "list", "--json"))
    assert {"poker/kuhn"} <= {row["scenario"] for row in games["scenarios"]}
    assert "--csv works with one table only; --json writes both, scenarios and personas" in refused("games", "list", "--csv")
    assert all(not row["faults"] for row in strict(ok("games", "check", ROOT, "--json")))


def test_the_results_of_a_scenario_can_be_removed(state: Path) -> None:
    refused("games", "remove", "poker/kuhn")
    chosen = ("games", "run", "--scenario", "kuhn", "--player", "baselines", "--seeds", "1-2", "--no-roll-ups")
    assert "--csv works with --estimate only" in refused(*chosen, "--csv")
    assert any("snapshot base" in line for line in strict(ok(*chosen, "--json"))["lines"])
    assert partitions("league_scenario") == ["poker/kuhn"]
    gone = strict(ok("games", "remove", "poker/*", "--json"))
    assert gone["removed"] == ["poker/kuhn"]
    assert gone["lines"][0].startswith("removed poker/kuhn: ")
    assert partitions("league_scenario") == []
    assert "no scores are left" in gone["lines"][-1]


@pytest.mark.parametrize("words", [("board",), ("rubric", "board"), ("qa", "board"), ("games", "board")])
def test_a_board_that_cannot_be_refreshed_says_what_scores(state: Path, words: tuple[str, ...]) -> None:
    (state / "warehouse").mkdir()
    result = dtef(*words, "--refresh")
    assert result.exit_code == 2
    assert "they are made by `dtef " in result.stderr
