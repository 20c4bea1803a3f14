"""Boards follow the partitions that they are made of, by the state there is: whatever made those, and whenever they landed."""

import json
import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from assets.stage import boards_sensor
from assets.stage.boards_sensor import LONGEST_PATIENCE_S, boards_after_run
from assets.stage.partitions import PROCESS_TAG
from assets.stage.resources import Store
from resources.responses.processes import Process

KEYS = dg.StaticPartitionsDefinition([f"s{place}" for place in range(9)])
BROKEN = "broken"


def _scored(context: dg.AssetExecutionContext, store: Store) -> None:
    del store
    if context.run.tags.get(BROKEN):
        raise dg.Failure("broken")


scores = dg.asset(name="scores", partitions_def=KEYS)(_scored)
votes = dg.asset(name="votes")(_scored)
board = dg.asset(name="board", deps=[scores])(_scored)
pages = dg.asset(name="pages", deps=[board, votes])(_scored)
job = dg.define_asset_job("boards", selection=dg.AssetSelection.assets(board, pages))
sensor = boards_after_run("boards_after_run", [board, pages], job, scores.key, "Boards follow.")
defs = dg.Definitions([scores, votes, board, pages], jobs=[job], sensors=[sensor], resources={"store": Store()})
EVERYTHING = defs.resolve_implicit_global_asset_job_def()


class Home:
    """A home of Dagster in memory, and the sensor's cursor."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance, self.cursor = instance, ""

    def make(self, *assets: dg.AssetsDefinition, key: str | None = None, **tags: str) -> dg.ExecuteInProcessResult:
        return EVERYTHING.execute_in_process(
            instance=self.instance,
            asset_selection=[asset.key for asset in assets],
            partition_key=key,
            tags=tags,
            raise_on_error=False,
        )

    def land(self, key: str) -> None:
        """A partition that some run made, without the run."""
        self.instance.report_runless_asset_event(dg.AssetMaterialization(scores.key, partition=key))

    def tick(self) -> list[set[str]] | str:
        """What the sensor has made, each run as the names of its assets; why it skips, where it does."""
        context = dg.build_sensor_context(instance=self.instance, cursor=self.cursor, sensor_name=sensor.name)
        result: Any = sensor(context)
        self.cursor = result.cursor
        if result.skip_reason:
            return str(result.skip_reason.skip_message)
        return [{key.to_user_string() for key in one.asset_selection or (board.key, pages.key)} for one in result.run_requests]

    def roll_up(self, **tags: str) -> None:
        assert self.make(board, pages, **tags)

    def unfinished(self, job_def: dg.JobDefinition, *assets: dg.AssetsDefinition, **tags: str) -> dg.DagsterRun:
        return self.instance.create_run_for_job(
            job_def,
            status=dg.DagsterRunStatus.STARTED,
            asset_selection=frozenset(asset.key for asset in assets) or None,
            tags=tags,
        )


@pytest.fixture
def home() -> Iterator[Home]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Home(instance)


ALL = [{"board", "pages"}]


def test_boards_follow_a_partition_that_was_made_in_any_way_once(home: Home) -> None:
    assert isinstance(home.tick(), str)
    home.land("s1")
    assert home.tick() == ALL
    home.roll_up()
    assert isinstance(home.tick(), str)


def test_what_lands_while_boards_are_made_is_rolled_up_once_more(home: Home) -> None:
    """A trigger by edge lost it: the run that was to follow had been asked for already."""
    home.land("s1")
    assert home.tick() == ALL
    run = home.unfinished(defs.resolve_job_def("boards"))
    home.instance.add_run_tags(run.run_id, {boards_sensor.READ_AFTER_TAG: str(_last_event(home.instance))})
    home.land("s2")
    skipped = home.tick()
    assert run.run_id in skipped
    # It ends, and made its boards without what landed meanwhile.
    for asset in (board, pages):
        home.instance.report_dagster_event(
            dg.DagsterEvent(
                dg.DagsterEventType.ASSET_MATERIALIZATION.value, run.job_name, event_specific_data=_materialized(asset)
            ),
            run.run_id,
        )
    home.instance.report_run_canceled(run)
    assert home.tick() == ALL
    home.roll_up()
    assert isinstance(home.tick(), str)


def test_boards_that_failed_wait_for_something_newer(home: Home) -> None:
    home.land("s1")
    assert home.tick() == ALL
    home.roll_up(broken="yes")
    assert [isinstance(home.tick(), str) for _ in range(3)] == [True] * 3
    home.land("s1")
    assert home.tick() == ALL


def test_only_what_reads_the_newer_asset_is_made_again(home: Home) -> None:
    home.land("s1")
    home.roll_up()
    home.make(votes)
    assert home.tick() == [{"pages"}]
    home.make(pages)
    assert isinstance(home.tick(), str)
    home.land("s1")
    home.make(board)  # one click on one board
    assert home.tick() == [{"pages"}]


def test_many_single_runs_are_few_roll_ups_and_none_is_put_off_for_ever(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(boards_sensor.time, "time", lambda: now)
    waiting = home.unfinished(EVERYTHING, scores)
    asked = 0
    for place in range(25):
        home.land(f"s{place % 9}")
        now += 30
        if home.tick() == ALL:
            asked += 1
            home.roll_up()
    assert 1 <= asked <= 25 * 30 // LONGEST_PATIENCE_S + 1
    home.land("s0")
    home.instance.report_run_canceled(waiting)
    assert home.tick() == ALL


def test_a_backfill_that_has_not_ended_is_waited_for(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    class Backfill:
        backfill_id, asset_selection = "abc", [scores.key]

    home.land("s1")
    monkeypatch.setattr(boards_sensor, "list_backfills", lambda _: [Backfill])
    assert "abc" in home.tick()
    monkeypatch.setattr(boards_sensor, "list_backfills", lambda _: [])
    assert home.tick() == ALL


class TestCommands:
    ALIVE = json.dumps(Process.current()._asdict())
    DEAD = json.dumps(Process.current()._replace(started="0")._asdict())

    def test_one_that_makes_its_own_boards_causes_no_second_ones(self, home: Home) -> None:
        home.make(scores, key="s1", **{PROCESS_TAG: self.ALIVE})
        assert isinstance(home.tick(), str)
        home.roll_up(**{PROCESS_TAG: self.ALIVE})
        assert isinstance(home.tick(), str)

    def test_one_that_ended_without_boards_is_followed_by_them(self, home: Home) -> None:
        home.make(scores, key="s1", **{PROCESS_TAG: self.DEAD})
        assert home.tick() == ALL

    def test_boards_of_a_killed_one_do_not_hold_up_others(self, home: Home) -> None:
        home.land("s1")
        home.unfinished(EVERYTHING, board, **{PROCESS_TAG: self.DEAD})
        assert home.tick() == ALL


def test_a_copied_tag_of_an_earlier_run_is_replaced_when_the_run_begins(home: Home) -> None:
    """Dagster copies the tags of a run to its re-execution, which reads what is there then."""
    home.land("s1")
    home.roll_up(**{boards_sensor.READ_AFTER_TAG: "0"})
    assert isinstance(home.tick(), str)


def _last_event(instance: dg.DagsterInstance) -> int:
    return instance.event_log_storage.get_maximum_record_id() or 0


def _materialized(asset: dg.AssetsDefinition) -> Any:
    from dagster._core.events import StepMaterializationData

    return StepMaterializationData(dg.AssetMaterialization(asset.key))
