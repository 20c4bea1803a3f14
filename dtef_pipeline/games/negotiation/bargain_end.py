"""What is said of a negotiation that is over: the agreement to all, and what the referee makes of it where values are no secret."""

from __future__ import annotations

from collections.abc import Iterator

from dtef_pipeline.games.contract import GameEnding
from dtef_pipeline.games.negotiation.allocation_metrics import judged_division
from dtef_pipeline.games.negotiation.bargain import Bargain, Owners
from dtef_pipeline.text.counted import counted


def bargain_end(state: Bargain, parties: tuple[str, ...], *, public: bool) -> GameEnding:
    """The end in sentences. `public`: whether all know all values; otherwise these, and the referee's numbers, are hidden."""
    owners = state.agreed()
    agreed = "There was no agreement: nobody gets anything." if owners is None else _agreed(state, owners, parties)
    worths = [
        f"Worth to {party}: {', '.join(f'{item} {value}' for item, value in own.items())} (together {sum(own.values())})."
        for party, own in state.named_values(parties).items()
    ]
    judged = () if owners is None else tuple(_judged_lines(state, owners, parties))
    return GameEnding((agreed, *worths, *judged)) if public else GameEnding((agreed,), (*worths, *judged))


def _agreed(state: Bargain, owners: Owners, parties: tuple[str, ...]) -> str:
    bundles = state.named_division(owners, parties)
    told = (f"{party} gets {', '.join(bundle) or 'nothing'}" for party, bundle in bundles.items())
    return f"All agree: {'; '.join(told)}."


def _judged_lines(state: Bargain, owners: Owners, parties: tuple[str, ...]) -> Iterator[str]:
    """The referee's numbers: of each party, then of all together."""
    told = judged_division(state, owners, parties)
    for party in parties:
        fair = (
            "envies nobody by more than one item (EF1)"
            if told["ef1"][party]
            else "envies somebody by more than one item (no EF1)"
        )
        yield (
            f"{party}: {counted(told['utility'][party], 'point')}, {_index(told['normalised'][party])} of all that there is to it; "
            f"envy {told['envy'][party]}; {fair}."
        )
    pareto = (
        "nobody could have more without somebody having less" if told["pareto"] else "somebody could have more, and nobody less"
    )
    yield (
        f"Together: Jain's index {_index(told['jain'])}, Nash welfare {told['nash']:.2f}, efficiency {_index(told['efficiency'])}; {pareto}."
    )


def _index(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
