"""What Dagster loads."""

import dagster as dg

from assets import aggregate, blueprint, boards, drift, ingest, predict, report, score, statistics
from assets.automation import JOBS, SCHEDULES, SENSORS
from assets.resources import Store

_MODULES = [ingest, blueprint, predict, score, aggregate, drift, boards, statistics, report]

defs = dg.Definitions(
    assets=dg.load_assets_from_modules(_MODULES),
    asset_checks=dg.load_asset_checks_from_modules(_MODULES),
    jobs=JOBS,
    schedules=SCHEDULES,
    sensors=SENSORS,
    resources={"store": Store()},
    # One process a run: a stage is seconds of work, starting a process for it would cost more.
    executor=dg.in_process_executor,
)
