"""Scenarios of negotiation for tests: from the shipped manifests, with other seats and settings."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.games.manifest import ScenarioManifest, read_manifest
from dtef_pipeline.games.negotiation import allocation
from dtef_pipeline.games.negotiation.allocation import Allocation, Bargain
from tests.conftest import ROOT


def shipped(name: str, **changed: Any) -> ScenarioManifest:
    """The manifest of `negotiation/NAME`, with changed fields."""
    found = read_manifest(ROOT / "data" / "scenarios" / "negotiation" / f"{name}.yaml")
    return found.model_copy(update=changed)


def an_allocation(n_seats: int = 2, **settings: Any) -> Allocation:
    return allocation.of_manifest(shipped("allocation", seats=list("ABCD"[:n_seats]), settings=settings))


def a_bargain(*values: tuple[int, ...]) -> Bargain:
    """A negotiation that begins, with these values by seat; without, those of two parties: 6 3 1 and 2 5 3."""
    return Bargain(("boat", "clock", "drum"), values or ((6, 3, 1), (2, 5, 3)))
