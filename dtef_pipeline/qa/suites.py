"""Suites of the qa family: the document `suites.yaml` (files, scorers, dates of publication), and the leaderboards of a suite, a part or
a transcript.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, StringConstraints, model_validator

from dtef_pipeline.boards.cuts import stack_cuts
from dtef_pipeline.boards.item_board import add_coverage, build_means_frame, explain_unranked, has_enough, rank_boards
from dtef_pipeline.boards.item_means import codes, compute_pass_rates
from dtef_pipeline.boards.paired_items import compare_boards
from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.qa.judging.arbiter import SKIPPED_SAMPLE
from dtef_pipeline.qa.model import QA_STATUSES
from dtef_pipeline.qa.scoring import EXISTENCE_METRICS, load_latest_scores, load_qa_snapshot_order
from dtef_pipeline.qa.tables import OF_ONE_BOARD, QA_BOARD, QA_CUTS, QA_PASS_AT_K
from dtef_pipeline.statistics.cluster_robust import Codes
from dtef_pipeline.tables import COMPARISONS, build_family_rows, convert_to_schema
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
    without quotations, which `n_uncited` counts. Raises ConfigError for an unknown view.
    """
    if view not in BOARD_KEYS:
        raise ConfigError(f"board by {view!r}: allowed: {', '.join(BOARD_KEYS)}")
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
    latest, order = load_latest_scores(connection), load_qa_snapshot_order(connection)
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
