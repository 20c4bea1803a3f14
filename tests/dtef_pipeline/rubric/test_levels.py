"""Keys of the levels, and names of variants as people are shown them."""

from __future__ import annotations

import pandas as pd
import pytest

from dtef_pipeline.rubric.levels import display_id, group_rows


@pytest.mark.parametrize(
    ("temperature", "place", "systems", "expected"),
    [
        (0.0, 0, 1, "openai:gpt-4o[temp:0]"),
        (0.5, 0, 1, "openai:gpt-4o[temp:0.5]"),
        (0.5, 1, 2, "openai:gpt-4o[temp:0.5][sp_idx:1]"),
        (0.5, 0, 2, "openai:gpt-4o[temp:0.5][sp_idx:0]"),
        (None, 0, 1, "openai:gpt-4o"),
    ],
)
def test_display_id_by_hand(temperature: float | None, place: int, systems: int, expected: str) -> None:
    assert display_id("openai:gpt-4o", temperature, place, systems) == expected


def test_groups_stand_in_the_order_of_their_keys_and_a_null_is_one() -> None:
    frame = pd.DataFrame({"a": ["y", "x", "y", "x"], "b": [None, 2.0, 1.0, 2.0]})
    found = group_rows(frame, ("a", "b"))
    assert found.code.tolist() == [2, 0, 1, 0]
    assert found.keys["a"].tolist() == ["x", "y", "y"]
