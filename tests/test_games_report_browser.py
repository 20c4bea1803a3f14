"""The pages of the games family in a real browser: headless Chromium, driven over its DevTools protocol. Skipped where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dtef_pipeline.report.browser import Browser
from tests.made.game_pages import played_league, written_games_pages

IN_SIGHT = "[...document.querySelectorAll('.step')].filter(step => !step.hidden).map(step => step.id)"
BOARD_IN_SIGHT = "[...document.querySelector('.metrics').children].filter(part => part.open && !part.hidden).length"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ["poker/kuhn", "poker/limit-holdem", "solitaire/thirteen", "negotiation/allocation", "negotiation/sealed-bid"]
    return written_games_pages(tmp_path_factory.mktemp("games"), played_league(names, range(1, 2)))


def episode_with(folder: Path, words: str) -> Path:
    return next(page for page in sorted(folder.glob("*.episode-*.html")) if words in page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("width", [390, 1300])
def test_pages_fit_the_window_ask_nobody_and_run_no_text_of_a_model(browser: Browser, folder: Path, width: int) -> None:
    for page in sorted(folder.glob("*.html")):
        browser.opens_sound(page, width)
        assert browser.does("window.hacked === undefined && !document.querySelector('img, iframe, object, link')")


def test_one_metric_of_a_board_is_shown_and_another_can_be_chosen(browser: Browser, folder: Path) -> None:
    browser.opens(folder / "index.html")
    assert browser.does(BOARD_IN_SIGHT) == 1
    browser.does(
        "(() => { const field = document.querySelector('.metrics select'); field.value = '1'; field.dispatchEvent(new Event('change')) })()"
    )
    assert browser.does(BOARD_IN_SIGHT) == 1
    assert browser.does("document.querySelector('.metrics').children[2].open")


def test_an_episode_is_followed_with_keys_and_buttons(browser: Browser, folder: Path) -> None:
    browser.opens(episode_with(folder, "no command found"))
    last = browser.does("document.querySelectorAll('.step').length")
    assert browser.does(IN_SIGHT) == ["move-1"]
    browser.presses("ArrowRight", 39)
    assert browser.does(IN_SIGHT) == ["move-2"]
    assert browser.does("location.hash") == "#move-2"
    browser.presses("End", 35)
    assert browser.does(IN_SIGHT) == ["move-end"]
    browser.presses("ArrowLeft", 37)
    assert browser.does(IN_SIGHT) == [f"move-{last - 1}"]
    browser.does("document.querySelector('.stepper button').click()")
    assert browser.does(IN_SIGHT) == ["move-1"]
    assert browser.texts(".stepper .count") == [f"1 of {last - 1}"]
    browser.does("[...document.querySelectorAll('.stepper button')].at(-1).click()")
    assert len(browser.does(IN_SIGHT)) == last
    assert browser.does("document.querySelector('.track .wrong') !== null")


def test_without_a_script_all_moves_are_a_list(browser: Browser, folder: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.opens(episode_with(folder, "no command found"))
        assert len(browser.does(IN_SIGHT)) == browser.does("document.querySelectorAll('.step').length") > 1
        assert browser.does("document.querySelector('.stepper')") is None
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
