"""Which comparisons confirm and which explore, what their p is adjusted over, and the verdicts.

One family confirms: each language model against the subject's `reference`, asked in one way. It is fixed before anything is scored, so it is
adjusted by Holm: the probability of any false finding in it is held. Everything else explores: of what is found there, the share that is
false is held.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.cells import TARGETS, BoardOptions
from dtef_pipeline.boards.scored import Scored
from dtef_pipeline.statistics.permutation import SIGNIFICANCE, benjamini_hochberg, holm

OTHER = ("other_model", "other_variant")
CONFIRMATORY, EXPLORATORY = "confirmatory", "exploratory"
BETTER, WORSE, ALIKE, UNTESTED = "better", "worse", "not told apart", "not tested"
_SAID = {
    BETTER: "this model is better",
    WORSE: "the other model is better",
    ALIKE: "no difference is found",
    UNTESTED: "nothing can be tested",
}


def with_families(table: pd.DataFrame, options: BoardOptions) -> pd.DataFrame:
    """`table` with the columns `family`, `p_adjusted`, `verdict`, `parsed_p_adjusted`, `parsed_verdict`; `parsed_note` says where both differ.

    `table` as of `comparisons`, with all that was asked in any way. p is adjusted by Holm over the confirmatory family, by Benjamini and
    Hochberg over the exploratory rows that were asked in the same way; a verdict is by the adjusted p and SIGNIFICANCE.
    """
    confirms = _confirms(table, options)
    family = np.where(confirms, CONFIRMATORY, EXPLORATORY)
    within = [family, *(table[name].astype(str) for name in options.subject.keys.asked)]
    found = table.assign(family=family)
    for p, adjusted, difference, verdict in (
        ("p", "p_adjusted", "difference", "verdict"),
        ("parsed_p", "parsed_p_adjusted", "parsed_difference", "parsed_verdict"),
    ):
        known = table[p].astype(np.float64)
        explored = known.groupby(within).transform(lambda each: benjamini_hochberg(each))
        found[adjusted] = explored.where(~confirms, known.groupby(within).transform(lambda each: holm(each)))
        found[verdict] = _verdicts(found[adjusted], found[difference])
    # Rows of which all was read say one thing, whatever p of other rows is adjusted with theirs.
    all_read = (found["n_parsed_pairs"] == found["n_pairs"]) & (found["parsed_p"] == found["p"])
    for parsed in ("parsed_p_adjusted", "parsed_verdict"):
        found[parsed] = found[parsed].mask(all_read, found[parsed.removeprefix("parsed_")])
    return found.assign(parsed_note=disagreement(found, options.subject, "both answered readably", _SAID))


def _confirms(table: pd.DataFrame, options: BoardOptions) -> pd.Series:
    """Which rows are of the confirmatory family: none where the reference was compared with no language model, or with what is no fair test.

    Of several ways of asking it is the usual one, of those the one with the largest `size`: what was asked decides, not what came out.
    """
    subject, asked = options.subject, list(options.subject.keys.asked)
    sides = [table[name].astype(str) for name in ("model_variant", "other_variant")]
    computed = [side.map(is_computed).astype(bool) for side in sides]
    against = (computed[0] ^ computed[1]) & ((sides[0] == subject.reference) | (sides[1] == subject.reference))
    if options.targets != TARGETS[0] or not against.any():
        return pd.Series(False, index=table.index)
    ways = table.loc[against, asked].astype(str).drop_duplicates()
    usual = sum((ways[name] == value).astype(int) for name, value in subject.usual.items())
    ways = ways.assign(usual=usual, size=ways[asked[0]].map(subject.size))
    first = ways.sort_values(["usual", "size", *asked[1:]], ascending=[False, False, *(True for _ in asked[1:])]).iloc[0]
    return against & (table[asked].astype(str) == first[asked]).all(axis=1)


def why_none_confirms(table: pd.DataFrame, reference: str) -> str:
    """Why no row of `table` (as of `comparisons`) is of the confirmatory family, in words; empty where one is."""
    if (table["family"] == CONFIRMATORY).any():
        return ""
    if (table["targets"] != TARGETS[0]).any():
        return "targets that are no fair test are among those compared"
    if not ((table["model_variant"] == reference) | (table["other_variant"] == reference)).any():
        return f"{reference} is not among the models compared"
    return f"no language model was compared with {reference}"


def _verdicts(p: pd.Series, difference: pd.Series) -> npt.NDArray[np.object_]:
    found = p < SIGNIFICANCE
    words = np.where(found & (difference > 0), BETTER, np.where(found & (difference < 0), WORSE, ALIKE))
    return np.where(p.isna(), UNTESTED, words).astype(object)


def disagreement(table: pd.DataFrame, subject: Scored, where: str, said: Mapping[str, str]) -> list[str]:
    """For each row, in words, that parsed scores alone say something else than the policy; empty where they agree or are not known.

    `table` has `verdict`, `parsed_verdict` and, as `parsed_note`, why parsed scores say nothing (null: they were not looked at). `where` names
    the cells that have them, `said` puts verdicts on them in words.
    """
    credits = [score for score in subject.credits.values() if score is not None]
    policy = f"by the published policy, which gives unread responses {min(credits):g} to {max(credits):g}"
    told = []
    for verdict, parsed, why in zip(table["verdict"], table["parsed_verdict"], table["parsed_note"], strict=True):
        if verdict == parsed or pd.isna(why) or pd.isna(verdict):
            told.append("")
            continue
        reason = f" ({why})" if why else ""
        told.append(f"{verdict} {policy}; on the pairs that {where}: {said.get(parsed, parsed)}{reason}")
    return told
