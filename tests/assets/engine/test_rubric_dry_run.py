"""What a run of blueprints would ask is what it asks, and what an independent reader counted in real blueprints."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from assets.engine.dry_run import DryRun
from assets.rubric.stages import RUBRIC_STAGES
from dtef_pipeline.asking.request import Request
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.rubric.blueprint.blueprint_rows import build_blueprint_tables
from dtef_pipeline.rubric.blueprint.model import Blueprint
from dtef_pipeline.rubric.blueprint.named_models import read_collections
from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from dtef_pipeline.rubric.settings import REPORT_CHARACTERS, RubricSettings
from tests.assets.engine.conftest import KnowModels
from tests.conftest import SHARED
from tests.made.plain_run import PlainRun, response_to, sums
from tests.made.rubric_documents import PATHS, PATHS_PROMPTS

STAGES = RUBRIC_STAGES[1:]
RESPONSES, JUDGEMENTS = STAGES[0], STAGES[1]
JUDGES = ["standard=judge", "prompt-aware=judge"]
JUDGEMENTS_PLANNED = 800
"""Blueprints with more are planned without their judgements: all of them together take minutes."""
WORDS = [{"prompt": "Why?", "should": ["x"], "ideal": "Yes."}]


def settings(**given: Any) -> RubricSettings:
    return RubricSettings.model_validate({"judges": JUDGES, "embedder": "embed", **given})


def read(header: dict[str, Any], prompts: Sequence[dict[str, Any]], name: str = "made") -> Blueprint:
    found = read_blueprint(f"{json.dumps(header)}\n---\n{json.dumps(list(prompts))}\n", name).blueprint
    assert found is not None
    return found


BLUEPRINT = read(PATHS, PATHS_PROMPTS)
SIMPLE = read({"models": ["openai:cand-a", "openai:cand-b"]}, [{**WORDS[0], "id": "p", "should": ["x", {"$contains": "1"}]}])


@pytest.fixture
def place(tmp_path: Path, know_models: KnowModels) -> PlainRun:
    know_models(judge={"max_tokens": 2048}, embed={}, analyst={}, **{f"cand-{one}": {"max_tokens": 1500} for one in "ab"})
    return PlainRun("rubric", STAGES, tmp_path)


def add(place: PlainRun, blueprint: Blueprint) -> str:
    found = replace(read_blueprint("title: x", "x"), blueprint=blueprint, findings=())
    place.write(blueprint.id, build_blueprint_tables(found, blueprint, "x.yml"))
    return blueprint.id


def said(request: Request) -> str:
    """What the model says, the judge and the analyst reply."""
    if request.role == "judge":
        return "<classification>CLASS_UNMET</classification>"
    return "<topic>x</topic>" if request.role == "analyst" else f"{request.model.name} says {len(request.messages)}"


def planned(place: PlainRun, *keys: str, **given: Any) -> DryRun:
    return place.estimate(settings(**given), keys)


def test_nothing_is_stored_so_every_planned_turn_judgement_and_text_is_a_call(place: PlainRun) -> None:
    key = add(place, BLUEPRINT)
    found = planned(place, key, draws=2)
    assert found.sizes["rubric_responses"] == 4 * 2 * 2 * 2 * 2
    rows = sums(found)
    assert rows["candidate"].planned == 2 * 2 * 2 * 2 * (1 + 3 + 1 + 1)
    criteria = place.house.read("rubric_criteria", blueprint=key)
    in_words = pc.sum(pc.equal(criteria["kind"], "text")).as_py()
    assert rows["judge"].planned == 2 * 16 * in_words
    assert rows["embedder"].planned == 2 + 2 * 16
    for role in ("candidate", "judge"):
        assert (rows[role].replayed, rows[role].calls) == (0, rows[role].requests)


def test_a_run_asks_what_was_estimated_and_afterwards_all_of_it_is_replayed(place: PlainRun) -> None:
    key = add(place, BLUEPRINT)
    given = settings(draws=2, judge_draws=2, analysts=["analyst"])
    before = place.estimate(given, [key])
    place.run(key, given, said)
    after = place.estimate(given, [key])
    for role in ("candidate", "analyst"):
        asked = sum(number for (asked_as, _), number in place.asked.items() if asked_as == role)
        assert (sums(after)[role].requests, sums(after)[role].replayed, sums(after)[role].calls) == (asked, asked, 0)
    assert sums(after)["judge"].requests == sums(after)["judge"].replayed == place.asked["judge", "judge"]
    assert sums(after)["judge"].planned == sums(before)["judge"].planned
    assert sums(before)["candidate"].planned == sums(after)["candidate"].planned
    assert (sums(after)["embedder"].replayed, sums(after)["embedder"].calls) == (sums(after)["embedder"].requests, 0)
    assert sum(row.calls_max for row in after.counts.list_sorted_rows()) == 0
    assert before.sizes == after.sizes


def test_conversations_are_followed_as_far_as_they_are_stored(place: PlainRun) -> None:
    key = add(place, BLUEPRINT)
    place.run(key, settings(), said, [RESPONSES])
    keys = list(place.requests)
    other = PlainRun("rubric", STAGES, place.folder / "other")
    add(other, BLUEPRINT)
    kept = [one for one in keys if keys.index(one) % 7]
    other.answer(*(response_to(place.requests[one], said(place.requests[one])) for one in kept))
    row = sums(planned(other, key))["candidate"]
    assert row.requests == row.replayed + row.calls
    assert row.replayed <= len(kept)
    assert row.calls >= len(keys) - len(kept)
    whole = sums(planned(other, key, models=["openai/cand-a"]))["candidate"]
    assert whole.requests < row.requests


def test_judgements_of_stored_responses_are_counted_by_the_requests_that_a_run_makes(place: PlainRun) -> None:
    key = add(place, BLUEPRINT)
    given = settings(judge_draws=2)
    place.run(key, given, said, [RESPONSES])
    row = sums(place.estimate(given, [key]))["judge"]
    assert row.calls == row.requests < row.planned
    place.run(key, given, said, [JUDGEMENTS])
    assert place.asked["judge", "judge"] == row.calls


def test_a_blank_turn_ends_a_conversation_and_is_not_judged(place: PlainRun) -> None:
    key = add(place, BLUEPRINT)
    place.run(key, settings(), lambda request: " \n", [RESPONSES])
    rows = sums(planned(place, key))
    assert rows["candidate"].calls == 0
    assert "judge" not in rows
    assert (rows["embedder"].planned, rows["embedder"].requests) == (2, 2)


def test_responses_of_other_models_that_the_snapshot_has_are_judged(place: PlainRun) -> None:
    key = add(place, SIMPLE)
    place.run(key, settings(models=["openai/cand-a"]), said, [RESPONSES])
    assert sums(planned(place, key, models=["openai/cand-b"]))["judge"].planned == 2 * 2
    changed = replace(
        SIMPLE, prompts=tuple(replace(one, turns=(replace(one.turns[0], text="How?"),)) for one in SIMPLE.prompts)
    )
    add(place, changed)
    assert sums(planned(place, key, models=["openai/cand-b"]))["judge"].planned == 2


def test_prompts_that_read_the_same_are_asked_once_in_all_blueprints(place: PlainRun) -> None:
    prompts: list[dict[str, Any]] = [
        {"id": "a", "prompt": "Same?", "should": ["x"]},
        {"id": "b", "prompt": "Same?", "ideal": "y"},
    ]
    keys = [add(place, read({"models": ["openai:cand-a"]}, prompts, name)) for name in ("one", "two")]
    rows = sums(planned(place, *keys))
    assert (rows["candidate"].planned, rows["candidate"].requests, rows["candidate"].calls) == (4, 1, 1)
    assert (rows["judge"].planned, rows["judge"].requests) == (4, 2)


def test_lengths_are_those_of_earlier_replies_and_the_most_allows_one_further_reply_of_a_judge(place: PlainRun) -> None:
    key = add(place, read({"models": ["openai:cand-a"]}, WORDS))
    first = planned(place, key)
    assert first.assumed == {"cand-a": 400, "judge": 120}
    assert (sums(first)["candidate"].response_tokens, sums(first)["judge"].response_tokens) == (400, 2 * 120)
    place.run(key, settings(), said, [RESPONSES, JUDGEMENTS])
    found = planned(place, key, snapshot="2026-01-31")
    rows = sums(found)
    assert not found.assumed
    assert (rows["candidate"].response_tokens, rows["candidate"].response_tokens_max) == (5, 1500)
    assert (rows["judge"].response_tokens, rows["judge"].response_tokens_max) == (2 * 5, 2 * (2048 + 2 * 2048))
    assert (rows["judge"].calls, rows["judge"].calls_max) == (2, 4)


def test_a_stored_reply_that_cannot_be_read_is_followed_by_one_call_more(place: PlainRun) -> None:
    key = add(place, read({"models": ["openai:cand-a"]}, WORDS))
    place.run(key, settings(), lambda request: "what?" if request.role == "judge" else "Yes.", [RESPONSES])
    (one, two) = _first_judge_requests(place, key)
    place.answer(response_to(one, "what?"), response_to(two, "CLASS_UNMET"))
    row = sums(planned(place, key))["judge"]
    assert (row.requests, row.replayed, row.calls, row.calls_max) == (3, 2, 1, 1)
    assert row.response_tokens_max == 2048
    place.answer(response_to(one, "what?", "length"))
    place.run(key, settings(), lambda request: "still no class", [JUDGEMENTS])
    assert sums(planned(place, key))["judge"].calls == 0


def _first_judge_requests(place: PlainRun, key: str) -> list[Request]:
    made = JUDGEMENTS.make(place.inputs(key, "base"), settings())
    return [one.next([]) for one in made.episodes()]  # type: ignore[union-attr, misc]


def test_the_analyst_of_a_scored_snapshot_is_sent_the_very_report_of_a_run(place: PlainRun) -> None:
    key = add(place, SIMPLE)
    given = settings(analysts=["analyst"])
    place.run(key, given, said, STAGES[:-1])
    row = sums(place.estimate(given, [key]))["analyst"]
    place.run(key, given, said, STAGES[-1:])
    first, again = (one for one in place.requests.values() if one.role == "analyst")
    assert (row.calls, row.calls_max) == (1, 2)
    assert row.prompt_tokens == sum(estimate_tokens(message.text) for message in first.messages)
    assert row.response_tokens == 2_000 + 80 * 26
    assert row.response_tokens_max == row.response_tokens + 2_000 + 80 * (26 + 5), (
        "the further request asks for all that may lack"
    )
    assert first.answer_tokens != again.answer_tokens
    assert sums(place.estimate(given, [key]))["analyst"].replayed == 2
    # Another response makes another report.
    assert sums(place.estimate(settings(analysts=["analyst"], draws=2), [key]))["analyst"].calls == 1


def test_a_report_of_what_is_yet_to_be_stated_is_as_long_as_one_of_responses_of_the_usual_length(place: PlainRun) -> None:
    """The estimate left out all but the texts."""
    key = add(place, BLUEPRINT)
    before = sums(planned(place, key, analysts=["analyst"]))["analyst"]
    place.run(key, settings(), lambda request: said(request) + " word" * 396 * (request.role == "candidate"), STAGES[:-1])
    after = sums(planned(place, key, analysts=["analyst"]))["analyst"]
    assert 0.95 < before.prompt_tokens / after.prompt_tokens < 1.05
    assert before.prompt_tokens_max > after.prompt_tokens_max
    assert (before.calls, before.calls_max) == (1, 2)


def test_what_no_analyst_would_be_sent_is_no_request(place: PlainRun) -> None:
    long = read({"models": ["openai:cand-a"]}, [{"id": "p", "prompt": "x" * (2 * REPORT_CHARACTERS), "should": ["y"]}])
    assert sums(planned(place, add(place, long), analysts=["analyst"]))["analyst"].calls == 1, "the report is cut"
    key = add(place, replace(SIMPLE, id="blank"))
    place.run(key, settings(), lambda request: " ", [RESPONSES])
    assert "analyst" not in sums(planned(place, key, analysts=["analyst"]))


def test_a_partition_that_fails_is_named_and_the_others_count(place: PlainRun) -> None:
    key = add(place, SIMPLE)
    found = planned(place, key, "unknown")
    assert list(found.failures) == ["unknown"]
    assert found.sizes["rubric_responses"] == 2
    with pytest.raises(type(found.failures["unknown"])):
        planned(place, "unknown")


@pytest.fixture(scope="module")
def public_blueprints() -> Path:
    if not (SHARED / "weval" / "expected.json").is_file():
        pytest.skip(f"no public blueprints at {SHARED / 'weval'}")
    return SHARED / "weval"


@pytest.mark.thorough
def test_public_blueprints_plan_what_an_independent_reader_counted(place: PlainRun, public_blueprints: Path) -> None:
    expected: list[dict[str, Any]] = json.loads((public_blueprints / "expected.json").read_text(encoding="utf-8"))["files"]
    collections = read_collections(public_blueprints / "models")
    total = 0
    for one in expected:
        blueprint = read_blueprint(public_blueprints / "blueprints" / one["path"], one["id"], collections).blueprint
        if blueprint is None:
            assert not one["parses"]
            continue
        is_small = one["judge_calls_default"] <= JUDGEMENTS_PLANNED
        found = place.estimate(settings(), [add(place, blueprint)], stages=STAGES if is_small else [RESPONSES])
        total += found.sizes["rubric_responses"]
        by_role: Counter[str] = Counter()
        for row in found.counts.list_sorted_rows():
            by_role[row.role] += row.planned
        assert (one["path"], one["planned_candidate_calls"]) == (one["path"], by_role["candidate"])
        if is_small:
            assert (one["path"], one["judge_calls_default"]) == (one["path"], by_role["judge"])
            assert by_role["embedder"] <= one["embeddings_planned"], "a text that occurs twice is embedded once"
    assert total == sum(one.get("planned_responses") or 0 for one in expected) == 78_672
