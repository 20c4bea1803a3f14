"""Families of comparisons, within which p is adjusted, and verdicts.

The families are the pairs of language models, each language model against the subject's `reference`, and the other pairs with a computed
model. They are fixed before scoring, and each is adjusted by Holm within each setting: the probability of any false finding in a
family is controlled. The number of baselines on a board thus does not affect the models.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.board_subject import BoardSubject
from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE, holm

OTHER = ("other_model", "other_variant")
AMONG_MODELS, OF_REFERENCE, OF_BASELINES = "models", "reference", "baselines"
COMPARED_FAMILIES = (OF_REFERENCE, AMONG_MODELS, OF_BASELINES)
"""In the order in which they are shown."""
BETTER, WORSE, ALIKE, UNTESTED = "better", "worse", "no clear difference", "not tested"
_IN_WORDS = {
    BETTER: "this model is better",
    WORSE: "the other model is better",
    ALIKE: "no difference is found",
    UNTESTED: "nothing can be tested",
}


def add_families(table: pd.DataFrame, options: BoardOptions) -> pd.DataFrame:
    """Add the columns `adjusted_over`, `p_adjusted`, `verdict`, `parsed_p_adjusted`, `parsed_verdict`; `parsed_note` says where verdicts differ.

    `table`: as in `compare_all_pairs`, with all settings. p is adjusted by Holm over the rows of a family in the same setting;
    a verdict follows from the adjusted p and SIGNIFICANCE.
    """
    sides = [table[name].astype(str) for name in ("model_variant", "other_variant")]
    is_first_computed, is_other_computed = (side.map(is_computed).astype(bool) for side in sides)
    is_of_reference = (sides[0] == options.subject.reference) | (sides[1] == options.subject.reference)
    cases = [~is_first_computed & ~is_other_computed, (is_first_computed ^ is_other_computed) & is_of_reference]
    names = np.select(cases, [AMONG_MODELS, OF_REFERENCE], OF_BASELINES).astype(object)
    result = table.assign(adjusted_over=names)
    groups = [result["adjusted_over"], *(table[name].astype(str) for name in options.subject.keys.asked)]
    for p, adjusted, difference, verdict in (
        ("p", "p_adjusted", "difference", "verdict"),
        ("parsed_p", "parsed_p_adjusted", "parsed_difference", "parsed_verdict"),
    ):
        result[adjusted] = table[p].astype(np.float64).groupby(groups).transform(lambda values: holm(values))
        words = np.where(result[difference] > 0, BETTER, np.where(result[difference] < 0, WORSE, ALIKE))
        words = np.where(result[adjusted] < SIGNIFICANCE, words, ALIKE)
        result[verdict] = np.where(result[adjusted].isna(), UNTESTED, words).astype(object)
    # Rows of which all was read say one thing, whatever p of other rows is adjusted with theirs.
    all_read = (result["n_parsed_pairs"] == result["n_pairs"]) & (result["parsed_p"] == result["p"])
    for column in ("parsed_p_adjusted", "parsed_verdict"):
        result[column] = result[column].mask(all_read, result[column.removeprefix("parsed_")])
    return result.assign(parsed_note=describe_disagreement(result, options.subject, "both answered readably", _IN_WORDS))


def describe_disagreement(table: pd.DataFrame, subject: BoardSubject, where: str, words: Mapping[str, str]) -> list[str]:
    """Return, for each row, a note if the verdict of parsed scores differs from the policy's; empty if they agree or are unknown.

    `table` has `verdict`, `parsed_verdict` and, as `parsed_note`, why parsed scores have no verdict (null if not examined). `where`
    describes the cells with parsed scores, and `words` states their verdicts.
    """
    credits = [score for score in subject.credits.values() if score is not None]
    policy = f"by the published policy, which gives unread responses {min(credits):g} to {max(credits):g}"
    notes = []
    for verdict, parsed_verdict, note in zip(table["verdict"], table["parsed_verdict"], table["parsed_note"], strict=True):
        if verdict == parsed_verdict or pd.isna(note) or pd.isna(verdict):
            notes.append("")
            continue
        reason = f" ({note})" if note else ""
        notes.append(f"{verdict} {policy}; on the pairs that {where}: {words.get(parsed_verdict, parsed_verdict)}{reason}")
    return notes
