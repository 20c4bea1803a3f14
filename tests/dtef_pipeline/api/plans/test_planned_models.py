"""What a submission says of its models: settings that are not sent, and two that send the same request."""

from __future__ import annotations

import pytest

from dtef_pipeline.api.plans.plan import UnfitManifest
from resources.settings import Settings
from tests.dtef_pipeline.api.made import add_partitions, settings_in
from tests.dtef_pipeline.api.plans.test_family_plans import FAMILIES, MODEL, PARTITIONS


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    found = settings_in(tmp_path_factory.mktemp("server"))
    add_partitions(found, PARTITIONS)
    return found


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")


@pytest.mark.parametrize("family", ["survey", "qa"])
def test_settings_that_are_not_sent_are_reported_and_two_models_of_one_request_refused(settings: Settings, family: str) -> None:
    """Both were paid for and ranked, without a word."""
    low, high = (f"{MODEL}@reasoning_effort={one}" for one in ("low", "high"))
    plan = FAMILIES[family](settings, models=[low])
    assert [line.partition(",")[0] for line in plan.warnings] == [f"{low}: the provider takes no reasoning_effort"]
    assert plan.build_plan_json()["warnings"] == list(plan.warnings)
    with pytest.raises(UnfitManifest, match=r"send the provider the same request.*reasoning_effort"):
        FAMILIES[family](settings, models=[low, high])
