"""Stage 6, drift: `drift_checks`."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

import dagster as dg
import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.checks import asset_check
from assets.stage.drift_checks import counted_verdicts, drift_result
from assets.stage.freshness import nightly_freshness
from assets.stage.panel_drift import drift_section
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.survey.aggregate import segment_results
from assets.survey.moved_questions import named
from assets.survey.rounds import ROUND_SEGMENT
from assets.survey.store import SurveyStore
from dtef_pipeline.asking.snapshot_order import snapshot_order
from dtef_pipeline.drift.checks import columns_needed
from dtef_pipeline.drift.checks import drift_checks as check_drift
from dtef_pipeline.drift.headline import headline
from dtef_pipeline.survey.attributes import is_non_answer
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.identity import SPACE

_PREVIEWED_CHECKS = [
    "model",
    "way",
    "n_snapshots",
    "verdict",
    "night_verdict",
    "shift",
    "first_snapshot",
    "lowest",
    "highest",
    "reason",
]


@dg.asset(
    deps=[segment_results], freshness_policy=nightly_freshness(), **stage(ROUND_SEGMENT, 6, "drift_checks", code_version="13")
)
def drift_checks(context: dg.AssetExecutionContext, store: SurveyStore) -> dg.MaterializeResult[Any]:
    """Whether a model's score on the same prompts moved between snapshots: one row per (model variant, context level, prompt set).

    `verdict` is `watch` where the documented rule flags the series (at temperature 0, over snapshots that span 23 hours, the highest mean
    score is at least 0.05 and at least 10 % above the lowest), and `drift` where there is strong evidence of a shift besides. `reason` says what
    was compared, or why nothing was. `night_verdict` says whether all models of the segment moved together.
    A model over all its segments is in `drift`. A segment of people who gave no answer has no row.
    """
    run = PartitionRun(context, store)
    rounds = sorted({SPACE.split(key)[0] for key in run.keys})
    snapshots = _snapshots(store)
    # Segments of a round with snapshots to compare: they share one error rate.
    watched = Counter(
        round_id for (round_id, segment), labels in snapshots.items() if len(labels) > 1 and not is_non_answer(segment)
    )
    clusters = store.warehouse.query(SUBJECT.linked, only=["survey_responses"], first=rounds)
    check = partial(
        check_drift, subject=SUBJECT, options=drift_section(store.settings), order=_order(store, snapshots), clusters=clusters
    )
    for key in run.keys:
        with run.attempt(key):
            at = SPACE.levels(key)
            scores = store.warehouse.read("scores", columns=columns_needed(SUBJECT.keys), **at)
            rows = named(store.warehouse, check(scores, watched=watched[at[SPACE.first]]))
            store.warehouse.write("drift_checks", rows, **at)
            run.done(
                key,
                {
                    "dagster/row_count": len(rows),
                    "flagged": pc.sum(pc.cast(rows["flagged"], "int64")).as_py() or 0,
                    **counted_verdicts(rows),
                    "headline": headline(rows, SUBJECT),
                    "preview": markdown(rows, _PREVIEWED_CHECKS, most=12),
                },
            )
    return run.result()


@asset_check(asset=drift_checks)
def no_drift(store: SurveyStore) -> dg.AssetCheckResult:
    """Fails for a model that drifted on a segment, warns of one to watch, unless the panel's `severity` says otherwise.

    About all rounds: what a night found does not turn green when a run of another round follows.
    """

    def look(connection: duckdb.DuckDBPyConnection) -> tuple[int, pa.Table]:
        ((checked,),) = connection.execute("SELECT count(*) FROM drift_checks").fetchall()
        found = connection.sql(
            "SELECT * FROM drift_checks WHERE verdict IN ('watch', 'drift') OR night_first_snapshot IS NOT NULL"
        ).to_arrow_table()
        return checked, found

    checked, found = store.warehouse.query(look, only=["drift_checks"])
    return drift_result(found, checked, drift_section(store.settings).severity, SUBJECT)


def _snapshots(store: SurveyStore) -> dict[tuple[str, str], set[str]]:
    """The snapshots of each round and segment that has scores, as the folders tell."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for file in store.warehouse.files("scores"):
        _, at = store.warehouse.place(file)
        found[at[SPACE.first], at[SPACE.last]].add(at["snapshot"])
    return found


def _order(store: SurveyStore, snapshots: Mapping[tuple[str, str], set[str]]) -> list[str] | None:
    """That of all snapshots; None: there are no scores that can be read. For a single one no file is opened."""
    labels = set().union(*snapshots.values())
    if len(labels) == 1:
        return list(labels)
    try:
        return store.warehouse.query(snapshot_order, only=["scores"])
    except duckdb.CatalogException:
        return None
