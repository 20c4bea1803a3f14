"""The outside world of the survey family: what every stage has of it, and where rounds come from and what is asked every night."""

from functools import cached_property

from assets.stage.resources import Store
from assets.survey.panel_file import known_panel
from dtef_pipeline.asking.models import Models
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.model import Survey
from dtef_pipeline.survey.settings import SurveySettings
from resources.known_models import known_models
from resources.sources import Sources


class SurveyStore(Store):
    """Warehouse, survey sources, response store, models, panel and webhook.

    Empty fields are read from DTEF_WAREHOUSE and DTEF_RESPONSES; the files and the URL from DTEF_MODELS, DTEF_PANEL and DTEF_WEBHOOK.
    """

    @cached_property
    def sources(self) -> Sources[Survey]:
        """Which file or folder each round comes from."""
        return Sources(self.warehouse, read_survey)

    @cached_property
    def models(self) -> Models:
        """The baselines, the shipped models, and those of DTEF_MODELS."""
        return known_models(self.settings, BASELINES)

    @cached_property
    def panel(self) -> SurveySettings:
        """What is asked every night."""
        return known_panel(self.settings)
