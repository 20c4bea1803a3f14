"""Baselines in the predict stage that read the other segments of the round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.survey.baselines.baselines import NEIGHBOUR_BASELINES
from dtef_pipeline.survey.baselines.neighbours import COLUMNS
from resources.warehouse import Warehouse
from tests.assets.survey.predict_setup import Answers, predict, put

NEAREST, BAYES = (ModelSpec(name=name, model=name) for name in NEIGHBOUR_BASELINES)


@pytest.fixture
def countries(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path / "wh")
    for place, country in enumerate(("chile", "india", "kenya", "norway")):
        share = 0.2 + 0.2 * place
        rows = [{"question_text": f"Question number {q}?", "observed": [share, 1 - share, 0.0]} for q in range(4)]
        put(warehouse, f"S1/country:{country}", *rows)
    put(warehouse, "S1/gender:female", {"attribute": "gender"}, {"attribute": "gender"})
    return warehouse


def keys_of(house: Warehouse) -> list[str]:
    return [f"S1/{segment}" for segment in house.values("survey_responses", "segment", round="S1")]


def test_the_round_is_read_once_a_run(countries: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[dict[str, Any]] = []
    reads = Warehouse.rows

    def counted(house: Warehouse, table: str, **given: Any) -> pa.Table:
        read.append({"table": table, **given})
        return reads(house, table, **given)

    monkeypatch.setattr(Warehouse, "rows", counted)
    predict(countries, Answers(), keys_of(countries), NEAREST, BAYES)
    assert [one for one in read if one.get("round") == "S1" and "segment" not in one] == [
        {"table": "survey_responses", "columns": COLUMNS, "round": "S1"}
    ]


def test_rerun_is_the_same_to_the_last_byte_and_so_is_one_partition_alone(countries: Warehouse) -> None:
    keys = keys_of(countries)
    made = predict(countries, Answers(), keys, NEAREST, BAYES)
    again = predict(countries, Answers(), keys[::-1], NEAREST, BAYES)
    assert all(made[key].equals(again[key]) for key in keys)
    assert predict(countries, Answers(), keys[1:2], NEAREST, BAYES)[keys[1]].equals(made[keys[1]])
    said = [row["response"] for row in made["S1/country:kenya"].to_pylist() if row["context_level"] == "2"]
    assert None not in said


def test_an_unreadable_neighbour_is_the_failure_of_its_own_partition_alone(countries: Warehouse) -> None:
    keys = keys_of(countries)
    broken = "S1/country:india"
    Path(countries.folder("survey_responses", round="S1", segment="country:india"), "part-0.parquet").write_bytes(b"no")
    made = predict(countries, Answers(), [key for key in keys if key != broken], NEAREST, BAYES)
    assert len(made) == 4
    with pytest.raises(WarehouseError, match=r"cannot read .*india"):
        predict(countries, Answers(), [broken], NEAREST)
