"""The tables between the stages of the qa family: names, types and descriptions of their columns.

Every table has the columns suite and part, and of these what it needs: item_id, condition, model, model_variant, temperature, draw, snapshot.
Values and scores are 0-1, higher is better; one that could not be made is null, and `status` and `reason` say why.
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
    field("suite", pa.string(), "Suite of questions: mmlu, gsm8k, humaneval, socioscope, or one of the user's own"),
    field("part", pa.string(), "Part of the suite: a subject, a file of questions, or all"),
)
QA_ITEM_ID = field("item_id", pa.string(), "Id of the item, unique within its suite: college_physics/17, HumanEval/4")
QA_CONDITION = field(
    "condition",
    pa.string(),
    "Way of asking: template, number of examples and how they are shown, order of options, as in cot,5-shot; of items about documents "
    "retriever, number of chunks and filter, as in bm25,10-chunks",
)
QA_CLUSTER = field("cluster", pa.string(), "Thing that items hang together by: the subject, the transcript, or the item itself")
QA_TRUTH = field(
    "truth_id", pa.string(), "Hash of the item's type, options and expected answer: equal where responses are scored alike"
)
_QA_TEXTS = pa.list_(pa.string())
_QA_SPOKEN = pa.list_(pa.struct([("role", pa.string()), ("text", pa.string())]))
_QA_EVIDENCE = pa.list_(pa.struct([("text", pa.string()), ("file", pa.string()), ("turn", pa.int32())]))
OF_ONE_PROMPT = (*OF_ONE_PART, QA_ITEM_ID, QA_CONDITION)
"""The columns that name an item as it is asked."""
OF_ONE_RESPONSE = (*OF_ONE_PROMPT, *MODEL_FIELDS, *SAMPLE_FIELDS, SNAPSHOT_FIELD)
"""The columns that name one response."""
_QA_USED = (
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
            "type", pa.string(), "Type of the question, which says who scores it: choice, number, code, or a type of Socioscope"
        ),
        field("scorers", _QA_TEXTS, "Scorers of the item, by name; none: no scorer is known for its type"),
        field("text", pa.string(), "Question as the file has it"),
        field("options", _QA_TEXTS, "Texts to choose from, in the file's order; none: the answer is free"),
        field(
            "reference", pa.string(), "Expected answer as the scorer reads it: a letter, a number, a metric or tests in JSON"
        ),
        field("solution", pa.string(), "Worked answer as the file has it; empty: none"),
        QA_CLUSTER,
        QA_TRUTH,
        field(
            "quotes", _QA_EVIDENCE, "Evidence that the file names: words of a document, the document, the number of the turn"
        ),
        field("flags", _QA_TEXTS, "Words for what was noticed on reading: equal_options, ..."),
        field("source_line", pa.int32(), "Line of the file in which the row begins, from 1; null: the file has none"),
    ]
)
"""One row per item."""

QA_EXAMPLES = pa.schema(
    [
        *OF_ONE_PART,
        field("position", pa.int32(), "Place of the example in its file, from 0"),
        field("text", pa.string(), "Question of the example"),
        field("options", _QA_TEXTS, "Texts to choose from, in the file's order"),
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
        field("file", pa.string(), "File that the finding is about"),
        field("line", pa.int32(), "Line of the file, from 1; null: the whole file"),
        field("item_id", pa.string(), "Id of the item; null: it has none"),
        field("found", pa.string(), "Content that stands there"),
        field("allowed", pa.string(), "Content that would be accepted"),
        field("text", pa.string(), "Account of the finding in a sentence"),
    ]
)
"""One row per finding in the files of a part."""

QA_DOCUMENTS = pa.schema([*OF_ONE_PART, *DOCUMENT_FIELDS])
"""One row per chunk of a transcript that can be retrieved."""

QA_VECTORS = pa.schema([*OF_ONE_PART, *EMBEDDING_FIELDS])
"""One row per text of a part that was embedded: a chunk of a document, or what is looked for."""

QA_LOOKUPS = pa.schema(
    [
        *OF_ONE_PART,
        field("lookup_id", pa.string(), "Hash of the question, the number of chunks and the filter"),
        field("server", pa.string(), "Server that was asked: scheme and host of its address"),
        field(
            "sources",
            pa.list_(pa.struct([("doc_id", pa.string()), ("page_content", pa.string()), ("metadata", pa.string())])),
            "Chunks that it found, the nearest first, with what is known of each interview in JSON",
        ),
        field(
            "problem", pa.string(), "Reason why nothing could be looked up; null: it could, and the server is not asked again"
        ),
    ]
)
"""One row per look-up that a server was asked for."""

QA_PROMPTS = pa.schema(
    [
        *OF_ONE_PROMPT,
        field("prompt_id", pa.string(), "Hash of everything the model sees"),
        field("messages", _QA_SPOKEN, "Messages exactly as they are sent; none: the look-up failed, and no model is asked"),
        field("response_schema", pa.string(), "JSON schema that the response is asked to have; null: free text"),
        field("answer_tokens", pa.int32(), "Fewest tokens that the response needs room for; null: not said"),
        field(
            "option_order",
            pa.list_(pa.int32()),
            "Places, in the file's order, of the options as they are shown; null: the file's order",
        ),
        field("n_examples", pa.int32(), "Examples that are shown before the question"),
        QA_TRUTH,
    ]
)
"""One row per item and condition."""

QA_CONTEXT = pa.schema(
    [
        *OF_ONE_PROMPT,
        field(
            "rank", pa.int32(), "Place of the chunk among those found, from 0: its number in the prompt; null: none was found"
        ),
        field("doc_id", pa.string(), "Id of the chunk; null: none was found"),
        field(
            "relevance", pa.float64(), "Nearness of the chunk to the question on the retriever's own scale: higher is nearer"
        ),
        field("page_content", pa.string(), "Text of a chunk that a remote server found; null: the text is in qa_documents"),
        field("problem", pa.string(), "Reason why nothing could be looked up; null: it could"),
        field("holds_quote", pa.bool_(), "Flag: true where the chunk holds a quote that the item names; null: it names none"),
    ]
)
"""One row per chunk that was retrieved for an item; one row per item for which none was."""

QA_RETRIEVAL = pa.schema(
    [
        *OF_ONE_PROMPT,
        field("k", pa.int32(), "Number of chunks that were asked for"),
        field("n_relevant", pa.int32(), "Chunks that the filter allows and that hold a quote which the item names"),
        field("precision", pa.float64(), "Share of the first k chunks that hold a quote, 0-1: higher is better"),
        field("recall", pa.float64(), "Share of the chunks with a quote that are among the first k, 0-1: higher is better"),
        field("hit", pa.float64(), "Number that is 1 where any of the first k chunks holds a quote, else 0: higher is better"),
        field("mrr", pa.float64(), "Reciprocal rank of the first chunk with a quote, 0-1: higher is better; 0: there is none"),
        field(
            "ndcg", pa.float64(), "Discounted gain of the first 10 chunks over that of the best order, 0-1: higher is better"
        ),
    ]
)
"""One row per item that names quotes: how well its chunks were found."""

QA_RESPONSES = pa.schema([*OF_ONE_PROMPT, *CALL])
"""One row per response: a draw of an item under a condition by a model variant."""

QA_JUDGEMENTS = pa.schema(
    [
        *OF_ONE_RESPONSE,
        field("evaluator", pa.string(), "Side that the judge looked at: semantic or factuality; or rationale"),
        field("judge_model", pa.string(), "Name of the judge's model"),
        field("judge_variant", pa.string(), "Model string of the judge and its sampling parameters"),
        field("judge_snapshot", pa.string(), "Label of the judgements: judge, or judge/LABEL of a repeated judgement"),
        field("answer_key", pa.string(), "Key of the judged response in the store"),
        field("score", pa.float64(), "Score that the judge gave, 0-1: higher is better; null: none, for the reason given"),
        field(
            "reason",
            pa.string(),
            "Reason why there is no score: unreadable, empty, error, budget, skipped_budget, skipped_sample; null: there is one",
        ),
        field("explanation", pa.string(), "Judge's own reason; null: none was read"),
        field("attempts", pa.int32(), "Replies that were asked for: 2 where the first could not be read"),
        field("raw", _QA_TEXTS, "Replies as they were served"),
        field("request_keys", _QA_TEXTS, "Keys of the calls in the response store"),
        *_QA_USED,
        field("error", pa.string(), "Explanation of why there is no reply"),
        field("self_judged", pa.bool_(), "Flag: true where judge and judged are of one maker, or one model"),
    ]
)
"""One row per evaluator and judged response."""

QA_EXECUTIONS = pa.schema(
    [
        *OF_ONE_RESPONSE,
        field("program_hash", pa.string(), "Hash of the program, its tests and the limits: equal programs are run once"),
        field(
            "verdict",
            pa.string(),
            "Outcome: passed, assertion, exception, no_call, syntax, load, empty, crashed, timeout, sandbox_unavailable or sandbox_error",
        ),
        field("message", pa.string(), "Message of the tests or the program; null: none"),
        field("wall_s", pa.float64(), "Seconds from start to verdict"),
        field("isolation", pa.string(), "Level of the sandbox: sandlock, bwrap, unshare or rlimits"),
        field("python", pa.string(), "Version of Python that ran it"),
        field("flags", _QA_TEXTS, "Words for what was noticed: weak_isolation, ..."),
    ]
)
"""One row per response whose code was run."""

QA_CITATIONS = pa.schema(
    [
        *OF_ONE_RESPONSE,
        field("position", pa.int32(), "Place of the citation in the response, from 0"),
        field("source_index", pa.string(), "Number of the source as the response gives it, in JSON"),
        field("doc_id", pa.string(), "Id of the chunk of that number; null: there is no such chunk"),
        field("quote", pa.string(), "Quotation as the response gives it"),
        field("exact", pa.bool_(), "Flag: true where the chunk contains the quotation, without outer blanks"),
        field(
            "relaxed",
            pa.bool_(),
            "Flag: true where it stands there but for case, quotation marks, dashes, white space and ellipses",
        ),
        field(
            "reason",
            pa.string(),
            "Reason why it does not count: found_elsewhere, not_found, index_out_of_range, bad_index, empty_quote, no_content; null: it counts",
        ),
        field("begin", pa.int32(), "Place in the chunk where the quotation begins; null: it was not found"),
        field("end", pa.int32(), "Place in the chunk behind its last character; null: it was not found"),
    ]
)
"""One row per citation of a response."""

QA_SCORES = pa.schema(
    [
        *OF_ONE_RESPONSE,
        field("type", pa.string(), "Type of the question"),
        QA_CLUSTER,
        field("prompt_id", pa.string(), "Hash of everything the model sees"),
        QA_TRUTH,
        field("request_key", pa.string(), "Key of the response in the store"),
        field("scorer", pa.string(), "Scorer, by name"),
        field("scorer_version", pa.int32(), "Version of the scorer"),
        METRIC_FIELD,
        field(
            "measured_by",
            pa.string(),
            "Ground of the metric: version, judge, lexicon, level of the sandbox; rows that differ in it are never averaged together",
        ),
        field("status", pa.string(), "State of the score: ok, unparseable, or why it is missing"),
        field("value", pa.float64(), "Value, 0-1: higher is better; null unless the status is ok"),
        field(
            "score",
            pa.float64(),
            "Value as it is published, 0-1, higher is better: what cannot be read counts 0; null: left out of every mean",
        ),
        field("how", pa.string(), "Rule that read the response; null: none did"),
        field("flags", _QA_TEXTS, "Words for what was noticed: multi, ambiguous, several, truncated, cut_json, ..."),
        field("detail", pa.string(), "Further output of the scorer, as JSON"),
        field("reason", pa.string(), "Reason why there is no value, in words; null: there is one"),
        field("lexicon", pa.string(), "Fingerprint of the synonyms that counted; null: none did"),
        ANSWERED_AT_FIELD,
    ]
)
"""One row per response, scorer and metric."""


QA_SPACE = Space("dataset_part", first="suite", second="part", order=str.casefold)
"""One partition is one part of a suite: `mmlu/college_physics`, `gsm8k/all`, `socioscope/questions`."""
QA_RESPONSE_KEY = ("item_id", "condition", "model_variant", "draw")
"""What tells the responses of a part's snapshot apart."""


MEASURED_BY_FIELD = QA_SCORES.field("measured_by")
OF_ONE_BOARD = ("suite", "condition", "metric", "measured_by")
"""What tells boards apart: rows that differ in any of these are never averaged together."""
_SUITE_FIELD, _PART_FIELD = OF_ONE_PART
_BOARD_FIELDS = (_SUITE_FIELD, QA_CONDITION, METRIC_FIELD, MEASURED_BY_FIELD)
_OF_CLUSTERS = tuple(MEAN_FIELDS[name] for name in ("macro_score", "macro_low", "macro_high"))
_COUNTED_RESPONSES = (
    *(MEAN_FIELDS[name] for name in ("n_items", "n_clusters", "n_total", "n_scored", "n_skipped", "n_failed")),
    field(
        "n_uncited", pa.int64(), "Responses that cite nothing, and so have no score; null: the metric is not about quotations"
    ),
)
_COVERED = (
    field(
        "coverage",
        pa.float64(),
        "Share of the items that were to be scored that the model has a score for, 0-1: those of the board but for n_sampled_out; "
        "null: all are left out",
    ),
    field(
        "n_sampled_out",
        pa.int64(),
        "Items that the random sample of judged responses (sample_rate) leaves out: neither scored nor missing",
    ),
    *(MEAN_FIELDS[name] for name in ("parse_rate", "score_given_parsed")),
)

QA_BOARD = pa.schema(
    [
        CUT_FIELD,
        _SUITE_FIELD,
        _PART_FIELD,
        QA_CLUSTER,
        *_BOARD_FIELDS[1:],
        *RANK_COLUMNS,
        *_OF_CLUSTERS,
        field("n_parts", pa.int64(), "Parts of the suite with a scored response"),
        *_COUNTED_RESPONSES,
        *_COVERED,
        field("exposure", pa.string(), "Sentence on whether the answers may be in the training data; empty: nothing is known"),
        SNAPSHOTS_FIELD,
        BOARD_NOTE_FIELD,
    ]
)
"""One row per cut, board (condition, metric and what it was measured by, in a suite, a part, or a transcript or subject) and model variant."""
QA_CUTS = {
    "overall": (*(column.name for column in _OF_CLUSTERS), "n_parts", "exposure"),
    "part": ("part",),
    "cluster": ("cluster",),
}
"""By the name of each cut of QA_BOARD, the columns that only this cut has."""

QA_PASS_AT_K = pa.schema(
    [*OF_ONE_PART, QA_CONDITION, METRIC_FIELD, MEASURED_BY_FIELD, *MODEL_FIELDS, *PASS_COLUMNS],
)
"""One row per part whose items are programs, condition, metric, what it was measured by, model variant and k."""

QA_VALIDITY = pa.schema(
    [
        _SUITE_FIELD,
        QA_CONDITION,
        *MODEL_FIELDS,
        field(
            "check",
            pa.string(),
            "Name of the check: position_bias, judge_against_numeric, self_judged, judge_failures or length_and_semantic",
        ),
        METRIC_FIELD,
        MEASURED_BY_FIELD,
        field(
            "value",
            pa.float64(),
            "Range of the mean scores over orders of options, a share of responses, or a rank correlation; null: see the note",
        ),
        field("low", pa.float64(), "Lower end of the 95 % interval of the value; null: see the note"),
        field("high", pa.float64(), "Upper end of the 95 % interval of the value; null: see the note"),
        field("n", pa.int64(), "Items (position_bias), judgements (self_judged, judge_failures) or responses behind the value"),
        field("warn", pa.bool_(), "Flag: true where the value is a reason to look into the scores"),
        BOARD_NOTE_FIELD,
    ]
)  # fmt: skip
"""One row per suite, condition, model variant, check and what was measured."""

QA_BOARDS = {
    "qa_board": QA_BOARD,
    "qa_pass_at_k": QA_PASS_AT_K,
}
"""The tables that the roll-up `qa_board` writes, by name."""
QA_ROLLED_UP = {
    **QA_BOARDS,
    "qa_validity": QA_VALIDITY,
}
"""The tables over all parts, by name."""


_ANCHOR = field("anchor", pa.string(), "Hash of the question, what is expected and the response, as the judge is shown them")
_OF_JUDGE = tuple(QA_JUDGEMENTS.field(name) for name in ("judge_model", "judge_variant", "evaluator"))
_KEPT_OF_JUDGEMENT = ("score", "reason", "raw", "request_keys", "prompt_tokens", "completion_tokens", "cost_usd")
_NIGHT_OF_ANCHOR = field("snapshot", pa.string(), "Night in which the judge was shown it again")

QA_ANCHOR_ITEMS = pa.schema(
    [
        _ANCHOR,
        *OF_ONE_RESPONSE,
        field("text", pa.string(), "Question as the judge is shown it"),
        field("reference", pa.string(), "Expected answer as the judge is shown it"),
        field("response", pa.string(), "Response as the judge is shown it"),
        field("evaluators", pa.list_(pa.string()), "Sides that the judge looks at; none: those of its settings"),
        field("score", pa.float64(), "Mean score of the judge when it was chosen, 0-1: higher is better"),
        field("seed", pa.int64(), "Seed of the choice"),
    ]
)
"""One row per anchor: a judged response that stays as it is, whatever becomes of its item."""

QA_ANCHORS = pa.schema(
    [
        _NIGHT_OF_ANCHOR,
        _ANCHOR,
        *(entry for entry in OF_ONE_RESPONSE if entry.name not in ("temperature", "snapshot")),
        *_OF_JUDGE,
        *(QA_JUDGEMENTS.field(name) for name in _KEPT_OF_JUDGEMENT),
    ]
)
"""One row per night, anchor and evaluator."""


_BY_QA_ADD = "dtef qa run {options} {models} --max-calls 0 --from ingest"
_BY_QA_RUN = "dtef qa run {options} {models} --max-calls 0"
_BY_QA_ROLL_UP = "dtef qa board --refresh"
_BY_QA_ANCHORS = "dtef anchors --family qa {options}"
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
    "qa_anchor_items": TableSpec(QA_ANCHOR_ITEMS, remake=_BY_QA_ANCHORS),
    "qa_anchors": TableSpec(QA_ANCHORS, levels=("snapshot",), remake=_BY_QA_ANCHORS),
    **{name: TableSpec(schema, remake=_BY_QA_ROLL_UP) for name, schema in QA_ROLLED_UP.items()},
}
"""By name. The first of the space is the one that ingest writes: it says which partitions there are."""
_ASKED_OF_JUDGES = {"role": "'judge'", "model": "judge_model", "variant": "judge_variant", "purpose": "evaluator"}
QA_CALL_TABLES = FamilyCalls(
    QA_SPACE,
    (calls_by_key("qa_responses"), Calls("qa_judgements", **_ASKED_OF_JUDGES), Calls("qa_anchors", **_ASKED_OF_JUDGES)),
    "evaluator",
    shown_by=("role", "suite", "evaluator", "model"),
)
