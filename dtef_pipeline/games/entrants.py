"""The players of a league, those under test and their opponents, from the names that users give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import find_baseline, list_baselines
from dtef_pipeline.games.episode import LeaguePlan
from dtef_pipeline.games.episode_items import NO_OPPONENT, GameItem, build_game_items
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import BASELINE_PREFIX, Persona, Player
from dtef_pipeline.games.settings import GamesSettings
from dtef_pipeline.text.name_matching import list_nearest, suggest_nearest
from dtef_pipeline.text.number_words import format_count

_MAX_BASELINES_LISTED = 12


def resolve_player(pack: Pack, models: Models, personas: Mapping[str, Persona], name: str) -> Player:
    """Return the player of a name. The part before an @ is a persona (`cautious`, `cautious:v2`) if one of that name exists; else the @
    belongs to the model, `gpt-4.1-mini@temperature=0.7`.

    `personas`: by id, and by name for versions that may be requested. Raises ConfigError for unknown names, and for a collection of several
    models.
    """
    if name.startswith(BASELINE_PREFIX):
        baseline = name.removeprefix(BASELINE_PREFIX)
        find_baseline(pack.scenario, baseline)
        return Player(baseline=baseline)
    before, separator, model = name.partition("@")
    persona = personas.get(before) if separator else None
    specs = resolve_player_models([pack], models, personas, model if persona else name)
    if len(specs) != 1:
        raise ConfigError(f"player {name}: got {format_count(len(specs), 'model')}; allowed: one model or one baseline")
    return Player(specs[0], persona)


def resolve_player_models(
    packs: Iterable[Pack], models: Models, personas: Mapping[str, Persona], name: str
) -> tuple[ModelSpec, ...]:
    """Return the models of a player's name.

    Raises ConfigError for an unknown name, with the scenarios' baselines, and personas if one was meant; and for models that cannot play.
    """
    try:
        specs = models.resolve([name])
    except ConfigError as error:
        before, separator, tail = name.partition("@")
        if is_known_model(models, before):
            raise
        if separator and "=" not in tail.partition("@")[0]:
            raise ConfigError(f"player {name}: unknown persona {before!r}; known: {list_nearest(before, personas)}") from error
        raise ConfigError(f"player {name}: {_describe_unknown_name(packs, models, before)}") from error
    if names := [spec.name for spec in specs if spec.is_computed]:
        raise ConfigError(
            f"player {', '.join(names)}: computed from other data, so it cannot play; allowed: a language model or a baseline"
        )
    return specs


def _describe_unknown_name(packs: Iterable[Pack], models: Models, name: str) -> str:
    baselines = {f"{BASELINE_PREFIX}{baseline}" for pack in packs for baseline in list_baselines(pack.scenario)}
    allowed_names = f"{list_nearest(f'{BASELINE_PREFIX}{name}', baselines, _MAX_BASELINES_LISTED)}; " if baselines else ""
    empty_files = "".join(f" ({file} holds none)" for file in models.files_of_none)
    keys = {key for key, spec in models.specs.items() if not spec.is_computed}
    players = {*keys, *(key for key, members in models.collections.items() if keys.issuperset(members))}
    return (
        f"no model or collection {name!r}{empty_files}. {suggest_nearest(name, players)}Allowed: {allowed_names}a known one "
        "(`dtef models` lists all), or a model string of LiteLLM, such as openai/gpt-4.1-mini"
    )


def is_known_model(models: Models, name: str) -> bool:
    """Return whether a name is that of a model or of a collection."""
    try:
        return bool(models.resolve([name]))
    except ConfigError:
        return False


def split_player_names(text: str) -> list[str]:
    """Split a comma-separated list of names. A comma within the settings of a model does not separate names:
    `mini@temperature=0,top_p=1,baseline/random`."""
    names: list[str] = []
    for part in (piece.strip() for piece in text.split(",")):
        if names and "=" in part and "@" not in part and "@" in names[-1]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return [name for name in names if name]


AS_ITSELF = "none"
"""Setting in place of a persona: the model plays as itself."""
ALL_BASELINES = ("baselines", f"{BASELINE_PREFIX}all")
"""Values of a setting that mean all baselines of a scenario."""


def resolve_entrants(
    pack: Pack, models: Models, personas: Mapping[str, Persona], players: Sequence[str], names: Sequence[str]
) -> list[Player]:
    """Return the players under test, without duplicates: every model as every persona of `names` (ids, or `none`; empty: as itself), and
    baselines.

    `players`: names or collections of models, `baseline/NAME`, or `baselines` for all of the scenario's baselines. A baseline that the
    scenario lacks is left out if another player is named. Raises ConfigError for unknown names, and if no player is left.
    """
    roles = [None if item == AS_ITSELF else _find_persona(item, personas) for item in dict.fromkeys(names or [AS_ITSELF])]
    absent = list_absent_baselines(pack, players)
    if absent and len(absent) == len(set(players)):
        find_baseline(pack.scenario, absent[0].removeprefix(BASELINE_PREFIX))
    entrants: list[Player] = []
    for name in dict.fromkeys(player for player in players if player not in absent):
        if name in ALL_BASELINES:
            entrants += [Player(baseline=baseline) for baseline in list_baselines(pack.scenario)]
        elif name.startswith(BASELINE_PREFIX) or (name.partition("@")[0] in personas and "@" in name):
            entrants.append(resolve_player(pack, models, personas, name))
        else:
            entrants += [Player(spec, role) for spec in resolve_player_models([pack], models, personas, name) for role in roles]
    return list({(entrant.persona_name, entrant.variant): entrant for entrant in entrants}.values())


def list_absent_baselines(pack: Pack, players: Sequence[str]) -> list[str]:
    """Return the names `baseline/NAME` among the players that are not baselines of the scenario, each once."""
    baselines = {*ALL_BASELINES, *(f"{BASELINE_PREFIX}{baseline}" for baseline in list_baselines(pack.scenario))}
    return [player for player in dict.fromkeys(players) if player.startswith(BASELINE_PREFIX) and player not in baselines]


def list_absent_by_scenario(packs: Mapping[str, Pack], players: Sequence[str]) -> dict[str, list[str]]:
    """Return by scenario the named baselines that it lacks. Raises ConfigError for a baseline that no scenario has."""
    by_scenario = {key: list_absent_baselines(entry, players) for key, entry in packs.items()}
    for name in dict.fromkeys(players):
        if by_scenario and all(name in absent for absent in by_scenario.values()):
            names = {f"{BASELINE_PREFIX}{item}" for pack in packs.values() for item in list_baselines(pack.scenario)}
            where = (
                f"{next(iter(by_scenario))} has none"
                if len(by_scenario) == 1
                else f"none of {format_count(len(by_scenario), 'scenario')} has one"
            )
            raise ConfigError(f"{name}: {where} of that name; allowed: {ALL_BASELINES[0]}, {list_nearest(name, names)}")
    return {key: absent for key, absent in by_scenario.items() if absent}


def refuse_unknown_models(
    packs: Iterable[Pack], models: Models, personas: Mapping[str, Persona], players: Sequence[str]
) -> None:
    """Raise ConfigError for a player that is neither a baseline nor a model; the error lists the baselines of all scenarios."""
    for name in players:
        before, separator, _ = name.partition("@")
        if name not in ALL_BASELINES and not name.startswith(BASELINE_PREFIX) and not (separator and before in personas):
            resolve_player_models(packs, models, personas, name)


def list_solo_scenarios(packs: Mapping[str, Pack]) -> list[str]:
    """Return the scenarios with one seat, which have no opponents."""
    return [key for key, pack in packs.items() if len(pack.manifest.seats) == 1]


def name_opponent_item(pack: Pack, name: str) -> str:
    """Return the opponent's name in items: a baseline's with `baseline/`, a model's unchanged."""
    if not name.startswith(BASELINE_PREFIX) and name in list_baselines(pack.scenario):
        return f"{BASELINE_PREFIX}{name}"
    return name


def select_game_items(pack: Pack, settings: GamesSettings) -> list[GameItem]:
    """Return the items of a scenario that a run plays. Raises ConfigError for invalid seeds or opponents."""
    seeds = settings.scenario_seeds.get(pack.name, settings.seeds)
    opponents = settings.scenario_opponents.get(pack.name, settings.opponents)
    return build_game_items(pack.manifest, seeds, [name_opponent_item(pack, name) for name in opponents])


def plan_league(pack: Pack, settings: GamesSettings, models: Models, personas: Mapping[str, Persona]) -> LeaguePlan:
    """Plan the episodes of a run in one scenario. Raises ConfigError for unknown players, and as `select_game_items`."""
    items = select_game_items(pack, settings)
    players = resolve_entrants(pack, models, personas, settings.players, settings.personas)
    names = dict.fromkeys(item.opponent for item in items if item.opponent != NO_OPPONENT)
    opponents = {name: resolve_player(pack, models, personas, name) for name in names}
    return LeaguePlan(pack, items, players, opponents, settings.draws, settings.snapshot)


def list_player_models(players: Sequence[Player]) -> list[ModelSpec]:
    """Return the models of the players, each variant once."""
    return list({player.model.variant: player.model for player in players if player.model is not None}.values())


def _find_persona(name: str, personas: Mapping[str, Persona]) -> Persona:
    if name not in personas:
        raise ConfigError(f"persona {name}: unknown; allowed: {AS_ITSELF}, {list_nearest(name, personas)}")
    return personas[name]
