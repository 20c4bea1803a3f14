"""What a run would ask, before anything is asked: models under test, and the judge of what they write.

What the response store has is replayed, as in the run itself, and stored answers are judged by the very requests that the run would send.
Everything else is counted, and its length is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import CANDIDATE
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.identity import digest, request_keys
from dtef_pipeline.judging.call_ledger import CallLedger, PlannedCalls, most_tokens, tokens_of
from dtef_pipeline.judging.judgement import JUDGE_ROLE
from dtef_pipeline.qa.answering import with_messages
from dtef_pipeline.qa.arbiter import JUDGE_SNAPSHOT, Arbiter, in_sample
from dtef_pipeline.qa.arbiter_prompts import arbiter_messages
from dtef_pipeline.qa.arbitration import Arbitration
from dtef_pipeline.qa.judged_rows import judged_items, looks_at, to_be_judged

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AskedPart:
    """What is planned of one part: its tables, and who is asked how often."""

    prompts: pa.Table
    """The rows of `qa_prompts` that are asked: `item_id`, `prompt_id`, `messages`, `answer_tokens`. Nobody is asked those without messages."""
    items: pa.Table
    """Its rows of `qa_items`: `item_id`, `scorers`, `text`, `solution`, `reference`, `quotes`."""
    models: Sequence[ModelSpec]
    draws: int = 1
    snapshot: str = "base"
    arbiter: Arbiter | None = None
    """Who judges; None: nobody does."""
    judge_snapshot: str = JUDGE_SNAPSHOT
    stored: pa.Table | None = None
    """The rows of `qa_responses` that the part has in the snapshot: a run has these judged too, whoever they are of; None: there are none."""


def plan_part(asked: AskedPart, ledger: CallLedger) -> int:
    """Enter into the ledger all calls of a part; how many responses are planned: prompts with messages x models x draws."""
    asked = replace(asked, prompts=with_messages(asked.prompts))
    ids = asked.prompts["prompt_id"].to_pylist()
    texts = [[message["text"] for message in messages] for messages in asked.prompts["messages"].to_pylist()]
    tokens = np.array([sum(map(tokens_of, of_prompt)) for of_prompt in texts], dtype=np.float64)
    room = np.array([least or 0 for least in asked.prompts["answer_tokens"].to_pylist()], dtype=np.float64)
    judged = _Judged(asked, ledger)
    for model in asked.models:
        row = ledger.row(CANDIDATE, model)
        for draw in range(asked.draws):
            keys = request_keys(ids, model.variant, draw, asked.snapshot)
            is_new = np.array(ledger.new(keys), dtype=np.bool_)
            there = ledger.stored.known(keys)
            stored = np.array([key in there for key in keys], dtype=np.bool_)
            row.planned += len(keys)
            row.requests += int(is_new.sum())
            row.replayed += int((is_new & stored).sum())
            _send(row, is_new & ~stored, tokens, ledger.usual.of_turn(model, np.inf), np.maximum(room, most_tokens(model)))
            judged.plan(model, keys, stored, room)
    judged.plan_others()
    return len(ids) * len(asked.models) * asked.draws


def _send(
    row: PlannedCalls, sent: _Flags, tokens: npt.NDArray[np.float64], usual: float, most: npt.NDArray[np.float64]
) -> None:
    """The calls that are sent, by the most tokens that their responses may have."""
    for limit in np.unique(most[sent]).tolist():
        these = sent & (most == limit)
        row.send(int(these.sum()), float(tokens[these].sum()), usual, limit)


class _Judged:
    """What the judge of a part is asked about the responses of one model after the other."""

    def __init__(self, asked: AskedPart, ledger: CallLedger) -> None:
        self.asked, self.ledger, self.arbiter = asked, ledger, asked.arbiter
        self.material = judged_items(asked.items)
        self.items = asked.prompts["item_id"].to_pylist()
        self.planned: set[str] = set()
        """Request keys of the responses that the run asks for."""
        self.is_judged = np.array([item in self.material for item in self.items], dtype=np.bool_)

    def plan(self, model: ModelSpec, keys: Sequence[str], stored: _Flags, room: npt.NDArray[np.float64]) -> None:
        """The judgements of the responses with these request keys, in the order of the prompts; `stored`: which of them there are; `room`:
        tokens that each may have at least."""
        self.planned.update(keys)
        if self.arbiter is None or not self.is_judged.any():
            return
        chosen = self.is_judged & in_sample(self.items, [model.variant] * len(keys), self.arbiter.sample_rate)
        places = np.flatnonzero(chosen & stored).tolist()
        texts = self.ledger.stored.texts([keys[place] for place in places])
        self._stored([(self.items[place], texts[keys[place]]) for place in places], self.arbiter)
        if model.is_imported:  # there will be no more responses than are stored
            return
        for place in np.flatnonzero(chosen & ~stored).tolist():
            usual = self.ledger.usual.of_turn(model, float(room[place]))
            self._awaited(self.arbiter, self.items[place], keys[place], usual)

    def plan_others(self) -> None:
        """The judgements of stored responses that the run does not ask for itself: of other models, items, conditions and draws."""
        if self.arbiter is None or self.asked.stored is None or not self.material:
            return
        chosen, _ = to_be_judged(self.asked.stored, self.material, self.arbiter.sample_rate)
        rows = zip(*(chosen[name].to_pylist() for name in ("item_id", "request_key", "response")), strict=True)
        self._stored([(item, text or "") for item, key, text in rows if key not in self.planned], self.arbiter)

    def _stored(self, answers: Iterable[tuple[str, str]], arbiter: Arbiter) -> None:
        """The judgements of answers that are stored, with the items that they are of."""
        looks = [
            (one, request)
            for item, text in answers
            for one in looks_at(self.material[item], text, arbiter, self.asked.judge_snapshot)
            if (request := one.next([])) is not None
        ]
        replayed = self.ledger.stored.known([request.key for _, request in looks])
        replies = self.ledger.stored.texts(sorted(replayed))
        for one, request in looks:
            # Judges are shown an answer once or twice: unlike instructions it need not be remembered.
            tokens = sum(estimate_tokens(message.text) for message in request.messages)
            is_stored = request.key in replayed
            is_again = is_stored and self._is_asked_again(one, replies[request.key])
            self._ask(arbiter, request.key, tokens, is_stored=is_stored and not is_again, is_again=is_again)

    def _is_asked_again(self, one: Arbitration, reply: str) -> bool:
        """Whether the stored first reply cannot be read, and the judge was not asked once more yet."""
        again = [request.key for request in one.again(reply)]
        return bool(again) and not self.ledger.stored.known(again)

    def _awaited(self, arbiter: Arbiter, item: str, key: str, usual: float) -> None:
        """A response that is yet to be had, of the usual length."""
        shown = self.material[item]
        for evaluator in shown.evaluators or arbiter.evaluators:
            messages = arbiter_messages(evaluator, shown.question, shown.reference, "")
            around = sum(tokens_of(message.text) for message in messages)
            self._ask(arbiter, digest("judged later", evaluator, item, key), around + usual)

    def _ask(self, arbiter: Arbiter, key: str, tokens: float, *, is_stored: bool = False, is_again: bool = False) -> None:
        """A judgement. `is_again`: only its second request is sent, which may have twice the tokens."""
        row, most = self.ledger.row(JUDGE_ROLE, arbiter.model), most_tokens(arbiter.model)
        (is_new,) = self.ledger.new([key])
        row.planned += 1
        row.requests += is_new
        row.replayed += is_new and is_stored
        if is_new and not is_stored:
            row.send(1, tokens, self.ledger.usual.of_verdict(arbiter.model), 2 * most if is_again else most)
            if not is_again:
                row.once_more(1, tokens, 2 * most)
