"""Reference scores of every pair: the best possible score, and the scores of predictions that do not know the segment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import DtefError
from dtef_pipeline.identity import digest
from dtef_pipeline.survey.identity import make_question_key
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.metrics import (
    Floats,
    Places,
    build_matrix,
    compute_gini,
    compute_scale_ranks,
    compute_similarities,
    normalise_distributions,
    sample_sizes,
)
from dtef_pipeline.survey.tables import METRICS, REFERENCE_SCORES

Ints = npt.NDArray[np.int64]
DRAWS = 200
"""Simulated truths and samples per pair. A pair's ceiling then has a Monte-Carlo standard error of about .003, a mean over 1,000 pairs .0001."""
OUTER, INNER = 2, 25
"""Per pair: the number of truths whose ceilings are estimated as if they were unknown, and of simulated samples for each estimate."""
MIN_SEGMENTS = 3
"""Fewest segments of an attribute whose own differences are used; below, all segments of the question are."""
MAX_STRENGTH = 1e6
"""Prior strength, in respondents, where the segments show no difference: the truth is the population."""


def estimate_prior_strength(observed: Floats, n: Floats) -> float:
    """Return the weight of the population beside a segment's respondents, in respondents, 0..MAX_STRENGTH, from one question's segments.

    `observed` is (segments, k) fractions, `n` (segments,). With mean squares B between and W within segments, summed over the options, and
    n0 = (N - sum n^2 / N) / (segments - 1): rho = (B - W) / (B + (n0 - 1) W), strength = (1 - rho) / rho. MAX_STRENGTH if rho <= 0 or if it
    cannot be estimated: fewer than two segments, or one respondent in each.
    """
    segments, total = len(n), n.sum()
    if segments < 2 or total <= segments:
        return MAX_STRENGTH
    mean = n @ observed / total
    between = (n @ (observed - mean) ** 2).sum() / (segments - 1)
    within = (n * (1 - (observed**2).sum(axis=1))).sum() / (total - segments)
    size = (total - (n**2).sum() / total) / (segments - 1)
    if between <= within:
        return MAX_STRENGTH
    # (1 - rho) / rho, with rho's denominator cancelled
    return float(min(MAX_STRENGTH, size * within / (between - within)))


def estimate_prior_strengths(observed: Floats, n: Floats, attributes: npt.NDArray[np.str_]) -> Floats:
    """Return `estimate_prior_strength` (segments,) of each segment: of its attribute, or of all segments if that has fewer than
    MIN_SEGMENTS.
    """
    strengths = np.full(len(n), estimate_prior_strength(observed, n))
    names, place, counts = np.unique(attributes, return_inverse=True, return_counts=True)
    for attribute in range(len(names)):
        if counts[attribute] >= MIN_SEGMENTS:
            rows = place == attribute
            strengths[rows] = estimate_prior_strength(observed[rows], n[rows])
    return strengths


def draw_truths(
    observed: Floats, n: Floats, population: Floats, strength: Floats, rng: np.random.Generator, draws: int
) -> Floats:
    """Draw possible true distributions (draws, segments, k): Dirichlet(n observed + strength population)."""
    weights = n[:, None] * observed + strength[:, None] * population
    gammas = rng.standard_gamma(weights, size=(draws, *weights.shape))
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))


def estimate_ceilings(truth: Floats, n: Ints, rng: np.random.Generator, *, ordinal: bool, ranks: Ints) -> dict[str, Floats]:
    """Return the mean similarity (segments,) under each metric of `truth` (draws, segments, k) to samples of n (segments,) drawn from it.

    Range 0..1, higher = a sample of n is closer to its truth. NaN if the metric has no value in any draw.
    """
    draws, segments, k = truth.shape
    sample = rng.multinomial(np.broadcast_to(n, (draws, segments)), truth)
    values = compute_similarities(truth.reshape(-1, k), sample.reshape(-1, k), ordinal=ordinal, ranks=ranks)
    return {name: _average_scored(value.reshape(draws, segments)) for name, value in values.items()}


def estimate_excess(
    truth: Floats, n: Ints, attributes: npt.NDArray[np.str_], rng: np.random.Generator, *, ordinal: bool, ranks: Ints
) -> dict[str, Floats]:
    """Return by how much estimated ceilings exceed those of the `truth` (draws, segments, k) of one question, on average, (segments,) by
    metric.

    From each truth samples of n (segments,) are drawn, and ceilings are estimated from these only, as if the truth were unknown; noisy for
    one pair. NaN if the metric has no value. (A parametric bootstrap of the bias: Efron & Tibshirani 1993, ch. 10.)
    """
    size, excesses = n.astype(np.float64), []
    for distributions in truth:
        observed = rng.multinomial(n, distributions) / n[:, None]
        population = np.broadcast_to(size @ observed / size.sum(), observed.shape)
        posterior = draw_truths(observed, size, population, estimate_prior_strengths(observed, size, attributes), rng, INNER)
        estimated, real = (
            estimate_ceilings(truths, n, rng, ordinal=ordinal, ranks=ranks)
            for truths in (posterior, np.broadcast_to(distributions, posterior.shape))
        )
        excesses.append({name: estimated[name] - real[name] for name in real})
    return {name: np.mean([excess[name] for excess in excesses], axis=0) for name in excesses[0]}


def _average_scored(values: Floats) -> Floats:
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, finite.sum(axis=0), out=np.full(values.shape[1], np.nan), where=finite.any(axis=0)))


CEILING_SEED = 20_261_121
"""Default seed of the simulated ceilings; each question of a round has its own generator, so that no question moves another."""
_OWN_COLUMNS = ["round", "question_id", "attribute", "n", "n_effective", "scale", "options", "dont_know", "positions"]
_STRUCTS = ("ceiling", "ceiling_low", "uniform_score", "leave_one_out_score", "population_score")
_EXCESS = "excess"
"""Estimated ceilings of a question over those of known truths that are estimated in the same way."""


def compute_reference_scores(responses: pa.Table, *, draws: int = DRAWS, seed: int = CEILING_SEED) -> pa.Table:
    """Return one row of schema REFERENCE_SCORES per row of `responses`, in the same order.

    `responses` are all `survey_responses` rows of a round (or of several): how much the segments of an attribute differ decides how far a
    segment's observed distribution is believed. `ceiling` is for n_effective respondents, or n if that is null. If both are unknown,
    `ceiling`, `ceiling_low` and `gini` are null. Neither the order of the rows nor other questions change a pair's values,
    except `ceiling_low`: the ceiling less its estimated bias, in which the pairs of a round are pooled. Raises DtefError naming a
    distribution that does not fit its options, or a question whose segments have several lists of options.
    """
    responses = responses.combine_chunks()
    _check_lengths(responses)
    gini = np.full(len(responses), np.nan)
    structs = {name: {metric: np.full(len(responses), np.nan) for metric in METRICS} for name in (*_STRUCTS, _EXCESS)}
    for question in _iterate_question_rows(responses):
        gini[question.rows] = compute_gini(question.observed, question.n)
        for name, rows, values in _iterate_references(question, draws, seed):
            for metric, value in values.items():
                structs[name][metric][rows] = value
    _take_out(structs["ceiling_low"], structs.pop(_EXCESS), responses)
    columns = {name: _make_metric_struct(values) for name, values in structs.items()}
    columns["gini"] = pa.array(gini, from_pandas=True)
    columns["cluster"] = _hash_questions(responses)
    columns |= {name: responses[name] for name in (*KEYS.pair, "n")}
    return pa.table([columns[name] for name in REFERENCE_SCORES.names], schema=REFERENCE_SCORES)


@dataclass(frozen=True)
class _Question:
    """The segments that answered a question of a round, in the order of their names; `rows` are their row numbers."""

    name: tuple[str, str]  # round and question id
    rows: Places
    attributes: npt.NDArray[np.str_]
    n: Floats  # respondents, of weighted answers the effective ones; NaN: unknown
    observed: Floats
    population: Floats | None
    others: Floats  # of the segments `has_others` alone
    has_others: npt.NDArray[np.bool_]
    ordinal: bool
    ranks: Places  # (k,) on the scale, -1 off it

    def select_with_n(self) -> _Question:
        """Return the segments with a known n, without their `others`."""
        has_n = np.isfinite(self.n)
        if has_n.all():
            return self
        parts = {name: getattr(self, name)[has_n] for name in ("rows", "attributes", "n", "observed")}
        return replace(self, **parts, population=None if self.population is None else self.population[has_n])

    def similarities(self, predicted: Floats, observed: Floats) -> dict[str, Floats]:
        return compute_similarities(predicted, observed, ordinal=self.ordinal, ranks=self.ranks)


def _iterate_question_rows(responses: pa.Table) -> Iterator[_Question]:
    places = pa.array(np.arange(len(responses)))
    order = responses.select(["round", "question_id", "segment"]).append_column("row", places)
    order = order.sort_by([("round", "ascending"), ("question_id", "ascending"), ("segment", "ascending")])
    rows = order["row"].to_numpy()
    if not len(rows):
        return
    lists = {name: responses[name].combine_chunks() for name in ("observed", "population", "leave_one_out_marginal")}
    changes = [pc.not_equal(order[name][1:], order[name][:-1]).to_numpy() for name in KEYS.shared_item]
    for part in np.split(rows, np.flatnonzero(changes[0] | changes[1]) + 1):
        yield _build_question_rows(responses, lists, part)


def _build_question_rows(responses: pa.Table, lists: dict[str, pa.Array], rows: Places) -> _Question:
    table = responses.select(_OWN_COLUMNS).take(pa.array(rows))
    first = table.slice(0, 1).to_pylist()[0]
    k = len(first["options"])
    lengths = set(pc.list_value_length(table["options"]).to_pylist())
    if lengths != {k}:
        raise DtefError(
            f"{first['round']}/{first['question_id']}: options differ between segments: got {sorted(lengths)} options; allowed: the same "
            "options in all segments of a round"
        )
    dont_know, positions = (table[name].slice(0, 1).combine_chunks() for name in ("dont_know", "positions"))
    has_population, has_others = (
        lists[name].is_valid().to_numpy(zero_copy_only=False)[rows] for name in ("population", "leave_one_out_marginal")
    )
    return _Question(
        name=(first["round"], first["question_id"]),
        rows=rows,
        attributes=np.array(table["attribute"].to_pylist(), dtype=np.str_),
        n=sample_sizes(table),
        observed=normalise_distributions(build_matrix(lists["observed"], k, rows), "observed"),
        population=normalise_distributions(build_matrix(lists["population"], k, rows), "population")
        if has_population.all()
        else None,
        others=build_matrix(lists["leave_one_out_marginal"], k, rows[has_others]),
        has_others=has_others,
        ordinal=first["scale"] == "ordinal",
        ranks=compute_scale_ranks(dont_know, positions, k)[0],
    )


def _iterate_references(question: _Question, draws: int, seed: int) -> Iterator[tuple[str, Places, dict[str, Floats]]]:
    """Yield references of a question: the name, the row numbers, and the values of these rows by metric."""
    rows, observed = question.rows, question.observed
    yield "uniform_score", rows, question.similarities(np.ones_like(observed), observed)
    if question.population is not None:
        yield "population_score", rows, question.similarities(question.population, observed)
    if question.has_others.any():
        has_others = question.has_others
        yield "leave_one_out_score", rows[has_others], question.similarities(question.others, observed[has_others])
    known = question.select_with_n()
    if len(known.rows):
        ceilings, excess = _simulate_ceilings(known, draws, seed)
        for name, values in (("ceiling", ceilings), ("ceiling_low", ceilings), (_EXCESS, excess)):
            yield name, known.rows, values


def _simulate_ceilings(question: _Question, draws: int, seed: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the ceilings (segments,) by metric, and their excess."""
    worth = np.maximum(np.rint(question.n), 1).astype(np.int64)
    n = worth.astype(np.float64)
    strength = estimate_prior_strengths(question.observed, n, question.attributes)
    rng = np.random.default_rng([seed, int(digest(*question.name), 16)])
    centre = question.observed if question.population is None else question.population
    truth = draw_truths(question.observed, n, centre, strength, rng, draws)
    ordinal, ranks = question.ordinal, question.ranks
    ceilings = estimate_ceilings(truth, worth, rng, ordinal=ordinal, ranks=ranks)
    return ceilings, estimate_excess(truth[:OUTER], worth, question.attributes, rng, ordinal=ordinal, ranks=ranks)


def _take_out(low: dict[str, Floats], above: dict[str, Floats], responses: pa.Table) -> None:
    """Lower the ceilings of each round by twice their mean excess, each in proportion to its distance from 1, unless they are too low.

    Twice, because the simulated truths have the form that the estimate assumes: if real truths have another form, the simulation finds half
    of the excess or less.
    """
    codes = pc.dictionary_encode(responses["round"].combine_chunks()).indices.to_numpy()
    for metric, values in low.items():
        is_known = np.isfinite(values) & np.isfinite(above[metric])
        total, room = (
            np.bincount(codes[is_known], weights=part[is_known], minlength=codes.max(initial=-1) + 1)
            for part in (above[metric], 1 - values)
        )
        share = np.divide(np.maximum(2 * total, 0), room, out=np.zeros(len(total)), where=room > 0)
        values -= share[codes] * (1 - values)


def _make_metric_struct(values: dict[str, Floats]) -> pa.Array:
    """Return a struct over the metrics, null if none has a value."""
    is_empty = np.all([np.isnan(value) for value in values.values()], axis=0)
    arrays = [pa.array(value, from_pandas=True) for value in values.values()]
    return pa.StructArray.from_arrays(arrays, names=list(values), mask=pa.array(is_empty))


def _hash_questions(responses: pa.Table) -> pa.Array:
    """Return the identity of each question's text and options, computed once per question."""
    known_hashes: dict[tuple[str, ...], str] = {}
    hashes = []
    for text, options in zip(responses["question_text"].to_pylist(), responses["options"].to_pylist(), strict=True):
        key = (text, *options)
        if key not in known_hashes:
            known_hashes[key] = digest(*make_question_key(text, options))
        hashes.append(known_hashes[key])
    return pa.array(hashes, pa.string())


def _check_lengths(responses: pa.Table) -> None:
    k = pc.list_value_length(responses["options"])
    for name in ("observed", "population", "leave_one_out_marginal"):
        wrong = responses.filter(pc.fill_null(pc.not_equal(pc.list_value_length(responses[name]), k), name == "observed"))
        if len(wrong):
            row = wrong.slice(0, 1).to_pylist()[0]
            raise DtefError(
                f"{row['round']}/{row['segment']}/{row['question_id']}: {name} got {row[name]}; allowed: a number for each of "
                f"the options {row['options']}"
            )
