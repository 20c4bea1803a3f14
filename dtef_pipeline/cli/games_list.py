"""What `dtef games list` and `dtef games check` do; the words are in `dtef_pipeline/cli/games_group.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pandas as pd

from assets.games.known_games import known_persona_versions, known_scenarios
from dtef_pipeline.cli.terminal_width import say, terminal_fit
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.games.baselines import baselines_of
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_files import check_packs
from dtef_pipeline.games.packs import pack
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.counted import counted
from resources.settings import Settings

_LISTED_ALWAYS, _LISTED_WITH_ROOM = ("scenario", "persona", "status", "version"), ("description", "traits")


def list_games(as_json: bool) -> None:
    """Scenarios, then personas."""
    settings = Settings.from_environment()
    manifests = known_scenarios(settings)
    scenarios = [_scenario(one, manifests) for one in manifests.values()]
    personas = [
        {"persona": one.name, "status": one.status, "name": one.display_name, "traits": one.traits}
        for one in known_persona_versions(settings).values()
    ]
    if as_json:
        click.echo(json.dumps({"scenarios": scenarios, "personas": personas}, ensure_ascii=False))
        return
    for rows in (scenarios, personas):
        if rows:
            frame = pd.DataFrame([{name: _in_words(value) for name, value in row.items()} for row in rows])
            kept, first_out = ([name for name in names if name in frame] for names in (_LISTED_ALWAYS, _LISTED_WITH_ROOM))
            click.echo(render(frame, "table", fit=terminal_fit(kept, first_out)) + "\n")
    say("`dtef games play SCENARIO` plays one; a player is human, baseline/NAME, a model, or PERSONA@MODEL")


def check(folder: Path | None) -> int:
    """The exit code: 1 where a pack is not whole."""
    own = None
    if folder is None and (own := Settings.from_environment().scenarios) is not None and not own.is_dir():
        raise ConfigError(f"DTEF_SCENARIOS names {own}, which is not a folder")
    packs = check_packs(folder or Path(__file__).resolve().parents[2], own)
    for one in packs:
        click.echo(f"{one.name}: {'whole' if not one.faults else 'not whole'}{f' ({one.place})' if one.place else ''}")
        for fault in one.faults:
            click.echo(f"  {fault}")
    broken = sum(bool(one.faults) for one in packs)
    click.echo(f"{counted(len(packs), 'scenario')}, {broken} not whole")
    return 1 if broken else 0


def _scenario(one: ScenarioManifest, manifests: Mapping[str, ScenarioManifest]) -> dict[str, Any]:
    return {
        "scenario": one.id,
        "status": one.status,
        "version": one.version,
        "seats": one.seats,
        "seeds": f"{one.seeds.first}-{one.seeds.first + one.seeds.count - 1}",
        "baselines": list(_baselines(one.id, manifests)),
        "description": one.description,
    }


def _baselines(name: str, manifests: Mapping[str, ScenarioManifest]) -> Iterator[str]:
    try:
        yield from baselines_of(pack(name, manifests).scenario)
    except Exception as error:  # an engine of somebody else's may fail in any way
        kind = "" if isinstance(error, DtefError) else f"{type(error).__name__}: "
        say(f"warning: {name} cannot be played: {kind}{error}", err=True)


def _in_words(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {one}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else value
