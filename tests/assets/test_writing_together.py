"""Two runs of other models over the same partitions: what one wrote is kept by the other."""

from __future__ import annotations

import threading
import time

import pyarrow.compute as pc
import sqlalchemy as sa

from dtef_pipeline.identity import digest
from resources.responses import database as db
from resources.responses.claims import Claims
from resources.responses.store import ResponseStore
from resources.settings import Settings
from tests.assets.conftest import Pipeline
from tests.waiting import wait_until

AT = {"round": "T1", "segment": "country:kenya", "snapshot": "base"}
KEY = "T1/country:kenya"


def runs_at_work(store: ResponseStore) -> int:
    return store.database.read(
        lambda connection: connection.execute(sa.select(sa.func.count()).select_from(db.claimants)).scalar_one()
    )


def test_a_run_waits_while_another_writes_the_partition_and_keeps_its_rows(done: Pipeline) -> None:
    before = done.house.read("predictions", **AT)
    assert done.run(["predictions"], keys=[KEY], predictions={"models": ["baseline/dirichlet"]}).failures == ()
    theirs = done.house.read("predictions", **AT)
    done.house.write("predictions", before, **AT)
    outcomes = []
    run = threading.Thread(
        target=lambda: outcomes.append(
            done.run(["predictions"], keys=[KEY], predictions={"models": ["baseline/leave-one-out-marginal"]})
        )
    )
    with ResponseStore(Settings.read_environment().responses_url) as store, Claims(store) as claims:
        with claims.hold_all([digest("predictions", KEY)]):
            run.start()
            wait_until(lambda: runs_at_work(store) == 2, 30)
            time.sleep(0.5)
            done.house.write("predictions", theirs, **AT)
        run.join()
    assert [outcome.failures for outcome in outcomes] == [()]
    models = set(pc.unique(done.house.read("predictions", **AT)["model"]).to_pylist())
    assert {"baseline/dirichlet", "baseline/leave-one-out-marginal"} <= models
