"""A judge's liking for its own maker is found where it was planted, and not where there is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.rubric.rubric_roll_ups import ALL_JUDGES, estimate_self_preference, is_same_maker, remove_own_judges
from tests.made.worlds import judged_world


def by_dummies(rows: pd.DataFrame) -> float:
    """Gamma by least squares with a column for each item and each judge."""
    rows = rows[rows["score"].notna()]
    item = rows.groupby(["prompt", "position", "model"]).ngroup()
    columns = [
        pd.get_dummies(item),
        pd.get_dummies(rows["judge"]).iloc[:, 1:],
        pd.Series(is_same_maker(rows), index=rows.index),
    ]
    design = pd.concat(columns, axis=1).to_numpy(dtype=np.float64)
    return float(np.linalg.lstsq(design, rows["score"].to_numpy(), rcond=None)[0][-1])


def test_gamma_is_that_of_least_squares_with_all_items_and_judges() -> None:
    rows = judged_world(np.random.default_rng(1), prompts=12, gamma=0.1, missing=0.2)
    assert estimate_self_preference(rows)["gamma"].iloc[0] == pytest.approx(by_dummies(rows))


def test_where_one_of_two_judges_favours_its_maker_all_say_half_and_a_third_tells_which() -> None:
    # ja gives .1 more to its maker's models, jb nothing. With two makers alone it may be lenient as well.
    rows = judged_world(np.random.default_rng(1), prompts=8, missing=0)
    rows = rows.assign(score=0.5 + 0.1 * (is_same_maker(rows) & (rows["judge_model"] == "ja")))
    two = rows[rows["model"].str[0].isin(["a", "b"]) & rows["judge_model"].isin(["ja", "jb"])]
    found = estimate_self_preference(two)
    assert found["gamma"].iloc[0] == pytest.approx(0.05)
    assert found["gamma"].iloc[1:].isna().all()
    assert found["reason"].iloc[1:].str.startswith("cannot be separated").all()
    by_pair = estimate_self_preference(rows).iloc[1:].groupby("judge")["gamma"].mean()
    assert by_pair.to_dict() == pytest.approx({"standard(ja)": 0.1, "standard(jb)": 0.0}, abs=1e-9)


def test_a_planted_effect_is_found_and_its_pairs_are_flagged() -> None:
    found = estimate_self_preference(judged_world(np.random.default_rng(4), prompts=60, gamma=0.2))
    first = found.iloc[0]
    assert first["judge"] == ALL_JUDGES
    assert first["flagged"]
    assert first["low"] > 0
    assert 0.08 < first["gamma"] < 0.22  # classes end at 0 and 1, so that less than what was planted can show
    assert found.iloc[1:][["judge", "model", "maker"]].to_numpy().tolist() == [
        ["standard(ja)", "a1", "a"],
        ["standard(ja)", "a2", "a"],
        ["standard(jb)", "b1", "b"],
    ]
    assert found["flagged"].all()


def test_without_an_effect_few_are_flagged_and_intervals_hold_0() -> None:
    made = [estimate_self_preference(judged_world(np.random.default_rng([5, at]), prompts=25)) for at in range(25)]
    first = pd.DataFrame([found.iloc[0] for found in made])
    assert (first["p"] < 0.05).mean() <= 0.12
    assert np.mean([found["flagged"].iloc[1:].any() for found in made]) <= 0.12


def test_a_judge_who_is_harsh_to_its_own_is_not_flagged() -> None:
    found = estimate_self_preference(judged_world(np.random.default_rng(4), prompts=60, gamma=-0.2))
    assert found["gamma"].iloc[0] < 0
    assert not found["flagged"].any()


def test_should_not_points_count_the_other_way_round_and_neither_order_nor_strictness_matters() -> None:
    rows = judged_world(np.random.default_rng(6), gamma=0.1)
    turned = rows.assign(block="should_not", score=1 - rows["score"])
    strict = rows.assign(score=rows["score"] - 0.3 * (rows["judge_model"] == "jb")).sample(frac=1, random_state=1)
    expected, of_turned, of_strict = (
        estimate_self_preference(given)[["gamma", "low", "p", "p_adjusted"]].to_numpy() for given in (rows, turned, strict)
    )
    assert of_turned == pytest.approx(expected)
    assert of_strict == pytest.approx(expected)


def test_no_shared_maker_and_few_prompts_are_stated() -> None:
    rows = judged_world(np.random.default_rng(1), prompts=3)
    few = estimate_self_preference(rows).iloc[0]
    assert np.isnan(few["low"])
    assert "3 prompts" in few["reason"]
    nobody = estimate_self_preference(rows.assign(judge_variant="unknown"))
    assert len(nobody) == 1
    assert np.isnan(nobody["gamma"].iloc[0])
    assert "no judge shares a maker" in nobody["reason"].iloc[0]
    alone = estimate_self_preference(rows[rows["judge_model"] == "ja"])
    assert np.isnan(alone["gamma"].iloc[0])
    assert alone["reason"].str.startswith("no judge of another maker judged the same responses").all()


def test_judgements_by_the_own_maker_can_be_left_out() -> None:
    rows = judged_world(np.random.default_rng(1), prompts=5)
    left = remove_own_judges(pa.Table.from_pandas(rows)).to_pandas()
    assert not is_same_maker(left).any()
    assert len(left) == len(rows) - is_same_maker(rows).sum()
    # A maker that is not known is never the same as another unknown one.
    unknown = rows.assign(model_variant=rows["model"], judge_variant=rows["judge_model"])
    assert len(remove_own_judges(pa.Table.from_pandas(unknown))) == len(rows)
