"""The sensor that brings the scores from votes up to date when votes were added or voided."""

import dagster as dg

from assets.preference.score_assets import preference_roll_ups
from assets.preference.vote_assets import note_votes, read_all_votes
from assets.stage.resources import Store
from dtef_pipeline.preference.vote_selection import compute_votes_version


@dg.sensor(
    job=preference_roll_ups,
    minimum_interval_seconds=600,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Brings the scores from votes up to date when votes were added or voided, as the panel says. Asks no model.",
)
def scores_after_votes(context: dg.SensorEvaluationContext, store: Store) -> dg.RunRequest | dg.SkipReason:
    """One run per version of the votes; votes of which a roll-up failed are not tried again until there is another."""
    votes = read_all_votes(store)
    version = compute_votes_version(votes)
    tables = store.warehouse.tables(["preference_scores"])
    if not votes and not tables:
        return dg.SkipReason("there are no votes in the response store")
    if tables and version in store.warehouse.rows("preference_scores", columns=["votes_version"])["votes_version"].to_pylist():
        return dg.SkipReason(f"the scores include all votes ({version})")
    note_votes(context.instance, version)
    return dg.RunRequest(run_key=f"scores of votes {version}")


PREFERENCE_SENSORS = [scores_after_votes]
