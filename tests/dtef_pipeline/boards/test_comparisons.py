"""Pairs of models: differences on the cells that both have, as plain loops compute them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from dtef_pipeline.boards.comparisons import comparisons, contradictions, rank_ranges, tiers
from dtef_pipeline.statistics.shared_noise import OF_OBSERVED
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.boards.schemas import COMPARISONS
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from tests.made.freedom import freedom_of

OPTIONS = SurveyBoardOptions()
WHO = ["model", "other_model"]


def cells(*rows: tuple[str, str, str, float | None], **given: Any) -> pd.DataFrame:
    """Rows (model, question, segment, score); the question is the cluster."""
    frame = pd.DataFrame(rows, columns=["model", "question_id", "segment", "score"])
    frame["score"] = frame["score"].astype(float)
    plain = {
        "round": "S1",
        "context_level": "0",
        "condition": "c",
        "model_variant": frame["model"],
        "cluster": frame["question_id"],
        "parsed_score": frame["score"],
        "n_ok": 1,
        "n_answered": 1,
        "same_item": frame["question_id"],
    }
    return frame.assign(**{**plain, **given})


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
    (row,) = comparisons(frame, OPTIONS).to_dict("records")
    assert (row["model"], row["other_model"], row["n_pairs"], row["n_questions"]) == ("b", "a", 5, 5)
    assert [row[name] for name in ("score", "other_score", "difference")] == pytest.approx([0.64, 0.5, 0.14])
    assert row["effect_size"] == pytest.approx(0.14 / np.std([0.1, 0.2, 0.1, -0.1, 0.4], ddof=1))
    expected = stats.ttest_1samp([0.1, 0.2, 0.1, -0.1, 0.4], 0)
    assert [row["p"], row["p_adjusted"]] == pytest.approx([expected.pvalue] * 2)
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected.confidence_interval()))
    assert (row["verdict"], row["family"], row["note"]) == ("not told apart", "models", "")
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
        "n_questions": len(found),
        "difference": sum(sums) / n_pairs,
        "effect_size": sum(sums) / n_pairs / float(np.std(means, ddof=1)),
        "p": 2 * stats.t.sf(abs(sum(sums) / n_pairs) / variance**0.5, freedom_of(sizes)),
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_every_pair_as_plain_loops_over_lopsided_cells_say(seed: int) -> None:
    frame = lopsided(seed)
    table = comparisons(frame, OPTIONS)
    assert len(table) == 3
    for row in table.to_dict("records"):
        expected = by_definition(frame, row["model"], row["other_model"])
        assert {name: row[name] for name in expected} == pytest.approx(expected)
        assert row["difference"] >= 0


def test_neither_the_order_of_rows_nor_the_kind_of_columns_nor_a_constant_changes_a_difference() -> None:
    frame = lopsided(3)
    table = comparisons(frame, OPTIONS)
    categorical = frame.astype(
        dict.fromkeys(("model", "question_id", "segment", "round", "context_level", "cluster"), "category")
    )
    pd.testing.assert_frame_equal(comparisons(categorical, OPTIONS), table)
    shuffled = comparisons(frame.sample(frac=1, random_state=1), OPTIONS)
    pd.testing.assert_frame_equal(shuffled, table)
    moved = comparisons(frame.assign(score=frame["score"] + 0.25, parsed_score=frame["parsed_score"] + 0.25), OPTIONS)
    unmoved = [name for name in table.columns if name not in ("score", "other_score")]
    pd.testing.assert_frame_equal(moved[unmoved], table[unmoved])


def test_context_levels_and_conditions_are_never_mixed_and_adjusted_each_by_itself() -> None:
    one = lopsided(4)
    frame = pd.concat([one.assign(context_level=level, condition=name) for level in ("all", "10", "5") for name in ("d", "c")])
    table = comparisons(frame, OPTIONS)
    asked = list(dict.fromkeys(zip(table["context_level"], table["condition"], strict=True)))
    assert asked == [("5", "c"), ("5", "d"), ("10", "c"), ("10", "d"), ("all", "c"), ("all", "d")]
    alone = comparisons(one, OPTIONS)
    for _, part in table.groupby(["context_level", "condition"]):
        pd.testing.assert_series_equal(part["p_adjusted"].reset_index(drop=True), alone["p_adjusted"])


def test_the_same_question_in_many_segments_and_rounds_is_one_cluster() -> None:
    rows = [
        (model, f"q{round_}", segment, score)
        for round_ in range(6)
        for segment in "xyz"
        for model, score in (("a", 0.5), ("b", 0.6))
    ]
    frame = cells(*rows).assign(round=lambda f: "S" + f["question_id"].str[1:], cluster="same", same_item="same")
    (row,) = comparisons(frame, OPTIONS).to_dict("records")
    assert (row["n_pairs"], row["n_questions"]) == (18, 1)
    assert (row["verdict"], row["note"]) == ("not tested", "no interval and no test: 1 battery, at least 5 are needed")
    assert np.isnan([row["low"], row["high"], row["p"], row["p_adjusted"], row["effect_size"]]).all()


def test_questions_of_a_battery_are_one_cluster_and_are_counted_as_questions() -> None:
    questions = {"a": range(12), "b": range(11)}
    frame = pd.concat([of("a", *[0.5] * 12), of("b", *(0.6 + 0.01 * i for i in questions["b"]), None)])
    battery = frame["question_id"].str[1:].astype(int) // 3
    (row,) = comparisons(frame.assign(cluster=battery.astype(str)), OPTIONS).to_dict("records")
    assert (row["n_pairs"], row["n_questions"], row["n_batteries"]) == (11, 11, 4)
    assert (row["verdict"], row["note"]) == ("not tested", "no interval and no test: 4 batteries, at least 5 are needed")
    (six,) = comparisons(
        frame.assign(cluster=(battery + frame["question_id"].isin(["q0", "q10"]) * 9).astype(str)), OPTIONS
    ).to_dict("records")
    assert (six["n_questions"], six["n_batteries"], six["verdict"]) == (11, 6, "better")


def test_equal_models_are_equal_to_the_last_bit() -> None:
    """Sums of equal scores in matrix products differ by rounding, which a test took for a difference."""
    frame = lopsided(5, models=1)
    frame = pd.concat([frame.assign(model=name, model_variant=name) for name in ("y", "x", "z")])
    table = comparisons(frame, OPTIONS)
    assert table[WHO].to_numpy().tolist() == [["x", "y"], ["x", "z"], ["y", "z"]]
    assert table[["difference", "low", "high"]].eq(0).all().all()
    assert table[["p", "p_adjusted"]].eq(1).all().all()
    assert table["effect_size"].isna().all()


def test_variants_of_a_model_are_compared_as_models_are() -> None:
    frame = pd.concat([of("m", *[0.5] * 6, model_variant="m[t=0]"), of("m", *[0.6] * 6, model_variant="m[t=1]")])
    (row,) = comparisons(frame, OPTIONS).to_dict("records")
    assert (row["model_variant"], row["other_variant"]) == ("m[t=1]", "m[t=0]")


def test_a_difference_on_enough_questions_is_found_and_has_its_interval_above_0() -> None:
    generator = np.random.default_rng(6)
    difficulty = generator.normal(0.6, 0.1, size=30)
    frame = pd.concat(
        [of(name, *(difficulty + gain + generator.normal(0, 0.02, 30))) for name, gain in (("a", 0), ("b", 0.03), ("c", 0.03))]
    )
    table = comparisons(frame, OPTIONS).set_index(WHO)
    assert table.loc[("b", "a"), "verdict"] == table.loc[("c", "a"), "verdict"] == "better"
    assert (table.xs("a", level=1)["low"] > 0).all()


def test_noise_that_both_models_share_cancels_and_noise_of_one_widens_the_interval() -> None:
    generator = np.random.default_rng(7)
    frame = pd.concat([of("a", *generator.normal(0.6, 0.01, 12)), of("b", *generator.normal(0.6, 0.01, 12))], ignore_index=True)
    drawn = generator.normal(0, 0.1, size=(12, 20)).astype(np.float32)

    def width(noise: np.ndarray[Any, Any] | None) -> float:
        table = comparisons(frame, OPTIONS, noise)
        return float((table["high"] - table["low"])[0])

    assert width(np.vstack([drawn, drawn])) == pytest.approx(width(None))
    assert width(np.vstack([drawn, 0 * drawn])) > 3 * width(None)


def test_what_is_made_of_the_answers_moves_with_the_people_who_gave_them() -> None:
    generator = np.random.default_rng(8)
    means = {"a": 0.6, "b": 0.602, LEAVE_ONE_OUT: 0.607}
    frame = pd.concat([of(name, *generator.normal(mean, 0.01, 24)) for name, mean in means.items()], ignore_index=True)
    frame = frame.assign(cluster=[f"b{place // 3}" for place in range(24)] * 3)
    noise = np.repeat([[0.0], [0.0], [0.05]], 24, axis=0) * np.sign(generator.normal(size=(72, 20)))
    silent, loud = (comparisons(frame, OPTIONS, given) for given in (None, noise.astype(np.float32)))
    assert loud.set_index(WHO)["p"][("b", "a")] == silent.set_index(WHO)["p"][("b", "a")]
    # A standard deviation of .05 in each of 24 questions, each of which stands beside 21 of other batteries.
    shared = OF_OBSERVED * 0.05**2 * 24 * 21 / 24**2
    row = loud[(loud["model"] == LEAVE_ONE_OUT) & (loud["other_model"] == "a")].iloc[0]
    reach, alone = ((table.loc[row.name, "high"] - table.loc[row.name, "low"]) / 2 for table in (loud, silent))
    assert reach**2 == pytest.approx(alone**2 + stats.t.ppf(0.975, 7) ** 2 * shared, rel=1e-5)
    assert row["p"] > silent.loc[row.name, "p"]


def test_questions_asked_of_a_few_segments_share_people_only_in_equal_segments() -> None:
    """Where each question is asked of drawn segments, all were taken to be answered by the same people."""
    generator = np.random.default_rng(9)
    frame = pd.concat([of(name, *generator.normal(0.6, 0.01, 24)) for name in ("a", LEAVE_ONE_OUT)], ignore_index=True)
    noise = np.repeat([[0.0], [0.05]], 24, axis=0) * np.sign(generator.normal(size=(48, 20)))
    sampled = SurveyBoardOptions(sample_segments=1)

    def reach(segments: list[str], options: SurveyBoardOptions, is_noisy: bool = True) -> float:
        table = comparisons(frame.assign(segment=segments * 2), options, noise.astype(np.float32) if is_noisy else None)
        return float((table["high"] - table["low"])[0] / 2)

    apart, in_six = [f"s{place}" for place in range(24)], [f"s{place // 6}" for place in range(24)]
    alone = reach(apart, sampled, is_noisy=False)
    assert reach(apart, sampled) == pytest.approx(alone)
    # Each of the 24 questions has the people of 5 others, instead of 23.
    shared = OF_OBSERVED * 0.05**2 * 24 / 24**2 * stats.t.ppf(0.975, 23) ** 2
    assert reach(in_six, sampled) ** 2 == pytest.approx(alone**2 + 5 * shared, rel=1e-5)
    assert reach(in_six, OPTIONS) ** 2 == pytest.approx(alone**2 + 23 * shared, rel=1e-5)


def test_what_cannot_be_compared_has_no_row() -> None:
    apart = pd.concat([of("a", 0.5, None), of("b", None, 0.5), of("c", None, None)])
    for frame in (apart, of("a", 0.5, 0.6), of("a", None).assign(score=np.nan), of("a", 0.5).iloc[:0]):
        table = comparisons(frame, OPTIONS)
        assert len(table) == 0
        assert list(table.columns) == COMPARISONS.names


def test_the_table_has_the_published_schema() -> None:
    frame = pd.concat([lopsided(9), of("few", 0.1, 0.2).assign(segment="s0")])
    table = pa.Table.from_pandas(comparisons(frame, OPTIONS), schema=COMPARISONS, preserve_index=False)
    few = [row for row in table.to_pylist() if "few" in (row["model"], row["other_model"])]
    assert table.num_rows == 3 + len(few)
    assert {row["note"] for row in few} <= {
        f"no interval and no test: {n}, at least 5 are needed" for n in ("1 battery", "2 batteries")
    }
    assert all(row["p"] is None and row["low"] is None for row in few)


class TestTiers:
    BOARD = pd.DataFrame(
        {
            "rank": [1, 2, 3, 4, np.nan],
            "model": list("abcde"),
            "model_variant": list("abcde"),
            "context_level": "0",
            "condition": "c",
        }
    )

    def of(self, *better: str, board: pd.DataFrame = BOARD, untested: str = "") -> list[int | None]:
        return [None if pd.isna(tier) else int(tier) for tier in tiers(board, self.table(*better, untested=untested), KEYS)]

    def table(self, *better: str, untested: str = "") -> pd.DataFrame:
        """Comparisons where of each `xy` model x is better than y, and all others are not told apart."""
        pairs = [(x, y, "better" if x + y in better else "not told apart") for x, y in product("abcde", repeat=2)]
        table = pd.DataFrame(pairs, columns=["model", "other_model", "verdict"])
        table = table.assign(model_variant=table["model"], other_variant=table["other_model"], context_level="0", condition="c")
        table = table.assign(p=0.5, note="")
        table.loc[table["model"].isin(list(untested)) | table["other_model"].isin(list(untested)), ["p", "verdict"]] = (
            np.nan,
            "not tested",
        )
        return table

    def test_a_tier_ends_where_its_first_model_is_better(self) -> None:
        assert self.of("ac", "ad", "ae", "bd") == [1, 1, 2, 2, None]
        assert self.of("ab", "ac", "ad", "bc", "bd", "cd") == [1, 2, 3, 4, None]
        assert self.of() == [1, 1, 1, 1, None]

    def test_a_model_that_could_not_be_tested_has_no_tier_and_opens_none(self) -> None:
        """Ranked first with nine pairs in three batteries, it drew all models into tier 1."""
        assert self.of("bc", "bd", "ac", untested="a") == [None, 1, 2, 2, None]

    def test_a_later_model_that_is_not_told_apart_from_the_first_stays_below_the_tier_that_was_opened(self) -> None:
        assert self.of("ab") == [1, 2, 2, 2, None]

    def test_only_the_first_of_a_tier_is_asked(self) -> None:
        assert self.of("bc", "bd", "cd") == [1, 1, 1, 1, None]

    def test_a_model_of_lower_rank_that_is_better_on_shared_cells_opens_no_tier(self) -> None:
        assert self.of("ba") == [1, 1, 1, 1, None]

    def test_each_context_level_begins_anew_whatever_the_order_of_the_rows(self) -> None:
        both = pd.concat([self.BOARD, self.BOARD.assign(context_level="5")], ignore_index=True)
        assert self.of("ac", "ad", board=both) == [1, 1, 2, 2, None] + [None] * 5
        mixed = both.sample(frac=1, random_state=1)
        assert self.of("ac", "ad", board=mixed) == [([1, 1, 2, 2] + [None] * 6)[index] for index in mixed.index]

    def test_nothing_compared_and_nothing_ranked_have_no_tiers(self) -> None:
        nothing = comparisons(of("a", 0.5), OPTIONS)
        assert tiers(self.BOARD, nothing, KEYS).isna().all()
        assert len(tiers(self.BOARD.iloc[:0], nothing, KEYS)) == 0


class TestRankRanges:
    def test_the_places_that_the_verdicts_leave(self) -> None:
        """a is better than c and d, b than d: a has places 1 to 2, d 3 to 4."""
        table = TestTiers().table("ac", "ad", "bd")
        found = rank_ranges(TestTiers.BOARD, table, KEYS)
        assert found["rank_low"].tolist()[:4] == [1, 1, 2, 3]
        assert found["rank_high"].tolist()[:4] == [2, 3, 4, 4]
        assert found.loc[4].isna().all(), "it is not ranked"

    def test_an_unranked_model_takes_no_place(self) -> None:
        """Whoever was better than it had a worst place too few: 3 of 4, though nothing told it from the three others."""
        found = rank_ranges(TestTiers.BOARD, TestTiers().table("ae", "eb"), KEYS)
        assert found.iloc[:4].to_numpy().tolist() == [[1, 4]] * 4

    def test_each_way_of_asking_has_places_of_its_own(self) -> None:
        both = pd.concat([TestTiers.BOARD, TestTiers.BOARD.assign(context_level="5")], ignore_index=True)
        table = TestTiers().table("ab")
        found = rank_ranges(both, pd.concat([table, table.assign(context_level="5", verdict="not told apart")]), KEYS)
        assert found.iloc[:4].to_numpy().tolist() == [[1, 3], [2, 4], [1, 4], [1, 4]]
        assert found.iloc[5:9].to_numpy().tolist() == [[1, 4]] * 4

    def test_what_could_not_be_tested_has_none(self) -> None:
        found = rank_ranges(TestTiers.BOARD, TestTiers().table("bc", untested="a"), KEYS)
        assert found.loc[0].isna().all()
        assert found.loc[1].tolist() == [1, 3]

    def test_a_model_that_is_better_than_one_ranked_above_it_says_so(self) -> None:
        notes = contradictions(TestTiers.BOARD, TestTiers().table("ab", "ca"), KEYS)
        assert "a" in notes[2]
        assert notes.drop(2).eq("").all()


def null_cells(sets: int, seed: int) -> pd.DataFrame:
    """Two equally good models under many conditions; each pair's differences share an effect per question over 20 segments."""
    generator = np.random.default_rng(seed)
    shape = (sets, 20, 20, 2)
    condition, question, segment, model = (part.ravel() for part in np.indices(shape))
    effects = 0.03 * generator.normal(size=(sets, 20, 1, 2)) + 0.05 * generator.normal(size=shape)
    names = {"condition": condition, "question_id": question, "segment": segment, "model": model}
    frame = pd.DataFrame({name: pd.Categorical(np.char.mod("%03d", values)) for name, values in names.items()})
    return frame.assign(
        round="S1",
        context_level="0",
        model_variant=frame["model"],
        cluster=frame["question_id"],
        same_item=frame["question_id"],
        score=0.7 + effects.ravel(),
    ).assign(parsed_score=lambda made: made["score"], n_ok=1, n_answered=1)


def test_equally_good_models_are_told_apart_in_5_percent_and_with_cells_for_clusters_in_many() -> None:
    """Of 60 sets the standard error is 2.8 points; three of them are allowed on top."""
    frame = null_cells(60, seed=1)
    options = SurveyBoardOptions()
    assert (comparisons(frame, options)["verdict"] == "better").mean() < 0.05 + 0.085
    few = frame[frame["condition"].astype(int) < 30]
    cell = few["question_id"].astype(str) + "/" + few["segment"].astype(str)
    assert (comparisons(few.assign(cluster=cell), options)["verdict"] == "better").mean() > 0.15
