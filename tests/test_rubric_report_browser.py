"""The pages of rubrics in a real browser: headless Chromium, driven over its DevTools protocol. Skipped where there is no Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.rubric.aggregate import rescored
from dtef_pipeline.rubric.board import board
from dtef_pipeline.rubric.report.index_page import board_section
from dtef_pipeline.rubric.report.marks import own_file
from dtef_pipeline.rubric.report.pages import rubric_pages
from tests.dtef_pipeline.report.browser import Browser
from tests.dtef_pipeline.rubric.report.model_rows import model_rows
from tests.made.hostile_rubrics import hostile_tables
from tests.made.rubric_pages import connected, made_tables, written_pages

PAGE = "health__topic-0.html"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_pages(tmp_path_factory.mktemp("rubrics"), made_tables(12, 4, 3, temperatures=(0.0, 0.7)))


@pytest.fixture(scope="module")
def board_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board on which the order turns with the weight."""
    section = board_section(model_rows(), ["base"], {})
    chapter = Chapter("leaderboard", "Leaderboard", section, style=own_file("slider.css"), script=own_file("slider.js"))
    path = tmp_path_factory.mktemp("board") / "board.html"
    path.write_text(build_report("Board", "", [chapter]), encoding="utf-8")
    return path


def slid(browser: Browser, beta: float) -> None:
    browser.does(
        f"(() => {{ const s = document.getElementById('beta'); s.value = {beta}; s.dispatchEvent(new Event('input')) }})()"
    )


def shown(browser: Browser) -> list[list[str]]:
    cells = "['.place', 'th bdi', '.number', '.extent'].map(name => row.querySelector(name).textContent)"
    return [list(row) for row in browser.does(f"[...document.querySelectorAll('#board tbody tr')].map(row => {cells})")]


@pytest.mark.parametrize("beta", [0.0, 0.42, 1.0])
def test_the_slider_ranks_as_the_board_in_python_does(browser: Browser, board_page: Path, beta: float) -> None:
    browser.opens(board_page)
    slid(browser, beta)
    rows = board(rescored(model_rows(), beta), ["base"], {}).to_dict("records")
    expected = [[f"{row['rank']}", row["model"], f"{row['score']:.3f}"] for row in rows if row["n_parts"] >= 10]
    found = shown(browser)
    assert [row[:3] for row in found[: len(expected)]] == expected
    assert [row[0] for row in found[len(expected) :]] == ["–", "–"]
    assert found[-1][1:3] == ["mute", "–"]
    assert browser.texts("#beta-shown") == [f"{beta:.2f}"]
    assert browser.said == []


def test_the_order_turns_where_two_lines_cross(browser: Browser, board_page: Path) -> None:
    browser.opens(board_page)
    slid(browser, 0.0)
    first = shown(browser)
    slid(browser, 1.0)
    last = shown(browser)
    assert [row[1] for row in first[:2]] == [row[1] for row in last[:2]][::-1] == ["covers", "resembles"]
    assert first[0][3] != last[1][3]
    assert " to " in first[0][3]
    browser.does("document.getElementById('beta-usual').click()")
    assert browser.texts("#beta-shown") == ["0.35"]


def test_a_listed_change_of_places_shows_the_board_there(browser: Browser, board_page: Path) -> None:
    browser.opens(board_page)
    browser.does("document.querySelectorAll('details').forEach(part => { part.open = true })")
    (weight,) = browser.texts(".to-beta")
    browser.does("document.querySelector('.to-beta').click()")
    assert browser.texts("#beta-shown") == [f"{float(weight):.2f}"]
    first, second, *_ = shown(browser)
    assert float(first[2]) - float(second[2]) < 0.01
    assert browser.does("document.activeElement.id") == "beta"
    marks = browser.does("[...document.querySelectorAll('#beta-marks option')].map(mark => mark.value)")
    assert marks == ["0", "0.35", f"{float(weight):.2f}", "1"]
    assert browser.said == []


def test_the_keyboard_moves_the_slider(browser: Browser, board_page: Path) -> None:
    browser.opens(board_page)
    browser.does("document.getElementById('beta').focus()")
    browser.presses("ArrowRight", 39)
    assert browser.texts("#beta-shown") == ["0.36"]
    browser.presses("Home", 36)
    assert browser.texts("#beta-shown") == ["0.00"]


@pytest.mark.parametrize("name", ["index.html", PAGE])
@pytest.mark.parametrize("width", [360, 1300])
def test_pages_fit_the_window_and_ask_nobody(browser: Browser, folder: Path, name: str, width: int) -> None:
    browser.opens_sound(folder / name, width)


def test_a_score_leads_to_its_verdicts_and_opens_them(browser: Browser, folder: Path) -> None:
    browser.opens(folder / PAGE)
    assert browser.does("[...document.querySelectorAll('details.prompt')].some(part => part.open)") is False
    browser.does("link = document.querySelector('#prompt-2 .heat td a')")
    browser.does("link.click()")
    browser.does("new Promise(done => setTimeout(done, 0))")
    target = "document.getElementById(link.hash.slice(1))"
    assert browser.does(f"{target}.offsetParent !== null")
    assert browser.does(f"{target}.closest('details.prompt').id") == "prompt-2"


def test_models_can_be_chosen_by_name(browser: Browser, folder: Path) -> None:
    browser.opens(folder / PAGE)
    browser.does("document.querySelectorAll('details').forEach(part => { part.open = true })")
    cards = "[...document.querySelectorAll('#prompt-1 .response')].filter(card => card.offsetParent).map(card => card.dataset.model)"
    heads = "[...document.querySelectorAll('#prompt-1 .heat th[data-model]')].filter(head => head.offsetParent).map(head => head.dataset.model)"
    assert len(browser.does(cards)) == 8
    browser.does(
        "box = document.getElementById('only-models'); box.value = 'model-3 0.7'; box.dispatchEvent(new Event('input'))"
    )
    assert browser.does(cards) == ["openai/model-3[temp:0.7]"]
    assert set(browser.does(heads)) == {"openai/model-3[temp:0.7]"}
    assert browser.texts("#only-told") == ["3 of 24 responses shown"]


def test_one_press_opens_all_verdicts_and_another_closes_them(browser: Browser, folder: Path) -> None:
    browser.opens(folder / PAGE)
    opened = "[...document.querySelectorAll('details.verdicts')].filter(part => part.open).length"
    browser.does("button = document.querySelector('[data-opens=\"details.verdicts\"]')")
    browser.does("button.click()")
    assert browser.does(opened) == browser.does("document.querySelectorAll('details.verdicts').length") > 20
    assert browser.does("button.textContent") == "Close all verdicts"
    browser.does("button.click()")
    assert browser.does(opened) == 0


def test_hostile_text_does_not_run(browser: Browser, tmp_path: Path) -> None:
    for name, page in rubric_pages(connected(hostile_tables().tables())):
        (tmp_path / name).write_text(page, encoding="utf-8")
        browser.opens(tmp_path / name)
        browser.does("document.querySelectorAll('details').forEach(part => { part.open = true })")
        assert browser.does("window.hacked === undefined")
        assert browser.said == []
        assert browser.requested == [(tmp_path / name).as_uri()]
        assert browser.does("document.querySelectorAll('img, iframe, object, link').length") == 0
        assert browser.does("document.body.textContent.includes('window.hacked = 1')")
        assert browser.does(
            "[...document.querySelectorAll('.rendered *')].every(node => [...node.attributes].every(one => "
            "['href', 'rel', 'title', 'class', 'start', 'style'].includes(one.name)))"
        )
        assert browser.does("[...document.querySelectorAll('.rendered a')].every(link => /^https?:/.test(link.protocol))")
        if name != "index.html":
            assert browser.does("document.querySelectorAll('.response .rendered strong').length") > 0
            assert browser.does("document.querySelectorAll('header .rendered').length") == 1
            browser.does("document.querySelectorAll('.rendered a').forEach(link => link.dispatchEvent(new Event('mouseover')))")
            assert browser.does("window.hacked === undefined")


def test_markdown_fits_a_phone(browser: Browser, tmp_path: Path) -> None:
    made = made_tables(1, 2, 2)
    wide = (
        "| "
        + " | ".join(f"a-long-heading-{at}" for at in range(9))
        + " |\n"
        + "|-" * 9
        + "|\n\n`"
        + "x" * 300
        + "`\n\n    "
        + "y" * 300
    )
    for row in made.rows["rubric_prompts"]:
        row["render_as"] = "markdown"
    for row in made.rows["rubric_responses"]:
        row["text"] = wide
    for row in made.rows["rubric_blueprints"]:
        row["description"] = wide
    written_pages(tmp_path, made)
    browser.opens(tmp_path / PAGE, width=390)
    browser.does("document.querySelectorAll('details').forEach(part => { part.open = true })")
    assert browser.does("document.querySelectorAll('.response .rendered table').length") > 0
    assert browser.does("document.documentElement.scrollWidth") <= 390
