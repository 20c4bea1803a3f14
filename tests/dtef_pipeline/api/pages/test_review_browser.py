"""The reviewer's page in a browser: votes with keys alone, and all within reach on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dtef_pipeline.errors import StoreError
from dtef_pipeline.preference.votes import make_paired_response
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.api.made import ROLE_TOKENS, services_in
from tests.dtef_pipeline.api.reviewed import HOSTILE, fill
from tests.dtef_pipeline.api.served import served
from tests.dtef_pipeline.report.browser import Browser, until
from tests.made.votes import responses

KEY_CODES = {"Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Escape": 27, "?": 191}


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        browser.presses(key, KEY_CODES.get(key, ord(key.upper()[0])))


def log_in(browser: Browser, address: str, width: int = 1200) -> None:
    browser.call("Network.clearBrowserCookies")
    browser.visits(f"{address}/login?next=/review", width)
    browser.does(f"document.getElementById('token').value = {ROLE_TOKENS['reviewer']!r}")
    browser.does("document.querySelector('main form').requestSubmit()")
    until(lambda: browser.does("location.pathname + document.readyState") == "/reviewcomplete")
    browser.said.clear()


def begin(browser: Browser) -> None:
    """Answer that exports may show the id."""
    browser.does("document.querySelector('#task input').click()")
    browser.does("document.querySelector('#task form').requestSubmit()")
    until(lambda: browser.does("document.readyState === 'complete' && !!document.getElementById('ballot')"))


def shown_id(browser: Browser) -> str:
    return str(browser.does("(document.querySelector('#of-pair input') || {value: ''}).value"))


def until_said(browser: Browser, words: str) -> None:
    until(lambda: words in browser.does("at('message').textContent"))


def until_stored(store: VoteStore, number: int) -> None:
    until(lambda: len(store.votes()) == number)


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[tuple[Browser, VoteStore, str]]:
    services = services_in(tmp_path)
    fill(services.votes, responses(3))
    with served(services) as api:
        yield browser, services.votes, api.address
        browser.call("Network.clearBrowserCookies")
        browser.visits("data:text/html,")


def test_three_pairs_are_voted_on_with_keys_alone(opened: tuple[Browser, VoteStore, str]) -> None:
    browser, store, address = opened
    log_in(browser, address)
    assert "You cannot change a vote" in browser.does("document.body.textContent")
    begin(browser)
    assert store.reviewers()["reviewer"]["consent"] is True
    assert browser.does("location.search") == "", "what was said stands on the page, and not in its address"
    assert browser.does("document.querySelectorAll('input:checked:not([type=checkbox])').length") == 0
    press(browser, "Enter")
    until_said(browser, "Choose A, B or tie")
    chosen = {}
    for number, (choice, keys) in enumerate((("A", "a5"), ("B", ("ArrowRight", "1")), ("tie", "t3")), start=1):
        chosen[shown_id(browser)] = choice
        press(browser, *keys, "Enter")
        until_stored(store, number)
        until_said(browser, "Your vote is stored.")
        assert browser.does("scrollY") == 0
    assert browser.does("document.activeElement.id") == "message"
    assert "You have voted on all pairs" in browser.does("at('message').textContent")
    assert "You have voted on 3 pairs; 0 are left." in browser.does("at('counts').textContent")
    assert {vote.pair_id: vote.choice for _, vote, _ in store.votes()} == chosen
    assert browser.said == []
    assert all(url.startswith((address, "data:")) for url in browser.requested)


def test_pairs_are_skipped_and_reasons_written_with_keys(opened: tuple[Browser, VoteStore, str]) -> None:
    browser, store, address = opened
    store.record_consent("reviewer", consent=False)
    log_in(browser, address)
    first = shown_id(browser)
    press(browser, "s")
    until(lambda: shown_id(browser) != first)
    assert first in browser.does("location.search")
    press(browser, "?", "j")
    assert browser.does("at('keys').open && document.activeElement.id") == "why"
    browser.call("Input.insertText", text="more care <b>, 5 stars")
    assert browser.does("at('written-so-far').textContent") == "22 of 2,000 characters"
    press(browser, "Escape", "b", "4")
    assert browser.does("document.activeElement.id") == "vote"
    browser.does("at('ballot').requestSubmit(at('vote')); at('ballot').requestSubmit(at('vote'))")
    until_said(browser, "Your vote is stored.")
    assert browser.does("at('why').value + document.querySelectorAll('#ballot input:checked').length") == "0"
    ((_, vote, _),) = store.votes()
    assert (vote.choice, vote.confidence, vote.justification) == ("B", 4, "more care <b>, 5 stars")
    browser.visits(f"{address}/review{browser.does('location.search')}")
    assert shown_id(browser) not in (first, vote.pair_id)


def test_what_cannot_be_stored_stays_in_the_form(
    opened: tuple[Browser, VoteStore, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, store, address = opened
    store.record_consent("reviewer", consent=False)
    log_in(browser, address)
    press(browser, "a", "2")

    def away(*_: object, **__: object) -> None:
        raise StoreError("away")

    with monkeypatch.context() as patch:
        patch.setattr(store.database, "write", away)
        press(browser, "Enter")
        until_said(browser, "the store is not available now")
    (cookie,) = browser.call("Network.getCookies", urls=[address])["cookies"]
    browser.call("Network.clearBrowserCookies")
    press(browser, "Enter")
    until_said(browser, "You are logged out")
    assert browser.does("document.querySelector('#message a').target") == "_blank"
    browser.call("Network.setCookie", name=cookie["name"], value=cookie["value"], url=address)
    browser.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    press(browser, "Enter")
    until_said(browser, "The server does not answer")
    browser.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    press(browser, "Enter")
    until_said(browser, "Your vote is stored")
    ((_, vote, _),) = store.votes()
    assert (vote.choice, vote.confidence) == ("A", 2)


@pytest.mark.parametrize(("width", "most"), [(1366, 0.25), (320, 0.4)])
def test_all_that_votes_is_within_reach_and_nothing_is_wider_than_the_screen(
    browser: Browser, tmp_path: Path, width: int, most: float
) -> None:
    services = services_in(tmp_path)
    rows = [make_paired_response("qa", "x/1", f"p{one}", f"{one} {HOSTILE}\n" * 40, prompt=HOSTILE, names=()) for one in (1, 2)]
    fill(services.votes, rows)
    services.votes.record_consent("reviewer", consent=False)
    with served(services) as api:
        log_in(browser, api.address, width)
        assert browser.does("document.documentElement.scrollWidth") <= width
        within = (
            "[...document.querySelectorAll('.bar input[type=radio], .bar button')].every(one => {const at = one.getBoundingClientRect();"
            " return at.bottom <= innerHeight && at.top >= 0 && at.left >= 0 && at.right <= innerWidth})"
        )
        assert browser.does(within)
        targets = "[...document.querySelectorAll('.bar label, .bar button')].map(one => one.getBoundingClientRect().height)"
        assert min(browser.does(targets)) >= 40
        assert browser.does("document.querySelector('.bar').getBoundingClientRect().height / innerHeight") < most
        browser.does("scrollTo({top: document.documentElement.scrollHeight, behavior: 'instant'})")
        assert browser.does(
            "at('pair').getBoundingClientRect().bottom <= document.querySelector('.bar').getBoundingClientRect().top"
        )
        assert browser.does("document.title") == "Which text is better? · DTEF pipeline"
        assert browser.said == []
        browser.visits("data:text/html,")


def test_a_phone_that_lies_on_its_side_has_its_height_for_the_texts(opened: tuple[Browser, VoteStore, str]) -> None:
    """The bar stayed on the screen, and took 161 of 360 pixels."""
    browser, store, address = opened
    store.record_consent("reviewer", consent=False)
    log_in(browser, address)
    browser.call("Emulation.setDeviceMetricsOverride", width=740, height=360, deviceScaleFactor=1, mobile=True)
    bar = "document.querySelector('.bar').getBoundingClientRect()"
    until(lambda: browser.does("innerHeight") == 360)
    assert browser.does(f"{bar}.top >= document.getElementById('pair').getBoundingClientRect().bottom")
    assert browser.does(f"{bar}.top >= innerHeight")
    press(browser, "Enter")
    until_said(browser, "Choose A, B or tie")
    assert browser.does("Math.floor(at('message').getBoundingClientRect().bottom) <= innerHeight")


def test_on_a_phone_both_texts_and_the_bar_are_in_view_together(browser: Browser, tmp_path: Path) -> None:
    """The bar took a third of the screen, and text A the rest of it."""
    services = services_in(tmp_path)
    rows = [
        make_paired_response("qa", "x/1", f"p{one}", f"{one} word\n" * 400, prompt="Why? " * 200, names=()) for one in (1, 2)
    ]
    fill(services.votes, rows)
    services.votes.record_consent("reviewer", consent=False)
    with served(services) as api:
        log_in(browser, api.address, 390)
        browser.does("document.querySelector('.texts').scrollIntoView({behavior: 'instant'})")
        shown = "(one => [one.top, one.bottom])(document.querySelector('{}').getBoundingClientRect())"
        (top, _), (_, bottom), (bar, _) = (browser.does(shown.format(one)) for one in ("#A", "#run-b", ".bar"))
        assert top >= 0
        assert bottom <= bar
        assert all(height >= 110 for height in browser.does("['run-a', 'run-b'].map(one => at(one).clientHeight)"))
        browser.visits("data:text/html,")
