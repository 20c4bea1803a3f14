"""The site in a real browser, opened from disk. Skipped where there is no Chromium and apt may not install it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

import pytest

from dtef_pipeline.site.content import Column, Page, Section, Table
from dtef_pipeline.site.rendering import render_page, static_files
from dtef_pipeline.text.printable import make_visible
from tests.dtef_pipeline.report.browser import Browser, until
from tests.dtef_pipeline.site.made_site import HOSTILE, connected, files_of
from tests.made.family_sites import FAMILY_FILES

PHONE = 390
"""Pixels."""
SHOWN_HOSTILE = make_visible(HOSTILE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_site(folder, files_of(connected()))
    return folder


@pytest.fixture(scope="module", params=FAMILY_FILES)
def family_site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of one family, in a folder with the name of the family."""
    folder = tmp_path_factory.mktemp("family") / request.param
    write_site(folder, dict(static_files()) | FAMILY_FILES[request.param]())
    return folder


def write_site(folder: Path, pages: dict[str, str]) -> None:
    for path, text in pages.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def is_quiet(browser: Browser) -> bool:
    """Whether the page reported nothing: neither errors nor hints of the chart library."""
    return not browser.said


def faults_of_axe(browser: Browser) -> list[str]:
    """What axe-core finds on the page, with the first element of each fault."""
    browser.does(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    browser.does("window.found = null; axe.run().then(result => { window.found = result.violations })")
    until(lambda: browser.does("window.found !== null"))
    return list(browser.does("window.found.map(fault => `${fault.id}: ${fault.nodes[0].html}`)"))


def check_page(browser: Browser, page: Path, width: int) -> None:
    """The page asks nobody, reports nothing, fits the window, folds open too, and axe finds nothing."""
    browser.opens(page, width=width)
    browser.does("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    assert is_quiet(browser), (page.name, browser.said)
    assert all(address.startswith("file://") for address in browser.requested), page.name
    assert browser.does("document.documentElement.scrollWidth") <= width, page.name
    if width == PHONE:
        boxes = "[...document.querySelectorAll('.table .scroll')]"
        until(lambda: browser.does(f"{boxes}.every(box => box.scrollWidth <= box.clientWidth)"))
    assert faults_of_axe(browser) == [], page.name


def test_every_page_is_sound(browser: Browser, site: Path) -> None:
    for page in sorted(site.rglob("*.html")):
        check_page(browser, page, PHONE)


def test_pages_of_every_family_are_sound_on_a_phone(browser: Browser, family_site: Path) -> None:
    """One page of each folder, and the one of a model."""
    by_folder = {page.parent: page for page in sorted(family_site.rglob("*.html"), reverse=True)}
    folders = {folder.relative_to(family_site).parts[0] for folder in by_folder if folder != family_site}
    assert {"models", family_site.name} <= folders
    for page in [family_site / family_site.name / "index.html", *by_folder.values()]:
        check_page(browser, page, PHONE)
        assert browser.does("window.harm === undefined"), page.name


def test_pages_are_sound_on_a_wide_screen_and_in_the_dark(browser: Browser, site: Path) -> None:
    for name in ("index.html", "made/index.html"):
        check_page(browser, site / name, 1200)
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        assert faults_of_axe(browser) == [], name


def test_hostile_names_do_not_run(browser: Browser, site: Path) -> None:
    browser.opens(site / "made" / "index.html")
    assert any(SHOWN_HOSTILE in text for text in browser.texts("tbody th"))
    assert browser.does("document.querySelectorAll('tbody script, figure script:not([type])').length") == 0
    browser.opens(site / "compare.html")
    until(lambda: browser.texts("#compared h2"))
    assert is_quiet(browser)


def test_nothing_unseen_is_on_a_page_its_data_or_its_charts(browser: Browser, site: Path) -> None:
    """A model's mark of direction turned the words behind it; it was isolated, but nobody saw it."""
    for name in ("made/index.html", "made/items.html", "compare.html", "index.html"):
        browser.opens(site / name)
        if name == "compare.html":
            choose(browser, "a", HOSTILE)
            choose(browser, "b", "ada")
            until(lambda: SHOWN_HOSTILE in " ".join(browser.texts("#compared th")))
        if name == "made/index.html":
            until(lambda: any("U+202E" in text for text in browser.texts("figure svg text")))
        hints = "[...document.querySelectorAll('[title], [aria-label]')].map(one => one.title + one.ariaLabel)"
        shown = f"[document.title, document.body.innerText, ...{hints}].join('')"
        assert not browser.does(f"{shown}.includes('\\u202e')"), name
        assert browser.does("document.body.innerText.includes('U+202E')"), name


def test_scripts_show_the_same_as_templates(browser: Browser, site: Path) -> None:
    browser.opens(site / "index.html")
    codes = [*range(0x3000), *range(0xE000, 0x11000), *range(0xE0000, 0xE0200)]
    text = "String.fromCodePoint(code)"
    changed = browser.does(f"{json.dumps(codes)}.filter(code => dtef.visible({text}) !== {text})")
    assert changed == [code for code in codes if make_visible(chr(code)) != chr(code)]
    assert browser.does(r"dtef.visible('a\r\nb\u{202e}\0')") == "a\nb⟨U+202E⟩⟨U+0000⟩"


def test_a_table_sorts_filters_and_keeps_its_state_in_the_address(browser: Browser, site: Path) -> None:
    browser.opens(site / "made" / "index.html")
    names = "#board-1-table tbody tr:not([hidden]) th bdi"
    shown = "[...document.querySelectorAll('#board-1-table tbody tr')].filter(row => row.offsetParent).length"
    assert browser.does(shown) == 3
    browser.does("document.querySelector('[data-references]').click()")
    assert browser.does(shown) == 4
    browser.does(
        "[...document.querySelectorAll('#board-1-table thead button')].find(head => head.textContent === 'Score').click()"
    )
    assert browser.texts(names) == ["ada", "everybody", "bob", SHOWN_HOSTILE]
    browser.does("document.activeElement.blur()")
    address = browser.does("location.href")
    assert "sort=-score" in address
    browser.visits(address)
    browser.reloads()
    assert browser.texts(names) == ["ada", "everybody", "bob", SHOWN_HOSTILE]
    assert browser.does(shown) == 4


def test_a_table_is_saved_with_all_digits_and_no_formula(browser: Browser, tmp_path: Path) -> None:
    rows = [{"name": name, "score": 0.123456789012345 + at} for at, name in enumerate(("=1+1", 'say "a, b"', HOSTILE))]
    table = Table("Scores", (Column("name", "Name"), Column("score", "Score", "score")), rows, search=True)
    page = Page("index.html", "Scores", "Three.", [Section("scores", "Scores", [table])])
    write_site(tmp_path, {"index.html": render_page(page, {"navigation": [], "made": ""}), **dict(static_files())})
    browser.opens(tmp_path / "index.html")
    browser.does("""window.Blob = class { constructor(parts) { window.file = parts.join(""); } };
        URL.createObjectURL = () => "data:,"; HTMLAnchorElement.prototype.click = function () { window.fileName = this.download; };
        document.querySelector("[data-csv]").click()""")
    assert browser.does("window.fileName") == "scores-1.csv"
    saved = list(csv.reader(browser.does("window.file").splitlines()))
    assert saved == [
        ["Name", "Score"],
        ["'=1+1", "0.123456789012345"],
        ['say "a, b"', "1.123456789012345"],
        [SHOWN_HOSTILE, "2.123456789012345"],
    ]


def choose(browser: Browser, side: str, model: str) -> None:
    browser.does(
        f"field = document.getElementById('model-{side}'); field.value = {json.dumps(model)}; field.dispatchEvent(new Event('change'))"
    )


def test_two_models_are_chosen_and_the_address_leads_to_them(browser: Browser, site: Path) -> None:
    browser.opens(site / "compare.html")
    choose(browser, "a", "ada")
    choose(browser, "b", "bob")
    until(lambda: "ada is better than bob" in " ".join(browser.texts("#compared li")))
    assert "ada is better on 2" in " ".join(browser.texts("#compared p"))
    assert browser.does("location.hash") == "#a=ada&b=bob"
    browser.reloads()
    until(lambda: "ada is better than bob" in " ".join(browser.texts("#compared li")))
    choose(browser, "a", "bob")
    until(lambda: browser.texts("#compared p") == ["Choose two different models."])


OPENED = {
    "survey": ".pairs .side-by-side h4",
    "rubric": ".responses article h4",
    "qa": "#item .card h5",
    "games": "#episode article h3",
}
"""By family, the headings of the responses that an opened item shows."""


def test_an_item_opens_with_the_two_models_that_are_compared(browser: Browser, family_site: Path) -> None:
    """It opened with the first models of its page."""
    page, headings_of = family_site / "compare.html", OPENED[family_site.name]
    browser.opens(page)
    *_, second, first = browser.texts("#model-a option")
    browser.visits(f"{page.as_uri()}#{urlencode({'a': first, 'b': second})}")
    until(lambda: browser.texts("#compared tbody a"))
    address = browser.does("document.querySelector('#compared tbody a').href")
    assert not re.search(r"(prompt|responses|item|question|episode)=[0-9]+(&|$)", address), (
        "ids, which stay when data are added"
    )
    browser.visits(address)
    until(lambda: len(browser.texts(headings_of)) > 1)
    headings = browser.texts(headings_of)[:2]
    assert [name in heading for name, heading in zip((first, second), headings, strict=True)] == [True, True], headings
    opened = browser.does("location.href")
    browser.reloads()
    until(lambda: len(browser.texts(headings_of)) > 1)
    assert (browser.texts(headings_of)[:2], browser.does("location.href")) == (headings, opened)


@contextmanager
def without_scripts(browser: Browser, page: Path) -> Iterator[None]:
    """The page, whose scripts do not run."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=page.as_uri())
        until(lambda: browser.does("document.readyState") == "complete")
        yield
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


DETAILS = {"survey": "segments", "rubric": "blueprints", "qa": "suites", "games": "scenarios"}
"""By family, a folder of pages with items."""


def test_a_sample_of_the_details_can_be_read_without_scripts(browser: Browser, family_site: Path) -> None:
    page = next(iter(sorted((family_site / family_site.name / DETAILS[family_site.name]).glob("*.html"))))
    sampled = "document.querySelectorAll('.responses .said, #item-sample .said, #episode .said, .out .said').length"
    with without_scripts(browser, page):
        browser.does("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        assert browser.does(sampled) > 0
        assert len(re.findall(r" needs JavaScript", browser.does("document.querySelector('main').innerText"))) > 0
    browser.opens(page)
    until(lambda: "needs JavaScript" not in browser.does("document.querySelector('main').innerText"))


def test_tables_and_texts_stay_without_scripts(browser: Browser, site: Path) -> None:
    with without_scripts(browser, site / "made" / "index.html"):
        shown = "[...document.querySelectorAll('#board-1-table tbody tr')].filter(row => row.offsetParent).length"
        assert browser.does(shown) == 4
