"""Stored summaries where no analyst is named: those of the very report that would be sent now are kept, and nobody is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.models import Models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_GRADES, RUBRIC_SUMMARIES
from dtef_pipeline.rubric.summary import SummaryCase, first_request
from dtef_pipeline.rubric.summary_rows import chosen_analysts

OF_ANOTHER_REPORT = "it is of other responses, scores, criteria or names of models, or was cut otherwise"
BY_NO_KNOWN_ANALYST = "the models file has no such analyst any more"
GRADES_LACKING = "its grades are not all stored any more"
_HAS_WORDS = ("ok", "partial")
"""Statuses of summaries with findings or grades."""


class StoredSummaries(NamedTuple):
    """The tables of one blueprint and snapshot that a summary is stored in."""

    summaries: pa.Table
    """`rubric_summaries`."""
    grades: pa.Table
    """`rubric_grades`."""
    ids: pa.Table
    """`analyst_ids`."""


class KeptSummaries(NamedTuple):
    """What is left of stored summaries: each analyst's is kept as it is, or not at all."""

    stored: StoredSummaries | None
    """The rows of the analysts that are kept; None: there are none."""
    taken_away: Mapping[str, str]
    """By analyst whose findings or grades were read and are not kept: why."""


def kept_summaries(stored: StoredSummaries, case: SummaryCase | None, models: Models) -> KeptSummaries:
    """The stored summaries of which the first request would be the same now. `case`: of the report as it is now; None: there can be none."""
    rows = stored.summaries.filter(pc.is_valid(stored.summaries["analyst"]))
    told = rows.select(["analyst", "analyst_variant", "test_hash", "status", "request_keys", "n_grades"]).to_pylist()
    graded = Counter(stored.grades.filter(pc.is_valid(stored.grades["grade"]))["analyst_variant"].to_pylist())
    same_names = case is not None and stored.ids.to_pylist() == ids_of(case).to_pylist()
    why = {
        variant: _why_not(row, case if same_names else None, models)
        or (GRADES_LACKING if graded[variant] != row["n_grades"] else None)
        for row in told
        for variant in [row["analyst_variant"]]
    }
    taken = {row["analyst"]: reason for row in told if (reason := why[row["analyst_variant"]]) and row["status"] in _HAS_WORDS}
    kept = pa.array([variant for variant, reason in why.items() if reason is None], pa.string())
    if not len(kept):
        return KeptSummaries(None, taken)
    own = [table.filter(pc.is_in(table["analyst_variant"], kept)) for table in (rows, stored.grades)]
    # Parquet has a name of its own for the items of a list, by which rows would seem to be others.
    return KeptSummaries(StoredSummaries(own[0].cast(RUBRIC_SUMMARIES), own[1].cast(RUBRIC_GRADES), stored.ids), taken)


def ids_of(case: SummaryCase) -> pa.Table:
    """`ANALYST_IDS` of a case, with the names that tables have for models."""
    return case.ids.table(case.material.blueprint, case.material.snapshot, case.material.names)


def _why_not(row: Mapping[str, Any], case: SummaryCase | None, models: Models) -> str | None:
    """Why a summary is not kept; None: it is."""
    try:
        found = chosen_analysts([row["analyst"]], models)
    except ConfigError:
        return BY_NO_KNOWN_ANALYST
    if [one.variant for one in found] != [row["analyst_variant"]]:
        return BY_NO_KNOWN_ANALYST
    if case is None or case.material.test_hash != row["test_hash"]:
        return OF_ANOTHER_REPORT
    return None if row["request_keys"][:1] == [first_request(case, found[0]).key] else OF_ANOTHER_REPORT
