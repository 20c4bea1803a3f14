"""What a change of a stage's code makes stale."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.definitions import defs
from assets.launch import STAGE_NAMES
from tests.assets.conftest import Pipeline
from tests.assets.staleness import stale
from tests.dtef_pipeline.cli.commands import serve_as
from tests.fake_llm_server import FakeLLM


class TestCodeVersions:
    @pytest.mark.thorough
    def test_a_scoring_change_makes_scores_stale_and_scoring_again_asks_no_model(
        self, pipeline: Pipeline, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        everywhere, first = set(pipeline.keys), set(pipeline.keys[:1])
        changed = changed_code("scores")
        with FakeLLM(reply=lambda call: "[60, 30, 10]") as server:
            serve_as(server, state, monkeypatch)
            pipeline.run(predictions={"models": ["fake"]})
            asked = len(server.calls)
            assert asked > 0
            assert stale(pipeline) == {}
            assert stale(pipeline, changed) == {"scores": everywhere}
            monkeypatch.setattr("assets.launch.defs", changed)
            pipeline.run(["scores"], keys=pipeline.keys[:1])
            assert stale(pipeline, changed) == {"scores": everywhere - first, "segment_results": first}
            pipeline.run(STAGE_NAMES[3:])
            assert stale(pipeline, changed) == {}
            assert len(server.calls) == asked


def changed_code(asset: str) -> dg.Definitions:
    """The definitions, with another code version of one asset."""
    replaced = [
        assets.map_asset_specs(lambda spec: spec._replace(code_version="next") if spec.key == dg.AssetKey(asset) else spec)
        if isinstance(assets, dg.AssetsDefinition)
        else assets
        for assets in defs.assets or []
    ]
    checks, executor = defs.asset_checks, defs.executor
    return dg.Definitions(assets=replaced, asset_checks=checks, resources=defs.resources, executor=executor)
