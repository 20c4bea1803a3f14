"""What models will be asked, counted by role and model: requests, what of them is stored already, and tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import CANDIDATE, EMBEDDER
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.judging.judgement import JUDGE_ROLE

USUAL_TURN_TOKENS = 400
"""Tokens of a turn by a model of which no response is known yet."""
USUAL_VERDICT_TOKENS = 120
ANALYST_ROLE = "analyst"
"""Tokens of a judgement by a judge of which none is known yet: one or two sentences and a class."""
PLANNED_ROLES = (CANDIDATE, JUDGE_ROLE, EMBEDDER, ANALYST_ROLE)
"""What models are asked as, in the order in which a run asks them."""
PLANNED: Mapping[str, str] = {
    "role": "What the model is asked as: candidate (to be evaluated), judge, embedder or analyst",
    "planned": "Turns to be written, judgements, texts to be embedded, summaries, or extractions of key points",
    "requests": "Planned ones that differ: what reads the same is asked once",
    "replayed": "Requests whose response is stored: they cost nothing",
    "calls": "Requests that are sent: all that are not replayed; up to 64 texts are embedded in one",
    "calls_most": "Calls if each reply of a judge or an analyst has to be asked for once more",
    "prompt_tokens": "Tokens of the prompts that are sent, estimated on the high side",
    "response_tokens": "Tokens of the responses as they usually are: the mean of earlier ones, if there are any",
    "response_tokens_most": "Tokens of the responses if each is as long as allowed: by max_tokens of the model, or the prompt if that is more",
    "cost_usd": "US dollars for these calls with responses of the usual length",
    "cost_usd_most": "US dollars for the most calls with the longest responses",
}
"""By name, the columns of an estimate of a rubric run."""


@dataclass(slots=True)
class PlannedCalls:
    """What one model is asked in one role. Tokens are of calls that are sent alone; a `most` without a limit is infinite."""

    role: str
    model: ModelSpec
    """Of several variants of the model the first."""
    planned: int = 0
    requests: int = 0
    replayed: int = 0
    calls: int = 0
    calls_most: int = 0
    prompt_tokens: float = 0.0
    prompt_tokens_most: float = 0.0
    """As `prompt_tokens`, where everything that can be asked for once more is."""
    response_tokens: float = 0.0
    response_tokens_most: float = 0.0

    def send(self, calls: int, prompt: float, usual: float, most: float) -> None:
        """So many calls, whose prompts have so many tokens together, with responses of `usual` and of at most `most` tokens each.

        A model whose responses were made elsewhere is sent none.
        """
        if self.model.is_imported:
            return
        self.calls += calls
        self.calls_most += calls
        self.prompt_tokens += prompt
        self.prompt_tokens_most += prompt
        self.response_tokens += calls * min(usual, most)
        self.response_tokens_most += calls * most if calls else 0

    def once_more(self, calls: int, prompt: float, most: float) -> None:
        """At most so many further calls."""
        self.calls_most += calls
        self.prompt_tokens_most += prompt
        self.response_tokens_most += calls * most if calls else 0


@dataclass(frozen=True, slots=True)
class StoredResponses:
    """What is known of requests that were sent before, by their keys."""

    known: Callable[[Sequence[str]], set[str]]
    """Those of the keys that have a response."""
    texts: Callable[[Sequence[str]], Mapping[str, str]]
    """The text of each response that there is."""


NOTHING_STORED = StoredResponses(lambda keys: set(), lambda keys: {})


@dataclass(frozen=True, slots=True)
class UsualLengths:
    """Mean tokens of earlier responses, by model variant: of one turn of a candidate, and of one reply of a judge."""

    turns: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, float] = field(default_factory=dict)

    def of_turn(self, model: ModelSpec, room: float = 0.0) -> float:
        """`room`: tokens that the response may have at least, whatever the model's own limit."""
        return min(self.turns.get(model.variant, USUAL_TURN_TOKENS), max(room, most_tokens(model)))

    def of_verdict(self, model: ModelSpec) -> float:
        return min(self.verdicts.get(model.variant, USUAL_VERDICT_TOKENS), most_tokens(model))


@dataclass(slots=True)
class CallLedger:
    """The calls of several blueprints together. Equal requests of different blueprints are one."""

    stored: StoredResponses = NOTHING_STORED
    usual: UsualLengths = field(default_factory=UsualLengths)
    rows: dict[tuple[str, str], PlannedCalls] = field(default_factory=dict)
    """By role and name of the model."""
    _seen: set[bytes] = field(default_factory=set)

    def row(self, role: str, model: ModelSpec) -> PlannedCalls:
        return self.rows.setdefault((role, model.name), PlannedCalls(role, model))

    @property
    def unanswered(self) -> int:
        """Requests that are not stored yet."""
        return sum(row.requests - row.replayed for row in self.rows.values())

    def new(self, keys: Iterable[str]) -> list[bool]:
        """Of each key whether it was never given before; among equal ones of these the first."""
        found = []
        for key in keys:
            short = bytes.fromhex(key)
            found.append(short not in self._seen)
            self._seen.add(short)
        return found

    def sorted_rows(self) -> list[PlannedCalls]:
        """By role in the order of a run, then in the order in which models were first asked."""
        return sorted(self.rows.values(), key=lambda row: PLANNED_ROLES.index(row.role))


def most_tokens(model: ModelSpec) -> float:
    """The most tokens that a response of the model has; infinite where there is no limit."""
    return float("inf") if model.max_tokens is None else float(model.max_tokens)


@lru_cache(maxsize=65_536)
def tokens_of(text: str) -> int:
    """`estimate_tokens`, once per text: the same instructions stand in many prompts."""
    return estimate_tokens(text)
