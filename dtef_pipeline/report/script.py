"""The page's script: sorting, searching, and the chart of a chosen pair (`page.js`)."""

from importlib.resources import files

SCRIPT = files("dtef_pipeline.report").joinpath("page.js").read_text(encoding="utf-8")
