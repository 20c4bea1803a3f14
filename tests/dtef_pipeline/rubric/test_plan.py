"""What a run would ask is what a loop over its requests finds, and what an independent reader counted in real blueprints."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.asking.request import Request
from dtef_pipeline.judging.call_ledger import PLANNED_ROLES, CallLedger, PlannedCalls, StoredResponses, UsualLengths
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.rubric.blueprint_rows import blueprint_tables
from dtef_pipeline.rubric.candidates import Candidates
from dtef_pipeline.rubric.conversations import Script, response_text, scripts
from dtef_pipeline.rubric.judge_requests import judgings
from dtef_pipeline.rubric.named_models import read_collections
from dtef_pipeline.rubric.plan import AskedBlueprint, plan
from dtef_pipeline.rubric.reading import read_blueprint
from dtef_pipeline.rubric.tables import RUBRIC_RESPONSES
from tests.conftest import SHARED
from tests.made.rubric_documents import PATHS, PATHS_PROMPTS

MODELS = Models({}, {})
JUDGES = tuple(
    JudgeConfig(approach, ModelSpec(name="j", model="openai/j", max_tokens=2048)) for approach in ("standard", "prompt-aware")
)
EMBEDDER = ModelSpec(name="e", model="openai/e")
COUNTS = [one.name for one in fields(PlannedCalls) if one.name not in ("role", "model")]
Stored = dict[str, str]
Turns = list[tuple[Script, ModelSpec, int, list[str]]]


def asked(blueprint: Any, **rest: Any) -> AskedBlueprint:
    made = blueprint_tables(replace_read(blueprint), blueprint, "x.yml")
    return AskedBlueprint(
        blueprint.id,
        made.rubric_prompts,
        made.rubric_criteria,
        Candidates(MODELS, blueprint.models),
        **{"judges": JUDGES, "embedder": EMBEDDER, **rest},
    )


def replace_read(blueprint: Any) -> Any:
    return replace(read_blueprint("title: x", "x"), blueprint=blueprint, findings=())


def made(header: dict[str, Any], prompts: Sequence[dict[str, Any]]) -> Any:
    found = read_blueprint(f"{json.dumps(header)}\n---\n{json.dumps(list(prompts))}\n", "made").blueprint
    assert found is not None
    return found


def ledger_of(stored: Stored) -> CallLedger:
    return CallLedger(
        StoredResponses(lambda keys: set(keys) & set(stored), lambda keys: {key: stored[key] for key in keys if key in stored})
    )


def by_role(ledger: CallLedger) -> dict[str, PlannedCalls]:
    """The sums over the models of each role."""
    found = {role: PlannedCalls(role, EMBEDDER) for role in PLANNED_ROLES}
    for row in ledger.sorted_rows():
        for name in COUNTS:
            setattr(found[row.role], name, getattr(found[row.role], name) + getattr(row, name))
    return found


def spoken(one: AskedBlueprint, stored: Stored) -> tuple[set[str], set[str], Turns]:
    """Every request for turns as a run would make it: keys of all, those stored, and the conversations that are whole."""
    keys: set[str] = set()
    replayed: set[str] = set()
    whole: Turns = []
    for script, temperatures in scripts(one.prompts):
        for model in one.candidates.at(temperatures):
            for draw in range(one.draws):
                written: list[str] = []
                while True:
                    messages, goes_on = script.until(written)
                    if not goes_on:
                        whole.append((script, model, draw, written))
                        break
                    key = Request.of_messages(messages, model, draw, one.snapshot).key
                    keys.add(key)
                    if key not in stored:
                        break
                    replayed.add(key)
                    written = [*written, stored[key]]
                    if not stored[key].strip():
                        break
    return keys, replayed, whole


def all_replies(one: AskedBlueprint, text: str = "{} says {}") -> Stored:
    """Every turn of every conversation is stored; what is said depends on the model and on the number of the turn alone."""
    stored: Stored = {}
    while True:
        keys_before = len(stored)
        for script, temperatures in scripts(one.prompts):
            for model in one.candidates.at(temperatures):
                for draw in range(one.draws):
                    written: list[str] = []
                    while (until := script.until(written))[1]:
                        key = Request.of_messages(until[0], model, draw, one.snapshot).key
                        stored[key] = text.format(model.name, len(written))
                        written.append(stored[key])
        if len(stored) == keys_before:
            return stored


def response_table(whole: Turns, snapshot: str) -> pa.Table:
    rows = [
        {
            "prompt": script.prompt,
            "model": model.name,
            "model_variant": model.variant,
            "temperature": model.temperature,
            "system_index": script.system_index,
            "draw": draw,
            "snapshot": snapshot,
            "status": "ok",
            "text": response_text(written),
        }
        for script, model, draw, written in whole
    ]
    return pa.Table.from_pylist(rows, schema=RUBRIC_RESPONSES)


BLUEPRINT = made(PATHS, PATHS_PROMPTS)


def test_nothing_is_stored_so_every_planned_turn_judgement_and_text_is_a_call() -> None:
    one = asked(BLUEPRINT, draws=2)
    ledger = ledger_of({})
    assert plan(one, ledger) == 4 * 2 * 2 * 2 * 2
    rows = by_role(ledger)
    assert rows["candidate"].planned == 2 * 2 * 2 * 2 * (1 + 3 + 1 + 1)
    in_words = Counter(
        prompt
        for prompt, kind in zip(one.criteria["prompt"].to_pylist(), one.criteria["kind"].to_pylist(), strict=True)
        if kind == "text"
    )
    assert rows["judge"].planned == 2 * 16 * sum(in_words.values())
    assert rows["embedder"].planned == 2 + 2 * 16
    for role in ("candidate", "judge"):
        assert (rows[role].replayed, rows[role].calls) == (0, rows[role].requests)


def test_conversations_are_followed_as_far_as_they_are_stored() -> None:
    one = asked(BLUEPRINT)
    stored = all_replies(one)
    for gone in list(stored)[::7]:
        del stored[gone]
    keys, replayed, _ = spoken(one, stored)
    ledger = ledger_of(stored)
    plan(one, ledger)
    row = by_role(ledger)["candidate"]
    assert row.replayed == len(replayed)
    assert row.calls >= len(keys - replayed)
    assert row.requests == row.replayed + row.calls


def test_judgements_of_whole_responses_are_counted_by_the_requests_that_a_run_makes() -> None:
    one = asked(BLUEPRINT, judge_draws=2)
    stored = all_replies(one)
    _, _, whole = spoken(one, stored)
    episodes = judgings(response_table(whole, one.snapshot), one.criteria, one.prompts, JUDGES, 2)
    requests = {request.key: request for episode in episodes if (request := episode.next([])) is not None}
    stored |= dict.fromkeys(list(requests)[::3], "CLASS_UNMET")
    ledger = ledger_of(stored)
    plan(one, ledger)
    row = by_role(ledger)["judge"]
    assert row.requests == len(requests) < row.planned
    assert row.replayed == len(list(requests)[::3])
    assert row.calls == row.requests - row.replayed


def test_blank_turn_ends_a_conversation_and_is_not_judged() -> None:
    one = asked(BLUEPRINT)
    ledger = ledger_of(all_replies(one, " \n"))
    plan(one, ledger)
    rows = by_role(ledger)
    assert rows["candidate"].calls == 0
    assert rows["judge"].planned == 0
    assert (rows["embedder"].planned, rows["embedder"].requests) == (2, 2)


def test_responses_of_other_models_that_the_snapshot_has_are_judged_and_changed_prompts_are_not() -> None:
    one = asked(BLUEPRINT)
    script, _ = next(iter(scripts(one.prompts)))
    stays = {"prompt": "paths", "system_index": 0, "model_variant": "other", "draw": 0, "status": "ok", "text": "A text."}
    rows = [{**stays, "asked_hash": script.asked_hash}, {**stays, "draw": 1, "asked_hash": "of another wording"}]
    earlier = pa.Table.from_pylist(rows, schema=RUBRIC_RESPONSES)
    without, with_it = ledger_of({}), ledger_of({})
    plan(one, without)
    plan(replace(one, earlier=earlier), with_it)
    n_words = sum(
        (prompt, kind) == ("paths", "text")
        for prompt, kind in zip(one.criteria["prompt"].to_pylist(), one.criteria["kind"].to_pylist(), strict=True)
    )
    assert by_role(with_it)["judge"].calls - by_role(without)["judge"].calls == 2 * n_words


def test_prompts_that_read_the_same_are_asked_once_in_all_blueprints() -> None:
    twice = made(
        {"models": ["openai:m"]},
        [{"id": "a", "prompt": "Same?", "should": ["x"]}, {"id": "b", "prompt": "Same?", "ideal": "y"}],
    )
    ledger = ledger_of({})
    plan(asked(twice), ledger)
    plan(asked(replace(twice, id="other")), ledger)
    row = by_role(ledger)["candidate"]
    assert (row.planned, row.requests, row.calls) == (4, 1, 1)


def test_lengths_are_those_of_earlier_responses_and_the_most_allows_one_further_reply_of_a_judge() -> None:
    simple = made({"models": ["openai:m"]}, [{"prompt": "Why?", "should": ["x"]}])
    one = asked(simple)
    (model,) = one.candidates.at([0.0])
    ledger = CallLedger(usual=UsualLengths({model.variant: 50.0}, {JUDGES[0].model.variant: 30.0}))
    plan(one, ledger)
    rows = by_role(ledger)
    assert (rows["candidate"].response_tokens, rows["candidate"].response_tokens_most) == (50, 1500)
    assert (rows["judge"].response_tokens, rows["judge"].response_tokens_most) == (2 * 30, 2 * (2048 + 2 * 2048))
    assert (rows["judge"].calls, rows["judge"].calls_most) == (2, 4)


def test_model_without_a_limit_may_write_without_end() -> None:
    endless = Models({"m": ModelSpec(name="m", model="openai/m", max_tokens=None)}, {})
    one = replace(asked(BLUEPRINT), candidates=Candidates(endless, ["m"]))
    ledger = ledger_of({})
    plan(one, ledger)
    row = by_role(ledger)["candidate"]
    assert row.response_tokens_most == float("inf")
    assert row.response_tokens < float("inf")


@pytest.fixture(scope="module")
def public_blueprints() -> Path:
    if not (SHARED / "weval" / "expected.json").is_file():
        pytest.skip(f"no public blueprints at {SHARED / 'weval'}")
    return SHARED / "weval"


def test_public_blueprints_plan_what_an_independent_reader_counted(public_blueprints: Path) -> None:
    expected: list[dict[str, Any]] = json.loads((public_blueprints / "expected.json").read_text(encoding="utf-8"))["files"]
    collections = read_collections(public_blueprints / "models")
    planned = 0
    for one in expected:
        blueprint = read_blueprint(public_blueprints / "blueprints" / one["path"], one["id"], collections).blueprint
        if blueprint is None:
            assert not one["parses"]
            continue
        ledger = ledger_of({})
        planned += plan(asked(blueprint), ledger)
        found: Counter[str] = Counter()
        for row in ledger.sorted_rows():
            found[row.role] += row.planned
        counts = {name: one[name] for name in ("planned_candidate_calls", "judge_calls_default", "embeddings_planned")}
        assert (one["path"], counts) == (
            one["path"],
            dict(zip(counts, (found["candidate"], found["judge"], found["embedder"]), strict=True)),
        )
    assert planned == sum(one.get("planned_responses") or 0 for one in expected) == 78_672
