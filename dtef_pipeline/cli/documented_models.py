"""Models in the spelling of Socioscope, `openai:gpt-4o-mini`, as commands of the qa family take them."""

from __future__ import annotations

from collections.abc import Sequence

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.qa.transcripts.payload import model_string
from resources.known_models import known_models
from resources.settings import Settings


def as_known(names: Sequence[str]) -> tuple[str, ...]:
    """The names as this project has them: `provider:name` is `provider/name`, unless a model or collection is called that.

    What is neither stays as it is, for the command to tell of.
    """
    try:
        models = known_models(Settings.from_environment(), COMPUTED_MODELS)
    except ConfigError:
        return tuple(names)
    known = {*models.specs, *models.collections, *models.computed}
    return tuple(name if name.partition("@")[0] in known else _spelled(name) for name in names)


def _spelled(name: str) -> str:
    try:
        return model_string(name)
    except ConfigError:
        return name
