"""Manifests of games: who plays what, checked before anything is stored, and the run that it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, field_validator

from assets.games.game_catalog import load_known_personas, load_known_scenarios
from dtef_pipeline.api.plans.game_pins import apply_pins, pin_personas, pin_scenario
from dtef_pipeline.api.plans.manifest_base import rejections, require_askable, require_offered
from dtef_pipeline.api.plans.plan import (
    EvaluationBudget,
    NotApproved,
    PlannedEvaluation,
    Refusals,
    UnfitManifest,
    UnknownName,
    require_unique,
    validate_snapshot,
)
from dtef_pipeline.asking.models import Budget, Models
from dtef_pipeline.documents import Part, format_value
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.games.entrants import (
    AS_ITSELF,
    list_absent_by_scenario,
    list_player_models,
    list_solo_scenarios,
    name_opponent_item,
    refuse_unknown_models,
    resolve_entrants,
    resolve_opponent,
)
from dtef_pipeline.games.episode import Match
from dtef_pipeline.games.episode_items import NO_OPPONENT, GameItem, parse_seed_spans, resolve_opponents
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_files import require_weighable
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.personas import APPROVED, BASELINE_PREFIX, Persona, Player, require_approved
from dtef_pipeline.games.settings import GAMES_STAGE_SETTINGS, MOST_ASKED_EPISODES, GamesSettings
from dtef_pipeline.games.tables import LEAGUE_SPACE
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.quantity_words import format_count
from resources.evaluations.evaluation_store import RunSpec
from resources.gateway.budget import Accounts
from resources.model_catalog import load_known_models
from resources.settings import Settings

MOST_ASKED_RUNS = 200
"""Personas x scenarios of one manifest."""
_LARGEST_ASKED_SEED = 10**12 - 1
_LONGEST_SEEDS = 2_000
"""Characters of the text."""


def _validate_seeds(given: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, str):
        return _expand_seeds(given)
    if not isinstance(given, list) or not all(type(one) is int for one in given):
        raise ValueError(f"got {format_value(given)}; allowed: text such as 1-20, or a list of whole numbers")
    if wrong := [one for one in given if not 0 <= one <= _LARGEST_ASKED_SEED]:
        raise ValueError(f"got {str(wrong[0])[:80]}; allowed: whole numbers from 0 to {_LARGEST_ASKED_SEED}")
    if not given:
        raise ValueError("got an empty list; allowed: one or more seeds, or none given: those of each scenario")
    return require_unique(given)


def _expand_seeds(given: str) -> str:
    if not given:
        raise ValueError(f"got {given!r}; allowed: text such as 1-20, or a list of whole numbers")
    if len(given) > _LONGEST_SEEDS:
        raise ValueError(f"got a text of {format_count(len(given), 'character')}; allowed: 1 to {_LONGEST_SEEDS:,}")
    try:
        spans = sorted(parse_seed_spans(given))
    except ConfigError as error:
        raise ValueError(f"got {repr(given)[:80]}; allowed: {str(error).partition('allowed: ')[2]}") from None
    for (_, last), (first, _) in pairwise(spans):
        if first <= last:
            raise ValueError(f"got {first} more than once; allowed: each once")
    return given


Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Names = Annotated[list[Name], Field(max_length=MOST_ASKED_RUNS), AfterValidator(require_unique)]


class GamesManifest(Part):
    """Games of models in the roles of personas. The settings are those of `dtef games run`."""

    family: Literal["games"] = "games"
    persona_ids: Annotated[Names, Field(min_length=1)]
    """Ids, `cautious` or `cautious:v2`, or `none`: the model as itself. Only approved ones."""
    scenario_ids: Annotated[Names, Field(min_length=1)]
    """Such as `poker/kuhn`."""
    models: Annotated[Names, Field(min_length=1)]
    """Models, collections of them, `baseline/NAME`, or `baselines`: all that a scenario has."""
    seeds: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST_SEEDS)] | list[int] | None,
        BeforeValidator(_validate_seeds),
    ] = None
    """`1-20`, or a list of them; none: those of each scenario."""
    draws: Annotated[int, Field(ge=1, le=MOST_ASKED_EPISODES)] = 1
    """Repetitions of each episode of a model."""
    opponents: Names = []
    """Baselines, models or persona@model; empty: those of each scenario."""
    budget: EvaluationBudget | None = None
    snapshot: Annotated[str, AfterValidator(validate_snapshot)] = "base"
    """Label of this evaluation pass: base, a date, or another name; a new one asks everything afresh."""

    @field_validator("budget")
    @classmethod
    def _normalize_budget(cls, budget: EvaluationBudget | None) -> EvaluationBudget | None:
        return None if budget == EvaluationBudget() else budget


class GamesPlans:
    """All scenarios of a manifest, played by every model as every persona."""

    form = GamesManifest

    def plan(self, manifest: GamesManifest, server: Settings) -> PlannedEvaluation:
        """Raises UnknownName for a persona, scenario, model or opponent that there is none of, NotApproved for a persona that is a draft or
        retired, UnfitManifest for what else cannot be played, and ConfigError where a file of the installation has a fault.
        """
        named = _NamedGames(manifest.model_dump(), server)
        packs, names = named.packs, [AS_ITSELF if one is None else one.name for one in named.chosen.values()]
        _require_fitting(manifest, named)
        entered, episodes = list[_Entry](), 0
        for one in packs.values():
            entered.append(_resolve_entry(manifest, one, named, names))
            episodes += _count_episodes(manifest, entered[-1], MOST_ASKED_EPISODES - episodes)
        warnings = _require_askable(manifest, entered, server)
        _require_played(names, [player for one in entered for player in one.players])
        settings = _build_settings(manifest, names)
        pinned = {key: pin_scenario(one, settings.seeds, manifest.opponents) for key, one in packs.items()}
        runs = [
            RunSpec(
                scenario,
                {
                    "persona_id": persona,
                    "scenario_id": scenario,
                    "persona": found.name if found else "",
                    **pinned[scenario]._asdict(),
                },
            )
            for persona, found in named.chosen.items()
            for scenario in packs
        ]
        personas = pin_personas([*manifest.models, *manifest.opponents], named.personas)
        config = run_config(apply_pins(settings, pinned, personas), GAMES_STAGE_SETTINGS)
        return PlannedEvaluation(
            "games_pipeline", LEAGUE_SPACE.name, list(packs), config, manifest.snapshot, runs, new_keys=True, warnings=warnings
        )

    def refuse_names(self, given: Mapping[str, Any], server: Settings) -> None:
        """Raises RefusedManifest with all names that cannot be, of those fields of a manifest that have their form."""
        _NamedGames(given, server)


class _NamedGames:
    """What the names in a manifest, or in part of one, stand for."""

    def __init__(self, given: Mapping[str, Any], server: Settings) -> None:
        """Raises RefusedManifest with all names that cannot be, also those of models and opponents."""
        # The families bring pandas, which the API starts without.
        from dtef_pipeline.families import COMPUTED_MODELS

        self.personas, self.models = load_known_personas(server), load_known_models(server, COMPUTED_MODELS)
        self.chosen: dict[str, Persona | None] = {}
        """None: the model as itself."""
        self.packs: dict[str, Pack] = {}
        scenarios, refusals = load_known_scenarios(server), Refusals()
        for one in refusals.take_until_full(given.get("persona_ids") or ()):
            with refusals.kept():
                self.chosen[one] = _find_persona(one, self.personas)
        wanted = given.get("scenario_ids") or ()
        for one in refusals.take_until_full(wanted):
            with refusals.kept():
                self.packs[one] = _find_pack(one, scenarios)
        # An opponent may be a baseline of any of the scenarios.
        for path in ("models", "opponents") if 0 < len(wanted) == len(self.packs) else ("models",):
            for one in refusals.take_until_full(given.get(path) or ()):
                with refusals.kept():
                    self._require_player(path, one, server)
        refusals.raise_all()

    def _require_player(self, path: str, name: str, server: Settings) -> None:
        """Raises UnknownName for a player that there is none of, and UnfitManifest for one that cannot be asked so."""
        before, at, behind = name.partition("@")
        as_persona = bool(at) and before in self.personas
        require_offered(path, behind if as_persona else name, self.models, server)
        packs = list(self.packs.values())
        if path == "opponents" and any(name_opponent_item(one, name).startswith(BASELINE_PREFIX) for one in packs):
            return  # each scenario reports separately whether it has the baseline
        with rejections(path, UnfitManifest if as_persona or _is_resolvable(before, self.models) else UnknownName):
            refuse_unknown_models(packs, self.models, self.personas, [name])


def _is_resolvable(name: str, models: Models) -> bool:
    try:
        return bool(models.resolve([name]))
    except ConfigError:
        return False


def _find_persona(name: str, personas: Mapping[str, Persona]) -> Persona | None:
    if name == AS_ITSELF:
        return None
    if name not in personas:
        raise UnknownName("persona_ids", f"there is no persona {name!r}; known: {AS_ITSELF}, {list_nearest(name, personas)}")
    found = personas[name]
    if found.status != APPROVED:
        raise NotApproved("persona_ids", f"persona {found.name} is {found.status}; allowed: an approved persona")
    return found


def _find_pack(name: str, scenarios: Mapping[str, ScenarioManifest]) -> Pack:
    if name not in scenarios:
        raise UnknownName("scenario_ids", f"there is no scenario {name!r}; known: {list_nearest(name, scenarios)}")
    if scenarios[name].status == "retired":
        raise NotApproved("scenario_ids", f"scenario {name} is retired; allowed: one that is experimental or in production")
    return pack(name, scenarios)


def _build_settings(manifest: GamesManifest, personas: Sequence[str]) -> GamesSettings:
    """What a run of the manifest is given. `personas`: names with versions, so that what was approved plays."""
    seeds = manifest.seeds
    bounds = manifest.budget.model_dump(exclude_none=True) if manifest.budget else {}
    return GamesSettings(
        players=manifest.models,
        personas=list(personas),
        opponents=manifest.opponents,
        seeds=",".join(map(str, seeds)) if isinstance(seeds, list) else seeds,
        draws=manifest.draws,
        snapshot=manifest.snapshot,
        **bounds,
    )


def _require_fitting(manifest: GamesManifest, named: _NamedGames) -> None:
    """Raises UnfitManifest and UnknownName for names that are known and do not go with each other."""
    packs = named.packs
    if len({one and one.name for one in named.chosen.values()}) < len(named.chosen):
        raise UnfitManifest("persona_ids", "a persona stands there twice, once by its id and once by its version")
    require_weighable(packs.values())
    if (runs := len(manifest.persona_ids) * len(manifest.scenario_ids)) > MOST_ASKED_RUNS:
        raise UnfitManifest(
            "scenario_ids", f"{format_count(runs, 'run')}, one per persona and scenario; allowed: at most {MOST_ASKED_RUNS:,}"
        )
    if manifest.opponents and len(list_solo_scenarios(packs)) == len(packs):
        raise UnfitManifest("opponents", f"{', '.join(packs)}: one seat and no opponents; allowed: none")
    with rejections("models", UnknownName):
        absent = list_absent_by_scenario(packs, manifest.models)
    if nobody := [key for key, found in absent.items() if len(found) == len(manifest.models)]:
        raise UnfitManifest("models", f"no player for {', '.join(nobody)}: there is no {' and no '.join(absent[nobody[0]])}")


class _Entry(NamedTuple):
    """Who plays a scenario."""

    pack: Pack
    players: Sequence[Player]
    opponents: Sequence[Player]


def _resolve_entry(manifest: GamesManifest, found: Pack, named: _NamedGames, personas: Sequence[str]) -> _Entry:
    """Raises UnfitManifest, UnknownName and NotApproved for who cannot play it."""
    with rejections("models"):
        players = resolve_entrants(found, named.models, named.personas, manifest.models, personas)
    given = [name_opponent_item(found, one) for one in manifest.opponents]
    if twice := {one for one in given if given.count(one) > 1}:
        same = [one for one in manifest.opponents if name_opponent_item(found, one) in twice]
        raise UnfitManifest("opponents", f"got {' and '.join(same)}, the same player more than once; allowed: each once")
    with rejections("opponents"):
        names = [one for one in resolve_opponents(given, found.manifest) if one != NO_OPPONENT]
    with rejections("opponents", UnknownName):
        opponents = [resolve_opponent(found, named.models, named.personas, one) for one in names]
    for path, some in (("models", players), ("opponents", opponents)):
        with rejections(path, NotApproved):
            require_approved(some)
    return _Entry(found, players, opponents)


def _count_episodes(manifest: GamesManifest, entered: _Entry, most: int) -> int:
    """How many are asked for. Raises UnfitManifest for more than `most`."""
    seats: list[Player | None] = list(entered.opponents) or [None]
    meets = [Match(GameItem(0, 0, NO_OPPONENT), player, opponent) for player in entered.players for opponent in seats]
    per_deal = sum([1 if one.asks_nobody else manifest.draws for one in meets])
    scenario = entered.pack.manifest
    episodes = _count_seeds(manifest, scenario) * len(scenario.seats) * per_deal
    if episodes > most:
        raise UnfitManifest("seeds", f"more episodes than a manifest may ask for; allowed: at most {MOST_ASKED_EPISODES:,}")
    return episodes


def _count_seeds(manifest: GamesManifest, scenario: ScenarioManifest) -> int:
    """Counted span by span, so that a short text stands for no list that fills the memory."""
    if isinstance(manifest.seeds, list):
        return len(manifest.seeds)
    if manifest.seeds is None:
        return scenario.seeds.count
    return sum(last + 1 - first for first, last in parse_seed_spans(manifest.seeds))


def _require_askable(manifest: GamesManifest, entered: Sequence[_Entry], server: Settings) -> list[str]:
    """The warnings of `require_askable`. Raises UnfitManifest and UnknownName for models that cannot be asked."""
    limit = Budget(max_cost_usd=manifest.budget.max_cost_usd if manifest.budget else None)
    by_path = {"models": [one.players for one in entered], "opponents": [one.opponents for one in entered]}
    warnings: list[str] = []
    for path, groups in by_path.items():
        specs = list_player_models([player for players in groups for player in players])
        warnings += require_askable(path, specs, manifest.snapshot, server, Accounts(limit, {}))
    return list(dict.fromkeys(warnings))


def _require_played(names: Sequence[str], players: Sequence[Player]) -> None:
    """Raises UnfitManifest for a persona that no player plays."""
    if idle := [one for one in names if one != AS_ITSELF and all(player.persona_name != one for player in players)]:
        raise UnfitManifest(
            "models",
            f"no player for {', '.join(idle)}: personas are played by models; allowed: a model, or persona_ids: {AS_ITSELF}",
        )


GAMES_PLANS = GamesPlans()
