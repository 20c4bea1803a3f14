"""Who plays in a league: the players under test and their opponents, by the names that people give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.baselines import baseline_of, baselines_of
from dtef_pipeline.games.named_players import player_named
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.players import BASELINE_PREFIX, Player
from dtef_pipeline.text.nearest import nearest

AS_ITSELF = "none"
"""What people give in place of a persona: the model plays as itself."""
ALL_BASELINES = f"{BASELINE_PREFIX}all"


def entrants(
    pack: Pack, models: Models, personas: Mapping[str, Persona], players: Sequence[str], chosen: Sequence[str]
) -> list[Player]:
    """The players under test, each once: every model as every persona of `chosen` (ids, or `none`; empty: as itself), and baselines.

    `players`: names or collections of models, `baseline/NAME`, or `baseline/all`. Raises ConfigError for names that are not known.
    """
    roles = [None if one == AS_ITSELF else _persona(one, personas) for one in dict.fromkeys(chosen or [AS_ITSELF])]
    found: list[Player] = []
    for name in dict.fromkeys(players):
        if name.startswith(BASELINE_PREFIX):
            found += _baselines(pack, name)
        elif name.partition("@")[0] in personas and "@" in name:
            found.append(player_named(pack, models, personas, name))
        else:
            found += [Player(spec, role) for spec in _resolved(models, name) for role in roles]
    return list({(one.persona_name, one.variant): one for one in found}.values())


def opponent_named(pack: Pack, models: Models, personas: Mapping[str, Persona], name: str) -> Player:
    """An opponent: `baseline/NAME` or `NAME` of a baseline, a model, or PERSONA@MODEL. Raises ConfigError for a name that is not known."""
    return player_named(pack, models, personas, opponent_item_name(pack, name))


def opponent_item_name(pack: Pack, name: str) -> str:
    """The opponent's name as items have it: that of a baseline with `baseline/`, that of a model as it is given."""
    if not name.startswith(BASELINE_PREFIX) and name in baselines_of(pack.scenario):
        return f"{BASELINE_PREFIX}{name}"
    return name


def models_among(players: Sequence[Player]) -> list[ModelSpec]:
    """The models of the players, each variant once."""
    return list({one.model.variant: one.model for one in players if one.model is not None}.values())


def _baselines(pack: Pack, name: str) -> Iterator[Player]:
    names = [name.removeprefix(BASELINE_PREFIX)] if name != ALL_BASELINES else list(baselines_of(pack.scenario))
    for one in names:
        baseline_of(pack.scenario, one)
        yield Player(baseline=one)


def _persona(name: str, personas: Mapping[str, Persona]) -> Persona:
    if name not in personas:
        raise ConfigError(f"persona {name}: not known; allowed: {AS_ITSELF}, {nearest(name, personas)}")
    return personas[name]


def _resolved(models: Models, name: str) -> tuple[ModelSpec, ...]:
    specs = tuple(models.resolve([name]))
    if computed := [spec.name for spec in specs if spec.is_computed]:
        raise ConfigError(f"player {', '.join(computed)}: it is computed from other data; allowed: a model that is asked")
    return specs
