"""Conversations with the models under test: the requests turn by turn, and the response after the last turn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import LOCAL_EMBEDDER, Models, ModelSpec, resolve_known_selector, strip_settings
from dtef_pipeline.asking.request import Message, Request, Response
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.judging.prompts import Turn
from dtef_pipeline.rubric.tables import RUBRIC_RESPONSES
from dtef_pipeline.text.plain import strip_thinking

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
