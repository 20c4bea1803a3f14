"""Broken files of tables: who reads leaves them out and says how they are made again, and the command that is named makes them again."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.dtef_pipeline.cli.commands import distribution, dtef, ok, query, run_stages, serve_as, use
from tests.dtef_pipeline.cli.conftest import Base
from tests.fake_llm_server import FakeLLM
from tests.strict_json import strict

AT = "round=S1/segment=country%3Abrazil"
NIGHT = f"{AT}/snapshot=2026-01-01"


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:300])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def rubbish(file: Path) -> None:
    file.write_bytes(b"rubbish" * 100)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "something").touch()


def older(file: Path) -> None:
    """As an earlier version of the software wrote it, without a column."""
    pq.write_table(pq.ParquetFile(file).read().drop_columns(["attribute" if "results" in str(file) else "reading"]), file)


BROKEN: dict[str, Callable[[Path], None]] = {
    f"predictions/{NIGHT}": truncate,
    f"scores/{NIGHT}": empty,
    f"segment_results/{AT}/snapshot=2026-01-03": folder,
    f"drift_checks/{AT}": rubbish,
    f"blueprints/{AT}": folder,
    f"survey_responses/{AT}": truncate,
    f"reference_scores/{AT}": rubbish,
}
LEFT_OUT = re.compile(
    r"warning: left out, since it cannot be read: (\S+): [^;]+; this makes it again(?:, with the stored responses of all models)?: (dtef .*)"
)


@pytest.fixture
def damaged(scored: Path, state: Path) -> Path:
    """The warehouse of two nights, a copy of one's own."""
    shutil.copytree(scored, state, dirs_exist_ok=True)
    return state / "warehouse"


def named(stderr: str) -> dict[str, list[str]]:
    """The arguments of the command that makes a file again, by its path."""
    return {path: shlex.split(command)[1:] for path, command in LEFT_OUT.findall(stderr)}


def contents(warehouse: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for table in BROKEN for file in [warehouse / table / "part-0.parquet"]}


def test_the_named_command_makes_each_file_again_as_it_was_and_asks_nothing(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A truncated file of predictions stopped every command, and the one that was named failed by it too."""
    before = contents(damaged)
    for place, break_it in BROKEN.items():
        break_it(damaged / place / "part-0.parquet")
    commands: dict[str, list[str]] = {}
    for table in BROKEN:
        result = dtef("sql", f"SELECT count(*) FROM {table.partition('/')[0]}")
        assert result.exit_code == 1
        commands |= named(result.stderr)
    assert commands.keys() == before.keys()
    with FakeLLM() as server:
        serve_as(server, damaged.parent, monkeypatch)
        distinct = {tuple(command) for command in commands.values()}
        # A later stage that reads what another command is yet to mend fails until then.
        runs = [dtef(*command, "--no-roll-ups") for command in sorted(distinct, key=lambda one: "ingest" not in one)]
        assert runs[-1].exit_code == 0, runs[-1].output
        assert server.calls == []
    said = "".join(result.stderr for result in runs)
    assert {path for path in before if f"could not be read, and was made again: {path}\n" in said} == before.keys()
    assert [path for path, content in contents(damaged).items() if content != before[path]] == []


READERS = {
    "leaderboard": ["--format", "json"],
    "costs": [],
    "drift": [],
    "drift --by segment": [],
    "export-blueprints --round S1 --out OUT": [],
    "report --out OUT/r.html": [],
    "estimate --round S1": [],
    "sql": ["SELECT count(*) FROM scores"],
}


def test_every_reader_goes_on_without_a_broken_file_names_it_and_ends_with_1(damaged: Path, tmp_path: Path) -> None:
    tables = ["predictions", "scores", "blueprints", "survey_responses"]
    broken = {table: next((damaged / table / "round=S1").rglob("*brazil*/**/part-0.parquet")) for table in tables}
    for file in broken.values():
        truncate(file)
    (tmp_path / "out").mkdir()
    said = {}
    for words, more in READERS.items():
        result = dtef(*words.replace("OUT", str(tmp_path / "out")).split(), *more)
        assert result.exit_code == 1, (words, result.output)
        commands = list(map(tuple, named(result.stderr).values()))
        assert len(commands) == len(set(commands)) > 0, words
        assert set(named(result.stderr)) <= set(map(str, broken.values())), words
        said[words] = result
    (fake,) = (row for row in strict(said["leaderboard"].stdout) if row["model"] == "fake" and row["context_level"] == "2")
    assert fake["n_pairs"] == 3  # of the other country: a score without what it was measured against is left out too
    assert "1 file in" in said["export-blueprints --round S1 --out OUT"].stdout
    page = (tmp_path / "out" / "r.html").read_text(encoding="utf-8")
    assert str(broken["scores"]) in page
    assert "These numbers are incomplete" in page


def test_roll_ups_go_on_and_the_command_names_what_they_are_made_without(damaged: Path) -> None:
    file = damaged / "scores" / NIGHT / "part-0.parquet"
    empty(file)
    empty(damaged / "segment_gaps" / "part-0.parquet")
    empty(damaged / "survey_responses" / AT / "part-0.parquet")
    result = dtef("rollup")
    assert result.exit_code == 1
    assert "error:" not in result.stderr
    assert "(left out with it: scores)" in result.stderr
    assert f"warning: roll-ups: left out, since it cannot be read: {file}" in result.stderr
    assert f"was made again: {damaged}/segment_gaps/part-0.parquet" in result.stderr
    assert "roll-ups of S1" in result.stdout
    assert query("SELECT count(*) > 0 AS there FROM leaderboard") == [{"there": True}]


def test_roll_ups_that_mended_a_table_have_not_failed(damaged: Path) -> None:
    """The table was left out by the roll-up before the one that made it again: named as left out, and exit code 1."""
    for table in ("segment_gaps", "costs", "leaderboard"):
        rubbish(damaged / table / "part-0.parquet")
    result = dtef("rollup")
    assert result.exit_code == 0, result.output
    assert "left out" not in result.output
    assert result.stderr.count("could not be read, and was made again: ") == 3
    assert "incomplete" not in (damaged / "report.html").read_text(encoding="utf-8")
    with duckdb.connect(str(damaged / "dtef.duckdb"), read_only=True) as connection:
        names = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    assert "segment_gaps" in names
    assert "left_out" not in names


def test_a_run_with_other_options_keeps_what_earlier_ones_put_into_a_broken_file(
    base: Base, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of models and conditions that the run does not name would be gone from the tables, though they were paid for."""
    use(state, monkeypatch)
    shutil.copytree(base.folder, state, dirs_exist_ok=True)
    here = ["--round", "S1", "--segment", "country:brazil", "--questions", "2"]
    with FakeLLM(reply=lambda call: distribution(call, 40)) as server:
        serve_as(server, state, monkeypatch)
        run_stages(*here, "--model", "fake", "--draws", "2", "--condition", "shift")
        run_stages(*here)
        asked = server.answered
        counted = "SELECT model, condition, draw, count(*) AS n FROM scores GROUP BY ALL ORDER BY ALL"
        before = query(counted)
        for table in ("predictions", "blueprints"):
            truncate(next((state / "warehouse" / table).rglob("*.parquet")))
        run_stages(*here, "--model", "baseline/uniform")
        assert query(counted) == before
        assert server.answered == asked > 0


@pytest.mark.parametrize("unreadable", [("scores",), ("scores", "segment_results")], ids=["by results", "by the store"])
def test_predictions_lost_with_their_scores_are_made_of_the_results_or_of_the_response_store(
    base: Base, state: Path, monkeypatch: pytest.MonkeyPatch, unreadable: tuple[str, ...]
) -> None:
    """The command that was named put two baselines in the place of all models, said `made again`, and ended with 0."""
    use(state, monkeypatch)
    shutil.copytree(base.folder, state, dirs_exist_ok=True)
    counted = "SELECT model, condition, draw, count(*) AS n, sum(score) AS score FROM scores GROUP BY ALL ORDER BY ALL"
    with FakeLLM(reply=lambda call: distribution(call, 40)) as server:
        serve_as(server, state, monkeypatch)
        here = ["--round", "S1", "--segment", "country:brazil", "--questions", "2"]
        run_stages(*here, "--model", "fake", "--model", "baseline/leave-one-out-marginal", "--draws", "2")
        asked, before = server.answered, query(counted)
        for table in ("predictions", *unreadable):
            rubbish(next((state / "warehouse" / table).rglob("*.parquet")))
        (command,) = {tuple(command) for command in named(dtef("sql", "SELECT 1 FROM predictions").stderr).values()}
        result = dtef(*command, "--no-roll-ups")
        assert server.answered == asked > 0
    after = query(counted)
    if len(unreadable) == 1:
        assert command[-4:-2] == ("--questions", "2")
        assert (result.exit_code, after) == (0, before)
    else:
        assert result.exit_code == 1
        assert "some of it may not be there again: S1/country:brazil, snapshot base: " in result.stderr
        assert "(4 rows of fake)" in result.stderr
        (baselines,) = re.findall(r"`dtef (run .*)`", result.stderr)
        assert "--segment country:brazil --questions 2 --draws 2 --model baselines" in baselines
        assert [row for row in after if row["model"] == "fake"] == [row for row in before if row["model"] == "fake"]


def test_a_model_whose_responses_are_in_no_store_keeps_its_rows_until_it_is_asked_again_or_let_go(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scores, which could be read, were written anew without it."""
    file = damaged / "predictions" / NIGHT / "part-0.parquet"
    truncate(file)
    monkeypatch.setenv("DTEF_RESPONSES", str(damaged.parent / "another.sqlite"))
    here = ["--round", "S1", "--segment", "country:brazil", "--snapshot", "2026-01-01", "--context", "2", "--questions", "3"]
    before = contents(damaged)
    result = dtef("run", *here, "--model", "baseline/uniform", "--no-roll-ups")
    assert (result.exit_code, contents(damaged)) == (1, before), result.output
    assert "6 rows of fake (no response in the response store)" in result.stderr
    assert "was made again" not in result.stderr
    again, without = (shlex.split(command)[1:] for command in re.findall(r"`(dtef run .*?)`", result.stderr))
    brazil = "snapshot = '2026-01-01' AND segment = 'country:brazil'"
    rows = f"SELECT model, count(*) AS n FROM scores WHERE {brazil} GROUP BY ALL ORDER BY ALL"
    there = query(rows)
    with FakeLLM() as server:
        serve_as(server, damaged.parent, monkeypatch)
        run_stages(*again[1:])
        assert server.answered == 6
    assert query(rows) == there
    truncate(file)
    monkeypatch.setenv("DTEF_RESPONSES", str(damaged.parent / "third.sqlite"))
    run_stages(*without[1:])
    assert query(rows) == [row for row in there if row["model"] != "fake"]


def test_a_table_of_which_nothing_can_be_read_is_empty_and_no_traceback(damaged: Path) -> None:
    for file in (damaged / "scores").rglob("*.parquet"):
        rubbish(file)
    result = dtef("leaderboard")
    assert result.exit_code == 2
    assert len(named(result.stderr)) == 4
    where = "--segment country:brazil --segment country:germany"
    nights = [f"dtef run --round S1 {where} --snapshot {night}" for night in ("2026-01-01", "2026-01-03")]
    makes_again = "this makes all that was left out again, with the stored responses of all models: "
    assert f"error: no score can be read, so there is nothing to show; {makes_again}" in result.stderr
    said = result.stderr.splitlines()[-1]
    assert [command in said for command in nights] == [True, True]
    assert "error: no score of a language model can be read" in dtef("drift").stderr
    assert ok("sql", "SELECT count(*) AS n FROM predictions", "--format", "csv").startswith("n\n")
