"""The rows of `qa_judgements`: which responses a judge is shown, and what it said of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.episodes import Played
from dtef_pipeline.asking.request import Request, Response
from dtef_pipeline.judging.judges import is_self_judged
from dtef_pipeline.qa.arbiter import RATIONALE, Arbiter, in_sample
from dtef_pipeline.qa.arbitration import SKIPPED_SAMPLE, Arbitration, arbitrations, verdict_row
from dtef_pipeline.qa.citation_rows import VERBATIM_SCORER
from dtef_pipeline.qa.item_files.gsm8k import FINAL_MARK
from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.socioscope.rationale import RationaleMetric, YesNoRationale, rationale_metric
from dtef_pipeline.qa.tables import OF_ONE_RESPONSE, QA_JUDGEMENTS
from dtef_pipeline.qa.transcripts.cited_reply import read_cited

JUDGE_SCORER = "judge"
JUDGED_ITEM_COLUMNS = ("item_id", "scorers", "text", "solution", "reference", "quotes")
"""The columns of `qa_items` that `judged_items` reads."""
_JUDGED_NAMES = tuple(one.name for one in OF_ONE_RESPONSE)


@dataclass(slots=True)
class ResponseJudged:
    """One evaluator's look at one response: an episode."""

    response: Mapping[str, Any]
    """The columns that name it."""
    arbitration: Arbitration
    answer_key: str
    """Key of the response in the store."""

    def next(self, history: Sequence[Response]) -> Request | None:
        return self.arbitration.next(history)


def verdict_stand_in(_: ResponseJudged, __: Request, text: str) -> str:
    """A reply that can be read, with the text as its reason."""
    return json.dumps({"score": 0.5, "reason": text})


class JudgedItem(NamedTuple):
    """What a judge is shown beside a response, and by which evaluators it looks at it."""

    question: str
    reference: str
    evaluators: tuple[str, ...]
    """Empty: those of the arbiter."""
    cites: bool
    """Whether responses are JSON with an answer and citations, of which the judge is shown the answer."""

    def answer_in(self, response: str) -> str:
        """What of a response the judge is shown."""
        if not self.cites:
            return response
        reply = read_cited(response)
        return reply.reasoned if self.evaluators == (RATIONALE,) else reply.answer


def to_be_judged(responses: pa.Table, items: Collection[str], rate: float) -> tuple[pa.Table, pa.Table]:
    """Of the responses to items that a judge scores: those answered that are in the sample, and all that are not, also where a call failed.

    The same ones at every run. `items`: their ids, as of `judged_items`.
    """
    wanted = responses.filter(pc.is_in(responses["item_id"], pa.array(list(items), pa.string())))
    sampled, left_out = by_sample(wanted, rate)
    return sampled.filter(pc.equal(sampled["call_status"], "answered")), left_out


def by_sample(responses: pa.Table, rate: float) -> tuple[pa.Table, pa.Table]:
    """The responses that are in the sample, and those that are not."""
    chosen = in_sample(responses["item_id"].to_pylist(), responses["model_variant"].to_pylist(), rate)
    return responses.filter(pa.array(chosen, pa.bool_())), responses.filter(pa.array(~chosen, pa.bool_()))


def judged_responses(
    judged: pa.Table, items: Mapping[str, JudgedItem], arbiter: Arbiter, snapshot: str
) -> Iterator[ResponseJudged]:
    """Every look of an evaluator at the responses, in their order; blank ones need none. `items`: as of `judged_items`."""
    named = judged.select(list(_JUDGED_NAMES)).to_pylist()
    texts, keys = judged["response"].to_pylist(), judged["request_key"].to_pylist()
    for row, response, key in zip(named, texts, keys, strict=True):
        for one in looks_at(items[row["item_id"]], response or "", arbiter, snapshot):
            yield ResponseJudged(row, one, key)


def looks_at(item: JudgedItem, response: str, arbiter: Arbiter, snapshot: str) -> Iterator[Arbitration]:
    """Every look of an evaluator at one response; none at a blank one."""
    return arbitrations(item.question, item.reference, item.answer_in(response), arbiter, snapshot, item.evaluators)


def judged_items(items: pa.Table) -> dict[str, JudgedItem]:
    """By item, what a judge is shown beside a response, of the items that a judge scores, or the reasons of whose answers one reads.

    `items`: rows of `qa_items`.
    """
    found = {}
    for item, scorers, text, solution, reference, quotes in _columns(items, *JUDGED_ITEM_COLUMNS):
        cites = VERBATIM_SCORER in (scorers or ())
        if JUDGE_SCORER in (scorers or ()):
            found[item] = JudgedItem(text, shown_reference(solution, reference), (), cites)
        elif YesNoRationale.name in (scorers or ()) and (metric := _read_metric(reference)) and metric.reasons is None:
            said = "\n".join(quote["text"] for quote in quotes)
            expected = f"{'Yes' if metric.expects_yes else 'No'}.{f' The evidence:{chr(10)}{said}' if said else ''}"
            found[item] = JudgedItem(text, expected, (RATIONALE,), cites)
    return found


def _read_metric(reference: str) -> RationaleMetric | None:
    """As `rationale_metric`; None also for one that cannot be read, of an item that was stored when it could: it is unscorable."""
    try:
        return rationale_metric(reference)
    except ItemError:
        return None


def with_other_judges(
    earlier: pa.Table, new: pa.Table, responses: pa.Table, arbiter: Arbiter | None, snapshot: str
) -> pa.Table:
    """The new rows first, then what other judges said, or this one under another label, of responses that still stand.

    `earlier`: rows of `qa_judgements`; `responses`: rows of `qa_responses` of the same part and snapshot.
    """
    stands = pc.is_in(earlier["answer_key"], responses["request_key"].combine_chunks())
    if arbiter is not None:
        own = pc.and_(pc.equal(earlier["judge_variant"], arbiter.model.variant), pc.equal(earlier["judge_snapshot"], snapshot))
        stands = pc.and_(stands, pc.invert(own))
    return pa.concat_tables([new, earlier.filter(stands)])


def shown_reference(solution: str, reference: str) -> str:
    """The reference as a judge is shown it: with the worked answer, where there is one."""
    return f"{solution.strip()}\n{FINAL_MARK} {reference}" if solution.strip() else reference


def judged_rows(looks: Sequence[ResponseJudged], played: Sequence[Played], own_servers: Collection[str] = ()) -> pa.Table:
    """The rows of `qa_judgements`, in the order of the looks. `own_servers`: as of `is_self_judged`."""
    rows = [
        {
            **one.response,
            **verdict_row(one.arbitration, came, one.response["model_variant"], own_servers),
            "judge_snapshot": one.arbitration.snapshot,
            "answer_key": one.answer_key,
        }
        for one, came in zip(looks, played, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=QA_JUDGEMENTS)


def skipped_rows(
    left_out: pa.Table, items: Mapping[str, JudgedItem], arbiter: Arbiter, snapshot: str, own_servers: Collection[str] = ()
) -> pa.Table:
    """The rows of responses that are not in the sample, one per evaluator. `items`: as of `judged_items`; `own_servers`: of `is_self_judged`."""
    named = left_out.select(list(_JUDGED_NAMES)).to_pylist()
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


def _columns(rows: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows[name].to_pylist() for name in names), strict=True)
