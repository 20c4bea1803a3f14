"""A round's partitions: registering them in one batch, and finding the ranges that select them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import dagster as dg

from assets.partitions import ROUND_SEGMENT
from dtef_pipeline.errors import SurveyError
from dtef_pipeline.identity import partition_key, split_partition_key
from dtef_pipeline.survey.model import Survey
from dtef_pipeline.survey.observe import observe
from resources.survey_source import SurveySources

RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
_NAME = str(ROUND_SEGMENT.name)


def known_keys(instance: dg.DagsterInstance) -> list[str]:
    return list(instance.get_dynamic_partitions(_NAME))


def segment_keys(survey: Survey, *, min_n: int) -> list[str]:
    """The partition keys of a survey: its segments with at least one usable answer, sorted.

    Raises SurveyError, counting the reasons, when there is none.
    """
    observed = observe(survey, min_n=min_n)
    segments = observed.responses["segment"].unique().to_pylist()
    if not segments:
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
            allowed=f"at least one pair with {min_n} respondents and percentages that sum to 100",
        )
    return sorted(partition_key(survey.round, segment) for segment in segments)


def register_round(
    instance: dg.DagsterInstance, sources: SurveySources, survey: Survey, path: Path, *, min_n: int
) -> tuple[list[str], list[str]]:
    """Make a round known: its source, and its partitions, new ones in one sorted batch.

    Returns (keys, retired): the round's keys, and those of earlier readings that it no longer has, which are retired: their partitions
    and tables go, their raw responses stay in the response store.
    """
    keys = segment_keys(survey, min_n=min_n)
    sources.register(survey, path, min_n=min_n)
    known = known_keys(instance)
    retired = [key for key in known if split_partition_key(key)[0] == survey.round and key not in set(keys)]
    for key in retired:
        instance.delete_dynamic_partition(_NAME, key)
        sources.warehouse.drop_segment(*split_partition_key(key))
    if new := [key for key in keys if key not in set(known)]:
        instance.add_dynamic_partitions(_NAME, new)
    return keys, retired


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
