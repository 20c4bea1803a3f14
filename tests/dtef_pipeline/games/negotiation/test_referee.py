"""The referee of divisions: shared vectors, values by hand, naive definitions, and what must not change them."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest

from dtef_pipeline.games.negotiation.referee import Fairness, find_proposal_fault, measure_fairness
from tests.made.voted import shared_cases

ITEMS = ("x", "y", "z", "w")


def test_the_shared_allocations_are_judged_as_they_say() -> None:
    for case in shared_cases("allocation"):
        told = measure_fairness(case["in"]["values"], case["in"]["allocation"])
        for name, expected in case["out"].items():
            assert getattr(told, name) == pytest.approx(expected, abs=case.get("tol", 1e-4)), (case["id"], name)


def test_the_shared_proposals_are_rejected_with_their_reasons() -> None:
    for case in shared_cases("allocation_invalid"):
        assert find_proposal_fault(case["in"]["proposal"], case["in"]["items"], case["in"]["parties"]) == case["out"], case[
            "id"
        ]


def test_a_division_by_hand() -> None:
    values = {"A": {"x": 6, "y": 3, "z": 1}, "B": {"x": 2, "y": 5, "z": 3}}
    told = measure_fairness(values, {"A": ["z"], "B": ["x", "y"]})
    assert told.utility == {"A": 1, "B": 7}
    assert told.envy == {"A": 8, "B": 0}
    assert told.ef1 == {"A": False, "B": True}, "without x, A would still like y better than z"
    assert told.jain == pytest.approx(0.8**2 / (2 * 0.5))
    assert told.efficiency == pytest.approx(8 / 14)
    assert not told.pareto, "A: x and B: y, z gives both more"


def test_of_nothing_worth_anything_there_is_no_share_and_no_index() -> None:
    told = measure_fairness({"A": {"x": 0}, "B": {"x": 4}}, {"A": ["x"], "B": []})
    assert told.normalised == {"A": None, "B": 0.0}
    assert told.jain is None
    assert told.nash == 0
    assert measure_fairness({"A": {"x": 0}, "B": {"x": 0}}, {"A": ["x"]}).efficiency is None


def test_a_division_that_is_none_is_rejected() -> None:
    with pytest.raises(ValueError, match="missing item"):
        measure_fairness({"A": {"x": 1, "y": 2}, "B": {"x": 1, "y": 2}}, {"A": ["x"], "B": []})


def test_it_agrees_with_naive_definitions_on_lopsided_values() -> None:
    rng = random.Random(3)
    for _ in range(200):
        parties = "ABCD"[: rng.randint(2, 4)]
        items = ITEMS[: rng.randint(1, 4)]
        values = {party: {item: rng.choice([0, 0, 1, 2, 9]) for item in items} for party in parties}
        owners = [rng.choice(parties) for _ in items]
        told = measure_fairness(values, bundles(items, owners, parties))
        assert same(told, naive(values, items, owners, parties)), (values, owners)


def bundles(items: tuple[str, ...], owners: Any, parties: str) -> dict[str, list[str]]:
    return {party: [item for item, owner in zip(items, owners, strict=True) if owner == party] for party in parties}


def naive(values: Any, items: tuple[str, ...], owners: list[str], parties: str) -> dict[str, Any]:
    """Each definition as its words have it, over lists of owners."""

    def points(who: str, whose: str, of: list[str] = owners, without: str = "") -> int:
        return sum(values[who][item] for item, owner in zip(items, of, strict=True) if owner == whose and item != without)

    def shares(of: list[str]) -> list[int]:
        return [points(party, party, of) for party in parties]

    divisions = [list(one) for one in itertools.product(parties, repeat=len(items))]
    own = shares(owners)
    normalised = [u / (sum(values[p].values()) or 1) for u, p in zip(own, parties, strict=True)]
    best = max(sum(shares(one)) for one in divisions)
    return {
        "envy": {i: max([0, *(points(i, j) - points(i, i) for j in parties if j != i)]) for i in parties},
        "ef1": {
            i: all(
                points(i, i) >= points(i, j) or any(points(i, i) >= points(i, j, without=item) for item in items)
                for j in parties
                if j != i
            )
            for i in parties
        },
        "jain": sum(normalised) ** 2 / len(parties) / sum(s**2 for s in normalised) if any(normalised) else None,
        "nash": math.exp(sum(map(math.log, own)) / len(own)) if all(own) else 0.0,
        "efficiency": sum(own) / best if best else None,
        "pareto": not any(
            all(a >= b for a, b in zip(shares(one), own, strict=True)) and sum(shares(one)) > sum(own) for one in divisions
        ),
    }


def same(told: Fairness, expected: dict[str, Any]) -> bool:
    return all(getattr(told, name) == pytest.approx(value, abs=1e-9) for name, value in expected.items())
