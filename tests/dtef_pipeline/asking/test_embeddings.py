"""Estimated tokens; texts put together for calls, answers read, windows of long texts, and the table of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.embeddings import (
    BATCH_CHARACTERS,
    BATCH_TEXTS,
    build_vector_table,
    combine_piece_vectors,
    decode_stored_vectors,
    decode_vectors,
    encode_stored_vectors,
    hash_text,
    identify_embedder,
    split_into_pieces,
    split_text_batches,
)
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.errors import ConfigError

finite = st.floats(-1e6, 1e6, width=32)


def entry(index: int | None, embedding: Any) -> dict[str, Any]:
    return {"index": index, "embedding": embedding}


class TestBatches:
    def test_a_batch_ends_before_100_000_characters_are_exceeded(self) -> None:
        assert split_text_batches(["a" * 60_000, "b" * 40_000, "c"]) == [range(2), range(2, 3)]

    @given(st.lists(st.integers(0, 150_000), max_size=80))
    def test_every_text_is_in_one_batch_in_order_and_within_the_limits(self, lengths: list[int]) -> None:
        found = split_text_batches(["x" * length for length in lengths])
        assert [place for part in found for place in part] == list(range(len(lengths)))
        for part in found:
            assert len(part) <= BATCH_TEXTS
            assert len(part) == 1 or sum(lengths[place] for place in part) <= BATCH_CHARACTERS


class TestDecoded:
    def test_without_places_they_are_in_order(self) -> None:
        assert decode_vectors([entry(None, [1.0]), entry(None, [2.0])], 2).tolist() == [[1], [2]]

    @pytest.mark.parametrize(
        ("data", "problem"),
        [
            ([entry(0, [1.0])], "1 embedding of 2 texts"),
            ([entry(0, [1.0]), entry(0, [1.0])], "with the places 0, 0"),
            ([entry(0, [1.0]), entry(None, [1.0])], "with the places 0, None"),
            ([entry(0, [1.0]), entry(1, [1.0, 2.0])], "embeddings of the lengths 1, 2"),
            ([entry(0, [1.0]), entry(1, [math.nan])], "something other than finite numbers"),
            ([entry(0, [1.0]), entry(1, [1e300])], "something other than finite numbers"),
            ([entry(0, [1.0]), entry(1, [True])], "neither a list of numbers nor base64"),
            ([entry(0, [1.0]), entry(1, [[1.0, 2.0]])], "neither a list of numbers nor base64"),
            ([entry(0, [1.0]), entry(1, "§§§")], "neither a list of numbers nor base64"),
        ],
    )
    def test_anything_but_one_vector_a_text_is_refused(self, data: list[dict[str, Any]], problem: str) -> None:
        with pytest.raises(ValueError, match=problem):
            decode_vectors(data, 2)

    @given(st.lists(st.lists(finite, min_size=3, max_size=3), min_size=1, max_size=9), st.randoms(use_true_random=False))
    def test_the_order_of_an_answer_does_not_matter(self, rows: list[list[float]], random: Any) -> None:
        data = [entry(place, row) for place, row in enumerate(rows)]
        random.shuffle(data)
        assert np.array_equal(decode_vectors(data, len(rows)), np.array(rows, np.float32))


class TestPieces:
    def test_a_long_text_is_cut_between_words(self) -> None:
        assert [piece.text for piece in split_into_pieces("one two three four five", 2)] == ["one two ", "three four ", "five"]

    @given(st.text(max_size=100), st.integers(1, 20))
    def test_pieces_are_the_whole_text_and_none_is_longer_than_a_window(self, text: str, most: int) -> None:
        found = split_into_pieces(text, most)
        assert "".join(piece.text for piece in found) == text
        assert all(estimate_tokens(piece.text) <= most for piece in found)

    def test_the_vector_of_several_is_their_mean_by_tokens_at_length_1_and_that_of_one_as_sent(self) -> None:
        # Unit vectors (1, 0) and (0, 1), three tokens and one: (3, 1) / sqrt(10).
        whole = combine_piece_vectors(np.array([[2, 0], [0, 5]], np.float32), [3, 1])
        assert whole.tolist() == pytest.approx([3 / math.sqrt(10), 1 / math.sqrt(10)])
        assert combine_piece_vectors(np.array([[2, 0]], np.float32), [7]).tolist() == [2, 0]


class TestKept:
    @given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
    def test_stored_vectors_are_the_same_bits(self, rows: int, columns: int, seed: int) -> None:
        vectors = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
        assert np.array_equal(decode_stored_vectors(encode_stored_vectors(vectors)), vectors)

    @pytest.mark.parametrize("text", ["", "[1, 2]", "null", '{"shape": [1, 2]}', '{"shape": [3], "float32": "AAAA"}'])
    def test_another_text_holds_no_vectors(self, text: str) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - json's, numpy's and our own
            decode_stored_vectors(text)

    def test_a_table_has_a_row_a_text_sorted_by_hash(self) -> None:
        table = build_vector_table("e", {"b": (np.array([3, 4], np.float32), 2), "a": (np.array([1, 2], np.float32), 1)})
        assert table.to_pylist() == [
            {"embedder": "e", "text_hash": "a", "vector": [1, 2], "windows": 1},
            {"embedder": "e", "text_hash": "b", "vector": [3, 4], "windows": 2},
        ]

    def test_a_hash_stands_for_one_text(self) -> None:
        assert hash_text("a") == hash_text("a") != hash_text("a ")
        assert len(hash_text("")) == 32


class TestEmbedder:
    @pytest.mark.parametrize(
        ("settings", "name"),
        [({}, "openai/e"), ({"max_tokens": 512}, "openai/e[max_tokens=512]"), ({"temperature": 0}, "openai/e")],
    )
    def test_it_is_distinguished_by_its_model_and_its_window(self, settings: dict[str, Any], name: str) -> None:
        assert identify_embedder(ModelSpec(name="e", model="openai/e", **settings)) == name

    @pytest.mark.parametrize("settings", [{"temperature": 0.5}, {"seed": 1}, {"reasoning_effort": "low"}])
    def test_it_takes_no_sampling_parameter(self, settings: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match=f"model 'e', as an embedder: got {next(iter(settings))}"):
            identify_embedder(ModelSpec(name="e", model="openai/e", **settings))


def naive(text: str) -> int:
    """Character by character: a token goes on while the run does, up to six letters or three digits."""
    tokens, kind, length = 0, "", 0
    for character in text:
        if character.isascii() and character.isalpha():
            now, most = "letter", 6
        elif character.isdecimal():
            # Digits of other scripts are tokens of their own, unless they go on a run of digits that ours began.
            now, most = "digit", 3
        elif character == "\n":
            now, most = "line end", 10**9
        elif character.isspace() and character.isascii():
            now, most = "", 0
        else:
            now, most = "other", 1
        length = length + 1 if now == kind and length < most else 1
        tokens += now != "" and length == 1
        kind = now
    return tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("   ", 0),
        ("agree", 1),
        ("strongly", 2),
        ("2026", 2),
        ("\n\n\n", 1),
        ("[40.2, 30]", 7),
        ("don't", 3),
        ("naïve", 3),
        ("x\u00a0y", 3),
        ("\x1c\x0b\t", 0),
    ],
)
def test_by_hand(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(st.sampled_from("aZbc019 \n\t\r\x0b\x1f.,%_é漢\u0663\u00a0\u2028K"), max_size=60))
def test_it_is_the_plain_definition(text: str) -> None:
    assert estimate_tokens(text) == naive(text)


@given(st.text(st.characters(max_codepoint=127), max_size=200), st.sampled_from("a0\n ."), st.integers(0, 40))
def test_long_runs_of_ascii(text: str, character: str, length: int) -> None:
    text = text + character * length + text
    assert estimate_tokens(text) == naive(text)
