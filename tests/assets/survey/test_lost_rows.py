"""The command that asks again for rows that cannot be made again asks no more pairs than there were."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from assets.survey.lost_rows import LostPredictions, LostRows
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.tables import PREDICTIONS
from tests.assets.survey.predict_setup import LLM

ORDER: Mapping[str, tuple[int, int]] = {"q0": (0, 3), "q1": (1, 0), "q2": (2, 9), "q3": (3, 1)}
AT = {"round": "S1", "segment": "country:kenya", "snapshot": "base"}


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (("q0", "q1", "q2", "q3"), ""),
        (("q0", "q1"), " --questions 2"),
        (("q1", "q3"), " --sample-segments 2"),
        (("q1",), " --questions 2 --sample-segments 1"),
        (("q0", "q1", "q3"), " --sample-segments 4"),
    ],
)
def test_a_sample_is_asked_again_as_that_sample(asked: tuple[str, ...], options: str) -> None:
    # Without its sample, the command asked all questions up to the last one in the draw.
    rows = frozenset((question, BlueprintOptions().condition, "0", "0") for question in asked)
    lost = LostPredictions(AT, [LostRows(LLM, 1, rows, len(rows))], [], is_told=True)
    with pytest.raises(WarehouseError) as raised:
        lost.require_all([PREDICTIONS.empty_table()], (), ORDER, "dtef run")
    assert f"`dtef run --round S1 --segment country:kenya{options} --model {LLM.name}`" in str(raised.value)
