"""What lies on the table, drawn in plain HTML: cards of a solitaire and of poker, offers and bids. Any other state is a list of its parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from dtef_pipeline.games.solitaire.tableau import CARDS
from dtef_pipeline.report.isolated import inline
from dtef_pipeline.report.markup import described

MOST_OF_A_PART = 600
"""Characters of one part of a state that is not drawn."""
_SUITS = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
_RED = "dh"
_WORDS_SHOWN = 1_000
Told = Mapping[str, Any]


def drawn_table(name: str, told: Told, seats: Sequence[str], mover: int | None) -> str:
    """Markup of a state. `name`: the scenario; `mover`: the seat whose turn it is, None: the game is over."""
    drawn = _DRAWN.get(name)
    if drawn is not None:
        try:
            return f'<div class="table" dir="ltr">{drawn(told, seats, mover)}</div>'
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            pass  # a scenario of the user's may have the name of a shipped one, and other parts
    return described({str(key): inline(_cut(json.dumps(value, ensure_ascii=False))) for key, value in told.items()})


def drawn_command(name: str, command: str, told: Told | None, seats: Sequence[str], seat: int) -> str:
    """Markup of a command as it was played: an offer in words, any other as it is."""
    if name == "negotiation/allocation" and told is not None:
        try:
            said = {"words": "", **json.loads(command), "party": seats[seat]}
            return f'<ol class="talk">{_bubble(said, seats, told["values"])}</ol>'
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
            pass
    return f'<p class="played">plays <code>{escape(_cut(command))}</code></p>'


def _cut(words: str) -> str:
    return words if len(words) <= MOST_OF_A_PART else f"{words[:MOST_OF_A_PART]} …"


def _card(name: str, kind: str = "") -> str:
    """A card of two letters such as `Ts`, of one such as `K`, or a number."""
    suit = _SUITS.get(name[1:2], "") if len(name) == 2 else ""
    rank = {"T": "10"}.get(name[0], name[0]) if suit else name
    kinds = " ".join(filter(None, ("card", "red" if suit and name[1] in _RED else "", kind)))
    return f'<span class="{kinds}">{escape(rank)}{suit}</span>'


def _cards(names: Sequence[str], none: str = "none") -> str:
    return "".join(map(_card, names)) if names else f'<span class="count">{escape(none)}</span>'


def _spot(title: str, body: str, kind: str = "") -> str:
    return f'<div class="spot {kind}"><span class="where">{title}</span><div class="cards">{body}</div></div>'


def _solitaire(told: Told, _: Sequence[str], __: int | None) -> str:
    top = int(told["foundation"])
    home = _card(str(top), "home") if top else '<span class="card empty"></span>'
    stock = "".join(_card(str(one), "down") for one in told["stock"]) or '<span class="card empty"></span>'
    waste = "".join(_card(str(one)) for one in told["waste"]) or '<span class="card empty"></span>'
    piles = [
        _spot(f"foundation, {top} of {CARDS}", home),
        _spot("stock, the first is drawn next", stock),
        _spot("waste, the last is on top", waste),
    ]
    columns = [
        _spot(f"c{at}", "".join(_card(str(one)) for one in column) or '<span class="card empty"></span>', "pile")
        for at, column in enumerate(told["columns"], 1)
    ]
    facts = f"{told['steps']} commands · {told['hints']} hints · {told['recycles']} recycles left"
    return (
        f'<div class="row">{"".join(piles)}</div><div class="row">{"".join(columns)}</div><p class="count">{escape(facts)}</p>'
    )


def _poker(told: Told, seats: Sequence[str], mover: int | None) -> str:
    hands = [one if isinstance(one, list) else [one] for one in told["cards"]]
    board = told["board"] if "board" in told else [told["public_card"]] if told.get("public_card") else []
    has_board = "board" in told or told.get("public_card") is not None
    spots = [
        _spot(
            f"{escape(seat)}{' · to move' if at == mover else ''}, {int(paid)} in", _cards(hand), "mover" if at == mover else ""
        )
        for at, (seat, hand, paid) in enumerate(zip(seats, hands, told["paid"], strict=True))
    ]
    if has_board:
        spots.insert(1, _spot("board", _cards(board, "no cards yet")))
    pot = sum(int(one) for one in told["paid"])
    where = f"{told['street']} · " if told.get("street") else ""
    return f'<div class="row">{"".join(spots)}</div><p class="count">{escape(where)}pot {pot}</p>'


def _allocation(told: Told, seats: Sequence[str], mover: int | None) -> str:
    items, values = told["items"], told["values"]
    head = "".join(f'<th scope="col">{escape(str(item))}</th>' for item in items)
    rows = "".join(
        f'<tr><th scope="row">{escape(seat)}{" · to write" if at == mover else ""}</th>'
        + "".join(f"<td>{int(values[seat][item])}</td>" for item in items)
        + "</tr>"
        for at, seat in enumerate(seats)
    )
    head = f'<thead><tr><th scope="col">Party</th>{head}</tr></thead>'
    worth = f"<table><caption>What each item is worth to each party</caption>{head}<tbody>{rows}</tbody></table>"
    talk = "".join(_bubble(one, seats, values) for one in told["messages"])
    return worth + (f'<ol class="talk">{talk}</ol>' if talk else "") + _agreed(told, seats, values)


def _bubble(message: Told, seats: Sequence[str], values: Told) -> str:
    side = "" if message["party"] == seats[0] else "other"
    words = str(message.get("words") or "")
    parts = [f'<p dir="auto">{escape(words[:_WORDS_SHOWN])}</p>'] if words else []
    parts += [_division(message["propose"], values, "offers")] if message.get("propose") else []
    parts += ['<p class="deal">accepts the offer</p>'] if message.get("accept") else []
    parts = parts or ['<p class="count">no words and no offer</p>']
    return f'<li class="{side}"><span class="where">{escape(str(message["party"]))}</span>{"".join(parts)}</li>'


def _division(shares: Told, values: Told, verb: str) -> str:
    told = [
        f"{escape(str(party))}: {escape(', '.join(map(str, items)) or 'nothing')} "
        f'<span class="count">(worth {sum(int(values[party][item]) for item in items)})</span>'
        for party, items in shares.items()
    ]
    return f'<p class="deal">{verb} {"; ".join(told)}</p>'


def _agreed(told: Told, _: Sequence[str], values: Told) -> str:
    return _division(told["agreement"], values, "Agreed:") if told.get("agreement") else ""


def _auction(told: Told, seats: Sequence[str], mover: int | None) -> str:
    bids = told["bids"]
    spots = [
        _spot(
            f"{escape(seat)}{' · to bid' if at == mover else ''}",
            f'<span class="worth">worth {int(told["values"][seat])}</span>'
            + (f'<span class="card">{int(bids[seat])}</span>' if seat in bids else '<span class="card empty"></span>'),
            "mover" if at == mover else "",
        )
        for at, seat in enumerate(seats)
    ]
    end = f"{told['winner']} wins and pays {told['price']}" if "winner" in told else "the bids are secret until all have bid"
    return (
        f'<div class="row">{"".join(spots)}</div><p class="count">{escape(str(told["price_rule"]))} price · {escape(end)}</p>'
    )


_DRAWN: Mapping[str, Callable[[Told, Sequence[str], int | None], str]] = {
    "solitaire/thirteen": _solitaire,
    "poker/kuhn": _poker,
    "poker/leduc": _poker,
    "poker/limit-holdem": _poker,
    "negotiation/allocation": _allocation,
    "negotiation/sealed-bid": _auction,
}
