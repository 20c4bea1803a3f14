"""How many judgements are planned, before they are made."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.rubric.judge_requests import count_judged_criteria, iterate_judgings
from dtef_pipeline.rubric.tables import RUBRIC_CRITERIA, RUBRIC_PROMPTS, RUBRIC_RESPONSES

JUDGING = tuple(JudgeConfig(approach, ModelSpec(name="j", model="openai/j")) for approach in ("standard", "prompt-aware"))
NAMED = st.sampled_from("abcd")


def rows_of(schema: pa.Schema, rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


@given(
    st.lists(st.tuples(NAMED, st.sampled_from(["ok", "empty", "error"])), max_size=12),
    st.lists(st.tuples(NAMED, st.sampled_from(["text", "function"])), max_size=12),
    st.integers(1, 3),
)
def test_as_many_judgements_are_counted_as_are_made(
    answered: list[tuple[str, str]], listed: list[tuple[str, str]], draws: int
) -> None:
    said = [{"role": "user", "text": "Say it."}]
    prompts = rows_of(RUBRIC_PROMPTS, [{"prompt": name, "messages": said} for name in "abcd"])
    responses = rows_of(RUBRIC_RESPONSES, [{"prompt": prompt, "status": status, "text": "x"} for prompt, status in answered])
    criteria = rows_of(RUBRIC_CRITERIA, [{"prompt": prompt, "kind": kind, "text": "c"} for prompt, kind in listed])
    each = count_judged_criteria(responses, criteria)
    assert each == sum(
        prompt == of and status == "ok" and kind == "text" for (prompt, status), (of, kind) in product(answered, listed)
    )
    assert len(list(iterate_judgings(responses, criteria, prompts, JUDGING, draws))) == each * len(JUDGING) * draws
