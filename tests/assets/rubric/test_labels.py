"""People's labels from the draw to the board: sheets, imports, corrected scores, and points that a label overrules."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.cli.anchors import NOTHING_TO_JUDGE_AGAIN
from tests.assets.rubric.conftest import RubricPipeline, copy_finished, rubric_pipeline, state_in
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.made_once import made_once
from tests.strict_json import strict

NAMES = ("UNMET", "PARTIALLY_MET", "MODERATELY_MET", "MAJORLY_MET", "EXACTLY_MET")
HEAD = {"title": "Labelled", "models": ["openai:cand-a", "openai:cand-b"]}


def prompts(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"p{number}",
            "prompt": f"Say something about {number}.",
            "weight": 1.0 + number % 3,
            "should": ["It is right.", ["It is short."], ["It is long."], {"$contains": "the"}],
            "should_not": ["It is rude."],
        }
        for number in range(first, last)
    ]


OF_ONE = [*prompts(0, 8), {"id": "computed", "prompt": "Say the.", "should": [{"$icontains": "the"}]}]
RESPONSE = ["blueprint", "snapshot", "prompt", "model", "model_variant", "temperature", "system_index", "draw"]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two blueprints, all stages made; to be copied, not changed."""
    return made_once(tmp_path_factory, "labelled_rubrics", make_labelled)


def make_labelled(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, rubric_pipeline(state_in(folder, patch), patch) as made:
        speak(made)
        made.write("one", [HEAD, OF_ONE])
        made.write("two", [{**HEAD, "title": "Other"}, prompts(10, 16)])
        assert made.run().failures == ()
        assert made.roll_up("rubric_board", "rubric_corrected").failures == ()
        assert not made.rows("rubric_corrected")


def speak(rubric: RubricPipeline) -> None:
    """Have each candidate say something of its own to each prompt, and judges be easily read."""
    rubric.players.unreadable = False
    rubric.players.candidate = lambda call: f"To {call.body['messages'][-1]['content']} the {call.body['model']}."


@pytest.fixture
def judged(rubric: RubricPipeline, finished: Path) -> RubricPipeline:
    speak(rubric)
    copy_finished(finished, rubric)
    return rubric


def roll_up(rubric: RubricPipeline) -> None:
    assert rubric.roll_up("rubric_corrected").failures == ()


def rows_of(sheet: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))


def fill(sheet: Path, say: Callable[[dict[str, str]], str]) -> Path:
    """The sheet with a class in each row, as `say` has it."""
    rows = [{**row, "class": say(row), "author": "Ada"} for row in rows_of(sheet)]
    with sheet.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return sheet


def by_length(row: dict[str, str]) -> str:
    return NAMES[(len(row["text"]) + len(row["criterion"]) + len(row["prompt"])) % 5]


def drawn_sheet(folder: Path, *options: object) -> Path:
    sheet = folder / "sheet.csv"
    ok("export", "labels", sheet, *options)
    return sheet


class TestSheet:
    def test_the_same_draw_again_is_no_second_one_and_another_seed_is(self, judged: RubricPipeline, tmp_path: Path) -> None:
        first = drawn_sheet(tmp_path, "--prompts", 4)
        assert "exists already" in refused("export", "labels", first)
        again = ok("export", "labels", tmp_path / "again.csv", "--prompts", 4)
        assert "as drawn before" in again
        assert (tmp_path / "again.csv").read_bytes() == first.read_bytes()
        ok("export", "labels", tmp_path / "other.csv", "--prompts", 4, "--seed", 8)
        assert len(set(judged.table("rubric_label_draws")["draw_id"].to_pylist())) == 2

    def test_what_can_be_chosen_is_stated_where_it_does_not_fit(self, judged: RubricPipeline, tmp_path: Path) -> None:
        out = [tmp_path / "x.csv"]
        assert "'thre' matches none; known: " in refused("export", "labels", *out, "--blueprint", "thre")
        assert "nothing is scored in snapshot night-2" in dtef("export", "labels", *out, "--snapshot", "night-2").stderr
        ok("export", "labels", *out, "--blueprint", "tw*", "--snapshot", "base", "--per-model", 1)
        assert set(judged.table("rubric_label_draws")["blueprint"].to_pylist()) == {"two"}


class TestImport:
    def test_done_again_it_changes_nothing_and_a_later_label_overrules(self, judged: RubricPipeline, tmp_path: Path) -> None:
        sheet = fill(drawn_sheet(tmp_path, "--prompts", 3), by_length)
        assert "24 labels, 24 new or changed" in ok("import", "labels", sheet)
        kept = judged.table("rubric_labels")
        assert all(judged.table("rubric_label_draws")["imported"].to_pylist())
        assert "24 labels, 0 new or changed; 24 labels in all" in ok("import", "labels", sheet)
        assert judged.table("rubric_labels") == kept
        fill(sheet, lambda row: "UNMET" if row["criterion"] == "It is right." else by_length(row))
        changed = sum(by_length(row) != "UNMET" for row in rows_of(sheet) if row["criterion"] == "It is right.")
        assert changed
        assert f"{changed:,} new or changed; {24 + changed} labels in all" in ok("import", "labels", sheet)
        assert judged.table("rubric_labels").slice(0, 24) == kept

    def test_a_sheet_without_the_column_draw_is_of_the_draws_that_have_its_items(
        self, judged: RubricPipeline, tmp_path: Path
    ) -> None:
        sheet = fill(drawn_sheet(tmp_path, "--prompts", 3), by_length)
        rows = [f"{row['item']};{row['class']};Cy" for row in rows_of(sheet)]
        sheet.write_text("\n".join(["item;class;author", *rows]), encoding="utf-8")
        ok("import", "labels", sheet)
        assert all(judged.table("rubric_label_draws")["imported"].to_pylist())

    def test_before_any_draw_it_says_what_to_do(self, judged: RubricPipeline, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text("item,class\n", encoding="utf-8")
        assert "`dtef export labels` draws prompts" in dtef("import", "labels", tmp_path / "x.csv").stderr
        assert "`dtef export labels` draws prompts" in dtef("rubric", "board", "--by", "labels").stderr
        assert "no rubric_corrected" in dtef("rubric", "board", "--by", "corrected").stderr


def cut_of(rubric: RubricPipeline, cut: str) -> list[dict[str, Any]]:
    return [row for row in rubric.rows("rubric_board") if row["cut"] == cut]


def people_by_hand(rubric: RubricPipeline, said: dict[str, float], items: dict[tuple[Any, ...], str]) -> dict[str, float]:
    """The board's number by model, if people had decided all points that judges decide: loops over points, paths, prompts, blueprints."""
    weight = {(row["blueprint"], row["prompt"]): row["weight"] for row in rubric.rows("rubric_prompts")}
    responses: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rubric.rows("rubric_points"):
        score = row["score"]
        if row["kind"] == "text":
            score = said[items[(*(row[name] for name in RESPONSE), row["block"], row["path"], row["position"])]]
            score = 1 - score if row["inverted"] else score
        own = responses.setdefault((row["model"], row["blueprint"], row["prompt"]), {"required": [], "paths": {}})
        if row["path"] is None:
            own["required"].append((score, row["weight"]))
        else:
            own["paths"].setdefault(row["path"], []).append(score)
    blueprints: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (model, blueprint, prompt), own in responses.items():
        above, below = sum(s * w for s, w in own["required"]), sum(w for _, w in own["required"])
        if own["paths"]:
            above, below = above + max(float(np.mean(path)) for path in own["paths"].values()), below + 1
        blueprints.setdefault((model, blueprint), []).append((above / below, weight[blueprint, prompt]))
    models: dict[str, list[float]] = {}
    for (model, _), cells in blueprints.items():
        models.setdefault(model, []).append(sum(s * w for s, w in cells) / sum(w for _, w in cells))
    return {model: float(np.mean(scores)) for model, scores in models.items()}


class TestCorrected:
    def test_labels_for_everything_give_the_board_that_people_would_have_made(
        self, judged: RubricPipeline, tmp_path: Path
    ) -> None:
        sheet = fill(drawn_sheet(tmp_path, "--prompts", 40), by_length)
        ok("import", "labels", sheet)
        roll_up(judged)
        said = {row["item"]: NAMES.index(row["class"]) / 4 for row in rows_of(sheet)}
        items = {
            (*(row[name] for name in RESPONSE), row["block"], row["path"], row["position"]): row["item"]
            for row in judged.rows("rubric_label_items")
        }
        found = judged.table("rubric_corrected").to_pandas()
        overall = found[found["blueprint"].isna()].set_index("model")
        by_hand = people_by_hand(judged, said, items)
        assert overall["corrected"].to_dict() == pytest.approx(by_hand)
        assert overall["judge_score"].to_dict() == pytest.approx(
            {row["model"]: row["score"] for row in cut_of(judged, "overall")}
        )
        assert (overall["same_prompts_high"] - overall["same_prompts_low"]).max() == pytest.approx(0, abs=1e-9)
        assert (overall["n_prompts"].tolist(), overall["n_prompts_labelled"].tolist()) == ([15, 15], [14, 14])
        of_one = found[found["blueprint"] == "one"].set_index("model")
        board = {row["model"]: row["score"] for row in cut_of(judged, "blueprint") if row["blueprint"] == "one"}
        assert of_one["judge_score"].to_dict() == pytest.approx(board)
        known = judged.table("rubric_known_classes").to_pandas()
        assert known["n"].sum() == len([row for row in judged.rows("rubric_judgements") if row["class"]])

    def test_a_part_of_the_prompts_gives_an_interval_and_says_how_many_labels_are_needed(
        self, judged: RubricPipeline, tmp_path: Path
    ) -> None:
        sheet = fill(drawn_sheet(tmp_path, "--prompts", 9), by_length)
        ok("import", "labels", sheet)
        roll_up(judged)
        rows = strict(ok("rubric", "board", "--by", "corrected", "--json"))
        assert [row["n_prompts_labelled"] for row in rows] == [9, 9]
        for row in rows:
            assert row["corrected_low"] < row["corrected"] < row["corrected_high"]
            # 9 prompts have 8 items each.
            assert row["labels_needed"] == np.ceil(row["prompts_needed"]) * 8
        assert rows[0]["corrected"] >= rows[1]["corrected"]
        text = ok("rubric", "board", "--by", "corrected")
        assert [word in text for word in ("cand-a", "interval same prompts", "same_prompts_low")] == [True, True, False]
        again = ok("export", "labels", "--prompts", "9", "--seed", "8", tmp_path / "more.csv")
        assert " of 9 of 14 prompts that judges decide on, draw " in again
        one = strict(ok("rubric", "board", "--by", "corrected", "--blueprint", "one", "--json"))
        assert {row["blueprint"] for row in one} == {"one"}
        shown = ok("rubric", "board", "--by", "labels")
        assert "9 of 14 prompts that judges decide on, 72 of 72 items labelled" in shown
        assert "Ada: 72 items labelled" in shown
        assert "for +-0.03 on these prompts and every model: about" in shown
        known = pd.DataFrame(strict(ok("rubric", "board", "--by", "labels", "--json")))
        assert set(known["judge"]) == {"standard(judge-x)", "prompt-aware(judge-x)"}

    def test_a_draw_among_some_blueprints_corrects_their_rows_and_not_the_board_over_all(
        self, judged: RubricPipeline, tmp_path: Path
    ) -> None:
        sheet = fill(drawn_sheet(tmp_path, "--blueprint", "two", "--prompts", 6), by_length)
        ok("import", "labels", sheet)
        roll_up(judged)
        rows = {(row["blueprint"], row["model"]): row for row in judged.rows("rubric_corrected")}
        assert rows[None, "cand-a"]["judge_score"] is not None
        assert {rows[None, "cand-a"][name] for name in ("corrected", "corrected_low", "same_prompts_low", "power")} == {None}
        assert rows[None, "cand-a"]["reason"].startswith("not corrected")
        assert "8 prompts" in rows[None, "cand-a"]["reason"]
        assert rows["two", "cand-a"]["corrected_low"] is not None
        assert rows["one", "cand-a"]["corrected"] is None


class TestWithLabels:
    def test_a_label_overrules_its_point_and_what_judges_stated_is_kept(self, judged: RubricPipeline, tmp_path: Path) -> None:
        before = judged.table("rubric_points")
        label = judged.rows("rubric_runs")[0]["run_hash"]
        sheet = fill(drawn_sheet(tmp_path, "--prompts", 9), by_length)
        ok("import", "labels", sheet)
        roll_up(judged)
        corrected = judged.table("rubric_corrected")
        scored = ["rubric_points", "rubric_scores"]
        assert judged.run(scored, rubric_points={"with_labels": True}).failures == ()
        points = judged.table("rubric_points")
        said = {row["item"]: NAMES.index(row["class"]) / 4 for row in rows_of(sheet)}
        place = [*RESPONSE, "block", "path", "position"]
        item_of = {tuple(row[name] for name in place): row["item"] for row in judged.rows("rubric_label_items")}
        for was, now in zip(before.to_pylist(), points.to_pylist(), strict=True):
            item = item_of.get(tuple(was[name] for name in place))
            assert now["labelled"] == (item is not None)
            wanted = was["score"] if item is None else 1 - said[item] if was["inverted"] else said[item]
            assert now["score"] == pytest.approx(wanted)
            assert now["judge_score"] == (None if item is None else was["score"])
        assert {row["judges"][-1] for row in judged.rows("rubric_runs")} == {"people"}
        assert judged.rows("rubric_runs")[0]["run_hash"] != label
        roll_up(judged)
        assert judged.table("rubric_corrected") == corrected
        assert judged.run(scored).failures == ()
        assert judged.table("rubric_points") == before
        assert judged.rows("rubric_runs")[0]["run_hash"] == label


class TestAnchors:
    def test_judges_are_shown_the_same_again_and_are_asked_once_a_night(self, judged: RubricPipeline) -> None:
        def night(label: str, n: int = 10) -> None:
            assert judged.roll_up("rubric_anchors", rubric_anchors={"snapshot": label, "anchors": n}).failures == ()

        text = ok("anchors", "--family", "rubric", "--snapshot", "2026-01-01", "--n", 10)
        assert "10 anchors, 20 judgements in snapshot 2026-01-01" in text
        # Ten anchors, two judges.
        assert dict(judged.players.asked) == {"judge": 20}
        kept = judged.table("anchor_items")
        night("2026-01-01")
        assert not judged.players.asked
        judged.write("one", [HEAD, [{**OF_ONE[0], "should": ["It is new."]}]])
        assert judged.run(["rubric_blueprints"]).failures == ()
        for label in ("2026-01-03", "2026-01-05"):
            night(label)
        assert judged.table("anchor_items") == kept
        # The server says of a text what it said before.
        rows = strict(ok("anchors", "--family", "rubric", "--results", "--json"))
        assert {(row["judge"], row["n_snapshots"], row["n_items"], row["gap"]) for row in rows} == {
            (judge, 3, 10, 0.0) for judge in ("standard(judge-x)", "prompt-aware(judge-x)")
        }
        assert "standard(judge-x)" in ok("anchors", "--family", "rubric", "--results")
        night("2026-01-07", 12)
        assert judged.table("anchor_items").slice(0, 10) == kept
        assert judged.roll_up("rubric_costs").failures == ()
        keys = {key for table in ("rubric_judgements", "anchors") for row in judged.rows(table) for key in row["request_keys"]}
        assert sum(row["calls"] for row in judged.rows("costs") if row["role"] == "judge") == len(keys), "anchors cost, too"

    def test_without_anything_scored_it_says_so(self, rubric: RubricPipeline) -> None:
        assert rubric.roll_up("rubric_anchors").failures == ()
        assert rubric.rows("anchors") == []
        assert (
            NOTHING_TO_JUDGE_AGAIN.format("rubric")
            in dtef("anchors", "--family", "rubric", "--judge", "standard=judge-x").stderr
        )
        assert "no anchors of rubric" in dtef("anchors", "--family", "rubric", "--results").stderr
