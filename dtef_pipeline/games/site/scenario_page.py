"""The page of one scenario: players, opponents, metrics, form of play, personas, episodes and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from dtef_pipeline.games.game_in_play import describe_unit
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.site.boards import BoardPage, describe_board
from dtef_pipeline.games.site.episode_list import build_episodes_section, build_transcript_files
from dtef_pipeline.games.site.game_labels import format_unit
from dtef_pipeline.games.site.league_rows import ScenarioResults
from dtef_pipeline.games.site.metric_tables import (
    build_form_section,
    build_mean_estimate,
    build_metrics_section,
    build_opponents_section,
    build_players_section,
    build_same_games_section,
)
from dtef_pipeline.games.site.personas_section import build_persona_rows, personas_section
from dtef_pipeline.site.content import Block, Column, DataFile, Fold, Link, Page, Section, Table, TemplateBlock
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.paths import board_page
from dtef_pipeline.text.quantity_words import format_count

CRUMBS = (Link("Games", board_page("games")),)


def build_scenario_pages(
    scenario: ScenarioResults, boards: Sequence[BoardPage], episodes: pd.DataFrame, personas: Mapping[str, Persona]
) -> Iterator[Page | DataFile]:
    """Build the page, then the transcripts that it loads. `episodes`: its listed episodes, see `choose_listed_episodes`."""

    names = sorted(set(scenario.filter_by_metric()["persona"]) & set(personas))
    sections = [
        build_players_section(scenario),
        build_opponents_section(scenario),
        build_metrics_section(scenario),
        build_form_section(scenario),
        personas_section(build_persona_rows(scenario), [personas[name] for name in names]),
        build_same_games_section(scenario),
        build_episodes_section(scenario, episodes),
        _build_rules_section(scenario),
    ]
    text = scenario.pack.manifest.description if scenario.pack else "This scenario is no longer installed."
    yield Page(
        scenario.path, scenario.title, _summarize_scenario(scenario, boards), sections, CRUMBS, text, scripts=("games.js",)
    )
    yield from build_transcript_files(scenario, episodes)


def _summarize_scenario(scenario: ScenarioResults, boards: Sequence[BoardPage]) -> str:
    """Describe the result of its models; without models, the best of its baselines."""
    rows = scenario.filter_by_metric()
    if boards:
        return describe_board(boards[0])
    if not len(rows):
        return "No results yet. Run `dtef games board --refresh` to make them."
    best = rows.iloc[0].to_dict()
    among, mean = format_count(len(rows), "baseline"), show(build_mean_estimate(best))
    return (
        f"No model has played yet; the best of {among}, {best['player']}, makes {mean}{format_unit(scenario.unit)} per episode."
    )


def _build_rules_section(scenario: ScenarioResults) -> Section:
    if scenario.pack is None:
        return Section("rules", "Rules", [])
    manifest = scenario.pack.manifest
    note = "" if scenario.playable else f" is installed; these results are of version {scenario.version}"
    illegal = "it forfeits" if manifest.on_illegal == "forfeit" else "a move is made for it"
    facts = {
        "Version": f"{manifest.version}{note}",
        "Earlier versions, which are never averaged with it": ", ".join(map(str, scenario.older)),
        "Status": manifest.status,
        "Seats": ", ".join(manifest.seats),
        "Reward": describe_unit(scenario.pack.scenario.unit),
        "Sum of rewards": "what one seat wins, the others lose" if scenario.pack.scenario.zero_sum else "",
        "Usual opponents": ", ".join(manifest.opponents),
        "Turn limit": f"{manifest.turn_limit:,}",
        "A text without a legal move": f"{format_count(manifest.retries, 'more text')} in the same turn, then {illegal}",
        "Legal commands": "listed in every turn" if manifest.show_legal else "not listed",
    }
    rows = [{"name": name, "value": value} for name, value in facts.items() if value]
    texts = [manifest.rules, *(f"You must not: {constraint}" for constraint in manifest.constraints), manifest.reply_format]
    blocks: list[Block] = [
        Table("How it is played", (Column("name", "Rule"), Column("value", "Value", "long")), rows),
        Fold(
            "The rules that every player gets",
            [TemplateBlock("games/words.html.j2", {"texts": [text.strip() for text in texts]})],
        ),
    ]
    return Section("rules", "Rules", blocks)
