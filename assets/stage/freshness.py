"""When what is made every night counts as late."""

from datetime import timedelta

import dagster as dg

from resources.settings import Settings

LATE, VERY_LATE = timedelta(hours=36), timedelta(hours=60)
"""One night missed, two nights missed; a night may begin late and take ten hours."""


def nightly_freshness(settings: Settings | None = None) -> dg.FreshnessPolicy | None:
    """The freshness policy of an asset that the nightly run makes: a warning after one missed night, a failure after two.

    In force where DTEF_PANEL names a panel: without a panel nothing is asked at night, and nothing can be late. Dagster looks at the newest
    materialization of any partition.
    """
    panel = (settings or Settings.from_environment()).panel
    return dg.FreshnessPolicy.time_window(warn_window=LATE, fail_window=VERY_LATE) if panel else None
