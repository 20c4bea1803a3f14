"""Markdown on the pages: what it looks like, and that nothing in it can run, load or lead elsewhere than to the web."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.report.marks import MOST_RENDERED, markdown_markup, rendered, said_as
from tests.made.read_page import ReadPage
from tests.made.rubric_pages import HOSTILE

HARMLESS_TAGS = set(re.findall(r"\w+", "p h6 ul ol li blockquote pre code em strong s a br hr table thead tbody tr th td"))
HARMLESS_ATTRIBUTES = {"href", "rel", "title", "class", "start", "style"}
TRAPS = (
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt&colon;alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](data:image/svg+xml,<svg/onload=alert(1)>)",
    "[x](vbscript:msgbox)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    "[x](index.html)",
    "<javascript:alert(1)>",
    "<data:text/html,x>",
    "[x]: javascript:alert(1)\n\n[x]",
    '[x](https://a.org/"onclick="alert(1))',
    "[x](https://a.org/ \"' onclick='alert(1)\")",
    "![x](https://a.org/p.png)",
    '```x" onclick="alert(1)\nb\n```',
    "<b onclick=alert(1)>b</b>",
    "<style>*{display:none}</style>",
    "<svg><script>alert(1)</script></svg>",
    "|a|\n|-|\n|<img src=x onerror=alert(1)>|",
    HOSTILE,
)


def checked(markup: str) -> ReadPage:
    """The parsed markup, of which nothing can do harm."""
    read = ReadPage(markup)
    assert {tag for tag, _ in read.elements} <= HARMLESS_TAGS
    for _, attributes in read.elements:
        assert set(attributes) <= HARMLESS_ATTRIBUTES
        assert re.fullmatch(r"https?://.+|", str(attributes.get("href", "")))
        assert re.fullmatch(r"text-align:\w+|", str(attributes.get("style", "")))
        assert "href" not in attributes or attributes["rel"] == "noopener noreferrer nofollow"
    return read


def markup_of(words: str) -> str:
    found = markdown_markup(words)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("words", "markup"),
    [
        ("one\n\ntwo", "<p>one</p>\n<p>two</p>\n"),
        ("**b** *i* ~~s~~ `c`", "<p><strong>b</strong> <em>i</em> <s>s</s> <code>c</code></p>\n"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
        ("3. a", '<ol start="3">\n<li>a</li>\n</ol>\n'),
        ("# big", "<h6>big</h6>\n"),
        ("> q", "<blockquote>\n<p>q</p>\n</blockquote>\n"),
        ("a < b & c", "<p>a &lt; b &amp; c</p>\n"),
        ("<b>b</b>", "<p>&lt;b&gt;b&lt;/b&gt;</p>\n"),
        ("[n]: ftp://a.org", "<p>[n]: ftp://a.org</p>\n"),
        (
            '[a](https://a.org/?b=1&c=2 "t")',
            '<p><a href="https://a.org/?b=1&amp;c=2" rel="noopener noreferrer nofollow" title="t">a</a></p>\n',
        ),
        (
            "![cat](https://a.org/c.png)",
            '<p><a href="https://a.org/c.png" rel="noopener noreferrer nofollow">Image: cat</a></p>\n',
        ),
    ],
)
def test_markdown_becomes_markup(words: str, markup: str) -> None:
    assert markup_of(words) == markup


def test_addresses_are_links_but_within_links_and_code() -> None:
    link = '<a href="https://a.org/b" rel="noopener noreferrer nofollow">https://a.org/b</a>'
    assert markup_of("see https://a.org/b.") == f"<p>see {link}.</p>\n"
    assert markup_of("<https://a.org/b>") == f"<p>{link}</p>\n"
    assert markup_of("[https://a.org/b](https://a.org/b)") == f"<p>{link}</p>\n"
    assert markup_of("`https://a.org/b`") == "<p><code>https://a.org/b</code></p>\n"


def test_a_table_is_a_table() -> None:
    assert [tag for tag, _ in checked(markup_of("|a|b|\n|-|-:|\n|1|2|")).elements].count("td") == 2


@pytest.mark.parametrize("words", TRAPS)
def test_nothing_in_a_text_can_do_harm(words: str) -> None:
    checked(markup_of(words))
    read = ReadPage(said_as(words, "markdown"))
    assert words.split("\n")[0][:8] in read.text


@given(
    st.lists(
        st.sampled_from([*"[]()<>!*_`~#>-+|\\:\"'&;\n\t 1.", "http://", "javascript:", "data:", "zq7", "<a ", "\r", "\x00"])
    )
)
def test_no_text_of_marks_makes_harm(parts: list[str]) -> None:
    made = markdown_markup("".join(parts))
    if made is not None:
        checked(made)


@given(st.lists(st.sampled_from([*"[]()<>!*_#>-+|\n\t 1.", "http://a", " zq7 "]), max_size=60))
def test_no_word_is_lost(parts: list[str]) -> None:
    words = "".join(parts)
    made = markdown_markup(words)
    assert made is None or made.count("zq7") >= words.count("zq7")


@pytest.mark.parametrize(
    "words", [">" * 200 + " deep", "\n".join("  " * at + f"- a{at}" for at in range(60)), "x" * (MOST_RENDERED + 1)]
)
def test_what_is_too_deep_or_too_long_stands_as_its_source(words: str) -> None:
    assert markdown_markup(words) is None
    assert ReadPage(rendered(words)).text == words
    assert ReadPage(said_as(words, "markdown")).text == words


def test_a_table_of_empty_cells_does_not_fill_the_page() -> None:
    wide = "|a" * 900 + "\n" + "|-" * 900 + "\n" + "|\n" * 400
    assert markdown_markup(wide) is None or len(markup_of(wide)) < 20 * len(wide)


@pytest.mark.parametrize("words", ["[" * 9_000, "![" * 4_000, "*a_ " * 2_500, "`" * 9_000, "<" * 9_000, "[a](" * 2_500])
def test_text_made_to_be_slow_is_not(words: str) -> None:
    begun = time.process_time()
    markdown_markup(words)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("form", [None, "plaintext", "html", "something"])
def test_other_forms_stand_as_they_were_written(form: str | None) -> None:
    read = ReadPage(said_as("<b>**x**</b>\n <script>y</script>", form))
    assert read.text == "<b>**x**</b>\n <script>y</script>"
    assert [tag for tag, _ in read.elements] == ["div"]


@pytest.mark.parametrize("form", ["markdown", "Markdown", " markdown\n"])
def test_rendered_text_has_its_source_beneath(form: str) -> None:
    read = ReadPage(said_as("**x**", form))
    assert [tag for tag, _ in read.elements] == ["div", "p", "strong", "details", "summary", "div"]
    assert "**x**" in read.text


def test_what_is_no_markdown_has_no_source_beneath() -> None:
    assert said_as("Plain words.", "markdown") == said_as("Plain words.", None)
    assert "As it was written" in said_as("two\nlines", "markdown")


def test_without_words_nothing_is_rendered() -> None:
    assert rendered(None) == rendered(" \n") == ""
    assert "No text." in said_as(None, "markdown")
