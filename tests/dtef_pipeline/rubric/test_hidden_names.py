"""Names of makers, models and providers: hidden however they are written, and refused where one is left."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.judging.hidden_names import collect_hidden_names
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)

MODELS = (
    "openrouter/openai/gpt-4o",
    "anthropic/claude-3-5-haiku[temperature=0]",
    "hosted_vllm/acme/zork-7b",
    "gemini/gemini-2.5-flash",
)
NAMES = collect_hidden_names(MODELS, ["pet of the lab", "gpt-4o-2024-08-06"])
PLAIN_NAMES = (
    "OpenAI",
    "ChatGPT",
    "Claude",
    "Anthropic",
    "DeepMind",
    "zork-7b",
    "acme",
    "gpt-4o",
    "OpenRouter",
    "Mistral",
    "Qwen",
    "DeepSeek",
)
BETWEEN = ("", "\u200b", "\u0301", "\u00ad", "\u2060\u0308", "\ufeff")


@pytest.mark.parametrize(("text", "hidden"), CASES["named"])
def test_a_response_that_names_itself_is_made_anonymous(text: str, hidden: str) -> None:
    assert NAMES.hide(text) == hidden
    NAMES.check_leaks(hidden, "the report")


@pytest.mark.parametrize("text", CASES["other_words"])
def test_other_words_stay_as_they_are(text: str) -> None:
    assert NAMES.hide(text) == text


def test_an_everyday_word_is_a_name_where_its_maker_takes_part() -> None:
    assert collect_hidden_names(["gemini/gemini-2.5-flash"]).hide("a haiku about Meta") == "a haiku about Meta"
    assert collect_hidden_names(["openai/gpt-4o"]).hide("hyperbolic azure") == "hyperbolic azure"
    assert collect_hidden_names(["azure/gpt-4o"]).hide("by Azure") == "by [provider]"
    with_both = collect_hidden_names(["groq/llama-3.1-8b", "anthropic/claude-3-haiku"])
    assert with_both.hide("I, Haiku, know about meta") == "I, [model], know about [company]"


def test_an_everyday_word_that_names_models_is_hidden_where_it_is_meant_as_one() -> None:
    """Prompts lost their haikus and their command lines wherever a model of that name took part."""
    names = collect_hidden_names(["anthropic/claude-3-haiku", "openrouter/cohere/command-r", "openrouter/microsoft/phi-4"])
    everyday = "a haiku on the command line, phi = 1.618"
    assert names.hide(everyday) == everyday
    names.check_leaks(everyday, "the report")
    assert names.hide("Haiku, 3.5-haiku, haiku 3, phi-4, Command R") == "[model], 3.5-[model], [model], [model], [model]"


def test_a_model_with_a_name_of_two_characters_is_hidden_where_it_takes_part() -> None:
    names = collect_hidden_names(["openai/o3"])
    assert names.hide("I am o3, not O2; CO3, o30") == "I am [model], not O2; CO3, o30"
    assert collect_hidden_names(["openai/gpt-4o"]).hide("o3 is ozone") == "o3 is ozone"


@pytest.mark.parametrize("text", ["Cl4ude, 0penAI", "edualC", "Cla<b>ude</b>", "4o-mini", "version 3.5"])
def test_what_only_a_reader_who_wants_to_can_take_for_a_name_is_left(text: str) -> None:
    """The limits of hiding, which docs/how-to/rubric.md names too: digits for letters, words backwards or in pieces, versions alone."""
    assert NAMES.hide(text) == text


def written(name: str, upper: list[bool], between: list[str]) -> str:
    letters = (letter.upper() if up else letter.lower() for letter, up in zip(name, upper, strict=False))
    return "".join(letter + mark for letter, mark in zip(letters, between, strict=False))


def without_marks(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text).casefold()
    return "".join(one for one in apart if unicodedata.category(one) not in ("Mn", "Me", "Cf"))


@given(
    st.text(max_size=30),
    st.sampled_from(PLAIN_NAMES),
    st.lists(st.booleans(), min_size=20, max_size=20),
    st.lists(st.sampled_from(BETWEEN), min_size=20, max_size=20),
    st.text(max_size=30),
)
def test_no_name_is_left_however_it_is_written(
    before: str, name: str, upper: list[bool], between: list[str], after: str
) -> None:
    text = f"{before} {written(name, upper, between)}. {after}"
    hidden = NAMES.hide(text)
    assert NAMES.find_names(hidden) == []
    # By a plain definition of its own: words of letters and digits around hyphens.
    assert name.lower() not in re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)*", without_marks(hidden))


@given(st.text(max_size=200))
def test_hiding_twice_changes_nothing_more(text: str) -> None:
    hidden = NAMES.hide(text)
    assert NAMES.hide(hidden) == hidden


@given(st.text(alphabet="aeinoqrst ,.\n\u0301\u200bé漢", max_size=100))
def test_a_text_without_names_is_untouched_to_the_last_character(text: str) -> None:
    assert NAMES.hide(text) == text


def test_a_megabyte_takes_no_more_than_moments() -> None:
    text = "Clàude said nothing of interest here, and a long sentence followed. " * 15_000
    began = time.process_time()
    assert "lau" not in NAMES.hide(text)
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("model", "text", "hidden"),
    [
        ("openai/o3", "I am O3, not o30", "I am [model], not o30"),
        ("deepseek/deepseek-r1[temperature=0]", "As R1, I think", "As [model], I think"),
        ("moonshotai/kimi-k2", "K2 of Kimi", "[model] of [model]"),
        ("acme/ox", "I am Ox, no oxen", "I am [model], no oxen"),
        ("openrouter/z-ai/glm-4.5", "Z.ai and 智谱清言", "[company] and [model]"),
        ("openrouter/baidu/ernie-4.5", "ERNIE Bot of 百度, 文心一言", "[model] of [model], [model]"),
        ("openai/yandexgpt-5", "Я от Яндекса", "Я от [model]"),
    ],
)
def test_short_names_and_usual_aliases_of_those_who_take_part_are_hidden(model: str, text: str, hidden: str) -> None:
    """Parts of a model string under three letters, what is short for it, and names of makers in their own script were sent."""
    assert re.sub(r"\[\w+\]", "[model]", collect_hidden_names([model, "other/quokka"]).hide(text)) == hidden.replace(
        "[company]", "[model]"
    )
    assert collect_hidden_names(["other/quokka"]).hide("R1, K2, an ox and Яндекс") == "R1, K2, an ox and Яндекс"
