"""What is wrong with a manifest, in the places and words of the form that it was filled in with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dtef_pipeline.api.asked_settings import BOUND_BY_COST
from dtef_pipeline.api.form_parts import FormFault, Refusal

MODEL_BOXES, MODEL_TEXT = "models", "further_models"
"""Fields of the form that both are the manifest's models: those that were ticked stand before those that were typed."""
COST_FIELD, COST_LABEL = "max_cost_usd", "At most, in US dollars"
CALLS_FIELD, CALLS_LABEL = "max_calls", "At most, in calls"
_PLACE_OF_MODEL = re.compile(r"models\.(\d+)")
_ALLOWED_INSTEAD = re.compile(r"; (?:allowed|known|there are): ")


def on_games_form(refusal: Refusal, ticked: Sequence[str], typed: Sequence[str]) -> Refusal:
    """The faults of a manifest beside the fields that were filled in wrongly. `ticked` and `typed`: the models that it has of each field."""
    return Refusal(refusal.status, [told for one in refusal.faults for told in _on_games_form(one, ticked, typed)])


def _on_games_form(fault: FormFault, ticked: Sequence[str], typed: Sequence[str]) -> Iterator[FormFault]:
    if fault.path == BOUND_BY_COST:
        yield fault._replace(
            message=fault.message.replace("allowed: null, and max_calls", f"allowed: nothing here, and '{CALLS_LABEL}'")
        )
    elif at := _PLACE_OF_MODEL.fullmatch(fault.path):
        yield FormFault(MODEL_BOXES if int(at[1]) < len(ticked) else MODEL_TEXT, fault.message)
    elif fault.path == "models":
        for field in _fields_named(fault.message, ticked, typed):
            yield FormFault(field, fault.message)
    else:
        yield fault


def _fields_named(message: str, ticked: Sequence[str], typed: Sequence[str]) -> list[str]:
    """Of both fields those that a message names a model of. Members of a collection that was typed are no names of the form."""
    arrived = _ALLOWED_INSTEAD.split(message)[0]
    by_field = {MODEL_BOXES: [one for one in ticked if one not in typed], MODEL_TEXT: typed}
    found = [field for field, names in by_field.items() if _names_any(arrived, names)]
    return found or [MODEL_TEXT if typed else MODEL_BOXES]


def _names_any(message: str, models: Iterable[str]) -> bool:
    """Whether a message has the name of a model, with its settings or without, as a word of its own."""
    names = {name for one in models for name in (one, one.partition("@")[0])}
    return any(re.search(rf"(?<![\w./@-]){re.escape(name)}(?![\w/@-])", message) for name in names if name)
