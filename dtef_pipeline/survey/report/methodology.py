"""How the numbers are made, in the words and constants of the code itself."""

from __future__ import annotations

import inspect
from html import escape

from dtef_pipeline.report.markup import described, section
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.boards.scored import SCORED, SurveyBoardOptions
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.scoring.policy import CREDITS
from dtef_pipeline.survey.tables import METRICS

_HOW_TO_READ_NUMBERS = (
    "How to read and to repeat the numbers; formulas, assumptions, references and the simulations that check them are in "
    "docs/statistics.md."
)


def methodology(metric: str) -> str:
    """The section; `metric` is what the boards rank by."""
    facts = {
        "Metric": f"<code>{escape(metric)}</code>",
        "Confidence": f"{CONFIDENCE:.0%}",
        "Seed": f"<code>{SEED}</code>",
        "Fewest batteries for an interval": str(MIN_CLUSTERS),
        "Segments needed for a rank": f"{SCORED.ranked_from}, or all there are if fewer",
        "Targets": f"<code>{SurveyBoardOptions().targets}</code>: questions that define a segment are left out",
    }
    parts = [
        "<h3>Settings</h3>" + described(facts),
        "<h3>Pairs, cells, clusters, draws, snapshots</h3>" + _WHAT_IS_COUNTED,
        "<h3>The published policy</h3>" + described(_policy()),
        "<h3>Metrics</h3>" + described({name: escape(_first_sentences(name)) for name in METRICS}),
        "<h3>Terms</h3>" + described({name: escape(meaning) for name, meaning in _TERMS.items()}),
    ]
    return section("methodology", "Methodology", _HOW_TO_READ_NUMBERS, "".join(parts))


_WHAT_IS_COUNTED = (
    "<p>A <b>pair</b> is one question to one segment of a round. A <b>cell</b> is a pair asked in one way (context level and condition), "
    "with its draws averaged. A <b>cluster</b> is a battery: questions that were asked as one block, in all segments and linked over rounds. "
    "A statistic about questions in general must count neither the fifty segments that answered one question as fifty questions, nor the six "
    "of a battery as six independent ones.</p>"
    "<p>A snapshot is one pass over the prompts. Of several snapshots the latest response to each cell counts; drift alone compares them. "
    "Draws are several responses to one prompt; they are averaged before anything else.</p>"
)
_TERMS = {
    "Interval": "The estimate -+ t times its cluster-robust standard error: from how batteries differ, each with its scores in all segments and "
    "rounds, and from the chance in who was asked, since the same people answer all questions.",
    "Ceiling": "The expected score of the true distribution against a sample of that many respondents, simulated for each pair.",
    "Leave-one-out marginal": "The answer of the other segments of the same attribute, weighted by size.",
    "Population marginal": "The answer of all segments of the round, weighted by size; it contains the target segment.",
    "Skill": "(score - leave-one-out) / (ceiling - leave-one-out), of means: 0 knows nothing of the group, 1 is perfect, below 0 is worse.",
    "Worth": "The number of respondents whose sample distribution would be as far from the truth as the model's prediction is. "
    "Responses that could not be read do not count in it, as they do in the score: a model can have a low score and a high worth.",
    "Tier": "Down the ranking, the first model that is worse than the first of the tier (after adjusting for the number of "
    "comparisons) opens the next tier.",
    "Deviation": "The score of a segment less that of a segment of as many people that is predicted as well as the others of its attribute.",
}


def _policy() -> dict[str, str]:
    scored = {
        credit.status.replace("_", " "): (f"scored {credit.score:g}" if credit.score is not None else "left out of every mean")
        + f": {escape(credit.reason)}"
        for credit in CREDITS
    }
    return {"ok": "scored by the metric", **scored}


def _first_sentences(metric: str) -> str:
    """The first paragraph of the metric's own documentation, in one line."""
    return " ".join((inspect.getdoc(getattr(metrics, metric)) or "").split("\n\n")[0].split())
