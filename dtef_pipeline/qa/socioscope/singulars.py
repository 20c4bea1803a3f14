"""Singulars of English nouns, by rule: `cars` is `car`, `studies` is `study`, and `bus` stays what it is."""

from __future__ import annotations

from functools import lru_cache

_SHORTEST_PLURAL, _LONGEST_NOUN = 4, 40
_F_TO_VES = "half calf loaf leaf thief shelf wolf sheaf hoof scarf"
_FE_TO_VES = "life wife knife midwife housewife"
_IRREGULAR = {
    "men": "man",
    "women": "woman",
    "children": "child",
    "people": "person",
    "oxen": "ox",
    "feet": "foot",
    "teeth": "tooth",
    "geese": "goose",
    "mice": "mouse",
    "lice": "louse",
    "criteria": "criterion",
    "phenomena": "phenomenon",
    "quizzes": "quiz",
    "gases": "gas",
    "lenses": "lens",
    **{f"{word[:-2]}es": word for word in ("analysis", "crisis", "thesis", "hypothesis", "diagnosis")},
    **{f"{word[:-1]}ves": word for word in _F_TO_VES.split()},
    **{f"{word[:-2]}ves": word for word in _FE_TO_VES.split()},
}
_ENDS_IN_E = (
    "movies cookies calories zombies rookies ties pies lies dies shoes toes canoes foes oboes axes caches niches avalanches quiches "
    "aches headaches toothaches stomachaches heartaches backaches earaches uses fuses muses excuses abuses refuses"
)
"""Words that lose the s alone, where a rule would take more."""
_SINGULAR_ALREADY = (
    "always perhaps news series species means lens mathematics physics economics politics ethics athletics "
    "texas kansas arkansas honduras christmas atlas canvas alias bias pancreas pyjamas"
)
_KNOWN_SINGULARS = (
    _IRREGULAR | {word: word[:-1] for word in _ENDS_IN_E.split()} | {word: word for word in _SINGULAR_ALREADY.split()}
)
_BY_ENDING = (
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("auses", "ause"),
    ("ouses", "ouse"),
    ("uses", "us"),
    ("ies", "y"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("ches", "ch"),
    ("xes", "x"),
    ("zzes", "zz"),
    ("oes", "o"),
    ("s", ""),
)
"""Of the endings that a word has, the first decides."""


@lru_cache(maxsize=1 << 15)
def _singular(word: str) -> str:
    if (known := _KNOWN_SINGULARS.get(word)) is not None:
        return known
    ending, singular_ending = next(rule for rule in _BY_ENDING if word.endswith(rule[0]))
    return word.removesuffix(ending) + singular_ending


def singular(word: str) -> str:
    """The singular of a normalised word. A word with a digit, a singular, and a word of three letters or fewer are themselves.

    The rules know spelling and no meaning: a name such as `adams` loses its s too. That harms nothing where both sides of a comparison
    are made singular.
    """
    may_be_plural = (
        _SHORTEST_PLURAL <= len(word) <= _LONGEST_NOUN and word.isalpha() and (word[-1] == "s" or word in _IRREGULAR)
    )
    return _singular(word) if may_be_plural else word
