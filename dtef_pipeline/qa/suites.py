"""Suites of the qa family: the document `suites.yaml` (files, scorers, dates of publication), and the leaderboards of a suite, a part or
a transcript, and the validity of scores: bias by the order of options, and what a judge's scores depend on other than the answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, StringConstraints, model_validator
from scipy.special import ndtri

from dtef_pipeline.asking.snapshot_order import order_in
from dtef_pipeline.boards.cells import register_missing_tables
from dtef_pipeline.boards.item_board import add_coverage, build_means_frame, explain_unranked, has_enough, rank_boards
from dtef_pipeline.boards.item_means import codes, compute_pass_rates
from dtef_pipeline.boards.pairs import compare_boards
from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.qa.judging.arbiter import SKIPPED_SAMPLE
from dtef_pipeline.qa.model import QA_STATUSES
from dtef_pipeline.qa.scoring import EXISTENCE_METRICS, load_latest_scores
from dtef_pipeline.qa.tables import OF_ONE_BOARD, QA_BOARD, QA_CUTS, QA_JUDGEMENTS, QA_PASS_AT_K, QA_RESPONSES, QA_VALIDITY
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS, Codes, estimate_ratios, explain_missing
from dtef_pipeline.statistics.proportions import compute_wilson_interval
from dtef_pipeline.tables import COMPARISONS, build_family_rows, convert_to_schema, stack_cuts
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import format_count

_SUITES_KEY = "suites"
ScorerNames = Annotated[list[str], Field(min_length=1)]
YearAndMonth = Annotated[str, StringConstraints(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")]


class SuiteSpec(Part):
    """One suite of items."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    layout: Literal["mmlu", "gsm8k", "humaneval", "socioscope"]
    """Layout of its files."""
    scorers: ScorerNames | None = None
    """Scorers of its items; boards rank by the first."""
    scorers_by_type: dict[str, ScorerNames] | None = None
    """Scorers by type of item, if types have their own."""
    public_since: YearAndMonth | None = None
    """Year and month in which its items and answers were published; None: never."""
    licence: str | None = None
    source: str | None = None
    """Source of its files."""

    @model_validator(mode="after")
    def _has_scorers(self) -> SuiteSpec:
        if (self.scorers is None) == (self.scorers_by_type is None):
            got = "neither" if self.scorers is None else "both"
            raise ValueError(f"scorers, scorers_by_type: got {got}; allowed: one of the two")
        return self

    def scorers_of(self, type: str) -> tuple[str, ...]:
        """Return the scorers of a type by name, first the one that boards rank by; empty: the type has no scorer."""
        if self.scorers_by_type is None:
            return tuple(self.scorers or ())
        return tuple(self.scorers_by_type.get(type, ()))

    @property
    def exposure(self) -> str | None:
        """The boards' note on models that may know the answers, or None if never published."""
        if self.public_since is None:
            return None
        return f"answers may be in the training data (public since {self.public_since})"


@dataclass(frozen=True)
class Suites:
    """All known suites, by name."""

    specs: Mapping[str, SuiteSpec]

    @property
    def exposure(self) -> dict[str, str]:
        """The note of each suite that may be in training data."""
        return {name: spec.exposure for name, spec in self.specs.items() if spec.exposure}

    def route(self, suite: str) -> SuiteSpec:
        """Return how a suite is read and scored. Raises ConfigError for an unknown suite, with the known ones."""
        if suite not in self.specs:
            raise ConfigError(f"unknown suite {suite!r}; known: {list_nearest(suite, self.specs)}")
        return self.specs[suite]


def load_suites(*sources: str | Path) -> Suites:
    """Read files of suites in order; a suite in a later file completely replaces one of the same name.

    Args:
        sources: a `Path` is a file to read, a `str` is YAML text.

    Raises:
        ConfigError: with file, line, suite, the value found and the allowed values.
    """
    specs: dict[str, SuiteSpec] = {}
    for number, source in enumerate(sources, start=1):
        document = read_document(source, "suites file", [_SUITES_KEY], {_SUITES_KEY: "suite"}, label=f"suites text {number}")
        document.mapping((), known_keys=[_SUITES_KEY])
        for name in document.mapping((_SUITES_KEY,)):
            place = (_SUITES_KEY, name)
            values = document.mapping(place, known_keys=[field for field in SuiteSpec.model_fields if field != "name"])
            specs[str(name)] = document.validate_as(SuiteSpec, {**values, "name": str(name)}, place)
    return Suites(specs)


OVERALL, BY_PART, BY_CLUSTER = "overall", "part", "cluster"
BOARD_KEYS: Mapping[str, tuple[str, ...]] = {
    OVERALL: OF_ONE_BOARD,
    BY_PART: ("suite", "part", *OF_ONE_BOARD[1:]),
    BY_CLUSTER: ("suite", "cluster", *OF_ONE_BOARD[1:]),
}
"""Columns that identify a board, by its name."""


def compute_qa_results(scores: pa.Table) -> pd.DataFrame:
    """Return the means of rows of `qa_scores` (see `latest_scores.qa_scores`) by part, model variant and snapshot."""
    names = [*BOARD_KEYS[BY_PART], *MODEL, "snapshot"]
    frame = build_means_frame(scores, names)
    group, _ = codes(scores, names)
    status = scores["status"].to_numpy()
    counts = {f"n_{state}": np.bincount(group, status == state, len(frame)).astype(np.int64) for state in QA_STATUSES}
    return frame.assign(**counts).sort_values(names, ignore_index=True)


def build_suite_board(
    scores: pa.Table,
    view: str = OVERALL,
    *,
    exposure: Mapping[str, str] | None = None,
    order: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the boards of the view `view` (a key of BOARD_KEYS), best model first, with the columns of QA_BOARD.

    `scores`: see `latest_scores`, one snapshot per part. `exposure`: by suite, whether its answers may be in the training data. `order`:
    the snapshots, the earliest first. A model is ranked by `score`, the mean over items, if it has scores for at least the share
    RANKED_FROM of the board's items, not counting items outside its random sample. The range of ranks follows the verdicts of
    `compare_grid` among ranked models. A board by cluster omits items that are a cluster by themselves. `n_failed` excludes responses
    without quotations, which `n_uncited` counts.
    """
    names = BOARD_KEYS[view]
    if view == BY_CLUSTER:
        scores = scores.filter(pc.not_equal(scores["cluster"].cast(pa.string()), scores["item_id"].cast(pa.string())))
    keys = [*names, *MODEL]
    board = build_means_frame(scores, keys, macro=view == OVERALL)
    row, _ = codes(scores, keys)
    n_uncited = np.bincount(row, scores["cites_nothing"].to_numpy(), len(board)).astype(np.int64)
    board["n_uncited"] = pd.Series(n_uncited).astype("Int64").where(board["metric"].isin(EXISTENCE_METRICS))
    board["n_failed"] -= n_uncited
    board["n_sampled_out"] = _count_sampled_out(scores, keys, row, len(board))
    n_expected = add_coverage(board, scores, names, board["n_sampled_out"].to_numpy())
    board["note"] = _write_suite_notes(board.assign(uncited=n_uncited), has_enough(board), n_expected)
    board["exposure"] = board["suite"].map(lambda suite: (exposure or {}).get(suite, ""))
    return rank_boards(board, scores, names, order)


def _write_suite_notes(board: pd.DataFrame, enough: pd.Series[bool], n_expected: Codes) -> list[str]:
    """Return the note of each row, and why it is not ranked. `board` has the extra column `uncited`, a number of responses."""
    notes = []
    for row, is_ranked, n_items in zip(board.to_dict("records"), enough, n_expected.tolist(), strict=True):
        if row["uncited"] == row["n_total"]:
            notes.append("no answer has a quotation")
        else:
            reason = _explain_suite_unranked(row, n_items) if row["n_items"] and not is_ranked else ""
            notes.append("; ".join(filter(None, (row["note"], reason))))
    return notes


def _explain_suite_unranked(row: Mapping[Hashable, Any], n_items: int) -> str:
    """Say why a row is not ranked. Answers without quotations are not failures, so the note counts them separately."""
    n_uncited = row["uncited"]
    if n_uncited and row["n_total"] == row["n_scored"] + n_uncited >= n_items:
        items = f"{row['n_items']:,} of {format_count(n_items, 'item')}"
        return f"not ranked: its answers to {items} have quotations, at least 9 of 10 are needed"
    suffix = f", {format_count(n_uncited, 'answer')} without a quotation" if n_uncited else ""
    return explain_unranked(row["n_items"], n_items, suffix)


def _count_sampled_out(scores: pa.Table, keys: Sequence[str], row: Codes, size: int) -> Codes:
    """Count per board row the items that a model has no score for because its random sample omits them."""
    item, first = codes(scores, [*keys, "item_id"])
    has_score = np.bincount(item, pc.is_valid(scores["score"]).to_numpy(), len(first)) > 0
    left_out = np.bincount(item, pc.equal(scores["status"], SKIPPED_SAMPLE).to_numpy(), len(first)) > 0
    return np.bincount(row[first[left_out & ~has_score]], minlength=size).astype(np.int64)


QA_BOARD_READS = ("qa_scores",)
"""The tables that results and boards read."""
_PROGRAMS = "code"
"""The type of items whose responses are programs."""


def build_qa_boards(connection: duckdb.DuckDBPyConnection, *, exposure: Mapping[str, str] | None = None) -> dict[str, pa.Table]:
    """Return `qa_board`, `qa_pass_at_k` and the family's rows of `comparisons`, by name.

    `connection` has the tables of QA_BOARD_READS; `exposure`: see `build_suite_board`.
    """
    latest, order = load_latest_scores(connection), order_in(connection, "qa_scores")
    boards = {view: build_suite_board(latest, view, exposure=exposure, order=order) for view in BOARD_KEYS}
    comparisons = compare_boards(latest, OF_ONE_BOARD).rename(columns={"suite": "first_level"})
    return {
        "qa_board": stack_cuts(boards, QA_BOARD, QA_CUTS),
        "qa_pass_at_k": convert_to_schema(_build_pass_rates(latest), QA_PASS_AT_K),
        "comparisons": build_family_rows(comparisons, COMPARISONS, "qa"),
    }


def _build_pass_rates(latest: pa.Table) -> pd.DataFrame:
    names = [*BOARD_KEYS[BY_PART], *MODEL]
    programs = latest.filter(pc.equal(latest["type"], _PROGRAMS))
    if not len(programs):
        return pd.DataFrame(columns=QA_PASS_AT_K.names)
    rows: pd.DataFrame = compute_pass_rates(programs, names).to_pandas()
    return rows.astype(dict.fromkeys(names, "str")).sort_values([*names, "k"], ignore_index=True)


_RETRIEVAL_KEYS = ("suite", "part", "condition")
_RETRIEVAL_SCORES = ("recall", "precision", "hit", "mrr", "ndcg")
RETRIEVAL_COUNT = "n_items"


def compute_retrieval_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per part and condition: the mean of each score over items, 0-1, higher is better, and the number of items.

    `rows`: rows of `qa_retrieval`, one per item and condition.
    """
    groups = rows.astype(dict.fromkeys(_RETRIEVAL_KEYS, str)).groupby(list(_RETRIEVAL_KEYS), sort=True)
    return groups[list(_RETRIEVAL_SCORES)].mean().assign(**{RETRIEVAL_COUNT: groups.size()}).reset_index()


Flags = npt.NDArray[np.bool_]
POSITION, JUDGE_AGAINST_NUMERIC, SELF_JUDGED, FAILURES, LENGTH = (
    *("position_bias", "judge_against_numeric", "self_judged", "judge_failures", "length_and_semantic"),
)
QA_VALIDITY_CHECKS = (POSITION, JUDGE_AGAINST_NUMERIC, SELF_JUDGED, FAILURES, LENGTH)
QA_VALIDITY_READS = ("qa_scores", "qa_judgements", "qa_responses")
MAX_DISAGREED, MAX_FAILED, MAX_BY_LENGTH = 0.05, 0.02, 0.3
"""Thresholds for warnings: shares of responses, shares of judgements, and a rank correlation with length."""
_ROTATED = r"^(.*),rotated-\d+$"
_MODEL_KEYS = ("suite", "condition", "model", "model_variant")
_TEXT_KEYS = ("suite", "part", "condition", "model", "model_variant", "snapshot")
_TEXTS = (*_TEXT_KEYS, "item_id")
_LEFT_UNJUDGED = ("skipped_sample", "skipped_budget", "budget")
"""Reasons for a missing score that are not failures of the judge."""


class ValidityFinding(NamedTuple):
    """The result of a check."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    is_suspect: bool
    note: str = ""


def qa_validity(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return QA_VALIDITY of the latest snapshots. `connection` has `qa_scores`, and optionally the other tables of QA_VALIDITY_READS."""
    register_missing_tables(connection, {"qa_judgements": QA_JUDGEMENTS, "qa_responses": QA_RESPONSES})
    connection.register("latest_of_parts", load_latest_scores(connection))
    rows = [
        *_iterate_findings(connection.execute(_OF_ORDERS).df(), POSITION, _measure_position_bias),
        *_iterate_findings(connection.execute(_JUDGE_AND_NUMERIC_SCORES).df(), JUDGE_AGAINST_NUMERIC, _measure_disagreement),
        *_iterate_findings(connection.execute(_EVERY_JUDGEMENT).df(), SELF_JUDGED, _measure_self_judged),
        *_iterate_findings(connection.execute(_EVERY_JUDGEMENT).df(), FAILURES, _measure_failures),
        *_iterate_findings(connection.execute(_LENGTHS_AND_SCORES).df(), LENGTH, _correlate_with_length),
    ]
    connection.unregister("latest_of_parts")
    frame = pd.DataFrame(rows, columns=QA_VALIDITY.names)
    frame = frame.assign(place=frame["check"].map(QA_VALIDITY_CHECKS.index))
    return convert_to_schema(
        frame.sort_values(["place", "suite", "condition", "metric", "measured_by", "model_variant"]), QA_VALIDITY
    )


def _iterate_findings(frame: pd.DataFrame, check: str, finding: Any) -> Iterator[dict[str, Any]]:
    """Yield one row per model, condition and measure of the frame."""
    keys = [*_MODEL_KEYS, "metric", "measured_by"]
    for values, group in frame.groupby(keys, sort=True):
        result: ValidityFinding | None = finding(group)
        if result is not None:
            yield {**dict(zip(keys, values, strict=True)), "check": check, **result._asdict()}


_OF_ORDERS = f"""
    SELECT suite, coalesce(nullif(regexp_extract(condition, '{_ROTATED}', 1), ''), condition::VARCHAR) AS condition, condition AS of_order,
        model, model_variant, metric, measured_by, item_id AS item, avg(score) AS score
    FROM latest_of_parts WHERE score IS NOT NULL GROUP BY ALL ORDER BY ALL
"""
_LATEST_JUDGEMENTS = f"""(
    SELECT {", ".join(f"{name}::VARCHAR AS {name}" for name in _TEXTS)}, draw, evaluator, judge_variant, score, reason, self_judged
    FROM qa_judgements AS judged WHERE EXISTS (
        FROM latest_of_parts AS latest WHERE {" AND ".join(f"latest.{name}::VARCHAR = judged.{name}::VARCHAR" for name in _TEXT_KEYS)}
    )
)"""
_EVERY_JUDGEMENT = f"""
    SELECT suite, condition, model, model_variant, evaluator AS metric, judge_variant AS measured_by, score, reason, self_judged
    FROM {_LATEST_JUDGEMENTS}
"""
_OF_ONE_ANSWER = " AND ".join(
    (*(f"judged.{name} = own.{name}::VARCHAR" for name in _TEXTS), "judged.draw = own.draw"),
)
_JUDGE_AND_NUMERIC_SCORES = f"""
    SELECT judged.suite, judged.condition, judged.model, judged.model_variant, evaluator AS metric, judge_variant AS measured_by,
        (judged.score >= 0.5) <> (own.score >= 0.5) AS disagrees
    FROM qa_scores AS own JOIN {_LATEST_JUDGEMENTS} AS judged ON {_OF_ONE_ANSWER}
    WHERE own.scorer = 'numeric' AND own.score IS NOT NULL AND judged.evaluator = 'factuality' AND judged.score IS NOT NULL
"""
_LENGTHS_AND_SCORES = f"""
    SELECT judged.suite, judged.condition, judged.model, judged.model_variant, evaluator AS metric, judge_variant AS measured_by,
        length(own.response) AS length, judged.score AS score, judged.part || '/' || judged.item_id AS item
    FROM qa_responses AS own JOIN {_LATEST_JUDGEMENTS} AS judged ON {_OF_ONE_ANSWER}
    WHERE judged.evaluator = 'semantic' AND judged.score IS NOT NULL AND own.response IS NOT NULL
    ORDER BY ALL
"""


def _measure_position_bias(frame: pd.DataFrame) -> ValidityFinding | None:
    """Measure the range of the means over orders of the options, on items scored in every order; None: there is only one order.

    It is the largest difference of two orders, |d|. With t at 95 % over all pairs of orders (Bonferroni) and s the standard error of a
    paired difference, its interval is the largest |d| - t s and |d| + t s; orders matter if the interval does not begin at 0.
    """
    if frame["of_order"].nunique() < 2:
        return None
    grid = frame.pivot_table(values="score", index="item", columns="of_order").dropna().to_numpy(dtype=np.float64)
    n, orders = grid.shape
    if n < MIN_CLUSTERS:
        return ValidityFinding(None, None, None, n, False, explain_missing(n, "item", "range"))
    first, second = np.triu_indices(orders, k=1)
    estimate = estimate_ratios(grid[:, first] - grid[:, second], np.ones((n, len(first))))
    size, reach = np.abs(estimate.value), estimate.interval(1 - (1 - CONFIDENCE) / len(first))[1] - estimate.value
    low, high = max(float((size - reach).max()), 0.0), min(float((size + reach).max()), 1.0)
    return ValidityFinding(float(size.max()), low, high, n, low > 0)


def _measure_share(is_so: Flags, limit: float, text: str) -> ValidityFinding:
    """Return a share of responses, flagged above `limit`."""
    n, count = len(is_so), int(is_so.sum())
    low, high = (float(end) for end in compute_wilson_interval(count, n))
    return ValidityFinding(count / n, low, high, n, count > limit * n, f"{count:,} of {n:,} {text}" if count else "")


def _measure_disagreement(frame: pd.DataFrame) -> ValidityFinding:
    return _measure_share(
        frame["disagrees"].to_numpy(dtype=np.bool_), MAX_DISAGREED, "responses are right by one and wrong by the other"
    )


def _measure_self_judged(frame: pd.DataFrame) -> ValidityFinding | None:
    rows = frame[frame["score"].notna()]
    if not len(rows):
        return None
    finding = _measure_share(
        rows["self_judged"].fillna(False).to_numpy(dtype=np.bool_), 0.0, "judgements are by a model of the same maker"
    )
    return finding._replace(low=None, high=None)


def _measure_failures(frame: pd.DataFrame) -> ValidityFinding | None:
    rows = frame[~frame["reason"].isin(_LEFT_UNJUDGED)]
    return _measure_share(rows["score"].isna().to_numpy(dtype=np.bool_), MAX_FAILED, "judgements failed") if len(rows) else None


def _correlate_with_length(frame: pd.DataFrame) -> ValidityFinding:
    """Return Spearman's correlation over items, draws averaged first.

    The interval is Fisher's transformation with the variance (1 + r^2 / 2) / (n - 3) of Bonett and Wright (2000).
    """
    items = frame.groupby("item")[["length", "score"]].mean()
    n = len(items)
    if n < MIN_CLUSTERS or (np.ptp(items.to_numpy(dtype=np.float64), axis=0) == 0).any():
        alike = "no correlation: all responses have the same length or the same score"
        return ValidityFinding(None, None, None, n, False, explain_missing(n, "item", "correlation") or alike)
    r = float(items["length"].corr(items["score"], method="spearman"))
    middle = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    reach = ndtri((1 + CONFIDENCE) / 2) * np.sqrt((1 + r**2 / 2) / (n - 3))
    low, high = float(np.tanh(middle - reach)), float(np.tanh(middle + reach))
    return ValidityFinding(r, low, high, n, abs(r) >= MAX_BY_LENGTH and low * high > 0)
