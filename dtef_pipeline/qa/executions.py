"""The rows of `qa_executions`: which programs responses come to, and what came of running them. Equal programs are run once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.identity import digest
from dtef_pipeline.judging.code_checks import UNDECIDED_CHECKS, CheckResult, SandboxTask
from dtef_pipeline.qa.program import helpers_of, program_of
from dtef_pipeline.qa.space import QA_RESPONSE_KEY
from dtef_pipeline.qa.tables import OF_ONE_RESPONSE, QA_EXECUTIONS

CODE_SCORER, CODE_VERSION = "code_execution", 2
_EXECUTED_NAMES = tuple(one.name for one in OF_ONE_RESPONSE)


@dataclass(frozen=True, slots=True)
class Execution:
    """One response whose code is to be checked."""

    response: Mapping[str, Any]
    """The columns that name it."""
    task: SandboxTask | None
    """None: there is nothing to run, and `verdict` says why."""
    program_hash: str
    verdict: CheckResult | None = None


def executions(responses: pa.Table, items: pa.Table, timeout_s: float) -> list[Execution]:
    """One per answered response to an item whose scorer runs code, in their order.

    `responses`: rows of `qa_responses`; `items`: rows of `qa_items`. What is empty or no Python has its verdict at once.
    """
    references = _references(items)
    wanted = pc.is_in(responses["item_id"], pa.array(list(references), pa.string()))
    answered = responses.filter(pc.and_(wanted, pc.equal(responses["call_status"], "answered")))
    texts = answered["response"].to_pylist()
    named = answered.select(list(_EXECUTED_NAMES)).to_pylist()
    return [_execution(row, text, references[row["item_id"]], timeout_s) for row, text in zip(named, texts, strict=True)]


def known_verdicts(earlier: pa.Table, level: str | None) -> dict[str, CheckResult]:
    """By program hash what came of programs that were run before at the same level: they are not run again."""
    decided = earlier.filter(
        pc.and_(
            pc.equal(earlier["isolation"], level or ""),
            pc.invert(pc.is_in(earlier["verdict"], pa.array(UNDECIDED_CHECKS, pa.string()))),
        )
    )
    return {
        row["program_hash"]: CheckResult(
            row["verdict"], row["message"] or "", row["isolation"], row["python"], row["wall_s"] or 0.0, 0, tuple(row["flags"])
        )
        for row in decided.to_pylist()
    }


def to_run(planned: Sequence[Execution], known: Mapping[str, CheckResult]) -> dict[str, SandboxTask]:
    """By program hash the programs that must be run, each once."""
    return {one.program_hash: one.task for one in planned if one.task is not None and one.program_hash not in known}


def execution_rows(planned: Sequence[Execution], results: Mapping[str, CheckResult]) -> pa.Table:
    """The rows of `qa_executions`, in the order of the executions. `results`: by program hash."""
    rows = []
    for one in planned:
        result = one.verdict or results[one.program_hash]
        rows.append(
            {
                **one.response,
                "program_hash": one.program_hash,
                "verdict": result.status,
                "message": result.detail or None,
                "wall_s": result.seconds,
                "isolation": result.level,
                "python": result.python,
                "flags": list(result.flags),
            }
        )
    return pa.Table.from_pylist(rows, schema=QA_EXECUTIONS)


def rows_so_far(planned: Sequence[Execution], results: Mapping[str, CheckResult], earlier: pa.Table | None) -> pa.Table:
    """One row per response of which anything is known before all programs were run: the new row, else the earlier one.

    `results`: by program hash, of the programs that have come to an end. `earlier`: rows of `qa_executions` before this run, of whatever level.
    """
    done = [one.verdict is not None or one.program_hash in results for one in planned]
    rows = execution_rows([one for one, known in zip(planned, done, strict=True) if known], results)
    if earlier is None:
        return rows
    waiting = {_response_of(one.response) for one, known in zip(planned, done, strict=True) if not known}
    kept = [_response_of(row) in waiting for row in earlier.select(list(QA_RESPONSE_KEY)).to_pylist()]
    return pa.concat_tables([rows, earlier.filter(pa.array(kept, pa.bool_()))])


def _response_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in QA_RESPONSE_KEY)


def _references(items: pa.Table) -> dict[str, Mapping[str, str]]:
    columns = (items[name].to_pylist() for name in ("item_id", "scorers", "reference"))
    return {item: json.loads(reference) for item, scorers, reference in zip(*columns, strict=True) if CODE_SCORER in scorers}


def _execution(row: Mapping[str, Any], text: str | None, reference: Mapping[str, str], timeout_s: float) -> Execution:
    prompt, entry_point, tests = reference["prompt"], reference["entry_point"], reference["test"]
    program = program_of(text, prompt, entry_point)
    if program.fault:
        verdict = CheckResult(program.fault, program.detail or "")
        return Execution(row, None, digest("program", program.fault, entry_point), verdict)
    helpers = helpers_of(prompt)
    key = digest("program", CODE_VERSION, program.source, entry_point, tests, helpers, timeout_s)
    return Execution(row, SandboxTask(program.source, entry_point, tests, helpers), key)
