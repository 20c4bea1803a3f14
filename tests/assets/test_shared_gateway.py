"""A run that Dagster starts has one gateway and one budget, however many of its stages ask."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.engine.asking import asking
from assets.stage.resources import Store
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Failure, Request
from dtef_pipeline.family.stage import Limits
from dtef_pipeline.survey.settings import SurveySettings
from resources.gateway import Gateway
from tests.fake_llm_server import FakeLLM

Failures = dict[str, list[Failure]]
NONE = SurveySettings()


@pytest.fixture
def server() -> Iterator[FakeLLM]:
    with FakeLLM() as running:
        yield running


@pytest.fixture
def run(state: Path, server: FakeLLM) -> Callable[..., Failures]:
    """Runs two stages that ask two requests each, the second as a judge; returns what failed, by stage."""
    spec = ModelSpec(name="m", model="openai/m", api_base=server.base_url)

    def ask(context: dg.AssetExecutionContext, store: Store, role: str, text: str, limits: SurveySettings) -> list[Failure]:
        requests = [Request(f"{text}-{n}", "", f"{text} {n}", spec, 0, "base", role=role) for n in range(2)]
        with asking(context, store, limits, [spec], {"m": 2}, Limits()) as answer:
            return list(answer(requests).values())

    def run(text: str, candidates: SurveySettings = NONE, judges: SurveySettings = NONE) -> Failures:
        failures: Failures = {}

        @dg.asset
        def predicted(context: dg.AssetExecutionContext, store: Store) -> None:
            failures["predicted"] = ask(context, store, "candidate", text, candidates)

        @dg.asset(deps=[predicted])
        def judged(context: dg.AssetExecutionContext, store: Store) -> None:
            failures["judged"] = ask(context, store, "judge", f"judge {text}", judges)

        definitions: Any = dg.Definitions([predicted, judged], resources={"store": Store()}, executor=dg.in_process_executor)
        with dg.DagsterInstance.ephemeral() as instance:
            definitions.resolve_implicit_global_asset_job_def().execute_in_process(instance=instance)
        return failures

    return run


def messages(failures: list[Failure]) -> list[str]:
    return [failure.message for failure in failures]


def test_a_budget_holds_over_all_stages_of_a_run(run: Callable[..., Failures], server: FakeLLM) -> None:
    """Each stage made a gateway of its own: three calls were allowed to each of them."""
    three = SurveySettings(max_calls=3)
    failures = run("one", three, three)
    assert failures["predicted"] == []
    assert messages(failures["judged"]) == ["not sent: the run's max_calls of 3 was reached"]
    assert len(server.calls) == 3


def test_every_run_has_a_budget_of_its_own(run: Callable[..., Failures], server: FakeLLM) -> None:
    four = SurveySettings(max_calls=4)
    for text in ("one", "two"):
        assert run(text, four, four) == {"predicted": [], "judged": []}
    assert len(server.calls) == 8


def test_a_limit_that_a_later_stage_gives_counts_what_was_used_before(run: Callable[..., Failures]) -> None:
    assert messages(run("one", NONE, SurveySettings(max_calls=3))["judged"]) == [
        "not sent: the run's max_calls of 3 was reached"
    ]
    assert messages(run("two", NONE, SurveySettings(budgets={"m": Budget(max_calls=3)}))["judged"]) == [
        "not sent: m's max_calls of 3 was reached"
    ]


def test_nothing_of_a_run_is_kept_when_it_has_ended(run: Callable[..., Failures]) -> None:
    """A code server lives for weeks."""
    before = {id(one) for one in gateways()}
    run("one")
    gc.collect()
    assert {id(one) for one in gateways()} <= before


def gateways() -> list[Gateway]:
    return [one for one in gc.get_objects() if type(one) is Gateway]
