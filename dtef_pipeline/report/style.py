"""The report's style sheet: light and dark, screen, phone and print. The rules of the page are in `page.css`."""

from collections.abc import Iterable
from importlib.resources import files

from dtef_pipeline.report.svg import CHART_STYLE, DARK, LIGHT

_COLOURS = f":root{{color-scheme:light dark;{LIGHT}}}@media screen and (prefers-color-scheme:dark){{:root{{{DARK}}}}}"
_PAGE_STYLE = files("dtef_pipeline.report").joinpath("page.css").read_text(encoding="utf-8")


def style_sheet(chapters: Iterable[str]) -> str:
    """The page's rules and those of its chapters, which come first: what the page says of phones and of paper holds for them, too."""
    return "\n".join([_COLOURS, CHART_STYLE, *filter(None, chapters), _PAGE_STYLE])
