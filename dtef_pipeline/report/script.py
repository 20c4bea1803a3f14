"""The page's script: sorting, searching (`page.js`), and the chart of a chosen pair."""

from importlib.resources import files

SCRIPT = "\n".join(
    files(package).joinpath(name).read_text(encoding="utf-8")
    for package, name in (("dtef_pipeline.report", "page.js"), ("dtef_pipeline.survey.report", "pairs.js"))
)
