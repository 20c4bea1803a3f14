"""Reading corpora in both forms, and what is said of rows that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.transcripts.corpus import load_corpus
from tests.dtef_pipeline.qa.transcripts.interviews import (
    INTERVIEWS,
    METADATA,
    needs_interviews,
    shared_corpus,
    shared_questions,
    write_corpus,
)

HEADER = "PROJECT,YEAR,MONTH,NAME,COUNTRY,GEOGRAPHY,FILE,TYPE,RECORD LANG\r\n"
ROW = 'DK-001,2024,April,Ida Møller,Denmark,"Aarhus, Jutland",one.csv,interview,en\r\n'
TURNS = 'turn,speaker,role,text\r\n0,A,interviewer,"Hello,\n\n ""Ida""?"\r\n1,Ida,interviewee,None\r\n'


def documents(tmp_path: Path, *entries: Any) -> Path:
    file = tmp_path / "corpus.json"
    file.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    return file


def test_a_folder_gives_turns_as_they_stand_and_metadata_with_a_whole_year(tmp_path: Path) -> None:
    corpus = load_corpus(write_corpus(tmp_path / "c", {"one.csv": TURNS}, HEADER + ROW))
    (transcript,) = corpus.transcripts
    assert transcript.text == 'A: Hello,\n\n "Ida"?\n\nIda: None'
    assert transcript.metadata == {**METADATA, "GEOGRAPHY": "Aarhus, Jutland"}
    assert corpus.errors == ()
    assert (corpus.turn_text("one.csv", 1), corpus.turn_text("one.csv", 7)) == ("None", None)


@needs_interviews
def test_both_forms_of_the_shared_interviews_give_the_same_texts() -> None:
    folder = {one.file: one for one in shared_corpus().transcripts}
    listed = load_corpus(INTERVIEWS / "corpus.json").transcripts
    assert (len(folder), len(listed)) == (14, 4)
    assert all((one.text, one.metadata) == (folder[one.file].text, folder[one.file].metadata) for one in listed)
    assert shared_corpus().errors == ()


@needs_interviews
def test_every_shared_quote_stands_in_the_turn_that_it_names_and_not_in_the_next() -> None:
    corpus, named = shared_corpus(), [(pair["evidence"][0], text) for pair in shared_questions() for text in pair["quotes"]]
    assert len(named) >= 42
    for place, text in named:
        assert text in (corpus.turn_text(place["file"], place["turn"]) or "")
        assert text not in (corpus.turn_text(place["file"], place["turn"] + 1) or "")


def test_any_turn_of_a_whole_document_is_all_of_its_file(tmp_path: Path) -> None:
    corpus = load_corpus(documents(tmp_path, *({"page_content": text, "metadata": METADATA} for text in ("one", "two"))))
    assert corpus.turn_text("one.csv", 17) == corpus.turn_text("one.csv", None) == "one\n\ntwo"
    assert corpus.turn_text("other.csv", None) is None


def test_rows_of_blank_cells_are_skipped(tmp_path: Path) -> None:
    """A corpus reported the blank rows that spreadsheets write at the end of a file."""
    corpus = load_corpus(write_corpus(tmp_path / "c", {"one.csv": f"{TURNS}, ,,\r\n"}, f"{HEADER}{ROW}{',' * 8}\r\n"))
    assert corpus.errors == ()


def test_bad_turns_are_left_out_by_line_and_the_rest_goes_on(tmp_path: Path) -> None:
    bad = 'x,A,,No number\r\n0,B,,Again\r\n2,B,,\r\n3,B\r\n4,"B"x,,Quotes\r\n5,B,,Good\n lines\r\n6,B,,Last\r\n'
    bad = bad.replace("Good\n lines", '"Good\n lines"')
    corpus = load_corpus(write_corpus(tmp_path / "c", {"one.csv": TURNS + bad}, HEADER + ROW))
    assert [turn.number for turn in corpus.transcripts[0].turns] == [0, 1, 5, 6]
    assert [error.line for error in corpus.errors] == [6, 7, 8, 9, 10]
    first, second, third, fourth, fifth = map(str, corpus.errors)
    assert first.endswith("one.csv:6: number of a turn; got 'x'; allowed: a whole number above 1")
    assert second.endswith("got '0'; allowed: a whole number above 1")
    assert "text of a turn; got ''" in third
    assert "too few or too many cells; got 2; allowed: 4: turn, speaker, role, text" in fourth
    assert "the row is not valid CSV" in fifth


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ROW.replace("2024", "about 1990"), "metadata YEAR; got 'about 1990'; allowed: a whole number, 0-9999"),
        (ROW.replace("one.csv", ""), "metadata without a FILE"),
        (ROW + ROW, "got 'one.csv'; allowed: one row per FILE"),
        (ROW + ROW.replace("one.csv", "gone.csv"), "metadata.csv:3: an interview without a file; got 'gone.csv'"),
        (ROW + "DK,1\r\n", "too few or too many cells; got 2; allowed: 9"),
    ],
)
def test_a_bad_row_of_metadata_is_named(tmp_path: Path, row: str, said: str) -> None:
    folder = write_corpus(
        tmp_path / "c", {"one.csv": TURNS, "two.csv": TURNS}, HEADER + row + ROW.replace("one.csv", "two.csv")
    )
    corpus = load_corpus(folder)
    assert any(said in str(error) and "metadata.csv:" in str(error) for error in corpus.errors)
    assert "two.csv" in [one.file for one in corpus.transcripts]
    with pytest.raises(ItemError, match=r"metadata\.csv"):
        load_corpus(folder, strict=True)


def test_an_interview_without_metadata_or_columns_or_turns_is_left_out(tmp_path: Path) -> None:
    interviews = {
        "one.csv": TURNS,
        "two.csv": TURNS,
        "three.csv": "turn,text\r\n0,Hi\r\n",
        "four.csv": TURNS.partition("\n")[0],
    }
    rows = "".join(ROW.replace("one.csv", name) for name in ("one.csv", "three.csv", "four.csv"))
    corpus = load_corpus(write_corpus(tmp_path / "c", interviews, HEADER + rows))
    assert [one.file for one in corpus.transcripts] == ["one.csv"]
    said = " | ".join(map(str, corpus.errors))
    assert "two.csv: an interview without metadata" in said
    assert "three.csv: column speaker is missing" in said
    assert "four.csv: an interview without turns" in said


def test_a_turn_that_is_not_utf8_is_left_out(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "c", {"one.csv": TURNS}, HEADER + ROW)
    (folder / "interviews" / "one.csv").write_bytes(TURNS.encode() + b"2,A,,caf\xe9\r\n")
    (error,) = load_corpus(folder).errors
    assert (error.line, error.text) == (6, "text of a turn")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("text", "not a document; got 'text'"),
        ({"page_content": 3, "metadata": {}}, "not a document; got {'page_content': 3"),
        ({"page_content": " ", "metadata": METADATA}, "page_content is not text; got ' '"),
        ({"page_content": "a\ud800", "metadata": METADATA}, "page_content"),
        ({"page_content": "a", "metadata": {**METADATA, "YEAR": "2024"}}, "metadata YEAR; got '2024'; allowed: a whole number"),
        ({"page_content": "a", "metadata": {**METADATA, "YEAR": True}}, "metadata YEAR; got True"),
        ({"page_content": "a", "metadata": {**METADATA, "NAME": 7}}, "metadata NAME; got 7; allowed: text"),
        ({"page_content": "a", "metadata": {}}, "metadata without a FILE"),
    ],
)
def test_a_bad_document_is_left_out_by_line_and_the_rest_goes_on(tmp_path: Path, entry: Any, said: str) -> None:
    good = {"page_content": "good", "metadata": METADATA}
    corpus = load_corpus(documents(tmp_path, good, entry, good))
    assert [one.text for one in corpus.transcripts] == ["good", "good"]
    (error,) = corpus.errors
    assert said in str(error)
    assert error.line == 16
    with pytest.raises(ItemError):
        load_corpus(documents(tmp_path, good, entry), strict=True)


def test_unknown_metadata_is_not_kept(tmp_path: Path) -> None:
    corpus = load_corpus(documents(tmp_path, {"page_content": "a", "metadata": {**METADATA, "COLOUR": "red"}}))
    assert corpus.transcripts[0].metadata == METADATA


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[",
        "[1",
        "[1 2]",
        "[1,]",
        "[] x",
        "[" * 100_000,
        '["' + "9" * 5000,
        "[" + "9" * 5000 + "]",
        "[NaN, \x00]",
        "[]",
    ],
)
def test_a_file_that_is_no_list_of_documents_is_an_error_that_says_what_is_allowed(tmp_path: Path, text: str) -> None:
    (tmp_path / "corpus.json").write_text(text, encoding="utf-8")
    with pytest.raises(ItemError, match=r"corpus\.json.*allowed: "):
        load_corpus(tmp_path / "corpus.json")


def test_a_corpus_without_a_usable_document_states_once_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(ItemError) as error:
        load_corpus(documents(tmp_path, {"page_content": 1}))
    assert str(error.value).count("allowed: ") == 1


def test_no_file_and_a_folder_without_metadata_say_what_a_corpus_is(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "gone", "no such file or folder"), (tmp_path, r"without metadata\.csv")):
        with pytest.raises(ItemError, match=f"{said}.*allowed: a JSON list"):
            load_corpus(path)
    folder = write_corpus(tmp_path / "c", {"one.csv": TURNS}, "FILE,NAME\none.csv,A\n")
    with pytest.raises(
        ItemError, match=r"metadata\.csv: column PROJECT is missing.*; got 'FILE, NAME'; allowed: PROJECT, YEAR"
    ):
        load_corpus(folder)
