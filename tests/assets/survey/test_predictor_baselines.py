"""Baselines in the predict stage that read more than their own partition: other segments of the round, earlier rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.survey.baselines.baselines import NEIGHBOUR_BASELINES
from resources.warehouse import Warehouse
from tests.assets.survey.predict_setup import PREVIOUS, Answers, predict, put

NEAREST, BAYES = (ModelSpec(name=name, model=name) for name in NEIGHBOUR_BASELINES)


class TestNeighbours:
    """Baselines that read the other segments of the round."""

    @pytest.fixture
    def countries(self, tmp_path: Path) -> Warehouse:
        warehouse = Warehouse(tmp_path / "wh")
        for place, country in enumerate(("chile", "india", "kenya", "norway")):
            share = 0.2 + 0.2 * place
            rows = [{"question_text": f"Question number {q}?", "observed": [share, 1 - share, 0.0]} for q in range(4)]
            put(warehouse, f"S1/country:{country}", *rows)
        put(warehouse, "S1/gender:female", {"attribute": "gender"}, {"attribute": "gender"})
        return warehouse

    def keys(self, house: Warehouse) -> list[str]:
        return [f"S1/{segment}" for segment in house.values("survey_responses", "segment", round="S1")]

    def test_the_round_is_read_once_a_run(self, countries: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[str] = []
        reads = Warehouse.rows

        def counted(house: Warehouse, table: str, *to: Any, **given: Any) -> pa.Table:
            if table == "survey_responses" and given.get("columns"):
                read.append(given["segment"])
            return reads(house, table, *to, **given)

        monkeypatch.setattr(Warehouse, "rows", counted)
        predict(countries, Answers(), self.keys(countries), NEAREST, BAYES)
        assert read == countries.values("survey_responses", "segment", round="S1")

    def test_rerun_is_the_same_to_the_last_byte_and_so_is_one_partition_alone(self, countries: Warehouse) -> None:
        keys = self.keys(countries)
        made = predict(countries, Answers(), keys, NEAREST, BAYES)
        again = predict(countries, Answers(), keys[::-1], NEAREST, BAYES)
        assert all(made[key].equals(again[key]) for key in keys)
        assert predict(countries, Answers(), keys[1:2], NEAREST, BAYES)[keys[1]].equals(made[keys[1]])
        said = [row["response"] for row in made["S1/country:kenya"].to_pylist() if row["context_level"] == "2"]
        assert None not in said

    def test_an_unreadable_neighbour_is_the_failure_of_its_own_partition_alone(self, countries: Warehouse) -> None:
        keys = self.keys(countries)
        broken = "S1/country:india"
        Path(countries.folder("survey_responses", round="S1", segment="country:india"), "part-0.parquet").write_bytes(b"no")
        made = predict(countries, Answers(), [key for key in keys if key != broken], NEAREST, BAYES)
        assert len(made) == 4
        with pytest.raises(WarehouseError, match=r"cannot read .*india"):
            predict(countries, Answers(), [broken], NEAREST)


class TestPreviousRound:
    def answers(self, house: Warehouse, key: str) -> dict[str, str | None]:
        rows = predict(house, Answers(), [key], PREVIOUS, context_levels=["0"])[key]
        return dict(zip(rows["question_id"].to_pylist(), rows["response"].to_pylist(), strict=True))

    def test_wording_links_up_to_case_and_blanks_but_not_other_options(self, tmp_path: Path) -> None:
        house = Warehouse(tmp_path / "wh")
        put(house, "GD1/country:kenya", {"question_text": "Do  you\tagree?"}, {"question_text": "And this?"})
        put(
            house,
            "GD2/country:kenya",
            {"question_text": "do you AGREE?"},
            {"question_text": "And this?", "options": ["Agree", "Disagree", "Neutral"]},
        )
        found = self.answers(house, "GD2/country:kenya")
        assert found["q0"] is not None
        assert found["q1"] is None
