"""Where the rounds of this installation come from."""

from assets.stage.resources import Store
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.model import Survey
from resources.sources import Sources


def sources_of(store: Store) -> Sources[Survey]:
    """Which file or folder each round comes from."""
    return Sources(store.warehouse, read_survey)
