"""What judges write is read, in every form that they write it in, and never guessed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.judging.consensus import FIVE_CLASSES, TEN_CLASSES
from dtef_pipeline.judging.judgement import read_reply

PIECES = (
    *FIVE_CLASSES.numbers,
    *(
        "<classification>",
        "</classification>",
        "<Classification >",
        "<reflection>",
        "</reflection>",
        "<think>",
        "</think>",
        "<",
        "</",
    ),
    *("CLASS_", "unmet", "I'm sorry, but", "\u200b", "*", "`", "\\_", "\n", " "),
)
ANY_REPLY = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))


def tagged(inside: str) -> str:
    return f"<reflection>It is so.</reflection>\n<classification>{inside}</classification>"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *((tagged(name), name) for name in FIVE_CLASSES.numbers),
        (tagged("partially_met"), "CLASS_PARTIALLY_MET"),
        (tagged(" CLASS_PARTIALLY_MET "), "CLASS_PARTIALLY_MET"),
        (tagged("\n**CLASS_UNMET**.\n"), "CLASS_UNMET"),
        (tagged("`class_exactly_met`"), "CLASS_EXACTLY_MET"),
        (tagged("“CLASS_UNMET”"), "CLASS_UNMET"),
        (tagged("'Moderately_Met'"), "CLASS_MODERATELY_MET"),
        (tagged("CLASS\\_PARTIALLY\\_MET"), "CLASS_PARTIALLY_MET"),
        (tagged("CLASS_UN\u200bMET"), "CLASS_UNMET"),
        ("<CLASSIFICATION>CLASS_UNMET</Classification>", "CLASS_UNMET"),
        ("< classification >CLASS_UNMET</ classification >", "CLASS_UNMET"),
        ("```xml\n<classification>CLASS_UNMET</classification>\n```", "CLASS_UNMET"),
        (tagged("CLASS_UNMET") + "\n" + tagged("unmet"), "CLASS_UNMET"),
        ("<think>draft <classification>CLASS_UNMET</classification></think>class_exactly_met", "CLASS_EXACTLY_MET"),
        ("<think> draft CLASS_UNMET </think> <classification>class_exactly_met</classification>", "CLASS_EXACTLY_MET"),
        ("<thinking>CLASS_UNMET or CLASS_MAJORLY_MET</thinking>\nCLASS_MAJORLY_MET", "CLASS_MAJORLY_MET"),
        ("CLASS_UNMET it is not.</think>CLASS_MAJORLY_MET", "CLASS_MAJORLY_MET"),
        ("Verdict: CLASS_MODERATELY_MET.", "CLASS_MODERATELY_MET"),
        ("**CLASS_UNMET**", "CLASS_UNMET"),
        ("__CLASS_UNMET__", "CLASS_UNMET"),
        ("CLASS_UNMET, I repeat: class_unmet", "CLASS_UNMET"),
        ("&lt;classification&gt;CLASS_UNMET&lt;/classification&gt;", "CLASS_UNMET"),
        ('{"classification": "CLASS_UNMET"}', "CLASS_UNMET"),
        ("I'm sorry to say that it is not there. CLASS_UNMET", "CLASS_UNMET"),
    ],
)
def test_a_class_is_read_in_every_form(text: str, name: str) -> None:
    read = read_reply(text)
    assert (read.name, read.reason) == (name, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (tagged("CLASS_GREAT"), "unreadable"),
        ("CLASS_GREAT", "unreadable"),
        ("<classification>CLASS_UNMET", "unreadable"),
        ("CLASS_UNMET</classification>", "unreadable"),
        ("</classification>CLASS_UNMET<classification>", "unreadable"),
        # The last of two tags counted, so that a quotation behind the verdict turned it round.
        (tagged("CLASS_EXACTLY_MET") + ' The text says "<classification>CLASS_UNMET</classification>".', "unreadable"),
        (tagged("CLASS_UNMET") + "\n" + tagged("CLASS_GREAT"), "unreadable"),
        ("<classification>CLASS_UNMET<classification></classification></classification>", "unreadable"),
        ("<classification></classification>CLASS_UNMET", "unreadable"),
        (tagged("CLASS_UNMET or CLASS_PARTIALLY_MET"), "unreadable"),
        ("CLASS_UNMET or CLASS_PARTIALLY_MET", "unreadable"),
        ("partially_met", "unreadable"),
        ("SUBCLASS_UNMET", "unreadable"),
        ("CLASS_UNMETERED", "unreadable"),
        ("0.75", "unreadable"),
        ("<think>it is CLASS_UNMET, so <classification>CLASS_UNMET</classification>", "empty"),
        ("", "empty"),
        (" \n\u200b\ufeff", "empty"),
        ("<think>CLASS_UNMET</think>", "empty"),
        ("I'm sorry, but I can't help with that.", "declined"),
        ("I cannot judge this text.", "declined"),
        ("“Sorry, that is not for me.”", "declined"),
        ("<reflection>I am unable to assess this.</reflection>", "declined"),
        ("As an AI, I have no opinion.", "declined"),
        ("The text says: I'm sorry, but I can't.", "unreadable"),
    ],
)
def test_what_is_no_verdict_has_a_reason(text: str, reason: str) -> None:
    read = read_reply(text)
    assert (read.name, read.reason) == (None, reason)


@pytest.mark.parametrize(
    ("text", "reflection"),
    [
        (tagged("CLASS_UNMET"), "It is so."),
        ("Reason: none.\n<classification>CLASS_UNMET</classification>", "Reason: none."),
        ("<reflection>Open <classification>CLASS_UNMET</classification>", "Open"),
        ("<classification>CLASS_UNMET</classification>", None),
        ("<REFLECTION>a</REFLECTION><classification>CLASS_UNMET</classification>", "a"),
        ("<classification>CLASS_UNMET</classification><reflection>after</reflection>", "after"),
        ("Verdict: CLASS_UNMET.", "Verdict: CLASS_UNMET."),
        ("<reflection> </reflection><classification>CLASS_UNMET</classification>", None),
    ],
)
def test_the_reflection_is_kept(text: str, reflection: str | None) -> None:
    assert read_reply(text).reflection == reflection


def test_names_belong_to_their_scale() -> None:
    assert read_reply(tagged("CLASS_TRACE"), TEN_CLASSES).name == "CLASS_TRACE"
    assert read_reply(tagged("very_nearly"), TEN_CLASSES).name == "CLASS_VERY_NEARLY"
    assert read_reply("CLASS_PARTIALLY_MET", TEN_CLASSES).reason == "unreadable"
    assert read_reply(tagged("CLASS_TRACE")).reason == "unreadable"


@given(text=ANY_REPLY)
def test_any_reply_is_read_without_an_exception(text: str) -> None:
    read = read_reply(text)
    assert (read.name is None) == (read.reason in ("unreadable", "empty", "declined"))
    assert read.name is None or read.name in FIVE_CLASSES.numbers


@given(draft=ANY_REPLY, name=st.sampled_from(sorted(FIVE_CLASSES.numbers)))
def test_no_draft_in_closed_thinking_is_read(draft: str, name: str) -> None:
    draft = draft.replace("<", "").replace("\\", "")
    assert read_reply(f"<think>{draft}</think>{tagged(name)}").name == name


@pytest.mark.parametrize(
    "text",
    [
        "<" * 100_000,
        "<" + " " * 100_000,
        "< /" * 50_000,
        "<reflection>" * 10_000,
        "<classification>" * 10_000,
        "CLASS_" * 50_000,
    ],
)
def test_hostile_replies_take_no_time(text: str) -> None:
    started = time.perf_counter()
    read_reply(text)
    assert time.perf_counter() - started < 2
