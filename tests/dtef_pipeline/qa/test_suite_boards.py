"""Boards of the qa family: small worlds worked out by hand, plain loops over rows, and what may not change anything."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from dtef_pipeline.asking.snapshot_order import order_in
from dtef_pipeline.qa.scoring import load_latest_scores, load_qa_scores
from dtef_pipeline.qa.suites import QA_VALIDITY_CHECKS, build_qa_boards, build_suite_board, compute_qa_results, qa_validity
from dtef_pipeline.qa.tables import QA_BOARD, QA_BOARDS, QA_CUTS
from dtef_pipeline.statistics.proportions import compute_wilson_interval
from dtef_pipeline.tables import COMPARISONS, stack_cuts
from tests.made.qa_scores import connected, night, score_row

Row = Mapping[str, Any]


def boards(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    made = {name: table.to_pylist() for name, table in build_qa_boards(connected(rows)).items()}
    cuts = {cut: [row for row in made["qa_board"] if row["cut"] == cut] for cut in QA_CUTS}
    return {**made, **cuts}


def results(rows: Sequence[Row]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = compute_qa_results(load_qa_scores(connected(rows))).to_dict("records")
    return found


def board(rows: Sequence[Row], by: str = "overall", **given: Any) -> list[dict[str, Any]]:
    connection = connected(rows)
    frame = build_suite_board(load_latest_scores(connection), by, order=order_in(connection, "qa_scores"), **given)
    return stack_cuts({by: frame}, QA_BOARD, QA_CUTS).to_pylist()


def world(levels: Mapping[str, float], parts: Mapping[str, int], seed: int = 0, **given: Any) -> list[dict[str, Any]]:
    """Items of subjects answered right or wrong by each model at its level."""
    rng = random.Random(seed)
    hard = {(part, item): rng.random() for part, n in parts.items() for item in range(n)}
    return [
        score_row(
            float(0.7 * hard[part, item] + 0.3 * rng.random() < level),
            model=model,
            part=part,
            item_id=f"{part}/{item}",
            cluster=part,
            **given,
        )
        for model, level in levels.items()
        for part, item in hard
    ]


def test_items_and_subjects_are_averaged_by_hand() -> None:
    """{A: 1, .5, 0; B: 1} is .625 over items and .75 over subjects."""
    rows = [
        score_row(value, part=part, cluster=part, item_id=f"{part}/{at}")
        for part, values in {"A": (1.0, 0.5, 0.0), "B": (1.0,)}.items()
        for at, value in enumerate(values)
    ]
    (row,) = board(rows)
    assert (row["score"], row["macro_score"], row["n_parts"], row["n_items"], row["rank"]) == (0.625, 0.75, 2, 4, 1)
    assert row["score_low"] is None
    assert "no interval: 4 items, at least 5 are needed" in row["note"]
    assert [part["score"] for part in board(rows, "part")] == [0.5, 1.0]


def test_what_differs_in_condition_metric_or_measure_stands_on_boards_of_its_own() -> None:
    ways = [{}, {"condition": "cot"}, {"metric": "strict"}, {"measured_by": "judge x"}, {"suite": "own"}]
    rows = [score_row(at / 4, item_id=f"i{item}", **way) for at, way in enumerate(ways) for item in range(3)]
    found = board(rows)
    assert sorted(row["score"] for row in found) == [0, 0.25, 0.5, 0.75, 1]
    assert {row["rank"] for row in found} == {1}
    assert len(results(rows)) == 5


def test_equal_scores_share_the_best_of_their_places() -> None:
    right = {"a": (1, 1, 0), "b": (0, 1, 1), "c": (1, 1, 1), "d": (0, 0, 0)}
    rows = [
        score_row(float(v), model=model, item_id=f"i{at}") for model, values in right.items() for at, v in enumerate(values)
    ]
    assert [(row["model"], row["rank"]) for row in board(rows)] == [("c", 1), ("a", 2), ("b", 2), ("d", 4)]


def test_the_latest_snapshot_of_each_part_counts() -> None:
    rows = [
        *(score_row(0.0, item_id=f"a{at}", part="a", **night(0)) for at in range(3)),
        *(score_row(1.0, item_id=f"a{at}", part="a", **night(1)) for at in range(3)),
        *(score_row(0.5, item_id=f"b{at}", part="b", **night(0)) for at in range(3)),
        *(score_row(None, item_id=f"b{at}", part="b", **night(1)) for at in range(3)),
    ]
    (row,) = board(rows)
    assert row["score"] == 0.75
    assert row["snapshots"] == ["2026-01-01", "2026-01-02"]
    assert len(results(rows)) == 4


def test_a_night_of_a_few_items_hides_no_whole_snapshot() -> None:
    rows = [score_row(0.5, item_id=f"i{at}", **night(0)) for at in range(10)] + [score_row(1.0, item_id="i0", **night(1))]
    (row,) = board(rows)
    assert (row["score"], row["n_items"], row["snapshots"]) == (0.5, 10, ["2026-01-01"])


def test_what_has_no_score_is_counted_by_status_and_left_out_of_every_mean() -> None:
    status = ("ok", "unparseable", "refused", "judge_failed", "skipped_budget", "sandbox_unavailable", "error")
    rows = [score_row(1.0, item_id=f"i{at}", status=one) for at, one in enumerate(status)]
    (row,) = results(rows)
    assert {row[f"n_{one}"] for one in status} == {1}
    assert (row["n_total"], row["n_scored"]) == (7, 2)
    assert (row["score"], row["parse_rate"], row["score_given_parsed"]) == (0.5, 0.5, 1.0)


def test_a_model_that_was_asked_few_of_the_items_is_not_ranked_and_one_whose_sample_left_them_out_is() -> None:
    rows = [
        *(score_row(0.5, model="whole", item_id=f"i{at}") for at in range(20)),
        *(score_row(1.0, model="few", item_id=f"i{at}") for at in range(10)),
        *(
            score_row(0.2 if at < 4 else None, model="sample", item_id=f"i{at}", status="ok" if at < 4 else "skipped_sample")
            for at in range(20)
        ),
    ]
    found = {row["model"]: row for row in board(rows)}
    assert {model: row["rank"] for model, row in found.items()} == {"whole": 1, "few": None, "sample": 2}
    assert "not ranked: it has scores for 10 of 20 items, at least 9 of 10 are needed" in found["few"]["note"]
    assert (found["sample"]["coverage"], found["sample"]["n_sampled_out"]) == (1.0, 16)


def test_what_a_sample_leaves_out_is_neither_scored_nor_missing() -> None:
    """A model with 2 scores of the 4 that were wanted had a coverage of .9, since the 16 that its sample left out counted as scored."""
    kinds = ["ok"] * 2 + ["judge_failed", "skipped_budget"] + ["skipped_sample"] * 16
    rows = [score_row(0.5, model="half", item_id=f"i{at}", status=kind) for at, kind in enumerate(kinds)]
    rows += [score_row(0.5, model="none", item_id=f"i{at}", status="skipped_sample") for at in range(20)]
    rows.append(score_row(None, model="none", item_id="i0", draw=1, status="skipped_sample"))
    found = {row["model"]: row for row in board(rows)}
    assert (found["half"]["coverage"], found["half"]["n_sampled_out"], found["half"]["rank"]) == (0.5, 16, None)
    assert "not ranked: it has scores for 2 of 4 items" in found["half"]["note"]
    assert (found["none"]["coverage"], found["none"]["n_sampled_out"]) == (None, 20)


def test_an_interval_is_wilsons_within_a_part_and_of_whole_subjects_over_parts() -> None:
    rows = world({"a": 0.5}, {f"s{at}": 12 for at in range(6)}, metric="correct")
    (row,) = board(rows)
    assert row["interval_kind"] == "clustered"
    assert row["score_low"] < row["score"] < row["score_high"]
    assert row["macro_low"] < row["macro_score"] < row["macro_high"]
    parts = board(rows, "part")
    assert {part["interval_kind"] for part in parts} == {"wilson"}
    assert all("macro" not in part["note"] for part in parts)


def test_boards_by_transcript_have_each_of_them_and_no_item_that_is_by_itself() -> None:
    """Transcripts with one item, and those without a score, were left out without a word."""
    asked: dict[str, Any] = {"suite": "socioscope", "part": "file"}
    rows = [
        *(score_row(at / 5, item_id=f"q{at}", cluster=f"talk{at % 2}", **asked) for at in range(6)),
        score_row(0.5, item_id="q6", cluster="talk2", **asked),
        score_row(None, item_id="q7", cluster="talk3", **asked),
        *(score_row(1.0, suite="gsm8k", item_id=f"g{at}") for at in range(6)),
    ]
    found = board(rows, "cluster")
    assert [(row["cluster"], row["n_items"]) for row in found] == [("talk0", 3), ("talk1", 3), ("talk2", 1), ("talk3", 0)]
    assert [row["score"] for row in found] == [*map(pytest.approx, (0.4, 0.6, 0.5)), None]
    assert found[2]["score_low"] is None


def test_ranges_of_ranks_tell_far_apart_models_apart_and_near_ones_not() -> None:
    levels = {"best": 0.95, "near": 0.5, "nearer": 0.5, "worst": 0.05}
    made = boards(world(levels, {f"s{at}": 15 for at in range(8)}))
    found = {row["model"]: row for row in made["overall"]}
    assert (found["best"]["rank_low"], found["best"]["rank_high"]) == (1, 1)
    assert (found["worst"]["rank_low"], found["worst"]["rank_high"]) == (4, 4)
    assert {found[one]["rank_high"] for one in ("near", "nearer")} == {3}
    assert {found[one]["rank_low"] for one in ("near", "nearer")} == {2}
    better = [row["model"] for row in made["comparisons"] if row["verdict"] == "better"]
    assert {name: 4 - row["rank_high"] for name, row in found.items()} == {name: better.count(name) for name in levels}


def test_a_sentence_on_training_data_stands_beside_its_suite_alone() -> None:
    rows = [score_row(1.0), score_row(1.0, suite="own")]
    found = board(rows, exposure={"mmlu": "public since 2020-09: answers may be in the training data"})
    assert {row["suite"]: row["exposure"][:6] for row in found} == {"mmlu": "public", "own": ""}


def test_pass_at_k_is_of_programs_alone() -> None:
    programs = [
        score_row(float(at < 2), suite="humaneval", type="code", item_id=f"i{item}", draw=at)
        for item in range(6)
        for at in range(5)
    ]
    found = boards([*programs, score_row(1.0)])["qa_pass_at_k"]
    assert [(row["k"], row["n_items"]) for row in found] == [(1, 6), (5, 6), (10, 0)]
    assert [row["pass_at_k"] for row in found] == [pytest.approx(0.4), 1.0, None]


def test_tables_of_nothing_have_their_columns() -> None:
    found = build_qa_boards(connected())
    assert {name: (len(table), table.schema.names) for name, table in found.items()} == {
        name: (0, schema.names) for name, schema in {**QA_BOARDS, "comparisons": COMPARISONS}.items()
    }


ROW = st.tuples(
    *(st.sampled_from(names) for names in (("x", "y"), ("a", "b"), ("1", "2", "3", "4"), ("m", "n"), ("base", "2026-01-02"))),
    st.integers(0, 2),
    st.sampled_from(("ok", "unparseable", "error", "skipped_sample")),
    st.sampled_from((0.0, 0.25, 1.0)),
)


def naive(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, Any]]:
    """The boards by loops over dictionaries."""
    of_part: dict[tuple[str, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        of_part[row["suite"], row["part"], row["model"]][row["snapshot"]].append(row)
    taken: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for (suite, _, model), snapshots in of_part.items():
        scored = {label: len({row["item_id"] for row in own if row["score"] is not None}) for label, own in snapshots.items()}
        best = max(scored.values())
        allowed = [label for label, n in scored.items() if n >= best / 2 and (n > 0 or not best)]
        taken[suite, model] += snapshots["2026-01-02" if "2026-01-02" in allowed else "base"]
    found = {}
    for key, own in taken.items():
        items: dict[str, list[float]] = defaultdict(list)
        for row in own:
            if row["score"] is not None:
                items[row["item_id"]].append(row["score"])
        found[key] = {
            "score": fmean(map(fmean, items.values())) if items else None,
            "n_items": len(items),
            "n_total": len(own),
            "n_parts": len({row["part"] for row in own if row["score"] is not None}),
        }
    return found


@settings(max_examples=5)
@given(st.lists(ROW, min_size=20, max_size=60))
def test_boards_agree_with_a_plain_loop(drawn: list[tuple[Any, ...]]) -> None:
    rows = []
    for suite, part, item, model, snapshot, draw, status, value in {row[:6]: row for row in drawn}.values():
        time_of = {"snapshot": snapshot, "answered_at": night(snapshot != "base")["answered_at"]}
        rows.append(
            score_row(value, suite=suite, part=part, item_id=f"{part}{item}", model=model, draw=draw, status=status, **time_of)
        )
    board = build_suite_board(load_latest_scores(connected(rows))).astype(object)
    found = {(row["suite"], row["model"]): row for row in board.where(board.notna(), None).to_dict("records")}
    wanted = naive(rows)
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        assert {name: found[key][name] for name in values} == {
            name: pytest.approx(value) if isinstance(value, float) else value for name, value in values.items()
        }


def test_the_order_of_rows_changes_no_number() -> None:
    rows = world({"a": 0.7, "b": 0.5, "c": 0.3}, {f"s{at}": 5 + at for at in range(3)})
    assert boards(random.Random(1).sample(rows, len(rows))) == boards(rows)


def test_a_cluster_that_is_not_reported_is_the_item_itself() -> None:
    rows = [score_row(at / 7, item_id=f"i{at}", cluster="") for at in range(7)]
    (row,) = board(rows)
    assert (row["n_clusters"], row["interval_kind"]) == (7, "t")


def test_an_answer_that_cites_nothing_is_no_failure_and_counted_by_itself() -> None:
    def quoted(metric: str, n_cited: int, n_failed: int = 0, **given: Any) -> list[dict[str, Any]]:
        nothing = {"status": "missing", "reason": "the response cites nothing"}
        kinds = [{"score": 0.5 + at / 100} for at in range(n_cited)] + [{"status": "error"}] * n_failed
        kinds += [nothing] * (12 - len(kinds))
        return [score_row(item_id=f"i{at}", metric=metric, **{**given, **kind}) for at, kind in enumerate(kinds)]

    rows = [
        *quoted("existence", 10, model="few"),
        *quoted("existence", 8, 2, model="fails"),
        *quoted("existence", 11, model="most"),
        *quoted("existence", 0, model="none"),
        *quoted("score", 11, 1, model="few"),
    ]
    found = {(row["metric"], row["model"]): row for row in board(rows)}
    told = {key: (row["n_uncited"], row["n_failed"], row["rank"]) for key, row in found.items()}
    assert told == {
        ("existence", "few"): (2, 0, None),
        ("existence", "fails"): (2, 2, None),
        ("existence", "most"): (1, 0, 1),
        ("existence", "none"): (12, 0, None),
        ("score", "few"): (None, 1, 1),
    }
    notes = {model: row["note"] for (metric, model), row in found.items() if metric == "existence"}
    assert "10 of 12 items" in notes["few"]
    assert "8 of 12 items, 2 answers" in notes["fails"]
    assert notes["most"] == ""
    assert notes["none"].startswith("no answer")


def of_orders(lead: float, n: int = 200, orders: int = 4) -> list[dict[str, Any]]:
    """A model that is right more often by `lead` where the options stand in the first order."""
    rng = np.random.default_rng(2)
    hard = rng.uniform(0.2, 0.7, n)
    ways = ["letters", *(f"letters,rotated-{order}" for order in range(1, orders))]
    return [
        score_row(float(rng.random() < hard[item] + lead * (order == 0)), item_id=f"i{item}", condition=way)
        for order, way in enumerate(ways)
        for item in range(n)
    ]


def response_of(at: int) -> dict[str, Any]:
    """The columns that name the response to item `at`."""
    keys = ("suite", "part", "item_id", "condition", "model", "model_variant", "draw", "snapshot", "temperature")
    row = score_row(item_id=f"i{at}")
    return {name: row[name] for name in keys}


def judged(scores: Sequence[float | None], evaluator: str = "semantic", **given: Any) -> list[dict[str, Any]]:
    named = {"evaluator": evaluator, "judge_model": "j", "judge_variant": "j[t=0]", "self_judged": False, **given}
    reasons = {True: "unreadable", False: None}
    return [{**response_of(at), "score": score, "reason": reasons[score is None], **named} for at, score in enumerate(scores)]


def asked(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{**response_of(at), "response": text, "call_status": "answered"} for at, text in enumerate(texts)]


def found(scores: Sequence[Row], responses: Sequence[Row] = (), judgements: Sequence[Row] = ()) -> dict[str, dict[str, Any]]:
    rows = qa_validity(connected(scores, responses, judgements)).to_pylist()
    assert len({row["check"] for row in rows}) == len(rows)
    return {row["check"]: row for row in rows}


def test_a_model_that_likes_one_order_is_warned_of() -> None:
    row = found(of_orders(0.25))["position_bias"]
    assert (row["is_suspect"], row["condition"], row["value"]) == (True, "letters", pytest.approx(0.25, abs=0.1))
    assert 0.05 < row["low"] < row["value"] < row["high"]
    other = found(of_orders(0.0))["position_bias"]
    assert (other["is_suspect"], other["value"] < 0.12, other["low"] < 0.1) == (False, True, True)


def test_the_range_of_orders_by_hand_and_on_items_of_every_order_alone() -> None:
    right = {"": (1, 1, 1, 0, 1, 1), ",rotated-1": (1, 0, 0, 0, 1, 1), ",rotated-2": (1, 1, 0, 0, 1, 1)}
    rows = [
        score_row(float(one), item_id=f"i{at}", condition=f"letters{order}")
        for order, values in right.items()
        for at, one in enumerate(values)
    ]
    row = found([*rows, score_row(0.0, item_id="only")])["position_bias"]
    assert (row["value"], row["n"]) == (pytest.approx(5 / 6 - 3 / 6), 6)


def test_one_order_has_no_row_and_few_items_have_a_note() -> None:
    assert "position_bias" not in found(of_orders(0.0, orders=1))
    row = found(of_orders(0.0, n=4))["position_bias"]
    assert (row["value"], row["note"]) == (None, "no range: 4 items, at least 5 are needed")


def test_an_arbiter_that_finds_wrong_numbers_right_is_warned_of_and_one_that_agrees_is_not() -> None:
    numeric = [score_row(float(at % 2), item_id=f"i{at}", scorer="numeric", metric="numeric") for at in range(40)]
    wrong = judged([0.9 if at % 2 or at < 6 else 0.1 for at in range(40)], "factuality")
    row = found(numeric, asked(["x"] * 40), wrong)["judge_against_numeric"]
    told = [row[name] for name in ("value", "low", "high", "n", "is_suspect")]
    assert told == [*map(pytest.approx, (3 / 40, *map(float, compute_wilson_interval(3, 40)))), 40, True]
    agreeing = judged([0.5 if at % 2 else 0.49 for at in range(40)], "factuality")
    row = found(numeric, asked(["x"] * 40), agreeing)["judge_against_numeric"]
    assert (row["value"], row["is_suspect"]) == (0, False)


def test_failed_judgements_are_a_share_of_those_that_were_wanted() -> None:
    skipped = [{**row, "item_id": f"more{at}", "reason": "skipped_sample"} for at, row in enumerate(judged([None] * 9))]
    rows = judged([None if at < 2 else 0.5 for at in range(20)]) + skipped
    row = found([score_row(0.5)], [], rows)["judge_failures"]
    assert (row["value"], row["n"], row["is_suspect"]) == (0.1, 20, True)


def test_a_judge_of_the_same_maker_is_warned_of() -> None:
    row = found([score_row(0.5)], [], judged([0.5] * 4, self_judged=True))["self_judged"]
    assert (row["value"], row["n"], row["is_suspect"]) == (1, 4, True)
    assert not found([score_row(0.5)], [], judged([0.5] * 4))["self_judged"]["is_suspect"]


def test_longer_answers_that_score_more_are_warned_of() -> None:
    rng = np.random.default_rng(3)
    texts = ["x" * int(n) for n in rng.integers(1, 400, 60)]
    scores = [float(np.clip(len(text) / 400 + rng.normal(0, 0.2), 0, 1)) for text in texts]
    row = found([score_row(0.5)], asked(texts), judged(scores))["length_and_semantic"]
    assert row["value"] == pytest.approx(spearmanr([len(text) for text in texts], scores).statistic)
    assert row["low"] < row["value"] < row["high"] <= 1
    assert row["is_suspect"]
    alike = found([score_row(0.5)], asked(texts[:8]), judged([0.5] * 8))["length_and_semantic"]
    assert (alike["value"], alike["note"][:16]) == (None, "no correlation: ")


def test_earlier_snapshots_are_not_looked_at() -> None:
    old = {"snapshot": "2020-01-01"}
    scores = [score_row(0.5, item_id=f"i{at}") for at in range(4)] + [score_row(0.5, answered_at=None, **old)]
    assert found(scores, [], judged([0.5] * 4) + judged([None] * 2, **old))["judge_failures"]["n"] == 4


def test_scores_alone_make_a_table_and_every_check_has_a_name() -> None:
    assert len(qa_validity(connected([score_row(0.5)]))) == 0
    assert len(set(QA_VALIDITY_CHECKS)) == 5
