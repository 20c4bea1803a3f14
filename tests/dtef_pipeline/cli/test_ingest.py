"""`dtef add` counts what it read, and writes nothing where the survey has a fault."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.assets.conftest import write_survey
from tests.dtef_pipeline.cli.commands import CHOSEN, SAMPLE, dtef, ok, query, refused
from tests.dtef_pipeline.cli.conftest import Base


class TestIngest:
    def test_a_folder_is_read_and_counted(self, base: Base) -> None:
        first, *rest = base.printed.splitlines()
        counted = r"S1: 26 segments, 16 questions, 415 pairs; 1 pair and 5 whole segments in quarantine"
        assert re.fullmatch(counted, first)
        said = "\n".join(rest)
        assert "quarantine: 1 pair (n-below-minimum); 3 whole segments (no-data), 2 whole segments (segment-too-small)" in said
        assert "FROM survey_quarantine WHERE round = 'S1'" in said
        assert "scales: 13 ordinal, 3 nominal; 3 with a don't-know option" in said
        assert "batteries: 12, 3 with 2 or more questions (at most 3)\n" in said
        assert (
            "nominal: Should pupils be allowed to use AI for homework? (Yes / No / It depends / Not sure): no known scale"
            in said
        )
        assert "questions about the respondent, left out: Which language would you like to answer in?; " in said
        assert "same text and options: 1 question: What has been the effect of AI on your town so far?" in said

    def test_a_nominal_question_with_three_options_is_listed_though_one_is_dont_know(self, state: Path) -> None:
        rows = [
            f"T1,q1,Go on?,{option},country,Kenya,{percent},50"
            for option, percent in (("Red", 50), ("Blue", 30), ("Don't know", 20))
        ]
        (state / "t1.csv").write_text(
            "\n".join(["round,question_id,question,option,attribute,value,percent,n", *rows]), encoding="utf-8"
        )
        said = ok("add", state / "t1.csv")
        assert "scales: 0 ordinal, 1 nominal; 1 with a don't-know option" in said
        assert "    nominal: Go on? (Red / Blue / Don't know): " in said

    @pytest.mark.thorough
    def test_a_design_effect_stays_until_another_is_given_and_is_stated_each_time(self, state: Path) -> None:
        """Ingested again without the option, a round went back to 1 in silence, and the interval of skill grew narrow."""
        path = write_survey(state / "round.csv", ["A1"], questions=2)
        assert "design effect" not in ok("add", path)
        means = "of a respondent of a simple random sample"
        again = "; kept from an earlier ingest of the round; --design-effect 1 resets it"
        assert f"  design effect 1.5: each respondent counts as 1/1.5 {means}\n" in ok("add", path, "--design-effect", "1.5")
        assert query("SELECT DISTINCT round(n / n_effective, 9) AS effect FROM survey_responses") == [{"effect": 1.5}]
        lowered = query("SELECT segment, question_id, ceiling_low.js FROM reference_scores ORDER BY ALL")
        assert f"design effect 1.5: each respondent counts as 1/1.5 {means}{again}" in ok("add", path)
        assert query("SELECT segment, question_id, ceiling_low.js FROM reference_scores ORDER BY ALL") == lowered
        assert f"design effect 2: each respondent counts as 1/2 {means}; it was 1.5\n" in ok(
            "add", path, "--design-effect", "2"
        )
        assert "design effect 1; it was 2\n" in ok("add", path, "--design-effect", "1")
        assert query("SELECT DISTINCT n_effective FROM survey_responses") == [{"n_effective": None}]
        assert "design effect" not in ok("add", path)

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
        first = ok("add", state / "survey.json", "--round", "x9")
        assert first.startswith("X9: 2 segments, 1 question, 2 pairs; nothing in quarantine")
        again = ok("add", state / "survey.json", "--round", "x9", "--min-n", "100")
        assert again.startswith("X9: 1 segment, 1 question, 1 pair; ")
        assert "changes since the last ingest" not in first
        assert "changes since the last ingest: 1 segment dropped (country:kenya)" in again
        assert "warning: removed 1 segment that the round no longer has: X9/country:kenya" in again
        assert query("SELECT DISTINCT round, segment, n FROM survey_responses") == [
            {"round": "X9", "segment": "country:chile", "n": 300}
        ]

    def test_a_fault_in_one_round_of_a_file_leaves_all_of_them_unwritten(self, state: Path) -> None:
        path = write_survey(state / "rounds.csv", ["A1", "B1"], questions=2)
        lines = path.read_text(encoding="utf-8").splitlines(True)
        cut = [line for line in lines if not line.startswith("B1,q1") or ",Yes," in line]
        path.write_text("".join(cut), encoding="utf-8")
        assert "options are missing: 1 question: Question number 1?" in refused("add", path)
        assert not list((state / "warehouse").rglob("*.parquet"))
        printed = ok("add", path, "--allow-missing-questions")
        assert "warning: In segments with most of the respondents the percentages of these questions sum to less" in printed

    def test_several_paths_are_all_checked_before_one_is_stored(self, state: Path) -> None:
        first, second = (write_survey(state / f"{name}.csv", [name]) for name in ("A1", "A2"))
        said = refused("add", first, state / "missing.csv")
        assert "missing.csv" in said
        broken = state / "broken.csv"
        broken.write_text("nothing", encoding="utf-8")
        refused("add", first, broken)
        assert "A1, A2" not in refused("add", first, second, "--round", "B1")
        assert "round A1 is in more than one PATH" in refused("add", first, first)
        assert not (state / "warehouse" / "survey_responses").exists()
        printed = ok("add", first, second)
        assert re.findall(r"^(A\d): ", printed, re.MULTILINE) == ["A1", "A2"]

    def test_columns_that_are_not_read_are_stated_and_make_the_exit_code_1(self, state: Path) -> None:
        for file in SAMPLE.iterdir():
            (state / "S1").mkdir(exist_ok=True)
            text = file.read_text(encoding="utf-8").replace("O3: Male", "Sex: M", 1)
            (state / "S1" / file.name).write_text(text, encoding="utf-8")
        result = dtef("add", state / "S1")
        assert result.exit_code == 1
        assert re.search(
            r"NOT read: .* O-number: Sex: M \([\d,]+ of [\d,]+ respondents, 4\d%\); the round is stored without these segments: "
            r"name the columns as other rounds do, .* ingest again; .*a long table",
            result.stderr,
        )
        assert "all else of S1 is stored" in result.stderr

    @pytest.mark.thorough
    def test_a_round_that_lost_an_attribute_is_taken_by_the_commands_that_the_errors_give(self, state: Path) -> None:
        """One option pointed at the other, and the other back at it; and a broken manifest of the source stopped both."""
        shutil.copytree(SAMPLE, state / "S1", ignore=shutil.ignore_patterns("*guide*"))
        ok("add", state / "S1")
        (aggregate,) = (state / "S1").glob("*aggregate*")
        aggregate.write_text(aggregate.read_text(encoding="utf-8").replace("O3: ", "Sex: "), encoding="utf-8")
        said = refused("add", state / "S1")
        assert f"No column of {aggregate.name} could be read as one of the attributes that its own questions ask for" in said
        assert "--allow-missing-attributes" in said
        manifest = state / "warehouse" / "sources" / "S1.json"
        manifest.write_text("{", encoding="utf-8")
        said = refused("add", state / "S1", "--allow-missing-attributes")
        (command,) = re.findall(r"`dtef (add .*)`", said)
        assert command == f"add {state / 'S1'} --round S1 --allow-missing-attributes --replace"
        assert "`dtef add PATH --round ROUND`" in dtef("run", "--round", "S1", "--from", "ingest", *CHOSEN).output
        assert "all else of S1 is stored" in dtef(*command.split()).stderr
        assert json.loads(manifest.read_text(encoding="utf-8"))["allowed"] == ["missing-attributes"]

    def test_a_round_of_decimal_commas_alone_is_refused_with_file_line_and_cell(self, state: Path) -> None:
        rows = [
            "round,question,option,attribute,value,percent",
            'T1,Q?,Yes,country,Kenya,"40,5"',
            'T1,Q?,No,country,Kenya,"59,5"',
        ]
        (state / "t.csv").write_text("\n".join(rows), encoding="utf-8")
        said = refused("check", state / "t.csv")
        assert f"{state / 't.csv'}:2: " in said
        assert "'40,5'" in said

    def test_a_fault_in_a_changed_round_leaves_the_ingested_one_as_it_was(self, ingested: Path) -> None:
        before = {p: p.read_bytes() for p in (ingested / "warehouse").rglob("*") if p.is_file()}
        shutil.copytree(SAMPLE, ingested / "S1")
        counts = ingested / "S1" / "S1_segment_counts_by_question.csv"
        lines = counts.read_text(encoding="utf-8").splitlines()
        counts.write_text("\n".join([*lines, lines[-1]]), encoding="utf-8")
        assert re.search(
            rf"{counts.name}:{len(lines) + 1}: question id s1-20 .*; allowed: one row per question",
            refused("add", ingested / "S1"),
        )
        assert {p: p.read_bytes() for p in (ingested / "warehouse").rglob("*") if p.is_file()} == before

    def test_a_minimum_that_leaves_nothing_is_an_error_that_says_so(self, state: Path) -> None:
        assert "S1" in refused("add", SAMPLE, "--min-n", "1000000")
