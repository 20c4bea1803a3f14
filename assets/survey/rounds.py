"""A round's partitions: their sources, their registration in one batch, checks against losing data, and checks of whole rounds."""

import shlex
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.checks import asset_check, verdict
from assets.stage.family_drift import build_drift_result, load_drift_section
from assets.stage.file_notes import list_partitions
from assets.stage.partitions import OWNERS, split_ranges
from assets.stage.resources import Store
from assets.stage.versions import build_observation_tags, content_version, read_observed_versions
from dtef_pipeline.errors import SurveyError, WarehouseError
from dtef_pipeline.identity import partition_key, split_partition_key
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.changes import (
    COMPARED_COLUMNS,
    Changes,
    add_moved_texts,
    compare_readings,
    list_moved_rounds,
    select_losses,
)
from dtef_pipeline.survey.completeness import ALLOWANCES, remove_multi_select, require_whole_survey
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.model import Survey
from dtef_pipeline.survey.observations import MIN_N, ObservedRound, observe
from resources.sources import Source, Sources
from resources.warehouse import Warehouse

ROUND_SEGMENT = dg.DynamicPartitionsDefinition(name=SPACE.name)
_NAME = SPACE.name
_MAX_QUARANTINED = 0.25
"""Share of a round's pairs in quarantine above which the check warns."""

survey_files = dg.AssetSpec(
    "survey_files",
    description="The survey in the file or folder of its round: one partition per segment, observed when a round is registered (`dtef add`, or "
    "the sensor `new_round`). Its data version is a hash of the segment's rows; if it changes, the partition of `survey_responses` becomes "
    "stale at once. The observation says what changed.",
    group_name="survey",
    owners=OWNERS,
    kinds={"file"},
    partitions_def=ROUND_SEGMENT,
)


class RegistrationResult(NamedTuple):
    """The result of registering a round. `retired`: earlier keys that it no longer has; their partitions and tables are deleted."""

    keys: list[str]
    retired: list[str]
    source: Source
    changes: Changes | None
    """Changes from the rows in the warehouse; None if the round has none yet."""


def _nothing_usable(survey: Survey, observed: ObservedRound) -> SurveyError:
    """Return the error on a round without a usable pair: the reasons, each with its first example, and the place of the first of these."""
    rows = observed.quarantine.to_pylist()
    first = {row["reason"]: row for row in reversed(rows)}
    reasons = [
        finding["message"]
        for finding in observed.findings.to_pylist()
        if finding["level"] == "error" and finding["code"] != "nothing-usable"
    ]
    counts = Counter(row["reason"] for row in rows).most_common()
    reasons += [f"{count:,} {reason} ({first[reason]['segment']}: {first[reason]['detail']})" for reason, count in counts]
    example: Mapping[str, Any] = first[counts[0][0]] if counts else {"file": survey.path, "line": None}
    return SurveyError(
        f"no (segment, question) pair can be used: {'; '.join(reasons) or 'nothing was answered'}",
        where=example["file"],
        line=example["line"],
    )


def check_round(
    sources: Sources[Survey],
    survey: Survey,
    *,
    min_n: int,
    allowed: Collection[str] = (),
    replace: bool = False,
    design_effect: float | None = None,
) -> ObservedRound:
    """Return the tables of a round. Raises SurveyError if it is incomplete or unusable or would lose data; see `register_round`."""
    survey = require_whole_survey(remove_multi_select(survey), allowed)
    effect = sources.find_design_effect(survey.round, design_effect)
    observed = observe(survey, min_n=min_n, design_effect=effect)
    if not len(observed.responses):
        raise _nothing_usable(survey, observed)
    if not replace:
        refuse_losses(sources, survey, observed, min_n, allowed, design_effect)
    return observed


def register_round(
    instance: dg.DagsterInstance,
    sources: Sources[Survey],
    survey: Survey,
    path: Path,
    *,
    min_n: int,
    checksum: str | None = None,
    allowed: Collection[str] = (),
    replace: bool = False,
    design_effect: float | None = None,
) -> RegistrationResult:
    """Register a round: its source, its partitions, and which of them are new or have changed.

    Segments that the round no longer has are retired; their raw responses stay in the response store. `checksum`: see
    `Sources.register`. `allowed`: see `require_whole_survey`. `replace`: whether the round may lose stored data.
    `design_effect`: see `Sources.register`; 1 or more.
    Raises SurveyError, without changing anything, if something is missing or lost that may not be.
    Repeated for the same survey, it changes nothing, except that it completes what a killed process left undone.
    """
    rows = check_round(sources, survey, min_n=min_n, allowed=allowed, replace=replace, design_effect=design_effect).responses
    keys = sorted(partition_key(survey.round, segment) for segment in rows["segment"].unique().to_pylist())
    changes = _compare_earlier(sources, survey.round, rows)
    source = sources.register(
        survey.round, path, adapter=survey.adapter, min_n=min_n, checksum=checksum, allowed=allowed, design_effect=design_effect
    )
    known_keys, key_set = list_partitions(instance, SPACE), set(keys)
    retired_keys = [key for key in known_keys if split_partition_key(key)[0] == survey.round and key not in key_set]
    gone_keys = set(retired_keys)
    for key in retired_keys:
        instance.delete_dynamic_partition(_NAME, key)
        sources.warehouse.drop(SPACE, key)
    _add_as_neighbours(instance, keys, [key for key in known_keys if key not in gone_keys])
    _observe_files(instance, source, rows, changes)
    return RegistrationResult(keys, retired_keys, source, changes)


def refuse_losses(
    sources: Sources[Survey],
    survey: Survey,
    observed: ObservedRound,
    min_n: int,
    allowed: Collection[str] = (),
    design_effect: float | None = None,
) -> None:
    """Raise SurveyError if the round would lose data that its tables have.

    `allowed`: see `require_whole_survey`; the command in the error repeats these options and a given `design_effect`. What is lost because
    of a new minimum of respondents does not count: someone chose that.
    """
    before = sources.find_previous(survey.round)
    if before is not None and before.min_n != min_n:
        observed = observe(survey, min_n=before.min_n)
    changes = _compare_earlier(sources, survey.round, observed.responses)
    losses = select_losses(changes, observed.quarantine) if changes is not None else Changes()
    if losses == Changes():
        return
    rows = observed.quarantine.to_pylist()
    missing = {*losses.segments_dropped, *losses.pairs_dropped}
    now = [row for row in rows if {row["segment"], f"{row['segment']} {row['question_id']}"} & missing]
    reasons = Counter(row["reason"] for row in now)
    note = f"; now in quarantine: {', '.join(f'{n} {reason}' for reason, n in reasons.most_common())}" if reasons else ""
    first = f", such as {now[0]['file']}:{now[0]['line']}: {now[0]['detail']}" if now and now[0]["line"] else ""
    remaining = {segment.partition(":")[0] for segment in observed.responses["segment"].unique().to_pylist()}
    attributes = sorted({segment.partition(":")[0] for segment in losses.segments_dropped} - remaining)
    whole_attributes = f"; nothing is left of: {', '.join(attributes)}" if attributes else ""
    problem = f"round {survey.round} would lose data that is stored: {losses}{whole_attributes}{note}{first}"
    remedy = f"correct the file, or accept the loss with `{_format_replace_command(survey, min_n, allowed, design_effect)}`"
    raise SurveyError(f"{problem}; nothing was changed: {remedy}", where=survey.path)


def _format_replace_command(survey: Survey, min_n: int, allowed: Collection[str], design_effect: float | None) -> str:
    """Return the command that reads a round with the same options and accepts losses."""
    options = [
        *(option for code, option in ALLOWANCES.items() if code in allowed),
        *([f"--min-n {min_n}"] if min_n != MIN_N else ()),
        *([f"--design-effect {design_effect:g}"] if design_effect is not None else ()),
        "--replace",
    ]
    return f"dtef add {shlex.quote(survey.path)} --round {survey.round} {' '.join(options)}"


def _compare_earlier(sources: Sources[Survey], round_id: str, rows: pa.Table) -> Changes | None:
    """Return the changes from the earlier reading, or None without a readable one, because the round is about to be rebuilt."""
    try:
        before = sources.warehouse.read_or_empty("survey_responses", columns=COMPARED_COLUMNS, round=round_id)
    except WarehouseError:
        return None
    return compare_readings(before, rows) if len(before) else None


def _add_as_neighbours(instance: dg.DagsterInstance, keys: list[str], known_keys: list[str]) -> None:
    """Add the new keys of a round; the earlier ones move to the end with them if they would not form a range otherwise.

    This loses nothing, because Dagster stores materializations by key name.
    """
    key_set = set(known_keys)
    new = [key for key in keys if key not in key_set]
    if not new:
        return
    if len(new) < len(keys) and len(list(split_ranges([*known_keys, *new], keys))) > 1:
        for key in set(keys).intersection(known_keys):
            instance.delete_dynamic_partition(_NAME, key)
        new = keys
    instance.add_dynamic_partitions(_NAME, new)


def _observe_files(instance: dg.DagsterInstance, source: Source, rows: pa.Table, changes: Changes | None) -> None:
    """Report to Dagster the data version of each segment that is new or has changed."""
    segments = rows["segment"].unique().to_pylist()
    hashes = read_observed_versions(instance, survey_files.key, [partition_key(source.round, segment) for segment in segments])
    for segment in segments:
        key, version = partition_key(source.round, segment), content_version(rows.filter(pc.field("segment") == segment))
        if hashes.get(key) != version:
            metadata = {
                "changed": "new" if changes is None else str(changes),
                "source": source.path,
                "content_hash": source.content_hash,
                "landing": str(source.landing),
            }
            instance.report_runless_asset_event(
                dg.AssetObservation(survey_files.key, partition=key, metadata=metadata, tags=build_observation_tags(version))
            )


def sources_of(store: Store) -> Sources[Survey]:
    """Return each round's file or folder."""
    return Sources(store.warehouse, read_survey)


def add_question_texts(warehouse: Warehouse, checks: pa.Table) -> pa.Table:
    """Return the rows with the texts of changed questions; reads the survey only if there are any."""
    if not (rounds := list_moved_rounds(checks)):
        return checks
    return warehouse.query(lambda connection: add_moved_texts(checks, connection), only=["survey_responses"], first=rounds)


@asset_check(asset=dg.AssetKey("survey_responses"))
def quarantine_is_small(store: Store) -> dg.AssetCheckResult:
    """Warns if over a quarter of a round's (segment, question) pairs are in quarantine."""
    rounds = store.warehouse.values("survey_responses", "round")
    shares = {}
    for round_id in rounds:
        quarantine = store.warehouse.rows("survey_quarantine", columns=["question_id"], round=round_id)
        pairs = len(quarantine) - quarantine["question_id"].null_count
        n_responses = len(store.warehouse.rows("survey_responses", columns=["question_id"], round=round_id))
        shares[round_id] = pairs / max(1, pairs + n_responses)
    offenders = [f"{round_id}: {share:.1%} of the pairs" for round_id, share in shares.items() if share > _MAX_QUARANTINED]
    return verdict(offenders, n_checked=len(rounds), severity=dg.AssetCheckSeverity.WARN)


@asset_check(asset=dg.AssetKey("survey_responses"))
def columns_are_recognised(store: Store) -> dg.AssetCheckResult:
    """Fails if a round has findings of level error, such as segment columns that were not recognised and are left out."""
    rounds = store.warehouse.values("survey_responses", "round")
    offenders = []
    for round_id in rounds:
        findings = store.warehouse.rows("survey_findings", round=round_id).to_pylist()
        offenders += [f"{round_id}: {f['message']}: {', '.join(f['items'])}" for f in findings if f["level"] == "error"]
    return verdict(offenders, n_checked=len(rounds))


@asset_check(asset=dg.AssetKey("drift_checks"))
def segment_has_no_drift(store: Store) -> dg.AssetCheckResult:
    """Fails for a model with the verdict `drift` on a segment and warns for `watch`, unless the panel's `severity` sets other levels.

    It covers all rounds, so running another round does not hide a finding.
    """

    def look(connection: duckdb.DuckDBPyConnection) -> tuple[int, pa.Table]:
        ((n_checked,),) = connection.execute("SELECT count(*) FROM drift_checks").fetchall()
        rows = connection.sql(
            "SELECT * FROM drift_checks WHERE verdict IN ('watch', 'drift') OR shared_first_snapshot IS NOT NULL"
        ).to_arrow_table()
        return n_checked, rows

    n_checked, rows = store.warehouse.query(look, only=["drift_checks"])
    return build_drift_result(rows, n_checked, load_drift_section(store.settings).severity, SUBJECT)
