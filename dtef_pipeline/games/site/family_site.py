"""The games family on the site: results of players by scenario and opponent, and every listed episode move by move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.games.game_in_play import describe_unit
from dtef_pipeline.games.metrics import list_general_metrics
from dtef_pipeline.games.personas import NO_PERSONA, PERSONA_STATUS, Persona
from dtef_pipeline.games.play_drift import GAMES_WATCHED
from dtef_pipeline.games.site.boards import BoardPage, build_boards_of_scenario, describe_board, sort_boards, verdict
from dtef_pipeline.games.site.episode_list import (
    build_episodes_section,
    build_transcript_files,
    choose_listed_episodes,
    describe_game,
)
from dtef_pipeline.games.site.game_labels import (
    GameDocuments,
    describe_watched_setting,
    format_metric_title,
    format_scenario_title,
    format_unit,
    partition_words,
    ranked_metric_words,
)
from dtef_pipeline.games.site.league_rows import (
    ScenarioResults,
    compare_on_seeds,
    describe_difference,
    list_unplayed,
    load_scenario_results,
)
from dtef_pipeline.games.site.metric_tables import (
    build_form_section,
    build_mean_estimate,
    build_metrics_section,
    build_opponents_section,
    build_players_section,
    build_same_games_section,
)
from dtef_pipeline.games.site.model_sections import GameModelSections
from dtef_pipeline.games.tables import GAMES_TABLES
from dtef_pipeline.identity import digest
from dtef_pipeline.report.row_reader import StoredRows
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
from dtef_pipeline.site.family_content import ITEM_COLUMNS, FamilyContent, FamilySite
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.paths import board_page, state_address
from dtef_pipeline.text.number_words import format_count

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


_SCENARIO_COLUMNS = (
    Column("link", "Scenario"),
    Column("description", "What it is", "long"),
    Column("players", "Players", "count", always=True),
    Column("best", "Best model", "model", always=True),
    Column("mean", "Its mean reward", "score"),
    Column("unit", "Unit", more=True),
    Column("episodes", "Episodes", "count", more=True),
    Column("seeds", "Seeds", "count", "Largest number of seeds of a player", more=True),
    Column("version", "Version", "count", more=True),
    Column("status", "Status", more=True),
)
_UNPLAYED_COLUMNS = (
    Column("scenario", "Scenario"),
    Column("player", "Player", "model"),
    Column("status", "State", "code"),
    Column("n", "Episodes", "count", always=True),
    Column("reason", "Reason", "note"),
)
_VALUELESS_COLUMNS = (
    Column("scenario", "Scenario"),
    Column("metric", "Metric", always=True),
    Column("n", "Players", "count", "Players without a value of the metric", always=True),
    Column("players", "Who", "long", more=True),
    Column("reason", "Reason", "note"),
)
_MODEL_METRICS = ("tokens", "dollars")
"""Metrics that baselines do not have."""
_GAME_METHOD = (
    "A game is a seed, seen from one seat, against one opponent; an episode is one player's run of a game. The mean of a metric is the sum of "
    "its counts over the sum of its possible counts. Its 95% interval treats seeds as independent (cluster jackknife); shares with one episode "
    "per seed have Wilson's interval. Below 5 seeds there is no interval.",
    "Two players are compared on the games that both played, by the mean difference of rewards and its interval. “Better” and “worse” mean that "
    "0 lies outside the interval; the interval is not widened for the number of comparisons. A rank range separates only models whose intervals "
    "do not overlap.",
    "Models are ranked on the same games: a model that lacks games of the other models has no rank. The page of a scenario compares all players "
    "on the games that all of them have.",
    "The composite score is the arithmetic mean of metrics on 0-1, each turned so that higher is better, with the weights of the "
    "manifest. If a part is missing, the composite is missing, except for a player that forfeited every episode, whose missing parts "
    "count as the worst.",
)


_NOTHING_KNOWN = GameDocuments()
Boards = Mapping[str, Sequence[BoardPage]]
"""By scenario, its boards."""


def read_games(connection: duckdb.DuckDBPyConnection, documents: GameDocuments = _NOTHING_KNOWN) -> FamilyContent:
    """Read the family's pages. `documents`: scenarios and personas in words; episodes of a missing scenario are shown without rules and
    table."""
    scenarios = load_scenario_results(StoredRows(connection), documents)
    boards = {scenario.name: build_boards_of_scenario(scenario) for scenario in scenarios}
    board_pages = sort_boards(page for group in boards.values() for page in group)
    names = scenarios[0].labels.names if scenarios else {}
    episodes = {scenario.name: choose_listed_episodes(scenario) for scenario in scenarios}
    n = len(scenarios)
    no_models = f"No model has played yet; {format_count(n, 'scenario')} {'has' if n == 1 else 'have'} results of baselines."
    metrics = [
        f"{format_metric_title(metric.name)} ({metric.unit}, {metric.direction}): {metric.description}"
        for metric in list_general_metrics("unit of the game")
    ]
    return FamilyContent(
        verdict(board_pages) if board_pages else no_models,
        [page.board for page in board_pages],
        [
            _build_scenarios_section(scenarios, boards, documents),
            personas_section([row for scenario in scenarios for row in build_persona_rows(scenario)]),
        ],
        GameModelSections(scenarios, episodes),
        _compute_item_scores(scenarios),
        item_note="An item is a game: a seed, seen from one seat, against one opponent. Rewards have the unit of their scenario.",
        pages=lambda: _build_pages(scenarios, boards, episodes, documents),
        data=[_build_counts_section(scenarios), _build_unplayed_section(scenarios), _build_missing_values_section(scenarios)],
        method=[*_GAME_METHOD, *metrics],
        variants={name: variant for variant, name in names.items()},
    )


GAMES_SITE = FamilySite(
    "games",
    "Games",
    tuple(GAMES_TABLES),
    "persona_results",
    read_games,
    GAMES_WATCHED,
    partition_words=partition_words,
    metric_words=ranked_metric_words,
    describe_watched_setting=describe_watched_setting,
    responses="episode_turns",
)


def build_games_site(game_documents: GameDocuments) -> FamilySite:
    """Build the site with the rules and personas of these documents."""
    texts = [document.model_dump_json() for documents in game_documents for _, document in sorted(documents.items())]
    return replace(GAMES_SITE, read=partial(read_games, documents=game_documents), documents=digest(texts))


def _build_pages(
    scenarios: Sequence[ScenarioResults], boards: Boards, episodes: Mapping[str, pd.DataFrame], documents: GameDocuments
) -> Iterator[Page | DataFile]:
    for scenario in scenarios:
        yield from build_scenario_pages(scenario, boards[scenario.name], episodes[scenario.name], documents.personas)


def _build_scenarios_section(scenarios: Sequence[ScenarioResults], boards: Boards, documents: GameDocuments) -> Section:
    rows = sorted(
        (_build_scenario_row(scenario, boards[scenario.name]) for scenario in scenarios), key=lambda row: str(row["link"].text)
    )
    episodes = sum(len(scenario.episodes) for scenario in scenarios)
    titles = sorted(
        format_scenario_title(name) for name in set(documents.manifests) - {scenario.name for scenario in scenarios}
    )
    answer = f"{format_count(len(rows), 'scenario')} with {format_count(episodes, 'episode')}."
    answer += f" Not played yet: {', '.join(titles)}." if titles else ""
    return Section(
        "scenarios",
        "Scenarios",
        [Table("Each has a page with its rules, metrics and episodes", _SCENARIO_COLUMNS, rows)],
        answer,
    )


def _build_scenario_row(scenario: ScenarioResults, boards: Sequence[BoardPage]) -> dict[str, Any]:
    best = next((page.board.models[0] for page in boards if page.board.models), None)
    players, manifest = scenario.filter_by_metric(), scenario.pack.manifest if scenario.pack else None
    return {
        "link": scenario.link,
        "description": manifest.description if manifest else "It is no longer installed.",
        "status": manifest.status if manifest else None,
        "players": len(players),
        "best": best.model if best else None,
        "mean": best.score if best else None,
        "unit": scenario.unit,
        "episodes": len(scenario.episodes),
        "seeds": int(players["n_clusters"].max()) if len(players) else None,
        "version": scenario.version,
    }


def _compute_item_scores(scenarios: Sequence[ScenarioResults]) -> pd.DataFrame:
    """Return the mean reward of each model on each game (seed, seat, opponent) and persona, over draws."""
    frames = [_compute_game_rewards(scenario) for scenario in scenarios]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(ITEM_COLUMNS))


def _compute_game_rewards(scenario: ScenarioResults) -> pd.DataFrame:
    models = scenario.episodes[~scenario.episodes["is_baseline"]]
    keys = ["name", "as_persona", "item_id", "cluster", "seat", "opponent"]
    means = models.groupby(keys, sort=True)["reward"].mean().reset_index()
    return pd.DataFrame([_build_reward_row(scenario, row) for row in convert_to_rows(means)], columns=list(ITEM_COLUMNS))


def _build_reward_row(scenario: ScenarioResults, row: dict[Any, Any]) -> dict[str, Any]:
    as_persona = f", as {row['as_persona']}" if row["as_persona"] else ""
    return {
        "model": row["name"],
        "item": f"{scenario.name}/{row['item_id']}/{row['as_persona']}",
        "label": f"{scenario.title}, {describe_game(scenario, row)}{as_persona}, reward in {scenario.unit}",
        "page": state_address(scenario.path, game=row["item_id"], **({"as": row["as_persona"]} if row["as_persona"] else {})),
        "score": row["reward"],
    }


def _build_counts_section(scenarios: Sequence[ScenarioResults]) -> Section:
    total = sum(len(scenario.episodes) for scenario in scenarios)
    by_models = sum(int((~scenario.episodes["is_baseline"]).sum()) for scenario in scenarios)
    answer = (
        f"{format_count(total, 'episode')} of {format_count(len(scenarios), 'scenario')}, {by_models:,} by models and "
        "the others by baselines."
    )
    return Section("episodes", "episodes", [], answer)


def _build_unplayed_section(scenarios: Sequence[ScenarioResults]) -> Section:
    rows = list(list_unplayed(scenarios))
    n = sum(row["n"] for row in rows)
    note = "An episode without a result does not count as 0. Episodes that a budget ended continue when the same command runs again."
    answer = f"{format_count(n, 'episode')} {'was' if n == 1 else 'were'} not played to the end." if n else ""
    return Section(
        "unplayed",
        "episodes without a result",
        [Table("Not played to the end", _UNPLAYED_COLUMNS, rows)],
        answer,
        note if n else "",
    )


def _build_missing_values_section(scenarios: Sequence[ScenarioResults]) -> Section:
    """Build one row per metric and reason, for players over all opponents."""
    rows: list[dict[str, Any]] = []
    for scenario in scenarios:
        overall = scenario.overall
        is_inapplicable = overall["is_baseline"] & overall["metric"].isin(_MODEL_METRICS)
        none = overall[overall["mean"].isna() & ~is_inapplicable]
        rows += [
            {
                "scenario": scenario.link,
                "metric": format_metric_title(str(metric)),
                "n": len(group),
                "players": ", ".join(group["player"]),
                "reason": reason,
            }
            for (metric, reason), group in none.groupby(["metric", "reason"], dropna=False)
        ]
    return Section(
        "without-value", "metrics without a value", [Table("Metrics without a value", _VALUELESS_COLUMNS, rows, first=10)]
    )
