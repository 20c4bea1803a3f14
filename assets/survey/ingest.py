"""Stage 1, ingest: `survey_responses`."""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys, verdict
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.versions import content_version
from assets.survey.rounds import ROUND_SEGMENT, refuse_losses, survey_files
from assets.survey.store import SurveyStore
from dtef_pipeline.errors import DtefError
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.baselines.names import PREVIOUS_ROUND
from dtef_pipeline.survey.changes import COPY_COLUMNS, SAME_SURVEY, is_copy
from dtef_pipeline.survey.design_effects import stated
from dtef_pipeline.survey.identity import round_order
from dtef_pipeline.survey.observe import observe
from dtef_pipeline.survey.scoring.references import CEILING_SEED, reference_scores
from dtef_pipeline.survey.shares import without_multi_select
from dtef_pipeline.survey.tables import SURVEY_FINDINGS
from dtef_pipeline.survey.whole import whole
from resources.sources import content_hash


@dg.asset(deps=[survey_files], **stage(ROUND_SEGMENT, 1, "survey_responses", code_version="11"))
def survey_responses(context: dg.AssetExecutionContext, store: SurveyStore) -> dg.MaterializeResult[Any]:
    """What each segment really answered: one row per (round, segment, question) with the observed distribution and its own n.

    Read from the folder or file the round was ingested from (`dtef add`). Rows carry the population and leave-one-out marginals, so
    that no later stage needs another partition. Pairs that cannot be trusted (n below the minimum, percentages that do not add up) are in
    the table `survey_quarantine`, with the reason; what was left out of the file is in `survey_findings`. Beside it stands the table
    `reference_scores`: what a perfect prediction of each pair would score, given how few people answered, and what one that knows nothing of
    the segment does.
    """
    run = PartitionRun(context, store)
    for round_id, keys in groupby(run.keys, key=lambda key: split_partition_key(key)[0]):
        read = _read_once(store, round_id)
        for key in keys:
            with run.attempt(key):
                run.done(key, *_write_segment(store, read(), key))
    return run.result()


class _Round(NamedTuple):
    """Tables of a whole round: `survey_responses` rows, and `reference_scores` in the same order."""

    responses: pa.Table
    references: pa.Table


def _read_once(store: SurveyStore, round_id: str) -> Callable[[], _Round]:
    """The round, read once: a survey that cannot be read fails each of its partitions, and is not read again for each."""
    try:
        tables = _observe_round(store, round_id)
    except Exception as error:
        failure = error

        def failing() -> _Round:
            raise failure

        return failing
    return lambda: tables


def _observe_round(store: SurveyStore, round_id: str) -> _Round:
    source, survey = store.sources.read(round_id)
    survey = whole(without_multi_select(survey), source.allowed)
    survey = replace(survey, findings=(*survey.findings, *stated(source.design_effect)))
    observed = observe(survey, min_n=source.min_n)
    if content_hash(Path(source.path)) != source.content_hash:
        # It changed after it was registered, so nobody has agreed to what it lacks now.
        refuse_losses(store.sources, survey, observed, source.min_n, source.allowed)
    store.warehouse.write("survey_quarantine", observed.quarantine, round=round_id)
    findings = pa.concat_tables([observed.findings, _findings_beside_other_rounds(store, round_id, observed.responses)])
    store.warehouse.write("survey_findings", findings, round=round_id)
    return _Round(observed.responses, reference_scores(observed.responses, design_effect=source.design_effect))


def _findings_beside_other_rounds(store: SurveyStore, round_id: str, responses: pa.Table) -> pa.Table:
    """Findings on the round beside those that are stored: which of them are the same survey, and which were predicted without it."""
    others = [other for other in store.warehouse.values("survey_responses", "round") if other != round_id]
    copies = [other for other in others if is_copy(responses, _answers(store, other))]
    found = []
    if copies:
        message = f"The same survey is stored under several ids: {PREVIOUS_ROUND} does not repeat one of them for another."
        found.append({"code": SAME_SURVEY, "message": message, "items": [round_id, *copies]})
    if later := _later_predicted_rounds(store, round_id):
        again = f"`dtef run --round {' --round '.join(later)} --model baselines`"
        message = f"Predicted before {round_id} was stored, so that {PREVIOUS_ROUND} does not know it: {again} makes it again."
        found.append({"code": "predicted-without-round", "message": message, "items": later})
    return pa.Table.from_pylist([{"round": round_id, "level": "warning", **one} for one in found], schema=SURVEY_FINDINGS)


def _answers(store: SurveyStore, round_id: str) -> pa.Table:
    return store.warehouse.rows("survey_responses", columns=list(COPY_COLUMNS), round=round_id)


def _later_predicted_rounds(store: SurveyStore, round_id: str) -> list[str]:
    """The later rounds of the series that have predictions, where the round itself is not stored yet."""
    if round_id in store.warehouse.values("survey_responses", "round"):
        return []
    this = round_order(round_id)
    predicted = store.warehouse.values("predictions", "round")
    return [other for other in predicted if round_order(other)[0] == this[0] and round_order(other) > this]


def _write_segment(store: SurveyStore, tables: _Round, key: str) -> tuple[dict[str, Any], str]:
    """The partition's metadata and data version."""
    round_id, segment = split_partition_key(key)
    rows, references = (table.filter(pc.field("segment") == segment) for table in tables)
    if not len(rows):
        raise DtefError(f"{key}: the survey has no usable answers of this segment; see survey_quarantine for why")
    store.warehouse.write("reference_scores", references, round=round_id, segment=segment)
    size = store.warehouse.write("survey_responses", rows, round=round_id, segment=segment)
    metadata = {
        "dagster/row_count": len(rows),
        "bytes": size,
        "segment_n": rows["segment_n"][0].as_py() or 0,
        "smallest_n": pc.min(rows["n"]).as_py(),
        "unknown_n": rows["n"].null_count,
        "circular_questions": pc.sum(pc.cast(rows["circular"], pa.int64())).as_py(),
        "mean_ceiling": pc.mean(pc.struct_field(references["ceiling"], "js")).as_py(),
        "ceiling_seed": CEILING_SEED,
        "own_n": pc.sum(pc.cast(pc.equal(rows["n_source"], "question"), pa.int64())).as_py(),
        "preview": markdown(rows, ["question_text", "options", "observed", "n"]),
    }
    return metadata, content_version(rows)


@asset_check(asset=survey_responses, blocking=True)
def distributions_sum_to_one(context: dg.AssetCheckExecutionContext, store: SurveyStore) -> dg.AssetCheckResult:
    """Observed and population distributions are fractions that sum to 1."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "survey_responses", ["question_id", "observed", "population"]):
        checked += len(rows)
        offenders += [
            (key, row["question_id"])
            for row in rows.to_pylist()
            if any(
                min(shares) < 0 or abs(sum(shares) - 1) > 1e-9
                for shares in (row["observed"], row["population"])
                if shares is not None
            )
        ]
    return partition_verdict(context, offenders, checked=checked)


@asset_check(asset=survey_responses, blocking=True)
def one_row_a_question(context: dg.AssetCheckExecutionContext, store: SurveyStore) -> dg.AssetCheckResult:
    """Every question has one row per segment."""
    return keys_repeated(context, store, "survey_responses", ["question_id"])


@asset_check(asset=survey_responses, blocking=True)
def n_reaches_minimum(context: dg.AssetCheckExecutionContext, store: SurveyStore) -> dg.AssetCheckResult:
    """Every distribution rests on at least the minimum number of respondents the round was ingested with, where n is known."""
    offenders, checked = list[Offender](), 0
    rounds = store.warehouse.values("survey_responses", "round")
    minima = {one: source.min_n if (source := store.sources.get(one)) else 1 for one in rounds}
    for key, rows in read_keys(store, "survey_responses", ["question_id", "n"]):
        checked += len(rows)
        minimum = minima[split_partition_key(key)[0]]
        few = (row for row in rows.to_pylist() if row["n"] is not None and row["n"] < minimum)
        offenders += [(key, f"{row['question_id']}: n={row['n']} < {minimum}") for row in few]
    return partition_verdict(context, offenders, checked=checked)


@asset_check(asset=survey_responses, blocking=True)
def every_pair_has_reference_scores(context: dg.AssetCheckExecutionContext, store: SurveyStore) -> dg.AssetCheckResult:
    """Every pair has its reference scores, of the same number of respondents, and a ceiling within 0 and 1 where that is known."""
    offenders, checked = list[Offender](), 0
    references = {key: rows.to_pylist() for key, rows in read_keys(store, "reference_scores", ["question_id", "n", "ceiling"])}
    for key, rows in read_keys(store, "survey_responses", ["question_id", "n", "n_effective"]):
        checked += len(rows)
        ceilings = {(row["question_id"], row["n"]): (row["ceiling"] or {}).get("js") for row in references.get(key, [])}
        for question_id, n, effective in zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True):
            ceiling = ceilings.get((question_id, n))
            if n is None and effective is None and (question_id, n) in ceilings:
                continue
            if ceiling is None or not 0 <= ceiling <= 1:
                offenders.append((key, f"{question_id}: " + ("none" if ceiling is None else f"ceiling {ceiling}")))
    return partition_verdict(context, offenders, checked=checked)


@asset_check(asset=survey_responses)
def little_in_quarantine(store: SurveyStore) -> dg.AssetCheckResult:
    """Warns when more than a quarter of a round's (segment, question) pairs were set aside."""
    rounds = store.warehouse.values("survey_responses", "round")
    shares = {}
    for round_id in rounds:
        quarantined = store.warehouse.rows("survey_quarantine", columns=["question_id"], round=round_id)
        pairs = len(quarantined) - quarantined["question_id"].null_count
        kept = len(store.warehouse.rows("survey_responses", columns=["question_id"], round=round_id))
        shares[round_id] = pairs / max(1, pairs + kept)
    offenders = [f"{round_id}: {share:.1%} of the pairs" for round_id, share in shares.items() if share > 0.25]
    return verdict(offenders, checked=len(rounds), severity=dg.AssetCheckSeverity.WARN)


@asset_check(asset=survey_responses)
def every_column_recognised(store: SurveyStore) -> dg.AssetCheckResult:
    """Every segment column of the file was recognised; an unknown one is left out, and named here."""
    rounds = store.warehouse.values("survey_responses", "round")
    offenders = []
    for round_id in rounds:
        findings = store.warehouse.rows("survey_findings", round=round_id).to_pylist()
        offenders += [f"{round_id}: {f['message']}: {', '.join(f['items'])}" for f in findings if f["level"] == "error"]
    return verdict(offenders, checked=len(rounds))
