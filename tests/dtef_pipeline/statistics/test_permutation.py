"""Sign-flip tests agree with enumeration, and find nothing where nothing is to be found."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import false_discovery_control

from benchmarks.false_positive_rate import Design, clustered_rate, family_rate, unclustered_rate
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.statistics.permutation import benjamini_hochberg, permutations_for, sign_flips

Floats = npt.NDArray[np.float64]


def flipped(sums: npt.ArrayLike, permutations: int = 9_999, seed: int = 1) -> list[float]:
    return list(sign_flips(sums, permutations=permutations, seed=seed).p)


def by_definition(sums: list[float]) -> float:
    """Every pattern of signs, by plain loops."""
    reached = 0
    patterns = list(product([1, -1], repeat=len(sums)))
    for signs in patterns:
        reached += abs(sum(sign * value for sign, value in zip(signs, sums, strict=True))) >= abs(sum(sums))
    return reached / len(patterns)


class TestSignFlips:
    def test_of_three_clusters_on_one_side_two_patterns_of_eight_are_as_far_out(self) -> None:
        assert flipped([[1.0], [2.0], [3.0]]) == pytest.approx([2 / 8])
        assert flipped([[5.0], [-1.0], [2.0]]) == pytest.approx([4 / 8])

    def test_few_clusters_are_enumerated_as_the_definition_says(self) -> None:
        sums = np.random.default_rng(1).integers(-9, 30, size=(9, 12)) ** 3.0
        sums[3:, 0] = 0
        assert flipped(sums) == pytest.approx([by_definition(list(column)) for column in sums.T])

    def test_noise_of_all_clusters_by_hand_and_none_of_it_changes_nothing(self) -> None:
        """Patterns of +-4 and +-2. With a deviation of 8 a 4 reaches 4 by a probability of .6587, a 2 by one of .6279."""
        of_deviation = {
            sd: sign_flips([[3.0], [1.0]], permutations=99, seed=1, noise=np.array([sd**2])).p[0] for sd in (2.0, 8.0)
        }
        assert of_deviation[8.0] == pytest.approx((0.65866 + 0.62792) / 2, abs=1e-5)
        assert of_deviation[2.0] == flipped([[3.0], [1.0]])[0] == 0.5, "p is smaller than four patterns allow"
        sums = np.random.default_rng(5).normal(size=(30, 3)) + 0.6
        found = sign_flips(
            np.column_stack([sums, np.zeros(30)]), permutations=999, seed=1, noise=np.array([0.0, 9.0, 99.0, 1.0])
        ).p
        assert found[0] == flipped(sums, permutations=999)[0]
        assert (found[1:3] > flipped(sums, permutations=999)[1:]).all()
        assert found[3] == 1

    def test_many_clusters_are_sampled_and_come_near_the_exact_p(self) -> None:
        sums = np.random.default_rng(2).exponential(size=(14, 8)) - 0.5
        exact = np.array(flipped(sums, permutations=2**14))
        drawn = np.array(flipped(sums, permutations=2**14 - 2))
        assert (np.abs(drawn - exact) < 4 * np.sqrt(exact * (1 - exact) / 9_999) + 1e-4).all()
        assert not np.array_equal(drawn, exact)

    def test_whichever_model_comes_first_and_in_whatever_unit_p_is_the_same(self) -> None:
        sums = np.random.default_rng(3).normal(size=(30, 5)) + 0.3
        p = pytest.approx(flipped(sums))
        assert flipped(-sums) == p
        assert flipped(sums * 1e-9) == p
        assert flipped(sums[:, ::-1])[::-1] == p

    def test_the_order_of_clusters_and_clusters_without_difference_change_no_exact_p(self) -> None:
        sums = np.random.default_rng(4).normal(size=(8, 5))
        p = pytest.approx(flipped(sums))
        assert flipped(sums[::-1]) == p
        assert flipped(np.vstack([sums, np.zeros((2, 5))])) == p

    def test_ties_count_although_tenths_add_up_differently_in_another_order(self) -> None:
        """0.1 + 0.2 is not 0.3 to a computer: equal sums were taken for smaller ones."""
        whole = np.array([[1.0, 3], [2, 1], [-3, 2], [3, -1], [1, 7], [-1, -6]])
        assert flipped(whole / 10) == pytest.approx(flipped(whole))
        thrice = np.repeat(whole, 3, axis=0)
        assert flipped(thrice / 10, seed=5) == pytest.approx(flipped(thrice, seed=5))

    def test_p_is_never_0_but_one_in_the_patterns_and_the_observed(self) -> None:
        found = sign_flips(np.ones((40, 1)), permutations=500, seed=1)
        assert (found.p[0], found.permutations[0]) == (pytest.approx(1 / 501), 500)

    def test_all_columns_get_the_same_signs_and_a_seed_gives_the_same_p_again(self) -> None:
        sums = np.random.default_rng(6).normal(size=(40, 1))
        p = flipped(np.hstack([sums, sums]))
        assert p[0] == pytest.approx(p[1])
        assert flipped(sums) == flipped(sums) == pytest.approx(p[:1])
        assert flipped(sums, seed=2) != pytest.approx(p[:1])

    def test_what_is_clearly_nothing_is_settled_early_and_what_is_something_is_not(self) -> None:
        half = np.random.default_rng(7).normal(size=(20, 1))
        nothing, something = np.vstack([half, -half]), np.ones((40, 1))
        sums = np.hstack([nothing, 2 * nothing, something])
        found = sign_flips(sums, permutations=50_000, seed=1)
        assert list(found.permutations) == [9_999, 9_999, 50_000]
        assert found.p[2] == pytest.approx(1 / 50_001)
        assert list(found.p[:2]) == pytest.approx(flipped(sums[:, :2]))

    def test_enumeration_is_never_cut_short(self) -> None:
        sums = np.random.default_rng(8).normal(size=(14, 2))
        assert list(sign_flips(sums, permutations=50_000, seed=1).permutations) == [2**14, 2**14]

    def test_no_difference_at_all_is_1_and_no_cluster_at_all_is_unknown(self) -> None:
        assert flipped([[0.0, np.nan, np.nan]] * 20 + [[0, np.nan, 3]]) == pytest.approx([1.0, np.nan, 1.0], nan_ok=True)
        assert np.isnan(flipped(np.empty((0, 2)))).all()
        assert flipped(np.empty((5, 0))) == []
        assert flipped([[0.25]]) == pytest.approx([1.0])

    @pytest.mark.parametrize("sums", [[1.0, 2.0], [[np.inf], [1.0]]])
    def test_other_input_is_refused(self, sums: npt.ArrayLike) -> None:
        with pytest.raises(ConfigError, match=r"allowed: \(clusters, columns\)"):
            flipped(sums)

    def test_no_permutations_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="permutations 0: allowed: 1 or more"):
            flipped([[1.0]], permutations=0)


class TestHolm:
    def test_the_smallest_is_multiplied_by_all_and_none_falls_below_a_smaller_one(self) -> None:
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
        assert holm([0.6, 0.9]) == pytest.approx([1.0, 1.0])

    def test_as_stepping_down_by_plain_loops(self) -> None:
        p = np.random.default_rng(1).beta(0.3, 3, size=40).round(3)
        largest, expected = 0.0, {}
        for place, index in enumerate(sorted(range(40), key=lambda index: p[index])):
            largest = max(largest, min(1.0, (40 - place) * p[index]))
            expected[index] = largest
        assert holm(p) == pytest.approx([expected[index] for index in range(40)])

    def test_the_order_of_the_tests_does_not_matter_and_unknown_ones_are_not_counted(self) -> None:
        p = np.array([0.03, 0.01, 0.2, 0.01])
        assert holm(p[::-1]) == pytest.approx(holm(p)[::-1])
        unknown = holm([np.nan, *p, np.nan])
        assert np.isnan(unknown[[0, -1]]).all()
        assert unknown[1:-1] == pytest.approx(holm(p))

    def test_nothing_to_adjust(self) -> None:
        assert holm([]).tolist() == []
        assert np.isnan(holm([np.nan])).all()
        assert holm([0.02]) == pytest.approx([0.02])

    @pytest.mark.parametrize("p", [[1.2], [-0.1], [[0.1]]])
    def test_other_values_are_refused(self, p: npt.ArrayLike) -> None:
        with pytest.raises(ConfigError, match="values from 0 to 1"):
            holm(p)

    @pytest.mark.parametrize("tests", [1, 10, 435, 4_950])
    def test_the_smallest_p_of_so_many_permutations_survives_it(self, tests: int) -> None:
        smallest = 1 / (permutations_for(tests) + 1)
        assert holm([smallest] + [1.0] * (tests - 1))[0] < 0.05


class TestBenjaminiHochberg:
    def test_the_ith_smallest_is_multiplied_by_all_over_i_and_none_rises_above_a_larger_one(self) -> None:
        assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])
        assert benjamini_hochberg([0.6, 0.9, 0.02]) == pytest.approx([0.9, 0.9, 0.06])

    @pytest.mark.parametrize("seed", [1, 2])
    def test_as_scipy_has_it_ties_included_and_unknown_ones_are_not_counted(self, seed: int) -> None:
        p = np.random.default_rng(seed).beta(0.3, 3, size=40).round(2)
        expected = false_discovery_control(p)
        assert benjamini_hochberg(p) == pytest.approx(expected)
        found = benjamini_hochberg([np.nan, *p[::-1], np.nan])
        assert np.isnan(found[[0, -1]]).all()
        assert found[1:-1][::-1] == pytest.approx(expected)

    def test_nothing_to_adjust(self) -> None:
        assert benjamini_hochberg([]).tolist() == []
        assert np.isnan(benjamini_hochberg([np.nan])).all()
        assert benjamini_hochberg([0.02]) == pytest.approx([0.02])

    @pytest.mark.parametrize("p", [[1.2], [-0.1], [[0.1]]])
    def test_other_values_are_refused(self, p: npt.ArrayLike) -> None:
        with pytest.raises(ConfigError, match="values from 0 to 1"):
            benjamini_hochberg(p)


class TestWhereNothingIsToBeFound:
    """Two models that are equally good, whose differences share an effect per question over 50 segments: 5 % of sets may find a difference.

    Of 4,000 sets at 5 % the standard error is 0.34 points; three of them are allowed on top.
    """

    def test_flipping_whole_questions_is_wrong_in_5_percent_and_flipping_cells_in_most(self) -> None:
        assert clustered_rate(Design(), sets=4_000, seed=1) < 0.05 + 0.0103
        assert unclustered_rate(Design(), sets=300, seed=1) > 0.4

    def test_questions_of_few_and_many_segments_and_few_questions_are_no_exception(self) -> None:
        assert clustered_rate(Design(lopsided=True, segments=12), sets=4_000, seed=2) < 0.05 + 0.0103
        assert clustered_rate(Design(questions=8, segments=12), sets=4_000, seed=3) < 0.05 + 0.0103

    def test_a_real_difference_is_found(self) -> None:
        assert clustered_rate(Design(shift=0.03), sets=300, seed=4) > 0.9

    def test_among_five_equal_models_holm_finds_a_difference_in_5_percent_and_no_adjustment_in_many(self) -> None:
        """Of 1,000 sets the standard error is 0.69 points; three of them are allowed on top."""
        assert family_rate(5, sets=1_000, seed=5) < 0.05 + 0.0207
        assert family_rate(5, sets=300, seed=5, adjust=None) > 0.15
