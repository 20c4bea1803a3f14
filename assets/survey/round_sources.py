"""The sources of the rounds of this installation."""

from assets.stage.resources import Store
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.model import Survey
from resources.sources import Sources


def sources_of(store: Store) -> Sources[Survey]:
    """Return each round's file or folder."""
    return Sources(store.warehouse, read_survey)
