"""Adapters are found by entry points, and what none of them reads is a fault that says what each accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

import dtef_pipeline.survey.adapters as survey_adapters
from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.adapters import adapters, read_survey
from dtef_pipeline.survey.attributes import segment
from dtef_pipeline.survey.model import Answer, Question, Survey
from dtef_pipeline.survey.validation import make_round_id


def test_the_three_adapters_are_found_through_entry_points() -> None:
    assert [a.name for a in adapters()] == ["global-dialogues", "dtef-json", "long-table"]


def test_round_ids() -> None:
    names = ["gd4", "global-dialogues-gd4", "global-dialogues-gd6uk", "wave 2", "my-survey"]
    assert [make_round_id(name, where="x") for name in names] == ["GD4", "GD4", "GD6UK", "WAVE-2", "MY-SURVEY"]


@pytest.mark.parametrize("name", ["", "a/b", "a...b", "-x", "é\n/", "x:y"])
def test_names_unfit_for_a_partition_key_make_no_round(name: str) -> None:
    with pytest.raises(SurveyError, match="round id"):
        make_round_id(name, where="x")


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("picture.png", b"\x89PNG\r\n\x1a\n\x00\xff", "a file that is not UTF-8 text"),
        ("picture.csv", b"\x89PNG\r\n\x1a\n\x00\xff", r"a file that is not UTF-8 text"),
        ("broken.parquet", b"PAR1", r"a text file beginning with 'PAR1'"),
        ("empty.csv", b"", r"an empty file"),
        ("other.csv", b"a,b,c\n1,2,3\n", r"a text file beginning with 'a,b,c'"),
        ("notes.txt", b"\n", r"a text file beginning with ''"),
    ],
)
def test_what_no_adapter_recognises_is_described_beside_what_each_accepts(
    tmp_path: Path, name: str, content: bytes, found: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    accepted = r"allowed: a directory with .*; a .json file .*\(dtef-json\); a \.csv, \.tsv or .parquet file with columns"
    with pytest.raises(SurveyError, match=f"not a survey; got .*{found}.*{accepted}"):
        read_survey(path)


def test_a_folder_of_surveys_is_refused_with_their_paths(tmp_path: Path) -> None:
    for name in ("GD1", "GD2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}_aggregate_standardized.csv").touch()
    with pytest.raises(SurveyError) as raised:
        read_survey(tmp_path)
    assert raised.value.where == str(tmp_path)
    assert f"{tmp_path}/*" in str(raised.value.allowed)


def test_two_rounds_in_one_directory_are_a_fault(tmp_path: Path) -> None:
    for name in ("GD1", "GD2"):
        (tmp_path / f"{name}_aggregate_standardized.csv").touch()
    with pytest.raises(SurveyError, match=r"one aggregate file per round; got \['GD1_aggregate_standardized.csv', 'GD2_"):
        read_survey(tmp_path)


class Careless:
    """An adapter of somebody else that does not check what it reads."""

    name = "careless"

    def __init__(self, *answers: Answer) -> None:
        self.answers = answers

    def recognises(self, path: Path) -> bool:
        return path.suffix == ".csv"

    def read(self, path: Path) -> Survey:
        kenya = segment({"country": "Kenya"}, 30, where="x")
        return Survey("GD9", "Nine", self.name, "x", (Question("q1", "Good?", ("Yes", "No")),), (kenya,), self.answers)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([("country:kenya", "q2")], r"x:7: .*; got .*'q2'\]; allowed: questions q1"),
        ([("country:mars", "q1")], r"x:7: .*; got .*'country:mars'"),
        ([("country:kenya", "q1")] * 2, r"x:7: two answers of segment country:kenya to question q1; allowed: one answer"),
    ],
)
def test_what_the_adapters_of_others_read_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[tuple[str, str]], message: str
) -> None:
    careless = Careless(*(Answer(s, q, (60.0, 40.0), 30, "x", 7) for s, q in answers))
    monkeypatch.setattr(survey_adapters, "adapters", lambda: [careless])
    (tmp_path / "a.csv").touch()
    with pytest.raises(SurveyError, match=message):
        read_survey(tmp_path / "a.csv")
