"""The suites that can be added: the shipped ones and the user's own."""

from pathlib import Path

from dtef_pipeline.qa.suites import Suites, load_suites
from resources.settings import find_shipped


def load_known_suites(file: str | None) -> Suites:
    """Load the shipped suites and those of a user's file, which replace shipped ones of the same name."""
    return load_suites(find_shipped("suites.yaml"), *([Path(file)] if file else []))
