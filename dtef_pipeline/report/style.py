"""The report's style sheet: light and dark, screen, phone and print. The rules of the page are in `page.css`."""

from importlib.resources import files

from dtef_pipeline.report.svg import CHART_STYLE, DARK, LIGHT
from dtef_pipeline.survey.report.heatmap import HEAT_STYLE

_COLOURS = f":root{{color-scheme:light dark;{LIGHT}}}@media screen and (prefers-color-scheme:dark){{:root{{{DARK}}}}}"
_PAGE = files("dtef_pipeline.report").joinpath("page.css").read_text(encoding="utf-8")
_CHAPTERS = [
    files("dtef_pipeline.survey.report").joinpath(name).read_text(encoding="utf-8")
    for name in ("heatmap.css", "pairs.css", "questions.css")
]
STYLE = "\n".join([_COLOURS, CHART_STYLE, HEAT_STYLE, *_CHAPTERS, _PAGE])
