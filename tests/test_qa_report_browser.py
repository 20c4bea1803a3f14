"""The pages of the qa family in a real browser: headless Chromium, driven over its DevTools protocol. Skipped where there is no Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dtef_pipeline.report.browser import Browser
from tests.made.qa_pages import written_qa_pages
from tests.made.qa_suites import made_qa
from tests.made.qa_tables import HOSTILE_WORDS

PAGES = ("index.html", "mmlu__subject_0.html", "gsm8k__all.html", "humaneval__all.html", "socioscope__talks.html")
OPEN_ALL = "document.querySelectorAll('details').forEach(part => { part.open = true })"
CARDS = "#explorer-item .response"
LEAST_CONTRAST = """(() => {
  const channels = text => {
    const found = text.match(/[\\d.]+/g).slice(0, 3).map(Number);
    return text.startsWith("color(") ? found : found.map(one => one / 255);
  };
  const linear = one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
  const light = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  return Math.min(...[...document.querySelectorAll("mark.exact, mark.relaxed, .badge:not(.none)")].map(node => {
    const style = getComputedStyle(node), [a, b] = [light(channels(style.color)), light(channels(style.backgroundColor))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
})()"""
"""Of text and its ground, over the marks and badges of a page (WCAG 2: at least 4.5)."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_qa_pages(tmp_path_factory.mktemp("questions"), made_qa(3, 130))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_qa_pages(tmp_path_factory.mktemp("hostile"), made_qa(1, 3, words=HOSTILE_WORDS))


def sets(browser: Browser, name: str, value: str) -> None:
    browser.does(
        f"(() => {{ const field = document.getElementById('explorer-{name}'); field.value = {value!r}; "
        "field.dispatchEvent(new Event('input')) })()"
    )


def chosen(browser: Browser) -> str:
    (name,) = browser.texts("#explorer-item h3 bdi")
    return name


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 1300])
def test_pages_fit_the_window_and_ask_nobody(browser: Browser, folder: Path, name: str, width: int) -> None:
    browser.opens_sound(folder / name, width)
    assert browser.does(
        "[...document.querySelectorAll('button')].every(button => button.type === 'button' && (button.textContent || button.hidden))"
    )
    assert browser.does("[...document.querySelectorAll('main svg[role=img]')].every(one => one.getAttribute('aria-label'))")


def test_items_are_listed_a_hundred_at_a_time_and_one_is_shown(browser: Browser, folder: Path) -> None:
    browser.opens(folder / "mmlu__subject_0.html")
    listed = "document.querySelectorAll('#explorer-list li').length"
    assert browser.texts("#explorer-told") == ["130 of 130 items"]
    assert browser.does(listed) == 100
    browser.does("document.getElementById('explorer-more').click()")
    assert browser.does(listed) == 130
    assert browser.does("document.getElementById('explorer-more').hidden") is True
    assert chosen(browser) == "subject_0/0"
    browser.does("document.querySelectorAll('#explorer-list button')[5].click()")
    assert chosen(browser) == "subject_0/5"
    assert browser.does("document.activeElement.id") == "explorer-item"
    assert browser.does("document.querySelector('#explorer-list [aria-current]').textContent.startsWith('subject_0/5')")
    browser.does("[...document.querySelectorAll('.steps button')].at(-1).click()")
    assert chosen(browser) == "subject_0/6"


def test_options_show_the_letters_of_the_file_and_those_that_were_shown(browser: Browser, folder: Path) -> None:
    browser.opens(folder / "mmlu__subject_0.html")
    cells = "[...document.querySelectorAll('#explorer-item table tbody tr')].map(row => [row.cells[0].textContent, row.cells[1].textContent])"
    assert browser.does(cells) == [["A", "D"], ["B", "A"], ["C", "B"], ["D", "C"]]
    assert browser.texts("#explorer-item tr.right td:first-child") == ["B"]
    assert browser.texts(".said.expected") == ["B: option two "]
    assert len(browser.texts(CARDS)) == 4
    assert "letter: A" in browser.texts(CARDS)[1]


def test_items_and_responses_can_be_chosen(browser: Browser, folder: Path) -> None:
    browser.opens(folder / "mmlu__subject_0.html")
    sets(browser, "words", "what is 12")
    assert browser.texts("#explorer-told") == ["12 of 130 items"]
    sets(browser, "words", "subject_0/77")
    assert chosen(browser) == "subject_0/77"
    sets(browser, "words", "")
    sets(browser, "only", "all")
    assert browser.texts("#explorer-told") == ["1 of 130 items"]
    sets(browser, "model", "0")
    assert browser.texts("#explorer-told") == ["130 of 130 items"]
    sets(browser, "way", "1")
    assert len(browser.texts(CARDS)) == 1
    sets(browser, "only", "low")
    assert browser.texts("#explorer-told") == ["0 of 130 items"]
    assert browser.texts("#explorer-item") == ["No item fits."]
    assert browser.said == []


def test_an_address_leads_to_its_item(browser: Browser, folder: Path) -> None:
    page = folder / "mmlu__subject_0.html"
    browser.opens(page)
    browser.does("location.hash = '#item=' + encodeURIComponent('subject_0/120')")
    browser.does("new Promise(done => setTimeout(done, 50))")
    assert chosen(browser) == "subject_0/120"
    sets(browser, "words", "subject_0/3")
    browser.does("location.hash = '#item=' + encodeURIComponent('subject_0/121')")
    browser.does("new Promise(done => setTimeout(done, 50))")
    assert chosen(browser) == "subject_0/121"
    browser.does("location.hash = '#item=%E0%A4%A'")
    sets(browser, "words", "subject_0/4")
    assert chosen(browser) == "subject_0/4"
    assert browser.does("location.hash") == "#item=subject_0%2F4"
    assert browser.said == []


def test_a_metric_decides_what_counts_and_a_missing_score_says_why(browser: Browser, folder: Path) -> None:
    browser.opens(folder / "gsm8k__all.html")
    sets(browser, "metric", "1")
    sets(browser, "only", "null")
    assert browser.texts("#explorer-told") == ["1 of 130 items"]
    assert "judge failed" in browser.texts(CARDS)[1]
    assert "no score: unreadable" in browser.texts(CARDS)[1]
    assert "asked twice" in browser.texts(CARDS)[1]
    assert "of the maker of the model" in browser.texts(CARDS)[0]
    sets(browser, "only", "unread")
    assert chosen(browser) == "gsm8k/3"
    assert "truncated" in browser.texts(CARDS)[0]
    assert "ended: length" in browser.texts(CARDS)[0]


def test_quotations_are_marked_in_their_context_to_the_letter(browser: Browser, folder: Path) -> None:
    browser.opens(folder / "socioscope__talks.html")
    assert browser.texts(".chunk mark.exact") == ["nobody came to the field"]
    assert browser.texts(".chunk mark.relaxed") == ["\u201cit was  raining\u201d"]
    assert browser.texts(".chunk mark.evidence") == ["nobody came to the field"]
    quotations = browser.texts(f"{CARDS}:nth-child(2) .plain:last-child li")
    assert ["not found" in quotations[0], "index out of range" in quotations[1]] == [True, True]
    assert browser.does("document.querySelectorAll('.context details')[0].open")
    assert not browser.does("document.querySelectorAll('.context details')[1].open")
    browser.does("document.querySelectorAll('.context details')[0].open = false")
    browser.does("document.querySelector('.to-chunk').click()")
    assert browser.does("document.querySelectorAll('.context details')[0].open")
    sets(browser, "model", "1")
    assert browser.texts(".chunk mark.exact") == []
    sets(browser, "only", "invented")
    assert browser.texts("#explorer-told") == ["2 of 4 items"]


def test_a_program_shows_its_verdict_and_a_missing_sandbox_is_no_zero(browser: Browser, folder: Path) -> None:
    browser.opens(folder / "humaneval__all.html")
    passed, lost = browser.texts(CARDS)
    assert "passed" in passed
    assert "isolation sandlock, Python 3.11.2" in passed
    assert "weak isolation" in passed
    assert "sandbox unavailable" in lost
    assert "0.00" not in lost


def test_hostile_text_does_not_run(browser: Browser, hostile: Path) -> None:
    for page in sorted(hostile.glob("*.html")):
        browser.opens(page)
        for at in range(3):
            browser.does(
                f"(() => {{ const row = document.querySelectorAll('#explorer-list button')[{at}]; if (row) row.click() }})()"
            )
            browser.does(OPEN_ALL)
            assert browser.does("window.hacked === undefined")
            assert browser.does("document.querySelectorAll('img, iframe, object, link').length") == 0
        assert browser.said == []
        assert browser.requested == [page.as_uri()]
        assert browser.does("document.body.textContent.includes('window.hacked = 1')")


def test_marks_and_badges_can_be_read_by_day_and_by_night(browser: Browser, folder: Path) -> None:
    browser.opens(folder / "socioscope__talks.html")
    assert browser.does(LEAST_CONTRAST) >= 4.5
    browser.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.does(LEAST_CONTRAST) >= 4.5
