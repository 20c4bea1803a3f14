"""The one list of families: those of this package, and those that other packages add through an entry point."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.asking.request import ROLES
from dtef_pipeline.drift.verdict_tables import ANCHOR_TABLES, DRIFT_SCHEMAS
from dtef_pipeline.family.plugins import load_plugin_families
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.run_settings import Door, list_settings_at
from dtef_pipeline.games.game_pairs import GAMES_PAIRED
from dtef_pipeline.games.settings import GAMES_STAGE_SETTINGS, GamesSettings
from dtef_pipeline.games.tables import GAMES_CALL_TABLES, GAMES_TABLES, LEAGUE_SPACE
from dtef_pipeline.preference.score_columns import PREFERENCE_TABLES
from dtef_pipeline.qa.prompt_rows import QA_PAIRED
from dtef_pipeline.qa.settings import QA_STAGE_SETTINGS, QaSettings
from dtef_pipeline.qa.tables import QA_CALL_TABLES, QA_SPACE, QA_TABLES
from dtef_pipeline.rubric.settings import RUBRIC_STAGE_SETTINGS, RubricSettings
from dtef_pipeline.rubric.stages import RUBRIC_PAIRED
from dtef_pipeline.rubric.tables import RUBRIC_CALL_TABLES, RUBRIC_SPACE, RUBRIC_TABLES
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import SURVEY_STAGE_SETTINGS, SurveySettings
from dtef_pipeline.survey.stages import SURVEY_CALL_TABLES, SURVEY_PAIRED, SURVEY_TABLES
from dtef_pipeline.tables import COMPARISONS, COSTS, TableSpec

_FAMILIES_HERE = (
    Family(
        "survey",
        SPACE,
        SURVEY_TABLES,
        SURVEY_CALL_TABLES,
        "scores",
        BASELINES,
        settings=SurveySettings,
        stage_settings=SURVEY_STAGE_SETTINGS,
        pair_source=SURVEY_PAIRED,
    ),
    Family(
        "rubric",
        RUBRIC_SPACE,
        RUBRIC_TABLES,
        RUBRIC_CALL_TABLES,
        "rubric_scores",
        settings=RubricSettings,
        stage_settings=RUBRIC_STAGE_SETTINGS,
        pair_source=RUBRIC_PAIRED,
        roles=ROLES[1:],
    ),
    Family(
        "qa",
        QA_SPACE,
        QA_TABLES,
        QA_CALL_TABLES,
        "qa_scores",
        settings=QaSettings,
        stage_settings=QA_STAGE_SETTINGS,
        pair_source=QA_PAIRED,
    ),
    Family(
        "games",
        LEAGUE_SPACE,
        GAMES_TABLES,
        GAMES_CALL_TABLES,
        "episode_scores",
        settings=GamesSettings,
        stage_settings=GAMES_STAGE_SETTINGS,
        pair_source=GAMES_PAIRED,
    ),
)
PLUGIN_FAMILIES = load_plugin_families({entry.name for entry in _FAMILIES_HERE})
"""The families of other packages, from the entry-point group `dtef.families`."""
FAMILIES = (*_FAMILIES_HERE, *PLUGIN_FAMILIES)
FAMILY_BY_NAME: Mapping[str, Family] = {family.name: family for family in FAMILIES}
SHARED_TABLES: Mapping[str, TableSpec] = {
    name: TableSpec(schema, levels=("family",), remake="dtef {family} board --refresh")
    for name, schema in {"comparisons": COMPARISONS, "costs": COSTS, **DRIFT_SCHEMAS}.items()
}
"""Tables of all families, by name. Each family's roll-ups write a part of their own."""
TABLES: Mapping[str, TableSpec] = {
    **{name: spec for family in FAMILIES for name, spec in family.all_tables.items()},
    **SHARED_TABLES,
    **ANCHOR_TABLES,
    **PREFERENCE_TABLES,
}
"""The tables of all families by name, and the tables of drift, anchors and votes."""
COMPUTED_MODELS: Mapping[str, int | None] = {name: seed for family in FAMILIES for name, seed in family.computed_models.items()}
"""The computed models of all families."""
PANEL_KEYS = (
    *list_settings_at(SurveySettings, Door.PANEL),
    "drift",
    "rubric",
    "qa",
    "games",
    "preference",
    *(entry.name for entry in PLUGIN_FAMILIES),
)
"""Top-level keys of a panel file: those of the nightly survey run, and the sections of drift, of the other families and of votes."""
