"""How a model is reached, as it may be shown: by which transport, and at which address, without what may be secret in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from dtef_pipeline.asking.addresses import shown
from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.direct_transport import is_direct
from resources.gateway.transport import Scrubber


class Reached(NamedTuple):
    """The way to one model."""

    transport: Literal["direct", "litellm", "local", ""]
    """`local`: the model is in this process. Empty: nobody is asked."""
    address: str
    """Of a server of one's own (`api_base`); empty: the provider's, or none."""


def reached(spec: ModelSpec, environ: Mapping[str, str]) -> Reached:
    """The way to a model, in which no password and no key of the environment is shown."""
    if spec.is_computed or spec.is_imported:
        return Reached("", "")
    if spec.is_local:
        return Reached("local", "")
    # Shortened before the scrubber cuts it, and again, as that writes [key] for what was left out.
    address = shown(Scrubber(environ, [spec])(shown(spec.api_base))) if spec.api_base else ""
    return Reached("direct" if is_direct(spec) else "litellm", address)
