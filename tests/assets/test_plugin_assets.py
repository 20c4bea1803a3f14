"""What a command loads of the families: its own, which is the same part of the whole that the UI shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assets import plugin_assets
from assets.definitions import defs
from assets.engine import roll_up_names
from assets.games.roll_ups import GAMES_ROLL_UPS
from assets.preference.score_assets import preference_scores
from assets.qa.roll_ups import QA_ROLL_UPS
from assets.rubric.roll_ups import RUBRIC_ROLL_UPS
from assets.survey.landing import BOARDS, SURVEY_ROLL_UPS
from tests.assets.conftest import write_survey
from tests.conftest import ROOT

WHOLE = defs.resolve_asset_graph()
PROGRAM = """
import sys
from dtef_pipeline.cli import main
for command in {commands!r}:
    try: main(command, prog_name='dtef')
    except SystemExit as end: assert end.code == 0, command
print(*sorted(name for name in sys.modules if name.split('.')[0] in ('assets', 'dagster')))
"""


def test_names_that_commands_start_are_those_of_the_assets() -> None:
    stated = {
        "BOARD_NAMES": BOARDS,
        "ROLL_UP_NAMES": SURVEY_ROLL_UPS,
        "RUBRIC_ROLL_UP_NAMES": RUBRIC_ROLL_UPS,
        "QA_ROLL_UP_NAMES": QA_ROLL_UPS,
        "GAMES_ROLL_UP_NAMES": GAMES_ROLL_UPS,
        "PREFERENCE_ROLL_UP_NAMES": [preference_scores],
    }
    found = {name: [asset.key.to_user_string() for asset in assets] for name, assets in stated.items()}
    assert {name: getattr(roll_up_names, name) for name in stated} == found


@pytest.mark.parametrize("family", plugin_assets.EVERY_FAMILY)
def test_a_family_is_loaded_by_itself_as_within_the_whole(family: str) -> None:
    """A run of a command and one that the UI starts are of the same assets, checks included."""
    alone = plugin_assets.load_definitions(family).resolve_asset_graph()
    assert alone.materializable_asset_keys
    for key in alone.materializable_asset_keys:
        here, there = alone.get(key), WHOLE.get(key)
        assert here.to_asset_spec() == there.to_asset_spec()
        assert here.check_keys == there.check_keys


def test_commands_of_surveys_load_no_assets_of_other_families(state: Path) -> None:
    """They imported the assets of every family: a second of each command's start."""
    commands = [
        ["add", str(write_survey(state / "survey.csv", ["T1"]))],
        ["run", "--round", "T1", "--segment", "country:kenya", "--no-roll-ups"],
    ]
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(commands=commands)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rooms = {name.split(".")[1] for name in done.stdout.splitlines()[-1].split() if name.startswith("assets.")}
    assert {"survey", "stage", "launch"} <= rooms
    assert rooms & {"rubric", "qa", "games", "definitions"} == set()
    assert "dagster_webserver" not in done.stdout
