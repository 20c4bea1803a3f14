"""Checks of surveys over whole rounds and over all snapshots."""

import dagster as dg
import duckdb
import pyarrow as pa

from assets.stage.checks import asset_check, verdict
from assets.stage.family_drift import build_drift_result, load_drift_section
from assets.stage.resources import Store
from dtef_pipeline.survey.drift_subject import SUBJECT

_MAX_QUARANTINED = 0.25
"""Share of a round's pairs in quarantine above which the check warns."""


@asset_check(asset=dg.AssetKey("survey_responses"))
def quarantine_is_small(store: Store) -> dg.AssetCheckResult:
    """Warns if over a quarter of a round's (segment, question) pairs are in quarantine."""
    rounds = store.warehouse.values("survey_responses", "round")
    shares = {}
    for round_id in rounds:
        quarantine = store.warehouse.rows("survey_quarantine", columns=["question_id"], round=round_id)
        pairs = len(quarantine) - quarantine["question_id"].null_count
        n_responses = len(store.warehouse.rows("survey_responses", columns=["question_id"], round=round_id))
        shares[round_id] = pairs / max(1, pairs + n_responses)
    offenders = [f"{round_id}: {share:.1%} of the pairs" for round_id, share in shares.items() if share > _MAX_QUARANTINED]
    return verdict(offenders, n_checked=len(rounds), severity=dg.AssetCheckSeverity.WARN)


@asset_check(asset=dg.AssetKey("survey_responses"))
def columns_are_recognised(store: Store) -> dg.AssetCheckResult:
    """Fails if a round has findings of level error, such as segment columns that were not recognised and are left out."""
    rounds = store.warehouse.values("survey_responses", "round")
    offenders = []
    for round_id in rounds:
        findings = store.warehouse.rows("survey_findings", round=round_id).to_pylist()
        offenders += [f"{round_id}: {f['message']}: {', '.join(f['items'])}" for f in findings if f["level"] == "error"]
    return verdict(offenders, n_checked=len(rounds))


@asset_check(asset=dg.AssetKey("drift_checks"))
def segment_has_no_drift(store: Store) -> dg.AssetCheckResult:
    """Fails for a model with the verdict `drift` on a segment and warns for `watch`, unless the panel's `severity` sets other levels.

    It covers all rounds, so running another round does not hide a finding.
    """

    def look(connection: duckdb.DuckDBPyConnection) -> tuple[int, pa.Table]:
        ((n_checked,),) = connection.execute("SELECT count(*) FROM drift_checks").fetchall()
        rows = connection.sql(
            "SELECT * FROM drift_checks WHERE verdict IN ('watch', 'drift') OR shared_first_snapshot IS NOT NULL"
        ).to_arrow_table()
        return n_checked, rows

    n_checked, rows = store.warehouse.query(look, only=["drift_checks"])
    return build_drift_result(rows, n_checked, load_drift_section(store.settings).severity, SUBJECT)
