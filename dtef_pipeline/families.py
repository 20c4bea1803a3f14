"""The families of evaluations: what each brings to what is shared. The one list of them; a new family is one more line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dtef_pipeline.asking.request import ROLES
from dtef_pipeline.games.games_paired import GAMES_PAIRED
from dtef_pipeline.games.space import LEAGUE_SPACE
from dtef_pipeline.games.stored_tables import GAMES_TABLES
from dtef_pipeline.keys import Space
from dtef_pipeline.preference.paired_source import PairedSource
from dtef_pipeline.preference.score_columns import PREFERENCE_TABLES
from dtef_pipeline.qa.qa_paired import QA_PAIRED
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.stored_tables import QA_TABLES
from dtef_pipeline.rubric.rubric_paired import RUBRIC_PAIRED
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from dtef_pipeline.rubric.stored_tables import RUBRIC_TABLES
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.panel import Panel
from dtef_pipeline.survey.stored_tables import SURVEY_TABLES
from dtef_pipeline.survey.survey_paired import SURVEY_PAIRED
from dtef_pipeline.tables import TableSpec


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of evaluation, with its own items, judges and partitions."""

    name: str
    space: Space
    """Its partitions."""
    tables: Mapping[str, TableSpec]
    """Its tables, by name; the first says which partitions there are."""
    scored: str
    """Its table of scores, with a column for each model's name and variant."""
    computed: Mapping[str, int | None] = field(default_factory=dict)
    """The models of the models file whose answers it computes, each with its usual seed: see `asking.models.load_models`."""
    asked: tuple[str, ...] = ()
    """Its tables that say which responses in the store are its own: by `request_key`, or by the list `request_keys`."""
    judged_again: str = ""
    """Its table of what judges said of stored answers that they were shown again, with a column for each judge's variant."""
    paired: PairedSource | None = None
    """Where its responses stand that people may compare in pairs; None: there are none."""
    roles: tuple[str, ...] = ()
    """The roles beside that of candidates that it has all responses in which stand in no other family's tables."""


FAMILIES = (
    Family("survey", SPACE, SURVEY_TABLES, "scores", BASELINES, asked=("predictions",), paired=SURVEY_PAIRED),
    Family(
        "rubric",
        RUBRIC_SPACE,
        RUBRIC_TABLES,
        "rubric_scores",
        asked=("rubric_responses", "rubric_judgements"),
        judged_again="rubric_anchors",
        paired=RUBRIC_PAIRED,
        roles=ROLES[1:],
    ),
    Family(
        "qa",
        QA_SPACE,
        QA_TABLES,
        "qa_scores",
        asked=("qa_responses", "qa_judgements", "qa_anchors"),
        judged_again="qa_anchors",
        paired=QA_PAIRED,
    ),
    Family(
        "games",
        LEAGUE_SPACE,
        GAMES_TABLES,
        "episode_scores",
        asked=("episode_turns", "decision_answers"),
        paired=GAMES_PAIRED,
    ),
)
FAMILY_BY_NAME: Mapping[str, Family] = {family.name: family for family in FAMILIES}
TABLES: Mapping[str, TableSpec] = {
    **{name: spec for family in FAMILIES for name, spec in family.tables.items()},
    **PREFERENCE_TABLES,
}
"""The tables of all families, by name, and those of votes on responses of any."""
COMPUTED_MODELS: Mapping[str, int | None] = {name: seed for family in FAMILIES for name, seed in family.computed.items()}
"""The computed models of all families."""
PANEL_KEYS = tuple(Panel.model_fields)
"""The keys at the top of a panel file: those of the survey's night, and the sections of drift and of the other families."""
