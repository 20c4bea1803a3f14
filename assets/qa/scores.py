"""Stage 6 of the qa family: `qa_scores`."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.qa.executions import qa_executions
from assets.qa.files import DATASET_PART, QA_GROUP
from assets.qa.judgements import qa_judgements
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.qa.citation_rows import citation_rows, shown_sources
from dtef_pipeline.qa.model import ScorerSettings
from dtef_pipeline.qa.score_rows import score_rows
from dtef_pipeline.qa.scoring import PartScoring, asked_items, by_response, formulas, judges_of, levels_of, response_keys
from dtef_pipeline.qa.space import QA_RESPONSE_KEY, QA_SPACE
from dtef_pipeline.qa.tables import QA_CITATIONS

READABLE_RESPONSES = 0.9
"""Share of a model's responses that must be readable, lest the check warns."""


class QaScoresConfig(dg.Config):
    """Which snapshot is scored, and how strictly."""

    snapshot: str = Field(default="base", description="Label of the evaluation pass.")
    strict: bool = Field(default=False, description="Several different values in place of one count 0.")
    penalty: float = Field(default=0.0, ge=0, le=1, description="Taken off for each listed item that is not expected.")
    senses: str = Field(default="first", description="Senses of a word whose synonyms count: first or all.")

    @property
    def settings(self) -> ScorerSettings:
        return ScorerSettings(strict=self.strict, penalty=self.penalty, senses=self.senses)


@dg.asset(deps=[qa_judgements, qa_executions], **{**stage(DATASET_PART, 6, "qa_scores", code_version="3"), **QA_GROUP})
def qa_scores(context: dg.AssetExecutionContext, config: QaScoresConfig, store: Store) -> dg.MaterializeResult[Any]:
    """How right responses are: one row per response, scorer and metric, 0 to 1, with the rule that read it and what was noticed.

    What cannot be read has no value and the score 0; what is no fault of the response (a failed call, a judge or a sandbox that failed, no
    sample) has neither, and says why. Beside it stands `qa_citations`: every quotation of a response, looked up in the source that it names. No
    model is asked, and nothing is run.
    """
    run = PartitionRun(context, store)
    for key in run.keys:
        with run.attempt(key):
            run.done(key, *_score(store, config, key))
    return run.result()


def _score(store: Store, config: QaScoresConfig, key: str) -> tuple[dict[str, Any], str]:
    """The metadata of the partition and the version of its rows."""
    house, at = store.warehouse, QA_SPACE.levels(key)
    of_snapshot = {**at, "snapshot": config.snapshot}
    items, prompts = house.read("qa_items", **at), house.read("qa_prompts", **at)
    responses = house.read("qa_responses", **of_snapshot)
    documents, shown = house.read_or_empty("qa_documents", **at), house.read_or_empty("qa_context", **at)
    judgements, executions = (house.read_or_empty(name, **of_snapshot) for name in ("qa_judgements", "qa_executions"))
    citations = citation_rows(responses, shown_sources(shown, documents)) if len(documents) else QA_CITATIONS.empty_table()
    asked = asked_items(items, prompts)
    scoring = PartScoring(
        asked,
        formulas(asked.values()),
        config.settings,
        response_keys(responses),
        by_response(judgements),
        {name: rows[0] for name, rows in by_response(executions).items()},
        by_response(citations),
        len(documents) > 0,
        judges_of(judgements),
        levels_of(executions),
    )
    rows = score_rows(responses, items, scoring.scores_of, scoring.measures(), scoring.left_out)
    house.write("qa_citations", citations, **of_snapshot)
    house.write("qa_scores", rows, **of_snapshot)
    return _metadata(rows, config.snapshot), content_version(rows)


def _metadata(rows: pa.Table, snapshot: str) -> dict[str, Any]:
    statuses = {row["values"]: row["counts"] for row in pc.value_counts(rows["status"]).to_pylist()}
    means = rows.group_by(["model", "condition", "metric"]).aggregate([("score", "mean"), ("score", "count")])
    return {
        "dagster/row_count": len(rows),
        "snapshot": snapshot,
        "statuses": dg.MetadataValue.json(statuses),
        "means": markdown(
            means.sort_by([("score_mean", "descending")]), ["model", "condition", "metric", "score_mean", "score_count"]
        ),
        "preview": markdown(rows, ["item_id", "model", "metric", "status", "score", "how", "reason"]),
    }


@asset_check(asset=qa_scores, blocking=True)
def qa_scores_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A response has one score per scorer and metric."""
    return keys_repeated(context, store, "qa_scores", [*QA_RESPONSE_KEY, "scorer", "metric", "measured_by", "snapshot"])


@asset_check(asset=qa_scores, blocking=True)
def qa_scores_have_reasons(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A score lies in 0 to 1, and a value that is not there has a status that says why."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "qa_scores", ["item_id", "model", "status", "value", "score"]):
        checked += len(rows)
        outside = pc.or_(pc.less(rows["score"], 0), pc.greater(rows["score"], 1))
        silent = pc.xor(pc.equal(rows["status"], "ok"), pc.is_valid(rows["value"]))
        bad = rows.filter(pc.or_(pc.fill_null(outside, False), silent))
        offenders += [(key, f"{row['item_id']} {row['model']}: {row['status']}, {row['value']}") for row in bad.to_pylist()]
    return partition_verdict(context, offenders, checked=checked)


@asset_check(asset=qa_scores)
def qa_responses_readable(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of models of whose responses more than a tenth could not be read."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "qa_scores", ["model", "metric", "status"]):
        checked += len(rows)
        frame = rows.to_pandas()
        read = frame[frame["status"].isin(["ok", "unparseable"])]
        shares = (read["status"] == "ok").groupby([read["model"], read["metric"]]).mean()
        low = shares[shares < READABLE_RESPONSES]
        offenders += [(key, f"{model}, {metric}: {share:.1%} read") for (model, metric), share in low.items()]
    return partition_verdict(context, offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
