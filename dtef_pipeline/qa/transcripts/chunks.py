"""Chunks of transcripts, which are searched, shown to models and quoted: short enough to read, long enough to make sense."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from dtef_pipeline.qa.transcripts.corpus import BETWEEN_TURNS, METADATA_COLUMNS, MetadataValue, Transcript
from dtef_pipeline.tables import field

CHUNK_WORDS = 220
"""Largest number of words of a chunk of several turns or paragraphs; a longer paragraph is a chunk of its own. Typical chunks have 150-200
words."""
_CHARACTERS_OF_A_WORD = 10
"""If words are longer than this on average, as in scripts without spaces, characters are counted instead."""
_PARAGRAPH_MARK = re.compile(r"\n\s*")
INDEX_FIELDS = ("NAME", "PROJECT", "GEOGRAPHY")
"""Metadata searched with each chunk, because questions name a person who rarely says the name."""

DOCUMENT_FIELDS = (
    field("doc_id", pa.string(), "Id of the chunk: its file, the turn and the paragraph in which it begins, FILE#turn.part"),
    field("first_turn", pa.int32(), "Number of the turn in which the chunk begins, from 0"),
    field("last_turn", pa.int32(), "Number of the turn in which the chunk ends"),
    field("paragraph", pa.int32(), "Paragraph of the first turn in which the chunk begins; 0: at the beginning of the turn"),
    field("page_content", pa.string(), "Text of the chunk, character by character as in the transcript"),
    field("project", pa.string(), "Project that the interview belongs to; null: unknown"),
    field("year", pa.int32(), "Year of the interview; null: unknown"),
    field("month", pa.string(), "Month of the interview; null: unknown"),
    field("name", pa.string(), "Name of the person or group interviewed; null: unknown"),
    field("country", pa.string(), "Country of the interview; null: unknown"),
    field("geography", pa.string(), "Place of the interview; null: unknown"),
    field("file", pa.string(), "Name of the transcript, which identifies the interview"),
    field("type", pa.string(), "Kind of the document, such as interview; null: unknown"),
    field("record_lang", pa.string(), "Language of the recording, such as en; null: unknown"),
)
"""One row per chunk."""
DOCUMENT_SCHEMA = pa.schema(DOCUMENT_FIELDS)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive turns or paragraphs of one transcript."""

    file: str
    first_turn: int
    last_turn: int
    paragraph: int
    """Paragraph of the first turn in which it begins; 0: at the beginning of the turn."""
    page_content: str
    """A piece of the transcript, character by character."""
    metadata: Mapping[str, MetadataValue]

    @property
    def doc_id(self) -> str:
        """Id of the chunk, unique in its corpus: `FILE#turn.part`."""
        return f"{self.file}#{self.first_turn}.{self.paragraph}"


class _Piece(NamedTuple):
    """A turn or one paragraph of it: the places of its text in the transcript, and its length."""

    turn: int
    part: int
    start: int
    end: int
    size: int


def split_into_chunks(transcripts: Iterable[Transcript]) -> list[Chunk]:
    """Split transcripts into chunks, in order.

    Consecutive turns are joined up to CHUNK_WORDS words; a longer turn is split into paragraphs. Paragraphs are never split, and documents
    are never joined. Only white space is lost between two chunks.
    """
    return [chunk for transcript in transcripts for chunk in _iterate_chunks(transcript)]


def build_documents_table(chunks: Sequence[Chunk]) -> pa.Table:
    """Return the chunks as a table, DOCUMENT_SCHEMA, in the given order."""
    columns = {column: [chunk.metadata.get(name) for chunk in chunks] for name, column in METADATA_COLUMNS.items()}
    for name in ("doc_id", "first_turn", "last_turn", "paragraph", "page_content", "file"):
        columns[name] = [getattr(chunk, name) for chunk in chunks]
    return pa.table(columns, schema=DOCUMENT_SCHEMA)


def build_index_texts(documents: pa.Table) -> list[str]:
    """Return the searched text of each chunk: INDEX_FIELDS, then its own text."""
    columns = [documents.column(METADATA_COLUMNS[name]).to_pylist() for name in INDEX_FIELDS]
    texts = documents.column("page_content").to_pylist()
    return [" ".join([*filter(None, values), text]) for *values, text in zip(*columns, texts, strict=True)]


def _iterate_chunks(transcript: Transcript) -> Iterator[Chunk]:
    pieces: list[_Piece] = []
    size = 0
    for piece in _iterate_pieces(transcript):
        if pieces and size + piece.size > CHUNK_WORDS:
            yield _make_chunk(transcript, pieces)
            pieces, size = [], 0
        pieces.append(piece)
        size += piece.size
    if pieces:
        yield _make_chunk(transcript, pieces)


def _make_chunk(transcript: Transcript, pieces: Sequence[_Piece]) -> Chunk:
    first, last = pieces[0], pieces[-1]
    text = transcript.text[first.start : last.end]
    return Chunk(transcript.file, first.turn, last.turn, first.part, text, transcript.metadata)


def _iterate_pieces(transcript: Transcript) -> Iterator[_Piece]:
    """Yield the turns, or the paragraphs of turns that are longer than a chunk."""
    start = 0
    for turn in transcript.turns:
        text = turn.transcript_line
        size = _measure_size(text)
        if size <= CHUNK_WORDS:
            yield _Piece(turn.number, 0, start, start + len(text), size)
        else:
            for part, (begin, end) in enumerate(_find_paragraphs(text)):
                yield _Piece(turn.number, part, start + begin, start + end, _measure_size(text[begin:end]))
        start += len(text) + len(BETWEEN_TURNS)


def _find_paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of paragraphs that are not blank."""
    start = 0
    for mark in _PARAGRAPH_MARK.finditer(text):
        if paragraph := text[start : mark.start()].rstrip():
            yield start, start + len(paragraph)
        start = mark.end()
    if paragraph := text[start:].rstrip():
        yield start, start + len(paragraph)


def _measure_size(text: str) -> int:
    """Count words; if they are long on average, a tenth of the characters."""
    return max(len(text.split()), len(text) // _CHARACTERS_OF_A_WORD)
