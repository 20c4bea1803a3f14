"""Corrected columns are of the board's own number, from labels of drawn prompts with their chances."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.rubric.label_corrections import BLUEPRINT_ROW, BOARD_ROW, compute_corrected, measure_known_classes, parts
from dtef_pipeline.rubric.label_sheet import build_label_items
from dtef_pipeline.rubric.tables import RUBRIC_LABELS
from tests.made.rubric_tables import CLASSES, RESPONSE, rubric_tables

MADE = rubric_tables(prompts=14, models=("a", "b", "c"))


def board_by_loops(responses: pd.DataFrame, column: str, row: tuple[str, ...]) -> dict[str, float]:
    """Draws, prompts by weight, variants, blueprints: one level after the other."""
    cell = ["blueprint", "model", "model_variant", "temperature", "system_index", "prompt"]
    cells = responses.groupby(cell)[[column, "weight"]].mean()
    cells["product"] = cells[column] * cells["weight"]
    sums = cells.groupby(level=cell[:-1]).sum()
    variants = sums["product"] / sums["weight"]
    of_blueprint = variants.groupby(level=["blueprint", "model"]).mean()
    found = of_blueprint if row == BLUEPRINT_ROW else of_blueprint.groupby(level="model").mean()
    return {str(key): float(value) for key, value in found.items()}


def scored(seed: int = 0) -> pd.DataFrame:
    """Responses with a score by judges and one by people, some missing, some drawn twice."""
    rng = np.random.default_rng(seed)
    twice = pd.concat([MADE.responses, MADE.responses[MADE.responses["model"] == "a"].assign(draw=1)])
    rows = twice.merge(MADE.prompts[["blueprint", "prompt", "weight"]])
    rows = rows[rng.random(len(rows)) < 0.85].reset_index(drop=True)
    hard = rows.groupby(["blueprint", "prompt"]).ngroup().map(pd.Series(rng.normal(0, 0.15, 40)))
    people = np.clip(0.6 + hard + rng.normal(0, 0.1, len(rows)), 0, 1)
    return rows.assign(judge_score=np.clip(people + 0.1 + rng.normal(0, 0.05, len(rows)), 0, 1), labelled=people)


@pytest.mark.parametrize("row", [BOARD_ROW, BLUEPRINT_ROW])
def test_parts_make_the_number_of_the_board_also_where_responses_are_missing(row: tuple[str, ...]) -> None:
    rows = scored()
    made = rows.assign(sum=parts(rows, row) * rows["judge_score"]).groupby(list(row))["sum"].sum()
    wanted = board_by_loops(rows, "judge_score", row)
    assert {str(key): value for key, value in made.items()} == pytest.approx(wanted)


def drawn_of(rows: pd.DataFrame, n: int, probability: float, seed: int = 1) -> pd.DataFrame:
    units = rows[["blueprint", "prompt"]].drop_duplicates().sort_values(["blueprint", "prompt"])
    chosen = units.sample(n, random_state=seed).index
    return units.assign(probability=probability, drawn=units.index.isin(chosen), seed=seed)


def test_a_part_of_the_prompts_corrects_the_bias_of_the_judges() -> None:
    rows = scored(3)
    found = compute_corrected(rows, drawn_of(rows, 14, 0.5)).set_index("model")
    truth = pd.Series(board_by_loops(rows, "labelled", BOARD_ROW))
    assert ((found["corrected"] - truth).abs() < (found["judge_score"] - truth).abs()).all()
    assert ((found["same_prompts_low"] <= truth) & (truth <= found["same_prompts_high"])).all()
    assert ((found["corrected_low"] < found["same_prompts_low"]) & (found["same_prompts_high"] < found["corrected_high"])).all()
    assert (found["prompts_needed"] <= found["n_prompts"]).all()


def test_the_power_of_judges_is_that_of_ppi_and_never_above_1() -> None:
    """Published was what predictions are multiplied by, which was 1.3 where half was labelled."""
    rows = scored()
    timid = rows.assign(judge_score=rows["labelled"] / 2)  # people's scores are twice the judges', so these are doubled
    for n in (8, 14, 24):
        assert compute_corrected(timid, drawn_of(rows, n, n / 28))["power"].between(0, 1).all()


def test_labels_of_prompts_that_were_not_drawn_play_no_part() -> None:
    rows = scored()
    drawn = drawn_of(rows, 14, 0.5)
    there = (
        rows.merge(drawn.loc[drawn["drawn"], ["blueprint", "prompt"]], how="left", indicator=True)["_merge"].to_numpy()
        == "both"
    )
    less = rows.assign(labelled=rows["labelled"].where(there))
    assert compute_corrected(less, drawn).equals(compute_corrected(rows, drawn))


def test_two_draws_are_one_whose_chance_is_to_be_in_either() -> None:
    rows = scored()
    both = [drawn_of(rows, 7, 0.25, seed) for seed in (1, 2)]
    either = both[0].assign(probability=1 - 0.75**2, drawn=both[0]["drawn"] | both[1]["drawn"])
    pd.testing.assert_frame_equal(compute_corrected(rows, pd.concat(both)), compute_corrected(rows, either))


def test_rows_of_a_blueprint_are_as_if_it_were_alone() -> None:
    rows, drawn = scored(), drawn_of(scored(), 14, 0.5)
    found = compute_corrected(rows, drawn, BLUEPRINT_ROW)
    alone = compute_corrected(rows[rows["blueprint"] == "b1"], drawn, BOARD_ROW)
    columns = ["corrected", "corrected_low", "same_prompts_high"]
    assert found.loc[found["blueprint"] == "b1", columns].to_numpy() == pytest.approx(alone[columns].to_numpy())


def test_few_labelled_prompts_have_no_interval_and_the_row_says_why() -> None:
    rows = scored()
    found = compute_corrected(rows, drawn_of(rows, 3, 0.1))
    assert found[["corrected_low", "same_prompts_high", "prompts_needed"]].isna().all(axis=None)
    assert "labelled prompts, at least 5 are needed" in found["reason"].iloc[0]


def labels_of(items: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
    names = {number: name for name, number in CLASSES.items()}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        (i, names[s], s, "Ada", None, at, n, "s.csv") for n, (i, s) in enumerate(zip(items["item"], scores, strict=True), 2)
    ]
    return pd.DataFrame(rows, columns=RUBRIC_LABELS.names)


def test_sensitivity_says_how_often_a_judge_knows_a_class_and_which_way_it_errs() -> None:
    items = build_label_items(MADE.responses, MADE.criteria, MADE.prompts)
    one = MADE.judgements[MADE.judgements["judge"] == "s(x)"]
    keys = [*RESPONSE, "block", "path", "position"]
    said = items.assign(path=items["path"].astype("Int64")).merge(one.assign(path=one["path"].astype("Int64")), on=keys)
    found = measure_known_classes(one, items, labels_of(said, said["score"].to_numpy()))
    assert found["same_class"].tolist() == pytest.approx([1.0] * 5)
    assert found["n"].sum() == len(one)
    lower = labels_of(said, np.clip(said["score"].to_numpy() - 0.25, 0, 1))
    shifted = measure_known_classes(one, items, lower).set_index("human_class")
    assert shifted.loc[0.25, "bias"] == pytest.approx(0.25)
    assert shifted.loc[0.25, ["same_class", "within_one_class"]].tolist() == [0, 1]
