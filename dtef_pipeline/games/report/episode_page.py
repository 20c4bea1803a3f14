"""The page of one episode, move by move: a list that the page's script turns into steps."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dtef_pipeline.games.contract import GameEnding, GameResult
from dtef_pipeline.games.opening import NOT_SHOWN_TO_PLAYERS, in_units, system_text
from dtef_pipeline.games.report.chosen_episodes import ChosenEpisode
from dtef_pipeline.games.report.drawn_tables import drawn_command, drawn_table
from dtef_pipeline.games.report.episode_steps import EpisodeStep, TextParts, episode_steps, text_parts
from dtef_pipeline.games.report.league_rows import ScenarioResults
from dtef_pipeline.games.report.look import games_file, games_style
from dtef_pipeline.games.traces import trace_of_json
from dtef_pipeline.report.isolated import inline
from dtef_pipeline.report.markup import described, is_unknown, paragraph, section
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE
from dtef_pipeline.report.stored_rows import StoredRow
from dtef_pipeline.text.counted import counted

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
