"""The tables between the stages of the qa family: names, types and descriptions of their columns.

Every table has the columns suite and part, and some of item_id, condition, model, model_variant, temperature, draw, snapshot. Values and
scores are 0-1, higher is better; a missing one is null, and `status` and `reason` say why.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dtef_pipeline.asking.embeddings import EMBEDDING_FIELDS
from dtef_pipeline.boards.family_calls import Calls, FamilyCalls, calls_by_key
from dtef_pipeline.boards.mean_columns import BOARD_NOTE_FIELD, MEAN_FIELDS, PASS_COLUMNS, RANK_COLUMNS, SNAPSHOTS_FIELD
from dtef_pipeline.keys import Space
from dtef_pipeline.qa.transcripts.chunks import DOCUMENT_FIELDS
from dtef_pipeline.tables import (
    ANSWERED_AT_FIELD,
    CALL,
    CUT_FIELD,
    METRIC_FIELD,
    MODEL_FIELDS,
    SAMPLE_FIELDS,
    SNAPSHOT_FIELD,
    TableSpec,
    field,
)

OF_ONE_PART = (
    field("suite", pa.string(), "Suite of questions: mmlu, gsm8k, humaneval, socioscope, or your own suite"),
    field("part", pa.string(), "Part of the suite: a subject, a file of questions, or all"),
)
QA_ITEM_ID = field("item_id", pa.string(), "Id of the item, unique within its suite: college_physics/17, HumanEval/4")
QA_CONDITION = field(
    "condition",
    pa.string(),
    "Condition: template, examples and order of options, such as cot,5-shot; for questions about documents: retriever, "
    "number of chunks and filter, such as bm25,10-chunks",
)
QA_CLUSTER = field("cluster", pa.string(), "Cluster of the item: the subject, the transcript, or the item itself")
QA_TRUTH = field(
    "truth_id",
    pa.string(),
    "Hash of the item's type, options and expected answer: equal if responses are scored in the same way",
)
_QA_TEXTS = pa.list_(pa.string())
_QA_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("text", pa.string())]))
_QA_EVIDENCE = pa.list_(pa.struct([("text", pa.string()), ("file", pa.string()), ("turn", pa.int32())]))
OF_ONE_PROMPT = (*OF_ONE_PART, QA_ITEM_ID, QA_CONDITION)
"""The key columns of an item in a condition."""
OF_ONE_RESPONSE = (*OF_ONE_PROMPT, *MODEL_FIELDS, *SAMPLE_FIELDS, SNAPSHOT_FIELD)
"""The key columns of a response."""
RESPONSE_COLUMNS = [column.name for column in OF_ONE_RESPONSE]
_QA_USAGE_FIELDS = (
    field("prompt_tokens", pa.int64(), "Tokens of prompts, of all calls of the row"),
    field("completion_tokens", pa.int64(), "Tokens of responses, of all calls of the row"),
    field("cost_usd", pa.float64(), "Cost of the row's calls in US dollars; null: unknown"),
)

QA_ITEMS = pa.schema(
    [
        *OF_ONE_PART,
        QA_ITEM_ID,
        field("position", pa.int32(), "Place of the item in its part, from 0"),
        field(
            "type", pa.string(), "Type of the question, which decides the scorer: choice, number, code, or a type of Socioscope"
        ),
        field("scorers", _QA_TEXTS, "Names of the item's scorers; empty: the type has no scorer"),
        field("text", pa.string(), "Question in the file"),
        field("options", _QA_TEXTS, "Options, in the file's order; empty: the answer is free text"),
        field("reference", pa.string(), "Expected answer for the scorer: a letter, a number, or a metric or tests in JSON"),
        field("solution", pa.string(), "Worked answer in the file; empty: none"),
        QA_CLUSTER,
        QA_TRUTH,
        field("quotes", _QA_EVIDENCE, "Evidence that the file gives: quote, document and number of the turn"),
        field("flags", _QA_TEXTS, "Flags set when the item was read: equal_options, ..."),
        field("source_line", pa.int32(), "First line of the row in the file, from 1; null: the file has no lines"),
    ]
)
"""One row per item."""

QA_EXAMPLES = pa.schema(
    [
        *OF_ONE_PART,
        field("position", pa.int32(), "Place of the example in its file, from 0"),
        field("text", pa.string(), "Question of the example"),
        field("options", _QA_TEXTS, "Options, in the file's order"),
        field("reference", pa.string(), "Answer of the example"),
        field("solution", pa.string(), "Worked answer of the example; empty: none"),
    ]
)
"""One row per example that may be shown before a question (few-shot)."""

QA_FINDINGS = pa.schema(
    [
        *OF_ONE_PART,
        field("level", pa.string(), "Severity: error (the row was left out) or warning"),
        field("code", pa.string(), "Kind of finding: bad-letter, no-answer, duplicate-id, equal-options, ..."),
        field("file", pa.string(), "File with the finding"),
        field("line", pa.int32(), "Line of the file, from 1; null: the whole file"),
        field("item_id", pa.string(), "Id of the item; null: the item has no id"),
        field("found", pa.string(), "Content of the file at this place"),
        field("allowed", pa.string(), "Content that is allowed"),
        field("text", pa.string(), "What is wrong, in a sentence"),
    ]
)
"""One row per finding in the files of a part."""

QA_DOCUMENTS = pa.schema([*OF_ONE_PART, *DOCUMENT_FIELDS])
"""One row per chunk of a transcript that can be retrieved."""

QA_VECTORS = pa.schema([*OF_ONE_PART, *EMBEDDING_FIELDS])
"""One row per embedded text of a part: a chunk of a document, or a query."""

QA_LOOKUPS = pa.schema(
    [
        *OF_ONE_PART,
        field("lookup_id", pa.string(), "Hash of the question, the number of chunks and the filter"),
        field("server", pa.string(), "Retrieval server: scheme and host of its address"),
        field(
            "sources",
            pa.list_(pa.struct([("doc_id", pa.string()), ("page_content", pa.string()), ("metadata", pa.string())])),
            "Chunks found, the nearest first, with the metadata of each interview in JSON",
        ),
        field(
            "problem",
            pa.string(),
            "Why the look-up failed, while sources of an earlier one stay; null: it succeeded, and is not repeated",
        ),
    ]
)
"""One row per look-up: the latest result."""

QA_PROMPTS = pa.schema(
    [
        *OF_ONE_PROMPT,
        field("prompt_id", pa.string(), "Hash of everything that the model sees"),
        field("messages", _QA_MESSAGES, "Messages exactly as they are sent; empty: the look-up failed, and no request is sent"),
        field("response_schema", pa.string(), "JSON schema of the response; null: free text"),
        field("answer_tokens", pa.int32(), "Smallest token limit for the response; null: not given"),
        field("option_order", pa.list_(pa.int32()), "Places of the shown options in the file's order; null: the file's order"),
        field("n_examples", pa.int32(), "Examples that are shown before the question"),
        QA_TRUTH,
    ]
)
"""One row per item and condition."""

QA_CONTEXT = pa.schema(
    [
        *OF_ONE_PROMPT,
        field("rank", pa.int32(), "Place of the chunk in the result and number in the prompt, from 0; null: nothing was found"),
        field("doc_id", pa.string(), "Id of the chunk; null: nothing was found"),
        field("relevance", pa.float64(), "Similarity of chunk and question on the retriever's scale: higher is closer"),
        field("page_content", pa.string(), "Text of a chunk that a remote server found; null: the text is in qa_documents"),
        field("problem", pa.string(), "Why the look-up failed; null: it succeeded"),
        field(
            "contains_quote", pa.bool_(), "Flag: true if the chunk contains a quote of the item; null: the item has no quotes"
        ),
    ]
)
"""One row per retrieved chunk of an item; one row for an item without chunks."""

QA_RETRIEVAL = pa.schema(
    [
        *OF_ONE_PROMPT,
        field("k", pa.int32(), "Number of chunks requested"),
        field("precision", pa.float64(), "Share of the first k chunks that contain a quote, 0-1: higher is better"),
        field("recall", pa.float64(), "Share of the chunks with a quote that are within the first k, 0-1: higher is better"),
        field("hit", pa.float64(), "1 if one of the first k chunks contains a quote, else 0: higher is better"),
        field(
            "mrr", pa.float64(), "Reciprocal rank of the first chunk with a quote, 0-1: higher is better; 0: no chunk has one"
        ),
        field(
            "ndcg",
            pa.float64(),
            "Discounted gain of the first 10 chunks divided by that of the best order, 0-1: higher is better",
        ),
    ]
)
"""One row per item with quotes: how well the retriever found their chunks."""

QA_RESPONSES = pa.schema([*OF_ONE_PROMPT, *CALL])
"""One row per response: a draw of an item under a condition by a model variant."""

QA_JUDGEMENTS = pa.schema(
    [
        *OF_ONE_RESPONSE,
        field("evaluator", pa.string(), "What the judge scores: semantic, factuality or rationale"),
        field("judge_model", pa.string(), "Name of the judge's model"),
        field("judge_variant", pa.string(), "Model string of the judge and its sampling parameters"),
        field("judge_snapshot", pa.string(), "Snapshot of the judgements: judge, or judge/SNAPSHOT for repeated judgements"),
        field("answer_key", pa.string(), "Key of the judged response in the store"),
        field("score", pa.float64(), "Score by the judge, 0-1: higher is better; null: none (see reason)"),
        field(
            "reason",
            pa.string(),
            "Why there is no score: unreadable, empty, error, budget, skipped_budget, skipped_sample; null: there is one",
        ),
        field("explanation", pa.string(), "Reason that the judge gave; null: none was read"),
        field("attempts", pa.int32(), "Number of requests: 2 if the first reply was unreadable"),
        field("raw", _QA_TEXTS, "Replies, unchanged"),
        field("request_keys", _QA_TEXTS, "Keys of the calls in the response store"),
        *_QA_USAGE_FIELDS,
        field("error", pa.string(), "Why there is no reply"),
        field("self_judged", pa.bool_(), "Flag: true if the judge and the judged model have the same maker"),
    ]
)
"""One row per evaluator and judged response."""

QA_EXECUTIONS = pa.schema(
    [
        *OF_ONE_RESPONSE,
        field("program_hash", pa.string(), "Hash of the program, its tests and the limits; equal programs run once"),
        field(
            "verdict",
            pa.string(),
            "Outcome: passed, assertion, exception, no_call, syntax, load, empty, crashed, timeout, sandbox_unavailable or sandbox_error",
        ),
        field("message", pa.string(), "Message of the tests or the program; null: none"),
        field("wall_s", pa.float64(), "Duration until the verdict in seconds"),
        field("isolation", pa.string(), "Level of the sandbox: sandlock or bwrap"),
        field("python", pa.string(), "Version of Python that ran it"),
    ]
)
"""One row per response whose code was run."""

QA_CITATIONS = pa.schema(
    [
        *OF_ONE_RESPONSE,
        field("position", pa.int32(), "Place of the citation in the response, from 0"),
        field("source_index", pa.string(), "Number of the source in the response, as JSON"),
        field("doc_id", pa.string(), "Id of the chunk with that number; null: no such chunk"),
        field("quote", pa.string(), "Quotation in the response"),
        field("exact", pa.bool_(), "Flag: true if the chunk contains the quotation, apart from outer blanks"),
        field(
            "relaxed",
            pa.bool_(),
            "Flag: true if the chunk contains it apart from case, quotation marks, dashes, white space and ellipses",
        ),
        field(
            "reason",
            pa.string(),
            "Why it does not count: found_elsewhere, not_found, index_out_of_range, bad_index, empty_quote, no_content; "
            "null: it counts",
        ),
        field("begin", pa.int32(), "Start of the quotation in the chunk, in characters from 0; null: not found"),
        field("end", pa.int32(), "End of the quotation in the chunk (exclusive); null: not found"),
    ]
)
"""One row per citation of a response."""

QA_SCORES = pa.schema(
    [
        *OF_ONE_RESPONSE,
        field("type", pa.string(), "Type of the question"),
        QA_CLUSTER,
        field("prompt_id", pa.string(), "Hash of everything that the model sees"),
        QA_TRUTH,
        field("request_key", pa.string(), "Key of the response in the store"),
        field("scorer", pa.string(), "Scorer, by name"),
        field("scorer_version", pa.int32(), "Version of the scorer"),
        METRIC_FIELD,
        field(
            "measured_by",
            pa.string(),
            "How the metric was measured: version, judge, lexicon and level of the sandbox; rows that differ in it are never averaged "
            "together",
        ),
        field("status", pa.string(), "Status of the score: ok, unparseable, or why it is missing"),
        field("value", pa.float64(), "Value, 0-1: higher is better; null: the status is not ok"),
        field(
            "score",
            pa.float64(),
            "Published value, 0-1, higher is better: unreadable responses count 0; null: left out of every mean",
        ),
        field("read_by", pa.string(), "Rule that read the response; null: no rule could"),
        field("flags", _QA_TEXTS, "Flags: multi, ambiguous, several, truncated, cut_json, ..."),
        field("detail", pa.string(), "Further output of the scorer, as JSON"),
        field("reason", pa.string(), "Why there is no value; null: there is one"),
        field("lexicon", pa.string(), "Fingerprint of the synonyms used; null: none"),
        ANSWERED_AT_FIELD,
    ]
)
"""One row per response, scorer and metric."""


QA_SPACE = Space("dataset_part", first="suite", second="part", order=str.casefold)
"""One partition is one part of a suite: `mmlu/college_physics`, `gsm8k/all`, `socioscope/questions`."""
QA_RESPONSE_KEY = ("item_id", "condition", "model_variant", "draw")
"""Key of the responses of a part's snapshot."""


MEASURED_BY_FIELD = QA_SCORES.field("measured_by")
OF_ONE_BOARD = ("suite", "condition", "metric", "measured_by")
"""Key of a board: rows that differ in any of these are never averaged together."""
_SUITE_FIELD, _PART_FIELD = OF_ONE_PART
_OF_CLUSTERS = tuple(MEAN_FIELDS[name] for name in ("macro_score", "macro_low", "macro_high"))

QA_BOARD = pa.schema(
    [
        CUT_FIELD,
        _SUITE_FIELD,
        _PART_FIELD,
        *(QA_CLUSTER, QA_CONDITION, METRIC_FIELD, MEASURED_BY_FIELD),
        *RANK_COLUMNS,
        *_OF_CLUSTERS,
        field("n_parts", pa.int64(), "Parts of the suite with a scored response"),
        *(MEAN_FIELDS[name] for name in ("n_items", "n_clusters", "n_total", "n_scored", "n_skipped", "n_failed")),
        field(
            "n_uncited",
            pa.int64(),
            "Responses without a citation, which have no score; null: the metric is not about quotations",
        ),
        field(
            "coverage",
            pa.float64(),
            "Share of the board's items (without n_sampled_out) that the model has a score for, 0-1; null: all are left out",
        ),
        field(
            "n_sampled_out",
            pa.int64(),
            "Items outside the random sample of judged responses (sample_rate): neither scored nor missing",
        ),
        *(MEAN_FIELDS[name] for name in ("parse_rate", "score_given_parsed")),
        field("exposure", pa.string(), "Whether the answers may be in the training data; empty: unknown"),
        SNAPSHOTS_FIELD,
        BOARD_NOTE_FIELD,
    ]
)
"""One row per cut, board (condition, metric and `measured_by` in a suite, a part, or a transcript or subject) and model variant."""
QA_CUTS = {
    "overall": (*(column.name for column in _OF_CLUSTERS), "n_parts", "exposure"),
    "part": ("part",),
    "cluster": ("cluster",),
}
"""Columns that only one cut of QA_BOARD has, by the name of the cut."""

QA_PASS_AT_K = pa.schema(
    [*OF_ONE_PART, QA_CONDITION, METRIC_FIELD, MEASURED_BY_FIELD, *MODEL_FIELDS, *PASS_COLUMNS],
)
"""One row per part with programs, condition, metric, `measured_by`, model variant and k."""

QA_VALIDITY = pa.schema(
    [
        _SUITE_FIELD,
        QA_CONDITION,
        *MODEL_FIELDS,
        field("check", pa.string(), "Check: position_bias, judge_against_numeric, self_judged, judge_failures or length_and_semantic"),
        METRIC_FIELD,
        MEASURED_BY_FIELD,
        field("value", pa.float64(), "Range of mean scores over orders of options, share of responses, or rank correlation; null: see note"),
        field("low", pa.float64(), "Lower end of the 95 % interval of the value; null: see note"),
        field("high", pa.float64(), "Upper end of the 95 % interval of the value; null: see note"),
        field("n", pa.int64(), "Number of items (position_bias), judgements (self_judged, judge_failures) or responses"),
        field("is_suspect", pa.bool_(), "Flag: true if the value is a reason to check the scores"),
        BOARD_NOTE_FIELD,
    ]
)  # fmt: skip
"""One row per suite, condition, model variant, check, metric and `measured_by`."""

QA_BOARDS = {"qa_board": QA_BOARD, "qa_pass_at_k": QA_PASS_AT_K}
"""The tables that the roll-up `qa_board` writes, by name."""
QA_ROLLED_UP = {**QA_BOARDS, "qa_validity": QA_VALIDITY}
"""The tables over all parts, by name."""


_BY_QA_ADD = "dtef qa run {options} {models} --max-calls 0 --from ingest"
_BY_QA_RUN = "dtef qa run {options} {models} --max-calls 0"
_BY_QA_ROLL_UP = "dtef qa board --refresh"
_OF_PART, _OF_PART_SNAPSHOT = ("suite", "part"), ("suite", "part", "snapshot")
QA_TABLES: Mapping[str, TableSpec] = {
    "qa_items": TableSpec(QA_ITEMS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_examples": TableSpec(QA_EXAMPLES, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_findings": TableSpec(QA_FINDINGS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_documents": TableSpec(QA_DOCUMENTS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_vectors": TableSpec(QA_VECTORS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_lookups": TableSpec(QA_LOOKUPS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_prompts": TableSpec(QA_PROMPTS, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_context": TableSpec(QA_CONTEXT, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_retrieval": TableSpec(QA_RETRIEVAL, QA_SPACE, _OF_PART, _BY_QA_ADD),
    "qa_responses": TableSpec(QA_RESPONSES, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    "qa_judgements": TableSpec(QA_JUDGEMENTS, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    "qa_executions": TableSpec(QA_EXECUTIONS, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    "qa_citations": TableSpec(QA_CITATIONS, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    "qa_scores": TableSpec(QA_SCORES, QA_SPACE, _OF_PART_SNAPSHOT, _BY_QA_RUN),
    **{name: TableSpec(schema, remake=_BY_QA_ROLL_UP) for name, schema in QA_ROLLED_UP.items()},
}
"""The tables by name. The first table of the space is written by ingest and defines the partitions."""
_JUDGE_CALLS = {"role": "'judge'", "model": "judge_model", "variant": "judge_variant", "purpose": "evaluator"}
_ANCHOR_PLACE = {"first": "split_part(partition, '/', 1)", "second": "split_part(partition, '/', 2)"}
_ANCHOR_CALLS = Calls("anchors", **_JUDGE_CALLS, **_ANCHOR_PLACE, only="family = 'qa'")
QA_CALL_TABLES = FamilyCalls(
    QA_SPACE,
    (calls_by_key("qa_responses"), Calls("qa_judgements", **_JUDGE_CALLS), _ANCHOR_CALLS),
    "evaluator",
    summed_by=("role", "suite", "evaluator", "model"),
)
