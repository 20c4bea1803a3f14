"""Nothing of what a reviewer gets tells who wrote it."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.judging.hidden_names import build_blinding, list_names_of_model
from dtef_pipeline.preference.pairing import build_blinded_pair, build_paired_responses, choose_shown_as_a, count_replaced_names
from dtef_pipeline.preference.votes import vote_pair
from tests.made.shared_cases import cases_beside, shared
from tests.made.votes import real_responses, responses, vectors

CASES = cases_beside(__file__)
SALT = "0f" * 32


@pytest.mark.parametrize(("given_", "expected"), vectors("scrub"))
def test_vectors_of_scrubbing(given_: dict[str, Any], expected: str) -> None:
    assert build_blinding(given_["names"]).scrub(given_["text"]).text == expected


@pytest.mark.parametrize(("given_", "expected"), vectors("pair_json"))
def test_vectors_of_the_json_of_a_pair(given_: dict[str, Any], expected: bool) -> None:
    left, right = responses(2)
    served = build_blinded_pair(vote_pair(left, right), left, right, build_blinding(left.names), SALT).serialize()
    assert (list(served) == given_["keys"]) is expected


@pytest.mark.parametrize(("text", "expected"), CASES["names_are_whole_words_in_any_spelling"])
def test_names_are_whole_words_in_any_spelling(text: str, expected: str) -> None:
    names = ["GPT-4", "Claude", "Claude v1", "谷歌", "OpenAI", "openai/gpt-4"]
    assert build_blinding(names).scrub(text).text == expected


def test_replacements_are_counted() -> None:
    names = build_blinding(["alpha"])
    assert names.scrub("Alpha, alphabet, ALPHA") == ("[model], alphabet, [model]", 2)
    nothing = build_blinding(["", "-", "??", "a", "7", "4.1"])
    assert nothing.certain_names == nothing.everyday_names == ()


@given(st.text(), st.lists(st.text(max_size=8), max_size=4))
def test_no_text_and_no_name_breaks_the_scrubbing(text: str, names: list[str]) -> None:
    found = build_blinding(names)
    once = found.scrub(text)
    assert (once.n_replaced == 0) == (once.text == text)


@given(st.lists(st.sampled_from(["Zorble", "zorble", " ", "-", "v1", "x", "4"]), max_size=12).map("".join))
def test_scrubbing_is_what_a_naive_definition_says(text: str) -> None:
    naive = re.sub(r"(?<![A-Za-z0-9])zorble([\s_-]*v1)?(?![A-Za-z0-9])", "[model]", text, flags=re.IGNORECASE)
    if not re.search(r"[\s_-]{9}", text):
        assert build_blinding(["Zorble", "Zorble v1"]).scrub(text).text == naive


def test_a_long_text_of_one_piece_is_scrubbed_in_no_time() -> None:
    names = build_blinding([f"name {place}" for place in range(60)] + ["name"])
    began = time.process_time()
    for text in ("name" + " " * 50_000, "name-" * 10_000, "e\u0301" * 25_000):
        names.scrub(text)
    assert time.process_time() - began < 5


def test_which_one_is_a_is_the_first_bit_of_the_hash_and_texts_follow() -> None:
    for pair_id in ("p", "q", "r", "t"):
        first = int(hashlib.sha256(f"{pair_id}\ns".encode()).hexdigest()[0], 16)
        assert choose_shown_as_a(pair_id, "s") == ("right" if first >= 8 else "left")
    left, right = sorted(responses(2), key=lambda one: one.response_id)
    pair = vote_pair(left, right)
    seen = {
        choose_shown_as_a(pair.pair_id, salt): build_blinded_pair(pair, left, right, build_blinding([]), salt).run_a
        for salt in map(str, range(20))
    }
    assert seen == {"left": left.text, "right": right.text}


def test_no_name_stands_in_what_is_served_of_the_real_pairs() -> None:
    shared("votes")
    rows = real_responses()
    every = sorted({name for row in rows for name in row.names})
    names = build_blinding(every)
    leak = naive_leak([*every, *PEOPLE_SAY])
    both = [pair for pair in combinations(rows, 2) if pair[0].item_id == pair[1].item_id]
    assert len(both) == 5 * 59 * 58 / 2
    for left, right in both[::60]:
        pair = build_blinded_pair(vote_pair(left, right), left, right, names, SALT)
        assert list(pair.serialize()) == ["pair_id", "prompt", "run_a", "run_b"]
    scrubbed = {names.scrub(text).text for row in rows for text in (row.text, row.prompt)}
    for text in scrubbed:
        assert leak.search(text.replace("[model]", "")) is None
    risky = sum(names.scrub(row.text).n_replaced > 0 for row in rows)
    assert 0 < risky < 60
    # Names put into every real text in the forms in which people write them are all found, and nothing else of the text changes.
    for row in rows[::29]:
        clean = names.scrub(row.text).text
        for said in PEOPLE_SAY:
            assert names.scrub(f"I am {said}, so: {clean}").text == f"I am [model], so: {clean}"


PEOPLE_SAY = (
    "Claude", "CLAUDE", "claude v2", "ClaudeV2", "Claude_v1.2", "claude2", "ChatGPT", "chatgpt4", "GPT", "GPT4", "gpt_4", "GPT3", "Gpt-3.5",
    "Open AI", "OpenAI", "open-ai", "Anthropic", "Llama", "Llama2", "LLaMA 2", "Code Llama", "Vicuna", "Dolly v2", "Koala", "Cohere",
    "Google", "PaLM 2", "Jurassic 2", "Luminous Base", "Falcon", "Together AI", "StarCoder", "Qwen", "MosaicML", "RedPajama",
)  # fmt: skip
"""What somebody might call one of the 59 models or its maker."""


def naive_leak(names: Iterable[str]) -> re.Pattern[str]:
    """Independent of the code under test: hyphens, underscores and spaces are one, and a name is a whole word in any case."""
    spelled = ["[\\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name))) for name in names]
    return re.compile("|".join(rf"(?<![a-z0-9])(?:{one})(?![a-z0-9])" for one in spelled), re.IGNORECASE)


@pytest.mark.parametrize(("text", "expected"), CASES["everyday_words_are_names_only_where_they_are_written_as_names"])
def test_everyday_words_are_names_only_where_they_are_written_as_names(text: str, expected: str | None) -> None:
    names = ["togethercomputer/redpajama", "cohere/command", "Cohere", "a", "anthropic/claude-opus-4"]
    assert build_blinding(names).scrub(text).text == (expected or text)


@pytest.mark.parametrize(("text", "expected"), CASES["names_of_a_stored_model_are_known_in_their_versions"])
def test_names_of_a_stored_model_are_known_in_their_versions(text: str, expected: str) -> None:
    names = [*list_names_of_model("GPT 4", "openai/gpt-4"), *list_names_of_model("mini", "openrouter/openai/gpt-4.1-mini")]
    names += list_names_of_model("c", "openrouter/anthropic/claude-3.5-haiku")
    assert build_blinding(names).scrub(text).text == expected


def test_what_a_maker_is_known_for_is_hidden_with_each_of_its_models() -> None:
    names = build_blinding(["openai/gpt-3.5-turbo", "GPT 4", "anthropic/claude-2"])
    said = "ChatGPT, GPT-3, Open AI, GPT3, Claude, ClaudeV2, gpt_4, GPT4o; GPT-40, chatgptish, coherent, Llama"
    assert names.scrub(said).text == (
        "[model], [model], [model], [model], [model], [model], [model], [model]; GPT-40, chatgptish, coherent, Llama"
    )


def shown(text: str, *models: str) -> tuple[str, int]:
    """A text as a pair of these models shows it, and how many names were taken out of it."""
    names = [name for model in models for name in list_names_of_model(model, f"{model}[temperature=0]")]
    return build_blinding(names).add_pair_names(names).scrub(text)


@pytest.mark.parametrize(("model", "text", "expected"), CASES["the_names_of_the_two_models_are_hidden_however_short"])
def test_the_names_of_the_two_models_are_hidden_however_short(model: str, text: str, expected: str) -> None:
    """Parts of a model string under four characters were shown to reviewers, and no leak risk was told."""
    found = shown(text, model, "other/quokka")
    assert found == (expected, expected.count("[model]"))
    prompt_and_texts = responses(2)
    left, right = (
        dataclasses.replace(one, text=text, prompt=text, names=list_names_of_model(name, name))
        for one, name in zip(prompt_and_texts, (model, "other/quokka"), strict=True)
    )
    names = build_blinding([*left.names, *right.names])
    served = build_blinded_pair(vote_pair(left, right), left, right, names, SALT)
    assert served.run_a == served.run_b == served.prompt == expected
    assert count_replaced_names(names, [("p", left, right)]) == {"p": 2 * expected.count("[model]")}


@given(
    st.text(alphabet="abcxyzо日7Ü", min_size=1, max_size=4).filter(lambda name: any(one.isalpha() for one in name)),
    st.sampled_from([str.lower, str.upper, str.title, lambda name: name.translate(_WIDE)]),
    st.sampled_from(["I am {}.", "{}", "**{}**", "({})", "as {}, I", "\n{}\n"]),
)
def test_a_name_of_one_to_four_characters_is_hidden_in_any_spelling(
    name: str, spelled: Callable[[str], str], around: str
) -> None:
    text = around.format(spelled(name))
    hidden, replaced = shown(text, f"acme/{name}", "other/quokka")
    assert hidden == around.format("[model]")
    assert replaced == 1


_WIDE = {place: place + 0xFEE0 for place in range(0x21, 0x7F)}


@pytest.mark.parametrize("text", ["The owl and the o3 level", "R1 and K2 are mountains", "Je parle de l'ours"])
def test_short_names_of_models_that_are_not_in_the_pair_stay(text: str) -> None:
    names = [name for model in ("openai/o3", "acme/owl", "deepseek/deepseek-r1") for name in list_names_of_model(model, model)]
    other = [*list_names_of_model("a", "other/quokka"), *list_names_of_model("b", "other/numbat")]
    assert build_blinding([*names, *other]).add_pair_names(other).scrub(text).text == text


def test_names_of_personas_and_given_names_are_hidden_and_labels_are_none() -> None:
    names = ["bo:v2", "bo", "Bo", *list_names_of_model("o3", "openai/o3")]
    assert build_blinding(names).add_pair_names(names).scrub("I, Bo, am o3; bold").text == "I, [model], am [model]; bold"
    labels = ("A", "B", "7", "4.1")
    assert build_blinding(labels).add_pair_names(labels).scrub("A text: B has 7 or 4.1") == ("A text: B has 7 or 4.1", 0)
    assert (
        build_blinding(["Together", "Command"]).scrub("They come together at her command.").text
        == "They come [model] at her [model]."
    )


def test_the_name_under_which_a_provider_serves_a_model_is_hidden() -> None:
    row = {
        "item_id": "1",
        "model": "mine",
        "player": "openai/m",
        "draw": 0,
        "snapshot": "base",
        "messages": [],
        "request_keys": [],
    }
    (one,) = build_paired_responses("qa", [row | {"text": "I am Zork 9", "served_model": "zork-9"}])
    assert build_blinding(one.names).add_pair_names(one.names).scrub(one.text).text == "I am [model]"
    (unsaid,) = build_paired_responses("qa", [row | {"text": "I am Zork 9", "served_model": None}])
    assert set(one.names) - set(unsaid.names) == {"zork-9"}
