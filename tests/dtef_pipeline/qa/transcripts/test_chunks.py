"""Chunks: pieces of transcripts, character by character, of a readable length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.transcripts.chunks import (
    CHUNK_WORDS,
    DOCUMENT_SCHEMA,
    Chunk,
    build_documents_table,
    build_index_texts,
    split_into_chunks,
)
from dtef_pipeline.qa.transcripts.corpus import SpokenTurn, Transcript
from tests.dtef_pipeline.qa.transcripts.interviews import METADATA, needs_interviews, shared_documents

PARAGRAPH = " ".join(["word"] * 100)
LINES = st.lists(st.sampled_from(["word", "zwei ", "\n", "\n \n", "é…", " ", "\r\n", PARAGRAPH]), max_size=12).map("".join)


def interview(*texts: str, speaker: str | None = "Ida", file: str = "one.csv") -> Transcript:
    turns = tuple(SpokenTurn(number, text, speaker) for number, text in enumerate(texts))
    return Transcript(file, turns, {**METADATA, "FILE": file})


def ids(chunks: list[Chunk]) -> list[str]:
    return [chunk.doc_id for chunk in chunks]


def test_short_turns_are_joined_and_the_words_between_them_stay() -> None:
    (chunk,) = split_into_chunks([interview("Hello.", "Good day.\n\n Well?")])
    assert chunk.page_content == "Ida: Hello.\n\nIda: Good day.\n\n Well?"
    assert (chunk.doc_id, chunk.last_turn) == ("one.csv#0.0", 1)


def test_a_turn_that_does_not_fit_begins_a_chunk_of_its_own() -> None:
    chunks = split_into_chunks([interview(PARAGRAPH, PARAGRAPH, PARAGRAPH)])
    assert ids(chunks) == ["one.csv#0.0", "one.csv#2.0"]


def test_a_long_turn_is_split_at_paragraphs_and_a_long_paragraph_is_not() -> None:
    long = f"{PARAGRAPH}\n\n {PARAGRAPH}\n{PARAGRAPH} {PARAGRAPH} {PARAGRAPH}\n{PARAGRAPH}"
    chunks = split_into_chunks([interview("Hm.", long, "Yes.")])
    assert ids(chunks) == ["one.csv#0.0", "one.csv#1.2", "one.csv#1.3"]
    assert [(chunk.first_turn, chunk.last_turn) for chunk in chunks] == [(0, 1), (1, 1), (1, 2)]
    assert chunks[1].page_content == f"{PARAGRAPH} {PARAGRAPH} {PARAGRAPH}"
    assert chunks[2].page_content == f"{PARAGRAPH}\n\nIda: Yes."


def test_documents_of_one_file_are_never_joined_with_each_other() -> None:
    parts = [Transcript("one.csv", (SpokenTurn(number, text),), METADATA) for number, text in enumerate(("Short.", "Shorter."))]
    assert ids(split_into_chunks(parts)) == ["one.csv#0.0", "one.csv#1.0"]
    assert [chunk.page_content for chunk in split_into_chunks(parts)] == ["Short.", "Shorter."]


def test_a_script_without_spaces_is_split_too() -> None:
    assert len(split_into_chunks([interview("\n".join(["海" * 1500] * 4))])) == 4


@given(st.lists(LINES, min_size=1, max_size=6), st.booleans())
def test_chunks_are_all_pieces_of_a_transcript_in_order(texts: list[str], named: bool) -> None:
    transcript = interview(*texts, speaker="Ida" if named else None)
    chunks = split_into_chunks([transcript])
    place, left_out = 0, ""
    for chunk in chunks:
        found = transcript.text.index(chunk.page_content, place)
        left_out += transcript.text[place:found]
        place = found + len(chunk.page_content)
    assert not (left_out + transcript.text[place:]).strip()
    assert len(set(ids(chunks))) == len(chunks)
    for chunk in chunks:
        is_long = len(chunk.page_content.split()) > CHUNK_WORDS
        assert not is_long or "\n" not in chunk.page_content.strip()


def test_what_is_searched_begins_with_the_name_the_project_and_the_place() -> None:
    table = build_documents_table(split_into_chunks([interview("Hello.")]))
    assert table.schema == DOCUMENT_SCHEMA
    assert build_index_texts(table) == ["Ida Møller DK-001 Aarhus Ida: Hello."]
    (row,) = table.to_pylist()
    assert (row["year"], row["record_lang"]) == (2024, "en")
    nameless = build_documents_table(split_into_chunks([Transcript("f", (SpokenTurn(0, "Hi"),), {"FILE": "f"})]))
    assert build_index_texts(nameless) == ["Hi"]


@needs_interviews
def test_the_shared_interviews_have_some_920_chunks_of_150_to_200_words() -> None:
    words = [len(text.split()) for text in shared_documents().column("page_content").to_pylist()]
    assert 900 <= len(words) <= 940
    assert 150 <= sorted(words)[len(words) // 2] <= 200
