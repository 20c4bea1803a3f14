"""Stage 1 of the qa family: `qa_items`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.qa.files import DATASET_PART, QA_GROUP, qa_files
from assets.qa.known_suites import known_suites
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.errors import DtefError
from dtef_pipeline.qa.added_files import AddedFiles, read_added
from dtef_pipeline.qa.item_files.layouts import INTERVIEW_LAYOUT
from dtef_pipeline.qa.item_rows import item_tables
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.tables import QA_DOCUMENTS
from resources.item_files import ITEM_NOTES, QaSource

_FINDINGS_SHOWN = 20


@dg.asset(deps=[qa_files], **{**stage(DATASET_PART, 1, "qa_items", code_version="1"), **QA_GROUP})
def qa_items(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """What is asked: one row per item of a part, with its options, what is expected of an answer, and who scores it.

    Beside it stand `qa_findings` (rows of the file that were left out or surprise, with file, line, what was found and what is allowed),
    `qa_examples` (development items, for prompts with examples) and `qa_documents` (chunks of the transcripts that items are about).
    """
    run = PartitionRun(context, store)
    read: dict[tuple[str, ...], AddedFiles] = {}
    for key in run.keys:
        with run.attempt(key):
            source = _noted(store, key)
            spec = known_suites(source.suites).route(source.suite)
            part = (
                source.part if spec.layout == INTERVIEW_LAYOUT else None
            )  # there a file is a part, under the name that it was given
            place = (source.suite, source.path, source.corpus or "", source.suites or "", part or "")
            if place not in read:
                corpus = Path(source.corpus) if source.corpus else None
                read[place] = read_added(spec, Path(source.path), corpus, part=part)
            tables = _tables(source, read[place])
            for name, rows in tables.items():
                store.warehouse.write(name, rows, **QA_SPACE.levels(key))
            run.done(key, _metadata(tables), content_version(tables["qa_items"]))
    return run.result()


def _noted(store: Store, key: str) -> QaSource:
    source = ITEM_NOTES.read(store.warehouse, key)
    if source is None:
        raise DtefError(f"{key}: no file of it is known; `dtef qa add SUITE PATH` adds it")
    if source.is_gone:
        raise DtefError(
            f"{source.path} is not there any more: `dtef qa add` takes {key} from elsewhere, `dtef qa remove {key}` takes it away"
        )
    return source


def _tables(source: QaSource, added: AddedFiles) -> dict[str, pa.Table]:
    made = item_tables(source.suite, source.part, added.loaded, added.scorers_of)
    if not len(made.qa_items):
        errors = added.loaded.errors
        why = f": {errors[0]}" if errors else ""
        raise DtefError(f"{source.key}: no item of it can be used{why}")
    return {**made._asdict(), "qa_documents": _documents(source, added.documents)}


def _documents(source: QaSource, documents: pa.Table | None) -> pa.Table:
    if documents is None:
        return QA_DOCUMENTS.empty_table()
    levels = {"suite": source.suite, "part": source.part}
    columns = [
        pa.array([levels[one.name]] * len(documents)) if one.name in levels else documents[one.name] for one in QA_DOCUMENTS
    ]
    return pa.table(columns, schema=QA_DOCUMENTS)


def _metadata(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    items, findings = tables["qa_items"], tables["qa_findings"]
    types = {row["values"]: row["counts"] for row in pc.value_counts(items["type"]).to_pylist()}
    levels = {row["values"]: row["counts"] for row in pc.value_counts(findings["level"]).to_pylist()}
    return {
        "dagster/row_count": len(items),
        "types": dg.MetadataValue.json(types),
        "findings": dg.MetadataValue.json(levels),
        "findings_told": markdown(
            findings, ["level", "file", "line", "item_id", "text", "found", "allowed"], most=_FINDINGS_SHOWN
        ),
        "examples": len(tables["qa_examples"]),
        "documents": len(tables["qa_documents"]),
        "preview": markdown(items, ["item_id", "type", "text", "options", "reference"], most=8),
    }


@asset_check(asset=qa_items, blocking=True)
def qa_items_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """An item id stands once in its part."""
    return keys_repeated(context, store, "qa_items", ["item_id"])


@asset_check(asset=qa_items)
def qa_rows_left_out(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of rows of files that could not be used, and of items whose type nobody scores."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "qa_findings", ["level", "file", "line", "text"]):
        checked += len(rows)
        offenders += [
            (key, f"{row['file']}:{row['line'] or ''} {row['text']}") for row in rows.to_pylist() if row["level"] == "error"
        ]
    for key, rows in read_keys(store, "qa_items", ["item_id", "type", "scorers"]):
        checked += len(rows)
        nobody = rows.filter(pc.equal(pc.list_value_length(rows["scorers"]), 0))
        offenders += [(key, f"{row['item_id']}: nobody scores type {row['type']}") for row in nobody.to_pylist()]
    return partition_verdict(context, offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
