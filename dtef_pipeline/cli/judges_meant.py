"""Judges that are meant by the name they have in a models file, as `dtef preference judge --model` takes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase

from dtef_pipeline.asking.models import Models
from dtef_pipeline.errors import ConfigError


def with_named_judges(patterns: tuple[str, ...], judges: Collection[str]) -> tuple[str, ...]:
    """The patterns, and the ids of those judges that the patterns mean as names, collections or selectors of models.

    `judges`: the ids of all that voted. A model with other settings is another judge, whatever it was told it is the same.
    """
    if not patterns or not judges:
        return patterns
    # Loads every family, which patterns of ids do not need.
    from dtef_pipeline.families import COMPUTED_MODELS
    from resources.known_models import known_models
    from resources.settings import Settings

    known = known_models(Settings.from_environment(), COMPUTED_MODELS)
    named = set(_named(patterns, known))
    return (*patterns, *sorted(judge for judge in judges if _without_wording(judge) in named))


def _named(patterns: Iterable[str], known: Models) -> Iterator[str]:
    """The ids, but for what judges are told, of all models that the patterns name."""
    from dtef_pipeline.preference.judged_pairs import judge_reviewer_id, pair_judges

    for pattern in patterns:
        for name in {pattern, *(one for one in known.specs if fnmatchcase(one, pattern))}:
            try:
                yield from (_without_wording(judge_reviewer_id(spec)) for spec in pair_judges((name,), known))
            except ConfigError:
                continue  # It names no model, or one that cannot judge.


def _without_wording(judge: str) -> str:
    return judge.rpartition("#")[0]
