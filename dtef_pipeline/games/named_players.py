"""Players by the names that people give them: `baseline/NAME`, a model, or PERSONA@MODEL."""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.asking.models import Models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.baselines import baseline_of
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.players import BASELINE_PREFIX, Player
from dtef_pipeline.text.counted import counted


def player_named(pack: Pack, models: Models, personas: Mapping[str, Persona], name: str) -> Player:
    """The one player that a name stands for. What stands before an @ is a persona (`cautious`, `cautious:v2`) where there is one of that name;
    else the @ belongs to the model, `gpt-4.1-mini@temperature=0.7`.

    `personas`: by id, and by name for those of which a version may be asked for. Raises ConfigError for what is not known, and where the
    model is a collection of several.
    """
    if name.startswith(BASELINE_PREFIX):
        baseline = name.removeprefix(BASELINE_PREFIX)
        baseline_of(pack.scenario, baseline)
        return Player(baseline=baseline)
    before, at, model = name.partition("@")
    persona = personas.get(before) if at else None
    found = models.resolve([model if persona else name])
    if len(found) != 1:
        raise ConfigError(f"player {name}: {counted(len(found), 'model')}; allowed: one model, or a baseline")
    if found[0].is_computed:
        raise ConfigError(f"player {name}: it is computed from other data; allowed: a model that is asked, or a baseline")
    return Player(found[0], persona)


def names_of_players(text: str) -> list[str]:
    """The names in a list with commas. A comma within the settings of a model parts no names: `mini@temperature=0,top_p=1,baseline/random`."""
    names: list[str] = []
    for part in (one.strip() for one in text.split(",")):
        if names and "=" in part and "@" not in part and "@" in names[-1]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return [name for name in names if name]
