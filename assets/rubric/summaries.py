"""Stage 7 of the rubric family: `rubric_summaries`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.files import RUBRIC_BLUEPRINT
from assets.rubric.scores import rubric_scores
from assets.stage.asked import RolesConfig, asking, models_of
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import TAKEN_AWAY, PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.asking.episodes import Played, play
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError, NameLeak
from dtef_pipeline.rubric.anonymise import ANALYST_IDS
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_GRADES, RUBRIC_SUMMARIES
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from dtef_pipeline.rubric.summary import NAME_LEFT, REPORT_CHARACTERS, SummaryCase, prepared
from dtef_pipeline.rubric.summary_rows import (
    ANALYSTS,
    MaterialTables,
    StoredSummaries,
    Summarising,
    chosen_analysts,
    grade_rows,
    ids_of,
    kept_summaries,
    not_asked,
    summary_material,
    summary_rows,
)

_WRITTEN_TABLES = {"rubric_summaries": RUBRIC_SUMMARIES, "rubric_grades": RUBRIC_GRADES, "analyst_ids": ANALYST_IDS}
"""The tables that the stage writes."""


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
    """What a blueprint's analysts are asked, or the rows that stand there without asking."""

    episodes: list[Summarising] = field(default_factory=list)
    ids: pa.Table = field(default_factory=ANALYST_IDS.empty_table)
    instead: pa.Table | None = None
    """Of `rubric_summaries`: what is kept, or the row that says why nobody is asked."""
    grades: pa.Table = field(default_factory=RUBRIC_GRADES.empty_table)
    """Those that are kept."""
    taken_away: Mapping[str, str] = field(default_factory=dict)
    """By analyst whose stored summary goes: why."""


@dg.asset(
    deps=[rubric_scores],
    **{**stage(RUBRIC_BLUEPRINT, 7, "rubric_summaries", code_version="2", kinds={"litellm", "parquet"}), **RUBRIC_GROUP},
)
def rubric_summaries(context: dg.AssetExecutionContext, config: SummariesConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What an analyst says of a blueprint's responses: one row per analyst of a blueprint and snapshot, with its findings as a text for people.

    Analysts see opaque ids for makers, models, system prompts and temperatures; `analyst_ids` tells what they stand for. Their grades of each
    model in 13 dimensions are the table `rubric_grades`. A summary that could not be had is no failure of the run: `status` and `reason` say
    why. Where no analyst is named, a stored summary is kept if it is of this very report, and otherwise taken away with a warning.
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
            run.done(key, *_written(context, store, key, config.snapshot, plan, [next(played) for _ in plan.episodes]))
    return run.result()


def _plan(store: Store, config: SummariesConfig, key: str, analysts: tuple[ModelSpec, ...]) -> _Plan:
    if not analysts:
        return _without_analyst(store, config, key)
    case = _case(store, config, key)
    if isinstance(case, pa.Table):
        return _Plan(instead=case)
    return _Plan([Summarising(case, analyst) for analyst in analysts], ids_of(case))


def _case(store: Store, config: SummariesConfig, key: str) -> SummaryCase | pa.Table:
    """What analysts are asked about, or the row that says why they are not asked."""
    house, at = store.warehouse, RUBRIC_SPACE.levels(key)
    responses, scores = (house.read(name, **at, snapshot=config.snapshot) for name in ("rubric_responses", "rubric_scores"))
    if responses["text"].null_count == len(responses):
        return not_asked(key, config.snapshot, "no response to sum up")
    head, prompts, criteria = (house.read(name, **at) for name in ("rubric_blueprints", "rubric_prompts", "rubric_criteria"))
    material = summary_material(MaterialTables(head, prompts, criteria, responses, scores), config.snapshot)
    try:
        return prepared(material, config.report_characters)
    except NameLeak as error:
        return not_asked(key, config.snapshot, str(error), NAME_LEFT)
    except ConfigError as error:
        return not_asked(key, config.snapshot, str(error))


def _without_analyst(store: Store, config: SummariesConfig, key: str) -> _Plan:
    """What is stored, as far as it is of this very report. It was paid for, and a run that names no analyst has none in its place."""
    nobody = not_asked(key, config.snapshot, "no analyst")
    at = {**RUBRIC_SPACE.levels(key), "snapshot": config.snapshot}
    store.warehouse.read("rubric_scores", columns=["level"], **at)  # a snapshot that is not scored is an error all the same
    earlier = [store.warehouse.read_earlier(name, **at) for name in _WRITTEN_TABLES]
    stored = StoredSummaries(
        *(schema.empty_table() if one is None else one for schema, one in zip(_WRITTEN_TABLES.values(), earlier, strict=True))
    )
    if stored.summaries["analyst"].null_count == len(stored.summaries):
        return _Plan(instead=nobody)
    case = _case(store, config, key)
    kept, taken_away = kept_summaries(stored, None if isinstance(case, pa.Table) else case, models_of(store))
    if kept is None:
        return _Plan(instead=nobody, taken_away=taken_away)
    return _Plan(ids=kept.ids, instead=kept.summaries, grades=kept.grades, taken_away=taken_away)


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


def _written(
    context: dg.AssetExecutionContext, store: Store, key: str, snapshot: str, plan: _Plan, came: list[Played]
) -> tuple[dict[str, Any], str]:
    """The metadata of the partition and the version of its rows."""
    at = {**RUBRIC_SPACE.levels(key), "snapshot": snapshot}
    rows = plan.instead if plan.instead is not None else summary_rows(plan.episodes, came)
    grades = grade_rows(plan.episodes, came) if plan.episodes else plan.grades
    for name, made in zip(_WRITTEN_TABLES, (rows, grades, plan.ids), strict=True):
        store.warehouse.write(name, made, **at)
    for analyst, why in plan.taken_away.items():
        context.log.warning(f"{key}: no analyst is named, and the summary and grades by {analyst} were taken away: {why}")
    gone = {TAKEN_AWAY: dg.MetadataValue.json(dict(plan.taken_away))} if plan.taken_away else {}
    return {**_metadata(rows, grades, snapshot), **gone}, content_version(rows)


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


@asset_check(asset=rubric_summaries, blocking=True)
def rubric_summaries_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """No summary counts twice: an analyst has one row per snapshot."""
    return keys_repeated(context, store, "rubric_summaries", ["analyst_variant", "snapshot"])


@asset_check(asset=rubric_summaries)
def rubric_no_name_leaked(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Fails where a report to an analyst still held the name of a maker, model or provider. Such a report is not sent."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "rubric_summaries", ["snapshot", "status", "reason"]):
        checked += len(rows)
        left = rows.filter(pc.equal(rows["status"], NAME_LEFT))
        offenders += [(key, f"{row['snapshot']}: {row['reason']}") for row in left.to_pylist()]
    return partition_verdict(context, offenders, checked=checked)
