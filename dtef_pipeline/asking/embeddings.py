"""Text embeddings: batching texts into calls, decoding responses, and the columns that store vectors."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.asking.models import LOCAL_EMBEDDER, SAMPLING, ModelSpec
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.tables import field
from dtef_pipeline.text.number_words import format_count

Vectors = npt.NDArray[np.float32]
"""One vector per row."""

BATCH_TEXTS = 64
"""Maximum number of texts per call."""
BATCH_CHARACTERS = 100_000
"""Maximum number of characters per call; a longer text gets its own call."""
EMBEDDER_WINDOW = 8_000
"""Default maximum of tokens per text, estimated on the high side, unless the model sets `max_tokens`; OpenAI accepts 8,191."""

EMBEDDING_FIELDS = (
    field("embedder", pa.string(), "Model that made the vector, with the length of its windows where that was set"),
    field("text_hash", pa.string(), "Hash of the embedded text"),
    field("vector", pa.list_(pa.float32()), "Embedding: vectors of one embedder have one length"),
    field("windows", pa.int32(), "Parts that the text was embedded in, 1 unless it is longer than a window"),
)
"""One row per text that an embedder has embedded: the columns that every family's table of vectors has."""
EMBEDDING_SCHEMA = pa.schema(EMBEDDING_FIELDS)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that fits in an embedder's window."""

    text: str
    tokens: int
    """Its weight in the vector of the whole text."""


def hash_text(text: str) -> str:
    """Return 32 hexadecimal digits that identify a text in vector tables."""
    return digest(text)


def identify_embedder(spec: ModelSpec) -> str:
    """Return the identity of an embedder: its model string, and `max_tokens` (window length) if the models file sets it.

    Raises ConfigError if the model embeds no texts or has a sampling parameter, which an embedder would ignore.
    """
    if spec.is_computed or (spec.is_local and spec.model != LOCAL_EMBEDDER):
        raise ConfigError(
            f"model {spec.name!r} embeds no texts; allowed: {LOCAL_EMBEDDER}, or a model that a server embeds with"
        )
    settings = [name for name in SAMPLING if name in spec.model_fields_set and getattr(spec, name) is not None]
    extras = [
        name for name in settings if name not in ("max_tokens", "temperature") or (name == "temperature" and spec.temperature)
    ]
    if extras:
        raise ConfigError(
            f"model {spec.name!r}, as an embedder: got {', '.join(extras)}, which embeddings do not have; allowed: "
            "max_tokens (the longest text that it takes at once)"
        )
    return f"{spec.model}[max_tokens={spec.max_tokens}]" if "max_tokens" in settings and not spec.is_local else spec.model


def split_into_pieces(text: str, limit: int = EMBEDDER_WINDOW) -> list[Piece]:
    """Split the whole text, in order, between words into windows of at most `limit` tokens (see `estimate_tokens`).

    A longer word is cut at its characters. A text that fits is one piece.
    """
    if (total := estimate_tokens(text)) <= limit:
        return [Piece(text, total)]
    pieces: list[Piece] = []
    piece, tokens = "", 0
    for word in _split_words(text, limit):
        size = estimate_tokens(word)
        if piece and tokens + size > limit:
            pieces.append(Piece(piece, tokens))
            piece, tokens = "", 0
        piece, tokens = piece + word, tokens + size
    return [*pieces, Piece(piece, tokens)]


def _split_words(text: str, limit: int) -> Iterator[str]:
    """Yield the words with their trailing white space; a word of more than `limit` tokens in parts of at most `limit` characters."""
    start = 0
    starts = [place for place in range(1, len(text)) if text[place - 1].isspace() and not text[place].isspace()]
    for end in (*starts, len(text)):
        word, start = text[start:end], end
        if estimate_tokens(word) <= limit:
            yield word
        else:
            yield from (word[place : place + limit] for place in range(0, len(word), limit))


def combine_piece_vectors(vectors: Vectors, tokens: Sequence[int]) -> Vectors:
    """Return the vector of a text, (dimensions,), from those of its pieces, (pieces, dimensions).

    A single vector is returned unchanged. Several give the mean of their unit vectors, weighted by tokens, at unit length.
    """
    if len(vectors) == 1:
        only: Vectors = vectors[0]
        return only
    mean = np.average(normalize_vectors(vectors.astype(np.float64)), axis=0, weights=tokens)
    return normalize_vectors(mean).astype(np.float32)


def normalize_vectors(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Scale the vectors (last axis) to length 1; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: npt.NDArray[Any] = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return result


def split_text_batches(texts: Sequence[str]) -> list[range]:
    """Split the texts into calls, as index ranges of at most `BATCH_TEXTS` texts and `BATCH_CHARACTERS` characters, or one longer text."""
    batches: list[range] = []
    start = characters = 0
    for place, text in enumerate(texts):
        if place > start and (place - start == BATCH_TEXTS or characters + len(text) > BATCH_CHARACTERS):
            batches.append(range(start, place))
            start, characters = place, 0
        characters += len(text)
    return [*batches, range(start, len(texts))] if texts else batches


def decode_vectors(data: Sequence[Mapping[str, Any]], count: int) -> Vectors:
    """Return the vectors of a server's response, (count, dimensions), in the order of the texts that were sent.

    Args:
        data: one entry per text, in any order: `index` (position among the texts; if no entry has one, they are in order) and
            `embedding`, a list of numbers or base64 of 32-bit floats, little-endian.
        count: number of texts that were sent.

    Raises ValueError if a vector is missing, duplicate, of another length than the others, or not all finite numbers.
    """
    places = [entry.get("index") for entry in data]
    order = [
        int(place) for place in (range(count) if all(place is None for place in places) else places) if isinstance(place, int)
    ]
    if len(data) != count or sorted(order) != list(range(count)):
        raise ValueError(
            f"{format_count(len(data), 'embedding')} of {format_count(count, 'text')}, with the places {_format_first_few(places)}"
        )
    rows = [_decode_vector(entry.get("embedding")) for entry in data]
    if len(lengths := {len(row) for row in rows}) != 1 or lengths == {0}:
        raise ValueError(f"embeddings of the lengths {', '.join(map(str, sorted(lengths)))}")
    vectors = np.empty((count, len(rows[0])), np.float32)
    vectors[order] = rows
    if not np.isfinite(vectors).all():
        raise ValueError("an embedding that holds something other than finite numbers")
    return vectors


def _decode_vector(embedding: Any) -> Vectors:
    try:
        if isinstance(embedding, str):
            return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
        if not isinstance(embedding, list) or any(isinstance(number, (bool, str)) for number in embedding):
            raise ValueError(f"got {type(embedding).__name__}")
        # A number beyond 32 bits becomes an infinity, which is refused with the others.
        with np.errstate(over="ignore"):
            return np.array(embedding, np.float64).reshape(len(embedding)).astype(np.float32)
    except (ValueError, TypeError, binascii.Error) as error:
        raise ValueError(f"an embedding is neither a list of numbers nor base64 of 32-bit floats: {error}") from None


def _format_first_few(values: Sequence[object]) -> str:
    return ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")


def encode_stored_vectors(vectors: Vectors) -> str:
    """Encode vectors, (rows, dimensions), as the text in which the response store keeps them."""
    content = base64.b64encode(vectors.astype("<f4").tobytes()).decode("ascii")
    return json.dumps({"shape": list(vectors.shape), "float32": content}, separators=(",", ":"))


def decode_stored_vectors(text: str) -> Vectors:
    """Decode a text of `encode_stored_vectors`. Raises ValueError for any other text."""
    try:
        content = json.loads(text)
        flat = np.frombuffer(base64.b64decode(content["float32"], validate=True), "<f4")
        return flat.reshape([int(size) for size in content["shape"]])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no stored vectors: {error!r}") from None


def build_vector_table(embedder: str, rows: Mapping[str, tuple[Vectors, int]]) -> pa.Table:
    """Return an `EMBEDDING_SCHEMA` table, one row per text hash, sorted by it. `rows`: (vector, windows) by text hash."""
    hashes = sorted(rows)
    vectors = [rows[text_hash][0] for text_hash in hashes]
    offsets = np.cumsum([0, *map(len, vectors)], dtype=np.int32)
    values = np.concatenate(vectors) if vectors else np.empty(0, np.float32)
    columns = [
        pa.repeat(pa.scalar(embedder, pa.string()), len(hashes)),
        pa.array(hashes, pa.string()),
        pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values.astype(np.float32), pa.float32())),
        pa.array([rows[text_hash][1] for text_hash in hashes], pa.int32()),
    ]
    return pa.table(columns, schema=EMBEDDING_SCHEMA)
