"""Pairs of models: differences as plain loops compute them, what is adjusted together, and parsed scores beside the policy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.false_positive_rate import any_found
from dtef_pipeline.boards.comparisons import compare_all_pairs, list_contradictions, rank_ranges
from dtef_pipeline.boards.pairs import AMONG_MODELS, OF_BASELINES, OF_REFERENCE
from dtef_pipeline.statistics.cluster_robust import OF_OBSERVED
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, UNIFORM
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from tests.made.freedom import freedom_of
from tests.made.scores import as_cells

OPTIONS = SurveyBoardOptions()
WHO = ["model", "other_model"]


def cells(*rows: tuple[str, str, str, float | None], **given: Any) -> pd.DataFrame:
    """Rows (model, question, segment, score); the question is the cluster."""
    frame = pd.DataFrame(rows, columns=["model", "question_id", "segment", "score"])
    return as_cells(frame.astype({"score": float}), **given)


def of(model: str, *scores: float | None, **given: Any) -> pd.DataFrame:
    """Scores of a model on q0, q1, ... of one segment."""
    return cells(*((model, f"q{i}", "kenya", score) for i, score in enumerate(scores)), **given)


def lopsided(seed: int, models: int = 3) -> pd.DataFrame:
    """Questions in 1 to 6 segments, a third of the scores missing."""
    generator = np.random.default_rng(seed)
    rows = [
        (f"m{model}", f"q{question}", f"s{segment}", None if generator.random() < 0.33 else generator.random())
        for question in range(8)
        for segment in range(generator.integers(1, 7))
        for model in range(models)
    ]
    return cells(*rows)


def test_two_models_by_hand_the_better_one_first() -> None:
    frame = pd.concat([of("a", 0.5, 0.5, 0.5, 0.5, 0.5), of("b", 0.6, 0.7, 0.6, 0.4, 0.9)])
    (row,) = compare_all_pairs(frame, OPTIONS).to_dict("records")
    assert (row["model"], row["other_model"], row["n_pairs"], row["n_items"]) == ("b", "a", 5, 5)
    assert [row[name] for name in ("score", "other_score", "difference")] == pytest.approx([0.64, 0.5, 0.14])
    assert row["effect_size"] == pytest.approx(0.14 / np.std([0.1, 0.2, 0.1, -0.1, 0.4], ddof=1))
    expected = stats.ttest_1samp([0.1, 0.2, 0.1, -0.1, 0.4], 0)
    assert [row["p"], row["p_adjusted"]] == pytest.approx([expected.pvalue] * 2)
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected.confidence_interval()))
    assert (row["verdict"], row["adjusted_over"], row["note"]) == ("no clear difference", "models", "")
    assert (row["targets"], row["metric"]) == ("clean", "js")


def by_definition(frame: pd.DataFrame, model: str, other: str) -> dict[str, float]:
    """A pair by plain loops over cells, each question left out in turn."""
    score = {(row.model, row.question_id, row.segment): row.score for row in frame.itertuples() if not np.isnan(row.score)}
    found: dict[str, list[float]] = {}
    for (who, question, segment), value in score.items():
        if who == model and (other, question, segment) in score:
            found.setdefault(question, []).append(value - score[other, question, segment])
    n_pairs = sum(len(differences) for differences in found.values())
    sums, sizes = [sum(differences) for differences in found.values()], [len(differences) for differences in found.values()]
    means = [sum(differences) / len(differences) for differences in found.values()]
    without = [(sum(sums) - one) / (n_pairs - size) for one, size in zip(sums, sizes, strict=True)]
    variance = (len(sums) - 1) / len(sums) * sum((one - sum(sums) / n_pairs) ** 2 for one in without)
    return {
        "n_pairs": n_pairs,
        "n_items": len(found),
        "difference": sum(sums) / n_pairs,
        "effect_size": sum(sums) / n_pairs / float(np.std(means, ddof=1)),
        "p": 2 * stats.t.sf(abs(sum(sums) / n_pairs) / variance**0.5, freedom_of(sizes)),
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_comparisons_agree_with_plain_loops_over_lopsided_cells(seed: int) -> None:
    frame = lopsided(seed)
    table = compare_all_pairs(frame, OPTIONS)
    assert len(table) == 3
    for row in table.to_dict("records"):
        expected = by_definition(frame, row["model"], row["other_model"])
        assert {name: row[name] for name in expected} == pytest.approx(expected)
        assert row["difference"] >= 0


def test_equal_models_are_equal_to_the_last_bit() -> None:
    """Sums of equal scores in matrix products differ by rounding, which a test took for a difference."""
    frame = lopsided(5, models=1)
    frame = pd.concat([frame.assign(model=name, model_variant=name) for name in ("y", "x", "z")])
    table = compare_all_pairs(frame, OPTIONS)
    assert table[WHO].to_numpy().tolist() == [["x", "y"], ["x", "z"], ["y", "z"]]
    assert table[["difference", "low", "high"]].eq(0).all().all()
    assert table[["p", "p_adjusted"]].eq(1).all().all()
    assert table["effect_size"].isna().all()


def test_noise_that_both_models_share_cancels_and_noise_of_one_widens_the_interval() -> None:
    generator = np.random.default_rng(7)
    frame = pd.concat([of("a", *generator.normal(0.6, 0.01, 12)), of("b", *generator.normal(0.6, 0.01, 12))], ignore_index=True)
    drawn = generator.normal(0, 0.1, size=(12, 20)).astype(np.float32)

    def width(noise: np.ndarray[Any, Any] | None) -> float:
        table = compare_all_pairs(frame, OPTIONS, noise)
        return float((table["high"] - table["low"])[0])

    assert width(np.vstack([drawn, drawn])) == pytest.approx(width(None))
    assert width(np.vstack([drawn, 0 * drawn])) > 3 * width(None)


def test_what_is_made_of_the_answers_moves_with_the_people_who_gave_them() -> None:
    generator = np.random.default_rng(8)
    means = {"a": 0.6, "b": 0.602, LEAVE_ONE_OUT: 0.607}
    frame = pd.concat([of(name, *generator.normal(mean, 0.01, 24)) for name, mean in means.items()], ignore_index=True)
    frame = frame.assign(cluster=[f"b{place // 3}" for place in range(24)] * 3)
    noise = np.repeat([[0.0], [0.0], [0.05]], 24, axis=0) * np.sign(generator.normal(size=(72, 20)))
    silent, loud = (compare_all_pairs(frame, OPTIONS, given) for given in (None, noise.astype(np.float32)))
    assert loud.set_index(WHO)["p"][("b", "a")] == silent.set_index(WHO)["p"][("b", "a")]
    # A standard deviation of .05 in each of 24 questions, each of which stands beside 21 of other batteries.
    shared = OF_OBSERVED * 0.05**2 * 24 * 21 / 24**2
    row = loud[(loud["model"] == LEAVE_ONE_OUT) & (loud["other_model"] == "a")].iloc[0]
    reach, alone = ((table.loc[row.name, "high"] - table.loc[row.name, "low"]) / 2 for table in (loud, silent))
    assert reach**2 == pytest.approx(alone**2 + stats.t.ppf(0.975, 7) ** 2 * shared, rel=1e-5)
    assert row["p"] > silent.loc[row.name, "p"]


class TestRankRanges:
    BOARD = pd.DataFrame(
        {
            "rank": [1, 2, 3, 4, np.nan],
            "model": list("abcde"),
            "model_variant": list("abcde"),
            "context_level": "0",
            "condition": "c",
        }
    )

    def table(self, *better: str) -> pd.DataFrame:
        """Comparisons where of each `xy` model x is better than y, and all others are no clear difference."""
        pairs = [(x, y, "better" if x + y in better else "no clear difference") for x, y in product("abcde", repeat=2)]
        table = pd.DataFrame(pairs, columns=["model", "other_model", "verdict"])
        table = table.assign(model_variant=table["model"], other_variant=table["other_model"], context_level="0", condition="c")
        return table.assign(p=0.5, note="")

    def test_the_places_that_the_verdicts_leave(self) -> None:
        """a is better than c and d, b than d: a has places 1 to 2, d 3 to 4."""
        table = self.table("ac", "ad", "bd")
        found = rank_ranges(self.BOARD, table, KEYS)
        assert found["rank_low"].tolist()[:4] == [1, 1, 2, 3]
        assert found["rank_high"].tolist()[:4] == [2, 3, 4, 4]
        assert found.loc[4].isna().all(), "it is not ranked"

    def test_a_model_that_is_better_than_one_ranked_above_it_says_so(self) -> None:
        notes = list_contradictions(self.BOARD, self.table("ab", "ca"), KEYS)
        assert "a" in notes[2]
        assert notes.drop(2).eq("").all()


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
        table = compare_all_pairs(panel("a", "b", "c", LEAVE_ONE_OUT, UNIFORM), OPTIONS)
        found = {family: {frozenset(pair) for pair in rows[WHO].to_numpy()} for family, rows in table.groupby("adjusted_over")}
        assert found[AMONG_MODELS] == {frozenset(pair) for pair in ("ab", "ac", "bc")}
        assert found[OF_REFERENCE] == {frozenset({model, LEAVE_ONE_OUT}) for model in "abc"}
        assert found[OF_BASELINES] == {frozenset({other, UNIFORM}) for other in ("a", "b", "c", LEAVE_ONE_OUT)}

    def test_p_is_adjusted_by_holm_within_each_family_and_way_of_asking(self) -> None:
        one = panel("a", "b", "c", LEAVE_ONE_OUT, UNIFORM, seed=2)
        table = compare_all_pairs(pd.concat([one, one.assign(context_level="5")]), OPTIONS)
        for _, rows in table.groupby(["adjusted_over", "context_level"]):
            assert rows["p_adjusted"].tolist() == pytest.approx(holm(rows["p"]).tolist())


class TestParsedScores:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_as_plain_loops_over_the_cells_that_both_answered_readably_say(self, seed: int) -> None:
        frame = unread(lopsided(seed), "m1", slice(None, None, 4))
        frame.loc[frame.index[::7], "parsed_score"] *= 0.9  # a draw of several that was not read
        readable = frame.assign(score=frame["parsed_score"])
        for row in compare_all_pairs(frame, OPTIONS).to_dict("records"):
            expected = by_definition(readable, row["model"], row["other_model"])
            found = {name: row[PARSED[name]] for name in ("n_pairs", "difference", "p")}
            assert found == pytest.approx({name: expected[name] for name in found})

    def test_a_model_with_a_fifth_unread_is_worse_by_the_policy_alone(self) -> None:
        frame = unread(panel("equal", "often-unread", questions=60, seed=4), "often-unread", slice(None, None, 5))
        (row,) = compare_all_pairs(frame, OPTIONS).to_dict("records")
        assert (row["model"], row["verdict"], row["parsed_verdict"]) == ("equal", "better", "no clear difference")
        assert (row["n_pairs"], row["n_parsed_pairs"]) == (60, 48)
        assert row["parsed_note"] == (
            "better by the published policy, which gives unread responses 0 to 0.1; "
            "on the pairs that both answered readably: no difference is found"
        )
        assert row["note"] == ""

    def test_a_model_that_cannot_be_read_at_all_is_not_compared_by_parsed_scores(self) -> None:
        frame = unread(panel("a", "b", "unread"), "unread", slice(None))
        table = compare_all_pairs(frame, OPTIONS).set_index("other_model")
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
