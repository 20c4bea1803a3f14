"""Pages of evaluations: what they say of one whose end was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.api.pages.page_parts import with_code
from resources.evaluations.evaluation_store import EvaluationStore
from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, browsing
from tests.dtef_pipeline.api.made import settings_in
from tests.dtef_pipeline.api.pages.test_operator_pages import PLANNED
from tests.made.told_runs import TOLD_LOG, tell


@pytest.mark.parametrize("is_started", [False, True])
def test_what_is_being_cancelled_is_not_said_to_start(is_started: bool, tmp_path: Path) -> None:
    """It was the next to start, and Dagster's daemon was to start it; calls were under way, where it had never started."""
    with EvaluationStore(settings_in(tmp_path).responses_url, TOLD_LOG) as store:
        queue_id = store.submit("qa", {}, PLANNED, [], "operator")[0].queue_id
        if is_started:
            tell(store, queue_id, "started", {})
    with browsing(tmp_path) as client:
        if not is_started:
            before = client.get(f"/queue/{queue_id}").text
            assert "the next to start" in before
            assert "usually within half a minute" in before
        client.post(f"/queue/{queue_id}/cancel", headers=OWN_ORIGIN)
        pages = [client.get(path).text for path in ("/queue", f"/queue/{queue_id}", f"/queue/{queue_id}/now")]
    for shown in pages:
        assert "cancelling" in shown
        assert "the next to start" not in shown
        assert "usually within half a minute" not in shown
    for shown in pages[1:]:
        assert "Its end was asked for by <bdi>operator</bdi>" in shown
        assert ("Calls that are under way end first." in shown) is is_started
        assert (", before it had started." in shown) is not is_started


def test_words_between_backticks_become_code_and_nothing_else_does() -> None:
    assert with_code("start `dtef ui` & wait") == "start <code>dtef ui</code> &amp; wait"
    assert with_code("<b>`<i>`") == "&lt;b&gt;<code>&lt;i&gt;</code>"
    assert with_code("one ` alone") == "one ` alone"
    assert with_code("nothing in ``") == "nothing in ``"
