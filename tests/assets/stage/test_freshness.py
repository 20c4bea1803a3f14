"""The freshness policy of nightly tables: only with a panel, a warning after one missed night, a failure after two.

The daemon is called by its private names: in public it is a process of its own, whose clock cannot be set.
"""

from __future__ import annotations

from datetime import timedelta

import dagster as dg

from assets.stage.partitions import LATE, VERY_LATE, build_freshness_policy
from resources.settings import Settings


def test_in_force_only_where_there_is_a_panel() -> None:
    assert build_freshness_policy(Settings.read_environment({})) is None
    assert [at / timedelta(hours=1) for at in (LATE, VERY_LATE)] == [36, 60]
    policy = build_freshness_policy(Settings.read_environment({"DTEF_PANEL": "panel.yaml"}))
    assert policy == dg.FreshnessPolicy.time_window(warn_window=LATE, fail_window=VERY_LATE)
