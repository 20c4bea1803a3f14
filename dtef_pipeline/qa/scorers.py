"""The scorers by name and by type of item. Other packages add theirs by the entry-point group `dtef.scorers`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.model import ItemScore, Scorer, ScoreResponse, ScorerSettings
from dtef_pipeline.qa.reading.choice import ExactChoice
from dtef_pipeline.qa.reading.numeric import Numeric
from dtef_pipeline.qa.socioscope.lexicon import make_lexicon_fingerprint
from dtef_pipeline.qa.socioscope.lists import ListMany, ListOne
from dtef_pipeline.qa.socioscope.picks import PickMany, PickOne
from dtef_pipeline.qa.socioscope.yes_no import YesNo, YesNoRationale

SCORER_GROUP = "dtef.scorers"
"""Entry-point group for scorers of other packages: each is a class that makes a Scorer when called without arguments."""
SCORER_OF_TYPE = {
    "Yes/No": "yes_no",
    "ListOne": "list_one",
    "ListMany": "list_many",
    "PickOne": "pick_one",
    "PickMany": "pick_many",
    "Yes/No with Rationale": "yes_no_rationale",
}
"""Socioscope's types of items with their scorers."""
_SCORERS: tuple[Scorer, ...] = (
    YesNo(),
    ListOne(),
    ListMany(),
    PickOne(),
    PickMany(),
    YesNoRationale(),
    ExactChoice(),
    Numeric(),
)
_BY_SCORER_NAME = {scorer.name: scorer for scorer in _SCORERS}
_BY_FOLDED_TYPE = {label.casefold(): name for label, name in SCORER_OF_TYPE.items()}


def find_scorer(name_or_type: str) -> Scorer | None:
    """Find the scorer of a name or of a type, ignoring case and outer spaces, or return None.

    Scorers of this package take precedence. Raises ConfigError for one of another package that cannot be loaded.
    """
    key = name_or_type.strip()
    name = _BY_FOLDED_TYPE.get(key.casefold(), key)
    return _BY_SCORER_NAME.get(name) or _load_scorer(name)


def list_scorer_names() -> list[str]:
    """Return the names of all scorers: those of this package, then those of others."""
    return [*_BY_SCORER_NAME, *(name for name in sorted(_find_added_scorers()) if name not in _BY_SCORER_NAME)]


def describe_scorers(extras: Sequence[str] = ()) -> str:
    """Describe the types that have a scorer and the names of all scorers; `extras`: scorers that only the caller can use."""
    return ", ".join((*SCORER_OF_TYPE, *list_scorer_names(), *extras))


def make_unscored_scorer(name_or_type: str, extras: Sequence[str] = ()) -> ScoreResponse:
    """Return a scoring function that gives no value, for an item whose type has no scorer."""
    score = ItemScore("no_scorer", reason=f"the type {name_or_type} has no scorer; known: {describe_scorers(extras)}")
    return lambda response: score


def find_lexicon_name(scorer: Scorer, settings: ScorerSettings) -> str | None:
    """Return the fingerprint of a scorer's synonyms, see `make_lexicon_fingerprint`; None: it uses none, or there are none."""
    return make_lexicon_fingerprint(settings) if getattr(scorer, "uses_lexicon", False) else None


@lru_cache(maxsize=1)
def _find_added_scorers() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=SCORER_GROUP)}


@lru_cache(maxsize=64)
def _load_scorer(name: str) -> Scorer | None:
    point = _find_added_scorers().get(name)
    if point is None:
        return None
    try:
        scorer: Scorer = point.load()()
    except Exception as error:
        package = point.dist.name if point.dist else "an unknown package"
        raise ConfigError(f"the scorer {name} of {package} cannot be loaded: {type(error).__name__}: {error}") from error
    return scorer
