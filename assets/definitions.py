"""What Dagster loads."""

import dagster as dg

from assets import aggregate, blueprint, boards, drift, ingest, predict, score
from assets.automation import JOBS, SCHEDULES, SENSORS
from assets.resources import Store

_MODULES = [ingest, blueprint, predict, score, aggregate, drift, boards]

defs = dg.Definitions(
    assets=dg.load_assets_from_modules([ingest, blueprint, predict, score, aggregate, drift, boards]),
    asset_checks=dg.load_asset_checks_from_modules(_MODULES),
    jobs=JOBS,
    schedules=SCHEDULES,
    sensors=SENSORS,
    resources={"store": Store()},
    # One process a run: a stage is seconds of work, starting a process for it would cost more.
    executor=dg.in_process_executor,
)
