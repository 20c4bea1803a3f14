"""The outside world as Dagster resources: each says where something is, and opens it."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import dagster as dg

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.prediction.models import Models, load_models
from dtef_pipeline.prediction.request import Failure, Request
from resources.gateway import Gateway
from resources.progress import shown_progress
from resources.response_store import ResponseStore
from resources.settings import Settings, shipped
from resources.survey_source import SurveySources
from resources.warehouse import Warehouse


class Store(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Warehouse, survey sources, response store and models. Empty fields are read from DTEF_WAREHOUSE, DTEF_RESPONSES and DTEF_MODELS."""

    warehouse_root: str = ""
    responses_url: str = ""

    @cached_property
    def settings(self) -> Settings:
        return Settings.from_environment()

    @cached_property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.warehouse_root or self.settings.warehouse)

    @cached_property
    def sources(self) -> SurveySources:
        return SurveySources(self.warehouse)

    @cached_property
    def models(self) -> Models:
        """The shipped models, and those of DTEF_MODELS."""
        own = self.settings.models
        if own is not None and not own.is_file():
            raise ConfigError(f"DTEF_MODELS names {own}, which is not a file")
        return load_models(shipped("models.yaml"), *([own] if own else []))

    @cached_property
    def responses(self) -> ResponseStore:
        return ResponseStore(self.responses_url or self.settings.responses_url)

    def answer(self, requests: Sequence[Request], log: Callable[[str], None]) -> Mapping[str, Failure]:
        """Have the requests answered or replayed, with a progress display; what failed for good, by request key."""
        with shown_progress(log) as progress:
            return Gateway(self.responses).answer(requests, on_progress=progress).failures
