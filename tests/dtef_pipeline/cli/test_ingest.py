"""`dtef ingest` counts what it read, and writes nothing where the survey has a fault."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import SAMPLE, ok, query, refused
from tests.dtef_pipeline.cli.conftest import Base


class TestIngest:
    def test_a_folder_is_read_and_counted(self, base: Base) -> None:
        counted = (
            r"S1: 26 segments, 16 questions, 415 pairs, 1 pair and 5 whole segments in quarantine \(.* s\)\n.*left out: .*"
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
        assert first.startswith("X9: 2 segments, 1 question, 2 pairs, 0 pairs and 0 whole segments in quarantine")
        again = ok("ingest", state / "survey.json", "--round", "x9", "--min-n", "100")
        assert again.startswith("X9: 1 segment, 1 question, 1 pair, ")
        assert "since it was ingested last" not in first
        assert "since it was ingested last: 1 segment dropped (country:kenya)" in again
        assert "warning: retired 1 segment that the round no longer has: X9/country:kenya" in again
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
            rf"{counts.name}:{len(lines) + 1}: question id s1-20 twice; allowed: one row per question",
            refused("ingest", ingested / "S1"),
        )
        assert {p: p.read_bytes() for p in (ingested / "warehouse").rglob("*") if p.is_file()} == before

    def test_a_minimum_that_leaves_nothing_is_an_error_that_says_so(self, state: Path) -> None:
        assert "S1" in refused("ingest", SAMPLE, "--min-n", "1000000")

    def test_a_path_that_is_not_there_is_named(self, state: Path) -> None:
        assert "nowhere" in refused("ingest", state / "nowhere")
