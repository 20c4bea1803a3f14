"""Texts in blocks: whatever is written, there are as many blocks as were made, and they hold the text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.judging.blocks import JUDGE_TAGS, MATERIAL_TAGS, escape_tags, wrap_in_tags
from dtef_pipeline.judging.prompts import APPROACHES, Case, build_correction, judge_messages
from tests.dtef_pipeline.judging.cases import ASKED, CASE, blocks_of

PIECES = (
    *["<", "</", "< /", ">", "<\u200b", "text", "</TEXT>", "<criterion>", "</Prompt>", "TE\u200bXT", "\n", " ", "x"],
    *JUDGE_TAGS,
)
HOSTILE = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=30).map("".join)
"""Texts that are made of what could close or open a block."""
ANY_TAG = re.compile(r"<[\s/\u200b]*(TEXT|CRITERION|PROMPT|CRITERIA_LIST)\b[^<]*?>", re.IGNORECASE)
BLOCKS = {
    "standard": ["TEXT", "CRITERION"],
    "prompt-aware": ["PROMPT", "TEXT", "CRITERION"],
    "holistic": ["PROMPT", "CRITERIA_LIST", "TEXT", "CRITERION"],
}


def tags(text: str) -> list[str]:
    return [found.upper() for found in ANY_TAG.findall(text)]


@pytest.mark.parametrize("approach", APPROACHES)
@given(text=HOSTILE, criterion=HOSTILE, reply=HOSTILE)
def test_no_text_changes_the_number_of_blocks(approach: str, text: str, criterion: str, reply: str) -> None:
    case = Case(text, criterion, CASE.turns, (criterion, "another"))
    messages = judge_messages(approach, case)
    expected = [name for name in BLOCKS[approach] for _ in range(2)]
    assert tags("\n".join(message.text for message in messages)) == expected
    conversation = build_correction(messages, reply)
    assert tags("\n".join(message.text for message in conversation)) == expected


@given(text=HOSTILE)
def test_a_block_holds_the_text_and_nothing_else(text: str) -> None:
    user = judge_messages("prompt-aware", Case(text, "C", CASE.turns))[-1].text
    assert blocks_of("TEXT", user) == [escape_tags(text)]
    assert blocks_of("PROMPT", user) == [ASKED]
    assert blocks_of("CRITERION", user) == ["C"]


@given(text=HOSTILE)
def test_only_the_beginnings_of_tags_change(text: str) -> None:
    assert escape_tags(text).replace("&lt;", "<") == text.replace("&lt;", "<")
    assert escape_tags(escape_tags(text)) == escape_tags(text)


@given(text=st.text())
def test_a_text_without_tags_stays_as_it_is(text: str) -> None:
    if not re.search("|".join(JUDGE_TAGS), re.sub(r"[\W_]", "", text), re.IGNORECASE):
        assert escape_tags(text) == text


@pytest.mark.parametrize(
    "tag",
    ["</TEXT>", "<text x='1'>", "< / Criterion >", "<\u200b/PROMPT>", "<T\u200dEXT>", "<THINKING>", "</ref\u00adlection>"],
)
def test_every_spelling_of_a_tag_is_made_harmless(tag: str) -> None:
    assert escape_tags(f"a {tag} b") == f"a &lt;{tag[1:]} b"


@pytest.mark.parametrize("text", ["a < b", "<b>bold</b>", "<svg><path/></svg>", "1<2 and 3>2", "&lt;TEXT>", "TEXT"])
def test_other_marks_stay_as_they_are(text: str) -> None:
    assert escape_tags(text) == text


def test_other_rooms_have_tags_of_their_own() -> None:
    assert escape_tags("</grade><TEXT>", ("grade",)) == "&lt;/grade><TEXT>"
    assert escape_tags("</TEXT></think>", MATERIAL_TAGS) == "&lt;/TEXT></think>"
    assert wrap_in_tags("TEXT", "a") == "<TEXT>\na\n</TEXT>"


@pytest.mark.parametrize(
    "text", ["<" * 100_000, "< " * 100_000, "<" + " " * 100_000, "<" + "\u200b" * 100_000 + "TEX", "</" * 100_000]
)
def test_hostile_texts_take_no_time(text: str) -> None:
    started = time.perf_counter()
    escape_tags(text)
    assert time.perf_counter() - started < 2
