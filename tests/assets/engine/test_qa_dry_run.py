"""What a run of questions would ask: counted as it is asked, stored answers by their very judgements, and nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assets.engine.dry_run import DryRun
from assets.qa.stages import QA_STAGES
from dtef_pipeline.asking.request import Request
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.judging.arbiter import is_in_sample
from dtef_pipeline.qa.model import QaItem
from dtef_pipeline.qa.prompt_rows import build_item_tables
from dtef_pipeline.qa.settings import QaSettings
from tests.assets.engine.conftest import KnowModels
from tests.made.plain_run import PlainRun, response_to, sums

KEY = "gsm8k|all"
PROMPTS, RESPONSES, JUDGEMENTS = STAGES = QA_STAGES[1:4]


@pytest.fixture
def place(tmp_path: Path, know_models: KnowModels) -> PlainRun:
    know_models(mini={"max_tokens": 100}, big={"max_tokens": 2000}, judge={"max_tokens": 1024})
    return PlainRun("qa", QA_STAGES[1:], tmp_path)


def add(place: PlainRun, items: int = 3, scorers: Sequence[str] = ("judge", "numeric")) -> None:
    loaded = [
        QaItem(f"gsm8k/{at}", "gsm8k", "all", "number", f"What is {at} + {at}?", reference=str(2 * at)) for at in range(items)
    ]
    place.write(KEY, build_item_tables("gsm8k", "all", LoadedItems(tuple(loaded)), lambda item: scorers)._asdict())


def settings(**given: Any) -> QaSettings:
    return QaSettings.model_validate({"models": ["mini", "big"], "judge": "judge", **given})


def planned(place: PlainRun, **given: Any) -> DryRun:
    return place.estimate(settings(**given), [KEY])


def counted(found: DryRun) -> dict[tuple[str, str], tuple[int, int, int, int, int]]:
    rows = found.counts.list_sorted_rows()
    return {(one.role, one.name): (one.planned, one.requests, one.replayed, one.calls, one.calls_max) for one in rows}


def said(request: Request) -> str:
    return '{"score": 1}' if request.role == "judge" else f"{request.model.name} says 2."


def test_nothing_stored_is_prompts_by_models_by_draws_and_two_judgements_of_each(place: PlainRun) -> None:
    add(place)
    found = planned(place, draws=2)
    assert found.sizes["qa_responses"] == 12
    assert counted(found) == {
        ("candidate", "mini"): (6, 6, 0, 6, 6),
        ("candidate", "big"): (6, 6, 0, 6, 6),
        ("judge", "judge"): (24, 24, 0, 24, 48),
    }


def test_a_run_asks_what_was_estimated_and_afterwards_all_of_it_is_replayed(place: PlainRun) -> None:
    add(place)
    before = counted(planned(place, draws=2))
    place.run(KEY, settings(draws=2), said, STAGES)
    assert {who: row[1] for who, row in before.items() if who[0] == "candidate"} == {
        who: number for who, number in place.asked.items() if who[0] == "candidate"
    }
    after = counted(planned(place, draws=2))
    assert {who: row[1:] for who, row in after.items()} == {who: (asked, asked, 0, 0) for who, asked in place.asked.items()}
    assert {who: row[0] for who, row in after.items()} == {who: row[0] for who, row in before.items()}


def test_stored_answers_are_judged_by_the_requests_that_the_run_sends(place: PlainRun) -> None:
    add(place)
    given = settings(models=["mini"])
    place.run(KEY, given, said, [PROMPTS, RESPONSES])
    row = sums(place.estimate(given, [KEY]))["judge"]
    place.run(KEY, given, said, [JUDGEMENTS])
    asked = [one for one in place.requests.values() if one.role == "judge"]
    tokens = sum(estimate_tokens(message.text) for one in asked for message in one.conversation)
    assert (row.calls, row.calls_max) == (len(asked), 2 * len(asked)) == (6, 12)
    assert (row.prompt_tokens, row.prompt_tokens_max) == (tokens, 2 * tokens)
    assert row.response_tokens_max == 6 * 1024 + 6 * 2048


def test_a_stored_reply_that_cannot_be_read_is_one_call_more_until_the_judge_was_asked_again(place: PlainRun) -> None:
    """Regression: it was counted as replayed, and a run sent more than `calls_max`."""
    add(place, 1)
    given = settings(models=["mini"])
    place.run(KEY, given, lambda one: "" if one.role == "judge" else said(one), STAGES)
    first, other = (one for one in place.requests.values() if one.role == "judge" and one.draw == 0)
    fresh = PlainRun("qa", QA_STAGES[1:], place.folder / "fresh")
    add(fresh, 1)
    (answer,) = (one for one in place.requests.values() if one.role == "candidate")
    fresh.answer(response_to(answer, said(answer)), response_to(first, '{"score": 8}'), response_to(other, '{"score": 1}'))
    row = sums(fresh.estimate(given, [KEY]))["judge"]
    assert (row.requests, row.replayed, row.calls, row.calls_max, row.response_tokens_max) == (3, 2, 1, 1, 1024)
    fresh.run(KEY, given, lambda one: "still no score", STAGES)
    row = sums(fresh.estimate(given, [KEY]))["judge"]
    assert (row.requests, row.replayed, row.calls) == (3, 3, 0)


def test_the_same_answer_of_two_models_is_judged_once_and_a_blank_one_never(place: PlainRun) -> None:
    add(place, 1)
    place.run(KEY, settings(), lambda one: "0", [PROMPTS, RESPONSES])
    assert counted(planned(place))["judge", "judge"] == (4, 2, 0, 2, 4)
    place.run(KEY, settings(snapshot="blank"), lambda one: " ", [PROMPTS, RESPONSES])
    assert ("judge", "judge") not in counted(planned(place, snapshot="blank"))


def test_only_the_sample_is_judged_and_items_that_a_rule_scores_are_not(place: PlainRun) -> None:
    add(place, 200)
    row = sums(planned(place, models=["mini"], sample_rate=0.5))["judge"]
    (variant,) = {
        row.model.variant for (role, _), row in planned(place, models=["mini"]).counts.rows.items() if role != "judge"
    }
    chosen = is_in_sample([f"gsm8k/{at}" for at in range(200)], [variant] * 200, 0.5).sum()
    assert row.calls == 2 * chosen
    assert "judge" not in sums(planned(place, judge="none"))
    add(place, 3, ("numeric",))
    assert "judge" not in sums(planned(place))


def test_stored_answers_of_models_that_are_not_asked_are_judged_too(place: PlainRun) -> None:
    add(place)
    place.run(KEY, settings(models=["big"]), said, STAGES)
    assert counted(planned(place, models=["mini"]))["judge", "judge"] == (12, 12, 6, 6, 12)


def test_lengths_are_those_of_earlier_responses_where_they_are_known(place: PlainRun) -> None:
    add(place, 1)
    found = planned(place, models=["mini"])
    assert found.assumed == {"mini": 400, "judge": 120}
    place.run(KEY, settings(models=["mini"]), said, STAGES)
    later = planned(place, models=["mini"], snapshot="later", rejudge="later")
    assert not later.assumed
    assert later.counts.rows["candidate", "mini"].response_tokens == 5
    assert later.counts.rows["judge", "judge"].response_tokens == 2 * 5
    around = [one.counts.rows["judge", "judge"].prompt_tokens for one in (found, later)]
    usual = found.counts.rows["candidate", "mini"].response_tokens
    # The blocks of a judge have marks, which differ by some tokens.
    assert around[0] - around[1] == pytest.approx(2 * (usual - 5), rel=0.15), "the judge reads what is awaited"
