"""The effective number of items is what its definition says, and between the number of clusters and that of items where it must be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dtef_pipeline.statistics.effective_size import effective_items

Floats = npt.NDArray[np.float64]


def by_definition(counts: list[float], sums: list[float], clusters: list[int]) -> float:
    """One column by plain loops: the intraclass correlation from sums of squares, then the ratio of variances."""
    asked: dict[int, list[tuple[float, float]]] = {}
    for count, total, cluster in zip(counts, sums, clusters, strict=True):
        if count:
            asked.setdefault(cluster, []).append((count, total / count))
    means = [mean for items in asked.values() for _, mean in items]
    if len(asked) < 2:
        return float("nan")
    icc = 0.0
    if len(means) > len(asked):
        within = sum((mean - np.mean([m for _, m in items])) ** 2 for items in asked.values() for _, mean in items)
        between = sum(len(items) * (np.mean([m for _, m in items]) - np.mean(means)) ** 2 for items in asked.values())
        within, between = within / (len(means) - len(asked)), between / (len(asked) - 1)
        size = (len(means) - sum(len(items) ** 2 for items in asked.values()) / len(means)) / (len(asked) - 1)
        component = max((between - within) / size, 0)
        icc = component / (component + within)
    spread = sum((1 - icc) * sum(w**2 for w, _ in items) + icc * sum(w for w, _ in items) ** 2 for items in asked.values())
    return float(sum(counts) ** 2 / spread)


def lopsided(seed: int, columns: int = 40) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Items of batteries of 1 to 7, in 0 to 50 cells each; scores that hang together in some columns and not in others."""
    rng = np.random.default_rng(seed)
    clusters = rng.permutation(np.repeat(np.arange(12), rng.integers(1, 8, size=12)))
    counts = rng.integers(0, 51, size=(len(clusters), columns)) * (rng.random((len(clusters), columns)) < 0.7)
    shared = rng.normal(size=(12, columns))[clusters] * rng.uniform(0, 2, size=columns)
    means = 0.7 + 0.05 * (shared + rng.normal(size=counts.shape))
    return counts.astype(np.float64), counts * means, clusters


@pytest.mark.parametrize("seed", range(3))
def test_lopsided_columns_agree_with_the_definition(seed: int) -> None:
    counts, sums, clusters = lopsided(seed)
    wanted = [by_definition(list(counts[:, at]), list(sums[:, at]), list(clusters)) for at in range(counts.shape[1])]
    found = effective_items(counts, sums, clusters)
    assert found == pytest.approx(wanted)
    assert (found <= (counts > 0).sum(axis=0) + 1e-9).all()
    assert (found >= 1).all()


def test_alike_items_count_as_their_clusters_and_unlike_ones_as_themselves() -> None:
    clusters, counts = np.repeat(np.arange(5), 4), np.ones((20, 2))
    alike = np.repeat([0.3, 0.5, 0.6, 0.8, 0.9], 4)
    unlike = np.tile([0.3, 0.5, 0.6, 0.8], 5)
    assert effective_items(counts, np.stack([alike, unlike], axis=1), clusters) == pytest.approx([5, 20])


def test_an_item_of_many_cells_beside_many_of_one_counts_for_less_than_it_seems() -> None:
    # (10 + 5 x 1)^2 / (10^2 + 5 x 1^2): six items that are alone
    counts = np.array([[10.0], [1], [1], [1], [1], [1]])
    assert effective_items(counts, 0.5 * counts, np.arange(6)) == pytest.approx(225 / 105)


def test_neither_order_nor_the_names_of_clusters_matter_and_absent_items_are_as_if_not_given() -> None:
    counts, sums, clusters = lopsided(7)
    order = np.random.default_rng(1).permutation(len(clusters))
    absent = np.zeros((3, counts.shape[1]))
    more = effective_items(
        np.concatenate([counts, absent])[[*order, len(order), len(order) + 1, len(order) + 2]],
        np.concatenate([sums, absent])[[*order, len(order), len(order) + 1, len(order) + 2]],
        np.concatenate([50 - clusters[order], [3, 99, 100]]),
    )
    assert more == pytest.approx(effective_items(counts, sums, clusters))


def test_fewer_than_two_clusters_have_none() -> None:
    counts = np.array([[1.0, 1, 0], [1, 0, 0], [0, 1, 0]])
    found = effective_items(counts, 0.5 * counts, np.array([0, 0, 1]))
    assert np.isnan(found).tolist() == [True, False, True]
    assert np.isnan(effective_items(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, dtype=np.int64))).all()
