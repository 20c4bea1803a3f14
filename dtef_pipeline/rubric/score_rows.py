"""The scores of a blueprint's snapshot: tables in, tables out. No model is asked, so they can be made again for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.embeddings import embedder_of, text_hash
from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.aggregate import SCORE_COLUMNS, prompt_parts, scores
from dtef_pipeline.rubric.candidates import known_selector
from dtef_pipeline.rubric.conversations import OK
from dtef_pipeline.rubric.coverage import coverage
from dtef_pipeline.rubric.levels import RESPONSE_KEYS
from dtef_pipeline.rubric.policy import OFFLINE_EMBEDDER, ScoringPolicy
from dtef_pipeline.rubric.similarity import prompt_matrices, similarities
from dtef_pipeline.rubric.tables import RUBRIC_SCORES, RUBRIC_SIMILARITIES
from dtef_pipeline.text.counted import counted

PEOPLE = "people"
"""Stands among the judges of a run that was scored with people's labels; such runs are not compared with others."""
NO_OWN_JUDGE = "no own judge"
"""Stands there too where judgements of a maker's own judge were left out."""
_RESPONSE_NAMES = list(RESPONSE_KEYS)
_POLICY_FIELDS = tuple(one.name for one in fields(ScoringPolicy))


class ScoreTables(NamedTuple):
    """What is made of one blueprint and snapshot."""

    rubric_scores: pa.Table
    rubric_similarities: pa.Table


def score_tables(
    responses: pa.Table, prompts: pa.Table, criteria: pa.Table, points: pa.Table, embeddings: pa.Table, policy: ScoringPolicy
) -> ScoreTables:
    """Scores and similarities, from `rubric_responses`, `rubric_prompts`, `rubric_criteria`, `rubric_points` and `rubric_embeddings`.

    Of the embeddings those of the policy's embedder count. Equal rows in another order give equal bits.
    """
    vectors = _vectors(embeddings, policy.embedder)
    asked = responses.filter(pc.is_in(responses["prompt"], prompts["prompt"].combine_chunks()))
    embedded, ideals = _embedded(asked, vectors), _ideals(prompts, vectors)
    frame = prompts.select(["blueprint", "prompt", "weight", "ideal"]).to_pandas()
    defined = prompt_parts(frame, criteria.select(["blueprint", "prompt"]).to_pandas())
    status = pd.Series(asked["status"].to_pylist(), dtype=object)
    planned = asked.select(_RESPONSE_NAMES).to_pandas().assign(reason=status.where(status != OK))
    similar = similarities(embedded, ideals)
    made = scores(planned, defined, coverage(points.to_pandas(), policy), similar, policy)
    return ScoreTables(_score_rows(made), _similarity_rows(embedded, ideals, similar, policy.embedder))


def texts_to_embed(responses: pa.Table, prompts: pa.Table, *, every_prompt: bool) -> dict[str, str]:
    """The texts whose similarity is wanted, by hash: ideals, and responses to prompts with one; `every_prompt`: to all prompts."""
    has_ideal = prompts.filter(pc.is_valid(prompts["ideal"]))
    ok = responses.filter(pc.equal(responses["status"], OK))
    if not every_prompt:
        ok = ok.filter(pc.is_in(ok["prompt"], has_ideal["prompt"].combine_chunks()))
    texts = [*has_ideal["ideal"].to_pylist(), *ok["text"].to_pylist()]
    return {text_hash(text): text for text in dict.fromkeys(texts)}


def chosen_embedder(name: str | None, models: Models) -> ModelSpec:
    """What embeds: a model by its name or its litellm string, which stands for the model of the models file that has it, if any.

    None: the one that needs no server. Raises ConfigError for a name that stands for none or several, and for a model that embeds no texts.
    """
    selector = name or OFFLINE_EMBEDDER
    found = models.resolve([known_selector(selector, models)])
    if len(found) != 1:
        raise ConfigError(f"embedder {selector!r} stands for {counted(len(found), 'model')}; allowed: one model")
    embedder_of(found[0])
    return found[0]


def counted_words(*, labelled: bool, no_own_judge: bool) -> list[str]:
    """What stands behind the judges of a run: which judgements count besides theirs, and which of theirs do not."""
    return [*([PEOPLE] if labelled else []), *([NO_OWN_JUDGE] if no_own_judge else [])]


def counted_hash(judge_hash: str, *, labelled: bool, no_own_judge: bool) -> str:
    """Hash of who judges and of which judgements count: runs that differ in either are not compared for drift."""
    counted = counted_words(labelled=labelled, no_own_judge=no_own_judge)
    return digest(judge_hash, *counted) if counted else judge_hash


def run_label(test_hash: str, judge_hash: str, policy_hash: str) -> str:
    """What two runs must have in common to be compared for drift (weval methodology, 5.2): the same test, judged and scored alike."""
    return digest("run", test_hash, judge_hash, policy_hash)


def policy_text(policy: ScoringPolicy) -> str:
    """The policy in words: `beta=0.35, or_paths=document, ...`."""
    return ", ".join(f"{name}={value}" for name, value in asdict(policy).items())


def policy_of(text: str) -> ScoringPolicy:
    """The policy that `policy_text` put into words. Raises ConfigError for another text."""
    parts = dict(part.partition("=")[::2] for part in text.split(", ", len(_POLICY_FIELDS) - 1))
    if tuple(parts) != _POLICY_FIELDS:
        raise ConfigError(f"policy: got {text!r}; allowed: {', '.join(f'{name}=...' for name in _POLICY_FIELDS)}")
    return ScoringPolicy(float(parts["beta"]), parts["or_paths"], parts["should_not_paths"], parts["embedder"])


def _vectors(embeddings: pa.Table, embedder: str) -> dict[str, np.ndarray]:
    own = embeddings.filter(pc.equal(embeddings["embedder"], embedder))
    return dict(zip(own["text_hash"].to_pylist(), own["vector"].to_numpy(), strict=True)) if len(own) else {}


def _embedded(responses: pa.Table, vectors: dict[str, np.ndarray]) -> pd.DataFrame:
    """The responses with a text, and their vectors where there are any."""
    ok = responses.filter(pc.equal(responses["status"], OK))
    found = [vectors.get(text_hash(text)) for text in ok["text"].to_pylist()]
    rows: pd.DataFrame = ok.select(_RESPONSE_NAMES).to_pandas()
    return rows.assign(vector=pd.Series(found, dtype=object))


def _ideals(prompts: pa.Table, vectors: dict[str, np.ndarray]) -> pd.DataFrame:
    own = prompts.filter(pc.is_valid(prompts["ideal"]))
    found = [vectors.get(text_hash(text)) for text in own["ideal"].to_pylist()]
    rows: pd.DataFrame = own.select(["blueprint", "prompt"]).to_pandas()
    return rows.assign(vector=pd.Series(found, dtype=object))


def _score_rows(made: pd.DataFrame) -> pa.Table:
    columns = {name: made[name] for name in SCORE_COLUMNS}
    arrays = [pa.array(columns[one.name], one.type, from_pandas=True) for one in RUBRIC_SCORES]
    return pa.table(arrays, schema=RUBRIC_SCORES)


def _similarity_rows(embedded: pd.DataFrame, ideals: pd.DataFrame, similar: pd.DataFrame, embedder: str) -> pa.Table:
    """One row per response that has a vector: its similarity to the ideal, and to every response of its prompt."""
    known = embedded[embedded["vector"].notna()]
    tables = list(_matrix_rows(known, ideals)) if len(known) else []
    if not tables:
        return RUBRIC_SIMILARITIES.empty_table()
    rows = pd.concat(tables, ignore_index=True).assign(embedder=embedder)
    rows = rows.merge(similar.rename(columns={"similarity": "to_ideal"}), "left", _RESPONSE_NAMES)
    arrays = [pa.array(rows[one.name], one.type, from_pandas=True) for one in RUBRIC_SIMILARITIES]
    return pa.table(arrays, schema=RUBRIC_SIMILARITIES)


def _matrix_rows(known: pd.DataFrame, ideals: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for found in prompt_matrices(known, ideals.iloc[:0]):
        values = found.matrix.astype(np.float32)
        yield found.texts.assign(place=np.arange(len(values)), to_others=list(values))
