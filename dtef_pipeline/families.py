"""The families of evaluations: what each brings to what is shared. The one list of them; a new family is one more line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dtef_pipeline.asking.request import ROLES
from dtef_pipeline.boards.used_calls import FamilyCalls
from dtef_pipeline.drift.verdict_tables import DRIFT_SCHEMAS
from dtef_pipeline.family.run_settings import Door, RunSettings, settings_at
from dtef_pipeline.games.games_paired import GAMES_PAIRED
from dtef_pipeline.games.settings import GAMES_STAGE_SETTINGS, GamesSettings
from dtef_pipeline.games.space import LEAGUE_SPACE
from dtef_pipeline.games.stored_tables import GAMES_CALL_TABLES, GAMES_TABLES
from dtef_pipeline.keys import Space
from dtef_pipeline.preference.paired_source import PairedSource
from dtef_pipeline.preference.score_columns import PREFERENCE_TABLES
from dtef_pipeline.qa.qa_paired import QA_PAIRED
from dtef_pipeline.qa.settings import QA_STAGE_SETTINGS, QaSettings
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.stored_tables import QA_CALL_TABLES, QA_TABLES
from dtef_pipeline.rubric.rubric_paired import RUBRIC_PAIRED
from dtef_pipeline.rubric.settings import RUBRIC_STAGE_SETTINGS, RubricSettings
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from dtef_pipeline.rubric.stored_tables import RUBRIC_CALL_TABLES, RUBRIC_TABLES
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import SURVEY_STAGE_SETTINGS, SurveySettings
from dtef_pipeline.survey.stored_tables import SURVEY_CALL_TABLES, SURVEY_TABLES
from dtef_pipeline.survey.survey_paired import SURVEY_PAIRED
from dtef_pipeline.tables import COMPARISONS, COSTS, TableSpec


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of evaluation, with its own items, judges and partitions."""

    name: str
    space: Space
    """Its partitions."""
    tables: Mapping[str, TableSpec]
    """Its tables, by name; the first says which partitions there are."""
    calls: FamilyCalls
    """Its tables whose rows rest on calls of models."""
    scored: str
    """Its table of scores, with a column for each model's name and variant."""
    computed: Mapping[str, int | None] = field(default_factory=dict)
    """The models of the models file whose answers it computes, each with its usual seed: see `asking.models.load_models`."""
    judged_again: str = ""
    """Its table of what judges said of stored answers that they were shown again, with a column for each judge's variant."""
    paired: PairedSource | None = None
    """Where its responses stand that people may compare in pairs; None: there are none."""
    settings: type[RunSettings] = RunSettings
    """What its runs are given."""
    stage_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By stage in the order of its pipeline, the settings that it takes."""
    roles: tuple[str, ...] = ()
    """The roles beside that of candidates that it has all responses in which stand in no other family's tables."""


FAMILIES = (
    Family(
        "survey",
        SPACE,
        SURVEY_TABLES,
        SURVEY_CALL_TABLES,
        "scores",
        BASELINES,
        settings=SurveySettings,
        stage_settings=SURVEY_STAGE_SETTINGS,
        paired=SURVEY_PAIRED,
    ),
    Family(
        "rubric",
        RUBRIC_SPACE,
        RUBRIC_TABLES,
        RUBRIC_CALL_TABLES,
        "rubric_scores",
        settings=RubricSettings,
        stage_settings=RUBRIC_STAGE_SETTINGS,
        judged_again="rubric_anchors",
        paired=RUBRIC_PAIRED,
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
        judged_again="qa_anchors",
        paired=QA_PAIRED,
    ),
    Family(
        "games",
        LEAGUE_SPACE,
        GAMES_TABLES,
        GAMES_CALL_TABLES,
        "episode_scores",
        settings=GamesSettings,
        stage_settings=GAMES_STAGE_SETTINGS,
        paired=GAMES_PAIRED,
    ),
)
FAMILY_BY_NAME: Mapping[str, Family] = {family.name: family for family in FAMILIES}
SHARED_TABLES: Mapping[str, TableSpec] = {
    name: TableSpec(schema, levels=("family",), remake="dtef {family} board --refresh")
    for name, schema in {"comparisons": COMPARISONS, "costs": COSTS, **DRIFT_SCHEMAS}.items()
}
"""Tables over all families, by name. They are kept by family, so that the roll-ups of each write a part of its own."""
TABLES: Mapping[str, TableSpec] = {
    **{name: spec for family in FAMILIES for name, spec in family.tables.items()},
    **SHARED_TABLES,
    **PREFERENCE_TABLES,
}
"""The tables of all families, by name, and those of drift and of votes over all of them."""
COMPUTED_MODELS: Mapping[str, int | None] = {name: seed for family in FAMILIES for name, seed in family.computed.items()}
"""The computed models of all families."""
PANEL_KEYS = (*settings_at(SurveySettings, Door.PANEL), "drift", "rubric", "qa", "games", "preference")
"""The keys at the top of a panel file: those of the survey's night, and the sections of drift, of the other families and of votes."""
