"""Stage 7 of the rubric family: `rubric_summaries`."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.rubric.asked import RolesConfig, asking, models_of
from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.files import RUBRIC_BLUEPRINT
from assets.rubric.scores import rubric_scores
from assets.stage.checks import keys_repeated, read_keys, verdict
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.asking.episodes import Played, play
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError, NameLeak
from dtef_pipeline.rubric.anonymise import ANALYST_IDS
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_GRADES
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from dtef_pipeline.rubric.summary import NAME_LEFT, REPORT_CHARACTERS, prepared
from dtef_pipeline.rubric.summary_rows import (
    ANALYSTS,
    MaterialTables,
    Summarising,
    chosen_analysts,
    grade_rows,
    not_asked,
    summary_material,
    summary_rows,
)


class SummariesConfig(RolesConfig):
    """Who sums up, and how much they are shown."""

    analysts: list[str] = Field(
        default=[], description=f"Names, collections, or litellm strings; none: the members of the collection `{ANALYSTS}`."
    )
    report_characters: int = Field(
        default=REPORT_CHARACTERS, ge=1, description="The most characters of a report to an analyst."
    )


@dataclass(slots=True)
class _Plan:
    """What a blueprint's analysts are asked, or the row that says why nobody is."""

    episodes: list[Summarising] = field(default_factory=list)
    ids: pa.Table = field(default_factory=ANALYST_IDS.empty_table)
    instead: pa.Table | None = None


@dg.asset(
    deps=[rubric_scores],
    **{**stage(RUBRIC_BLUEPRINT, 7, "rubric_summaries", code_version="2", kinds={"litellm", "parquet"}), **RUBRIC_GROUP},
)
def rubric_summaries(context: dg.AssetExecutionContext, config: SummariesConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What an analyst says of a blueprint's responses: one row per analyst of a blueprint and snapshot, with its findings as a text for people.

    Analysts see opaque ids for makers, models, system prompts and temperatures; `analyst_ids` tells what they stand for. Their grades of each
    model in 13 dimensions are the table `rubric_grades`. A summary that could not be had is no failure of the run: `status` and `reason` say
    why, also where no analyst is named.
    """
    run = PartitionRun(context, store)
    analysts = chosen_analysts(config.analysts, models_of(store))
    plans: dict[str, _Plan] = {}
    for key in run.keys:
        with run.attempt(key):
            plans[key] = _plan(store, config, key, analysts)
    played = _played(context, store, config, analysts, plans.values())
    for key, plan in plans.items():
        with run.attempt(key):
            run.done(key, *_written(store, key, config.snapshot, plan, [next(played) for _ in plan.episodes]))
    return run.result()


def _plan(store: Store, config: SummariesConfig, key: str, analysts: tuple[ModelSpec, ...]) -> _Plan:
    house, at = store.warehouse, RUBRIC_SPACE.levels(key)
    responses, scores = (house.read(name, **at, snapshot=config.snapshot) for name in ("rubric_responses", "rubric_scores"))
    if not analysts:
        return _Plan(instead=not_asked(key, config.snapshot, "no analyst"))
    if responses["text"].null_count == len(responses):
        return _Plan(instead=not_asked(key, config.snapshot, "no response to sum up"))
    head, prompts, criteria = (house.read(name, **at) for name in ("rubric_blueprints", "rubric_prompts", "rubric_criteria"))
    material = summary_material(MaterialTables(head, prompts, criteria, responses, scores), config.snapshot)
    try:
        case = prepared(material, config.report_characters)
    except NameLeak as error:
        return _Plan(instead=not_asked(key, config.snapshot, str(error), NAME_LEFT))
    except ConfigError as error:
        return _Plan(instead=not_asked(key, config.snapshot, str(error)))
    episodes = [Summarising(case, analyst) for analyst in analysts]
    return _Plan(episodes, case.ids.table(key, config.snapshot, material.names))


def _played(
    context: dg.AssetExecutionContext,
    store: Store,
    config: SummariesConfig,
    analysts: tuple[ModelSpec, ...],
    plans: Iterable[_Plan],
) -> Any:
    """What came of all episodes, in order. Analysts of all blueprints are asked together, since each takes long."""
    episodes = [one for plan in plans for one in plan.episodes]
    if not episodes:
        return iter(list[Played]())
    with asking(context, store, config, analysts, Counter(one.analyst.name for one in episodes)) as ask:
        return iter(play(episodes, ask, store.responses.responses))


def _written(store: Store, key: str, snapshot: str, plan: _Plan, came: list[Played]) -> tuple[dict[str, Any], str]:
    """The metadata of the partition and the version of its rows."""
    at = {**RUBRIC_SPACE.levels(key), "snapshot": snapshot}
    rows = plan.instead if plan.instead is not None else summary_rows(plan.episodes, came)
    grades = grade_rows(plan.episodes, came) if plan.episodes else RUBRIC_GRADES.empty_table()
    for name, made in (("rubric_summaries", rows), ("rubric_grades", grades), ("analyst_ids", plan.ids)):
        store.warehouse.write(name, made, **at)
    return _metadata(rows, grades, snapshot), content_version(rows)


def _metadata(rows: pa.Table, grades: pa.Table, snapshot: str) -> dict[str, Any]:
    text = next((text for text in rows["text"].to_pylist() if text), None)
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "analysts": dg.MetadataValue.json(rows["analyst"].drop_null().to_pylist()),
        "statuses": markdown(rows, ["analyst", "status", "reason", "n_grades", "n_dropped", "share", "max_tokens"]),
        **({"cost_usd": cost} if (cost := pc.sum(rows["cost_usd"]).as_py()) is not None else {}),
        "grades": markdown(grades, ["analyst", "model", "dimension", "grade", "reasoning"], most=13),
        **({"summary": dg.MetadataValue.md(text)} if text else {}),
    }


@dg.asset_check(asset=rubric_summaries, blocking=True)
def rubric_summaries_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No summary counts twice: an analyst has one row per snapshot."""
    return keys_repeated(context, store, "rubric_summaries", ["analyst_variant", "snapshot"])


@dg.asset_check(asset=rubric_summaries)
def rubric_no_name_leaked(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Fails where a report to an analyst still held the name of a maker, model or provider. Such a report is not sent."""
    offenders, checked = [], 0
    for key, rows in read_keys(context, store, "rubric_summaries", ["snapshot", "status", "reason"]):
        checked += len(rows)
        left = rows.filter(pc.equal(rows["status"], NAME_LEFT))
        offenders += [f"{key} {row['snapshot']}: {row['reason']}" for row in left.to_pylist()]
    return verdict(offenders, checked=checked)
