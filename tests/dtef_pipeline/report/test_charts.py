"""The charts: right places, names for those who cannot see them, colours that can be told apart."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.report.charts import Mark, drift_lines, forest, heat_map
from dtef_pipeline.report.svg import DARK, LIGHT, across, domain, ticks
from tests.made.boards import board, segments

MARKS = [Mark("ceiling", 0.9, "ceiling"), Mark("others", 0.75, "others"), Mark("population", 0.8, "population")]


def snapshots() -> pd.DataFrame:
    rows = pd.DataFrame({"snapshot": ["base", "2026-01-02"], "score": [0.5, 0.6], "model": "<b>", "model_variant": "v"})
    rows = rows.assign(difference=[0.0, 0.1], compared=True, in_baseline=[True, False], n_shared=10, n_prompts=10)
    rows = rows.assign(parse_rate=1.0, log10_e=0.0, served_models=[[], []], fingerprints=[[], []])
    return rows.assign(way="context 0")


def of_places(frame: pd.DataFrame) -> str:
    return heat_map(frame, ["attribute", "segment"], "segments")


def of_snapshots(frame: pd.DataFrame) -> str:
    return drift_lines(frame)


ALL = [(forest, board()), (of_places, segments()), (of_snapshots, snapshots())]


@pytest.mark.parametrize(("chart", "frame"), ALL)
def test_a_chart_that_stands_alone_is_an_image_with_a_name(chart: object, frame: pd.DataFrame) -> None:
    drawn = chart(frame)  # type: ignore[operator]
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["aria-label"]
    assert float(root.attrib["height"]) > 0
    assert "<b>" not in drawn
    assert drawn == chart(frame)  # type: ignore[operator]


@pytest.mark.parametrize(("chart", "frame"), ALL)
def test_a_chart_of_no_rows_is_a_drawing_all_the_same(chart: object, frame: pd.DataFrame) -> None:
    ElementTree.fromstring(chart(frame.head(0)))  # type: ignore[operator]


def test_dots_are_where_the_scores_are() -> None:
    low, high = domain([0.7, 0.82, 0.9, 0.8, 0.75])
    middle = [float(x) for x in re.findall(r'circle cx="([\d.]+)%"', forest(board(), MARKS))]
    place = across(low, high)
    assert middle == pytest.approx([place(0.8), place(0.75), place(0.7)], abs=0.01)


@pytest.mark.parametrize("values", [[0.71, 0.83], [0.0, 1.0], [0.5], [-0.31, 0.002], [1e-6, 2e-6], [12.0, 450.0]])
def test_an_axis_holds_all_values_between_round_ends(values: list[float]) -> None:
    low, high = domain(values)
    marks = ticks(low, high)
    assert low <= min(values) + 1e-9
    assert max(values) <= high + 1e-9
    assert 3 <= len(marks) <= 12
    assert marks[0] >= low - 1e-9
    assert marks[-1] <= high + 1e-9
    assert np.diff(marks) == pytest.approx(np.full(len(marks) - 1, marks[1] - marks[0]))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio as WCAG 2 defines it: 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_and_marks_can_be_told_from_the_ground(theme: str) -> None:
    colours = dict(part.removeprefix("--").split(":") for part in theme.split(";"))
    for name in ("ink", "soft", "model"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
    for name in ("reference", "mark", "ceiling"):
        assert contrast(colours[name], colours["paper"]) >= 3, name
