"""What a party is told of a negotiation: lines of the referee, and words of the parties behind `NAME>` on every line."""

from __future__ import annotations

from collections.abc import Iterator

from dtef_pipeline.games.negotiation.bargain import Bargain, BargainMove, Owners
from dtef_pipeline.games.negotiation.messages import quoted_words


def bargain_words(state: Bargain, seat: int, parties: tuple[str, ...], most_messages: int, *, public: bool, over: bool) -> str:
    """All that a seat may know of a negotiation. `public`: with what the items are worth to the others."""
    others = [at for at in range(len(parties)) if at != seat]
    called = "party is" if len(others) == 1 else "parties are"
    lines = [
        f"You are party {parties[seat]}. The other {called} {', '.join(parties[at] for at in others)}.",
        f"Worth to you: {_values(state, seat)}.",
        *(f"Worth to {parties[at]}: {_values(state, at)}." for at in others if public),
        f"Messages so far: {len(state.messages)} of {most_messages}.",
    ]
    for number, answer in enumerate(state.answers(), 1):
        lines += _message_lines(state, answer, number, seat, parties)
    lines += _standing_lines(state, seat, parties, over)
    return "\n".join([*lines, *(["It is your turn to write."] if not over and state.writer == seat else [])])


def _values(state: Bargain, seat: int) -> str:
    values = ", ".join(f"{item} {value}" for item, value in zip(state.items, state.values[seat], strict=True))
    return f"{values} (together {sum(state.values[seat])})"


def _message_lines(state: Bargain, one: BargainMove, number: int, seat: int, parties: tuple[str, ...]) -> Iterator[str]:
    who = f"you, {parties[seat]}" if one.seat == seat else parties[one.seat]
    if one.message.accepts:
        said = ", with an acceptance of the offer that stood."
    elif one.message.offer is not None:
        said = f", with an offer: {_division(state, one.message.offer, seat, parties)}"
    else:
        said = ", without an offer." if one.message.words else ": nothing."
    yield f"Message {number}, from {who}{said}"
    yield from quoted_words(one.message.words, parties[one.seat])


def _division(state: Bargain, owners: Owners, seat: int, parties: tuple[str, ...]) -> str:
    bundles = state.named_division(owners, parties)
    told = "; ".join(f"{party} gets {', '.join(bundle) or 'nothing'}" for party, bundle in bundles.items())
    return f"{told}. Your part is worth {state.worth(owners, seat, seat)} to you."


def _standing_lines(state: Bargain, seat: int, parties: tuple[str, ...], over: bool) -> Iterator[str]:
    offer, agreed = state.standing(), state.agreed()
    if agreed is not None:
        yield f"All agree: {_division(state, agreed, seat, parties)}"
    elif over:
        yield "The last message is written, and there is no agreement: nobody gets anything."
    elif offer is None:
        yield "No offer stands."
    else:
        accepted = " and ".join(parties[at] for at in sorted(offer.accepted))
        also = f" Accepted so far by {accepted}." if accepted else ""
        yield (
            f"The offer that stands is from {'you' if offer.by == seat else parties[offer.by]}: "
            + _division(state, offer.owners, seat, parties)
            + also
        )
