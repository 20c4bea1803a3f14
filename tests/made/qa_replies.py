"""Replies of made-up models to the prompts of the qa family: one that is honest, one that makes quotations up, and a judge that may fail."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fake_llm_server import Call, Fault, FaultPlan
from tests.made.rubric_replies import drawn, identity_of

JUDGE_SCORES = (0.3, 0.8, 0.9)
"""What the judge says: no mean of two of them is 0 or 0.5, so that these can only come from failures."""
BROKEN_VERDICTS = (
    '{"score": 0.8, "reason": "cut',
    '{"score": "high", "reason": "fine"}',
    "Good.",
    '{"score": 7, "reason": "x"}',
    "",
)
INVENTIONS = ("not_found", "found_elsewhere", "index_out_of_range", "bad_index", "empty_quote")
"""Why a quotation of the inventor is none, in the words of `qa_citations`."""
_SOURCE = re.compile(r"^\[(\d+)\] begins (\w+)$\n(?:About: [^\n]*\n)?(.*?)\n\[\1\] ends \2$", re.MULTILINE | re.DOTALL)


def qa_role_of(body: Mapping[str, Any]) -> str:
    """Who is asked: judge | cited (about sources) | candidate."""
    system = body["messages"][0]["content"] if body["messages"][0]["role"] == "system" else ""
    if "experienced examiner" in system:
        return "judge"
    return "cited" if "numbered sources" in system else "candidate"


def shown_in(call: Call) -> list[str]:
    """The texts of the sources that a prompt shows, by their numbers."""
    return [found[3] for found in _SOURCE.finditer(call.user)]


@dataclass
class QaPlayers:
    """The roles; `reply` is what a `FakeLLM` takes. What was answered in full is counted by body."""

    known: Mapping[str, str] = field(default_factory=dict)
    """By the text of an item, what candidates reply to it."""
    evidence: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """By the text of a question about sources, the answer and the passages that it rests on: what the honest model knows to look for."""
    usual: str = "I added it all up.\n#### 12"
    """What candidates reply to what they do not know; ATTEMPT stands for how often they were asked it."""
    breaks: Callable[[Call], bool] = lambda call: False
    """Whether a judge's reply is broken."""
    answered: Counter[str] = field(default_factory=Counter)
    by_role: Counter[str] = field(default_factory=Counter)
    invented: Counter[str] = field(default_factory=Counter)
    """Quotations of the inventor, by the reason for which they are none."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def reply(self, call: Call) -> str:
        role = qa_role_of(call.body)
        with self._lock:
            self.answered[identity_of(call.body)] += 1
            self.by_role[role] += 1
        if role == "judge":
            return self._judged(call)
        if role == "cited":
            return self._inventing(call) if call.body["model"] == "inventor" else self._honest(call)
        return next((reply for text, reply in self.known.items() if text in call.user), self.usual).replace(
            "ATTEMPT", str(call.attempt)
        )

    def _judged(self, call: Call) -> str:
        if self.breaks(call):
            return BROKEN_VERDICTS[drawn("how", call.attempt, call.body) % len(BROKEN_VERDICTS)]
        return json.dumps({"score": verdict_on(call.body), "reason": "as it is"})

    def _honest(self, call: Call) -> str:
        """Cites what stands in the sources, to the letter; where nothing of it is shown, nothing."""
        sources = shown_in(call)
        answer, passages = next((found for text, found in self.evidence.items() if text in call.user), ("", ()))
        places = [(n, quote) for quote in passages for n, source in enumerate(sources) if quote in source][:3]
        cited = [{"source_index": n, "quote": quote} for n, quote in places]
        return json.dumps({"answer": answer if cited else "The sources do not say.", "citations": cited})

    def _inventing(self, call: Call) -> str:
        """Answers as if it knew, and cites what does not stand where it says."""
        sources = shown_in(call)
        reason = INVENTIONS[drawn("invents", call.user) % len(INVENTIONS)]
        with self._lock:
            self.invented[reason] += 1
        return json.dumps({"answer": "yes", "citations": [invention(reason, sources)]})


def invention(reason: str, sources: list[str]) -> dict[str, Any]:
    """A citation that is none, for this reason."""
    own = next(part for part in sources[-1].split(". ") if part not in sources[0])
    return {
        "not_found": {"source_index": 0, "quote": "We were all quite certain of it on that purple Thursday."},
        "found_elsewhere": {"source_index": 0, "quote": own},
        "index_out_of_range": {"source_index": len(sources), "quote": own},
        "bad_index": {"source_index": "the last one", "quote": own},
        "empty_quote": {"source_index": 0, "quote": "  "},
    }[reason]


def verdict_on(body: Mapping[str, Any]) -> float:
    """What the judge thinks of what it is shown, however often it is asked."""
    return JUDGE_SCORES[drawn("verdict", body["messages"]) % len(JUDGE_SCORES)]


def breaks_at(rate: float) -> Callable[[Call], bool]:
    """A share of the judge's replies is broken; another attempt is another throw."""
    return lambda call: drawn("breaks", call.attempt, call.body["messages"]) % 1_000 < rate * 1_000


def judge_fails_at(rate: float, seconds: float) -> FaultPlan:
    """A share of what the judge is asked gets no reply ever: the server fails, or hangs for so long."""

    def plan(call: Call) -> Fault | None:
        number = drawn("no reply", call.body["messages"])
        if qa_role_of(call.body) != "judge" or number % 1_000 >= rate * 1_000:
            return None
        return Fault("hang", seconds=seconds) if number // 1_000 % 4 == 0 else Fault("status", status=500)

    return plan
