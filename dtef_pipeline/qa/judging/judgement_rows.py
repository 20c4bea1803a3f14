"""The rows of `qa_judgements`: which responses a judge sees, and its verdicts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.request import Request
from dtef_pipeline.judging.judges import is_self_judged
from dtef_pipeline.qa.item_files.benchmarks import FINAL_MARK
from dtef_pipeline.qa.judging.arbiter import (
    RATIONALE,
    SKIPPED_SAMPLE,
    Arbiter,
    Arbitration,
    is_in_sample,
    iterate_arbitrations,
    make_verdict_row,
)
from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.socioscope.yes_no import RationaleMetric, YesNoRationale, read_rationale_metric
from dtef_pipeline.qa.tables import QA_CITATIONS, QA_JUDGEMENTS, RESPONSE_COLUMNS
from dtef_pipeline.qa.transcripts.citation_reply import read_cited
from dtef_pipeline.qa.transcripts.quotations import check_citations, read_named_source

JUDGE_SCORER = "judge"
JUDGED_ITEM_COLUMNS = ("item_id", "scorers", "text", "solution", "reference", "quotes")
"""The columns of `qa_items` that `select_judged_items` reads."""


def make_verdict_stand_in(_: Arbitration, __: Request, text: str) -> str:
    """Return a readable reply with the text as its reason."""
    return json.dumps({"score": 0.5, "reason": text})


class JudgedItem(NamedTuple):
    """A judge's input in addition to a response, and the evaluators that it applies."""

    question: str
    reference: str
    evaluators: tuple[str, ...]
    """Empty: the arbiter's own."""
    cites: bool
    """Whether responses are JSON with an answer and citations; the judge sees only the answer."""

    def extract_answer_for_judge(self, response: str) -> str:
        """Return the part of a response that the judge sees."""
        if not self.cites:
            return response
        reply = read_cited(response)
        return reply.answer_with_reasons if self.evaluators == (RATIONALE,) else reply.answer


def select_to_judge(responses: pa.Table, items: Collection[str], rate: float) -> tuple[pa.Table, pa.Table]:
    """Split the responses to judged items: the answered ones in the sample, and all outside the sample, including failed calls.

    The sample is the same in every run. `items`: ids of the judged items, see `select_judged_items`.
    """
    rows = responses.filter(pc.is_in(responses["item_id"], pa.array(list(items), pa.string())))
    mask = is_in_sample(rows["item_id"].to_pylist(), rows["model_variant"].to_pylist(), rate)
    sample, left_out = (rows.filter(pa.array(flags, pa.bool_())) for flags in (mask, ~mask))
    return sample.filter(pc.equal(sample["call_status"], "answered")), left_out


def iterate_looks(
    responses: pa.Table, items: Mapping[str, JudgedItem], arbiter: Arbiter, snapshot: str
) -> Iterator[Arbitration]:
    """Yield a judgement per evaluator and response, in the order of the responses; blank ones need none. `items`: see
    `select_judged_items`."""
    named = responses.select(RESPONSE_COLUMNS).to_pylist()
    texts, keys = responses["response"].to_pylist(), responses["request_key"].to_pylist()
    for row, response, key in zip(named, texts, keys, strict=True):
        for task in iterate_item_arbitrations(items[row["item_id"]], response or "", arbiter, snapshot):
            yield replace(task, response=row, answer_key=key)


def iterate_item_arbitrations(item: JudgedItem, response: str, arbiter: Arbiter, snapshot: str) -> Iterator[Arbitration]:
    """Yield a judgement per evaluator of one response; none for a blank one."""
    return iterate_arbitrations(
        item.question, item.reference, item.extract_answer_for_judge(response), arbiter, snapshot, item.evaluators
    )


def select_judged_items(items: pa.Table) -> dict[str, JudgedItem]:
    """Return by item a judge's input in addition to a response, for items with judged answers or judged reasons.

    `items`: rows of `qa_items`.
    """
    records = {}
    for item, scorers, text, solution, reference, quotes in zip(
        *(items[name].to_pylist() for name in JUDGED_ITEM_COLUMNS), strict=True
    ):
        cites = VERBATIM_SCORER in (scorers or ())
        if JUDGE_SCORER in (scorers or ()):
            expected = f"{solution.strip()}\n{FINAL_MARK} {reference}" if solution.strip() else reference
            records[item] = JudgedItem(text, expected, (), cites)
        elif YesNoRationale.name in (scorers or ()) and (metric := _read_metric(reference)) and metric.reasons is None:
            quote_text = "\n".join(quote["text"] for quote in quotes)
            expected = f"{'Yes' if metric.expects_yes else 'No'}.{f' The evidence:{chr(10)}{quote_text}' if quote_text else ''}"
            records[item] = JudgedItem(text, expected, (RATIONALE,), cites)
    return records


def _read_metric(reference: str) -> RationaleMetric | None:
    """Call `read_rationale_metric`; None for an unreadable metric too: the stored item cannot be scored."""
    try:
        return read_rationale_metric(reference)
    except ItemError:
        return None


def merge_with_other_judges(
    earlier: pa.Table, new: pa.Table, responses: pa.Table, arbiter: Arbiter | None, snapshot: str
) -> pa.Table:
    """Return the new rows, then those of other judges or labels for responses that still exist.

    `earlier`: rows of `qa_judgements`; `responses`: rows of `qa_responses` of the same part and snapshot.
    """
    stands = pc.is_in(earlier["answer_key"], responses["request_key"].combine_chunks())
    if arbiter is not None:
        mask = pc.and_(pc.equal(earlier["judge_variant"], arbiter.model.variant), pc.equal(earlier["judge_snapshot"], snapshot))
        stands = pc.and_(stands, pc.invert(mask))
    return pa.concat_tables([new, earlier.filter(stands)])


def build_judgement_rows(
    looks: Sequence[Arbitration], outcomes: Sequence[EpisodeResult], own_servers: Collection[str] = ()
) -> pa.Table:
    """Return the rows of `qa_judgements`, in the order of `looks`. `own_servers`: see `is_self_judged`."""
    rows = [
        {
            **look.response,
            **make_verdict_row(look, outcome, look.response["model_variant"], own_servers),
            "judge_snapshot": look.snapshot,
            "answer_key": look.answer_key,
        }
        for look, outcome in zip(looks, outcomes, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=QA_JUDGEMENTS)


def build_skipped_rows(
    left_out: pa.Table, items: Mapping[str, JudgedItem], arbiter: Arbiter, snapshot: str, own_servers: Collection[str] = ()
) -> pa.Table:
    """Return the rows of responses outside the sample, one per evaluator. `items`: see `select_judged_items`; `own_servers`: see
    `is_self_judged`.
    """
    named = left_out.select(RESPONSE_COLUMNS).to_pylist()
    rows = [
        {
            **row,
            "evaluator": evaluator,
            "judge_model": arbiter.model.name,
            "judge_variant": arbiter.model.variant,
            "judge_snapshot": snapshot,
            "answer_key": key,
            "reason": SKIPPED_SAMPLE,
            "attempts": 0,
            "raw": [],
            "request_keys": [],
            "self_judged": is_self_judged(arbiter.model.model, row["model_variant"], own_servers),
        }
        for row, key in zip(named, left_out["request_key"].to_pylist(), strict=True)
        for evaluator in items[row["item_id"]].evaluators or arbiter.evaluators
    ]
    return pa.Table.from_pylist(rows, schema=QA_JUDGEMENTS)


VERBATIM_SCORER = "verbatim"
"""Name of the scorer that checks quotations in responses about documents."""


class ShownSource(NamedTuple):
    """A chunk as shown in a prompt."""

    doc_id: str
    page_content: str | None
    """None: the present documents have no such chunk."""


def load_shown_sources(context: pa.Table, documents: pa.Table) -> dict[tuple[str, str], list[ShownSource]]:
    """Return the shown chunks by item and condition, in the order of their numbers.

    Tables: `qa_context` and `qa_documents` of one part; `qa_context` itself has the text of chunks that a remote server found.
    """
    texts = dict(zip(documents["doc_id"].to_pylist(), documents["page_content"].to_pylist(), strict=True))
    sources: dict[tuple[str, str], list[ShownSource]] = defaultdict(list)
    for row in context.sort_by([("item_id", "ascending"), ("condition", "ascending"), ("rank", "ascending")]).to_pylist():
        if row["doc_id"] is not None:
            text = row["page_content"] if row["page_content"] is not None else texts.get(row["doc_id"])
            sources[row["item_id"], row["condition"]].append(ShownSource(row["doc_id"], text))
    return sources


def build_citation_rows(responses: pa.Table, chunks: Mapping[tuple[str, str], Sequence[ShownSource]]) -> pa.Table:
    """Return one row per citation of an answered response, in their order. `responses`: rows of `qa_responses`."""
    replies = responses.filter(pc.equal(responses["call_status"], "answered"))
    named = replies.select(RESPONSE_COLUMNS).to_pylist()
    rows: list[dict[str, Any]] = []
    for row, text in zip(named, replies["response"].to_pylist(), strict=True):
        sources = chunks.get((row["item_id"], row["condition"]), [])
        rows += [{**row, **citation} for citation in _check_reply_citations(text, sources)]
    return pa.Table.from_pylist(rows, schema=QA_CITATIONS)


def _check_reply_citations(text: str | None, sources: Sequence[ShownSource]) -> Iterator[dict[str, Any]]:
    citations = read_cited(text).citations
    for place, (citation, check) in enumerate(zip(citations, check_citations(sources, citations), strict=True)):
        index = check.source_index
        yield {
            "position": place,
            "source_index": json.dumps(read_named_source(citation), default=str),
            "doc_id": sources[index].doc_id if index is not None and 0 <= index < len(sources) else None,
            "quote": check.quote,
            "exact": bool(check.exact),
            "relaxed": bool(check.relaxed),
            "reason": check.reason,
            "begin": check.span.start if check.span else None,
            "end": check.span.end if check.span else None,
        }
