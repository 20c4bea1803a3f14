"""What is asked of a part, and what its rows become: nothing is asked under a key that nobody looks for, and no earlier response is lost."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Response
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.prompt_rows import AskSettings, build_plain_prompts
from dtef_pipeline.qa.stages import QA_CALLS, build_qa_requests, build_qa_response_rows, select_condition_prompts
from dtef_pipeline.qa.tables import QA_PROMPTS, QA_RESPONSES
from resources.gateway.transport import build_sampling
from resources.responses.store import RESPONSES
from tests.made.qa_items import BIRD, ROWERS, TWICE
from tests.made.responses import response

MINI = ModelSpec(name="mini", model="openai/gpt-4.1-mini")
LARGE = ModelSpec(name="large", model="openai/gpt-4.1")
TWIN = replace(ROWERS, item_id="gsm8k/1")
PROMPTS = build_plain_prompts([ROWERS, TWIN, TWICE], [], AskSettings()).qa_prompts


def stored(*responses: Response) -> pa.Table:
    """As the store gives them."""
    return pa.Table.from_pylist([asdict(one) for one in responses], schema=RESPONSES)


def test_items_with_the_same_prompt_share_its_requests() -> None:
    requests = build_qa_requests(PROMPTS, MINI, 2, "base")
    assert len(requests) == len({request.key for request in requests}) == 4
    assert [request.draw for request in requests] == [0, 1, 0, 1]
    assert {request.snapshot for request in requests} == {"base"}
    assert requests[0].answer_tokens == 1024


def test_examples_in_one_message_send_where_the_response_ends_under_the_same_key() -> None:
    """A base model goes on with a question of its own, by the next number."""
    examples = [replace(BIRD, item_id=f"dev/{place}") for place in range(2)]
    shown, turns = (
        build_plain_prompts([BIRD], examples, AskSettings(few_shot=2, few_shot_as=form)).qa_prompts
        for form in ("message", "turns")
    )
    (request,), (in_turns,), plain = (build_qa_requests(rows, MINI, 1, "base") for rows in (shown, turns, PROMPTS))
    assert request.stop == ("\nQuestion 4:", "\nProblem 4:")
    assert "\n\nQuestion 3: " in request.messages[0].text
    assert request.key == replace(request, stop=(), key="").key
    assert {in_turns.stop, *(one.stop for one in plain)} == {()}
    assert build_sampling(request)["stop"] == list(request.stop)
    thinker = replace(request, model=ModelSpec(name="o3", model="openai/o3"))
    assert "stop" not in build_sampling(thinker)
    assert "stop" not in build_sampling(in_turns)


def test_messages_that_are_not_those_of_the_prompts_id_are_never_sent() -> None:
    """They would be bought under a key that nobody looks for."""
    changed = PROMPTS.to_pylist()
    changed[2]["messages"][0]["text"] += "!"
    with pytest.raises(ConfigError, match=changed[2]["prompt_id"]):
        build_qa_requests(pa.Table.from_pylist(changed, schema=QA_PROMPTS), MINI, 1, "base")


def test_each_item_and_draw_has_a_row_whatever_came_of_its_call() -> None:
    sums, code = (build_qa_requests(PROMPTS, MINI, 1, "base")[at] for at in (0, 1))
    answered = stored(response(0, request_key=sums.key, prompt_id=sums.prompt_id, text="#### 12", cost_usd=0.5))
    failures = {code.key: Failure(code.key, "HTTP 500", 3)}
    rows = build_qa_response_rows(PROMPTS, [MINI, LARGE], 1, "base", answered, failures).to_pylist()
    told = {(row["item_id"], row["model"]): (row["call_status"], row["response"], row["error"]) for row in rows}
    assert len(rows) == len(told) == 6
    assert told["gsm8k/0", "mini"] == told["gsm8k/1", "mini"] == ("answered", "#### 12", None)
    assert told["Demo/0", "mini"][0::2] == ("error", "HTTP 500")
    assert {told[item, "large"] for item in ("gsm8k/0", "gsm8k/1", "Demo/0")} == {
        ("error", None, "was not sent: the run ended first")
    }
    assert sum(row["cost_usd"] or 0 for row in rows) == 0.5, "what two items share was paid once"
    assert {(row["suite"], row["part"], row["condition"], row["snapshot"]) for row in rows} == {
        ("gsm8k", "all", "plain", "base"),
        ("humaneval", "all", "plain", "base"),
    }


def test_a_run_with_other_models_loses_no_earlier_row_and_one_with_other_prompts_loses_theirs() -> None:
    assert build_qa_response_rows(PROMPTS, [], 1, "base", stored(), {}) == QA_RESPONSES.empty_table()
    of_mini = build_qa_response_rows(PROMPTS, [MINI], 1, "base", stored(), {})
    of_large = build_qa_response_rows(PROMPTS, [LARGE], 1, "base", stored(), {})
    both = QA_CALLS.merge_rows(of_mini, of_large, PROMPTS)
    assert [row["model"] for row in both.to_pylist()] == ["large"] * 3 + ["mini"] * 3
    assert QA_CALLS.merge_rows(of_large, of_mini, PROMPTS) == both
    assert QA_CALLS.merge_rows(both, both, PROMPTS) == both
    left = PROMPTS.slice(2)
    assert QA_CALLS.merge_rows(both, QA_RESPONSES.empty_table(), left)["item_id"].to_pylist() == ["Demo/0"] * 2


class TestLimit:
    def test_prompts_of_one_condition_alone_are_asked(self) -> None:
        both = pa.concat_tables(
            [build_plain_prompts([BIRD], [], how).qa_prompts for how in (AskSettings(), AskSettings("cot"))]
        )
        assert select_condition_prompts(both, "cot", None)["condition"].to_pylist() == ["cot"]
        assert len(select_condition_prompts(both, "letters,rotated-1", 3)) == 0

    @given(number=st.integers(0, 60), most=st.integers(1, 70))
    def test_a_limit_is_spread_over_the_part_and_takes_nothing_twice(self, number: int, most: int) -> None:
        rows = [{"item_id": str(at), "condition": "plain"} for at in range(number)]
        every = pa.Table.from_pylist(rows, schema=QA_PROMPTS)
        found = [int(item) for item in select_condition_prompts(every, "plain", most)["item_id"].to_pylist()]
        assert len(found) == len(set(found)) == min(number, most)
        assert found == sorted(found)
        gaps = {after - before for before, after in pairwise(found)}
        assert gaps <= ({1} if most >= number else {number // most, -(-number // most)})
        assert found[:1] == [0][:number]

    def test_the_same_limit_takes_the_same_items(self) -> None:
        rows = [{"item_id": str(at), "condition": "plain"} for at in range(10)]
        every = pa.Table.from_pylist(rows, schema=QA_PROMPTS)
        assert select_condition_prompts(every, "plain", 4)["item_id"].to_pylist() == ["0", "2", "5", "7"]
