"""Which comparisons are adjusted together; and what parsed scores alone say beside the published policy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.false_positive_rate import any_found
from dtef_pipeline.boards.comparisons import comparisons, tiers
from dtef_pipeline.boards.families import AMONG_MODELS, OF_BASELINES, OF_REFERENCE
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, UNIFORM
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from tests.dtef_pipeline.boards.test_comparisons import WHO, by_definition, lopsided, of

TESTS = SurveyBoardOptions()
PARSED = {"difference": "parsed_difference", "low": "parsed_low", "high": "parsed_high", "p": "parsed_p"} | {
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
        table = comparisons(panel("a", "b", "c", LEAVE_ONE_OUT, UNIFORM), TESTS)
        found = {family: {frozenset(pair) for pair in rows[WHO].to_numpy()} for family, rows in table.groupby("family")}
        assert found[AMONG_MODELS] == {frozenset(pair) for pair in ("ab", "ac", "bc")}
        assert found[OF_REFERENCE] == {frozenset({model, LEAVE_ONE_OUT}) for model in "abc"}
        assert found[OF_BASELINES] == {frozenset({other, UNIFORM}) for other in ("a", "b", "c", LEAVE_ONE_OUT)}

    def test_p_is_adjusted_by_holm_within_each_family_and_way_of_asking(self) -> None:
        one = panel("a", "b", "c", LEAVE_ONE_OUT, UNIFORM, seed=2)
        table = comparisons(pd.concat([one, one.assign(context_level="5")]), TESTS)
        for _, rows in table.groupby(["family", "context_level"]):
            assert rows["p_adjusted"].tolist() == pytest.approx(holm(rows["p"]).tolist())

    def test_baselines_on_the_board_change_nothing_about_the_models(self) -> None:
        models, both = (comparisons(panel("a", "b", "c", *names, seed=3), TESTS) for names in ((), (LEAVE_ONE_OUT, UNIFORM)))
        of_models = both[both["family"] == AMONG_MODELS].reset_index(drop=True)
        pd.testing.assert_series_equal(models["p_adjusted"], of_models["p_adjusted"])


class TestParsedScores:
    def test_where_all_was_read_they_say_the_same(self) -> None:
        table = comparisons(lopsided(3), TESTS)
        for name, parsed in PARSED.items():
            pd.testing.assert_series_equal(table[name], table[parsed], check_names=False)
        assert set(table["parsed_note"]) == {""}

    @pytest.mark.parametrize("seed", [1, 2])
    def test_as_plain_loops_over_the_cells_that_both_answered_readably_say(self, seed: int) -> None:
        frame = unread(lopsided(seed), "m1", slice(None, None, 4))
        frame.loc[frame.index[::7], "parsed_score"] *= 0.9  # a draw of several that was not read
        readable = frame.assign(score=frame["parsed_score"])
        for row in comparisons(frame, TESTS).to_dict("records"):
            expected = by_definition(readable, row["model"], row["other_model"])
            found = {name: row[PARSED[name]] for name in ("n_pairs", "difference", "p")}
            assert found == pytest.approx({name: expected[name] for name in found})
            assert row["parsed_low"] < row["parsed_difference"] < row["parsed_high"]

    def test_a_model_with_a_fifth_unread_is_worse_by_the_policy_alone(self) -> None:
        frame = unread(panel("equal", "often-unread", questions=60, seed=4), "often-unread", slice(None, None, 5))
        (row,) = comparisons(frame, TESTS).to_dict("records")
        assert (row["model"], row["verdict"], row["parsed_verdict"]) == ("equal", "better", "not told apart")
        assert (row["n_pairs"], row["n_parsed_pairs"]) == (60, 48)
        assert row["parsed_note"] == (
            "better by the published policy, which gives unread responses 0 to 0.1; "
            "on the pairs that both answered readably: no difference is found"
        )
        assert row["note"] == ""

    def test_a_model_that_knows_more_and_is_read_less_is_worse_by_the_one_and_better_by_the_other(self) -> None:
        frame = panel("knows-less", "often-unread", questions=40, seed=5)
        frame[["score", "parsed_score"]] += 0.1 * (frame[["model"]] == "often-unread").to_numpy()
        (row,) = comparisons(unread(frame, "often-unread", slice(None, None, 2)), TESTS).to_dict("records")
        assert (row["model"], row["verdict"], row["parsed_verdict"]) == ("knows-less", "better", "worse")
        assert row["parsed_high"] < 0 < row["low"]
        assert row["parsed_note"].endswith("on the pairs that both answered readably: the other model is better")

    def test_a_model_that_cannot_be_read_at_all_is_not_compared_by_parsed_scores(self) -> None:
        frame = unread(panel("a", "b", "unread"), "unread", slice(None))
        table = comparisons(frame, TESTS).set_index("other_model")
        row = table.loc["unread"].iloc[0]
        assert (row["verdict"], row["parsed_verdict"], row["n_parsed_pairs"]) == ("better", "not tested", 0)
        assert row[["parsed_difference", "parsed_low", "parsed_p", "parsed_p_adjusted"]].isna().all()
        assert row["parsed_note"].endswith(
            ": nothing can be tested (no interval and no test: 0 batteries, at least 5 are needed)"
        )
        assert table.loc["b" if "b" in table.index else "a", "parsed_note"] == ""

    def test_noise_of_the_parsed_part_of_a_cell_is_that_of_the_cell_times_responses_per_parsed_one(self) -> None:
        frame = panel("a", "b", questions=20)
        drawn = np.random.default_rng(6).normal(0, 0.1, size=(40, 20)).astype(np.float32)
        one = comparisons(frame, TESTS, drawn)
        half = frame.assign(score=frame["score"] / 2, n_answered=2)
        (two,) = comparisons(half, TESTS, drawn / 2).to_dict("records")
        assert [two["parsed_low"], two["parsed_high"]] == pytest.approx(one[["low", "high"]].iloc[0].tolist())
        assert two["high"] - two["low"] == pytest.approx((two["parsed_high"] - two["parsed_low"]) / 2)

    def test_tiers_need_none_of_it(self) -> None:
        frame = unread(panel("a", "b"), "b", slice(None, None, 3))
        table = comparisons(frame, TESTS, parsed=False)
        assert table[[*PARSED.values()]].drop(columns="parsed_verdict").isna().all().all()
        board = frame[["model", "model_variant", "context_level", "condition"]].drop_duplicates().assign(rank=[1, 2])
        pd.testing.assert_series_equal(tiers(board, table, KEYS), tiers(board, comparisons(frame, TESTS), KEYS))


@pytest.mark.parametrize("sizes", [(13, 7, 5, 5, 4, 2, *(1,) * 7), (14, 7, 5, 5, 2, 2, *(1,) * 19)])
def test_of_28_pairs_of_equal_models_any_is_found_in_5_percent_whatever_baselines_stand_beside(sizes: tuple[int, ...]) -> None:
    """Real battery sizes, a better model and two worse marginals. Of 100 sets the standard error is 2.2 points; three are allowed on top."""
    shifts = dict.fromkeys((f"m{place}" for place in range(8)), 0.0) | {"good": 0.1, LEAVE_ONE_OUT: -0.2, UNIFORM: -0.2}
    assert any_found(shifts, sets=100, seed=1, sizes=sizes) < 0.05 + 0.065
