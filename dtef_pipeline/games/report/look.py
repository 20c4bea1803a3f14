"""Style sheet and script of these pages."""

from __future__ import annotations

from importlib.resources import files


def games_file(name: str) -> str:
    """A style sheet or script of these pages."""
    return files("dtef_pipeline.games.report").joinpath(name).read_text(encoding="utf-8")


def games_style() -> str:
    return games_file("games.css")
