"""Tables of agreement, of criteria that judges disagree on, and of what became of each judge's calls."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.rubric.rubric_roll_ups import build_agreement_table, find_script, judge_table, list_disagreed_criteria
from dtef_pipeline.statistics.agreement import agreement
from tests.made.rubric_tables import PLACE, RESPONSE, rubric_tables

MADE = rubric_tables(prompts=8, judges=("s(x)", "p(x)", "h(y)"))
ROWS = MADE.judgements
SPENT = pd.DataFrame({"judge": ["s(x)", "p(x)"], "calls": [9, 7], "cost_usd": [0.5, None]})


def test_each_cut_is_the_alpha_of_its_own_judgements() -> None:
    found = build_agreement_table(ROWS, MADE.criteria).set_index(["cut", "value"])
    unit = ROWS.groupby([*RESPONSE, *PLACE], dropna=False).ngroup()
    two = ROWS["judge"].isin(["s(x)", "p(x)"])
    path = ROWS["path"].notna()
    cuts = {
        ("overall", "all"): np.ones(len(ROWS), dtype=bool),
        ("blueprint", "b1"): ROWS["blueprint"] == "b1",
        ("judges", "p(x) x s(x)"): two,
        ("criterion", "should, alternative path"): path,
        ("criterion", "should_not"): ROWS["block"] == "should_not",
        ("language", "Latin"): np.ones(len(ROWS), dtype=bool),
    }
    for key, here in cuts.items():
        assert found.loc[key, "alpha"] == pytest.approx(
            agreement(ROWS.loc[here, "score"], unit[here], unit[here])["alpha"].iloc[0]
        )
        assert found.loc[key, "low"] < found.loc[key, "alpha"] < found.loc[key, "high"]
    assert len(found) == 1 + 2 + 3 + 3 + 1
    assert found.loc[("overall", "all"), "n_clusters"] == 16
    assert set(found["reading"]) <= {"reliable", "tentative", "unreliable"}


def test_one_judge_has_no_agreement_and_repeats_of_it_are_none() -> None:
    one = ROWS[ROWS["judge"] == "s(x)"]
    twice = one.assign(judge_draw=1)
    for rows in (one, twice.merge(one, how="outer")):
        found = build_agreement_table(rows, MADE.criteria)
        assert found["alpha"].isna().all()
        assert (found["reason"] != "").all()
        assert "judges" not in set(found["cut"])


def test_criteria_that_judges_disagree_on_are_listed_worst_first() -> None:
    split = (ROWS["prompt"] == "p2") & (ROWS["position"] == 1) & (ROWS["blueprint"] == "b0")
    agreed = ROWS.assign(score=0.5)
    agreed.loc[split, "score"] = np.where(ROWS.loc[split, "judge"] == "s(x)", 0, 1)
    found = list_disagreed_criteria(agreed, MADE.criteria)
    (row,) = found.to_dict("records")
    assert (row["blueprint"], row["prompt"], row["position"], row["n_responses"]) == ("b0", "p2", 1, 4)
    assert row["mean_sd"] == pytest.approx(np.std([0, 1, 1]))
    assert row["text"] == "Criterion 1 of p2"
    assert list_disagreed_criteria(agreed[agreed["judge"] == "s(x)"], MADE.criteria).empty


def test_a_judge_above_5_percent_unreadable_is_flagged() -> None:
    rows = ROWS.reset_index(drop=True)
    bad = rows.index[rows["judge"] == "p(x)"][:20]
    rows.loc[bad, ["score", "reason"]] = [None, "unreadable"]
    rows.loc[rows.index[rows["judge"] == "h(y)"][:10], ["score", "reason"]] = [None, "error"]
    found = judge_table(rows, SPENT).set_index("judge")
    n = len(rows) // 3
    assert found["n"].tolist() == [n] * 3
    assert found["n_unreadable"].tolist() == [0, 20, 0]
    assert found.loc["p(x)", "unreadable"] == pytest.approx(20 / n)
    assert found.loc["h(y)", ["n_failed", "unreadable"]].tolist() == [10, 0]
    assert found.loc["h(y)", "partial"] == pytest.approx(10 / n)
    assert found["flagged"].to_dict() == {"h(y)": False, "p(x)": 20 / n > 0.05, "s(x)": False}


def test_judges_without_a_reply_have_no_calls_and_unknown_costs_stay_unknown() -> None:
    found = judge_table(ROWS, SPENT).set_index("judge")
    assert found["calls"].to_dict() == {"h(y)": 0, "p(x)": 7, "s(x)": 9}
    assert found["cost_usd"].isna().to_dict() == {"h(y)": True, "p(x)": True, "s(x)": False}


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Explains the law", "Latin"),
        ("कानून समझाता है (PMAY)", "Devanagari"),
        ("法律を説明する", "Japanese"),
        ("解释法律", "Cjk"),
        ("Законы", "Cyrillic"),
        ("12 + 3", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_script_of_a_text_is_that_of_most_letters(text: str, script: str) -> None:
    assert find_script(text) == script
