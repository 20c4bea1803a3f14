"""The `dtef` command. The entry point is `dtef_pipeline.cli:main`."""

from dtef_pipeline.cli.dtef import main as main
