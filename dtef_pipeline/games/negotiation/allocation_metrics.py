"""Metrics of a party in a negotiation.

Agreement, utility, Nash welfare and efficiency are counted in every negotiation; the last three are 0 without an agreement. Envy, EF1, Jain's
index and Pareto describe a division, so they are counted only in negotiations with an agreement.

Decision points are a party's offers, and its messages while another party's offer is open that it has not accepted. Such a message is
cooperative

- if it offers to leave every other party at least 1/n of what all items are worth to that party, as far as the writer can know. If values are
  public, the true values decide; otherwise the number of items does, since all items then have the same expected value: n times the number of
  a party's items is at least the number of all;
- if it accepts an offer that leaves the writer at least 1/n of what all items are worth to it, by its own values.

No other message is cooperative: talk while an offer is open counts as an answer that does not accept it. Claims about values in words are
ignored and raise no flag, because the engine cannot check whether they are true or meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from dtef_pipeline.games.contract import Count, GameMetric
from dtef_pipeline.games.negotiation.bargain import Bargain, BargainMove, Owners, is_answer
from dtef_pipeline.games.negotiation.referee import Fairness, measure_fairness

ALLOCATION_METRICS = (
    GameMetric(
        "cooperation_rate", "social", "share", "higher", "Cooperative offers and answers, as a share of all offers and answers."
    ),
    GameMetric("agreement_rate", "social", "share", "higher", "Negotiations that ended in an agreement, as a share of all."),
    GameMetric(
        "utility_share",
        "expected value",
        "share",
        "higher",
        "Value of the party's items as a share of the value of all items; 0 without agreement.",
    ),
    GameMetric(
        "envy",
        "social",
        "points",
        "lower",
        "Value of another party's best bundle minus that of the own one, at least 0, in agreements.",
    ),
    GameMetric(
        "ef1", "social", "share", "higher", "Share of agreements in which the party envies nobody by more than one item."
    ),
    GameMetric(
        "jain",
        "social",
        "index",
        "higher",
        "Jain's index of the parties' shares, 1/n to 1, in agreements in which some party gets a value above 0.",
    ),
    GameMetric("nash", "social", "points", "higher", "Geometric mean of all parties' points; 0 without agreement."),
    GameMetric(
        "efficiency", "social", "share", "higher", "Total points as a share of the maximum possible; 0 without agreement."
    ),
    GameMetric(
        "pareto",
        "social",
        "share",
        "higher",
        "Share of agreements that cannot be improved for one party without a loss to another.",
    ),
    GameMetric("messages", "efficiency", "messages", "none", "Messages of all parties together, from the first to the last."),
)


def measure_allocation(state: Bargain, seat: int, parties: tuple[str, ...], *, public: bool) -> Mapping[str, Count]:
    """Count a negotiation for each of `ALLOCATION_METRICS`, for one seat. `public`: whether all parties know all values."""
    owners = state.find_agreement()
    moves = [move for move in state.iterate_answers() if move.seat == seat and is_decision_point(move)]
    counts = {
        "cooperation_rate": Count(sum(is_cooperative(state, move, public=public) for move in moves), len(moves)),
        "agreement_rate": Count(int(owners is not None)),
        "messages": Count(len(state.messages)),
    }
    if owners is None:
        return {**counts, "utility_share": Count(0), "nash": Count(0), "efficiency": Count(0)}
    division, party = _judge_fairness(Bargain(state.items, state.values), owners, parties), parties[seat]
    return {
        **counts,
        "utility_share": _make_count(division.normalised[party]),
        "envy": Count(division.envy[party]),
        "ef1": Count(int(division.ef1[party])),
        "jain": _make_count(division.jain),
        "nash": Count(division.nash),
        "efficiency": _make_count(division.efficiency),
        "pareto": Count(int(division.pareto)),
    }


def judge_division(state: Bargain, owners: Owners, parties: tuple[str, ...]) -> dict[str, Any]:
    """Return the referee's numbers on a division, as JSON values."""
    return asdict(_judge_fairness(Bargain(state.items, state.values), owners, parties))


def is_decision_point(move: BargainMove) -> bool:
    """Return whether a message is an offer or answers one."""
    return move.message.offer is not None or is_answer(move)


def is_cooperative(state: Bargain, move: BargainMove, *, public: bool) -> bool:
    """Return whether a message is cooperative as the module defines it."""
    n = len(state.values)
    if move.message.offer is not None:
        seats = (seat for seat in range(n) if seat != move.seat)
        return all(_is_leaving_share(state, move.message.offer, seat, public=public) for seat in seats)
    if move.message.accepts and move.previous_offer is not None:
        return state.compute_bundle_value(move.previous_offer.owners, move.seat, move.seat) * n >= sum(state.values[move.seat])
    return False


def _is_leaving_share(state: Bargain, offer: Owners, seat: int, *, public: bool) -> bool:
    n = len(state.values)
    if public:
        return state.compute_bundle_value(offer, seat, seat) * n >= sum(state.values[seat])
    return offer.count(seat) * n >= len(state.items)


def _make_count(value: float | None) -> Count:
    return Count(0, 0) if value is None else Count(value)


@lru_cache(maxsize=1024)
def _judge_fairness(bargain: Bargain, owners: Owners, parties: tuple[str, ...]) -> Fairness:
    return measure_fairness(bargain.values_by_party(parties), bargain.division_by_party(owners, parties))
