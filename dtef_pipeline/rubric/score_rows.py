"""The scores of a blueprint's snapshot, from tables only. Scoring makes no requests, so repeating it costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.embeddings import hash_text, identify_embedder
from dtef_pipeline.asking.models import Models, ModelSpec, resolve_known_selector
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.aggregate import SCORE_COLUMNS, compute_blueprint_scores, weigh_prompts
from dtef_pipeline.rubric.conversations import OK
from dtef_pipeline.rubric.coverage import compute_coverage
from dtef_pipeline.rubric.hybrid import OFFLINE_EMBEDDER, ScoringPolicy
from dtef_pipeline.rubric.levels import PROMPT_KEYS, RESPONSE_KEYS, cast_keys, group_rows, sort_unique
from dtef_pipeline.rubric.tables import RUBRIC_SCORES, RUBRIC_SIMILARITIES
from dtef_pipeline.text.number_words import format_count

Floats = npt.NDArray[np.float64]

_ROWS_AT_A_TIME = 8_192
"""Pairs of vectors that are multiplied at a time, to bound memory."""


class PromptMatrix(NamedTuple):
    """Similarities of the texts of one prompt: its responses, and the ideal answer if there is one."""

    prompt: dict[str, str]
    """blueprint, snapshot and prompt."""
    texts: pd.DataFrame
    """(texts, keys of a response): model null is the ideal answer, which is the last."""
    matrix: Floats
    """(texts, texts), -1 to 1, symmetric, 1 on the diagonal; NaN where a vector is missing."""


def compute_cosine_matrix(vectors: npt.ArrayLike) -> Floats:
    """Return the cosines of all pairs of `vectors` (texts, dimensions): (texts, texts), symmetric and 1 on the diagonal.

    NaN in the row and column of a text whose vector is missing (NaN).
    """
    units = _scale_to_length_1(np.atleast_2d(np.asarray(vectors, dtype=np.float64)))
    left, right = np.triu_indices(len(units), k=1)
    matrix = np.diag(np.where(np.isnan(units).any(axis=1), np.nan, 1.0))
    matrix[left, right] = matrix[right, left] = _compute_unit_cosine(units, units, left, right)
    return matrix


def stack_vectors(vectors: Sequence[npt.ArrayLike | None]) -> Floats:
    """Stack vectors as rows, (texts, dimensions); NaN for missing ones.

    Raises ConfigError if their lengths differ, or a number is not finite.
    """
    rows = [None if vector is None else np.asarray(vector, dtype=np.float64) for vector in vectors]
    lengths = sorted({len(row) for row in rows if row is not None})
    if len(lengths) > 1:
        raise ConfigError(
            f"similarity: got vectors of the lengths {lengths}; allowed: vectors of one embedder, which have one length"
        )
    matrix = np.full((len(rows), lengths[0] if lengths else 0), np.nan)
    for i, row in enumerate(rows):
        if row is not None:
            if not np.isfinite(row).all():
                raise ConfigError(f"similarity: vector {i} has a number that is not finite; allowed: finite numbers, or null")
            matrix[i] = row
    return matrix


def compute_similarities_to_ideal(responses: pd.DataFrame, ideals: pd.DataFrame) -> pd.DataFrame:
    """Return one row per response, sorted by its keys: `similarity` to the ideal answer of its prompt, -1 to 1.

    `responses`: the keys of a response and `vector`, a list of numbers or null. `ideals`: blueprint, prompt, snapshot if it is a column,
    and `vector`; one row per prompt with an ideal answer. Null if either vector is missing. Raises ConfigError if lengths of vectors
    differ.
    """
    rows, ideal_rows, keys = _order_similarity_inputs(responses, ideals)
    answer_vectors, ideal = _stack_columns(rows["vector"], ideal_rows["vector"])
    place = rows[keys].merge(ideal_rows[keys].assign(place=np.arange(len(ideal_rows))), "left", keys)["place"]
    has = place.notna().to_numpy()
    similarity = np.full(len(rows), np.nan)
    index = np.flatnonzero(has)
    similarity[index] = _compute_unit_cosine(
        _scale_to_length_1(answer_vectors), _scale_to_length_1(ideal), index, place[has].to_numpy(dtype=np.int64)
    )
    return rows[list(RESPONSE_KEYS)].assign(similarity=similarity)


def iterate_prompt_matrices(responses: pd.DataFrame, ideals: pd.DataFrame) -> Iterator[PromptMatrix]:
    """Yield the matrix of each prompt that has responses, in the order of their keys; tables: see `compute_similarities_to_ideal`."""
    rows, ideal_rows, keys = _order_similarity_inputs(responses, ideals)
    last = rows[list(PROMPT_KEYS)].drop_duplicates().merge(ideal_rows, "inner", keys, validate="many_to_one")
    texts = pd.concat([rows, last.reindex(columns=rows.columns)], ignore_index=True)
    vectors = np.concatenate(_stack_columns(rows["vector"], last["vector"]))
    prompts = group_rows(texts, PROMPT_KEYS)
    order = np.argsort(prompts.code, kind="stable")
    bounds = np.searchsorted(prompts.code[order], np.arange(len(prompts) + 1))
    for index, key in enumerate(prompts.keys.to_dict("records")):
        part = order[bounds[index] : bounds[index + 1]]
        named = texts.iloc[part][list(RESPONSE_KEYS)].reset_index(drop=True)
        yield PromptMatrix({str(name): str(value) for name, value in key.items()}, named, compute_cosine_matrix(vectors[part]))


def _order_similarity_inputs(responses: pd.DataFrame, ideals: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return both tables sorted by their keys, and the keys of a prompt that they share."""
    rows = sort_unique(cast_keys(responses, "responses", (*RESPONSE_KEYS, "vector")), RESPONSE_KEYS, "responses")
    ideal_rows = cast_keys(ideals, "ideals", ("blueprint", "prompt", "vector"))
    keys = [name for name in PROMPT_KEYS if name in ideal_rows]
    return rows[[*RESPONSE_KEYS, "vector"]], sort_unique(ideal_rows, keys, "ideals")[[*keys, "vector"]], keys


def _stack_columns(*columns: pd.Series) -> list[Floats]:
    """Return each column's vectors, all of one length."""
    every = [None if vector is None or np.isscalar(vector) else vector for column in columns for vector in column]
    return np.split(stack_vectors(every), np.cumsum([len(column) for column in columns])[:-1])


def _scale_to_length_1(vectors: Floats) -> Floats:
    """Return the vectors scaled to length 1; zero vectors stay zero."""
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    units = np.divide(vectors, largest, out=vectors.copy(), where=largest > 0)
    length = np.sqrt(np.einsum("ij,ij->i", units, units))[:, None]
    return np.asarray(np.divide(units, length, out=units, where=length > 0))


def _compute_unit_cosine(
    left: Floats, right: Floats, left_at: npt.NDArray[np.int64] | None = None, right_rows: npt.NDArray[np.int64] | None = None
) -> Floats:
    """Return cosines of vectors of length 1, (pairs,): row by row, or of the rows `left_at` of `left` and `right_rows` of `right`."""
    first = np.arange(len(left)) if left_at is None else left_at
    second = np.arange(len(right)) if right_rows is None else right_rows
    cosines = np.empty(len(first))
    for start in range(0, len(first), _ROWS_AT_A_TIME):
        block = slice(start, start + _ROWS_AT_A_TIME)
        cosines[block] = np.einsum("ij,ij->i", left[first[block]], right[second[block]])
    return np.clip(cosines, -1.0, 1.0)


PEOPLE = "people"
"""Listed among the judges of a run that was scored with people's labels; such runs are not compared with others."""
NO_OWN_JUDGE = "no own judge"
"""Listed there, too, if judgements of a maker's own judge were left out."""
_RESPONSE_NAMES = list(RESPONSE_KEYS)
_POLICY_FIELDS = tuple(field.name for field in fields(ScoringPolicy))


class ScoreTables(NamedTuple):
    """The score tables of one blueprint and snapshot."""

    rubric_scores: pa.Table
    rubric_similarities: pa.Table


def score_tables(
    responses: pa.Table, prompts: pa.Table, criteria: pa.Table, points: pa.Table, embeddings: pa.Table, policy: ScoringPolicy
) -> ScoreTables:
    """Return scores and similarities, from `rubric_responses`, `rubric_prompts`, `rubric_criteria`, `rubric_points` and
    `rubric_embeddings`.

    Only embeddings of the policy's embedder count. Equal rows in another order give equal bits.
    """
    vectors = _read_vectors(embeddings, policy.embedder)
    answers = responses.filter(pc.is_in(responses["prompt"], prompts["prompt"].combine_chunks()))
    vector_rows, ideals = _add_response_vectors(answers, vectors), _read_ideals(prompts, vectors)
    frame = prompts.select(["blueprint", "prompt", "weight", "ideal"]).to_pandas()
    prompt_weights = weigh_prompts(frame, criteria.select(["blueprint", "prompt"]).to_pandas())
    status = pd.Series(answers["status"].to_pylist(), dtype=object)
    plan = answers.select(_RESPONSE_NAMES).to_pandas().assign(reason=status.where(status != OK))
    similar = compute_similarities_to_ideal(vector_rows, ideals)
    scores = compute_blueprint_scores(plan, prompt_weights, compute_coverage(points.to_pandas(), policy), similar, policy)
    return ScoreTables(_score_rows(scores), _build_similarity_rows(vector_rows, ideals, similar, policy.embedder))


def select_texts_to_embed(responses: pa.Table, prompts: pa.Table, *, every_prompt: bool) -> dict[str, str]:
    """Return the texts to embed, by hash: ideal answers, and responses to prompts with one, or with `every_prompt` to all prompts."""
    has_ideal = prompts.filter(pc.is_valid(prompts["ideal"]))
    ok = responses.filter(pc.equal(responses["status"], OK))
    if not every_prompt:
        ok = ok.filter(pc.is_in(ok["prompt"], has_ideal["prompt"].combine_chunks()))
    texts = [*has_ideal["ideal"].to_pylist(), *ok["text"].to_pylist()]
    return {hash_text(text): text for text in dict.fromkeys(texts)}


def choose_embedder(name: str | None, models: Models) -> ModelSpec:
    """Return the embedder by its name or litellm string, which selects the model of the models file with that string, if any.

    None: the embedder that needs no server. Raises ConfigError if the name selects no or several models, or a model that cannot embed
    texts.
    """
    selector = name or OFFLINE_EMBEDDER
    specs = models.resolve([resolve_known_selector(selector, models)])
    if len(specs) != 1:
        raise ConfigError(f"embedder {selector!r} selects {format_count(len(specs), 'model')}; allowed: one model")
    identify_embedder(specs[0])
    return specs[0]


def describe_counted(*, has_labels: bool, no_own_judge: bool) -> list[str]:
    """Return the notes after the judges of a run: that people's labels count, and that judgements of own judges do not."""
    return [*([PEOPLE] if has_labels else []), *([NO_OWN_JUDGE] if no_own_judge else [])]


def hash_counted(judge_hash: str, *, has_labels: bool, no_own_judge: bool) -> str:
    """Hash the judges and which judgements count: runs that differ in either are not compared for drift."""
    notes = describe_counted(has_labels=has_labels, no_own_judge=no_own_judge)
    return digest(judge_hash, *notes) if notes else judge_hash


def run_hash(test_hash: str, judge_hash: str, policy_hash: str) -> str:
    """Hash what runs must share to be compared for drift (weval methodology, 5.2): test, judges and policy."""
    return digest("run", test_hash, judge_hash, policy_hash)


def format_policy(policy: ScoringPolicy) -> str:
    """Format a policy as `beta=0.35, or_paths=document, ...`."""
    return ", ".join(f"{name}={value}" for name, value in asdict(policy).items())


def parse_policy(text: str) -> ScoringPolicy:
    """Parse the output of `format_policy`. Raises ConfigError for any other text."""
    parts = dict(part.partition("=")[::2] for part in text.split(", ", len(_POLICY_FIELDS) - 1))
    if tuple(parts) != _POLICY_FIELDS:
        raise ConfigError(f"policy: got {text!r}; allowed: {', '.join(f'{name}=...' for name in _POLICY_FIELDS)}")
    return ScoringPolicy(float(parts["beta"]), parts["or_paths"], parts["should_not_paths"], parts["embedder"])


def _read_vectors(embeddings: pa.Table, embedder: str) -> dict[str, np.ndarray]:
    rows = embeddings.filter(pc.equal(embeddings["embedder"], embedder))
    return dict(zip(rows["text_hash"].to_pylist(), rows["vector"].to_numpy(), strict=True)) if len(rows) else {}


def _add_response_vectors(responses: pa.Table, vectors: dict[str, np.ndarray]) -> pd.DataFrame:
    """Return the responses with a text, and their vectors if known."""
    ok = responses.filter(pc.equal(responses["status"], OK))
    text_vectors = [vectors.get(hash_text(text)) for text in ok["text"].to_pylist()]
    rows: pd.DataFrame = ok.select(_RESPONSE_NAMES).to_pandas()
    return rows.assign(vector=pd.Series(text_vectors, dtype=object))


def _read_ideals(prompts: pa.Table, vectors: dict[str, np.ndarray]) -> pd.DataFrame:
    ideals = prompts.filter(pc.is_valid(prompts["ideal"]))
    text_vectors = [vectors.get(hash_text(text)) for text in ideals["ideal"].to_pylist()]
    rows: pd.DataFrame = ideals.select(["blueprint", "prompt"]).to_pandas()
    return rows.assign(vector=pd.Series(text_vectors, dtype=object))


def _score_rows(scores: pd.DataFrame) -> pa.Table:
    columns = {name: scores[name] for name in SCORE_COLUMNS}
    arrays = [pa.array(columns[field.name], field.type, from_pandas=True) for field in RUBRIC_SCORES]
    return pa.table(arrays, schema=RUBRIC_SCORES)


def _build_similarity_rows(answers: pd.DataFrame, ideals: pd.DataFrame, similar: pd.DataFrame, embedder: str) -> pa.Table:
    """Return one row per response that has a vector: its similarity to the ideal, and to every response of its prompt."""
    vector_rows = answers[answers["vector"].notna()]
    tables = list(_iterate_matrix_rows(vector_rows, ideals)) if len(vector_rows) else []
    if not tables:
        return RUBRIC_SIMILARITIES.empty_table()
    rows = pd.concat(tables, ignore_index=True).assign(embedder=embedder)
    rows = rows.merge(similar.rename(columns={"similarity": "ideal_similarity"}), "left", _RESPONSE_NAMES)
    arrays = [pa.array(rows[field.name], field.type, from_pandas=True) for field in RUBRIC_SIMILARITIES]
    return pa.table(arrays, schema=RUBRIC_SIMILARITIES)


def _iterate_matrix_rows(vector_rows: pd.DataFrame, ideals: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for prompt_matrix in iterate_prompt_matrices(vector_rows, ideals.iloc[:0]):
        values = prompt_matrix.matrix.astype(np.float32)
        yield prompt_matrix.texts.assign(place=np.arange(len(values)), response_similarities=list(values))
