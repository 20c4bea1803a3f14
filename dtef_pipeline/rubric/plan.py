"""What a run of a blueprint would ask, before anything is asked: candidates, judges, the embedder and analysts.

What the response store has is replayed, as in the run itself: conversations are followed as far as they are stored, and responses that are
whole are judged by the very requests that the run would send. Everything else is counted, and its length is estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.embeddings import BATCH_TEXTS, text_hash
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import CANDIDATE, EMBEDDER, Message, Request
from dtef_pipeline.errors import ConfigError, NameLeak
from dtef_pipeline.identity import messages_id, request_key, request_keys
from dtef_pipeline.judging.call_ledger import CallLedger, PlannedCalls, most_tokens, tokens_of
from dtef_pipeline.judging.classes import CLASS_SCALES, ClassScale
from dtef_pipeline.judging.judgement import JUDGE_ROLE
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import Case, correction_messages, judge_messages
from dtef_pipeline.rubric.analyst_report import ReportedResponse, SummaryMaterial
from dtef_pipeline.rubric.anonymise import Participant
from dtef_pipeline.rubric.candidates import Candidates
from dtef_pipeline.rubric.conversations import EMPTY, OK, Script, response_text, scripts
from dtef_pipeline.rubric.extractions import planned_criteria
from dtef_pipeline.rubric.model import TEXT_KIND, Turn
from dtef_pipeline.rubric.settings import REPORT_CHARACTERS
from dtef_pipeline.rubric.summary import (
    ANALYST_ROLE,
    SummaryCase,
    first_request,
    from_nothing,
    next_request,
    prepared,
)
from dtef_pipeline.rubric.summary_rows import MaterialTables, reported_prompts, shared_systems, summary_material

_STAND_IN_WORD = "say "
"""A token by `estimate_tokens`, and about as many characters as one of prose has."""
_ANY_SCORE = 0.0


@dataclass(frozen=True, slots=True)
class ExpectedReport:
    """A report of which some is yet to be had."""

    responses: Mapping[str, Sequence[ReportedResponse]]
    """By prompt, as of `expected_response`."""
    longer: float = 0.0
    """Tokens by which the responses that are yet to be had may be longer altogether."""
    called: tuple[str, ...] = ()
    """Names of the models."""


def expected_response(participant: Participant, text: str, more: float) -> ReportedResponse:
    """A response that begins with what is known of it. `more`: tokens that are still to be written."""
    filled = text + _STAND_IN_WORD * round(more)
    return ReportedResponse(participant, filled or None, _ANY_SCORE, _ANY_SCORE, None if filled else EMPTY)


def is_report_of(responses: pa.Table, texts: Mapping[str, Sequence[str]]) -> bool:
    """Whether the rows of `rubric_responses` have these texts, by prompt and in any order, and no others."""
    rows = responses.filter(pc.equal(responses["status"], OK))
    found = Counter(zip(rows["prompt"].to_pylist(), rows["text"].to_pylist(), strict=True))
    return found == Counter((prompt, text) for prompt, own in texts.items() for text in own)


def plan_known_summary(tables: MaterialTables, snapshot: str, analysts: Sequence[ModelSpec], ledger: CallLedger) -> None:
    """Enter what analysts are asked about a snapshot whose responses and scores are those that they will be shown."""
    has_texts = tables.responses["text"].null_count < len(tables.responses)
    case = _case(summary_material(tables, snapshot)) if has_texts else None
    for analyst in analysts:
        row = _planned(analyst, ledger)
        if case is not None:
            _enter(case, first_request(case, analyst), row, ledger)


def plan_summary(
    blueprint: str,
    snapshot: str,
    prompts: pa.Table,
    criteria: pa.Table,
    report: ExpectedReport,
    analysts: Sequence[ModelSpec],
    ledger: CallLedger,
) -> None:
    """Enter what analysts are asked about a blueprint of which something is yet to be had. Tables: `rubric_prompts`, `rubric_criteria`."""
    told = reported_prompts(prompts, criteria, report.responses)
    case = _case(SummaryMaterial(blueprint, snapshot, "", told, shared_systems(prompts), report.called))
    for analyst in analysts:
        row = _planned(analyst, ledger)
        if case is None:
            continue
        request = first_request(case, analyst)
        longer = min(report.longer, max(0, REPORT_CHARACTERS - len(case.report.text)) / len(_STAND_IN_WORD))
        row.requests += 1
        _send(case, request, row, longer)


def _planned(analyst: ModelSpec, ledger: CallLedger) -> PlannedCalls:
    row = ledger.row(ANALYST_ROLE, analyst)
    row.planned += 1
    return row


def _case(material: SummaryMaterial) -> SummaryCase | None:
    """None: the report would not be sent."""
    try:
        return prepared(material) if material.participants else None
    except (NameLeak, ConfigError):
        return None


def _enter(case: SummaryCase, first: Request, row: PlannedCalls, ledger: CallLedger) -> None:
    """The request, unless it was answered; then the one for what the reply lacks, unless that was answered too."""
    row.requests += 1
    reply = ledger.stored.texts([first.key]).get(first.key)
    if reply is None:
        _send(case, first, row)
        return
    again = next_request(case, first, [reply])
    if again is None or ledger.stored.known([again.key]):
        row.replayed += 1
        return
    row.send(1, _tokens(again.messages), again.answer_tokens or 0, _most(again))


def _send(case: SummaryCase, first: Request, row: PlannedCalls, longer: float = 0.0) -> None:
    prompt, most = _tokens(first.messages), _most(first)
    row.send(1, prompt, first.answer_tokens or 0, most)
    row.prompt_tokens_most += longer
    row.once_more(1, _tokens(from_nothing(case, first)) + longer + most, most)


def _tokens(messages: Sequence[Message]) -> int:
    return sum(tokens_of(message.text) for message in messages)


def _most(request: Request) -> float:
    return float("inf") if request.max_tokens is None else float(request.max_tokens)


EARLIER_COLUMNS = ["prompt", "system_index", "model", "model_variant", "temperature", "draw", "asked_hash", "status", "text"]
"""What must be known of the rows of `rubric_responses` that a snapshot has."""


@dataclass(frozen=True, slots=True)
class AskedBlueprint:
    """What is planned of one blueprint: its tables, and who is asked how often."""

    blueprint: str
    prompts: pa.Table
    """Its rows of `rubric_prompts`."""
    criteria: pa.Table
    """Its rows of `rubric_criteria`."""
    candidates: Candidates
    judges: tuple[JudgeConfig, ...]
    embedder: ModelSpec
    every_prompt: bool = False
    """Whether responses to prompts without an ideal answer are embedded too."""
    analysts: tuple[ModelSpec, ...] = ()
    extractor: ModelSpec | None = None
    """Who extracts key points of ideal answers; None: nobody does."""
    snapshot: str = "base"
    draws: int = 1
    judge_draws: int = 1
    earlier: pa.Table | None = None
    """The rows of `rubric_responses` that the snapshot has; None: none."""
    embedded: Collection[str] = ()
    """Hashes of the texts that have a vector of the embedder."""
    scored: MaterialTables | None = None
    """The tables of the snapshot, if these judges and this policy scored it; None: scores are not known."""


@dataclass(slots=True)
class ExpectedResponses:
    """The responses to one prompt that will be judged."""

    texts: list[str] = field(default_factory=list)
    """Of those that are stored."""
    unknown: int = 0
    """Responses that are yet to be had."""
    unknown_tokens: float = 0.0
    """Estimated, of all of them together."""

    @property
    def count(self) -> int:
        return len(self.texts) + self.unknown

    @property
    def tokens(self) -> float:
        return self.unknown_tokens + sum(map(tokens_of, self.texts))


@dataclass(slots=True)
class _Talk:
    """A conversation, as far as it is stored."""

    script: int
    model: ModelSpec
    draw: int
    written: list[str] = field(default_factory=list)


def plan(asked: AskedBlueprint, ledger: CallLedger) -> int:
    """Enter into the ledger all calls of a blueprint; how many responses are planned: prompts x models x temperatures x systems x draws."""
    told = list(scripts(asked.prompts))
    talks = [
        _Talk(at, model, draw)
        for at, (_, temperatures) in enumerate(told)
        for model in asked.candidates.at(temperatures)
        for draw in range(asked.draws)
    ]
    spoken = [script for script, _ in told]
    expected: dict[str, ExpectedResponses] = {name: ExpectedResponses() for name in asked.prompts["prompt"].to_pylist()}
    before = ledger.unanswered
    asked = replace(asked, criteria=planned_criteria(asked.prompts, asked.criteria, asked.extractor, ledger))
    _converse(asked, spoken, talks, expected, ledger)
    standing = _stand(asked, spoken, talks, expected)
    _judge(asked, expected, ledger)
    _embed(asked, expected, ledger)
    if asked.analysts:
        report = _reported(asked, spoken, talks, standing, ledger)
        _sum_up(asked, expected, report, ledger, ledger.unanswered != before)
    return len(talks)


def _converse(
    asked: AskedBlueprint,
    spoken: Sequence[Script],
    talks: Sequence[_Talk],
    expected: Mapping[str, ExpectedResponses],
    ledger: CallLedger,
) -> None:
    """Wave by wave, as far as turns are stored. What follows the first turn that is not is known by its number alone."""
    authored = [_authored_tokens(script) for script in spoken]
    first = [_next_id(script, ()) for script in spoken]
    for talk in talks:
        ledger.row(CANDIDATE, talk.model).planned += len(authored[talk.script])
    going = list(talks)
    while going:
        ids = (_next_id(spoken[talk.script], talk.written) if talk.written else first[talk.script] for talk in going)
        keys = [request_key(one, talk.model.variant, talk.draw, asked.snapshot) for one, talk in zip(ids, going, strict=True)]
        texts = ledger.stored.texts(keys)
        goes_on = []
        for talk, key, is_new in zip(going, keys, ledger.new(keys), strict=True):
            row, came = ledger.row(CANDIDATE, talk.model), expected[spoken[talk.script].prompt]
            if key not in texts:
                _await(talk, authored[talk.script], row if is_new else None, came, ledger)
                continue
            row.requests += is_new
            row.replayed += is_new
            talk.written.append(texts[key])
            shown = response_text([texts[key]])
            if shown and len(talk.written) < len(authored[talk.script]):
                goes_on.append(talk)
            elif shown:
                came.texts.append(response_text(talk.written))
        going = goes_on


def _await(talk: _Talk, authored: Sequence[int], row: PlannedCalls | None, came: ExpectedResponses, ledger: CallLedger) -> None:
    """All turns of a conversation that are not stored; no row: another conversation asks for the same."""
    usual, most = ledger.usual.of_turn(talk.model), most_tokens(talk.model)
    said = sum(map(tokens_of, talk.written))
    done = len(talk.written)
    came.unknown += 1
    came.unknown_tokens += said + usual * (len(authored) - done)
    if row is None:
        return
    row.requests += len(authored) - done
    for further, tokens in enumerate(authored[done:]):
        row.send(1, tokens + said + further * usual, usual, most)
        row.prompt_tokens_most += further * (most - usual) if further else 0


def _next_id(script: Script, written: Sequence[str]) -> str:
    return messages_id((message.role, message.text) for message in script.until(written)[0])


def _authored_tokens(script: Script) -> list[int]:
    """For each turn that the model writes the tokens of everything before it that it did not write."""
    before = ([message.text for message in script.until([""] * turn)[0]] for turn in range(script.generated))
    return [sum(map(tokens_of, texts)) for texts in before]


def _stand(
    asked: AskedBlueprint, spoken: Sequence[Script], talks: Sequence[_Talk], expected: Mapping[str, ExpectedResponses]
) -> list[Mapping[str, Any]]:
    """The responses that the snapshot has of other models: they stay in it, and are judged with the rest."""
    if asked.earlier is None or not len(asked.earlier):
        return []
    stands = {(script.prompt, script.system_index): script.asked_hash for script in spoken}
    planned = {(spoken[talk.script].prompt, spoken[talk.script].system_index, talk.model.variant, talk.draw) for talk in talks}
    rows = asked.earlier.filter(pc.equal(asked.earlier["status"], OK))
    standing = [
        row
        for row in rows.select(EARLIER_COLUMNS).to_pylist()
        if stands.get((row["prompt"], row["system_index"])) == row["asked_hash"]
        and (row["prompt"], row["system_index"], row["model_variant"], row["draw"]) not in planned
    ]
    for row in standing:
        expected[row["prompt"]].texts.append(row["text"])
    return standing


def _judge(asked: AskedBlueprint, expected: Mapping[str, ExpectedResponses], ledger: CallLedger) -> None:
    in_words = asked.criteria.filter(pc.equal(asked.criteria["kind"], TEXT_KIND))
    by_prompt: dict[str, list[str]] = {}
    for prompt, text in zip(in_words["prompt"].to_pylist(), in_words["text"].to_pylist(), strict=True):
        by_prompt.setdefault(prompt, []).append(text)
    for prompt, messages in zip(asked.prompts["prompt"].to_pylist(), asked.prompts["messages"].to_pylist(), strict=True):
        came, criteria = expected[prompt], tuple(by_prompt.get(prompt, ()))
        if not criteria or not came.count:
            continue
        turns = tuple(Turn(message["role"], message["text"]) for message in messages)
        for approach, scale in dict.fromkeys((judge.approach, judge.scale) for judge in asked.judges):
            around = [_tokens_around(approach, Case("", one, turns, criteria), scale) for one in criteria]
            ids = [
                _judge_id(approach, Case(text, one, turns, criteria), scale) for text in came.texts for one in criteria
            ]  # the same for all judges of an approach
            for judge in asked.judges:
                if (judge.approach, judge.scale) == (approach, scale):
                    _ask_judge(asked, judge, came, np.array(around, np.float64), ids, ledger)


def _ask_judge(
    asked: AskedBlueprint,
    judge: JudgeConfig,
    came: ExpectedResponses,
    around: np.ndarray[Any, np.dtype[np.float64]],
    ids: Sequence[str],
    ledger: CallLedger,
) -> None:
    """One judge on all responses to a prompt; `around`: tokens of each criterion's messages without the text."""
    row = ledger.row(JUDGE_ROLE, judge.model)
    usual, most = ledger.usual.of_verdict(judge.model), most_tokens(judge.model)
    texts = np.array([tokens_of(text) for text in came.texts], np.float64)
    known_tokens = (texts[:, None] + around).ravel()
    for draw in range(asked.judge_draws):
        keys = request_keys(ids, judge.model.variant, draw, asked.snapshot)
        is_new = np.array(ledger.new(keys), bool)
        there = ledger.stored.known([key for key, new in zip(keys, is_new, strict=True) if new])
        replayed = is_new & np.array([key in there for key in keys], bool)
        sent = is_new & ~replayed
        waiting = came.unknown * len(around)
        calls = int(sent.sum()) + waiting
        tokens = float(known_tokens[sent].sum()) + came.unknown * float(around.sum()) + len(around) * came.unknown_tokens
        row.planned += came.count * len(around)
        row.requests += int(is_new.sum()) + waiting
        row.replayed += int(replayed.sum())
        row.send(calls, tokens, usual, most)
        row.once_more(calls, tokens + calls * (most + _CORRECTION[judge.scale]), 2 * most)


def _judge_id(approach: str, case: Case, scale: ClassScale) -> str:
    return messages_id((message.role, message.text) for message in judge_messages(approach, case, scale))


def _tokens_around(approach: str, case: Case, scale: ClassScale) -> int:
    return sum(tokens_of(message.text) for message in judge_messages(approach, case, scale))


_CORRECTION = {scale: tokens_of(correction_messages((), "", scale)[-1].text) for scale in CLASS_SCALES.values()}


def _embed(asked: AskedBlueprint, expected: Mapping[str, ExpectedResponses], ledger: CallLedger) -> None:
    """Ideals, and the responses to prompts that have one. A text that stands several times is embedded once."""
    ideals = {
        prompt: ideal
        for prompt, ideal in zip(asked.prompts["prompt"].to_pylist(), asked.prompts["ideal"].to_pylist(), strict=True)
        if ideal is not None
    }
    wanted = [came for prompt, came in expected.items() if asked.every_prompt or prompt in ideals]
    known = dict.fromkeys([*ideals.values(), *(text for came in wanted for text in came.texts)])
    missing = [text for text in known if text_hash(text) not in asked.embedded]
    unknown = sum(came.unknown for came in wanted)
    row = ledger.row(EMBEDDER, asked.embedder)
    row.planned += len(ideals) + sum(came.count for came in wanted)
    row.requests += len(known) + unknown
    row.replayed += len(known) - len(missing)
    tokens = sum(map(tokens_of, missing)) + fsum(came.unknown_tokens for came in wanted)
    row.send(0 if asked.embedder.is_local else -(-(len(missing) + unknown) // BATCH_TEXTS), tokens, 0, 0)


def _sum_up(
    asked: AskedBlueprint,
    expected: Mapping[str, ExpectedResponses],
    report: ExpectedReport,
    ledger: CallLedger,
    is_new: bool,
) -> None:
    """A report to each analyst. `is_new`: something else is asked before it, so that scores are not known."""
    texts = {name: came.texts for name, came in expected.items()}
    if not is_new and asked.scored is not None and is_report_of(asked.scored.responses, texts):
        plan_known_summary(asked.scored, asked.snapshot, asked.analysts, ledger)
    else:
        plan_summary(asked.blueprint, asked.snapshot, asked.prompts, asked.criteria, report, asked.analysts, ledger)


def _reported(
    asked: AskedBlueprint,
    spoken: Sequence[Script],
    talks: Sequence[_Talk],
    standing: Sequence[Mapping[str, Any]],
    ledger: CallLedger,
) -> ExpectedReport:
    """Of each response what is stored of it, and how long it is expected to become."""
    listed = bool(shared_systems(asked.prompts))
    found: dict[str, list[ReportedResponse]] = {}
    longer = 0.0
    for talk in talks:
        script, model = spoken[talk.script], talk.model
        ended = talk.written and not response_text(talk.written[-1:])
        left = 0 if ended else script.generated - len(talk.written)
        usual = ledger.usual.of_turn(model)
        longer += left * (most_tokens(model) - usual) if left else 0
        participant = Participant(model.model, model.temperature, script.system_index if listed else None)
        found.setdefault(script.prompt, []).append(expected_response(participant, response_text(talk.written), left * usual))
    for row in standing:
        participant = Participant(
            row["model_variant"].partition("[")[0], row["temperature"], row["system_index"] if listed else None
        )
        found.setdefault(row["prompt"], []).append(expected_response(participant, row["text"], 0))
    called = {*(talk.model.name for talk in talks), *(row["model"] for row in standing)}
    return ExpectedReport(found, longer, tuple(sorted(called)))
