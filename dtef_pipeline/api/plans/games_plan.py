"""Manifests of games: players and scenarios, checked before anything is stored, and the resulting run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints

from assets.games.game_catalog import load_known_personas, load_known_scenarios
from dtef_pipeline.api.plans.plan import (
    EvaluationRequest,
    NotApproved,
    PlannedEvaluation,
    Refusals,
    UnfitManifest,
    UnknownName,
    rejections,
    require_askable,
    require_offered,
    require_unique,
)
from dtef_pipeline.asking.models import Budget
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import make_validator, run_config
from dtef_pipeline.games.entrants import (
    AS_ITSELF,
    is_known_model,
    list_absent_by_scenario,
    list_player_models,
    list_solo_scenarios,
    name_opponent_item,
    refuse_unknown_models,
    resolve_entrants,
    resolve_player,
)
from dtef_pipeline.games.episode import Match
from dtef_pipeline.games.episode_items import NO_OPPONENT, GameItem, parse_seed_spans, resolve_opponents
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_files import check_metric_weights
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.personas import APPROVED, BASELINE_PREFIX, Persona, Player, require_approved
from dtef_pipeline.games.settings import GAMES_STAGE_SETTINGS, MAX_EPISODES, GamesSettings
from dtef_pipeline.games.tables import LEAGUE_SPACE
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import format_count
from resources.evaluations.evaluation_store import RunSpec
from resources.gateway.budget import Accounts
from resources.model_catalog import load_known_models
from resources.settings import Settings

MAX_RUNS = 200
"""Largest number of personas times scenarios of one manifest."""


def _require_distinct_seeds(text: str) -> None:
    """Raise ConfigError for a text that is no list of ranges, or with a seed in two of them."""
    for (_, last), (first, _) in pairwise(sorted(parse_seed_spans(text))):
        if first <= last:
            raise ConfigError(f"got {first} more than once; allowed: each seed only once")


Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Names = Annotated[list[Name], Field(max_length=MAX_RUNS), AfterValidator(require_unique)]


class GamesManifest(EvaluationRequest):
    """Games of models in the roles of personas. The settings are those of `dtef games run`."""

    family: Literal["games"] = "games"
    persona_ids: Annotated[Names, Field(min_length=1)]
    """Ids of approved personas, `cautious` or `cautious:v2`, or `none` for the model as itself."""
    scenario_ids: Annotated[Names, Field(min_length=1)]
    """Scenarios, such as `poker/kuhn`."""
    models: Annotated[Names, Field(min_length=1)]
    """Models, collections of models, `baseline/NAME`, or `baselines` for all baselines of each scenario."""
    seeds: Annotated[str, make_validator(_require_distinct_seeds)] | None = None
    """Seeds, such as `1-20` or `1,5,7-9`; null: those of each scenario."""
    draws: Annotated[int, Field(ge=1, le=MAX_EPISODES)] = 1
    """Number of draws of each episode of a model."""
    opponents: Names = []
    """Baselines, models or persona@model; empty: the opponents of each scenario."""


class GamesPlans:
    """All scenarios of a manifest, played by every model as every persona."""

    form = GamesManifest

    def plan(self, manifest: GamesManifest, server: Settings) -> PlannedEvaluation:
        """Raises UnknownName for an unknown persona, scenario, model or opponent, NotApproved for a draft or retired persona, UnfitManifest
        for anything else that cannot be played, and ConfigError for an invalid file of the installation.
        """
        named = _NamedGames(manifest.model_dump(), server)
        packs, names = named.packs, [AS_ITSELF if choice is None else choice.name for choice in named.chosen.values()]
        _require_fitting(manifest, named)
        entries, episodes = list[_Entry](), 0
        for game in packs.values():
            entries.append(_resolve_entry(manifest, game, named, names))
            episodes += _count_episodes(manifest, entries[-1], MAX_EPISODES - episodes)
        warnings = _require_askable(manifest, entries, server)
        _require_played(names, [player for entry in entries for player in entry.players])
        pins = {key: _pin_scenario(entry, manifest.seeds) for key, entry in zip(packs, entries, strict=True)}
        runs = []
        for persona, record in named.chosen.items():
            asks = {"persona_id": persona, "persona": record.name if record else ""}
            runs += [RunSpec(key, {**asks, "scenario_id": key, **pin}) for key, pin in pins.items()]
        # A version does not go into the name of an opponent, which is part of item ids.
        ids = [name.partition("@")[0] for name in (*manifest.models, *manifest.opponents) if "@" in name]
        settings = GamesSettings(
            players=manifest.models,
            personas=names,
            opponents=manifest.opponents,
            seeds=manifest.seeds,
            draws=manifest.draws,
            snapshot=manifest.snapshot,
            scenario_versions={key: pin["scenario_version"] for key, pin in pins.items()},
            scenario_seeds={key: pin["seeds"] for key, pin in pins.items()},
            scenario_opponents={key: pin["opponents"] for key, pin in pins.items()},
            persona_versions={item.id: item.version for name in ids if (item := named.personas.get(name)) and item.id == name},
            **manifest.bounds,
        )
        config = run_config(settings, GAMES_STAGE_SETTINGS)
        return PlannedEvaluation(
            "games_pipeline", LEAGUE_SPACE.name, list(packs), config, manifest.snapshot, runs, new_keys=True, warnings=warnings
        )

    def refuse_names(self, values: Mapping[str, Any], server: Settings) -> None:
        """Raises RefusedManifest with all invalid names in the well-formed fields of a manifest."""
        _NamedGames(values, server)


class _NamedGames:
    """The resolved names of a manifest, or of a part of one."""

    def __init__(self, values: Mapping[str, Any], server: Settings) -> None:
        """Raises RefusedManifest with all invalid names, including those of models and opponents."""
        # The families bring pandas, which the API starts without.
        from dtef_pipeline.families import COMPUTED_MODELS

        self.personas, self.models = load_known_personas(server), load_known_models(server, COMPUTED_MODELS)
        self.chosen: dict[str, Persona | None] = {}
        """None: the model plays as itself."""
        self.packs: dict[str, Pack] = {}
        scenarios, refusals = load_known_scenarios(server), Refusals()
        for name in refusals.take_until_full(values.get("persona_ids") or ()):
            with refusals.collect():
                self.chosen[name] = _find_persona(name, self.personas)
        scenario_ids = values.get("scenario_ids") or ()
        for name in refusals.take_until_full(scenario_ids):
            with refusals.collect():
                self.packs[name] = _find_pack(name, scenarios)
        # An opponent may be a baseline of any of the scenarios.
        for path in ("models", "opponents") if 0 < len(scenario_ids) == len(self.packs) else ("models",):
            for name in refusals.take_until_full(values.get(path) or ()):
                with refusals.collect():
                    self._require_player(path, name, server)
        refusals.raise_all()

    def _require_player(self, path: str, name: str, server: Settings) -> None:
        """Raise UnknownName for an unknown player, and UnfitManifest for one with invalid settings."""
        before, separator, behind = name.partition("@")
        as_persona = bool(separator) and before in self.personas
        require_offered(path, behind if as_persona else name, self.models, server)
        packs = list(self.packs.values())
        if path == "opponents" and any(name_opponent_item(game, name).startswith(BASELINE_PREFIX) for game in packs):
            return  # each scenario reports separately whether it has the baseline
        with rejections(path, UnfitManifest if as_persona or is_known_model(self.models, before) else UnknownName):
            refuse_unknown_models(packs, self.models, self.personas, [name])


def _find_persona(name: str, personas: Mapping[str, Persona]) -> Persona | None:
    if name == AS_ITSELF:
        return None
    if name not in personas:
        raise UnknownName("persona_ids", f"unknown persona {name!r}; known: {AS_ITSELF}, {list_nearest(name, personas)}")
    persona = personas[name]
    if persona.status != APPROVED:
        raise NotApproved("persona_ids", f"persona {persona.name} is {persona.status}; allowed: an approved persona")
    return persona


def _find_pack(name: str, scenarios: Mapping[str, ScenarioManifest]) -> Pack:
    if name not in scenarios:
        raise UnknownName("scenario_ids", f"unknown scenario {name!r}; known: {list_nearest(name, scenarios)}")
    if scenarios[name].status == "retired":
        raise NotApproved("scenario_ids", f"scenario {name} is retired; allowed: one that is experimental or in production")
    return pack(name, scenarios)


def _require_fitting(manifest: GamesManifest, named: _NamedGames) -> None:
    """Raise UnfitManifest or UnknownName for known names that do not fit together."""
    packs = named.packs
    if len({persona and persona.name for persona in named.chosen.values()}) < len(named.chosen):
        raise UnfitManifest("persona_ids", "got a persona twice, by its id and by its version; allowed: one of them")
    check_metric_weights(packs.values())
    if (runs := len(manifest.persona_ids) * len(manifest.scenario_ids)) > MAX_RUNS:
        raise UnfitManifest(
            "scenario_ids", f"{format_count(runs, 'run')}, one per persona and scenario; allowed: at most {MAX_RUNS:,}"
        )
    if manifest.opponents and len(list_solo_scenarios(packs)) == len(packs):
        raise UnfitManifest("opponents", f"{', '.join(packs)}: it has one seat, so no opponents; allowed: none")
    with rejections("models", UnknownName):
        absent = list_absent_by_scenario(packs, manifest.models)
    if unplayable := [key for key, names in absent.items() if len(names) == len(manifest.models)]:
        raise UnfitManifest(
            "models", f"no player for {', '.join(unplayable)}: it has no {' and no '.join(absent[unplayable[0]])}"
        )


class _Entry(NamedTuple):
    """The players of a scenario."""

    pack: Pack
    players: Sequence[Player]
    opponents: Mapping[str, Player]
    """By name in items; empty: the scenario has one seat."""


def _pin_scenario(entry: _Entry, seeds: str | None) -> dict[str, Any]:
    """Return the version, the seeds in full, such as `1-40`, and the opponents that a run of the scenario has, whatever changes later."""
    manifest = entry.pack.manifest
    span = f"{manifest.seeds.first}-{manifest.seeds.first + manifest.seeds.count - 1}"
    return {"scenario_version": manifest.version, "seeds": seeds or span, "opponents": list(entry.opponents)}


def _resolve_entry(manifest: GamesManifest, game: Pack, named: _NamedGames, personas: Sequence[str]) -> _Entry:
    """Return the players of a scenario. Raises UnfitManifest, UnknownName and NotApproved for those that cannot play it."""
    with rejections("models"):
        players = resolve_entrants(game, named.models, named.personas, manifest.models, personas)
    items = [name_opponent_item(game, opponent) for opponent in manifest.opponents]
    if repeats := {item for item in items if items.count(item) > 1}:
        duplicates = [opponent for opponent in manifest.opponents if name_opponent_item(game, opponent) in repeats]
        raise UnfitManifest(
            "opponents", f"got {' and '.join(duplicates)}, the same player more than once; allowed: each player only once"
        )
    with rejections("opponents"):
        names = [name for name in resolve_opponents(items, game.manifest) if name != NO_OPPONENT]
    with rejections("opponents", UnknownName):
        opponents = {name: resolve_player(game, named.models, named.personas, name) for name in names}
    for path, group in (("models", players), ("opponents", list(opponents.values()))):
        with rejections(path, NotApproved):
            require_approved(group)
    return _Entry(game, players, opponents)


def _count_episodes(manifest: GamesManifest, entry: _Entry, limit: int) -> int:
    """Count the requested episodes. Raises UnfitManifest for more than `limit`."""
    seats: list[Player | None] = list(entry.opponents.values()) or [None]
    meets = [Match(GameItem(0, 0, NO_OPPONENT), player, opponent) for player in entry.players for opponent in seats]
    per_deal = sum([1 if match.needs_no_model else manifest.draws for match in meets])
    scenario = entry.pack.manifest
    n_seeds = scenario.seeds.count
    if manifest.seeds:
        # Range by range, so that a short text cannot expand to a list that fills the memory.
        n_seeds = sum(last + 1 - first for first, last in parse_seed_spans(manifest.seeds))
    episodes = n_seeds * len(scenario.seats) * per_deal
    if episodes > limit:
        raise UnfitManifest("seeds", f"too many episodes for one manifest; allowed: at most {MAX_EPISODES:,}")
    return episodes


def _require_askable(manifest: GamesManifest, entries: Sequence[_Entry], server: Settings) -> list[str]:
    """Return the warnings of `require_askable`. Raises UnfitManifest and UnknownName for models that cannot be used."""
    limit = Budget(max_cost_usd=manifest.budget.max_cost_usd)
    by_path: dict[str, list[Sequence[Player]]] = {
        "models": [entry.players for entry in entries],
        "opponents": [list(entry.opponents.values()) for entry in entries],
    }
    warnings: list[str] = []
    for path, groups in by_path.items():
        specs = list_player_models([player for players in groups for player in players])
        warnings += require_askable(path, specs, manifest.snapshot, server, Accounts(limit, {}))
    return list(dict.fromkeys(warnings))


def _require_played(names: Sequence[str], players: Sequence[Player]) -> None:
    """Raise UnfitManifest for a persona that no player plays."""
    if idle := [name for name in names if name != AS_ITSELF and all(player.persona_name != name for player in players)]:
        raise UnfitManifest(
            "models",
            f"no player for {', '.join(idle)}: only models can play personas; allowed: a model, or persona_ids: {AS_ITSELF}",
        )


GAMES_PLANS = GamesPlans()
