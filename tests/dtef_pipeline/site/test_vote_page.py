"""The page on which a reviewer votes: nothing but the pairs in it, hostile texts in it do nothing, and the votes come out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.preference.pairing import BlindedPair
from dtef_pipeline.preference.vote_records import read_record
from dtef_pipeline.site.vote_page import vote_page
from dtef_pipeline.text.printable import make_visible
from tests.dtef_pipeline.report.browser import Browser, until

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"><!-- \u202e & \u2028"
PAIRS = [
    BlindedPair("1" * 32, "What is <b>this</b>?", HOSTILE, "fine"),
    BlindedPair("2" * 32, "And this?", "long " * 3_000, "two\n\nlines"),
]


def held(page: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="pairs">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def test_the_page_holds_the_pairs_and_nothing_else_of_them() -> None:
    data = held(vote_page(PAIRS, "zoe"))
    assert data["pairs"] == [{name: make_visible(text) for name, text in pair.serialize().items()} for pair in PAIRS]
    assert set(data) == {"key", "reviewer_id", "pairs"}


def test_only_the_page_s_own_script_and_style_may_run() -> None:
    page = vote_page(PAIRS, "zoe")
    policy = unescape(re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)">', page)[0])
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        (content,) = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page
    assert "innerHTML" not in page
    assert page.count("</script>") == 2


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Browser:
    (tmp_path / "votes.html").write_text(vote_page(PAIRS, "zoe"), encoding="utf-8")
    browser.opens(tmp_path / "votes.html")
    return browser


def test_a_reviewer_votes_with_keys_and_gets_lines_that_can_be_imported(opened: Browser) -> None:
    assert opened.does("at('prompt').textContent") == PAIRS[0].prompt
    assert opened.does("at('run-a').textContent") == make_visible(HOSTILE)
    assert opened.does("document.title") == "Which text is better?"
    sizes = opened.does("[...document.querySelectorAll('input')].map(one => one.getBoundingClientRect().width)")
    assert len(sizes) == 8
    assert max(sizes) - min(sizes) < 1
    opened.presses("Enter", 13)
    assert "Choose A" in opened.does("at('said').textContent")
    for key, code in (("b", 66), ("4", 52)):
        opened.presses(key, code)
    opened.does("at('why').value = 'more <i>careful</i>'")
    opened.presses("Enter", 13)
    assert opened.does("at('run-b').textContent") == PAIRS[1].run_b
    assert opened.does("at('back').disabled") is False
    for key, code in (("t", 84), ("1", 49)):
        opened.presses(key, code)
    opened.does("at('vote').click()")
    lines = opened.does("lines()").splitlines()
    records = [read_record(json.loads(line)) for line in lines]
    assert [(kind, one["pair_id"], one["choice"], one["confidence"], one["justification"]) for kind, one in records] == [
        ("ballot", "1" * 32, "B", 4, "more <i>careful</i>"),
        ("ballot", "2" * 32, "tie", 1, ""),
    ]
    assert opened.said == []
    assert all(url.startswith("file:") for url in opened.requested)


def test_skipped_pairs_stand_in_a_list_and_are_asked_again(browser: Browser, tmp_path: Path) -> None:
    pairs = [BlindedPair(str(place) * 32, "Why?", f"{place} one", f"{place} two") for place in range(1, 5)]
    (tmp_path / "votes.html").write_text(vote_page(pairs, "ann"), encoding="utf-8")
    browser.opens(tmp_path / "votes.html")
    assert browser.does("at('skipped').hidden && getComputedStyle(at('skipped')).display === 'none'")
    for key, code in (("s", 83), ("s", 83), ("a", 65), ("5", 53), ("Enter", 13)):
        browser.presses(key, code)
    assert browser.does("place") == 3
    assert browser.texts("#skipped button") == ["1", "2"]
    assert browser.does("at('progress').value / at('progress').max") == pytest.approx(0.25)
    # The last one leads back to the first that was skipped, also after the page was closed.
    for key, code in (("b", 66), ("4", 52), ("Enter", 13)):
        browser.presses(key, code)
    assert browser.does("place") == 0
    assert "skipped this pair" in browser.does("at('said').textContent")
    browser.opens(tmp_path / "votes.html")
    # Another process of the browser may show the page now; what was stored reaches it a moment later, perhaps when the page is made already.
    until(lambda: browser.texts("#skipped button") == ["2"] or browser.reloads())
    browser.does("document.querySelector('#skipped button').click()")
    assert browser.does("at('run-a').textContent") == "2 one"
    browser.presses("z", 90)
    for _ in range(2):
        for key, code in (("t", 84), ("1", 49), ("Enter", 13)):
            browser.presses(key, code)
    assert "last pair" in browser.does("at('said').textContent")
    assert browser.does("at('skipped').hidden && lines().split('\\n').length") == 5
    browser.does("localStorage.clear()")


@pytest.mark.parametrize(("width", "most"), [(1366, 0.25), (390, 0.35)])
def test_the_fields_of_a_vote_are_seen_without_scrolling(browser: Browser, tmp_path: Path, width: int, most: float) -> None:
    long = [BlindedPair("1" * 32, "Why? " * 400, "so " * 4_000, "thus\n" * 900)]
    (tmp_path / "votes.html").write_text(vote_page(long, "zoe"), encoding="utf-8")
    browser.opens(tmp_path / "votes.html", width=width)
    seen = "[...document.querySelectorAll('.bar input, .bar button')].every(one => one.getBoundingClientRect().bottom <= innerHeight)"
    assert browser.does(seen)
    assert browser.does("document.querySelector('.bar').getBoundingClientRect().height / innerHeight") < most
    if width > 1000:
        assert browser.does(
            "at('run-a').getBoundingClientRect().bottom < document.querySelector('.bar').getBoundingClientRect().top"
        )
