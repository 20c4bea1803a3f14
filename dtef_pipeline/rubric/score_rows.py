"""The scores of a blueprint's snapshot, from tables only. Scoring makes no requests, so repeating it costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.embeddings import hash_text, identify_embedder
from dtef_pipeline.asking.models import Models, ModelSpec, resolve_known_selector
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.scoring import compute_blueprint_scores, weigh_prompts
from dtef_pipeline.rubric.conversations import OK
from dtef_pipeline.rubric.scoring import compute_coverage
from dtef_pipeline.rubric.scoring import OFFLINE_EMBEDDER, ScoringPolicy
from dtef_pipeline.rubric.levels import PROMPT_KEYS, RESPONSE_KEYS, cast_keys, sort_unique
from dtef_pipeline.rubric.tables import RUBRIC_SCORES, RUBRIC_SIMILARITIES
from dtef_pipeline.tables import convert_to_schema
from dtef_pipeline.text.number_words import format_count

_ROWS_AT_A_TIME = 8_192
"""Pairs of vectors that are multiplied at a time, to bound memory."""


def compute_cosine_matrix(vectors: npt.ArrayLike) -> Floats:
    """Return the cosines of all pairs of `vectors` (texts, dimensions): (texts, texts), symmetric and 1 on the diagonal."""
    units = _scale_to_length_1(np.atleast_2d(np.asarray(vectors, dtype=np.float64)))
    left, right = np.triu_indices(len(units), k=1)
    matrix = np.eye(len(units))
    matrix[left, right] = matrix[right, left] = _compute_unit_cosine(units, units, left, right)
    return matrix


def stack_vectors(vectors: Sequence[npt.ArrayLike | None]) -> Floats:
    """Stack vectors of one length as rows, (texts, dimensions); NaN for missing ones."""
    size = next((len(np.asarray(vector)) for vector in vectors if vector is not None), 0)
    missing = np.full(size, np.nan)
    rows = [missing if vector is None else vector for vector in vectors]
    return np.asarray(rows, dtype=np.float64).reshape(len(rows), size)


def compute_similarities_to_ideal(responses: pd.DataFrame, ideals: pd.DataFrame) -> pd.DataFrame:
    """Return one row per response, sorted by its keys: `similarity` to the ideal answer of its prompt, -1 to 1.

    `responses`: the keys of a response and `vector`, a list of numbers or null. `ideals`: blueprint, prompt, snapshot if it is a column,
    and `vector`; one row per prompt with an ideal answer. Null if either vector is missing.
    """
    rows, ideal_rows = sort_unique(cast_keys(responses), RESPONSE_KEYS, "responses"), cast_keys(ideals)
    keys = [name for name in PROMPT_KEYS if name in ideals]
    place = rows[keys].merge(ideal_rows[keys].assign(place=ideal_rows.index), "left", keys, validate="many_to_one")["place"]
    units, ideal = np.split(_scale_to_length_1(stack_vectors([*rows["vector"], *ideal_rows["vector"]])), [len(rows)])
    has_ideal = np.flatnonzero(place.notna())
    similarity = np.full(len(rows), np.nan)
    similarity[has_ideal] = _compute_unit_cosine(units, ideal, has_ideal, place[has_ideal].to_numpy(dtype=np.int64))
    return rows[list(RESPONSE_KEYS)].assign(similarity=similarity)


def _scale_to_length_1(vectors: Floats) -> Floats:
    """Return the vectors scaled to length 1; zero vectors stay zero."""
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    units = np.divide(vectors, largest, out=vectors.copy(), where=largest > 0)
    length = np.sqrt(np.einsum("ij,ij->i", units, units))[:, None]
    return np.asarray(np.divide(units, length, out=units, where=length > 0))


def _compute_unit_cosine(
    left: Floats, right: Floats, left_rows: npt.NDArray[np.int64], right_rows: npt.NDArray[np.int64]
) -> Floats:
    """Return cosines of vectors of length 1, (pairs,): of the rows `left_rows` of `left` and `right_rows` of `right`."""
    cosines = np.empty(len(left_rows))
    for start in range(0, len(left_rows), _ROWS_AT_A_TIME):
        block = slice(start, start + _ROWS_AT_A_TIME)
        cosines[block] = np.einsum("ij,ij->i", left[left_rows[block]], right[right_rows[block]])
    return np.clip(cosines, -1.0, 1.0)


PEOPLE = "people"
"""Listed among the judges of a run that was scored with people's labels; such runs are not compared with others."""
NO_OWN_JUDGE = "no own judge"
"""Listed there, too, if judgements of a maker's own judge were left out."""
_RESPONSE_NAMES = list(RESPONSE_KEYS)


def score_tables(
    responses: pa.Table, prompts: pa.Table, criteria: pa.Table, points: pa.Table, embeddings: pa.Table, policy: ScoringPolicy
) -> dict[str, pa.Table]:
    """Return `rubric_scores` and `rubric_similarities` of one blueprint and snapshot, from `rubric_responses`, `rubric_prompts`,
    `rubric_criteria`, `rubric_points` and `rubric_embeddings`.

    Only embeddings of the policy's embedder count. Equal rows in another order give equal bits.
    """
    known = embeddings.filter(pc.equal(embeddings["embedder"], policy.embedder))
    vectors = dict(zip(known["text_hash"].to_pylist(), known["vector"].to_numpy(), strict=True)) if len(known) else {}
    answers = responses.filter(pc.is_in(responses["prompt"], prompts["prompt"].combine_chunks()))
    vector_rows = _add_vectors(answers.filter(pc.equal(answers["status"], OK)), "text", _RESPONSE_NAMES, vectors)
    ideals = _add_vectors(prompts.filter(pc.is_valid(prompts["ideal"])), "ideal", ["blueprint", "prompt"], vectors)
    frame = prompts.select(["blueprint", "prompt", "weight", "ideal"]).to_pandas()
    prompt_weights = weigh_prompts(frame, criteria.select(["blueprint", "prompt"]).to_pandas())
    status = pd.Series(answers["status"].to_pylist(), dtype=object)
    plan = answers.select(_RESPONSE_NAMES).to_pandas().assign(reason=status.where(status != OK))
    similar = compute_similarities_to_ideal(vector_rows, ideals)
    scores = compute_blueprint_scores(plan, prompt_weights, compute_coverage(points.to_pandas(), policy), similar, policy)
    return {
        "rubric_scores": convert_to_schema(scores, RUBRIC_SCORES),
        "rubric_similarities": _build_similarity_rows(vector_rows, similar, policy.embedder),
    }


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


def run_hash(test_hash: str, judge_hash: str, policy_hash: str) -> str:
    """Hash what runs must share to be compared for drift (weval methodology, 5.2): test, judges and policy."""
    return digest("run", test_hash, judge_hash, policy_hash)


def format_policy(policy: ScoringPolicy) -> str:
    """Format a policy as `beta=0.35, or_paths=document, ...`."""
    return ", ".join(f"{name}={value}" for name, value in asdict(policy).items())


def parse_policy(text: str) -> ScoringPolicy:
    """Parse the output of `format_policy`."""
    beta, or_paths, should_not_paths, embedder = (part.partition("=")[2] for part in text.split(", ", 3))
    return ScoringPolicy(float(beta), or_paths, should_not_paths, embedder)


def _add_vectors(rows: pa.Table, text: str, keys: list[str], vectors: dict[str, np.ndarray]) -> pd.DataFrame:
    """Return the keys of rows, and the vector of the column `text`, if known."""
    text_vectors = [vectors.get(hash_text(value)) for value in rows[text].to_pylist()]
    frame: pd.DataFrame = rows.select(keys).to_pandas()
    return frame.assign(vector=pd.Series(text_vectors, dtype=object))


def _build_similarity_rows(answers: pd.DataFrame, similar: pd.DataFrame, embedder: str) -> pa.Table:
    """Return one row per response that has a vector: its similarity to the ideal, and to every response of its prompt."""
    vector_rows = answers[answers["vector"].notna()]
    if vector_rows.empty:
        return RUBRIC_SIMILARITIES.empty_table()
    rows = pd.concat(_iterate_matrix_rows(vector_rows), ignore_index=True).assign(embedder=embedder)
    rows = rows.merge(similar.rename(columns={"similarity": "ideal_similarity"}), "left", _RESPONSE_NAMES)
    return convert_to_schema(rows, RUBRIC_SIMILARITIES)


def _iterate_matrix_rows(vector_rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the responses to each prompt, with their places and their similarities to all of them."""
    rows = sort_unique(cast_keys(vector_rows), RESPONSE_KEYS, "responses")
    vectors = stack_vectors(rows["vector"].tolist())
    for _, part in rows.groupby(list(PROMPT_KEYS), sort=True):
        values = compute_cosine_matrix(vectors[part.index]).astype(np.float32)
        yield part[_RESPONSE_NAMES].assign(place=np.arange(len(values)), response_similarities=list(values))
