"""The assets `FAMILY_anchors`, in which judges score stored answers again."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.asking import asking
from assets.engine.settings_config import takes_settings
from assets.stage.family_drift import load_drift_section
from assets.stage.partitions import SNAPSHOT_TAG, markdown, roll_up
from assets.stage.resources import Store
from dtef_pipeline.asking.episodes import play, split_into_windows
from dtef_pipeline.drift.judge_verdicts import AnchorJudging, add_anchors, build_anchor_rows, judge_drift
from dtef_pipeline.drift.subject import AnchorSubject, Row, Subject
from dtef_pipeline.drift.verdict_tables import ANCHORS
from dtef_pipeline.family.stage import Limits

_BATCH_SIZE = 5_000


def build_anchor_asset(
    subject: Subject,
    settings_type: type[Any],
    setting_names: Sequence[str],
    judgings: Callable[[Store, Any, Sequence[Row]], Iterable[AnchorJudging]],
    limits: Callable[[Store, Any], Limits] = lambda store, settings: Limits(),
    *,
    dep: str,
) -> dg.AssetsDefinition:
    """Return the asset. `judgings`: returns the judgements of the anchors in the settings' snapshot, none if judging is off."""
    family, source = subject.family, subject.anchors
    assert source is not None, f"{family} has no anchors"
    name = f"{family}_anchors"

    def compute(context: dg.AssetExecutionContext, settings: Any, store: Store) -> dg.MaterializeResult[Any]:
        """Repeated judgements of stored answers: one row per snapshot, anchor, judge and evaluator, in the table `anchors`.

        An anchor is a judged answer that never changes (`anchor_items`), so any change between snapshots is due to the judge. Each snapshot
        requests every judgement once. `judge_drift` lists the judges that changed.
        """
        anchors = _fill_anchors(store, family, source, settings.anchors or source.n, settings.anchor_seed)
        judged = list(judgings(store, settings, anchors.to_pylist()))
        if not judged:
            context.log.info("nothing to judge again: judging is off, or no answer has a judged score yet")
        specs = list({judging.judge.variant: judging.judge for judging in judged}.values())
        expected = Counter(judging.judge.name for judging in judged)
        tables = [ANCHORS.empty_table()]
        with asking(context, store, settings, specs, expected, limits(store, settings)) as ask:
            for window in split_into_windows(judged, _BATCH_SIZE):
                outcomes = play([judging.episode for judging in window], ask, store.responses.responses)
                tables.append(build_anchor_rows(settings.snapshot, window, outcomes, source.read))
        rows = pa.concat_tables(tables)
        store.warehouse.write("anchors", rows, family=family, snapshot=settings.snapshot)
        store.warehouse.refresh_database()
        shifts = judge_drift(subject, store.warehouse.read("anchors", family=family), load_drift_section(store.settings))
        return _build_result(context, rows, settings.snapshot, len(anchors), shifts)

    attributes = roll_up("anchors", code_version="3", group=family, kinds={"litellm", "parquet"})
    decorate = dg.asset(name=name, deps=[dg.AssetKey(dep)], **attributes)
    definition: dg.AssetsDefinition = decorate(takes_settings(settings_type, name, setting_names)(compute))
    return definition


def _fill_anchors(store: Store, family: str, source: AnchorSubject, n: int, seed: int) -> pa.Table:
    """Return `n` anchors, or fewer; new ones are added and stored if there are tables to choose from."""
    house = store.warehouse
    anchors = house.read_or_empty("anchor_items", family=family)
    if len(anchors) < n and set(house.tables(source.reads)) == set(source.reads):
        anchors = house.query(lambda connection: add_anchors(family, source, anchors, n, seed, connection), only=source.reads)
        house.write("anchor_items", anchors, family=family)
    return anchors.slice(0, n)


def _build_result(
    context: dg.AssetExecutionContext, rows: pa.Table, snapshot: str, anchors: int, shifts: pa.Table
) -> dg.MaterializeResult[Any]:
    """Return the result. `shifts`: the verdict on each judge."""
    if SNAPSHOT_TAG not in context.run.tags:
        context.instance.add_run_tags(context.run.run_id, {SNAPSHOT_TAG: snapshot})
    reasons = {row["values"] or "judged": row["counts"] for row in pc.value_counts(rows["reason"]).to_pylist()}
    columns = ["judge", "evaluator", "verdict", "shift", "shift_low", "shift_high", "n_snapshots", "n_items"]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "snapshot": snapshot,
            "anchors": anchors,
            "outcomes": dg.MetadataValue.json(reasons),
            "judges": markdown(shifts, columns, n=20),
        }
    )
