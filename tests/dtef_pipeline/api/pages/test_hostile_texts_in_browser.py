"""Texts of users and models that would be script, markup, links, or very long: on every page they are read, and nothing of them is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dtef_pipeline.api.services import Services
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.preference.votes import Ballot, PairedResponse
from resources.evaluations.evaluation_store import RunSpec
from tests.dtef_pipeline.api.browsed import OPERATOR_PAGES, log_in
from tests.dtef_pipeline.api.made import PINNED_GAME, services_in
from tests.dtef_pipeline.api.reviewed import fill
from tests.dtef_pipeline.api.served import served
from tests.dtef_pipeline.api.voted import with_board
from tests.dtef_pipeline.report.browser import Browser
from tests.made.run_events import tell

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
