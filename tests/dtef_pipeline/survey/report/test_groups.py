"""Rows that were asked alike stand together, and no others."""

from __future__ import annotations

import pandas as pd

from dtef_pipeline.survey.report.groups import asked_alike


def test_groups_come_most_context_first_and_never_mix() -> None:
    frame = pd.DataFrame({"context_level": ["0", "10", "5", "all", "5"], "condition": ["a", "a", "a", "a", "b"], "x": range(5)})
    assert [list(rows["x"]) for _, rows in asked_alike(frame)] == [[3], [1], [2], [4], [0]]
    assert [list(rows["x"]) for _, rows in asked_alike(frame, richest=True)] == [[3], [4]]
    assert list(asked_alike(frame.head(0))) == []
