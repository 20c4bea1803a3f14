"""What a family brings to its commands: records in rooms of its own, or made of its one record."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dtef_pipeline.families import FAMILY_BY_NAME


def family_commands(name: str, module: str, what: str) -> Any:
    """The record `NAME_WHAT` in the file `NAME/NAME_module.py`; of a family that is one record, what `plugged_what` makes of it."""
    family = FAMILY_BY_NAME[name]
    if family.is_assembled:
        return getattr(import_module(f"dtef_pipeline.cli.plugged.plugged_{module}"), f"plugged_{what.lower()}")(family)
    return getattr(import_module(f"dtef_pipeline.cli.{name}.{name}_{module}"), f"{name.upper()}_{what}")
