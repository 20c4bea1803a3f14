"""Stage 2 of the qa family: `qa_prompts`."""

from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.qa.files import DATASET_PART, QA_GROUP
from assets.qa.items import qa_items
from assets.qa.lookups import KeptLookUps
from assets.qa.vectors import KeptVectors
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.prompt_rows import AskedHow, PromptTables, part_prompts, with_other_conditions
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.transcripts.metadata import written_filter


class HowConfig(dg.Config):
    """How items are asked."""

    template: str = Field(default="letters", description="Of items with options: letters, parens or cot.")
    few_shot: int = Field(default=0, ge=0, description="Development items of the part that are shown first.")
    few_shot_as: str = Field(default="message", description="message: all in one; turns: each as a turn of the conversation.")
    order: str = Field(default="file", description="Order of the options: file, rotated-1, rotated-2 or rotated-3.")
    retriever: str = Field(default="bm25", description="Of items about documents: bm25, embedding, hybrid or remote.")
    k: int = Field(default=10, ge=1, description="Chunks of documents that are shown.")
    filter: list[str] = Field(default=[], description="Metadata that the documents must have, each as in PROJECT=US-002.")

    @property
    def how(self) -> AskedHow:
        where = written_filter(self.filter)
        return AskedHow(self.template, self.few_shot, self.few_shot_as, self.order, self.retriever, self.k, where)


def condition_of(store: Store, key: str, how: AskedHow) -> str:
    """The condition of a part under these settings."""
    at = QA_SPACE.levels(key)
    types = pc.unique(store.warehouse.read("qa_items", columns=["type"], **at)["type"]).to_pylist()
    about = bool(len(store.warehouse.read_or_empty("qa_documents", columns=["doc_id"], **at)))
    return how.condition(types, about_documents=about)


@dg.asset(deps=[qa_items], **{**stage(DATASET_PART, 2, "qa_prompts", code_version="1"), **QA_GROUP})
def qa_prompts(context: dg.AssetExecutionContext, config: HowConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What models are asked: one row per item and condition (template, examples, order of options, retriever), with the messages sent.

    Prompts of other conditions stay. Of items about documents, `qa_context` has the chunks that were retrieved, by rank, and `qa_retrieval` how
    well they were found, where the item names quotes.

    A server that finds chunks (retriever `remote`) is asked once for what it found; where it fails, nobody is asked the prompt, and `qa_context`
    says why. Such a prompt has no messages, or those with what another server had found. The next run looks these up again.
    """
    run = PartitionRun(context, store)
    for key in run.keys:
        with run.attempt(key):
            make = _maker(store, key)
            made = make(config.how, asks=True)
            condition = condition_of(store, key, config.how)
            again = _made_again(store, key, condition, make)
            rows = [
                _kept(
                    store,
                    name,
                    key,
                    pa.concat_tables([*(getattr(one, name) for one in again.values()), new]),
                    {condition, *again},
                )
                for name, new in made._asdict().items()
            ]
            run.done(key, _metadata(made, condition, rows[0]), content_version(rows[0]))
    return run.result()


class _Make(Protocol):
    def __call__(self, how: AskedHow, *, asks: bool) -> PromptTables:
        """The prompts of a part. `asks`: whether a server may be asked for what it did not find before."""


def _maker(store: Store, key: str) -> _Make:
    """Makes the prompts of a part, of its items and documents as they are now, which are read once."""
    at = QA_SPACE.levels(key)
    items = store.warehouse.read("qa_items", **at)
    examples, documents = (store.warehouse.read_or_empty(name, **at) for name in ("qa_examples", "qa_documents"))
    vectors, look_ups = KeptVectors(store.warehouse, key), KeptLookUps(store.warehouse, key)

    def make(how: AskedHow, *, asks: bool) -> PromptTables:
        look_up = partial(look_ups.made, store.settings) if asks else look_ups.kept
        made = part_prompts(items, examples, documents, how, vectors, look_up)
        vectors.keep()
        return made

    return make


def _made_again(store: Store, key: str, condition: str, make: _Make) -> dict[str, PromptTables]:
    """The prompts of the other conditions that the part was asked in, for which no server is asked."""
    earlier = store.warehouse.read_earlier("qa_prompts", columns=["condition"], **QA_SPACE.levels(key))
    others = [] if earlier is None else [one for one in pc.unique(earlier["condition"]).to_pylist() if one != condition]
    found = {}
    for other in others:
        # A condition that can be made no more, such as one with more examples than there are now, keeps what still stands of it.
        with suppress(ConfigError):
            found[other] = make(AskedHow.of_condition(other), asks=False)
    return found


def _kept(store: Store, name: str, key: str, new: pa.Table, conditions: set[str]) -> pa.Table:
    """The table with the new rows, which are those of all these conditions, written."""
    at = QA_SPACE.levels(key)
    items = store.warehouse.read("qa_items", columns=["item_id", "truth_id"], **at)
    earlier = store.warehouse.read_earlier(name, **at)
    rows = new if earlier is None else with_other_conditions(earlier, new, conditions, items)
    store.warehouse.write(name, rows, **at)
    return rows


def _metadata(made: PromptTables, condition: str, rows: pa.Table) -> dict[str, Any]:
    found = made.qa_retrieval
    recall = {f"{name}_mean": pc.mean(found[name]).as_py() for name in ("recall", "mrr", "hit")} if len(found) else {}
    return {
        "dagster/row_count": len(rows),
        "condition": condition,
        "conditions": dg.MetadataValue.json(pc.unique(rows["condition"]).to_pylist()),
        **recall,
        **({"look_ups_failed": len(failed)} if (failed := _failed_look_ups(made.qa_context)) else {}),
        "preview": markdown(made.qa_prompts, ["item_id", "condition", "prompt_id", "messages"], most=5),
    }


def _failed_look_ups(context: pa.Table) -> pa.ChunkedArray:
    """The ids of the items for which a server failed."""
    return pc.unique(context.filter(pc.is_valid(context["problem"]))["item_id"])


@asset_check(asset=qa_prompts, blocking=True)
def qa_prompts_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """An item has one prompt per condition."""
    return keys_repeated(context, store, "qa_prompts", ["item_id", "condition"])


@asset_check(asset=qa_prompts)
def qa_evidence_found(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of parts where fewer than eight in ten items have a chunk with the evidence among those that are shown."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "qa_retrieval", ["condition", "hit"]):
        checked += len(rows)
        means = rows.group_by("condition").aggregate([("hit", "mean")]).to_pylist()
        offenders += [(key, f"{row['condition']}: {row['hit_mean']:.0%}") for row in means if row["hit_mean"] < 0.8]
    return partition_verdict(context, offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
