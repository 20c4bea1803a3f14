"""Which programs responses come to: equal ones are run once, what is none has its verdict at once, and what was run is not run again."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from dtef_pipeline.judging.code_checks import CheckResult
from dtef_pipeline.qa.program import (
    build_execution_rows,
    load_known_verdicts,
    merge_rows_so_far,
    plan_executions,
    select_programs_to_run,
)
from tests.made.qa_items import BIRD, TWICE, responses_to, rows_of_items

ITEMS = rows_of_items(BIRD, TWICE)
RIGHT = "```python\ndef twice(x):\n    return 2 * x\n```"
PASSED = CheckResult("passed", "", "bwrap", "3.12.1", 0.25, 1)


def test_only_answered_responses_to_items_with_tests_are_run() -> None:
    responses = pa.concat_tables([responses_to(BIRD, "B"), responses_to(TWICE, RIGHT, None)])
    (one,) = plan_executions(responses, ITEMS, 10)
    assert (one.response["item_id"], one.response["draw"], one.verdict) == ("Demo/0", 0, None)
    assert one.task is not None
    assert "return 2 * x" in one.task.program
    assert (one.task.entry_point, "assert candidate(2) == 4" in one.task.tests) == ("twice", True)


def test_equal_programs_are_run_once_however_they_were_wrapped() -> None:
    wrapped = f"Here it is:\n{RIGHT}\nHave fun!"
    planned = plan_executions(responses_to(TWICE, RIGHT, wrapped, "    return x + x\n"), ITEMS, 10)
    assert planned[0].program_hash == planned[1].program_hash != planned[2].program_hash
    assert len(select_programs_to_run(planned, {})) == 2
    assert list(select_programs_to_run(planned, {planned[0].program_hash: PASSED})) == [planned[2].program_hash]


def test_other_tests_or_limits_are_another_run() -> None:
    other = rows_of_items(replace(TWICE, reference=TWICE.reference.replace("== 4", "== 5")))
    hashes = {
        plan_executions(responses_to(TWICE, RIGHT), items, limit)[0].program_hash
        for items, limit in ((ITEMS, 10), (ITEMS, 5), (other, 10))
    }
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("text", "verdict"), [("", "empty"), ("```python\n```", "empty"), ("```python\ndef twice(x:\n```", "syntax")]
)
def test_what_is_no_program_is_never_run(text: str, verdict: str) -> None:
    planned = plan_executions(responses_to(TWICE, text), ITEMS, 10)
    assert select_programs_to_run(planned, {}) == {}
    (row,) = build_execution_rows(planned, {}).to_pylist()
    assert (row["verdict"], row["isolation"], row["python"]) == (verdict, None, None)


def test_rows_tell_what_came_of_each_response() -> None:
    planned = plan_executions(responses_to(TWICE, RIGHT, RIGHT), ITEMS, 10)
    failed = CheckResult("assertion", "2 is not 4", "sandlock", "3.12.1", 0.5, 1)
    rows = build_execution_rows(planned, {planned[0].program_hash: failed}).to_pylist()
    assert [row["draw"] for row in rows] == [0, 1]
    assert {(row["verdict"], row["message"], row["isolation"], row["wall_s"]) for row in rows} == {
        ("assertion", "2 is not 4", "sandlock", 0.5)
    }


class TestKnown:
    def rows(self, *results: CheckResult) -> pa.Table:
        texts = [f"    return {at}\n" for at, _ in enumerate(results)]
        planned = plan_executions(responses_to(TWICE, *texts), ITEMS, 10)
        return build_execution_rows(planned, {one.program_hash: result for one, result in zip(planned, results, strict=True)})

    def test_a_verdict_is_read_back_as_it_was(self) -> None:
        timeout = CheckResult("timeout", "10 s", "bwrap", "3.12.1", 10.0)
        earlier = self.rows(PASSED, timeout)
        assert list(load_known_verdicts(earlier, "bwrap").values()) == [replace(PASSED, calls=0), timeout]

    def test_at_another_level_and_after_a_fault_of_the_sandbox_it_is_run_again(self) -> None:
        fault = CheckResult("sandbox_error", "no process", "bwrap")
        earlier = self.rows(PASSED, fault, CheckResult("sandbox_unavailable"))
        assert [one.status for one in load_known_verdicts(earlier, "bwrap").values()] == ["passed"]
        assert load_known_verdicts(earlier, "sandlock") == {}
        assert load_known_verdicts(earlier, None) == {}


def test_what_is_not_run_yet_keeps_its_earlier_row() -> None:
    """A run at another level that was killed left its own rows alone: finished verdicts of all models were gone."""
    planned = plan_executions(responses_to(TWICE, RIGHT, "    return x + x\n", "", "    return x\n"), ITEMS, 10)
    everything = {one.program_hash: PASSED for one in planned}
    earlier = build_execution_rows(planned[:3], everything)
    new = {planned[0].program_hash: replace(PASSED, status="crashed", level="sandlock")}
    rows = merge_rows_so_far(planned, new, earlier).sort_by("draw")
    assert rows.select(["draw", "verdict", "isolation"]).to_pylist() == [
        {"draw": 0, "verdict": "crashed", "isolation": "sandlock"},
        {"draw": 1, "verdict": "passed", "isolation": "bwrap"},
        {"draw": 2, "verdict": "empty", "isolation": None},
    ]
    # At the earlier level the rest is what was written over, and what was never run.
    assert list(select_programs_to_run(planned, load_known_verdicts(rows, "bwrap"))) == [
        planned[0].program_hash,
        planned[3].program_hash,
    ]
    assert merge_rows_so_far(planned, new, None)["draw"].to_pylist() == [0, 2]
