"""The episodes of models under test and of judges: their requests, and the responses, judgements and points that they become."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import LOCAL_EMBEDDER, Models, ModelSpec, resolve_known_selector, strip_settings
from dtef_pipeline.asking.request import Message, Request, Response
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.judging.consensus import CLASS_SCALES, CONSENSUS_COLUMNS, USUAL_SCALE, compute_consensus
from dtef_pipeline.judging.judgement import build_first_request, build_next_request, resolve_judgement
from dtef_pipeline.judging.judges import JudgeConfig, default_judges, parse_judges
from dtef_pipeline.judging.prompts import HOLISTIC, Case, Turn, list_order
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT, TEXT_KIND
from dtef_pipeline.rubric.functions import FunctionScore, ReadyFunction
from dtef_pipeline.rubric.levels import CRITERION_KEYS, RESPONSE_KEYS
from dtef_pipeline.rubric.tables import RUBRIC_JUDGEMENTS, RUBRIC_POINTS, RUBRIC_RESPONSES
from dtef_pipeline.text.plain import strip_thinking
from dtef_pipeline.text.well_formed import replace_surrogates

OK, EMPTY = "ok", "empty"
_RESPONSE_IN_SNAPSHOT = ("prompt", "system_index", "model_variant", "draw")
_CONVERSATION_KEYS = ("prompt", "system_index", "conversation_hash")
_BETWEEN_TURNS = "\n\n"
_CUT_BY = ("length", "max_tokens")
"""Reasons of an end that mean: the limit of tokens was reached."""


@dataclass(frozen=True, slots=True)
class Script:
    """A prompt with one of its system prompts."""

    prompt: str
    system_index: int
    system: str | None
    turns: tuple[Turn, ...]

    @property
    def conversation_hash(self) -> str:
        """Hash of the messages that are sent and of the model's turns: equal scripts are one conversation."""
        return digest("script", self.system, [[turn.role, turn.text] for turn in self.turns])

    def list_messages_until(self, texts: Sequence[str]) -> tuple[list[Message], bool]:
        """Return the messages before the model's next turn, and whether there is a next turn, given the texts that the model has written."""
        sent_messages = [Message("system", self.system)] if self.system is not None else []
        answers = iter(texts)
        for turn in self.turns:
            if turn.text is None:
                answer = next(answers, None)
                if answer is None:
                    return sent_messages, True
                sent_messages.append(Message(turn.role, answer))
            else:
                sent_messages.append(Message(turn.role, turn.text))
        if self.turns[-1].role != "user":
            return sent_messages, False
        answer = next(answers, None)
        return (sent_messages, True) if answer is None else ([*sent_messages, Message("assistant", answer)], False)


@dataclass(frozen=True, slots=True)
class Conversation:
    """An episode that yields one response."""

    script: Script
    model: ModelSpec
    draw: int
    snapshot: str

    def next(self, history: Sequence[Response]) -> Request | None:
        """Return the next request, or None at the end or after a blank turn, because later turns would say nothing about the model."""
        if history and not join_response_text([history[-1].text]):
            return None
        messages, has_next = self.script.list_messages_until([response.text for response in history])
        return Request.build_request(messages, self.model, self.draw, self.snapshot) if has_next else None


def iterate_scripts(prompts: pa.Table) -> Iterator[tuple[Script, tuple[float, ...]]]:
    """Yield each prompt of `rubric_prompts` with each of its system prompts, and its temperatures."""
    columns = (prompts[name].to_pylist() for name in ("prompt", "messages", "systems", "temperatures"))
    for prompt, messages, systems, temperatures in zip(*columns, strict=True):
        turns = tuple(Turn(message["role"], message["text"]) for message in messages)
        for place, system in enumerate(systems):
            yield Script(prompt, place, system, turns), tuple(temperatures)


def build_response_rows(blueprint: str, conversations: Sequence[Conversation], outcomes: Sequence[EpisodeResult]) -> pa.Table:
    """Return the rows of `rubric_responses`, in the order of the conversations."""
    hashes = {script: script.conversation_hash for script in {conversation.script for conversation in conversations}}
    rows = [
        {
            "blueprint": blueprint,
            "prompt": conversation.script.prompt,
            "model": conversation.model.name,
            "model_variant": conversation.model.variant,
            "temperature": conversation.model.temperature,
            "system_index": conversation.script.system_index,
            "draw": conversation.draw,
            "snapshot": conversation.snapshot,
            "conversation_hash": hashes[conversation.script],
            **_describe_outcome(conversation.script, outcome),
        }
        for conversation, outcome in zip(conversations, outcomes, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=RUBRIC_RESPONSES)


def _describe_outcome(script: Script, outcome: EpisodeResult) -> Mapping[str, Any]:
    responses, failure = outcome.responses, outcome.failure
    texts = [response.text for response in responses]
    blank = bool(texts) and not join_response_text(texts[-1:])
    last = responses[-1] if responses else None
    return {
        "status": failure.status if failure else EMPTY if blank else OK,
        "text": join_response_text(texts) or None,
        "transcript": [{"role": message.role, "text": message.text} for message in script.list_messages_until(texts)[0]],
        "turns": len(responses),
        "truncated": any(response.finish_reason in _CUT_BY for response in responses),
        "request_keys": [response.request_key for response in responses],
        "error": failure.message if failure else None,
        "attempts": sum(response.attempts for response in responses) + (failure.attempts if failure else 0),
        "latency_s": sum(response.latency_s for response in responses) if responses else None,
        **{name: getattr(last, name, None) for name in ("finish_reason", "served_model", "fingerprint", "answered_at")},
        **sum_response_usage(responses),
    }


def sum_response_usage(responses: Sequence[Response]) -> dict[str, Any]:
    """Sum tokens and cost of several calls; an unknown cost makes the sum unknown."""
    costs = [response.cost_usd for response in responses]
    known_costs = [cost for cost in costs if cost is not None]
    return {
        "prompt_tokens": sum(response.prompt_tokens or 0 for response in responses),
        "completion_tokens": sum(response.completion_tokens or 0 for response in responses),
        "cost_usd": sum(known_costs) if responses and len(known_costs) == len(costs) else None,
    }


def join_response_text(texts: Sequence[str]) -> str:
    """Return the text that is judged, searched and embedded: the model's turns without thinking, stripped, joined by a blank line."""
    return _BETWEEN_TURNS.join(answer for text in texts if (answer := strip_thinking(text).strip()))


def merge_responses(earlier: pa.Table, new: pa.Table, conversations: Sequence[tuple[str, int, str]]) -> pa.Table:
    """Return the rows of a snapshot: `new`, and those of `earlier` that no new row replaces and whose conversation is unchanged.

    `conversations`: (prompt, place of the system prompt, conversation_hash) of the current blueprint. Rows are sorted by that order, then by
    model and draw, so that equal content gives equal bytes.
    """
    rows = pa.concat_tables([new, earlier])
    names = list(dict.fromkeys((*_RESPONSE_IN_SNAPSHOT, *_CONVERSATION_KEYS, "model")))
    frame = rows.select(names).to_pandas()
    places = pd.DataFrame(conversations, columns=list(_CONVERSATION_KEYS)).drop_duplicates(ignore_index=True)
    place = frame.merge(places.assign(place=places.index), "left", list(_CONVERSATION_KEYS))["place"]
    stands = ~frame.duplicated(list(_RESPONSE_IN_SNAPSHOT)) & (place.notna() | (frame.index < len(new)))
    order = frame.assign(place=place)[stands].sort_values(["place", "model", "model_variant", "draw"]).index
    return rows.take(pa.array(order))


CANDIDATE_TOKENS = 1_500
"""The most tokens of one turn, where the models file does not say otherwise."""


def choose_selectors(selectors: Sequence[str], blueprint: str, models: Sequence[str], codes: Collection[str]) -> Sequence[str]:
    """Return `selectors`, or else `models`, the models that the blueprint names.

    `codes`: codes of the findings in the file. Raises ConfigError if the file's collections are unknown or it names no usable model.
    """
    if selectors:
        return selectors
    if "no-collections" in codes:
        raise ConfigError(
            f"{blueprint} names a collection of models but was added without --models-dir: give --model, or add it again with --models-dir"
        )
    if not models:
        raise ConfigError(f"{blueprint} names no usable model: give --model")
    return models


def list_candidate_names(selectors: Iterable[str], models: Models) -> set[str]:
    """Return the names of the candidates, skipping selectors without a usable model."""
    names: set[str] = set()
    for selector in selectors:
        with suppress(ConfigError):
            names.update(Candidates(models, [selector]).names)
    return names


class Candidates:
    """The models that answer a run's prompts, each under the name of its base model regardless of the temperature."""

    def __init__(self, models: Models, selectors: Sequence[str]) -> None:
        """Resolve `selectors`: names, collections and litellm strings, which select the model of the models file with that string, if any.

        Raises ConfigError if a selector is unknown or a model cannot write text.
        """
        self._models = models
        self._chosen: dict[str, tuple[str, bool]] = {}
        self._made: dict[tuple[str, float], ModelSpec] = {}
        for selector in selectors:
            has_temperature = selector != strip_settings(selector) and "temperature=" in selector.rpartition("@")[2]
            for spec in models.resolve([resolve_known_selector(selector, models)]):
                if spec.is_computed or spec.model == LOCAL_EMBEDDER:
                    raise ConfigError(f"model {spec.name}: it writes no text, which a rubric needs; allowed: a language model")
                fixed = has_temperature or spec.is_local or spec.temperature is None
                self._chosen.setdefault(spec.variant, (spec.name, fixed))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._chosen.values())

    def resolve_at(self, temperatures: Iterable[float]) -> list[ModelSpec]:
        """Return every model at each temperature, each variant once.

        The local model and models that take no temperature or were chosen with one occur once.
        """
        specs = {}
        for name, is_fixed in self._chosen.values():
            for temperature in temperatures:
                spec = self._resolve_at_one(name, temperature, is_fixed)
                specs[spec.variant] = spec
        return list(specs.values())

    def _resolve_at_one(self, name: str, temperature: float, is_fixed: bool) -> ModelSpec:
        if (name, temperature) not in self._made:
            base = self._models.resolve([name])[0]
            tokens = {} if "max_tokens" in base.model_fields_set else {"max_tokens": CANDIDATE_TOKENS}
            settings = tokens if is_fixed else {**tokens, "temperature": temperature}
            spec = self._models.resolve([name], settings)[0]
            self._made[name, temperature] = spec.model_copy(update={"name": base.name})
        return self._made[name, temperature]


@dataclass(slots=True)
class JudgingEpisode:
    """An episode that yields one judgement."""

    response: Mapping[str, Any]
    """The columns that name the judged response."""
    criterion: Mapping[str, Any]
    """The row of `rubric_criteria`."""
    case: Case
    judge: JudgeConfig
    draw: int
    _first_request: Request | None = None

    def next(self, history: Sequence[Response]) -> Request | None:
        """Return the first request, then one for a readable reply if needed, or None at the end."""
        if self._first_request is None:
            self._first_request = build_first_request(self.case, self.judge, self.draw, self.response["snapshot"])
        return build_next_request(self._first_request, history, self.judge.scale) if history else self._first_request


def make_judgement_stand_in(episode: JudgingEpisode, _: Request, text: str) -> str:
    """Return a readable reply with the text as its reflection."""
    middle = list(episode.judge.scale.numbers)[episode.judge.scale.size // 2]
    return f"<reflection>{text}</reflection>\n<classification>{middle}</classification>"


def choose_judges(
    options: Sequence[str], file_judges: Sequence[str], models: Models, scale: int = USUAL_SCALE
) -> tuple[JudgeConfig, ...]:
    """Return the judges of a blueprint: `options`, or else `file_judges`, or else the default judges.

    `options` and `file_judges`: each `APPROACH=MODEL`; a litellm string selects the model of the models file with that string, if any. `scale`:
    number of classes to choose from, 5 or 10. Raises ConfigError if there is no judge.
    """
    parts = [selector.partition("=") for selector in options or file_judges]
    selectors = [f"{approach}{sign}{resolve_known_selector(model, models)}" for approach, sign, model in parts]
    judges = parse_judges(selectors, models) if selectors else default_judges(models)
    return tuple(replace(judge, scale=CLASS_SCALES[scale]) for judge in judges)


def count_judged_criteria(responses: pa.Table, criteria: pa.Table) -> int:
    """Count the judgements by one judge in one draw: one per criterion in words and response with a text.

    Tables: `rubric_responses` with `prompt` and `status`, `rubric_criteria` with `prompt` and `kind`, of one blueprint.
    """
    criterion_counts = Counter(criteria.filter(pc.equal(criteria["kind"], TEXT_KIND))["prompt"].to_pylist())
    response_counts = Counter(responses.filter(pc.equal(responses["status"], OK))["prompt"].to_pylist())
    return sum(times * criterion_counts[prompt] for prompt, times in response_counts.items())


def iterate_judgings(
    responses: pa.Table, criteria: pa.Table, prompts: pa.Table, judges: Sequence[JudgeConfig], draws: int
) -> Iterator[JudgingEpisode]:
    """Yield the judgements of all responses with a text: each criterion in words by each judge, `draws` times.

    Tables: `rubric_responses`, `rubric_criteria` and `rubric_prompts` of one blueprint.
    """
    turns = {
        row["prompt"]: tuple(Turn(message["role"], message["text"]) for message in row["messages"])
        for row in prompts.select(["prompt", "messages"]).to_pylist()
    }
    by_prompt: dict[str, list[dict[str, Any]]] = {}
    for row in criteria.filter(pc.equal(criteria["kind"], TEXT_KIND)).to_pylist():
        by_prompt.setdefault(row["prompt"], []).append(row)
    answers = responses.filter(pc.equal(responses["status"], OK))
    texts = answers["text"].to_pylist()
    for text, named in zip(texts, answers.select(list(RESPONSE_KEYS[1:])).to_pylist(), strict=True):
        prompt_criteria = by_prompt.get(named["prompt"], [])
        criterion_texts = tuple(row["text"] for row in prompt_criteria)
        for row in prompt_criteria:
            case = Case(text, row["text"], turns[named["prompt"]], criterion_texts)
            for judge in judges:
                for draw in range(draws):
                    yield JudgingEpisode(named, row, case, judge, draw)


def build_rubric_judgement_rows(
    blueprint: str, episodes: Sequence[JudgingEpisode], outcomes: Sequence[EpisodeResult]
) -> pa.Table:
    """Return the rows of `rubric_judgements`, in the order of the episodes."""
    rows = [
        {
            "blueprint": blueprint,
            **episode.response,
            **{name: episode.criterion[name] for name in ("block", "path", "position", "criterion_id")},
            **read_judgement(episode, outcome),
        }
        for episode, outcome in zip(episodes, outcomes, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=RUBRIC_JUDGEMENTS)


def read_judgement(episode: JudgingEpisode, outcome: EpisodeResult) -> dict[str, Any]:
    """Return the columns of `rubric_judgements` on the judge, its judgement and the calls."""
    case, judge = episode.case, episode.judge
    judgement = resolve_judgement(outcome.outcomes, judge.scale)
    return {
        "judge": judge.name,
        "approach": judge.approach,
        "judge_model": judge.model.name,
        "judge_variant": judge.model.variant,
        "judge_draw": episode.draw,
        "scale": judge.scale.size,
        "class": judgement.name,
        "score": judgement.score,
        "reason": judgement.reason,
        "reflection": judgement.reflection,
        "attempts": judgement.attempts,
        "list_order": list_order(case.criterion, case.criteria) if judge.approach == HOLISTIC else None,
        "raw": list(judgement.raws),
        "request_keys": list(judgement.request_keys),
        **sum_response_usage(outcome.responses),
        "error": outcome.failure.message if outcome.failure else None,
    }


NOT_JUDGED = "not judged"
"""Why a point without judgements has no score: the judging stage has not run since the response or the criterion was added."""
_KEY = (*RESPONSE_KEYS, *CRITERION_KEYS)
_OF_CRITERIA = ("criterion_id", "kind", "weight", "source")
Prepare = Callable[[str, Any], ReadyFunction]
"""Makes a function ready for any number of responses, given its name and its argument."""


def build_point_rows(responses: pa.Table, criteria: pa.Table, judgements: pa.Table, prepare: Prepare) -> pa.Table:
    """Return the rows of `rubric_points`: one per criterion of each response that has a text, sorted by the keys of both.

    Tables: `rubric_responses`, `rubric_criteria` and `rubric_judgements` of one blueprint and snapshot. Judgements of deleted criteria or
    responses are ignored.
    """
    answers = responses.filter(pc.equal(responses["status"], OK))
    named_criteria = criteria.select(["prompt", *CRITERION_KEYS, *_OF_CRITERIA])
    plan = answers.select(list(RESPONSE_KEYS)).join(named_criteria, "prompt", join_type="inner")
    judged_points = _build_judged_points(plan.filter(pc.equal(plan["kind"], TEXT_KIND)), judgements)
    function_points = _compute_function_points(answers, criteria, prepare)
    rows = pa.concat_tables([judged_points, function_points])
    place = ["prompt", "model", "model_variant", "temperature", "system_index", "draw", "block", "path", "position"]
    return rows.take(pc.sort_indices(rows.select(place), [(name, "ascending") for name in place]))


def _build_judged_points(plan: pa.Table, judgements: pa.Table) -> pa.Table:
    is_inverted = pc.equal(judgements["block"], SHOULD_NOT)
    consensus = compute_consensus(judgements.append_column("inverted", is_inverted), [*_KEY, "criterion_id"])
    # A join takes no null for a value; paths and temperatures may be null.
    left, right = _add_key_code(plan), _add_key_code(consensus)
    names = [column.name for column in CONSENSUS_COLUMNS]
    index = pc.index_in(left["code"], value_set=right["code"].combine_chunks())
    matches = right.select(names).take(index)
    missing = pc.is_null(index)
    columns = {name: matches[name] for name in names}
    columns["reason"] = pc.if_else(missing, NOT_JUDGED, matches["reason"])
    columns["low"], columns["high"] = pc.coalesce(matches["low"], 0.0), pc.coalesce(matches["high"], 1.0)
    columns["inverted"] = pc.equal(plan["block"], SHOULD_NOT)
    columns["partial"] = pc.coalesce(matches["partial"], False)
    columns["labelled"] = pa.repeat(False, len(plan))
    for name in ("n_judges", "n_answered"):
        columns[name] = pc.coalesce(matches[name], 0)
    all_columns = {name: plan[name] for name in plan.column_names} | columns
    empty = pa.nulls(len(plan))
    return pa.table([all_columns.get(field.name, empty).cast(field.type) for field in RUBRIC_POINTS], schema=RUBRIC_POINTS)


def _compute_function_points(answers: pa.Table, criteria: pa.Table, prepare: Prepare) -> pa.Table:
    by_prompt: dict[str, list[tuple[dict[str, Any], ReadyFunction]]] = {}
    for row in criteria.filter(pc.not_equal(criteria["kind"], TEXT_KIND)).to_pylist():
        argument = None if row["args"] is None else json.loads(row["args"])
        by_prompt.setdefault(row["prompt"], []).append((row, prepare(row["fn"], argument)))
    texts = answers.filter(pc.is_in(answers["prompt"], pa.array(list(by_prompt), pa.string())))
    keys = texts.select(list(RESPONSE_KEYS)).to_pylist()
    rows = []
    for key, text, transcript in zip(keys, texts["text"].to_pylist(), texts["transcript"].to_pylist(), strict=True):
        messages = [{"role": message["role"], "content": _strip_message_thinking(message)} for message in transcript]
        context = {"messages": messages, "modelId": key["model"]}
        rows += [{**key, **_make_point_row(row, ready(text, context))} for row, ready in by_prompt[key["prompt"]]]
    return pa.Table.from_pylist(rows, schema=RUBRIC_POINTS)


def _strip_message_thinking(message: Mapping[str, str]) -> str:
    return strip_thinking(message["text"]).strip() if message["role"] == "assistant" else message["text"]


def _make_point_row(criterion: Mapping[str, Any], result: FunctionScore) -> dict[str, Any]:
    is_inverted = criterion["block"] == SHOULD_NOT
    score = result.score if result.score is None or not is_inverted else 1 - result.score
    low, high = (score, score) if score is not None else (0.0, 1.0)
    return {
        **{name: criterion[name] for name in (*CRITERION_KEYS, *_OF_CRITERIA)},
        "score": score,
        "low": low,
        "high": high,
        "n_judges": 0,
        "n_answered": 0,
        "partial": False,
        "inverted": is_inverted,
        "reason": result.reason,
        "explanation": replace_surrogates(result.explanation),
        "labelled": False,
    }


def _add_key_code(rows: pa.Table) -> pa.Table:
    names: Sequence[str] = (*_KEY, "criterion_id")
    texts = [pc.coalesce(pc.cast(rows[name], pa.string()), "\x00") for name in names]
    return rows.append_column("code", pc.binary_join_element_wise(*texts, "\x1f"))
