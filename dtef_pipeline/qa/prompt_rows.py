"""The rows of a part's files, of `qa_prompts`, and of `qa_context` and `qa_retrieval` for items about documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.request import Message
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import compute_messages_id, digest
from dtef_pipeline.preference.pairing import MetricSource, PairedSource
from dtef_pipeline.qa.item_files.benchmarks import CHOICE_TYPE
from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.item_prompts import (
    CITED_ANSWER_TOKENS,
    PROMPTED_TYPES,
    build_cited_messages,
    build_cited_schema,
    build_item_prompt,
)
from dtef_pipeline.qa.model import QaItem, Quote
from dtef_pipeline.qa.settings import LETTERS, PLAIN_TEMPLATE, QaCondition
from dtef_pipeline.qa.tables import QA_CONTEXT, QA_EXAMPLES, QA_FINDINGS, QA_ITEMS, QA_PROMPTS, QA_RETRIEVAL
from dtef_pipeline.qa.transcripts.corpus import (
    FILE_FIELD,
    METADATA_COLUMNS,
    MetadataValue,
    check_filter,
    format_filter,
    read_filter,
)
from dtef_pipeline.qa.transcripts.retriever import (
    REMOTE,
    RETRIEVERS,
    EmbedTexts,
    LookUp,
    Retrieval,
    Retriever,
    compute_retrieval_scores,
    find_relevant_ids,
    make_retriever,
    match_filter,
)
from dtef_pipeline.text.name_matching import list_nearest

_ITEM_FIELDS = tuple(member.name for member in fields(QaItem) if member.name not in ("options", "flags", "quotes"))
_EXAMPLE_FIELDS = ("text", "options", "reference", "solution")


class ItemTables(NamedTuple):
    """The tables of a part's file."""

    qa_items: pa.Table
    qa_examples: pa.Table
    qa_findings: pa.Table


def build_item_tables(suite: str, part: str, source: LoadedItems, scorers: Callable[[QaItem], Sequence[str]]) -> ItemTables:
    """Build the tables of one part; findings that are about no single item are included in every part.

    `scorers`: returns the names of an item's scorers.
    """
    items = [item for item in source.items if item.part == part]
    findings = [finding for finding in source.findings if finding.part in (None, part)]
    key = {"suite": suite, "part": part}
    rows = [
        {
            **asdict(item),
            "position": place,
            "cluster": item.cluster or item.item_id,
            "truth_id": truth_id(item),
            "scorers": list(scorers(item)),
        }
        for place, item in enumerate(items)
    ]
    examples = [
        {**key, "position": place, **{name: getattr(item, name) for name in _EXAMPLE_FIELDS}}
        for place, item in enumerate(item for item in source.examples if item.part == part)
    ]
    return ItemTables(
        pa.Table.from_pylist(rows, schema=QA_ITEMS),
        pa.Table.from_pylist(examples, schema=QA_EXAMPLES),
        pa.Table.from_pylist([{**asdict(finding), **key} for finding in findings], schema=QA_FINDINGS),
    )


def truth_id(item: QaItem) -> str:
    """Return a hash of the type, the options and the expected answer: equal if responses are scored alike."""
    return digest("truth", item.type, item.options, item.reference)


def read_stored_items(rows: pa.Table) -> list[QaItem]:
    """Return the items of rows of `qa_items`, in their order."""
    return [
        QaItem(
            **{name: row[name] for name in _ITEM_FIELDS},
            options=tuple(row["options"]),
            flags=tuple(row["flags"]),
            quotes=tuple(Quote(**quote) for quote in row["quotes"]),
        )
        for row in rows.to_pylist()
    ]


def read_stored_examples(rows: pa.Table, type: str) -> list[QaItem]:
    """Return the examples of rows of `qa_examples`, as items of a type."""
    return [
        QaItem(
            item_id=f"example/{row['position']}",
            type=type,
            options=tuple(row["options"]),
            **{name: row[name] for name in ("suite", "part", "text", "reference", "solution")},
        )
        for row in rows.sort_by("position").to_pylist()
    ]


RETRIEVERS_KNOWN = (*RETRIEVERS, REMOTE)
_SHOWN_CHUNKS = re.compile(
    rf"(?P<retriever>{'|'.join(RETRIEVERS_KNOWN)}),(?P<k>[1-9][0-9]{{0,5}})-chunks(?:,(?P<filter>.+))?", re.DOTALL
)
OPTION_ORDERS = ("file", "rotated-1", "rotated-2", "rotated-3")


@dataclass(frozen=True, slots=True)
class AskSettings:
    """The prompt settings of all types; each part uses those that apply to it. Stored runs may have values that are no longer allowed."""

    template: str = LETTERS
    few_shot: int = 0
    few_shot_as: str = "message"
    """`message` or `turns`."""
    order: str = "file"
    """One of OPTION_ORDERS."""
    retriever: str = RETRIEVERS_KNOWN[0]
    k: int = 10
    """Number of document chunks to show."""
    filter: Mapping[str, str | int] = field(default_factory=dict)
    """Metadata that the documents must have."""

    def condition(self, types: Iterable[str], *, about_documents: bool) -> str:
        """Return the spelling in the column `condition` for a part with items of these types. Raises ConfigError for settings that do not
        fit them."""
        if about_documents:
            if self.retriever not in RETRIEVERS_KNOWN:
                raise ConfigError(f"retriever {self.retriever!r}: allowed: {', '.join(RETRIEVERS_KNOWN)}")
            filter_text = format_filter(check_filter(self.filter))
            return f"{self.retriever},{self.k}-chunks{',' if filter_text else ''}{filter_text}"
        kinds = sorted(set(types))
        if unknown := [kind for kind in kinds if kind not in PROMPTED_TYPES]:
            advice = "add the part again with --corpus and the file or folder of its documents"
            raise ConfigError(f"items of type {', '.join(unknown)} need documents: {advice}")
        return str(self.choice(kinds[0])) if kinds else str(self.choice(PROMPTED_TYPES[0]))

    @classmethod
    def parse_spelling(cls, text: str) -> Self:
        """Parse a spelling of `condition`. Raises ConfigError for any other text."""
        if match := _SHOWN_CHUNKS.fullmatch(text):
            return cls(retriever=match["retriever"], k=int(match["k"]), filter=read_filter(match["filter"] or ""))
        condition = QaCondition.parse_text(text)
        template = LETTERS if condition.template == PLAIN_TEMPLATE else condition.template
        return cls(template, condition.shots, "turns" if condition.as_turns else "message", OPTION_ORDERS[condition.rotation])

    def refuse_for(self, part: str, types: Iterable[str], examples: int, *, about_documents: bool) -> None:
        """Raise ConfigError, naming the part, if its items lack the examples, options or documents for these settings."""
        try:
            self.condition(types, about_documents=about_documents)
        except ConfigError as error:
            raise ConfigError(f"{part}: {error}") from None
        if not about_documents and self.few_shot > examples:
            bounds = f"0 to {examples}, the number of examples in its files"
            raise ConfigError(f"{part}: few-shot {self.few_shot}: allowed: {bounds}")

    def choice(self, type: str) -> QaCondition:
        """Return the condition of items without documents; those without options have one template, whatever the setting."""
        if self.order not in OPTION_ORDERS:
            raise ConfigError(f"order {self.order!r}: allowed: {', '.join(OPTION_ORDERS)}")
        rotation = OPTION_ORDERS.index(self.order)
        template = self.template if type == CHOICE_TYPE else PLAIN_TEMPLATE
        return QaCondition(template, self.few_shot, bool(self.few_shot) and self.few_shot_as == "turns", rotation)


class _Chunk(NamedTuple):
    doc_id: str
    page_content: str
    file: MetadataValue
    """None: unknown."""


class PromptTables(NamedTuple):
    """The prompts of a part under one condition, with their chunks and retrieval scores."""

    qa_prompts: pa.Table
    qa_context: pa.Table
    qa_retrieval: pa.Table


def build_part_prompts(
    items: pa.Table, examples: pa.Table, documents: pa.Table, setup: AskSettings, embed: EmbedTexts, look_up: LookUp
) -> PromptTables:
    """Build the prompts of a part, with chunks of its documents if it has any.

    Tables: `qa_items`, `qa_examples` and `qa_documents` of the part. `embed`: called only for retrievers that use embeddings. `look_up`:
    called once with the texts of all items if a server finds the chunks.
    """
    questions = read_stored_items(items)
    if len(documents) and setup.retriever == REMOTE:
        texts = [item.text for item in questions]
        return build_cited_prompts(questions, documents, setup, look_up(texts, setup.k, setup.filter))
    if len(documents):
        return build_cited_prompts(questions, documents, setup, make_retriever(setup.retriever, documents, embed))
    return build_plain_prompts(questions, read_stored_examples(examples, questions[0].type if questions else ""), setup)


def build_plain_prompts(items: Sequence[QaItem], examples: Sequence[QaItem], setup: AskSettings) -> PromptTables:
    """Build the prompts of items without documents. `examples`: those of their part, in file order."""
    rows = []
    for item in items:
        prompt = build_item_prompt(item, setup.choice(item.type), examples)
        columns = {name: getattr(prompt, name) for name in ("answer_tokens", "option_order", "n_examples", "prompt_id")}
        rows.append({**_identify_item(item, prompt.condition), **_make_messages_column(prompt.messages), **columns})
    table = pa.Table.from_pylist(rows, schema=QA_PROMPTS)
    return PromptTables(table, QA_CONTEXT.empty_table(), QA_RETRIEVAL.empty_table())


def build_cited_prompts(items: Sequence[QaItem], documents: pa.Table, setup: AskSettings, retriever: Retriever) -> PromptTables:
    """Build the prompts of items about documents, with the chunks retrieved for each and the retrieval scores.

    Retrieval is scored on the chunks that match the filter; an item without evidence among them has no retrieval scores. An item whose
    look-up failed, now and earlier, has a prompt without messages, which is not sent. A server's retrieval has no scores, because the
    chunks that it left out are unknown.
    """
    condition = setup.condition((), about_documents=True)
    prompts, context, score_rows = [], [], []
    mask = pa.array(match_filter(documents, check_filter(setup.filter)), pa.bool_())
    searched = documents.filter(mask)
    chunks = list(map(_Chunk, *(searched[name].to_pylist() for name in ("doc_id", "page_content", "file"))))
    for item in items:
        result = retriever.retrieve(item.text, setup.k, setup.filter)
        named = _identify_item(item, condition)
        prompts.append({**named, **_build_cited_prompt(item, result, condition)})
        if retriever.is_remote:
            chunks = [_Chunk(hit.doc_id, hit.page_content, hit.metadata.get(FILE_FIELD)) for hit in result.sources]
        relevant = _find_relevant_chunks(item, chunks)
        rows = _build_context_rows(result, relevant if item.quotes else None, remote=retriever.is_remote)
        context += [{**named, **row} for row in rows]
        scores = compute_retrieval_scores([hit.doc_id for hit in result.sources], relevant, setup.k)
        if scores and not retriever.is_remote:
            score_rows.append({**named, **asdict(scores)})
    return PromptTables(
        pa.Table.from_pylist(prompts, schema=QA_PROMPTS),
        pa.Table.from_pylist(context, schema=QA_CONTEXT),
        pa.Table.from_pylist(score_rows, schema=QA_RETRIEVAL),
    )


def merge_with_other_conditions(earlier: pa.Table, new: pa.Table, conditions: Iterable[str], items: pa.Table) -> pa.Table:
    """Return the new rows of these conditions, and the earlier rows of other conditions whose item did not change."""
    remainder = earlier.filter(pc.invert(pc.is_in(earlier["condition"], pa.array(list(conditions), pa.string()))))
    if "truth_id" in remainder.column_names:
        item_keys = pc.binary_join_element_wise(items["item_id"], items["truth_id"], "\x1f")
        row_keys = pc.binary_join_element_wise(remainder["item_id"], remainder["truth_id"], "\x1f")
        remainder = remainder.filter(pc.is_in(row_keys, item_keys.combine_chunks()))
    else:
        remainder = remainder.filter(pc.is_in(remainder["item_id"], items["item_id"].combine_chunks()))
    return pa.concat_tables([remainder, new])


def _identify_item(item: QaItem, condition: str) -> dict[str, Any]:
    return {"suite": item.suite, "part": item.part, "item_id": item.item_id, "condition": condition, "truth_id": truth_id(item)}


def _make_messages_column(messages: Sequence[Message]) -> dict[str, Any]:
    return {"messages": [{"role": message.role, "text": message.text} for message in messages]}


def _build_cited_prompt(item: QaItem, retrieval: Retrieval, condition: str) -> dict[str, Any]:
    schema = build_cited_schema()
    limits = {"response_schema": schema, "answer_tokens": CITED_ANSWER_TOKENS, "n_examples": 0}
    if retrieval.problem is not None and not retrieval.sources:
        return {**_make_messages_column(()), **limits, "prompt_id": digest("not looked up", condition, item.text)}
    messages = build_cited_messages(item.text, item.type, item.options, retrieval.sources)
    turns = [(message.role, message.text) for message in messages]
    key = compute_messages_id(turns, response_schema=schema, answer_tokens=CITED_ANSWER_TOKENS)
    return {**_make_messages_column(messages), **limits, "prompt_id": key}


def _find_relevant_chunks(item: QaItem, chunks: Sequence[_Chunk]) -> set[str]:
    """Return the ids of the chunks that contain one of the item's quotes; only chunks of the quote's file, if both files are known."""
    ids: set[str] = set()
    for file in dict.fromkeys(quote.file for quote in item.quotes):
        quotes = [quote.text for quote in item.quotes if quote.file == file]
        candidates = [chunk for chunk in chunks if not file or chunk.file in (file, None)]
        ids |= find_relevant_ids([chunk.doc_id for chunk in candidates], [chunk.page_content for chunk in candidates], quotes)
    return ids


def _build_context_rows(retrieval: Retrieval, relevant: set[str] | None, *, remote: bool) -> list[Mapping[str, Any]]:
    if not retrieval.sources:
        return [{"problem": retrieval.problem}]
    return [
        {
            "rank": rank,
            "doc_id": source.doc_id,
            "relevance": source.score,
            "page_content": source.page_content if remote else None,
            "problem": retrieval.problem,
            "contains_quote": None if relevant is None else source.doc_id in relevant,
        }
        for rank, source in enumerate(retrieval.sources)
    ]


OPTION_OF_FILTER = "--filter"


def filter_faults(
    keys: Sequence[str],
    setup: AskSettings,
    documents: Callable[[str, Sequence[str]], pa.Table],
    given_as: str = OPTION_OF_FILTER,
) -> dict[str, str]:
    """Return by part the error of a filter that matches none of its documents. Raises ConfigError if the filter matches documents of no
    part.

    `documents`: reads columns of the rows of `qa_documents` of a part; `given_as`: the user's name of the filter.
    """
    if not setup.filter:
        return {}
    columns = ["doc_id", *(METADATA_COLUMNS[name] for name in setup.filter)]
    parts = {key: documents(key, columns) for key in keys}
    unmatched_filters = {key: text for key, rows in parts.items() if (text := explain_unmatched(rows, setup, given_as))}
    if unmatched_filters and len(unmatched_filters) == sum(len(rows) > 0 for rows in parts.values()):
        raise ConfigError(next(iter(unmatched_filters.values())))
    return unmatched_filters


def explain_unmatched(documents: pa.Table, setup: AskSettings, given_as: str = OPTION_OF_FILTER) -> str | None:
    """Return that the filter matches no document, with the existing values, or None if it matches some, or a server applies it. Table: see
    `match_filter`.
    """
    if not setup.filter or setup.retriever == REMOTE or not len(documents) or match_filter(documents, setup.filter).any():
        return None
    spelled = " ".join(f"{name}={value}" for name, value in setup.filter.items())
    known = {name: set(map(str, documents[METADATA_COLUMNS[name]].drop_null().to_pylist())) for name in setup.filter}
    values = "; ".join(f"{name} has {list_nearest(str(value), known[name])}" for name, value in setup.filter.items())
    return f"{given_as} {spelled} matches no document; {values}"


_QA_METRICS = MetricSource(
    ("qa_board",),
    """
    SELECT suite AS partition, model_variant AS player, 'higher' AS direction,
           suite || ': ' || metric || ' [' || concat_ws(', ', condition, nullif(measured_by, '')) || ']' AS metric,
           score AS value, score_low AS low, score_high AS high, n_items AS n
    FROM qa_board WHERE cut = 'overall'
    """,
)
QA_PAIRED = PairedSource(
    ("qa_responses", "qa_prompts"),
    """
    SELECT r.suite AS first, r.part AS second,
           r.suite || '/' || r.part || '/' || r.item_id || ' [' || r.condition || ']' AS item_id,
           r.model, r.served_model, r.model_variant AS player, r.draw, r.snapshot, p.messages,
           r.response AS text, [r.request_key] AS request_keys
    FROM qa_responses r
    JOIN qa_prompts p USING (suite, part, item_id, condition, prompt_id)
    WHERE r.call_status = 'answered' AND r.response IS NOT NULL
    """,
    (_QA_METRICS,),
)
