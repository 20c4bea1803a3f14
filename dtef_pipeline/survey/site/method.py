"""The method of surveys in words, with the constants of the code."""

from __future__ import annotations

import inspect

from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.boards.survey_subject import SCORED
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.site.data_sections import describe_policy
from dtef_pipeline.survey.site.survey_labels import METRIC_NAMES
from dtef_pipeline.survey.tables import METRICS


def method(metric: str) -> list[str]:
    """Return paragraphs for the page on method. `metric` is the ranking metric of the boards."""
    return [
        "A pair is one question and one segment of a round. A cell is a pair at one context level and condition, averaged over draws. A "
        "cluster is a battery: the questions of one block, in all segments, linked over rounds. Intervals treat a battery as one "
        "observation: neither fifty segments of one question nor six questions of one battery are independent.",
        "A snapshot is one pass over the prompts. Only the latest response of each cell counts; the drift page compares snapshots. "
        "Questions that define a segment are left out for that segment.",
        f"Interval = estimate ± t × cluster-robust standard error ({CONFIDENCE:.0%}, seed {SEED}, at least {MIN_CLUSTERS} batteries): from how "
        "batteries differ, each with its scores in all segments and rounds, and from the chance in who was asked, since the same people answer "
        "all questions.",
        f"A model needs scores in {SCORED.ranked_from} segments to be ranked, or in all if there are fewer. Its best possible rank is 1 "
        "plus the number of significantly better models; its worst is the number of models minus those that are significantly worse.",
        "Ceiling (a perfect model) = expected score of the true distribution against a sample of as many respondents, simulated by pair.",
        "Leave-one-out marginal = answer of the other segments of the same attribute, weighted by size. Population marginal = answer of all "
        "segments of the round, weighted by size; it contains the target segment.",
        "Skill = (score - leave-one-out marginal) / (ceiling - leave-one-out marginal), of means: 0: knows nothing of the group; 1: "
        "perfect; below 0: worse than the leave-one-out marginal.",
        "Worth = Σ Gini / Σ corrected squared error: the size of a sample whose distribution is as far from the truth as the prediction. "
        "It leaves out unreadable responses, so a model can have a low score and a high worth.",
        "Deviation of a segment = its score minus the expected score of a segment of that size that is predicted as well as the others "
        "of its attribute.",
        describe_policy(),
        f"Leaderboards rank by {METRIC_NAMES[metric]}. These are the metrics, and what commands call them:",
        *(f"{METRIC_NAMES[name]} (`{name}`): {_read_first_paragraph(name)}" for name in METRICS),
        "Formulas, assumptions, references and the simulations that check them are in docs/explanation/statistics.md.",
    ]


def _read_first_paragraph(metric: str) -> str:
    return " ".join((inspect.getdoc(getattr(metrics, metric)) or "").split("\n\n")[0].replace("`", "").split())
