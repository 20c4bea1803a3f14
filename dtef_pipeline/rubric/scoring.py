"""Scores of one blueprint's runs: points to coverage, coverage and similarity to the hybrid score, and means over draws, prompts, variants.

Means are over what has a score: points of a cell, prompts of a variant, variants of a model. Each level has the number of planned ones
and the reasons of missing ones. Sources: weval methodology, 4.2 (Weighted Aggregation, Handling of Alternative Paths) and 5.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
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
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT
from dtef_pipeline.rubric.episodes import OK
from dtef_pipeline.rubric.levels import (
    CELL_KEYS,
    CRITERION_KEYS,
    MODEL_KEYS,
    PROMPT_KEYS,
    RESPONSE_KEYS,
    VARIANT_KEYS,
    Floats,
    RowGroups,
    cast_keys,
    convert_to_numbers,
    count_reasons,
    group_rows,
    sort_unique,
)
from dtef_pipeline.rubric.settings import OFFLINE_EMBEDDER
from dtef_pipeline.rubric.tables import RUBRIC_SCORES, RUBRIC_SIMILARITIES
from dtef_pipeline.tables import convert_to_schema
from dtef_pipeline.text.number_words import format_count

DOCUMENT, TWO_GROUP = "document", "two_group"
"""How alternative paths count: as one point of weight 1 (weval methodology, 4.2), or as much as all required points (upstream's code)."""
WORST_PATH, HIGHEST_PATH = "worst", "max"
"""Which alternative path of should_not counts: the most fulfilled one, or the least (upstream's code)."""


@dataclass(frozen=True, slots=True)
class ScoringPolicy:
    """The settings of scoring."""

    beta: float = 0.35
    """Weight of the similarity in the hybrid score, 0-1."""
    or_paths: str = DOCUMENT
    """document | two_group."""
    should_not_paths: str = WORST_PATH
    """worst | max."""
    embedder: str = OFFLINE_EMBEDDER
    """Embedding model for similarity."""

    @property
    def policy_hash(self) -> str:
        """32 hexadecimal digits, equal for policies that give the same scores."""
        return digest("policy", float(self.beta), self.or_paths, self.should_not_paths, self.embedder)


class Hybrid(NamedTuple):
    """The hybrid score of each row at every weight of the similarity, (rows,) each; NaN: unscored."""

    intercept: Floats
    """The score if similarity has weight 0, 0-1."""
    slope: Floats
    """Change of the score as the weight goes from 0 to 1, -1 to 1."""


def compute_hybrid(
    coverage: npt.ArrayLike, similarity: npt.ArrayLike, has_criteria: npt.ArrayLike, has_ideal: npt.ArrayLike
) -> Hybrid:
    """Return beta max(0, similarity) + (1 - beta) coverage (weval methodology, 5.1), all (rows,).

    If the prompt has only criteria or only an ideal answer, that part is the score at every beta. The score is NaN if a part that the
    prompt defines is NaN, or if it defines neither.
    """
    coverages = np.asarray(coverage, dtype=np.float64)
    similar = np.maximum(np.asarray(similarity, dtype=np.float64), 0.0)
    rubric, ideal = np.asarray(has_criteria, dtype=bool), np.asarray(has_ideal, dtype=bool)
    intercept = np.where(rubric, coverages, np.where(ideal, similar, np.nan))
    slope = np.where(rubric & ideal, similar - coverages, 0.0)
    is_missing = np.isnan(intercept) | np.isnan(slope)
    return Hybrid(np.where(is_missing, np.nan, intercept), np.where(is_missing, np.nan, slope))


def compute_hybrid_at(intercept: npt.ArrayLike, slope: npt.ArrayLike, beta: float) -> Floats:
    """Return intercept + beta slope, the score at a weight of the similarity (0-1), as every board and the report's slider compute it.

    Means of hybrid scores are linear in beta, too, so this also applies to means.
    """
    return np.asarray(intercept, dtype=np.float64) + beta * np.asarray(slope, dtype=np.float64)


def compute_coverage(points: pd.DataFrame, policy: ScoringPolicy | None = None) -> pd.DataFrame:
    """Return one row per response that has points, sorted by its keys. `points`: one row per response and criterion.

    `points` has the keys of the response and of the criterion, `weight` (above 0), `score` (0-1, already inverted for should_not; null:
    unscored) and `partial` (scored although a judgement is missing).

    Columns in addition to the keys: `coverage` (0-1, higher is better; null: no point is scored), `n_planned`, `n_scored`, `n_partial` and
    `n_unscored`.

    Required points of both blocks are averaged by weight, together with one point of weight 1 per block of paths: the highest mean of a
    path, of should_not the lowest. If `or_paths` is two_group, the required points and the blocks of paths are averaged separately and
    count equally; if `should_not_paths` is max, the highest path counts everywhere. Points without a score, and paths and blocks without
    any, are left out. Raises ConfigError if two rows have one key.
    """
    frame = sort_unique(cast_keys(points), (*RESPONSE_KEYS, *CRITERION_KEYS), "points")
    responses = group_rows(frame, RESPONSE_KEYS)
    has_score = frame["score"].notna()
    return responses.keys.assign(
        coverage=_cover_responses(frame, responses, policy or ScoringPolicy()),
        n_planned=responses.count(),
        n_scored=responses.count(has_score),
        n_partial=responses.count(frame["partial"]),
        n_unscored=responses.count(~has_score),
    )


def _cover_responses(points: pd.DataFrame, responses: RowGroups, policy: ScoringPolicy) -> Floats:
    weight, score = (convert_to_numbers(points[name]) for name in ("weight", "score"))
    in_path = points["path"].notna().to_numpy()
    block_scores, block_responses = _score_blocks(points.assign(response=responses.code)[in_path], policy)
    has_block = ~np.isnan(block_scores)
    blocks = np.bincount(block_responses[has_block], block_scores[has_block], len(responses))
    n_blocks = np.bincount(block_responses[has_block], minlength=len(responses))
    weights = np.where(~np.isnan(score) & ~in_path, weight, 0.0)
    required = responses.sum(weights * np.nan_to_num(score))
    n_required = responses.sum(weights)
    if policy.or_paths == DOCUMENT:
        return _divide_scores(required + blocks, n_required + n_blocks)
    means = np.stack([_divide_scores(required, n_required), _divide_scores(blocks, n_blocks)])
    return _divide_scores(np.nansum(means, axis=0), (~np.isnan(means)).sum(axis=0))


def _score_blocks(points: pd.DataFrame, policy: ScoringPolicy) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the mean of the path that counts in each block of a response, (blocks,), NaN if no path has a score; and the responses of the
    blocks. `points`: those in paths, with the number of their `response`.
    """
    paths = group_rows(points, ("response", "block", "path"))
    means = pd.Series(paths.mean(points["score"], points["weight"]))
    by_block = means.groupby([paths.keys["response"], paths.keys["block"]], sort=True)
    highest = by_block.max()
    blocks = highest.index.to_frame(index=False)
    is_worst = (blocks["block"] == SHOULD_NOT).to_numpy() & (policy.should_not_paths == WORST_PATH)
    scores = np.where(is_worst, by_block.min(), highest)
    return np.asarray(scores, dtype=np.float64), blocks["response"].to_numpy(dtype=np.int64)


def _divide_scores(above: npt.ArrayLike, below: npt.ArrayLike) -> Floats:
    divisor = np.asarray(below, dtype=np.float64)
    return np.asarray(np.divide(above, divisor, out=np.full(len(divisor), np.nan), where=divisor > 0))


CELL_LEVEL, VARIANT_LEVEL, MODEL_LEVEL = "cell", "variant", "model"
_MEANS = ("coverage", "similarity", "intercept", "slope")
_POINT_COUNTS = ("n_planned", "n_scored", "n_partial", "n_unscored")
_WITHOUT_HYBRID = ("level", *CELL_KEYS, *_MEANS, "weight", *_POINT_COUNTS, "n_responses", "n_responses_scored", "reasons")
NOTHING_DEFINED = "neither criteria nor an ideal answer"
NO_COVERAGE = "no criterion could be scored"
NO_SIMILARITY = "no similarity to the ideal answer"


def compute_blueprint_scores(
    responses: pd.DataFrame,
    prompts: pd.DataFrame,
    coverages: pd.DataFrame,
    similar: pd.DataFrame,
    policy: ScoringPolicy | None = None,
) -> pd.DataFrame:
    """Return one row per cell, variant and model of each run: the columns of `rubric_scores`, sorted by `level` and keys.

    `responses`: one row per planned response, with its keys and `reason`, why there is nothing to score (null: there is a response).
    `prompts`: one row per blueprint, prompt and, if it is a column, snapshot, see `weigh_prompts`. `coverages`: see `compute_coverage`.
    `similar`: the keys of a response and `similarity` to the ideal answer, -1 to 1, null if missing.

    `coverage`, `similarity` and `hybrid` (0-1 except the similarity, higher is better) are means: of a cell over its draws, of a variant
    over its cells by the weights of their prompts, of a model over its variants, unweighted; null if nothing is scored. `hybrid` is intercept +
    beta slope at every level. Keys that a level does not have are null.

    `n_planned`, `n_scored`, `n_partial` and `n_unscored` count the points of all draws of a cell, the prompts of a variant, and the
    variants of a model. Partial ones have a score although something is missing. `n_responses` counts planned responses, each draw
    separately, `n_responses_scored` those with a hybrid score, and `reasons` why the others have none. Raises ConfigError if two rows have
    one key.
    """
    rows = _score_planned(responses, prompts, coverages, similar)
    cells = _average_cells(rows)
    variants = _aggregate_level(cells, VARIANT_KEYS, cells["weight"], rows)
    models = _aggregate_level(variants, MODEL_KEYS, 1.0, rows)
    levels = {CELL_LEVEL: cells, VARIANT_LEVEL: variants, MODEL_LEVEL: models}
    tables = [table.assign(level=level).reindex(columns=list(_WITHOUT_HYBRID)) for level, table in levels.items()]
    scores = cast_keys(pd.concat(tables, ignore_index=True))
    beta = (policy or ScoringPolicy()).beta
    return scores.assign(hybrid=compute_hybrid_at(scores["intercept"], scores["slope"], beta))


def weigh_prompts(prompts: pd.DataFrame, criteria: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of `prompts` that `compute_blueprint_scores` needs: keys, `weight`, `n_criteria` and `has_ideal`; one row per
    prompt.

    `prompts`: blueprint, prompt, snapshot if it is a column, `weight` and `ideal` (null: none). `criteria`: one row per criterion, with the
    same keys.
    """
    rows = cast_keys(prompts)
    keys = [name for name in PROMPT_KEYS if name in rows]
    sizes = cast_keys(criteria).groupby(keys, as_index=False).size()
    weights = rows[[*keys, "weight"]].assign(has_ideal=rows["ideal"].notna())
    weights = weights.merge(sizes, "left", keys, validate="one_to_one").rename(columns={"size": "n_criteria"})
    return weights.assign(n_criteria=weights["n_criteria"].fillna(0).astype(np.int64))


def _score_planned(
    responses: pd.DataFrame, prompts: pd.DataFrame, coverages: pd.DataFrame, similar: pd.DataFrame
) -> pd.DataFrame:
    """Return the planned responses, sorted by key: their numbers, counts of points, and `reason`, why there is no hybrid score."""
    keys = list(RESPONSE_KEYS)
    prompt_keys = [name for name in PROMPT_KEYS if name in prompts]
    rows = _select_sorted(responses, "responses", keys, ("reason",))
    for table, name, own_keys, columns in (
        (prompts, "prompts", prompt_keys, ("weight", "n_criteria", "has_ideal")),
        (coverages, "coverage", keys, ("coverage", *_POINT_COUNTS)),
        (similar, "similarity", keys, ("similarity",)),
    ):
        rows = rows.merge(_select_sorted(table, name, own_keys, columns), "left", own_keys)
    rows[list(_POINT_COUNTS)] = rows[list(_POINT_COUNTS)].fillna(0).astype(np.int64)
    n_missing = (rows["n_criteria"] - rows["n_planned"]).clip(lower=0).astype(np.int64)
    rows = rows.assign(n_planned=rows["n_planned"] + n_missing, n_unscored=rows["n_unscored"] + n_missing)
    rubric, ideal = rows["n_criteria"].to_numpy() > 0, rows["has_ideal"].to_numpy(dtype=bool)
    hybrid = compute_hybrid(rows["coverage"], rows["similarity"], rubric, ideal)
    cases = [rows["reason"].notna(), ~rubric & ~ideal, rubric & rows["coverage"].isna()]
    reasons = np.select(cases, [rows["reason"].astype(object), NOTHING_DEFINED, NO_COVERAGE], NO_SIMILARITY)
    reason = pd.Series(reasons, rows.index, dtype=object).where(np.isnan(hybrid.intercept))
    return rows.assign(intercept=hybrid.intercept, slope=hybrid.slope, reason=reason)


def _select_sorted(table: pd.DataFrame, name: str, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    return sort_unique(cast_keys(table), keys, name)[[*keys, *columns]]


def _average_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell: the unweighted mean over its draws, and the sum of their points."""
    cells = group_rows(rows, CELL_KEYS)
    first = np.unique(cells.code, return_index=True)[1]
    return _average_groups(cells, rows, 1.0).assign(
        **{name: cells.sum(rows[name]).astype(np.int64) for name in _POINT_COUNTS},
        weight=rows["weight"].to_numpy(dtype=np.float64)[first],
        n_responses=cells.count(),
        n_responses_scored=cells.count(rows["reason"].isna()),
        reasons=pd.Series(count_reasons(cells, rows["reason"]), dtype=object),
    )


def _aggregate_level(below: pd.DataFrame, names: Sequence[str], weights: npt.ArrayLike, rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per combination of `names`: weighted means over the rows of the level below, their counts, and why responses, `rows`,
    have no score.
    """
    above = group_rows(below, names)
    has_score = below["intercept"].notna()
    is_complete = (below["n_partial"] + below["n_unscored"] == 0) & (below["n_responses"] == below["n_responses_scored"])
    return _average_groups(above, below, weights).assign(
        n_planned=above.count(),
        n_scored=above.count(has_score),
        n_partial=above.count(has_score & ~is_complete),
        n_unscored=above.count(~has_score),
        weight=np.nan,
        **{name: above.sum(below[name]).astype(np.int64) for name in ("n_responses", "n_responses_scored")},
        reasons=pd.Series(count_reasons(group_rows(rows, names), rows["reason"]), dtype=object),
    )


def _average_groups(groups: RowGroups, rows: pd.DataFrame, weights: npt.ArrayLike) -> pd.DataFrame:
    return groups.keys.assign(**{name: groups.mean(rows[name], weights) for name in _MEANS})


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
    """Stack vectors of one length as rows, (texts, dimensions); NaN for missing ones. Raises ConfigError if their lengths differ.

    If all are missing there is one dimension: the cosine of rows without dimensions would be 0 instead of NaN.
    """
    lengths = sorted({len(np.asarray(vector)) for vector in vectors if vector is not None})
    if len(lengths) > 1:
        raise ConfigError(
            f"similarity: got vectors of the lengths {lengths}; allowed: vectors of one embedder, which have one length"
        )
    size = lengths[0] if lengths else 1
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
    """Parse the output of `format_policy`. Raises ConfigError for any other text."""
    values = dict(part.partition("=")[::2] for part in text.split(", ", 3))
    try:
        return ScoringPolicy(float(values.pop("beta")), **values)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"policy: got {text!r}; allowed: {format_policy(ScoringPolicy())}, or other values") from error


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
