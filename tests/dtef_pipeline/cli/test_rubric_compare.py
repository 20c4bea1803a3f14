"""`dtef rubric compare`: two runs of a blueprint side by side."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from dtef_pipeline.rubric.tables import RUBRIC_RESPONSES, RUBRIC_RUNS, RUBRIC_SCORES
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.dtef_pipeline.rubric.scored_rows import scores_of

NAME = "b"
FALLS, STAYS = "openai/falls", "openai/stays"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(nights(tmp_path_factory.mktemp("made"), {FALLS: 20, STAYS: 20}).root)


def nights(state: Path, n_prompts: dict[str, int]) -> Warehouse:
    """Three nights: on the last one model is worse by 0.2 on each of its prompts, most on p7; the other answers as ever."""
    kept = Warehouse(state / "warehouse")
    for day, snapshot in enumerate(("night-1", "night-2", "night-3")):
        fall = 0.2 if day == 2 else 0.0
        rows = [
            {
                "blueprint": NAME,
                "snapshot": snapshot,
                "prompt": f"p{at}",
                "model": model,
                "score": 0.6 + at / 100 - (fall + (0.1 * (at == 7) + 0.01 * (at == 2)) * (day == 2) if model == FALLS else 0),
            }
            for model in (FALLS, STAYS)
            for at in range(n_prompts[model])
        ]
        made = scores_of(*rows)
        table = pa.table([pa.array(made[one.name], one.type, from_pandas=True) for one in RUBRIC_SCORES], schema=RUBRIC_SCORES)
        kept.write("rubric_scores", table, blueprint=NAME, snapshot=snapshot)
        _keep_run(kept, snapshot, day)
    return kept


def _keep_run(kept: Warehouse, snapshot: str, day: int) -> None:
    came = datetime(2026, 1, 1 + day, tzinfo=UTC)
    hashes = {"test_hash": "t" * 32, "judge_hash": "j" * 32, "policy_hash": "p" * 32, "run_hash": "r" * 32}
    run = {"blueprint": NAME, "snapshot": snapshot, **hashes, "answered_at": came}
    kept.write("rubric_runs", pa.Table.from_pylist([run], schema=RUBRIC_RUNS), blueprint=NAME, snapshot=snapshot)
    row = {"blueprint": NAME, "snapshot": snapshot, "prompt": "p0", "model": STAYS, "status": "ok", "answered_at": came}
    kept.write("rubric_responses", pa.Table.from_pylist([row], schema=RUBRIC_RESPONSES), blueprint=NAME, snapshot=snapshot)


def test_fall_of_a_model_is_a_regression_and_the_exit_code_says_so_where_it_is_asked_for(house: Warehouse) -> None:
    result = dtef("rubric", "show", NAME, "--before", "night-1", "--after", "night-3", "--fail-on", "regression")
    assert result.exit_code == 3
    lines = result.stdout.splitlines()
    fallen = next(line for line in lines if FALLS in line)
    assert "regression" in fallen
    assert "-0.2" in fallen
    assert "equivalent" in next(line for line in lines if STAYS in line)
    assert dtef("rubric", "show", NAME, "--before", "night-1", "--after", "night-3").exit_code == 0
    assert dtef("rubric", "show", NAME, "--before", "night-3", "--after", "night-1", "--fail-on", "regression").exit_code == 0
    assert dtef("rubric", "show", NAME, "--before", "night-1", "--after", "night-2", "--fail-on", "regression").exit_code == 0


def test_prompts_too_few_to_show_a_regression_are_a_warning_where_a_script_asks(state: Path) -> None:
    """A script took exit code 0 for good news where nothing at all could have been found."""
    nights(state, {FALLS: 4, STAYS: 7})
    result = dtef("rubric", "show", NAME, "--before", "night-1", "--after", "night-3", "--fail-on", "regression")
    assert result.exit_code == 0
    assert (
        result.stderr.split()
        == (
            f"warning: --fail-on regression does not cover {FALLS} (4 prompts): at least 5 prompts in both runs are needed to show a "
            "regression"
        ).split()
    )
    assert dtef("rubric", "show", NAME, "--before", "night-1", "--after", "night-3").stderr == ""


def test_other_judges_in_one_of_the_runs_are_reported(house: Warehouse) -> None:
    run = house.read("rubric_runs", blueprint=NAME, snapshot="night-3").to_pylist()[0] | {"judge_hash": "k" * 32}
    house.write("rubric_runs", pa.Table.from_pylist([run], schema=RUBRIC_RUNS), blueprint=NAME, snapshot="night-3")
    assert "note: the judges differ between the two runs" in ok(
        "rubric", "show", NAME, "--before", "night-1", "--after", "night-3"
    )
    assert "note" not in ok("rubric", "show", NAME, "--before", "night-1", "--after", "night-2").splitlines()[2]


def test_names_that_are_not_known_are_answered_with_the_known_ones(house: Warehouse) -> None:
    assert "known: night-" in refused("rubric", "show", NAME, "--before", "nigth-1", "--after", "night-2")
    assert "known: b" in refused("rubric", "show", "bb", "--before", "night-1", "--after", "night-2")
    assert "night-1, night-2, night-3" in refused("rubric", "show", NAME, "--before", "night-1")
    assert "twice" in refused("rubric", "show", NAME, "--before", "night-1", "--after", "night-1")
