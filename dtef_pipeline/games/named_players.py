"""Players by the names that people give them: `baseline/NAME`, a model, or PERSONA@MODEL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.baselines import baseline_of, baselines_of
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.players import BASELINE_PREFIX, Player
from dtef_pipeline.text.counted import and_more, counted
from dtef_pipeline.text.nearest import nearest

_MOST_BASELINES_TOLD = 12


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
    found = models_named([pack], models, personas, model if persona else name)
    if len(found) != 1:
        raise ConfigError(f"player {name}: {counted(len(found), 'model')}; allowed: one model, or a baseline")
    if found[0].is_computed:
        raise ConfigError(f"player {name}: it is computed from other data; allowed: a model that is asked, or a baseline")
    return Player(found[0], persona)


def models_named(packs: Iterable[Pack], models: Models, personas: Mapping[str, Persona], name: str) -> tuple[ModelSpec, ...]:
    """The models that a player's name stands for. Raises ConfigError with the scenarios' baselines, and with personas where one was meant."""
    try:
        return tuple(models.resolve([name]))
    except ConfigError as error:
        before, at, rest = name.partition("@")
        if _is_known(models, before):
            raise
        if at and "=" not in rest.partition("@")[0]:
            raise ConfigError(f"player {name}: there is no persona {before!r}; known: {nearest(before, personas)}") from error
        raise ConfigError(f"player {name}: {_of_no_name(packs, models, before)}") from error


def _of_no_name(packs: Iterable[Pack], models: Models, name: str) -> str:
    known = {key: [f"{BASELINE_PREFIX}{one}" for one in baselines_of(pack.scenario)] for pack in packs for key in [pack.name]}
    meant = f"{BASELINE_PREFIX}{name}"
    having = [key for key, baselines in known.items() if meant in baselines]
    if having:
        told = f"{meant}, a baseline of {' and '.join(having)}; "
    elif not known:
        told = ""
    elif len(known) == 1:
        told = f"{and_more(next(iter(known.values())), _MOST_BASELINES_TOLD)} of {next(iter(known))}; "
    else:
        told = f"{nearest(meant, {one for baselines in known.values() for one in baselines}, _MOST_BASELINES_TOLD)}; "
    held = "".join(f" ({file} holds none)" for file in models.files_of_none)
    asked = {key for key, spec in models.specs.items() if not spec.is_computed}
    others = nearest(name, {*asked, *(key for key, members in models.collections.items() if asked.issuperset(members))})
    return (
        f"no model or collection {name!r}{held}; allowed: {told}a model or collection: {others} (`dtef models` lists all); "
        "or a litellm string such as openai/gpt-4.1-mini"
    )


def _is_known(models: Models, name: str) -> bool:
    try:
        return bool(models.resolve([name]))
    except ConfigError:
        return False


def names_of_players(text: str) -> list[str]:
    """The names in a list with commas. A comma within the settings of a model parts no names: `mini@temperature=0,top_p=1,baseline/random`."""
    names: list[str] = []
    for part in (one.strip() for one in text.split(",")):
        if names and "=" in part and "@" not in part and "@" in names[-1]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return [name for name in names if name]
