"""The commands as a user calls them, and a language-model server as a model."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dtef_pipeline.cli import main
from dtef_pipeline.cli.error_reports import UNEXPECTED
from resources.site_writer import SiteWriteResult
from tests.conftest import ROOT
from tests.fake_llm_server import Call, FakeLLM
from tests.strict_json import strict

if TYPE_CHECKING:
    import dagster as dg

SAMPLE = ROOT / "data" / "rounds" / "S1"
SEGMENTS = ("country:brazil", "country:germany")  # neighbours: one range, one run
PRICES = {"input_price": 1.0, "output_price": 2.0}
CHOSEN = [part for segment in SEGMENTS for part in ("--segment", segment)]
REFERENCES = {"baseline/uniform", "baseline/population-marginal"}


def dtef(*arguments: object, stdin: str | None = None) -> Result:
    """One command in this process. An exception that no command is prepared for is the test's failure."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code != UNEXPECTED, result.output
    return result


def ok(*arguments: object, stdin: str | None = None) -> str:
    result = dtef(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def run_stages(*arguments: object) -> str:
    """`dtef run` without roll-ups and its board: for tests of what is asked and scored, as they take most of a small run."""
    with pytest.MonkeyPatch.context() as patch:
        skip_board(patch)
        return ok("run", *arguments, "--no-roll-ups")


def refused(*arguments: object) -> str:
    """The message of a command that a user can mend: exit code 2, no traceback."""
    result = dtef(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr


def name_panel(folder: Path, monkeypatch: pytest.MonkeyPatch, **sections: Any) -> None:
    """Name a panel file in the folder, with these sections."""
    monkeypatch.setenv("DTEF_PANEL", str(folder / "panel.yaml"))
    write_panel(**sections)


def write_panel(**sections: Any) -> None:
    """Write these sections to the panel file that is named, in place of all that it has."""
    Path(os.environ["DTEF_PANEL"]).write_text(yaml.safe_dump(sections), encoding="utf-8")


def query(sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = strict(ok("sql", sql, "--json"))
    return rows


def distribution(call: Call, first: float) -> str:
    """An answer of the length that was asked for, with this share of the first option."""
    found = re.search(r"array of (\d+) numbers", call.user)
    assert found
    options = int(found[1])
    return json.dumps([first, *[(100 - first) / (options - 1)] * (options - 1)])


def serve_as(
    server: FakeLLM, folder: Path, patch: pytest.MonkeyPatch, *names: str, judges: Sequence[str] = (), **settings: Any
) -> None:
    """The server as these models, by default as `fake` of the collection `mine`, by a file named in DTEF_MODELS."""
    spec = {"api_base": server.base_url, "retries": 1, "max_concurrency": 4, **settings}
    models = {name: {"model": f"openai/{name.removeprefix('openai/')}", **spec} for name in names or ("fake",)}
    collections = {"judges": list(judges)} if judges else {} if names else {"mine": ["fake"]}
    path = folder / "models.yaml"
    path.write_text(yaml.safe_dump({"collections": collections, "models": models}), encoding="utf-8")
    patch.setenv("DTEF_MODELS", str(path))
    patch.setenv("OPENAI_API_KEY", "planted-key")


def skip_board(patch: pytest.MonkeyPatch) -> None:
    """A run of a survey prints no board in this process, which takes as long as its stages."""
    patch.setattr("dtef_pipeline.cli.survey.survey_run._print_board", lambda _: None)


def skip_site(patch: pytest.MonkeyPatch) -> None:
    """Roll-ups write no pages in this process, which take a third of their time: for tests that look at tables and boards alone."""
    patch.setattr("assets.engine.site_report.write_site", lambda *_: SiteWriteResult({}, []))


def skip_charts(patch: pytest.MonkeyPatch) -> None:
    """Sites of this process have no chart library, which alone takes seconds."""
    patch.setattr("dtef_pipeline.site.build.static_files", lambda: ())


def skip_checks(patch: pytest.MonkeyPatch) -> None:
    """Runs of this process do without Dagster's checks, a quarter of their time: tests of assets run them."""
    patch.setattr("assets.launch._load_definitions", load_without_checks)


@functools.cache
def load_without_checks(family: str) -> dg.Definitions:
    import dagster as dg

    from assets.plugin_assets import load_definitions

    loaded = load_definitions(family)
    return dg.Definitions(loaded.assets, resources=loaded.resources, executor=loaded.executor)


def use(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("DTEF_WAREHOUSE", str(folder / "warehouse"))
    patch.setenv("DTEF_RESPONSES", str(folder / "responses.sqlite"))
    patch.setenv("DAGSTER_HOME", str(folder / "dagster"))
    patch.delenv("DTEF_MODELS", raising=False)
