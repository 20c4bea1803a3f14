"""What is wrong with a manifest, in the places and words of the form that it was filled in with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dtef_pipeline.api.form_parts import FormFault, Refusal

MODEL_BOXES, MODEL_TEXT = "models", "further_models"
"""Fields of the form that both are the manifest's models: those that were ticked stand before those that were typed."""
COST_FIELD, COST_LABEL = "max_cost_usd", "At most, in US dollars"
CALLS_FIELD, CALLS_LABEL = "max_calls", "At most, in calls"
BOUND_BY_COST = f"budget.{COST_FIELD}"
_PLACE_OF_MODEL = re.compile(r"models\.(\d+)")
_ALLOWED_INSTEAD = re.compile(r"; (?:allowed|known|there are): ")
_BOUND_WITHOUT_PRICE = re.compile(
    r"nothing was asked, because max_cost_usd cannot be kept without a price of (.+); give input_price .*"
)
"""Of the gateway, which names the models file, and a limit in tokens that no evaluation has."""


def on_games_form(refusal: Refusal, ticked: Sequence[str], typed: Sequence[str]) -> Refusal:
    """The faults of a manifest beside the fields that were filled in wrongly. `ticked` and `typed`: the models that it has of each field."""
    return Refusal(refusal.status, [told for one in refusal.faults for told in _on_games_form(one, ticked, typed)])


def on_manifest_form(refusal: Refusal) -> Refusal:
    """The faults of a manifest that was written as JSON, with limits that it can have."""
    said = r"max_cost_usd cannot be kept without a price of \1; allowed: no max_cost_usd, and max_calls in its place"
    return Refusal(
        refusal.status, [one._replace(message=_BOUND_WITHOUT_PRICE.sub(said, one.message)) for one in refusal.faults]
    )


def _on_games_form(fault: FormFault, ticked: Sequence[str], typed: Sequence[str]) -> Iterator[FormFault]:
    if unpriced := _BOUND_WITHOUT_PRICE.fullmatch(fault.message):
        yield FormFault(
            BOUND_BY_COST, f"the price of {unpriced[1]} is not known: leave this empty, and bound it by '{CALLS_LABEL}'"
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
