"""The operator's pages in a browser: logging in, the queue live, on a phone, with nothing that the policy of the pages refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dtef_pipeline.api.access import SESSION_COOKIE
from dtef_pipeline.api.services import Services
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.preference.votes import Ballot, PairedResponse
from resources.evaluations.evaluation_store import RunSpec
from tests.dtef_pipeline.api.asked_runs import with_board, with_votes
from tests.dtef_pipeline.api.browsed import OPERATOR_PAGES, log_in
from tests.dtef_pipeline.api.made import PINNED_GAME, ROLE_TOKENS, services_in, session_in
from tests.dtef_pipeline.api.reviewed import fill
from tests.dtef_pipeline.api.served import served
from tests.dtef_pipeline.report.browser import Browser, until
from tests.made.run_events import tell

PLANNED_IN_BROWSER = {"keys": ["poker/kuhn"], "config": {"episodes": {}, "scores": {}}, "snapshot": "base"}


def submitted_to(services: Services, model: str = "gpt-4.1") -> str:
    manifest = {"persona_ids": ["cautious"], "scenario_ids": ["poker/kuhn"], "models": [model]}
    asked = [RunSpec("poker/kuhn", {"persona_id": "cautious", **PINNED_GAME})]
    found, _ = services.evaluations.submit("games", manifest, PLANNED_IN_BROWSER, asked, "maria")
    return found.queue_id


def test_the_pages_work_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    services = services_in(tmp_path)
    with_votes(services, 3)
    with_board(services)
    queue_id = submitted_to(services)
    many = [submitted_to(services, "x" * 200) for _ in range(5)]
    with served(services) as api:
        browser.call("Network.clearBrowserCookies")
        browser.visits(f"{api.address}/queue")
        assert browser.does("location.pathname + location.search") == "/login?next=/queue"
        browser.does(f"document.querySelector('[name=token]').value = {ROLE_TOKENS['admin']!r}")
        browser.does("document.querySelector('form').requestSubmit()")
        until(lambda: browser.does("location.pathname") == "/queue")

        row = f"#evaluation-{queue_id}"
        browser.visits(f"{api.address}/queue")
        browser.does("window.isSamePage = true")
        for one in many:
            tell(services.evaluations, one, "cancelled", {})
        tell(services.evaluations, queue_id, "started", {})
        until(lambda: "running" in browser.texts(row)[0])
        item = {"stage": "episodes", "key": "poker/kuhn", "status": "done", "done": 1, "n_planned": 1}
        tell(services.evaluations, queue_id, "item", item)
        until(lambda: "1 of 2" in browser.texts(row)[0])
        tell(services.evaluations, queue_id, "failed", {"reason": "<b>no key</b>"})
        until(lambda: "<b>no key</b>" in browser.texts(row)[0])
        assert browser.does("window.isSamePage")
        assert browser.does("document.getElementById('lost').hidden")
        assert browser.said == []

        for path in (*OPERATOR_PAGES, f"/queue/{queue_id}", "/actions"):
            browser.visits(f"{api.address}{path}", 400)
            assert browser.does("document.documentElement.scrollWidth") <= 400, path
            heights = browser.does(
                "[...document.querySelectorAll('main summary')].map(one => one.offsetHeight).filter(Boolean)"
            )
            assert min(heights, default=44) >= 44, path
            assert browser.said == [], path

        browser.visits(f"{api.address}/queue/{submitted_to(services)}")
        browser.does("document.querySelector('#cancel summary').click()")
        browser.does("document.querySelector('form[action$=cancel] button').click()")
        until(lambda: "cancelling" in (browser.texts("dl") or [""])[0])


def test_what_runs_has_a_stream_and_the_rest_of_the_list_comes_too(browser: Browser, tmp_path: Path) -> None:
    services = services_in(tmp_path)
    runs, *waiting = [submitted_to(services) for _ in range(5)]
    tell(services.evaluations, runs, "started", {})
    with served(services) as api:
        log_in(browser, api.address)
        until(lambda: browser.does("typeof streams === 'object' && streams.size") == 2)
        assert runs in browser.does("[...streams.keys()][0]")
        new = submitted_to(services)
        tell(services.evaluations, waiting[0], "failed", {"reason": "no key"})
        until(lambda: browser.texts(f"#evaluation-{new}") != [])
        assert "no key" in browser.texts(f"#evaluation-{waiting[0]}")[0]


def test_a_stream_that_is_away_is_stated_and_taken_up_again(browser: Browser, tmp_path: Path) -> None:
    services = services_in(tmp_path)
    queue_id = submitted_to(services)
    with served(services) as api:
        log_in(browser, api.address)
        browser.visits(f"{api.address}/queue/{queue_id}")
        browser.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        browser.does("for (const one of [...streams.keys()]) end(one); refresh();")
        until(lambda: not browser.does("document.getElementById('lost').hidden"))
        tell(services.evaluations, queue_id, "started", {})
        browser.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        until(lambda: "running" in browser.texts("#live")[0])
        until(lambda: browser.does("document.getElementById('lost').hidden"))


def test_a_live_page_says_that_the_login_has_ended_and_goes_on_after_a_new_one(browser: Browser, tmp_path: Path) -> None:
    """It said for ever that the connection was lost."""
    services = services_in(tmp_path)
    queue_id = submitted_to(services)
    with served(services) as api:
        log_in(browser, api.address)
        for path in ("/queue", f"/queue/{queue_id}"):
            browser.visits(f"{api.address}{path}")
            browser.call("Network.clearBrowserCookies")
            browser.does("for (const one of [...streams.keys()]) end(one); refresh();")
            until(lambda: not browser.does("document.getElementById('logged-out').hidden"))
            assert browser.does("document.getElementById('lost').hidden")
            assert browser.does("document.querySelector('#logged-out a').getAttribute('href')") == f"/login?next={path}"
            browser.call("Network.setCookie", name=SESSION_COOKIE, value=session_in(services, "operator"), url=api.address)
            until(lambda: browser.does("document.getElementById('logged-out').hidden"))
            assert browser.does("document.getElementById('lost').hidden")


def test_on_a_phone_the_navigation_is_one_line_and_each_evaluation_a_card(browser: Browser, tmp_path: Path) -> None:
    """The navigation took five lines, and each evaluation nine."""
    services = services_in(tmp_path)
    queue_id = submitted_to(services)
    tell(services.evaluations, queue_id, "failed", {"reason": "no key"})
    with served(services) as api:
        log_in(browser, api.address, "admin")
        for width in (1200, 390):
            browser.visits(f"{api.address}/queue", width)
            tops = browser.does(
                "[...document.querySelectorAll('nav li')].map(one => Math.round(one.getBoundingClientRect().top))"
            )
            assert len(set(tops)) == 1
            assert browser.does("document.querySelector('nav [aria-current]').getBoundingClientRect().right <= innerWidth")
        card = f"#evaluation-{queue_id} tr"
        assert browser.does(f"getComputedStyle(document.querySelector('{card}')).display") == "flex"
        assert browser.does(f"document.querySelector('{card}').getBoundingClientRect().height") < 160
        browser.does("document.querySelector('[name=status]').value = 'queued'")
        browser.does("document.querySelector('[name=status]').dispatchEvent(new Event('change', {bubbles: true}))")
        until(lambda: browser.does("location.search") == "?status=queued&q=")
        until(lambda: browser.texts(".soft:last-child") != [] and browser.texts(f"#evaluation-{queue_id}") == [])
        assert browser.said == []


def test_what_a_reader_has_opened_stays_open_while_a_page_is_live(browser: Browser, tmp_path: Path) -> None:
    services = services_in(tmp_path)
    queue_id = submitted_to(services)
    tell(services.evaluations, queue_id, "started", {})
    done = {"stage": "episodes", "key": "poker/kuhn", "status": "done", "done": 1, "n_planned": 1}
    tell(services.evaluations, queue_id, "item", done)
    with served(services) as api:
        log_in(browser, api.address)
        browser.visits(f"{api.address}/queue/{queue_id}")
        assert not browser.does("document.getElementById('stage-episodes').open")
        browser.does("document.getElementById('stage-episodes').open = true")
        tell(services.evaluations, queue_id, "item", {**done, "stage": "scores"})
        until(lambda: browser.does("!!document.getElementById('stage-scores')"))
        assert browser.does("document.getElementById('stage-episodes').open")


OBEYED = (
    "<script>window.obeyed = 1</script>\"><img src=x onerror='window.obeyed = 2'></textarea></title></pre>"
    '<a href="javascript:window.obeyed = 3" class="foreign">x</a><svg onload="window.obeyed = 4"> \u202e\u2066 '
)
MADE_BY_TEXTS = ".foreign, img, [onload], main script:not([type='application/json'])"
LONG = OBEYED + "w" * 50_000 + " word" * 10_000


def filled(services: Services) -> Sequence[str]:
    """Store such texts wherever users and models put texts; returns the paths of pages that show them."""
    persona = {"display_name": OBEYED[:100], "system_prompt": LONG[:32_000].strip(), "traits": {OBEYED[:100]: OBEYED}}
    document = Persona.model_validate({"id": "hostile", "version": 1, **persona}).model_dump(mode="json")
    services.documents.add("persona", document, OBEYED, revision=0)
    plan = {"keys": ["poker/kuhn"], "config": {"episodes": {}}, "snapshot": OBEYED}
    manifest = {"persona_ids": [LONG], "scenario_ids": [OBEYED], "models": [LONG]}
    found, _ = services.evaluations.submit(
        "games", manifest, plan, [RunSpec(OBEYED, {"persona_id": LONG, **PINNED_GAME})], OBEYED
    )
    tell(services.evaluations, found.queue_id, "started", {"said": LONG})
    failed = {"stage": OBEYED, "key": OBEYED, "status": "failed", "reason": LONG}
    tell(services.evaluations, found.queue_id, "item", failed)
    tell(services.evaluations, found.queue_id, "failed", {"reason": LONG})
    texts = [
        PairedResponse(f"{item} {player}", "qa", "mmlu/h", player, 0, "s", LONG, f"{LONG}{item}{player}", ())
        for item in range(2)
        for player in ("a", "b")
    ]
    fill(services.votes, texts)
    services.votes.take(Ballot(services.votes.pairs()[0].pair_id, OBEYED, "A", 3, OBEYED))
    services.votes.record_consent("admin", consent=False)
    with_board(services)
    return ("/personas/hostile", f"/queue/{found.queue_id}", f"/runs/{found.runs[0].run_id}")


def test_no_page_obeys_a_text_or_becomes_wider_than_the_screen_by_it(browser: Browser, tmp_path: Path) -> None:
    services = services_in(tmp_path)
    further = filled(services)
    with served(services) as api:
        log_in(browser, api.address, "admin")
        for path in (*OPERATOR_PAGES, *further, "/actions", "/review"):
            browser.visits(f"{api.address}{path}", 400)
            browser.does("for (const one of document.querySelectorAll('details')) one.open = true")
            assert browser.does("window.obeyed") is None, path
            assert browser.does(f"document.querySelectorAll({MADE_BY_TEXTS!r}).length") == 0, path
            assert browser.does("document.documentElement.scrollWidth") <= 400, path
            assert browser.does("document.documentElement.scrollHeight") < 12_000, path
            assert browser.said == [], path
