"""The page of one scenario: players, opponents, metrics, form of play, personas, episodes and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.games.game_in_play import describe_unit
from dtef_pipeline.games.personas import NO_PERSONA, PERSONA_STATUS, Persona
from dtef_pipeline.games.site.boards import BoardPage, describe_board
from dtef_pipeline.games.site.episode_list import build_episodes_section, build_transcript_files
from dtef_pipeline.games.site.game_labels import format_unit
from dtef_pipeline.games.site.league_rows import ScenarioResults, compare_on_seeds, describe_difference
from dtef_pipeline.games.site.metric_tables import (
    build_form_section,
    build_mean_estimate,
    build_metrics_section,
    build_opponents_section,
    build_players_section,
    build_same_games_section,
)
from dtef_pipeline.site.content import (
    Block,
    Column,
    DataFile,
    Fold,
    Link,
    Page,
    Section,
    Table,
    TemplateBlock,
    convert_to_rows,
    is_unknown,
)
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
    baselines, mean = format_count(len(rows), "baseline"), show(build_mean_estimate(best))
    return f"No model has played yet; the best of {baselines}, {best['player']}, makes {mean}{format_unit(scenario.unit)} per episode."


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


_PERSONAS_HOW = (
    "A row is a model that plays as a persona. The change is from the same model as itself, on the games that it played in both ways, with a "
    "95% interval by seeds. Nothing here measures whether its words are those of the persona."
)
_PERSONA_COLUMNS = (
    Column("scenario", "Scenario"),
    Column("model", "Model", "model", always=True),
    Column("persona", "Persona", always=True),
    Column("mean", "Mean reward", "score"),
    Column("difference", "Change", "signed", "Mean reward as the persona minus that as itself, on the same games"),
    Column("verdict", "Verdict", always=True),
    Column("status", "Status", meaning="Present status in the file of the persona"),
)


def build_persona_rows(scenario: ScenarioResults) -> list[dict[str, Any]]:
    """Build one row per model and persona of a scenario."""
    players = scenario.filter_by_metric()
    return [_build_persona_row(scenario, row) for row in convert_to_rows(players[players["persona"] != NO_PERSONA])]


def _build_persona_row(scenario: ScenarioResults, row: dict[Any, Any]) -> dict[str, Any]:
    difference = compare_on_seeds(scenario.rewards, row["player"], row["name"])
    return {
        "scenario": scenario.link,
        "model": row["name"],
        "persona": row["as_persona"],
        "mean": build_mean_estimate(row),
        "difference": difference,
        "verdict": describe_difference(difference) if not is_unknown(difference) else "not played as itself",
        "status": row[PERSONA_STATUS],
        "unit": scenario.unit,
    }


def personas_section(rows: list[dict[str, Any]], personas: list[Persona] | None = None) -> Section:
    """Build the table, with the texts of known personas; empty if no model played as a persona."""
    if not rows:
        return Section("personas", "Personas", [])
    folds: list[Block] = [
        Fold(
            f"{persona.display_name} v{persona.version}, {persona.status}",
            [TemplateBlock("games/words.html.j2", {"texts": [persona.system_prompt]})],
        )
        for persona in personas or ()
    ]
    columns = _PERSONA_COLUMNS if len({row["scenario"] for row in rows}) > 1 else _PERSONA_COLUMNS[1:]
    return Section(
        "personas", "Personas", [Table("Personas of models", columns, rows), *folds], _summarize_personas(rows), _PERSONAS_HOW
    )


def _summarize_personas(rows: list[dict[str, Any]]) -> str:
    tests = [row for row in rows if row["verdict"] in ("better", "worse", "no clear difference")]
    if not tests:
        return f"{format_count(len(rows), 'pair')} of model and persona played; none can be compared with the model as itself."
    changes = [row for row in tests if row["verdict"] != "no clear difference"]
    first = f"A persona clearly changes the reward in {len(changes)} of {format_count(len(tests), 'comparison')}"
    if not changes:
        return f"{first}."
    top = max(changes, key=lambda row: abs(row["difference"].value))
    difference = show(top["difference"], "signed")
    return f"{first}, most for {top['model']} as {top['persona']}: {difference}{format_unit(top['unit'])} in {top['scenario'].text}."
