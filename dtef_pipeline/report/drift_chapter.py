"""The chapter on drift of a family whose series are watched over snapshots: verdicts with timelines, and beneath them what the family adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.drift.headline import headline
from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_tables import DRIFT, DRIFT_SERIES
from dtef_pipeline.report.drift import drift
from dtef_pipeline.report.isolated import missing
from dtef_pipeline.report.markup import Column, estimate, fold, named, paragraph, section, table, whole
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRows


class WatchedSeries(NamedTuple):
    """What a family's chapter is made of, and what it says where there is nothing to compare."""

    subject: Subject
    how: str
    """What drift is here, in a sentence."""
    made_by: str
    """What makes the tables."""
    run: str
    """The command that makes another snapshot."""


def drift_chapter(
    rows: StoredRows,
    watched: WatchedSeries,
    beneath: Callable[[pa.Table, pd.DataFrame], str],
) -> Chapter:
    """The chapter; without tables it says what makes them.

    `beneath`: makes markup of all verdicts, and of the series without one.
    """
    return Chapter("drift", "Drift", _section(rows, watched, beneath))


def _section(
    rows: StoredRows,
    watched: WatchedSeries,
    beneath: Callable[[pa.Table, pd.DataFrame], str],
) -> str:
    made, of_family = (("drift", DRIFT), ("drift_series", DRIFT_SERIES)), {"family": watched.subject.family}
    if not all(set(schema.names) <= rows.columns(name) for name, schema in made):
        return section("drift", "Drift", watched.how, missing("No drift to show", watched.made_by))
    order = ("model_variant", "way", "snapshot")
    checks, series = (rows.table(name, schema.names, of_family, order) for name, schema in made)
    was_compared = pc.is_valid(checks["verdict"])
    if not any(was_compared.to_pylist()):
        again = f"the same `{watched.run}` on another day, with that day as --snapshot, makes something to compare"
        nothing = headline(checks, watched.subject).rstrip(".") if len(checks) else "No drift to show"
        return section("drift", "Drift", watched.how, missing(nothing, again))
    left = checks.filter(pc.invert(was_compared)).to_pandas()
    found = ModelDrift(checks.filter(was_compared), series)
    return drift(found, watched.subject, beneath(checks, left))


RULED = (
    Column("partition", "Where", named),
    Column("model", "Model", named),
    Column("way", "Asked as", named),
    Column("gap", "Gap", estimate),
    Column("lowest", "Lowest", estimate),
    Column("lowest_snapshot", "in", named),
    Column("highest", "Highest", estimate),
    Column("highest_snapshot", "in", named),
    Column("n_items", "Items", whole),
)
"""The columns of what the documented rule flags."""


def flagged_partitions(rows: StoredRows, subject: Subject, things: str, shown: Callable[[pd.DataFrame], pd.DataFrame]) -> str:
    """The single partitions that the documented rule flags, the largest gap first. `things`: what they are called, in the plural.

    `shown`: makes names fit to be shown.
    """
    found = rows.frame("drift_rule", {"family": subject.family})
    flagged = found[found["flagged"].eq(True)] if len(found) else found
    compared = int(found["gap"].notna().sum()) if len(found) else 0
    words = paragraph(f"Single {things}: {len(flagged)} flagged of {compared} compared ({len(found)} series in all).")
    if not len(flagged):
        return words
    by = ["gap", "partition", "model_variant", "way"]
    flagged = flagged.sort_values(by, ascending=[False, True, True, True], ignore_index=True)
    return words + table(shown(flagged), RULED, caption=f"{things.capitalize()} that the documented rule flags", data=flagged)


def not_compared(shown: pd.DataFrame, columns: Sequence[Column], data: pd.DataFrame) -> str:
    """The series without a verdict, in a part that opens; nothing where there are none."""
    if not len(shown):
        return ""
    return fold(f"Not compared, and why ({len(shown):,} series)", table(shown, columns, caption="Not compared", data=data))
