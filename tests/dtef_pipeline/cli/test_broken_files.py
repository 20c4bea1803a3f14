"""Broken files of tables: who reads skips them with a warning, and the command that it names makes them again."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from assets.engine.roll_up_names import FAMILY_ROLL_UPS
from tests.dtef_pipeline.cli.commands import dtef, ok, query, run_stages
from tests.fake_llm_server import FakeLLM
from tests.strict_json import strict

AT = "round=S1/segment=country%3Abrazil"
NIGHT = f"{AT}/snapshot=2026-01-01"


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:300])


def rubbish(file: Path) -> None:
    file.write_bytes(b"rubbish" * 100)


SKIPPED = re.compile(r"warning: skipped: cannot read (\S+): [^;]+; this makes it again: (dtef .*)")


@pytest.fixture
def damaged(scored: Path, state: Path) -> Path:
    """The warehouse of two nights, a copy of one's own."""
    shutil.copytree(scored, state, dirs_exist_ok=True)
    return state / "warehouse"


def named(stderr: str) -> dict[str, list[str]]:
    """The arguments of the command that makes a file again, by its path."""
    return {path: shlex.split(command)[1:] for path, command in SKIPPED.findall(stderr)}


def test_of_a_sample_no_other_question_is_made_again(ingested: Path) -> None:
    """Baselines answered all questions of the round, and boards were of other ones."""
    run_stages("--round", "S1", "--segment", "country:kenya", "--questions", "2")
    (file,) = (ingested / "warehouse" / "predictions").rglob("*.parquet")
    before = file.read_bytes()
    truncate(file)
    (command,) = named(dtef("sql", "SELECT * FROM predictions").stderr).values()
    assert command[0] == "run"
    run_stages(*command[1:])
    assert file.read_bytes() == before


READERS = {
    "board": ["--json"],
    "export prompts OUT --round S1": [],
    "sql": ["SELECT count(*) FROM scores"],
}


@pytest.mark.parametrize("words", READERS)
def test_a_reader_goes_on_without_a_broken_file_names_it_and_ends_with_1(damaged: Path, tmp_path: Path, words: str) -> None:
    tables = ["predictions", "scores", "blueprints", "survey_responses"]
    broken = {table: next((damaged / table / "round=S1").rglob("*brazil*/**/part-0.parquet")) for table in tables}
    for file in broken.values():
        truncate(file)
    (tmp_path / "out").mkdir()
    result = dtef(*words.replace("OUT", str(tmp_path / "out")).split(), *READERS[words])
    assert result.exit_code == 1, result.output
    assert named(result.stderr)
    assert set(named(result.stderr)) <= set(map(str, broken.values()))
    if words == "board":
        (fake,) = (row for row in strict(result.stdout) if row["model"] == "fake" and row["context_level"] == "2")
        assert fake["n_pairs"] == 6
    if words.startswith("export"):
        assert "1 file in" in result.stdout


def test_roll_ups_go_on_without_a_broken_file_and_mend_their_own(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILY_ROLL_UPS, "survey", ["leaderboard", "segment_gaps", "survey_costs"])
    file = damaged / "scores" / NIGHT / "part-0.parquet"
    file.write_bytes(b"")
    for table in ("segment_gaps", "costs/family=survey", "leaderboard"):
        rubbish(damaged / table / "part-0.parquet")
    result = dtef("board", "--refresh")
    assert (result.exit_code, list(named(result.stderr))) == (1, [str(file)])
    assert "roll-ups of S1" in result.stderr
    assert query("SELECT count(*) > 0 AS there FROM segment_gaps") == [{"there": True}]


def test_any_run_keeps_what_others_put_into_a_broken_file(server: FakeLLM, ingested: Path) -> None:
    """The rows of models and conditions that the run does not name would be gone from the tables, though they were paid for."""
    here = ["--round", "S1", "--segment", "country:brazil"]
    counted = "SELECT model, condition, draw, count(*) AS n, sum(score) AS score FROM scores GROUP BY ALL ORDER BY ALL"
    run_stages(*here, "--model", "fake", "--draws", "2", "--condition", "shift", "--questions", "2")
    asked, before = server.answered, query(counted)
    for table in ("predictions", "scores", "segment_results"):
        truncate(next((ingested / "warehouse" / table).rglob("*.parquet")))
    run_stages(*here, "--model", "baseline/uniform", "--questions", "2")
    models = [row for row in query(counted) if row["model"] == "fake"]
    assert models == [row for row in before if row["model"] == "fake"]
    assert server.answered == asked > 0


@pytest.mark.parametrize(
    ("board", "table"),
    [
        ("games board", "persona_results"),
        ("qa board", "qa_board"),
        ("rubric board", "rubric_board"),
        ("costs --family qa", "costs/family=qa"),
        ("preference board", "preference_scores"),
    ],
)
def test_a_board_whose_only_file_is_damaged_says_nothing_but_that(board: str, table: str, state: Path) -> None:
    """It went on to say that nothing was played or scored, with exit code 2."""
    (state / "warehouse" / table).mkdir(parents=True)
    rubbish(state / "warehouse" / table / "part-0.parquet")
    result = dtef(*board.split())
    assert result.exit_code == 1, result.output
    assert list(named(result.stderr)) == [str(state / "warehouse" / table / "part-0.parquet")]
    assert "error" not in result.stderr


def test_a_table_of_which_nothing_can_be_read_is_empty_and_no_traceback(damaged: Path) -> None:
    for file in (damaged / "scores").rglob("*.parquet"):
        rubbish(file)
    for command in ("board", "drift"):
        result = dtef(command)
        assert result.exit_code == 1
        assert len(named(result.stderr)) == 4
        assert "Traceback" not in result.output
    assert ok("sql", "SELECT count(*) AS n FROM predictions", "--csv").startswith("n\n")
