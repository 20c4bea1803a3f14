"""What pages call things."""

from __future__ import annotations

import pandas as pd

from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.site.family_site import method
from dtef_pipeline.survey.site.survey_labels import (
    BASELINE_MEANINGS,
    METRIC_NAMES,
    describe_watched_setting,
    format_baseline_name,
    map_variant_names,
    ranked_metric_words,
)
from dtef_pipeline.survey.tables import METRICS


def test_every_baseline_has_words() -> None:
    assert set(BASELINE_MEANINGS) == set(BASELINES)
    assert format_baseline_name("baseline/leave-one-out-marginal") == "Leave-one-out marginal"
    assert format_baseline_name("baseline/dirichlet[seed=3]") == "Dirichlet (seed=3)"
    assert format_baseline_name("baseline/of-another-time") == "baseline/of-another-time"


def test_a_model_of_two_variants_is_called_by_its_variant() -> None:
    rows = [("gpt", "gpt[t=0]"), ("gpt", "gpt[t=1]"), ("o3", "o3[t=0]"), ("baseline/dirichlet", "baseline/dirichlet[seed=0]")]
    names = map_variant_names(pd.DataFrame(rows, columns=["model", "model_variant"]))
    assert names == {"gpt[t=0]": "gpt[t=0]", "gpt[t=1]": "gpt[t=1]", "o3[t=0]": "o3", "baseline/dirichlet[seed=0]": "Dirichlet"}


def test_metrics_are_words() -> None:
    assert ranked_metric_words("js [context 5, distribution+cot]") == (
        "Jensen-Shannon, with 5 context questions, asked directly, reasoning first"
    )
    assert describe_watched_setting("context 5, condition distribution") == "with 5 context questions, asked directly"
    assert (describe_watched_setting("context 0"), describe_watched_setting("asked")) == ("without context questions", "asked")
    assert set(METRICS) <= set(METRIC_NAMES)


def test_the_method_names_metrics_as_leaderboards_do_and_ids_as_code() -> None:
    """It said: boards rank by js."""
    words = " ".join(method("js"))
    assert "Leaderboards rank by Jensen-Shannon." in words
    assert all(f"{METRIC_NAMES[name]} (`{name}`)" in words for name in METRICS)
