"""A round's partitions: registering them in one batch, and finding the ranges that select them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.dagster_internals import RANGE_END, RANGE_START
from assets.stage.partitions import OWNERS
from assets.stage.versions import content_version, observation_tags, observed_versions
from dtef_pipeline.errors import SurveyError, WarehouseError
from dtef_pipeline.identity import partition_key, split_partition_key
from dtef_pipeline.survey.changes import COMPARED_COLUMNS, Changes, changes
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.model import Survey
from dtef_pipeline.survey.observe import observe
from dtef_pipeline.text.counted import counted
from resources.sources import Source, Sources

ROUND_SEGMENT = dg.DynamicPartitionsDefinition(name=SPACE.name)
ROUNDS_TAG = "dtef/rounds"
"""Which rounds a run is about, for those who read the list of runs."""
_NAME = SPACE.name


def known_keys(instance: dg.DagsterInstance) -> list[str]:
    return list(instance.get_dynamic_partitions(_NAME))


survey_files = dg.AssetSpec(
    "survey_files",
    description="""The survey as it stands in the file or folder of its round: one partition per segment, observed when a round is registered
    (`dtef ingest`, or the sensor `new_round`). Its data version is a hash of the segment's rows: where it is newer than what
    `survey_responses` was made from, that partition is stale at once, and each later stage as the one before it is made again.
    The observation says what changed.""",
    group_name="pipeline",
    owners=OWNERS,
    kinds={"file"},
    partitions_def=ROUND_SEGMENT,
)


class Registered(NamedTuple):
    """What registering a round came to. `retired`: keys of earlier readings that it no longer has; their partitions and tables are gone."""

    keys: list[str]
    retired: list[str]
    source: Source
    changes: Changes | None
    """Against the rows that are in the warehouse; None when the round has none yet."""


def observe_usable(survey: Survey, *, min_n: int) -> pa.Table:
    """The survey's rows. Raises SurveyError, counting the reasons, when not one (segment, question) pair can be used."""
    observed = observe(survey, min_n=min_n)
    if not len(observed.responses):
        reasons = Counter(observed.quarantine["reason"].to_pylist())
        faults = [
            finding["message"]
            for finding in observed.findings.to_pylist()
            if finding["level"] == "error" and finding["code"] != "nothing-usable"
        ]
        raise SurveyError(
            "no (segment, question) pair can be used: " + "; ".join(faults or ["nothing was answered"]),
            where=str(survey.path),
            arrived=", ".join(f"{count} {reason}" for reason, count in reasons.most_common()) or "no answers",
            allowed=f"at least one pair with {counted(min_n, 'respondent')} and percentages that sum to 100",
        )
    return observed.responses


def register_round(
    instance: dg.DagsterInstance, sources: Sources[Survey], survey: Survey, path: Path, *, min_n: int, hashed: str | None = None
) -> Registered:
    """Make a round known: its source, its partitions, and which of them hold something new.

    Segments that the round no longer has are retired; their raw responses stay in the response store. `hashed`: as of
    `Sources.register`. Done again for the same survey, it changes nothing and mends what a killed process left half done.
    """
    rows = observe_usable(survey, min_n=min_n)
    keys = sorted(partition_key(survey.round, segment) for segment in rows["segment"].unique().to_pylist())
    found = _changes(sources, survey.round, rows)
    source = sources.register(survey.round, path, adapter=survey.adapter, min_n=min_n, hashed=hashed)
    known, kept = known_keys(instance), set(keys)
    retired = [key for key in known if split_partition_key(key)[0] == survey.round and key not in kept]
    gone = set(retired)
    for key in retired:
        instance.delete_dynamic_partition(_NAME, key)
        sources.warehouse.drop(SPACE, key)
    _add_as_neighbours(instance, keys, [key for key in known if key not in gone])
    _observe_files(instance, source, rows, found)
    return Registered(keys, retired, source, found)


def _changes(sources: Sources[Survey], round_id: str, rows: pa.Table) -> Changes | None:
    """What differs from the earlier reading; None where there is none that can be read: the round is about to be made anew."""
    try:
        before = sources.warehouse.read_or_empty("survey_responses", columns=COMPARED_COLUMNS, round=round_id)
    except WarehouseError:
        return None
    return changes(before, rows) if len(before) else None


def _add_as_neighbours(instance: dg.DagsterInstance, keys: list[str], known: list[str]) -> None:
    """Add what is new of a round's keys; the earlier ones move to the end with them where they would be no range otherwise.

    Nothing is lost by that: what was materialized is kept by the key's name, and comes back with it.
    """
    there = set(known)
    new = [key for key in keys if key not in there]
    if not new:
        return
    if len(new) < len(keys) and len(list(ranges([*known, *new], keys))) > 1:
        for key in set(keys).intersection(known):
            instance.delete_dynamic_partition(_NAME, key)
        new = keys
    instance.add_dynamic_partitions(_NAME, new)


def _observe_files(instance: dg.DagsterInstance, source: Source, rows: pa.Table, found: Changes | None) -> None:
    """Tell Dagster the data version of each segment that holds something new; the others stay as they are."""
    segments = rows["segment"].unique().to_pylist()
    seen = observed_versions(instance, survey_files.key, [partition_key(source.round, segment) for segment in segments])
    for segment in segments:
        key, version = partition_key(source.round, segment), content_version(rows.filter(pc.field("segment") == segment))
        if seen.get(key) != version:
            metadata = {
                "changed": "new" if found is None else str(found),
                "source": source.path,
                "content_hash": source.content_hash,
                "landing": str(source.landing),
            }
            instance.report_runless_asset_event(
                dg.AssetObservation(survey_files.key, partition=key, metadata=metadata, tags=observation_tags(version))
            )


def ranges(known: Sequence[str], wanted: Sequence[str]) -> Iterator[list[str]]:
    """The wanted keys as runs of neighbours in the order of `known`: each can be selected as one range."""
    remaining, group = set(wanted), list[str]()
    for key in known:
        if key in remaining:
            group.append(key)
        elif group:
            yield group
            group = []
    if group:
        yield group


def range_tags(keys: Sequence[str]) -> dict[str, str]:
    """Run tags that select a range of neighbouring partitions."""
    return {RANGE_START: keys[0], RANGE_END: keys[-1]}
