"""The sensor that brings the scores from votes up to date when votes were added or voided."""

from typing import Any

import dagster as dg

from assets.preference.stored_votes import every_vote, note_votes
from assets.preference.voted_scores import preference_roll_ups, preference_scores
from assets.stage.resources import Store
from dtef_pipeline.preference.stored_votes import version_of_votes


@dg.sensor(
    job=preference_roll_ups,
    minimum_interval_seconds=600,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Brings the scores from votes up to date when votes were added or voided, with the options of the last roll-up. Asks no model.",
)
def scores_after_votes(context: dg.SensorEvaluationContext, store: Store) -> dg.RunRequest | dg.SkipReason:
    """One run per version of the votes; votes of which a roll-up failed are not tried again until there is another."""
    votes = every_vote(store)
    version = version_of_votes(votes)
    made = store.warehouse.tables(["preference_scores"])
    if not votes and not made:
        return dg.SkipReason("there are no votes in the response store")
    if made and version in store.warehouse.rows("preference_scores", columns=["votes_version"])["votes_version"].to_pylist():
        return dg.SkipReason(f"the scores are of the votes that there are ({version})")
    note_votes(context.instance, version)
    return dg.RunRequest(run_key=f"scores of votes {version}", run_config=_last_options(context.instance))


def _last_options(instance: dg.DagsterInstance) -> dict[str, Any]:
    """The run configuration of the roll-up that made the scores there are; the usual one where there are none."""
    made = instance.get_latest_materialization_event(preference_scores.key)
    run = instance.get_run_by_id(made.run_id) if made else None
    name = preference_scores.key.to_python_identifier()
    ops: Any = run.run_config.get("ops", {}) if run else {}
    own = ops.get(name)
    return {"ops": {name: own}} if own else {}


PREFERENCE_SENSORS = [scores_after_votes]
