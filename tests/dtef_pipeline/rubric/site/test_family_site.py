from __future__ import annotations

import itertools
from statistics import fmean
from typing import Any

import duckdb
import pytest

from dtef_pipeline.rubric.site.family_site import read
from dtef_pipeline.site.family_content import FamilyContent
from tests.made.read_page import ReadPage
from tests.made.rubric_pages import RubricTables, connected, made_tables
from tests.made.rubric_warehouse import rolled_up, site_of, whole

PAGE = "rubric/blueprints/health__topic-0.html"


@pytest.fixture(scope="module")
def made() -> RubricTables:
    return made_tables()


@pytest.fixture(scope="module")
def site(made: RubricTables) -> dict[str, str]:
    return site_of(rolled_up(made))


@pytest.fixture(scope="module")
def view(made: RubricTables) -> FamilyContent:
    return read(rolled_up(made))


def model_means(made: RubricTables) -> dict[str, float]:
    rows = [row for row in made.tables()["rubric_scores"].to_pylist() if row["level"] == "model" and row["hybrid"] is not None]
    names = {row["model"] for row in rows}
    return {name: fmean(row["hybrid"] for row in rows if row["model"] == name) for name in names}


def test_scores_are_means_over_blueprints_and_few_blueprints_have_no_rank(made: RubricTables, view: FamilyContent) -> None:
    means = model_means(made)
    assert {row.model: row.score.value for row in view.boards[0].rows} == pytest.approx(means)
    best = max(means, key=lambda name: means[name])
    assert f"the best of 4 models is {best}, {means[best]:.3f}" in view.verdict
    assert "at least 10 are needed" in view.verdict
    assert all("not ranked" in row.note for row in view.boards[0].rows)


def test_scores_without_any_other_table_make_pages(made: RubricTables) -> None:
    files = site_of(connected({"rubric_scores": made.tables()["rubric_scores"]}))
    assert "There is no leaderboard yet" in files["rubric/index.html"]
    assert PAGE in files


def test_the_verdict_names_the_two_best_of_enough_blueprints() -> None:
    made = made_tables(10, 4, 1)
    means = model_means(made)
    first, second, *_ = sorted(means, key=lambda name: -means[name])
    verdict = read(rolled_up(made)).verdict
    assert verdict.startswith(f"Best of 4 models: {first} scores {means[first]:.3f} (")
    assert f"next is {second}, {means[second]:.3f}" in verdict


def test_each_prompt_is_an_item_with_the_place_that_shows_it(
    made: RubricTables, view: FamilyContent, site: dict[str, str]
) -> None:
    scores = view.item_scores
    cells = [row for row in made.tables()["rubric_scores"].to_pylist() if row["level"] == "cell" and row["hybrid"] is not None]
    found = dict(zip(zip(scores["model"], scores["item"], strict=True), scores["score"], strict=True))
    assert found == pytest.approx({(row["model"], f"{row['blueprint']}/{row['prompt']}"): row["hybrid"] for row in cells})
    for page in set(scores["page"]):
        path, _, anchor = page.partition("#")
        assert anchor.replace("prompt=", "prompt-") in ReadPage(site[path]).anchors
    assert scores["label"].str.startswith("Advice on topic-").all()


def test_links_lead_somewhere_and_ids_are_unique(site: dict[str, str]) -> None:
    read_pages = {path: ReadPage(text) for path, text in site.items() if path.endswith(".html")}
    for path, page in read_pages.items():
        ids = [one["id"] for _, one in page.elements if one.get("id")]
        assert len(ids) == len(set(ids)), path
        folder = path.split("/")[:-1]
        for link in page.links:
            target, _, anchor = link.partition("#")
            steps = [*folder[: len(folder) - target.count("../")], *(one for one in target.split("/") if one != "..")]
            file = "/".join(steps) if target else path
            assert file in site, f"{path}: {link}"
            assert not anchor or "=" in anchor or anchor in read_pages[file].anchors, f"{path}: {link}"


def test_equal_tables_in_another_order_give_equal_pages(made: RubricTables, site: dict[str, str]) -> None:
    turned = {name: rows.take(list(range(len(rows)))[::-1]) if len(rows) else rows for name, rows in made.tables().items()}
    assert site_of(rolled_up(turned)) == site


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(name, marks=() if name in ("rubric_blueprints", "rubric_judgements") else pytest.mark.thorough)
        for name, rows in made_tables(1, 2, 1).tables().items()
        if len(rows) and name != "rubric_scores"
    ],
)
def test_without_a_table_the_rest_is_shown(gone: str) -> None:
    tables = made_tables(1, 2, 1).tables()
    site = site_of(rolled_up({name: rows for name, rows in tables.items() if name != gone}))
    assert PAGE in site
    assert "2 models" in ReadPage(site[PAGE]).text


def test_without_any_table_there_is_nothing_and_no_error() -> None:
    view = read(whole({}))
    assert view.boards == []
    assert "dtef rubric board --refresh" in view.verdict
    assert list(view.pages()) == []
    assert view.build_model_sections("nobody")[0].is_empty
    assert set(site_of(duckdb.connect())) >= {"index.html", "method.html"}


def test_a_model_stands_beside_the_others(made: RubricTables, view: FamilyContent) -> None:
    sections = {one.id: one for one in view.build_model_sections("openai/model-1")}
    rows = [row for row in made.tables()["rubric_scores"].to_pylist() if row["level"] == "model"]
    leads = {}
    for blueprint, own in itertools.groupby(rows, key=lambda row: row["blueprint"]):
        scores = {row["model"]: row["hybrid"] for row in own}
        leads[f"Advice on {blueprint.split('__')[1]}"] = scores.pop("openai/model-1") - fmean(scores.values())
    table: Any = sections["blueprints"].blocks[0]
    assert {row["part"].text: row["lead"] for row in table.rows} == pytest.approx(leads)
    assert [row["lead"] for row in table.rows] == pytest.approx(sorted(leads.values(), reverse=True))
    best = max(leads, key=lambda name: leads[name])
    assert sections["blueprints"].answer.startswith(f"Largest lead over other models: {best} ({leads[best]:+.3f})")


def test_the_worst_criteria_show_the_response_that_met_them_least(made: RubricTables, view: FamilyContent) -> None:
    (part,) = next(one for one in view.build_model_sections("openai/model-1") if one.id == "worst").blocks
    items = part.values["items"]  # type: ignore[union-attr]
    assert 1 <= len(items) <= 5
    gaps = [one["score"] - one["others"] for one in items]
    assert gaps == sorted(gaps)
    assert gaps[-1] < 0
    points = made.rows["rubric_points"]
    responses = {(row["blueprint"], row["prompt"], row["model"]): row["text"] for row in made.rows["rubric_responses"]}
    words = {
        (row["prompt"], row["block"], row["path"], row["position"]): row.get("text") for row in made.rows["rubric_criteria"]
    }
    for one in items:
        title, number = one["link"].text.removeprefix("Advice on ").split(", prompt ")
        key = (f"health__{title}", f"prompt-{int(number) - 1}")
        same = [
            row
            for row in points
            if (row["blueprint"], row["prompt"]) == key
            and words[row["prompt"], row["block"], row["path"], row["position"]] == one["words"]
            and row["score"] is not None
        ]
        scores = {row["model"]: row["score"] for row in same}
        assert one["score"] == scores.pop("openai/model-1")
        assert one["others"] == pytest.approx(fmean(scores.values()))
        assert one["response"] == responses[(*key, "openai/model-1")]


def test_of_several_responses_to_a_criterion_the_worst_is_shown() -> None:
    made = made_tables(1, 3, 1, temperatures=(0.0, 0.5, 1.0))
    (part,) = next(one for one in read(rolled_up(made)).build_model_sections("openai/model-1") if one.id == "worst").blocks
    for one in part.values["items"]:  # type: ignore[union-attr]
        place = ("prompt", "block", "path", "position")
        points = [row for row in made.rows["rubric_points"] if row["model"] == "openai/model-1" and row["score"] is not None]
        scores = [row["score"] for row in points if all(row.get(name) == one[name] for name in place)]
        assert one["score"] == min(scores)
