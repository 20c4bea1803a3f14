"""A family that has a record and nothing else: its manifests are planned, and its runs have results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import pytest

from dtef_pipeline import families
from dtef_pipeline.api.plans.manifests import read_manifest
from dtef_pipeline.api.plans.plan import UnknownName
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.asking.draws import Draws
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.run_settings import ASKING_SETTINGS, RunSettings, Setting
from dtef_pipeline.qa.tables import QA_CALL_TABLES, QA_SPACE, QA_TABLES
from tests.dtef_pipeline.api.asked_runs import LAW, asked_qa, partition, submitted
from tests.dtef_pipeline.api.made import add_partitions, client_in, settings_in

MODEL = "gpt-4.1-mini"


class SpellingSettings(RunSettings):
    """What runs are given that ask how words are spelled."""

    models: Annotated[list[str], Setting(option="--model")] = []
    """Model to ask."""
    draws: Draws = 1
    """Number of times each word is asked."""


SPELLING = Family(
    "spelling",
    QA_SPACE,
    QA_TABLES,
    QA_CALL_TABLES,
    "qa_scores",
    settings=SpellingSettings,
    stage_settings={"qa_items": (), "qa_responses": (*ASKING_SETTINGS, "models", "draws")},
)


@pytest.fixture(autouse=True)
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "FAMILIES", (*families.FAMILIES, SPELLING))
    monkeypatch.setitem(cast(dict[str, Family], families.FAMILY_BY_NAME), "spelling", SPELLING)


def test_its_manifests_name_partitions_and_its_settings(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    add_partitions(settings, {"dataset_part": ["mmlu/law", "mmlu/physics", "gsm8k/all"]})
    manifest = {"family": "spelling", "partitions": ["mmlu/*"], "models": [MODEL], "draws": 2, "budget": {"max_calls": 9}}
    plan = read_manifest(manifest, settings).planned(settings)
    assert (plan.job, plan.space, list(plan.keys)) == ("spelling_pipeline", "dataset_part", ["mmlu/law", "mmlu/physics"])
    assert plan.config["qa_responses"] == {"models": [MODEL], "draws": 2, "max_calls": 9, "snapshot": "base"}
    with pytest.raises(UnknownName, match="partitions: 'nobody/\\*' fits none; known: ") as unknown:
        read_manifest(manifest | {"partitions": ["nobody/*"], "models": ["gpt-9"]}, settings).planned(settings)
    assert [one.path for one in unknown.value.faults] == ["models", "partitions"]
    with pytest.raises(Problem) as faulty:
        read_manifest(manifest | {"draws": 0, "words": 3, "partitions": ["nobody"]}, settings)
    assert [one["path"] for one in faulty.value.members["errors"]] == ["draws", "words", "partitions"]


def test_its_runs_have_the_means_of_its_scores_and_their_traces(tmp_path: Path) -> None:
    asked_qa(tmp_path)
    evaluation = submitted(tmp_path, "spelling", {"qa_responses": {"models": ["m"]}}, partition(LAW))
    with client_in(tmp_path, "operator") as client:
        body = client.get(f"/api/evaluations/{evaluation.runs[0].run_id}").json()
        trace = client.get(body["traces"][0]).json()
        app: Any = client.app
        app.openapi_schema = None  # tests share applications, which keep their description
        described = app.openapi()["paths"]["/api/evaluations"]["post"]["requestBody"]
        app.openapi_schema = None
    (own,) = body["metrics"]
    assert (own["value"], own["n"], own["n_asked"]) == (0.75, 4, 5)
    assert own["reason"] == "no interval: 4 clusters, at least 5 are needed"
    assert (body["outcomes"]["answered"], body["outcomes"]["failed"], body["cost"]["calls"]) == (4, 1, 4)
    assert (trace["model"], [one["metric"] for one in trace["scores"]]) == ("m", ["exact_choice"])
    forms = described["content"]["application/json"]["schema"]["oneOf"]
    assert {"partitions", "models", "draws"} <= set(forms[-1]["properties"])
