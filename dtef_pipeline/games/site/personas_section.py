"""Effect of a persona: the same model on the same games, as the persona and as itself."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.games.personas import NO_PERSONA, PERSONA_STATUS, Persona
from dtef_pipeline.games.site.game_labels import format_unit
from dtef_pipeline.games.site.league_rows import ScenarioResults
from dtef_pipeline.games.site.metric_tables import build_mean_estimate
from dtef_pipeline.games.site.same_seeds import compare_on_seeds, describe_difference
from dtef_pipeline.site.content import Block, Column, Fold, Section, Table, TemplateBlock, convert_to_rows, is_unknown
from dtef_pipeline.site.number_text import show
from dtef_pipeline.text.quantity_words import format_count

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
    most = max(changes, key=lambda row: abs(row["difference"].value))
    difference = show(most["difference"], "signed")
    return f"{first}, most for {most['model']} as {most['persona']}: {difference}{format_unit(most['unit'])} in {most['scenario'].text}."
