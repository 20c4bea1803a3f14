"""The predict stage over many partitions: what is asked together, what is kept, what a limit chooses, what baselines read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.baselines.baselines import COLUMNS, NEIGHBOUR_BASELINES
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from resources.warehouse import Warehouse
from tests.assets.survey.predict_setup import KEYS, LLM, UNIFORM, Answers, predict, put


@pytest.fixture
def house(tmp_path: Path) -> Warehouse:
    """Three partitions of four questions each, at context levels 0 and 2."""
    warehouse = Warehouse(tmp_path / "wh")
    for key in KEYS:
        put(warehouse, key, *({"question_text": f"Question number {q}?"} for q in range(4)))
    return warehouse


def test_partitions_of_one_window_are_asked_together(house: Warehouse) -> None:
    answers = Answers()
    predict(house, answers, KEYS, LLM)
    assert [len(batch) for batch in answers.batches] == [24]
    answers = Answers()
    predict(house, answers, KEYS, LLM, at_a_time=8)
    assert [len(batch) for batch in answers.batches] == [8, 8, 8]


def test_levels_questions_and_snapshot_narrow_what_is_asked(house: Warehouse) -> None:
    answers = Answers()
    made = predict(house, answers, KEYS[:1], LLM, context_levels=["2"], questions=3, snapshot="2026-01-01")
    rows = made[KEYS[0]]
    assert set(rows["context_level"].to_pylist()) == {"2"}
    assert rows["question_id"].to_pylist() == ["q0", "q1", "q2"]
    assert {request.snapshot for request in answers.batches[0]} == {"2026-01-01"}


def test_a_run_of_one_model_more_keeps_the_earlier_ones(house: Warehouse) -> None:
    before = predict(house, Answers(), KEYS, LLM)
    after = predict(house, Answers(), KEYS, UNIFORM)
    for key in KEYS:
        kept = [row for row in after[key].to_pylist() if row["model"] == "m"]
        assert kept == before[key].to_pylist()
        assert len(after[key]) == 2 * len(kept)


class TestLimits:
    def chosen(self, house: Warehouse, keys: Sequence[str], most: int, **options: Any) -> set[str]:
        answers = Answers()
        predict(house, answers, keys, UNIFORM, LLM, limits={"m": most}, **options)
        return {request.prompt_id for batch in answers.batches for request in batch}

    def test_a_limit_is_on_the_prompts_of_the_whole_run_and_always_the_same(self, house: Warehouse) -> None:
        first = self.chosen(house, KEYS, 7)
        assert len(first) == 7
        assert self.chosen(house, KEYS[::-1], 7) == first
        assert self.chosen(house, KEYS, 7, snapshot="2026-01-02") == first

    def test_a_limit_chooses_the_same_questions_in_every_condition(self, house: Warehouse) -> None:
        for key in KEYS[:2]:
            round_id, segment = split_partition_key(key)
            at = {"round": round_id, "segment": segment}
            survey = house.read("survey_responses", **at)
            house.write("blueprints", build_blueprints(survey, BlueprintOptions(), BlueprintOptions(show_n=True)), **at)
        made = pa.concat_tables(predict(house, Answers(), KEYS[:2], LLM, limits={"m": 5}).values()).to_pylist()
        of_condition: dict[str, set[tuple[str, ...]]] = {}
        for row in made:
            of_condition.setdefault(row["condition"], set()).add((row["round"], row["segment"], row["question_id"]))
        plain, shown = of_condition.values()
        assert plain == shown
        assert len(plain) == 5

    def test_a_limit_leaves_other_models_alone_and_draws_do_not_count(self, house: Warehouse) -> None:
        made = predict(house, Answers(), KEYS, UNIFORM, LLM, limits={"m": 5}, draws=2)
        models = [model for rows in made.values() for model in rows["model"].to_pylist()]
        assert models.count("baseline/uniform") == 3 * 8 * 2
        rows = [row for table in made.values() for row in table.to_pylist() if row["model"] == "m"]
        assert len({row["prompt_id"] for row in rows}) == 5
        assert {row["draw"] for row in rows} == {0, 1}


class TestSharedPrompts:
    """Prompts about everyone are one text in all segments of a round."""

    CONDITION = "distribution/attribute-label+population"

    @pytest.fixture
    def everyone(self, house: Warehouse) -> Warehouse:
        for key in KEYS:
            round_id, segment = split_partition_key(key)
            at = {"round": round_id, "segment": segment}
            survey = house.read("survey_responses", **at)
            plain, all_of_them = (BlueprintOptions(("0", "2"), profile=profile) for profile in ("segment", "population"))
            house.write("blueprints", build_blueprints(survey, plain, all_of_them), **at)
        return house

    def test_they_are_asked_once_for_all_segments_and_answer_in_each(self, everyone: Warehouse) -> None:
        answers = Answers()
        made = predict(everyone, answers, KEYS[:2], LLM, conditions=[self.CONDITION])
        assert len(answers.answered) == 4 * 2
        kenya, chile = (made[key].to_pylist() for key in KEYS[:2])
        assert [row["request_key"] for row in kenya] == [row["request_key"] for row in chile]
        assert {row["call_status"] for row in [*kenya, *chile]} == {"answered"}
        plain = Answers()
        predict(everyone, plain, KEYS[:2], LLM, conditions=["distribution/attribute-label"])
        assert len(plain.answered) == 2 * 4 * 2

    def test_one_that_fails_is_an_error_in_each_segment(self, everyone: Warehouse) -> None:
        first = Answers()
        predict(everyone, first, KEYS[:2], LLM, conditions=[self.CONDITION])
        refused = first.batches[0][0].key
        made = predict(everyone, Answers([refused]), KEYS[:2], LLM, conditions=[self.CONDITION])
        failed = [[row["request_key"] for row in rows.to_pylist() if row["call_status"] == "error"] for rows in made.values()]
        assert failed == [[refused], [refused]]


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
