"""The sections of this installation's panel: the file that DTEF_PANEL names."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dtef_pipeline.documents import read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import PANEL_KEYS
from resources.settings import Settings

Section = TypeVar("Section")


def panel_section(settings: Settings, load: Callable[[Path], Section | None]) -> Section | None:
    """What `load` reads from the panel file; None: there is no panel file, or it has no such section.

    Raises ConfigError when DTEF_PANEL names no file, the file has a key at its top that nothing reads, or the section has a fault.
    """
    if settings.panel is None:
        return None
    if not settings.panel.is_file():
        raise ConfigError(f"DTEF_PANEL names {settings.panel}, which is not a file")
    read_document(settings.panel, "panel file", PANEL_KEYS).mapping((), PANEL_KEYS)
    return load(settings.panel)
