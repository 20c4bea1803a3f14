"""What of a manifest does not fit the scenario that plays it: told before anything is asked, and not when a paid league is scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.baselines import baselines_of
from dtef_pipeline.games.episode_scores import pack_metrics
from dtef_pipeline.games.in_play import FORFEIT_FLAG, TURN_LIMIT_FLAG
from dtef_pipeline.games.metrics import require_composite
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.text.nearest import nearest

FLAGS_OF_EVERY_GAME = (FORFEIT_FLAG, TURN_LIMIT_FLAG)


def flags_of(pack: Pack) -> tuple[str, ...]:
    """All flags that an episode may have: those of every game, then those that the scenario names in its attribute `flags`, if it has one."""
    return tuple(dict.fromkeys((*FLAGS_OF_EVERY_GAME, *getattr(pack.scenario, "flags", ()))))


def weighing_faults(pack: Pack) -> Iterator[str]:
    """A sentence for what the manifest weighs and the scenario does not have: metrics of the composite score, and flags with a severity."""
    try:
        require_composite("evaluation, algorithmic", pack.manifest.evaluation.algorithmic, pack_metrics(pack))
    except ConfigError as error:
        yield str(error)
    flags = flags_of(pack)
    for name in pack.manifest.severities:
        if name not in flags:
            yield f"severities: {name}: no flag of the scenario; allowed: {', '.join(flags)}"


def opponent_faults(pack: Pack) -> Iterator[str]:
    """A sentence for each opponent that is none, and for a scenario of several seats that has no opponents."""
    known = baselines_of(pack.scenario)
    for name in pack.manifest.opponents:
        if name not in known:
            yield f"its manifest names the opponent {name}; allowed: {nearest(name, known)}"
    if len(pack.manifest.seats) > 1 and not pack.manifest.opponents:
        yield f"its manifest: opponents: none for {len(pack.manifest.seats)} seats; allowed: one or more of {', '.join(known)}"


def require_weighable(packs: Iterable[Pack]) -> None:
    """Raises ConfigError for the first fault in what manifests weigh: scoring would fail for it when all is played and paid for."""
    for one in packs:
        for fault in weighing_faults(one):
            raise ConfigError(f"{one.name}: {fault}")
