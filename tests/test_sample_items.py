"""The sample items in data/questions: as many as are promised, in the layouts of their suites, and right."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

SAMPLES = ROOT / "data" / "questions"
TYPES = {"Yes/No", "ListOne", "ListMany", "PickOne", "PickMany", "Yes/No with Rationale"}
NINE_FIELDS = ["PROJECT", "YEAR", "MONTH", "NAME", "COUNTRY", "GEOGRAPHY", "FILE", "TYPE", "RECORD LANG"]


def json_lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines()]


def csv_rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


CHOICE_FILES = {part: sorted((SAMPLES / "mmlu" / part).glob(f"*_{part}.csv")) for part in ("dev", "test")}
PROBLEMS = json_lines("humaneval/HumanEval.jsonl")
SUMS = json_lines("gsm8k/test.jsonl")
PAIRS: list[dict[str, Any]] = json.loads((SAMPLES / "socioscope/questions.json").read_text(encoding="utf-8"))["qa_pairs"]
INTERVIEWS = {path.name: csv_rows(path) for path in sorted((SAMPLES / "socioscope/interviews").glob("*.csv"))}


class TestChoices:
    def test_there_are_twenty_over_three_subjects_that_all_have_five_examples(self) -> None:
        subjects = {part: {path.stem.removesuffix(f"_{part}") for path in paths} for part, paths in CHOICE_FILES.items()}
        assert len(subjects["test"]) == 3
        assert subjects["dev"] == subjects["test"]
        assert sum(len(csv_rows(path)) for path in CHOICE_FILES["test"]) == 20
        assert [len(csv_rows(path)) for path in CHOICE_FILES["dev"]] == [5, 5, 5]

    @pytest.mark.parametrize("path", [*CHOICE_FILES["dev"], *CHOICE_FILES["test"]], ids=lambda path: path.stem)
    def test_a_row_is_a_question_four_different_options_and_a_letter(self, path: Path) -> None:
        for text, *options, letter in csv_rows(path):
            assert text.endswith("?")
            assert len(options) == len({option.casefold() for option in options}) == 4
            assert letter in "ABCD"

    def test_no_letter_is_right_much_more_often_than_others(self) -> None:
        right = Counter(row[-1] for path in CHOICE_FILES["test"] for row in csv_rows(path))
        assert set(right) == set("ABCD")
        assert max(right.values()) <= 7


class TestSums:
    def test_there_are_twenty_different_ones(self) -> None:
        assert len(SUMS) == len({one["question"] for one in SUMS}) == 20
        assert all(one.keys() == {"question", "answer"} for one in SUMS)

    @pytest.mark.parametrize("one", SUMS, ids=lambda one: one["question"][:30])
    def test_the_working_is_right_and_ends_in_the_number(self, one: dict[str, str]) -> None:
        working, mark, stated = one["answer"].partition("\n#### ")
        assert mark
        equations = re.findall(r"(-?[(\d][\d +*/().-]*) = (-?\d+)", working)
        assert equations
        for left, right in equations:
            assert re.fullmatch(r"[\d +*/().-]+", left)
            assert eval(left) == pytest.approx(int(right))
        assert re.findall(r"-?\d+", working)[-1] == stated.replace(",", "")


class TestPrograms:
    @staticmethod
    def passes(problem: dict[str, str], body: str) -> bool:
        names: dict[str, Any] = {}
        try:
            exec(f"{problem['prompt']}{body}\n{problem['test']}", names)
            names["check"](names[problem["entry_point"]])
        except Exception:
            return False
        return True

    def test_there_are_twenty_with_names_and_ids_of_their_own(self) -> None:
        assert len(PROBLEMS) == 20
        for key in ("task_id", "entry_point", "prompt"):
            assert len({problem[key] for problem in PROBLEMS}) == 20
        layout = {"task_id", "prompt", "entry_point", "canonical_solution", "test"}
        assert all(problem.keys() == layout for problem in PROBLEMS)

    @pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem["entry_point"])
    def test_the_solution_passes_and_an_empty_body_does_not(self, problem: dict[str, str]) -> None:
        assert f"def {problem['entry_point']}(" in problem["prompt"]
        assert self.passes(problem, problem["canonical_solution"])
        assert not self.passes(problem, "    pass\n")
        assert not self.passes(problem, "")

    @pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem["entry_point"])
    def test_the_examples_of_the_prompt_are_right(self, problem: dict[str, str]) -> None:
        names: dict[str, Any] = {}
        exec(problem["prompt"] + problem["canonical_solution"], names)
        examples = re.findall(r">>> (.+)\n\s*(.+)\n", problem["prompt"])
        assert examples
        for call, shown in examples:
            assert repr(eval(call, names)) == shown


class TestInterviews:
    def test_there_are_three_of_forty_turns_and_more(self) -> None:
        assert len(INTERVIEWS) == 3
        for header, *rows in INTERVIEWS.values():
            assert header == ["turn", "speaker", "role", "text"]
            assert [row[0] for row in rows] == [str(number) for number in range(len(rows))]
            assert len(rows) >= 40
            assert {row[2] for row in rows} == {"interviewer", "interviewee"}

    def test_their_texts_have_what_makes_quotes_hard(self) -> None:
        for _, *rows in INTERVIEWS.values():
            spoken = [row[3] for row in rows]
            for mark in "’“”—\n[":
                assert any(mark in text for text in spoken), mark

    def test_each_has_a_row_of_metadata_with_the_nine_fields(self) -> None:
        header, *rows = csv_rows(SAMPLES / "socioscope/metadata.csv")
        assert header == NINE_FIELDS
        assert sorted(row[header.index("FILE")] for row in rows) == list(INTERVIEWS)
        for row in map(dict, (zip(header, row, strict=True) for row in rows)):
            assert all(row.values())
            assert 1900 < int(row["YEAR"]) < 2100
            assert row["NAME"] in {turn[1] for turn in INTERVIEWS[row["FILE"]] if turn[2] == "interviewee"}

    def test_there_are_twenty_questions_of_all_six_types_about_all_of_them(self) -> None:
        assert len(PAIRS) == len({pair["id"] for pair in PAIRS}) == len({pair["question"]["text"] for pair in PAIRS}) == 20
        types = Counter(pair["question"]["type"] for pair in PAIRS)
        assert set(types) == TYPES
        assert min(types.values()) >= 3
        assert {place["file"] for pair in PAIRS for place in pair["evidence"]} == set(INTERVIEWS)

    @pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["id"])
    def test_every_quote_stands_in_its_turn_character_by_character(self, pair: dict[str, Any]) -> None:
        assert pair["quotes"]
        turns = [INTERVIEWS[place["file"]][place["turn"] + 1] for place in pair["evidence"]]
        assert [row[2] for row in turns] == ["interviewee"] * len(turns)
        for quote in pair["quotes"]:
            assert any(quote in row[3] for row in turns)
        for row in turns:
            assert any(quote in row[3] for quote in pair["quotes"])

    @pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["id"])
    def test_what_is_expected_can_be_chosen_or_said(self, pair: dict[str, Any]) -> None:
        asked = pair["question"]
        options = asked.get("options", [])
        assert bool(options) == asked["type"].startswith("Pick")
        if asked["type"] == "Yes/No":
            assert asked["metric"] in ("Yes", "No")
            return
        metric = json.loads(asked["metric"])
        values = [entry["value"] for entry in metric] if isinstance(metric, list) else list(metric)
        assert values
        if options:
            assert set(values) < set(options)
        if asked["type"] == "Yes/No with Rationale":
            assert values == ["answer", "rationale", "weight"]


def test_the_samples_are_said_to_be_invented() -> None:
    assert "invented" in (SAMPLES / "README.md").read_text(encoding="utf-8")
