"""The commands as a user calls them, on the shipped sample and a language-model server on loopback."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from dtef_pipeline.cli import main
from resources.response_store import ResponseStore
from tests.conftest import ROOT
from tests.fake_llm_server import Call, FakeLLM, Fault

SAMPLE = ROOT / "data" / "rounds" / "S1"
SEGMENTS = ("country:brazil", "country:germany")  # neighbours: one range, one run
CHOSEN = [part for segment in SEGMENTS for part in ("--segment", segment)]
REFERENCES = {"baseline/uniform", "baseline/population-marginal"}


def dtef(*arguments: object, stdin: str | None = None) -> Result:
    """One command in this process. An exception that is no exit is the test's failure."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def ok(*arguments: object, stdin: str | None = None) -> str:
    result = dtef(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    """The message of a command that a user can mend: exit code 2, no traceback."""
    result = dtef(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def query(sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = strict(ok("sql", sql, "--format", "json"))
    return rows


def distribution(call: Call, first: float) -> str:
    """An answer of the length that was asked for, with this share of the first option."""
    found = re.search(r"array of (\d+) numbers", call.user)
    assert found
    options = int(found[1])
    return json.dumps([first, *[(100 - first) / (options - 1)] * (options - 1)])


def serve_as(server: FakeLLM, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
    """The server as the model `fake`, by a file named in DTEF_MODELS."""
    spec = {"model": "openai/fake", "api_base": server.base_url, "retries": 1, "max_concurrency": 4, **settings}
    path = folder / "models.yaml"
    path.write_text(yaml.safe_dump({"collections": {"mine": ["fake"]}, "models": {"fake": spec}}), encoding="utf-8")
    monkeypatch.setenv("DTEF_MODELS", str(path))


def use(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("DTEF_WAREHOUSE", str(folder / "warehouse"))
    patch.setenv("DTEF_RESPONSES", str(folder / "responses.sqlite"))
    patch.setenv("DAGSTER_HOME", str(folder / "dagster"))
    patch.delenv("DTEF_MODELS", raising=False)


@dataclass(frozen=True)
class Base:
    """State after `dtef ingest` of the sample round, and what it printed; to be copied, not changed."""

    folder: Path
    printed: str


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    folder = tmp_path_factory.mktemp("ingested")
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        return Base(folder, ok("ingest", SAMPLE))


@pytest.fixture
def ingested(base: Base, state: Path) -> Path:
    shutil.copytree(base.folder, state, dirs_exist_ok=True)
    return state


@pytest.fixture(scope="module")
def scored(base: Base, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two dated snapshots of one language model that answered differently; for tests that only read."""
    folder = tmp_path_factory.mktemp("scored")
    shutil.copytree(base.folder, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        for night, first in (("2026-01-01", 30.0), ("2026-01-03", 97.0)):
            with FakeLLM(reply=lambda call, first=first: distribution(call, first)) as server:  # type: ignore[misc]
                serve_as(server, folder, patch)
                what = ["--model", "mine", "--context", "0", "--context", "2", "--questions", "3", "--snapshot", night]
                printed = ok("run", "--round", "S1", *CHOSEN, *what)
                assert server.answered == 2 * 2 * 3
            assert "2 partitions in 1 run" in printed
            assert f"snapshot {night}:" in printed
        yield folder


@pytest.fixture
def reading(scored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use(scored, monkeypatch)
    return scored


class TestHelp:
    def test_help_lists_every_command(self) -> None:
        text = ok("--help")
        assert isinstance(main, click.Group)
        assert set(main.commands) == {
            "ingest",
            "run",
            "leaderboard",
            "drift",
            "score",
            "export-blueprints",
            "sql",
            "report",
            "models",
            "ui",
        }
        for name, command in main.commands.items():
            assert re.search(rf"^  {name} +\S", text, re.MULTILINE), name
            assert command.help
            assert "--help" in ok(name, "--help")

    def test_help_of_the_installed_command_is_quick(self) -> None:
        command = Path(sys.executable).with_name("dtef")
        subprocess.run([command, "--help"], capture_output=True, check=True)
        started = time.monotonic()
        done = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
        assert "leaderboard" in done.stdout
        assert time.monotonic() - started < 0.5


class TestIngest:
    def test_a_folder_is_read_and_counted(self, base: Base) -> None:
        counted = (
            r"S1: 26 segments, 16 questions, 415 pairs, 1 pairs and 5 whole segments in quarantine \(.* s\)\n.*left out: .*"
        )
        assert re.fullmatch(counted, base.printed.strip())

    def test_its_rows_and_partitions_are_there(self, ingested: Path) -> None:
        (row,) = query("SELECT count(*) AS pairs, count(DISTINCT segment) AS segments, min(n) AS least FROM survey_responses")
        assert (row["pairs"], row["segments"]) == (415, 26)
        assert row["least"] >= 10
        import dagster as dg

        with dg.DagsterInstance.get() as instance:
            keys = list(instance.get_dynamic_partitions("round_segment"))
        assert len(keys) == 26
        assert keys == sorted(keys)
        assert "telemetry:\n  enabled: false" in (ingested / "dagster" / "dagster.yaml").read_text(encoding="utf-8")

    def test_round_and_minimum_can_be_given_and_a_second_reading_retires_segments(self, state: Path) -> None:
        document = {
            "surveyId": "some-survey",
            "surveyName": "Some survey",
            "questions": {"q1": {"id": "q1", "text": "Yes?", "type": "single-select", "options": ["Yes", "No"]}},
            "segments": [
                {
                    "id": value,
                    "attributes": {"country": value},
                    "sampleSize": n,
                    "responses": [{"questionId": "q1", "distribution": [60, 40]}],
                }
                for value, n in (("Kenya", 30), ("Chile", 300))
            ],
        }
        (state / "survey.json").write_text(json.dumps(document), encoding="utf-8")
        first = ok("ingest", state / "survey.json", "--round", "x9")
        assert first.startswith("X9: 2 segments, 1 questions, 2 pairs, 0 pairs and 0 whole segments in quarantine")
        again = ok("ingest", state / "survey.json", "--round", "x9", "--min-n", "100")
        assert again.startswith("X9: 1 segments, 1 questions, 1 pairs, ")
        assert "warning: retired 1 segments that the round no longer has: X9/country:kenya" in again
        assert query("SELECT DISTINCT round, segment, n FROM survey_responses") == [
            {"round": "X9", "segment": "country:chile", "n": 300}
        ]

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            (
                "notes.txt",
                "hello world\n",
                r"notes\.txt: not a survey that any adapter recognises; got .*hello world.*allowed: ",
            ),
            (
                "t.csv",
                "round,question,option,attribute,value,percent,n\nT1,Q?,Yes,country,Kenya,60,few\n",
                r"t\.csv:2: .*got 'few'.*allowed: ",
            ),
        ],
    )
    def test_what_is_no_survey_stops_with_nothing_written(self, state: Path, name: str, content: str, message: str) -> None:
        (state / name).write_text(content, encoding="utf-8")
        assert re.search(message, refused("ingest", state / name))
        assert [path.name for path in state.iterdir()] == [name]

    def test_a_fault_in_a_changed_round_leaves_the_ingested_one_as_it_was(self, ingested: Path) -> None:
        before = {p: p.read_bytes() for p in (ingested / "warehouse").rglob("*") if p.is_file()}
        shutil.copytree(SAMPLE, ingested / "S1")
        counts = ingested / "S1" / "S1_segment_counts_by_question.csv"
        lines = counts.read_text(encoding="utf-8").splitlines()
        counts.write_text("\n".join([*lines, lines[-1]]), encoding="utf-8")
        assert re.search(
            rf"{counts.name}:{len(lines) + 1}: question id s1-20 twice; allowed: one row a question",
            refused("ingest", ingested / "S1"),
        )
        assert {p: p.read_bytes() for p in (ingested / "warehouse").rglob("*") if p.is_file()} == before

    def test_a_minimum_that_leaves_nothing_is_an_error_that_says_so(self, state: Path) -> None:
        assert "S1" in refused("ingest", SAMPLE, "--min-n", "1000000")

    def test_a_path_that_is_not_there_is_named(self, state: Path) -> None:
        assert "nowhere" in refused("ingest", state / "nowhere")


class TestRunRefuses:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--round", "S7"], "round S7 is not ingested; ingested: S1"),
            (
                ["--round", "S1", "--segment", "country:atlantis"],
                "no segment country:atlantis in S1; segments: ageGroup:18-25, ",
            ),
            (["--round", "S1", "--model", "gpt-4.1-minny"], "no model or collection 'gpt-4.1-minny'; known: gpt-4.1-mini, "),
            (["--round", "S1", "--context", "some"], "context level 'some': allowed: a whole number such as 0, 5, 10, or all"),
            (["--round", "S1", "--metric", "kl"], "metric 'kl': allowed: js, cosine"),
            (["--round", "S1", "--selection", "best"], "context selection 'best': allowed: survey-order, random"),
            (["--round", "S1", "--limit", "gpt"], "limit 'gpt': allowed: MODEL=N"),
            (["--round", "S1", "--limit", "gpt-4.1=5"], "limit for gpt-4.1: allowed: a model of this run: baseline/uniform"),
            (["--round", "S1", "--token-budget", "100"], "token budget 100 with 256 kept for the answer: allowed: "),
        ],
    )
    def test_what_it_does_not_know_and_lists_what_it_does(self, ingested: Path, options: list[str], message: str) -> None:
        assert message in refused("run", *options)
        assert not (ingested / "warehouse" / "blueprints").exists()

    def test_a_models_file_that_is_not_there(self, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DTEF_MODELS", "/nowhere/models.yaml")
        assert "DTEF_MODELS names /nowhere/models.yaml, which is not a file" in refused("run", "--round", "S1")
        assert "DTEF_MODELS" in refused("models")

    def test_numbers_below_one_and_a_missing_round(self, ingested: Path) -> None:
        for options in (["--questions", "0"], ["--draws", "0"]):
            assert "is not in the range x>=1" in refused("run", "--round", "S1", *options)
        assert "Missing option '--round'" in refused("run")


class TestRun:
    def test_answers_of_a_served_model_are_kept_with_everything_the_server_said(self, reading: Path) -> None:
        rows = query("SELECT * FROM predictions WHERE model = 'fake' ORDER BY snapshot, segment, question_id")
        assert len(rows) == 2 * 2 * 2 * 3
        assert {row["segment"] for row in rows} == set(SEGMENTS)
        assert {row["context_level"] for row in rows} == {"0", "2"}
        assert {row["call_status"] for row in rows} == {"answered"}
        assert {row["served_model"] for row in rows} == {"fake-served"}
        assert {row["temperature"] for row in rows} == {0.0}
        assert all(row["prompt_tokens"] > 0 and row["latency_s"] > 0 and row["answered_at"] for row in rows)
        assert len({row["request_key"] for row in rows}) == len(rows)

    def test_the_two_references_are_always_there(self, reading: Path) -> None:
        models = {row["model"] for row in query("SELECT DISTINCT model FROM scores")}
        assert models == {"fake", *REFERENCES}

    def test_a_missing_key_is_one_clear_error_and_no_call(self, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("FAKE_KEY", raising=False)
        with FakeLLM() as server:
            serve_as(server, ingested, monkeypatch, api_key_env="FAKE_KEY")
            result = dtef("run", "--round", "S1", *CHOSEN, "--model", "fake")
            assert server.calls == []
        assert result.exit_code != 0
        errors = [line for line in result.stderr.splitlines() if line.startswith("error:")]
        assert len(errors) == 1, result.stderr
        assert "fake: environment variable FAKE_KEY is not set" in errors[0]

    def test_calls_that_fail_for_good_are_error_rows_and_the_others_are_scored(
        self, ingested: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fault(call: Call) -> Fault | None:
            return Fault("status", status=400, message="too long") if "hospital" in call.user else None

        with FakeLLM(reply=lambda call: distribution(call, 40), fault=fault) as server:
            serve_as(server, ingested, monkeypatch)
            ok("run", "--round", "S1", *CHOSEN, "--model", "fake", "--questions", "4", "--draws", "2")
        errors = query("SELECT error FROM predictions WHERE call_status = 'error'")
        assert len(errors) == 2 * 2
        assert all("too long" in row["error"] for row in errors)
        counted = query("SELECT status, count(*) AS n, count(score) AS scored FROM scores WHERE model = 'fake' GROUP BY 1")
        assert sorted(counted, key=str) == [{"status": "error", "n": 4, "scored": 0}, {"status": "ok", "n": 12, "scored": 12}]
        (row,) = (r for r in strict(ok("leaderboard", "--format", "json")) if r["model"] == "fake")
        assert (row["n_pairs"], row["n_error"], row["parse_rate"]) == (6, 4, 1.0)


class TestKilled:
    def test_what_was_committed_is_never_asked_again_and_no_row_is_lost_or_doubled(
        self, ingested: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        prompts, draws = 15, 3
        total = prompts * draws
        what = ["--model", "fake", "--draws", str(draws), "--limit", f"fake={prompts}"]
        run = ["run", "--round", "S1", "--segment", SEGMENTS[0], *what]
        with FakeLLM(reply=lambda call: distribution(call, 40), latency=0.1) as server:
            serve_as(server, ingested, monkeypatch)
            command = [str(Path(sys.executable).with_name("dtef")), *run]
            process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            deadline = time.monotonic() + 120
            while server.answered < total // 3 and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            assert process.returncode == -signal.SIGKILL
            with ResponseStore(ingested / "responses.sqlite") as store:
                committed = store.count()
            assert 0 < committed < total
            assert server.answered - committed <= 2 * 4
            answered = server.answered
            server.latency = 0.0
            ok(*run)
            assert server.answered == answered + total - committed
        rows = query("SELECT segment, question_id, draw, request_key, call_status FROM predictions WHERE model = 'fake'")
        assert len({(row["segment"], row["question_id"], row["draw"]) for row in rows}) == total
        assert len({row["request_key"] for row in rows}) == len(rows) == total
        assert {row["call_status"] for row in rows} == {"answered"}
        with ResponseStore(ingested / "responses.sqlite") as store:
            assert store.count() == total
        assert query("SELECT count(*) AS n FROM scores WHERE model = 'fake' AND status = 'ok'") == [{"n": total}]
        import dagster as dg

        with dg.DagsterInstance.get() as instance:
            statuses = {run.status for run in instance.get_runs()}
        assert statuses == {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}


class TestLeaderboard:
    VIEWS = ("overall", "round", "segment", "attribute", "question", "consistency", "metric")

    @pytest.mark.parametrize("by", VIEWS)
    def test_every_view_is_strict_json_with_the_promised_columns(self, reading: Path, by: str) -> None:
        rows = strict(ok("leaderboard", "--by", by, "--format", "json"))
        assert rows
        for row in rows:
            assert {"model", "context_level", "n_pairs", "score", "parse_rate"} <= set(row)
        assert {row["model"] for row in rows} == {"fake", *REFERENCES}

    @pytest.mark.parametrize("by", VIEWS)
    def test_every_view_is_a_table_and_csv(self, reading: Path, by: str) -> None:
        table = ok("leaderboard", "--by", by)
        assert "fake" in table
        assert "nan" not in table.lower().replace("finance", "")
        rows = list(csv.DictReader(io.StringIO(ok("leaderboard", "--by", by, "--format", "csv"))))
        assert len(rows) == len(strict(ok("leaderboard", "--by", by, "--format", "json")))
        assert {"model", "context_level", "n_pairs", "score", "parse_rate"} <= set(rows[0])

    def test_context_levels_stand_apart_and_one_can_be_chosen(self, reading: Path) -> None:
        both = strict(ok("leaderboard", "--format", "json"))
        assert [row["context_level"] for row in both] == ["0"] * 3 + ["2"] * 3
        assert {row["n_pairs"] for row in both} == {6}
        one = strict(ok("leaderboard", "--context", "2", "--format", "json"))
        assert [row["model"] for row in one] == [row["model"] for row in both[3:]]
        assert [row["score"] for row in one] == pytest.approx([row["score"] for row in both[3:]])

    def test_the_latest_snapshot_counts_unless_one_is_named(self, reading: Path) -> None:
        def score(*options: str) -> float:
            rows = strict(ok("leaderboard", "--context", "0", "--format", "json", *options))
            return float(next(row["score"] for row in rows if row["model"] == "fake"))

        assert score() == pytest.approx(score("--snapshot", "2026-01-03"))
        assert score() < score("--snapshot", "2026-01-01") - 0.1

    def test_metric_and_targets_are_honoured(self, reading: Path) -> None:
        js, tv = (strict(ok("leaderboard", "--metric", m, "--format", "json"))[0] for m in ("js", "tv"))
        assert (js["metric"], tv["metric"]) == ("js", "tv")
        assert js["score"] != tv["score"]
        assert "metric 'kl': allowed: js" in refused("leaderboard", "--metric", "kl")
        assert "targets 'some': allowed: clean, all" in refused("leaderboard", "--targets", "some")

    def test_a_round_without_scores_is_named_with_those_that_have_some(self, reading: Path) -> None:
        assert "no scores of round S9; scored so far: S1" in refused("leaderboard", "--round", "S9")

    def test_nothing_scored_yet_says_what_to_do(self, ingested: Path) -> None:
        for command in (["leaderboard"], ["drift"], ["report", "--out", ingested / "r.html"]):
            assert re.search(r"no scores in .* yet: .*`dtef run", refused(*command))


class TestDrift:
    def test_two_nights_that_were_answered_differently_are_flagged_with_both_named(self, reading: Path) -> None:
        text = ok("drift")
        assert "Largest: fake on S1/country:" in text
        assert "Compare snapshots 2026-01-03 and 2026-01-01." in text
        rows = strict(ok("drift", "--format", "json"))
        flagged = [row for row in rows if row["flagged"]]
        assert {row["model"] for row in flagged} == {"fake"}
        for row in flagged:
            assert (row["highest_snapshot"], row["lowest_snapshot"], row["n_snapshots"]) == ("2026-01-01", "2026-01-03", 2)
            assert row["gap"] == pytest.approx(row["highest"] - row["lowest"])
            assert row["hours"] == 48
        assert {row["flagged"] for row in rows if row["model"] in REFERENCES} == {False}

    def test_a_round_at_once_is_one_series_a_model_and_level(self, reading: Path) -> None:
        rows = strict(ok("drift", "--by", "round", "--format", "json"))
        assert sorted((row["model"], row["context_level"]) for row in rows) == [
            (model, level) for model in sorted({"fake", *REFERENCES}) for level in ("0", "2")
        ]
        assert next(row for row in rows if row["model"] == "fake")["n_prompts"] == 6

    def test_the_stage_says_the_same_as_the_command(self, reading: Path) -> None:
        stored = query("SELECT segment, context_level, gap FROM drift_checks WHERE flagged ORDER BY ALL")
        rows = strict(ok("drift", "--round", "S1", "--format", "json"))
        keys = ("segment", "context_level", "gap")
        assert sorted(({k: r[k] for k in keys} for r in rows if r["flagged"]), key=str) == sorted(stored, key=str)

    def test_an_unknown_round_is_named(self, reading: Path) -> None:
        assert "S9" in refused("drift", "--round", "S9")


class TestScore:
    CHECKED: tuple[tuple[list[float], list[float], dict[str, float]], ...] = (
        (
            [45.2, 30.1, 15.5, 9.2],
            [40, 35, 15, 10],
            {"js": 0.948749, "cosine": 0.992099, "emd": 0.937, "emd_normalized": 0.979},
        ),
        ([50, 30, 20], [20, 30, 50], {"js": 0.690459, "emd": 0.4, "emd_normalized": 0.7}),
        ([100, 0, 0, 0, 0], [0, 100, 0, 0, 0], {"js": 0.0, "emd": 0.0, "emd_normalized": 0.75}),
    )

    def test_the_published_check_values(self, tmp_path: Path) -> None:
        lines = [
            json.dumps({"response": str(response), "expected": expected, "id": 7}) for response, expected, _ in self.CHECKED
        ]
        (tmp_path / "lines.jsonl").write_text("\n".join(lines), encoding="utf-8")
        out = [strict(line) for line in ok("score", tmp_path / "lines.jsonl").splitlines()]
        for row, (_, _, values) in zip(out, self.CHECKED, strict=True):
            assert {name: row[name] for name in values} == pytest.approx(values, abs=5e-7)
            assert (row["status"], row["score"], row["id"]) == ("ok", row["js"], 7)
            assert sum(row["predicted"]) == pytest.approx(1)
            assert {"cosine", "emd", "tv", "response", "expected"} <= set(row)

    def test_a_malformed_line_is_reported_with_its_number_and_the_rest_goes_on(self) -> None:
        good = '{"response": "[50, 50]", "expected": [50, 50], "metric": "cosine"}'
        result = dtef("score", "-", stdin=f"{good}\n{{oops\n\n{good}\n")
        assert result.exit_code == 1
        rows = [strict(line) for line in result.stdout.splitlines()]
        assert [row.get("score") for row in rows] == [1.0, None, 1.0]
        assert rows[1]["line"] == 2
        assert "not JSON" in rows[1]["error"]

    def test_it_works_as_a_filter_without_any_state(self, tmp_path: Path) -> None:
        line = json.dumps({"response": "About half, I would think.", "expected": [50, 50]})
        done = subprocess.run(
            [Path(sys.executable).with_name("dtef"), "score", "-"],
            input=line,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        row = strict(done.stdout)
        assert (row["status"], row["score"], row["js"], row["predicted"]) == ("unparseable", 0.0, None, None)
        assert list(tmp_path.iterdir()) == []


class TestOthers:
    def test_blueprints_are_exported_a_file_a_segment(self, reading: Path, tmp_path: Path) -> None:
        assert "2 files" in ok("export-blueprints", "--round", "S1", "--out", tmp_path / "out")
        files = sorted((tmp_path / "out").iterdir())
        assert len(files) == 2
        document = yaml.safe_load(files[0].read_text(encoding="utf-8"))
        assert {"title", "system", "prompts"} <= set(document)
        assert len(document["prompts"]) == 16 * 2
        point = document["prompts"][0]["points"][0]
        assert point["fn"] == "distribution_metric"
        assert sum(point["fnArgs"]["expected"]) == pytest.approx(100, abs=1e-3)
        ok("export-blueprints", "--round", "S1", "--out", tmp_path / "zero", "--context", "0")
        assert len(yaml.safe_load((tmp_path / "zero" / files[0].name).read_text(encoding="utf-8"))["prompts"]) == 16

    def test_a_round_without_blueprints_is_named(self, ingested: Path) -> None:
        message = refused("export-blueprints", "--round", "S1", "--out", ingested / "out")
        assert "round S1 has no blueprints; rounds with blueprints: none; make them with `dtef run --round S1`" in message
        assert not (ingested / "out").exists()

    def test_sql_reads_every_promised_view(self, reading: Path) -> None:
        views = ["survey_responses", "blueprints", "predictions", "scores", "segment_results", "leaderboard", "drift_checks"]
        for view in views:
            assert query(f"SELECT count(*) > 0 AS filled FROM {view}") == [{"filled": True}], view
        assert "filled" in ok("sql", "SELECT 1 AS filled")
        assert ok("sql", "SELECT 1 AS a, NULL AS b", "--format", "csv").splitlines() == ["a,b", "1,"]

    def test_sql_on_a_view_that_is_not_made_yet_lists_the_views(self, ingested: Path) -> None:
        message = refused("sql", "SELECT * FROM scores")
        assert re.search(r"tables: .*survey_responses", message)
        assert re.search(r"made by later stages: .*scores", message)
        assert "syntax error" in refused("sql", "SELEC 1")

    def test_sql_cannot_change_the_tables(self, reading: Path) -> None:
        refused("sql", "DELETE FROM scores")
        assert query("SELECT count(*) > 0 AS kept FROM scores") == [{"kept": True}]

    def test_the_report_is_one_page(self, reading: Path, tmp_path: Path) -> None:
        assert str(tmp_path / "r.html") in ok("report", "--out", tmp_path / "r.html")
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert "fake" in page
        assert "2026-01-03" in page
        assert "https://" not in page

    def test_models_lists_the_shipped_and_ones_own(
        self, reading: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with FakeLLM() as server:
            serve_as(server, tmp_path, monkeypatch)
        text = ok("models")
        for name in (*REFERENCES, "local/smollm2-135m", "gpt-4.1-mini", "OPENAI_API_KEY"):
            assert name in text
        assert re.search(r"fake +openai/fake\[max_tokens=256,temperature=0\] +mine", text)

    def test_other_tools_read_the_database_beside_the_tables(self, reading: Path) -> None:
        import duckdb

        with duckdb.connect(str(reading / "warehouse" / "dtef.duckdb"), read_only=True) as connection:
            assert connection.execute("SELECT count(*) FROM leaderboard WHERE model = 'fake'").fetchone() == (4,)
