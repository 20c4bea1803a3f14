"""What is different between two readings of a survey round: said before anything is run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from dtef_pipeline.survey.validation import listed

COLUMNS = ["segment", "question_id", "question_text", "options", "observed", "n"]


@dataclass(frozen=True)
class Changes:
    """Names of what is new, gone or different. A pair is `segment question`; pairs of a new or lost segment or question are not listed again."""

    segments_added: tuple[str, ...] = ()
    segments_dropped: tuple[str, ...] = ()
    questions_added: tuple[str, ...] = ()
    questions_dropped: tuple[str, ...] = ()
    questions_reworded: tuple[str, ...] = ()
    """Another text, other options, or the options in another order."""
    pairs_added: tuple[str, ...] = ()
    pairs_dropped: tuple[str, ...] = ()
    distributions_changed: tuple[str, ...] = ()
    n_changed: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each kind that occurs: `{"segments added": 2}`."""
        return {name.replace("_", " "): len(names) for name, names in vars(self).items() if names}

    def __str__(self) -> str:
        """`2 segments added (country:peru, country:togo); 1 n changed (...)`, or `no change to any answer`."""
        named = {name.replace("_", " "): names for name, names in vars(self).items() if names}
        return "; ".join(f"{len(names)} {kind} ({listed(names)})" for kind, names in named.items()) or "no change to any answer"


class _Pair(NamedTuple):
    asked: tuple[str, tuple[str, ...]]
    observed: tuple[float, ...]
    n: int


def changes(before: pa.Table, after: pa.Table) -> Changes:
    """Compare two `survey_responses` tables of a round (columns `COLUMNS`), in the order of `after`, then of `before`."""
    old, new = _pairs(before), _pairs(after)
    both = [pair for pair in new if pair in old]
    segments, questions = ([dict.fromkeys(pair[place] for pair in side) for side in (old, new)] for place in (0, 1))
    reworded = dict.fromkeys(pair[1] for pair in both if new[pair].asked != old[pair].asked)
    return Changes(
        *_added_and_dropped(*segments),
        *_added_and_dropped(*questions),
        tuple(reworded),
        tuple(_name(pair) for pair in new if pair not in old and pair[0] in segments[0] and pair[1] in questions[0]),
        tuple(_name(pair) for pair in old if pair not in new and pair[0] in segments[1] and pair[1] in questions[1]),
        tuple(_name(pair) for pair in both if new[pair].observed != old[pair].observed),
        tuple(_name(pair) for pair in both if new[pair].n != old[pair].n),
    )


def _pairs(table: pa.Table) -> dict[tuple[str, str], _Pair]:
    columns: Sequence[list[Any]] = [table[name].to_pylist() for name in COLUMNS]
    return {
        (segment, question): _Pair((text, tuple(options)), tuple(observed), n)
        for segment, question, text, options, observed, n in zip(*columns, strict=True)
    }


def _added_and_dropped(old: Mapping[str, None], new: Mapping[str, None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(name for name in new if name not in old), tuple(name for name in old if name not in new)


def _name(pair: tuple[str, str]) -> str:
    return " ".join(pair)
