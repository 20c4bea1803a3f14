"""The shipped synthetic rounds hold what the demonstration and the other stages need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.observations import ObservedRound, observe
from tests.conftest import ROOT

ROUNDS = ROOT / "data" / "rounds"


@pytest.fixture(scope="module")
def sample() -> dict[str, ObservedRound]:
    return {name: observe(read_survey(ROUNDS / name)) for name in ("S1", "S2")}


@pytest.mark.parametrize("name", ["S1", "S2"])
def test_a_round_has_segments_scales_counts_and_one_of_each_special_case(sample: dict[str, ObservedRound], name: str) -> None:
    rows: list[dict[str, Any]] = sample[name].responses.to_pylist()
    assert len({r["segment"] for r in rows}) >= 12
    assert len({r["attribute"] for r in rows}) >= 4
    assert len({r["question_id"] for r in rows}) >= 12
    assert {r["scale"] for r in rows} == {"ordinal", "nominal"}
    assert any(any(r["dont_know"]) for r in rows)
    assert any(r["n"] != r["segment_n"] for r in rows)
    assert {r["n_source"] for r in rows} == {"question"}
    assert len({r["question_id"] for r in rows if r["circular"]}) == 1
    assert len({r["duplicate_of"] for r in rows} - {None}) == 1
    reasons = {(q["reason"], q["question_id"] is None) for q in sample[name].quarantine.to_pylist()}
    assert reasons == {("no-data", True), ("segment-too-small", True), ("n-below-minimum", False)}
    assert {f["level"] for f in sample[name].findings.to_pylist()} == {"info"}


def test_the_script_writes_the_committed_files_again(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "data" / "make_sample.py", tmp_path], check=True)
    committed = {p.relative_to(ROUNDS): p.read_bytes() for p in ROUNDS.rglob("*.csv")}
    assert {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*.csv")} == committed
    assert sum(map(len, committed.values())) < 1_000_000
