"""Drift of a model as a whole, in any family's terms: by hand, by a naive definition, and what can change beside the answers."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.drift.models import compute_model_drift, drift_checks
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import build_headline
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.keys import Keys
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.scores import scores_table
from tests.made.snapshots import STEADY, Rows, beside, check, found, label, nights, predictions, whats


def test_a_fall_is_drift_with_its_size_direction_and_first_snapshot() -> None:
    rows = nights([*STEADY, 0.8, 0.65, 0.652, 0.648, 0.65, 0.65, 0.65])
    (row, _), series = found([*rows, *beside(rows)])
    assert (row["verdict"], row["shift"] < 0, row["first_snapshot"]) == ("drift", True, label(6))
    # Before the change 6 nights of mean .8, after it 6 of mean .65.
    assert row["shift"] == pytest.approx(-0.15)
    assert row["shift_low"] < -0.15 < row["shift_high"] < 0
    assert (row["n_prompts"], row["n_snapshots"]) == (10, 12)
    assert row["baseline"] == tuple(label(night) for night in range(5))
    assert row["latest_snapshot"] == label(11)
    assert [one["score"] for one in series[5:8]] == pytest.approx([0.8, 0.65, 0.652])
    assert [one["difference"] for one in series[5:8]] == pytest.approx([0.0, -0.15, -0.148])
    assert [one["in_baseline"] for one in series[:12]] == [True] * 5 + [False] * 7
    assert series[11]["log10_e"] == pytest.approx(row["log10_e"])
    changed = whats(row)
    assert set(changed) == {"answers"}
    assert changed["answers"]["before"] == "parsed answers score 0.8000"
    assert changed["answers"]["after"] == "parsed answers score 0.6500 (-0.1500)"


def test_segments_of_people_who_gave_no_answer_are_not_watched() -> None:
    """Boards left them out, and a fall among them alone was a model's drift."""
    steady, fallen = nights([*STEADY, *[0.8] * 7]), nights([*STEADY, 0.8, *[0.3] * 6], segment="country:refused")
    row = check([*steady, *fallen])
    assert (row["verdict"], row["n_prompts"]) == ("none", 10)
    assert drift_checks(scores_table(fallen), SUBJECT).num_rows == 0
    (of_round,) = drift_checks(scores_table([*steady, *fallen]), SUBJECT, levels=1).to_pylist()
    assert of_round["verdict"] == "none"


def test_circular_questions_and_baselines_are_left_out() -> None:
    rows = [*nights(STEADY), *nights([0.1] * 5, circular=True, segment="x:y"), *nights(STEADY, model="baseline/uniform")]
    (row,), _ = found(rows)
    assert (row["model"], row["n_prompts"]) == ("m", 10)


def test_a_series_of_one_snapshot_is_not_compared_and_says_why() -> None:
    row = check(nights([0.8]))
    assert (row["verdict"], row["log10_e"], row["shift"], row["latest_snapshot"]) == (None, None, None, label(0))
    assert "1 snapshot with responses to these prompts, 2 are needed" in row["reason"]


def test_alpha_is_shared_by_the_series_at_temperature_0() -> None:
    rows = [
        *nights(STEADY),
        *nights(STEADY, model="b"),
        *nights(STEADY, model="hot", temperature=1.0),
        *nights([0.8], model="once"),
    ]
    checks, _ = found(rows, alpha=0.05)
    # Logarithms of two libraries differ in the last bit on some processors.
    assert [row["threshold"] for row in checks if row["verdict"]] == [pytest.approx(np.log10(40), rel=1e-12)] * 2


@pytest.mark.parametrize("name", ["a", "v/a[temperature=0]"])
def test_since_of_one_model_leaves_the_others_as_they_are(name: str) -> None:
    """A model is called by its variant, its name, or its name without settings."""
    fell = [*nights([0.8] * 6), *nights([0.6] * 8, first=6)]
    rows = [*fell, *({**row, "model": "a@temperature=0", "model_variant": "v/a[temperature=0]"} for row in fell)]
    rows += [row for at in "12" for row in nights([0.7] * 14, model=f"steady{at}")]

    def verdicts(since: dict[str, str]) -> dict[str, str]:
        return {row["model"]: row["verdict"] for row in found(rows, since=since)[0] if "steady" not in row["model"]}

    assert verdicts({name: label(6)}) == {"a@temperature=0": "none", "m": "drift"}
    assert verdicts({name: label(0), "": label(6), "steady1": label(0), "steady2": label(0)}) == {
        "a@temperature=0": "drift",
        "m": "none",
    }


def test_what_is_to_be_watched_is_dated_to_where_it_changed_and_says_how_the_latest_snapshot_is() -> None:
    (row,), _ = found(nights([*STEADY, 0.8, 0.8, 0.8, 0.6]))
    assert (row["verdict"], row["first_snapshot"]) == ("watch", None)
    assert whats(row)["answers"]["snapshot"] == label(8)
    assert whats(row)["answers"]["after"] == "parsed answers score 0.6000 (-0.2000)"
    assert [one["shift"] for one in row["top_changes"]] == pytest.approx([-0.2] * 5, abs=1e-3)
    assert f"the latest, {label(8)}, is -0.2000 from the reference snapshots" in row["reason"]


def lopsided(seed: int) -> Rows:
    """Two models over three rounds of unequal size, with calls that failed and answers that were no distribution."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in ("a", "b"):
        for round_id, questions in (("S1", 3), ("S2", 9), ("S3", 1)):
            for night in range(9):
                for row in nights([0.7], first=night, questions=questions, model=model, round=round_id):
                    for draw in range(int(rng.integers(1, 3))):
                        status = str(rng.choice(["ok", "unparseable", "error"], p=[0.85, 0.1, 0.05]))
                        score = {"ok": float(rng.uniform(0.4, 0.9)), "unparseable": 0.0, "error": None}[status]
                        rows.append({**row, "draw": draw, "status": status, "score": score})
    return rows


def test_the_timeline_is_what_a_naive_definition_says() -> None:
    rows = lopsided(1)
    _, series = found(rows)
    frame = pd.DataFrame(rows)
    frame["item"] = frame["round"] + frame["question_id"]
    for one in series:
        own = frame[frame["model"] == one["model"]]
        wide = own.pivot_table(index="item", columns="snapshot", values="score")
        night, first = one["snapshot"], sorted(wide.columns)[:5]
        today = own[own["snapshot"] == night]
        assert one["score"] == pytest.approx(wide[night].mean(), abs=1e-12)
        assert one["difference"] == pytest.approx((wide[night] - wide[first].mean(axis=1)).mean(), abs=1e-12)
        assert one["parse_rate"] == pytest.approx((today["status"] == "ok").sum() / (today["status"] != "error").sum())


def test_scores_of_an_earlier_version_say_how_to_mend_them() -> None:
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(nights(STEADY)).drop_columns(["truth_id"]))
        with pytest.raises(WarehouseError, match="have no column truth_id: score those rounds again"):
            compute_model_drift(connection, SUBJECT)


def test_a_fall_of_the_parse_rate_is_reported_from_answers_that_changed() -> None:
    rows = nights([0.8] * 12, questions=60)
    lost = {f"q{number}" for number in range(20, 29)}
    for row in rows:
        if row["snapshot"] >= label(6) and row["question_id"] in {*lost, f"q{int(row['snapshot'][-2:])}"}:
            row.update(status="unparseable", score=0.0, js=None)
    (row, _), series = found([*rows, *beside(rows)])
    assert row["verdict"] == "drift"
    changed = whats(row)
    assert changed["parse_rate"]["before"] == "parsed 100.0 %"
    assert changed["parse_rate"]["after"].startswith("parsed 8")
    assert changed["answers"]["after"].endswith("(+0.0000, as before)")
    last = series[11]
    assert last["difference"] < -0.1
    assert last["parse_rate"] == pytest.approx(50 / 60)


def test_a_fingerprint_counts_when_it_was_not_seen_before_and_none_is_no_fingerprint() -> None:
    rows = nights([0.8] * 8)
    by_night = {label(2): "b", label(3): None, label(4): "a", label(6): "c"}
    _, series = found(rows, served=predictions(rows, fingerprint=lambda night: by_night.get(night, "a")))
    assert [one["fingerprints"] for one in series[2:5]] == [["b"], [], ["a"]]
    both = [*rows, *({**row, "draw": 1} for row in rows)]
    side_by_side = [
        *predictions(rows, fingerprint=lambda night: "c" if night == label(6) else "a"),
        *predictions(rows, fingerprint=lambda night: "a" if night == label(3) else "b"),
    ]
    (change,) = check(both, served=side_by_side)["changes"]
    # SharedShift 3 saw one of the two that serve: no change.
    assert change == {"kind": "fingerprint", "snapshot": label(6), "before": "a, b", "after": "b, c"}


def test_other_prompts_midway_begin_again_and_say_since_when() -> None:
    rows = [*nights([0.9] * 6), *nights([0.6] * 7, first=6, prompt_id="reworded")]
    for at, row in enumerate(rows):
        row["prompt_id"] = f"{row.get('prompt_id', 'as before')} {at % 10}"
    (row,), series = found(rows)
    assert (row["verdict"], row["n_snapshots"], row["baseline"][0]) == ("none", 7, label(6))
    (change,) = row["changes"]
    assert (change["kind"], change["snapshot"]) == ("prompts", label(6))
    assert change["before"] == f"the prompts of {label(5)}"
    assert change["after"] == "other prompts for 10 of 10 (segment, question) pairs"
    assert f"{label(6)} asked other prompts, so earlier snapshots are not compared with it" in row["reason"]
    assert [one["compared"] for one in series] == [False] * 6 + [True] * 7
    assert series[0]["score"] == pytest.approx(0.9)
    assert (series[0]["n_shared"], series[0]["n_prompts"], series[0]["difference"]) == (0, 10, None)


def test_other_survey_answers_are_no_drift_of_the_model() -> None:
    row = check([*nights([0.9] * 6), *nights([0.6] * 7, first=6, truth_id="recounted")])
    assert row["verdict"] == "none"
    assert set(whats(row)) == {"survey"}
    assert whats(row)["survey"]["after"] == "other survey answers for 10 of 10 (segment, question) pairs"
    assert "2026-01-07 was scored against other survey answers, so earlier" in row["reason"]


def test_a_panel_that_grew_is_compared_on_what_both_asked() -> None:
    rows = [*nights([0.8] * 6), *nights([0.8] * 6, first=6, questions=10)]
    rows += [{**row, "question_id": f"new{at}", "score": 0.1} for at, row in enumerate(nights([0.1], first=6, questions=2))]
    rows += nights([0.1] * 5, first=7, questions=1, question_id="new0")
    (row,), series = found(rows)
    assert (row["verdict"], row["n_prompts"]) == ("none", 10)
    assert row["shift"] == pytest.approx(0.0)
    (change,) = row["changes"]
    assert change["kind"] == "panel"
    assert change["snapshot"] == label(6)
    assert change["before"] == "10 questions in 1 segment of S1, 10 prompts"
    assert change["after"] == "12 questions in 1 segment of S1, 12 prompts (added S1/new0, S1/new1)"
    assert (series[6]["n_shared"], series[6]["n_prompts"]) == (10, 12)


def test_all_that_is_watched_shares_one_alpha() -> None:
    rows = [row for m in "abc" for row in nights([0.6] * 8, model=m)]
    thresholds = drift_checks(scores_table(rows), SUBJECT, n_watched=50)["threshold"].to_pylist()
    assert thresholds == pytest.approx([math.log10(3 * 50 / 0.05)] * 3)
    strict = drift_checks(scores_table(rows), SUBJECT, options=WatchOptions(alpha=0.01))["threshold"].to_pylist()
    assert strict == pytest.approx([math.log10(300)] * 3)


def test_drift_comes_first_with_model_direction_size_and_since_when() -> None:
    rows = [
        *nights([0.6] * 12 + [0.4] * 8, model="fell"),
        *nights([0.6] * 12 + [0.7] * 8, model="rose"),
        *nights([0.6] * 19 + [0.1], model="dipped"),
    ]
    text = build_headline(drift_checks(scores_table(rows), SUBJECT).to_pylist(), SUBJECT)
    assert text.startswith("Drift in 2 of 3 series. Largest: fell on S1/country:kenya, context 0, down by 0.")
    assert text.endswith(f"since {label(12)}. 1 more to watch.")


NAMES = {
    "round": "league",
    "segment": "scenario",
    "question_id": "seed",
    "context_level": "adapter",
    "condition": "opponent",
}


GAMES = Subject(
    family="games",
    keys=Keys(("league", "scenario"), "seed", "deal", ("adapter", "opponent"), "seed"),
    computed_sql="model = 'referee'",
    in_order=str,
    truth="rules",
    truths="rules",
    clusters=lambda _: pd.DataFrame(columns=["league", "seed", "cluster"]),
    describe_setting=lambda row: f"adapter {row['adapter']} against {row['opponent']}",
    reads=("scores",),
)
FELL = [*nights([0.8] * 6), *nights([0.6] * 8, first=6)]
GREW = [*nights([0.8] * 6), *nights([0.8] * 6, first=6), *nights([0.1] * 6, first=6, round="S2", segment="country:mali")]
VERDICT = [
    "verdict",
    "log10_e",
    "threshold",
    "shift",
    "shift_low",
    "shift_high",
    "first_snapshot",
    "shift_notes",
    "gap",
]


def as_games(rows: list[dict[str, Any]]) -> pa.Table:
    """The scores of surveys under the names of games, which leave nothing out."""
    table = scores_table(rows).drop_columns(["circular"])
    return table.rename_columns([NAMES.get(name, name) for name in table.column_names])


def models(table: pa.Table, subject: Subject) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("scores", table)
        return compute_model_drift(connection, subject).checks


@pytest.mark.parametrize("rows", [FELL, GREW], ids=["fell", "grew"])
def test_verdicts_do_not_depend_on_what_a_family_calls_its_columns(rows: list[dict[str, Any]]) -> None:
    for survey, games in (
        (models(scores_table(rows), SUBJECT), models(as_games(rows), GAMES)),
        (drift_checks(scores_table(rows), SUBJECT), drift_checks(as_games(rows), GAMES)),
    ):
        assert games.schema.names == [NAMES.get(name, name) for name in survey.schema.names]
        assert set(games["setting"].to_pylist()) == {"adapter 0 against distribution/attribute-label"}
        assert games.select(VERDICT).equals(survey.select(VERDICT))


def test_rows_that_no_model_was_asked_for_are_not_watched() -> None:
    rows = as_games([*FELL, *nights([0.5] * 14, model="referee")])
    assert models(rows, GAMES)["model"].to_pylist() == ["m"]
