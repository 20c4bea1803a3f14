"""The page of one episode, move by move: a list that the page's script turns into steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, NamedTuple

import pandas as pd

from dtef_pipeline.games.contract import GameEnding, GameMove, GameResult, GameTrace
from dtef_pipeline.games.episode_rows import PLAYED_EPISODE
from dtef_pipeline.games.in_play import (
    ACTION_WORD,
    NOT_SHOWN_TO_PLAYERS,
    GameInPlay,
    in_units,
    system_text,
    trace_of_json,
    turn_text,
)
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.persona_results import player_names
from dtef_pipeline.games.personas import BASELINE_PREFIX
from dtef_pipeline.games.report.league_rows import PLAYER_KEYS, ScenarioResults
from dtef_pipeline.games.report.look import games_file, games_style
from dtef_pipeline.games.solitaire.tableau import CARDS
from dtef_pipeline.report.isolated import inline
from dtef_pipeline.report.markup import described, is_unknown, paragraph, section
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.plain import without_thinking

MOST_MOVES_SHOWN, MOST_OF_A_TEXT = 400, 8_000
"""Steps on one page, and characters of one text."""
_MOVES_HOW = (
    "Buttons or the keys ← → Home End go from move to move. The table shows all there is, also what seats hide from each other; what a seat was "
    "told is beneath. Of a text the action that was read is marked."
)
_OUTCOME_WORDS = {
    "win": "won",
    "loss": "lost",
    "draw": "neither won nor lost",
    "unsolved": "did not solve it",
    "agreement": "came to an agreement",
    "no_agreement": "came to no agreement",
}
_KIND_WORDS = {"illegal": "illegal", "unparsed": "no command found", "refused": "refused"}


def episode_page(found: ScenarioResults, chosen: ChosenEpisode, page: str) -> str:
    """The page. `page`: the file of its scenario."""
    row = chosen.row
    title = f"{found.name}, seed {row['cluster']}: {row['player']}"
    names = seat_players(found, chosen)
    chapters = [
        Chapter("moves", "Moves", _moves(found, chosen, names), style=games_style(), script=games_file("games.js")),
        Chapter("about", "About", _about(found, chosen)),
    ]
    back = f'<p><a href="{INDEX_PAGE}">All scenarios</a> · <a href="{page}">{escape(found.name)}</a></p>'
    told = f"<p>{inline(row['player'])} {_ended_in_words(found, row)} Shown as: {escape(chosen.why[0].lower() + chosen.why[1:])}.</p>"
    return build_report(title, back + told, chapters)


def _ended_in_words(found: ScenarioResults, row: StoredRow) -> str:
    """How it ended for the player, as the end of a sentence that begins with its name."""
    did = _OUTCOME_WORDS.get(row["outcome"], f"ended with {escape(str(row['outcome']))}")
    if is_unknown(row["reward"]):
        return f"{did}."
    reward = in_units(row["reward"], found.pack.scenario.unit if found.pack else "").removeprefix("reward ")
    return f"{did}: a reward of {escape(reward)}."


def seat_players(found: ScenarioResults, chosen: ChosenEpisode) -> list[str]:
    """Who sits at each seat."""
    row, seats = chosen.row, _seats(found, chosen)
    return [row["player"] if at == row["seat"] else str(row["opponent"]) for at in range(len(seats))]


def _seats(found: ScenarioResults, chosen: ChosenEpisode) -> list[str]:
    if found.playable:
        return list(found.playable.manifest.seats)
    moves = trace_of_json(chosen.row["trace"]).moves
    return [f"seat {at}" for at in range(max([move.seat for move in moves] + [chosen.row["seat"]]) + 1)]


def _moves(found: ScenarioResults, chosen: ChosenEpisode, names: Sequence[str]) -> str:
    row, seats = chosen.row, _seats(found, chosen)
    trace = trace_of_json(row["trace"])
    steps, last, ending = episode_steps(trace, found.playable, int(row["cluster"]))
    if not steps:
        return section("moves", "Moves", _MOVES_HOW, paragraph("No move was made."))
    shown = [_step(found, step, at, seats, names) for at, step in enumerate(steps[:MOST_MOVES_SHOWN])]
    left = len(steps) - MOST_MOVES_SHOWN
    more = paragraph(f"{counted(left, 'more move')} follow; the table episodes has them all, in `trace`.") if left > 0 else ""
    end = "" if last is None else drawn_table(found.engine, last, seats, None)
    unit = found.pack.scenario.unit if found.pack else ""
    rewards = "" if trace.result is None else _ended(trace.result, seats, names, unit)
    shown.append(f'<li class="step" id="move-end"><h3>The end</h3>{end}{_ending(ending)}{rewards}{more}</li>')
    unknown = (
        "" if found.playable else paragraph("Tables are not shown: these moves are of another version than the one installed.")
    )
    body = f'{unknown}<div class="replay" data-steps="{len(shown)}"><ol class="steps-list">{"".join(shown)}</ol></div>'
    return section("moves", "Moves", _MOVES_HOW, body)


def _ending(ending: GameEnding | None) -> str:
    """What every seat learns at the end, then what no player was shown, marked as such."""
    if ending is None:
        return ""
    shown = "".join(f"<li>{inline(line)}</li>" for line in ending.shown)
    hidden = "".join(f'<li>{inline(line)} <span class="flag warn">{NOT_SHOWN_TO_PLAYERS}</span></li>' for line in ending.hidden)
    return f'<ul class="ending">{shown}{hidden}</ul>'


def _ended(result: GameResult, seats: Sequence[str], names: Sequence[str], unit: str) -> str:
    rows = "".join(
        f"<li><strong>{escape(seat)}</strong> {inline(name)}: {escape(outcome.replace('_', ' '))}, "
        f"{escape(in_units(reward, unit))}</li>"
        for seat, name, outcome, reward in zip(seats, names, result.outcomes, result.rewards, strict=True)
    )
    noted = f'<p class="count">Noticed: {escape(", ".join(result.flags).replace("_", " "))}</p>' if result.flags else ""
    return f'<ul class="ended">{rows}</ul>{noted}'


def _step(found: ScenarioResults, step: EpisodeStep, at: int, seats: Sequence[str], names: Sequence[str]) -> str:
    move = step.move
    heading = (
        f'<h3>Turn {move.turn + 1} · <span class="seat seat-{min(move.seat, 3)}">{escape(seats[move.seat])}</span> '
        f"{inline(names[move.seat])} {_verdict(step)}</h3>"
    )
    table = "" if step.told is None else drawn_table(found.engine, step.told, seats, move.seat)
    return f'<li class="step" id="move-{at + 1}">{heading}{table}{_seen(step)}{_written(found.engine, step, seats)}{_answer(step)}</li>'


def _verdict(step: EpisodeStep) -> str:
    move = step.move
    if move.by_default:
        return '<span class="flag warn">played for the player</span>'
    if move.illegal:
        return f'<span class="flag warn">{escape(_KIND_WORDS.get(move.illegal.kind, move.illegal.kind))}</span>'
    return '<span class="flag right">legal</span>' if move.text is not None else '<span class="flag">baseline</span>'


def _folded(title: str, text: str) -> str:
    """A long text that is seen when it is opened."""
    return (
        f'<details class="seen"><summary>{title}</summary><div class="raw" dir="auto">{escape(_cut_text(text))}</div></details>'
    )


def _seen(step: EpisodeStep) -> str:
    return _folded("What the seat was told", step.seen) if step.seen and step.move.text is not None else ""


def _written(name: str, step: EpisodeStep, seats: Sequence[str]) -> str:
    move = step.move
    played = "" if move.command is None else drawn_command(name, move.command, step.told, seats, move.seat)
    if move.text is None:
        return played
    parts = text_parts(move.text, played=move.command is not None)
    thinking = _folded("The whole text, with its thinking", move.text) if parts.has_thinking else ""
    return f'<div class="raw wrote" dir="auto">{_marked(parts)}</div>{thinking}{played}'


def _marked(parts: TextParts) -> str:
    action = f'<mark class="action">{escape(_cut_text(parts.action))}</mark>' if parts.action else ""
    shown = "\n".join(filter(None, (escape(_cut_text(parts.plan)), action, escape(_cut_text(parts.after)))))
    return shown or '<span class="count">(no text)</span>'


def _answer(step: EpisodeStep) -> str:
    """Why a text was no move; else what the game answered, which is mostly what the seat sees next."""
    move = step.move
    if move.illegal:
        return f'<p class="flagged" dir="auto">{escape(_cut_text(move.illegal.reason))}</p>'
    return _folded("What the game answered", move.reaction) if move.reaction else ""


def _cut_text(text: str) -> str:
    if len(text) <= MOST_OF_A_TEXT:
        return text
    return f"{text[:MOST_OF_A_TEXT]} … ({counted(len(text) - MOST_OF_A_TEXT, 'more character')})"


def _about(found: ScenarioResults, chosen: ChosenEpisode) -> str:
    row = chosen.row
    facts = {
        "Scenario": inline(f"{found.name}, version {found.version}"),
        "Seed": inline(row["cluster"]),
        "Player": inline(row["player"]),
        "Model": inline(row["model_variant"]),
        "Persona": inline(row["persona"]) if row["persona"] else "",
        "Against": inline(row["opponent"]) if row["opponent"] else "",
        "Snapshot, draw": inline(f"{row['snapshot']}, {row['draw']}"),
        "Episode": f"<code>{inline(row['episode_id'])}</code>",
        "Trace": f"<code>{inline(row['trace_hash'])}</code>",
    }
    told = "How to find the episode in the tables. Played again, it has the same trace hash."
    body = described({name: value for name, value in facts.items() if value})
    if found.playable and not str(row["model"]).startswith("baseline/"):
        rules = system_text(found.playable.manifest, int(row["seat"]), None)
        body += _folded("The rules as the player was told, without its persona", rules)
    return section("about", "About", told, body)


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


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """One move of a trace."""

    move: GameMove
    told: dict[str, Any] | None
    """The whole state before the move, as `Scenario.told`; None: it is not known."""
    seen: str
    """What the seat was told before the move: what it sees; empty: it is not known."""


class FollowedEpisode(NamedTuple):
    """An episode as it can be followed."""

    steps: list[EpisodeStep]
    told: dict[str, Any] | None = None
    """The whole last state, as `Scenario.told`; None: it is not known."""
    ending: GameEnding | None = None
    """None: the episode stopped before its end, or its end is not known."""


def episode_steps(trace: GameTrace, pack: Pack | None, seed: int) -> FollowedEpisode:
    """The steps, and the end. Without the pack, or where the trace does not play again by it, states and ending are not known."""
    plain = FollowedEpisode([EpisodeStep(move, None, "") for move in trace.moves])
    if pack is None:
        return plain
    game = GameInPlay(pack, seed)
    try:
        steps = list(_played_again(trace, game))
        return FollowedEpisode(_with_last_reactions(steps, game), pack.scenario.told(game.state), game.ending)
    except (ValueError, KeyError, IndexError):
        return plain


def _with_last_reactions(steps: Sequence[EpisodeStep], game: GameInPlay) -> list[EpisodeStep]:
    """The steps with all that each seat was told at the end: a trace has the first line of it alone."""
    last = {step.move.seat: place for place, step in enumerate(steps) if step.move.text is not None}
    return [
        replace(step, move=replace(step.move, reaction=game.last_reaction(step.move)))
        if last.get(step.move.seat) == place
        else step
        for place, step in enumerate(steps)
    ]


def _played_again(trace: GameTrace, game: GameInPlay) -> Iterator[EpisodeStep]:
    """Raises ValueError where the trace is of another scenario or seed."""
    scenario = game.pack.scenario
    before, seen = scenario.told(game.state), ""
    for move in trace.moves:
        if move.by_default:  # the game has played it already, after the text before it
            yield EpisodeStep(move, before, "")
            continue
        if game.seat != move.seat:
            raise ValueError(f"turn {move.turn}: the trace has seat {move.seat} move, the game seat {game.seat}")
        before, seen = scenario.told(game.state), turn_text(game.pack, game.state, move.seat)
        yield EpisodeStep(move, before, seen)
        if move.text is not None:
            game.writes(move.text)
        elif move.command is not None:
            game.plays(move.command)


@dataclass(frozen=True, slots=True)
class TextParts:
    """A text as people look at it."""

    plan: str
    """What stands before the action."""
    action: str
    """The line that was read as the action; empty: no line was."""
    after: str
    has_thinking: bool
    """Whether the whole text holds thinking, which is in none of the parts."""


def text_parts(text: str, *, played: bool) -> TextParts:
    """The parts of a text: its action is the last line with `ACTION:`, else, where it was played, its last line."""
    words = without_thinking(text).strip()
    lines = words.splitlines()
    last = max((at for at, line in enumerate(lines) if ACTION_WORD in line.casefold()), default=None)
    if last is None and played and lines:
        last = len(lines) - 1
    if last is None:
        return TextParts(words, "", "", words != text.strip())
    before, after = ("\n".join(part).strip() for part in (lines[:last], lines[last + 1 :]))
    return TextParts(before, lines[last].strip(), after, words != text.strip())


_OF_CHOICE = (
    *("league", "scenario", "version", "episode_id", "item_id", *PLAYER_KEYS, "opponent", "cluster", "draw", "seat"),
    *("outcome", "reward", "steps", "n_turns", "illegal", "refused", "forfeits", "defaults", "flags"),
)


class ChosenEpisode(NamedTuple):
    """One episode, and why it is shown."""

    why: str
    row: StoredRow
    """Of `episodes`, with `player`, `trace` and `trace_hash`."""


class _Choice(NamedTuple):
    why: str
    fits: Callable[[pd.DataFrame], pd.Series[bool]]
    """Which episodes may be it."""
    by: tuple[tuple[str, bool], ...]
    """Columns to sort by, and whether upwards: the first is it."""


_EPISODE_CHOICES = (
    _Choice(
        "The best episode of a model", lambda frame: frame["by_model"], (("reward", False), ("illegal", True), ("steps", True))
    ),
    _Choice("The worst episode of a model", lambda frame: frame["by_model"], (("reward", True), ("n_turns", False))),
    _Choice(
        "Texts that were no legal moves",
        lambda frame: frame["illegal"] > 0,
        (("forfeits", True), ("defaults", True), ("illegal", False)),
    ),
    _Choice("A refusal to play", lambda frame: frame["refused"] > 0, (("refused", False),)),
    _Choice("Forfeited for want of a legal move", lambda frame: frame["forfeits"] > 0, (("n_turns", False),)),
    _Choice("The best episode of a baseline", lambda frame: ~frame["by_model"], (("reward", False), ("steps", True))),
)


def chosen_episodes(rows: StoredRows, found: ScenarioResults) -> list[ChosenEpisode]:
    """A handful of episodes of the version that is shown, each once."""
    frame = _played(rows, found)
    chosen: dict[str, str] = {}
    for choice in _EPISODE_CHOICES if len(frame) else ():
        own = frame[choice.fits(frame) & ~frame["episode_id"].isin(list(chosen))]
        if len(own):
            names, ways = [name for name, _ in choice.by], [up for _, up in choice.by]
            first = own.sort_values([*names, "item_id", "episode_id"], ascending=[*ways, True, True]).iloc[0]
            chosen[str(first["episode_id"])] = choice.why
    return [ChosenEpisode(why, row) for name, why in chosen.items() if (row := _whole(rows, found, name))]


def _where(found: ScenarioResults) -> dict[str, Any]:
    league, _, scenario = found.name.partition("/")
    return {"league": league, "scenario": scenario, "version": found.version}


def _played(rows: StoredRows, found: ScenarioResults) -> pd.DataFrame:
    """The episodes that were played to their end, of the snapshots that the boards show."""
    if not rows.has("episodes"):
        return pd.DataFrame()
    frame: pd.DataFrame = rows.table("episodes", _OF_CHOICE, {**_where(found), "status": PLAYED_EPISODE}).to_pandas()
    players = found.overall
    if len(players):
        frame = frame.merge(players[PLAYER_KEYS].drop_duplicates(), on=PLAYER_KEYS)
    return frame.assign(by_model=~frame["model"].str.startswith(BASELINE_PREFIX))


def _whole(rows: StoredRows, found: ScenarioResults, episode_id: str) -> StoredRow | None:
    held = rows.rows("episodes", (*_OF_CHOICE, "trace", "trace_hash"), {**_where(found), "episode_id": episode_id})
    if not held:
        return None
    (player,) = player_names([held[0]["persona"]], [held[0]["model"]])
    return {**held[0], "player": player}
