"""The shared part of MMLU: one run makes all its subjects known."""

from __future__ import annotations

from collections import Counter

import dagster as dg

from tests.assets.qa.conftest import QaPipeline
from tests.made.shared_cases import shared


def test_mmlu_is_read_as_57_parts_in_one_run(qa: QaPipeline) -> None:
    keys = qa.add("mmlu", shared("benchmarks/mmlu"))
    assert len(keys) == 57
    ran = qa.run(["qa_items"])
    assert (ran.failures, len(ran.run_ids)) == ((), 1)
    items = qa.table("qa_items")
    assert len(items) == 1026
    assert set(Counter(items["part"].to_pylist()).values()) == {18}
    assert len(qa.table("qa_examples")) == 285
    # The options of items are texts, also where they say None.
    assert not any(option is None or option == "nan" for options in items["options"].to_pylist() for option in options)
    made = qa.instance.get_materialized_partitions(dg.AssetKey("qa_items"))
    assert set(made) == set(keys)
