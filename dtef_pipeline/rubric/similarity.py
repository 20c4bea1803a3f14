"""How similar two texts are, by the angle between their vectors.

Source: weval methodology, 4.1, cosine similarity. Every value has the same bits whatever other vectors are measured with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.levels import PROMPT_KEYS, RESPONSE_KEYS, grouped, in_order, with_key_types
from dtef_pipeline.text.counted import counted

Floats = npt.NDArray[np.float64]

_ROWS_AT_A_TIME = 8_192
"""Pairs of vectors that are multiplied at a time, to bound memory."""


class PromptMatrix(NamedTuple):
    """Every two texts of one prompt: its responses, and the ideal answer where there is one."""

    prompt: dict[str, str]
    """blueprint, snapshot and prompt."""
    texts: pd.DataFrame
    """(texts, keys of a response): model null is the ideal answer, which is the last."""
    matrix: Floats
    """(texts, texts), -1 to 1, symmetric, 1 on the diagonal; NaN where a vector is missing."""


def cosine(left: npt.ArrayLike, right: npt.ArrayLike) -> Floats:
    """Similarity of each two vectors, (rows, dimensions) both or (dimensions,) both: (rows,), -1 to 1, higher is more alike.

    left right / (|left| |right|), clipped to the range; 0 where a vector is all zeros, NaN where one has a NaN, which stands for a missing
    vector. Raises ConfigError where the lengths of the vectors differ.
    """
    a, b = (np.atleast_2d(np.asarray(side, dtype=np.float64)) for side in (left, right))
    if a.shape != b.shape:
        raise ConfigError(
            f"similarity: got vectors of {_sizes(a)} and {_sizes(b)}; allowed: the same length, as of one embedder"
        )
    return _unit_cosine(_unit(a), _unit(b))


def cosine_matrix(vectors: npt.ArrayLike) -> Floats:
    """(texts, texts) similarity of every two of `vectors` (texts, dimensions), symmetric and 1 on the diagonal.

    NaN in the row and the column of a text whose vector is missing (NaN).
    """
    units = _unit(np.atleast_2d(np.asarray(vectors, dtype=np.float64)))
    left, right = np.triu_indices(len(units), k=1)
    matrix = np.diag(np.where(np.isnan(units).any(axis=1), np.nan, 1.0))
    matrix[left, right] = matrix[right, left] = _unit_cosine(units, units, left, right)
    return matrix


def stacked(vectors: Sequence[npt.ArrayLike | None]) -> Floats:
    """(texts, dimensions): vectors one below the other, NaN for one that is missing.

    Raises ConfigError where their lengths differ, or a number is not finite.
    """
    rows = [None if vector is None else np.asarray(vector, dtype=np.float64) for vector in vectors]
    lengths = sorted({len(row) for row in rows if row is not None})
    if len(lengths) > 1:
        raise ConfigError(f"similarity: got vectors of the lengths {lengths}; allowed: one length, as of one embedder")
    found = np.full((len(rows), lengths[0] if lengths else 0), np.nan)
    for at, row in enumerate(rows):
        if row is not None:
            if not np.isfinite(row).all():
                raise ConfigError(f"similarity: vector {at} has a number that is not finite; allowed: finite numbers, or null")
            found[at] = row
    return found


def similarities(responses: pd.DataFrame, ideals: pd.DataFrame) -> pd.DataFrame:
    """One row per response, sorted by its keys: `similarity` to the ideal answer of its prompt, -1 to 1.

    `responses`: the keys of a response and `vector`, a list of numbers or null. `ideals`: blueprint, prompt and, if it is a column, snapshot,
    and `vector`; one row per prompt that has one. Null where either vector is missing. Raises ConfigError where lengths of vectors differ.
    """
    rows, wanted, of_prompt = _given(responses, ideals)
    own, ideal = _vectors(rows["vector"], wanted["vector"])
    place = rows[of_prompt].merge(wanted[of_prompt].assign(place=np.arange(len(wanted))), "left", of_prompt)["place"]
    has = place.notna().to_numpy()
    similarity = np.full(len(rows), np.nan)
    at = np.flatnonzero(has)
    similarity[at] = _unit_cosine(_unit(own), _unit(ideal), at, place[has].to_numpy(dtype=np.int64))
    return rows[list(RESPONSE_KEYS)].assign(similarity=similarity)


def prompt_matrices(responses: pd.DataFrame, ideals: pd.DataFrame) -> Iterator[PromptMatrix]:
    """The matrix of each prompt that has responses, in the order of their keys; tables as of `similarities`."""
    rows, wanted, of_prompt = _given(responses, ideals)
    last = rows[list(PROMPT_KEYS)].drop_duplicates().merge(wanted, "inner", of_prompt, validate="many_to_one")
    texts = pd.concat([rows, last.reindex(columns=rows.columns)], ignore_index=True)
    vectors = np.concatenate(_vectors(rows["vector"], last["vector"]))
    prompts = grouped(texts, PROMPT_KEYS)
    order = np.argsort(prompts.code, kind="stable")
    bounds = np.searchsorted(prompts.code[order], np.arange(len(prompts) + 1))
    for at, key in enumerate(prompts.keys.to_dict("records")):
        own = order[bounds[at] : bounds[at + 1]]
        named = texts.iloc[own][list(RESPONSE_KEYS)].reset_index(drop=True)
        yield PromptMatrix({str(name): str(value) for name, value in key.items()}, named, cosine_matrix(vectors[own]))


def _given(responses: pd.DataFrame, ideals: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Both tables in the order of their keys, and the keys of a prompt that they share."""
    rows = in_order(with_key_types(responses, "responses", (*RESPONSE_KEYS, "vector")), RESPONSE_KEYS, "responses")
    wanted = with_key_types(ideals, "ideals", ("blueprint", "prompt", "vector"))
    of_prompt = [name for name in PROMPT_KEYS if name in wanted]
    return rows[[*RESPONSE_KEYS, "vector"]], in_order(wanted, of_prompt, "ideals")[[*of_prompt, "vector"]], of_prompt


def _vectors(*columns: pd.Series) -> list[Floats]:
    """Each column's vectors, all of one length."""
    every = [None if vector is None or np.isscalar(vector) else vector for column in columns for vector in column]
    return np.split(stacked(every), np.cumsum([len(column) for column in columns])[:-1])


def _unit(vectors: Floats) -> Floats:
    """The vectors at length 1, zeros where a vector is all zeros."""
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    scaled = np.divide(vectors, largest, out=vectors.copy(), where=largest > 0)
    length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return np.asarray(np.divide(scaled, length, out=scaled, where=length > 0))


def _unit_cosine(
    left: Floats, right: Floats, at: npt.NDArray[np.int64] | None = None, other: npt.NDArray[np.int64] | None = None
) -> Floats:
    """(pairs,) of vectors of length 1: `left` and `right` row by row, or the rows `at` and `other` of them."""
    first = np.arange(len(left)) if at is None else at
    second = np.arange(len(right)) if other is None else other
    found = np.empty(len(first))
    for start in range(0, len(first), _ROWS_AT_A_TIME):
        block = slice(start, start + _ROWS_AT_A_TIME)
        found[block] = np.einsum("ij,ij->i", left[first[block]], right[second[block]])
    return np.clip(found, -1.0, 1.0)


def _sizes(vectors: Floats) -> str:
    return f"{counted(len(vectors), 'row')} of {counted(vectors.shape[1], 'number')}"
