"""Which comparisons are adjusted together; and what parsed scores alone say beside the published policy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.false_positive_rate import any_found
from dtef_pipeline.boards.comparisons import compare_all_pairs
from dtef_pipeline.boards.families import AMONG_MODELS, OF_BASELINES, OF_REFERENCE
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, UNIFORM
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.dtef_pipeline.boards.test_comparisons import WHO, by_definition, lopsided, of

TESTS = SurveyBoardOptions()
PARSED = {
    "difference": "parsed_difference",
    "p": "parsed_p",
    "n_pairs": "n_parsed_pairs",
    "p_adjusted": "parsed_p_adjusted",
    "verdict": "parsed_verdict",
}


def panel(*names: str, questions: int = 12, seed: int = 1) -> pd.DataFrame:
    """Models that differ by chance alone."""
    generator = np.random.default_rng(seed)
    return pd.concat([of(name, *generator.normal(0.6, 0.02, questions)) for name in names], ignore_index=True)


def unread(frame: pd.DataFrame, model: str, places: slice) -> pd.DataFrame:
    """The frame with some responses of a model that could not be read: 0 under the policy."""
    rows = frame.index[frame["model"] == model][places]
    found = frame.copy()
    found.loc[rows, ["score", "n_ok"]] = 0
    found.loc[rows, "parsed_score"] = np.nan
    return found


class TestFamilies:
    def test_pairs_of_models_the_reference_and_other_baselines_are_three_families(self) -> None:
        table = compare_all_pairs(panel("a", "b", "c", LEAVE_ONE_OUT, UNIFORM), TESTS)
        found = {family: {frozenset(pair) for pair in rows[WHO].to_numpy()} for family, rows in table.groupby("adjusted_over")}
        assert found[AMONG_MODELS] == {frozenset(pair) for pair in ("ab", "ac", "bc")}
        assert found[OF_REFERENCE] == {frozenset({model, LEAVE_ONE_OUT}) for model in "abc"}
        assert found[OF_BASELINES] == {frozenset({other, UNIFORM}) for other in ("a", "b", "c", LEAVE_ONE_OUT)}

    def test_p_is_adjusted_by_holm_within_each_family_and_way_of_asking(self) -> None:
        one = panel("a", "b", "c", LEAVE_ONE_OUT, UNIFORM, seed=2)
        table = compare_all_pairs(pd.concat([one, one.assign(context_level="5")]), TESTS)
        for _, rows in table.groupby(["adjusted_over", "context_level"]):
            assert rows["p_adjusted"].tolist() == pytest.approx(holm(rows["p"]).tolist())


class TestParsedScores:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_as_plain_loops_over_the_cells_that_both_answered_readably_say(self, seed: int) -> None:
        frame = unread(lopsided(seed), "m1", slice(None, None, 4))
        frame.loc[frame.index[::7], "parsed_score"] *= 0.9  # a draw of several that was not read
        readable = frame.assign(score=frame["parsed_score"])
        for row in compare_all_pairs(frame, TESTS).to_dict("records"):
            expected = by_definition(readable, row["model"], row["other_model"])
            found = {name: row[PARSED[name]] for name in ("n_pairs", "difference", "p")}
            assert found == pytest.approx({name: expected[name] for name in found})

    def test_a_model_with_a_fifth_unread_is_worse_by_the_policy_alone(self) -> None:
        frame = unread(panel("equal", "often-unread", questions=60, seed=4), "often-unread", slice(None, None, 5))
        (row,) = compare_all_pairs(frame, TESTS).to_dict("records")
        assert (row["model"], row["verdict"], row["parsed_verdict"]) == ("equal", "better", "no clear difference")
        assert (row["n_pairs"], row["n_parsed_pairs"]) == (60, 48)
        assert row["parsed_note"] == (
            "better by the published policy, which gives unread responses 0 to 0.1; "
            "on the pairs that both answered readably: no difference is found"
        )
        assert row["note"] == ""

    def test_a_model_that_cannot_be_read_at_all_is_not_compared_by_parsed_scores(self) -> None:
        frame = unread(panel("a", "b", "unread"), "unread", slice(None))
        table = compare_all_pairs(frame, TESTS).set_index("other_model")
        row = table.loc["unread"].iloc[0]
        assert (row["verdict"], row["parsed_verdict"], row["n_parsed_pairs"]) == ("better", "not tested", 0)
        assert row[["parsed_difference", "parsed_p", "parsed_p_adjusted"]].isna().all()
        assert row["parsed_note"].endswith(
            ": nothing can be tested (no interval and no test: 0 batteries, at least 5 are needed)"
        )
        assert table.loc["b" if "b" in table.index else "a", "parsed_note"] == ""


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(13, 7, 5, 5, 4, 2, *(1,) * 7), (14, 7, 5, 5, 2, 2, *(1,) * 19)])
def test_of_28_pairs_of_equal_models_any_is_found_in_5_percent_whatever_baselines_stand_beside(sizes: tuple[int, ...]) -> None:
    """Real battery sizes, a better model and two worse marginals. Of 100 sets the standard error is 2.2 points; three are allowed on top."""
    shifts = dict.fromkeys((f"m{place}" for place in range(8)), 0.0) | {"good": 0.1, LEAVE_ONE_OUT: -0.2, UNIFORM: -0.2}
    assert any_found(shifts, sets=100, seed=1, sizes=sizes) < 0.05 + 0.065
