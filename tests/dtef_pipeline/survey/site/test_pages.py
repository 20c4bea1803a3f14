"""Pages of segments, questions and models: values against those worked out by hand, texts as text, samples that say so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import duckdb
import pytest

from dtef_pipeline.site.content import DataFile, Link, Page, Section, Table, TemplateBlock
from dtef_pipeline.site.family_content import FamilyContent
from dtef_pipeline.site.rendering import render_data, render_page, render_script_json
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.site import pairs
from dtef_pipeline.survey.site.contents import SurveyContents, shorten_apart
from dtef_pipeline.survey.site.detail_pages import read_spreads
from dtef_pipeline.survey.site.family_site import describe_items, read, read_item_scores
from dtef_pipeline.survey.site.pairs import store_pairs
from dtef_pipeline.text.shortening import shorten
from tests.dtef_pipeline.survey.site.conftest import Open
from tests.made.scores import reference_table, scores_table, survey_rows
from tests.made.survey_boards import blueprints_of, predictions_of

OTHERS = "baseline/leave-one-out-marginal"
CHILE, KENYA, PERU, POLAND = SEGMENTS = ("country:chile", "country:kenya", "country:peru", "country:poland")
CEILINGS = {CHILE: 0.9, KENYA: 0.8, PERU: 0.95, POLAND: 0.95}
MARGINALS = {CHILE: 0.7, KENYA: 0.6, PERU: 0.9, POLAND: 0.9}
HOSTILE = "</script><script>window.harm = 1</script><!-- <img src=x onerror=harm()> \u202e\u2028 & 'x'"


def asked(model: str, scores: dict[str, float], question: str = "q0", **given: Any) -> list[dict[str, Any]]:
    known = {"model": model, "model_variant": model, "question_id": question, "predicted": [0.5, 0.3, 0.2], **given}
    named = {one: {"segment": one, "value": one.partition(":")[2].title()} for one in scores}
    return [{**known, **named[segment], "score": score} for segment, score in scores.items()]


def everywhere(model: str, score: float, question: str = "q0", **given: Any) -> list[dict[str, Any]]:
    return asked(model, dict.fromkeys(SEGMENTS, score), question, **given)


def tables() -> dict[str, Any]:
    pairs: list[dict[str, Any]] = [
        {"question_id": f"q{at}", "question_order": at, "segment": one} for at in range(3) for one in SEGMENTS
    ]
    survey = [
        {**one, "value": one["segment"].partition(":")[2].title(), "question_text": f"Question {one['question_id']}?"}
        for one in pairs
    ]
    references = [
        {**one, "ceiling": CEILINGS[one["segment"]], "leave_one_out_score": MARGINALS[one["segment"]]} for one in pairs
    ]
    kept = [{name: value for name, value in one.items() if name != "question_order"} for one in references]
    return {"survey_responses": survey_rows(*survey), "reference_scores": reference_table(kept)}


def stored(connection: duckdb.DuckDBPyConnection) -> SurveyContents:
    """The contents with their pairs."""
    contents = SurveyContents(connection)
    store_pairs(contents)
    return contents


def with_texts(rows: list[dict[str, Any]], words: str = "50, 30, 20") -> dict[str, Any]:
    scores = scores_table(rows)
    return {
        **tables(),
        "predictions": predictions_of(scores, [f"{words} {at}" for at in range(len(scores))]),
        "blueprints": blueprints_of(scores),
    }


def pages_of(view: FamilyContent) -> dict[str, Page | DataFile]:
    return {one.path: one for one in view.pages()}


def page_of(found: dict[str, Page | DataFile], title: str) -> Page:
    return next(one for one in found.values() if isinstance(one, Page) and one.title == title)


def section_of(page: Page, id: str) -> Section:
    return next(one for one in page.sections if one.id == id)


def table_of(section: Section) -> Table:
    return next(block for block in section.blocks if isinstance(block, Table))


def test_numbers_of_a_question_are_over_the_segments_that_its_models_share(open_tables: Open) -> None:
    """Ceiling and marginal were over all segments, the models over those that they were asked: 0.30 stood beside a ceiling of 0.90."""
    rows = [
        *everywhere(OTHERS, 0.85),
        *asked("a", {CHILE: 0.5, KENYA: 0.3, PERU: 1.0}),
        *asked("b", {CHILE: 0.7, KENYA: 0.5, POLAND: 1.0}),
        *asked("once", {CHILE: 0.1}),
    ]
    (spread,) = read_spreads(stored(open_tables(rows, **tables())), "q").values()
    assert (spread["mean"], spread["best"], spread["best_score"]) == pytest.approx((0.5, "b", 0.6))
    assert (spread["others"], spread["ceiling"], spread["beats"]) == (pytest.approx(0.65), pytest.approx(0.85), False)
    assert (spread["n_pairs"], spread["n_models"]) == (2, 2)


def test_questions_that_differ_in_the_middle_have_titles_that_differ() -> None:
    """Three of five questions of GD3 had the title `Do you think … in the next 10 years?`."""
    texts = [
        f"Will AI, as far as you know today, make your {what} better or worse in the next ten years?"
        for what in ("job", "health")
    ]
    assert shorten_apart([*texts, "Are you well?", texts[0]], 60) == [*texts, "Are you well?", texts[0]]
    assert shorten_apart([texts[0], texts[0]], 60) == [shorten(texts[0], 60)] * 2


def test_baselines_are_spread_where_no_model_was_asked(open_tables: Open) -> None:
    contents = stored(open_tables([*everywhere(OTHERS, 0.8), *everywhere("baseline/uniform", 0.6)], **tables()))
    (spread,) = read_spreads(contents, "q").values()
    assert (contents.noun, spread["best"], spread["mean"]) == ("baseline", "Leave-one-out marginal", pytest.approx(0.7))


def test_pages_of_segments_and_questions_say_who_is_best(open_tables: Open) -> None:
    rows = [*everywhere("a", 0.5), *everywhere("b", 0.7), *asked("b", {KENYA: 0.2}, "q1"), *asked("a", {KENYA: 0.6}, "q1")]
    found = pages_of(read(open_tables(rows, **tables())))
    kenya = page_of(found, "Kenya")
    assert kenya.answer == (
        "Best of 2 models: a scores 0.550 on Kenya, below the leave-one-out marginal (0.600); a perfect model would score 0.800."
    )
    assert [row["name"] for row in table_of(section_of(kenya, "models")).rows] == ["a", "b"]
    worst_first = [(row["question"].text, row["lead"]) for row in table_of(section_of(kenya, "questions")).rows]
    assert worst_first == [("Question q1?", pytest.approx(-0.2)), ("Question q0?", pytest.approx(0.0))]
    question = page_of(found, "Question q0?")
    assert question.answer.startswith(
        "Best of 2 models: b scores 0.700 on this question, below the leave-one-out marginal (0.775)"
    )
    groups = table_of(section_of(question, "groups"))
    assert [column.title for column in groups.columns][3:6] == ["Agree", "Neutral", "Disagree"]
    assert groups.rows[0]["apart"] == pytest.approx(0.1)  # half of |.5-.4| + |.3-.4| + |.2-.2|
    assert groups.rows[0]["o0"] == pytest.approx(0.5)


def opened_first(page: Page) -> Any:
    (block,) = section_of(page, "pairs").blocks
    assert isinstance(block, TemplateBlock)
    return block.values["first"]


def test_a_page_opens_on_a_pair_that_a_model_was_asked(open_tables: Open) -> None:
    """A segment's page opened on a question without a prediction."""
    rows = [*everywhere(OTHERS, 0.6, "q0"), *everywhere(OTHERS, 0.6, "q1"), *asked("a", {KENYA: 0.5}, "q1")]
    found = pages_of(read(open_tables(rows, **tables())))
    kenya, question = page_of(found, "Kenya"), page_of(found, "Question q1?")
    segments = [one[0] for one in found[pairs.SHARED_DATA].value["segments"]]
    assert opened_first(kenya) == 1
    assert opened_first(question) == segments.index("Kenya")
    other = page_of(found, next(one for one in segments if one != "Kenya"))
    assert other.answer == f"No model has a score on {other.title} without context questions."
    assert opened_first(other) == 0


def test_data_of_pairs_are_in_the_order_of_the_options_and_draws_are_averaged(open_tables: Open) -> None:
    drawn: list[dict[str, Any]] = [{"draw": 0, "predicted": [0.4, 0.6, 0.0]}, {"draw": 1, "predicted": [0.6, 0.2, 0.2]}]
    rows = [
        *asked("a", {KENYA: 0.2}, snapshot="2026-01-02", **drawn[0]),
        *asked("a", {KENYA: 0.4}, snapshot="2026-01-02", **drawn[1]),
        *asked("a", {KENYA: 0.9}, snapshot="base"),
        *asked("mute", {KENYA: 0.0}, status="refused", predicted=None),
    ]
    found = pages_of(read(open_tables(rows, **tables())))
    shared, kenya = (found[path] for path in (pairs.SHARED_DATA, page_of(found, "Kenya").path.replace(".html", ".js")))
    assert isinstance(shared, DataFile)
    assert isinstance(kenya, DataFile)
    assert [name for name, _, _ in shared.value["series"]] == ["a", "mute"]
    assert shared.value["questions"][0][:3] == ["S1", "Question q0?", ["Agree", "Neutral", "Disagree"]]
    ((q, n, size, ceiling, others, circular, observed, codes),) = kenya.value["pairs"]
    assert (q, n, size, ceiling, others, circular) == (0, 40, 40, 800, 600, 0)
    assert numbers(observed) == [500, 300, 200]
    code, draws = codes[0].split("*")
    assert (numbers(code), draws) == ([500, 400, 100, 300], "2/2")
    assert codes[1] == "!400"  # the place of `refused`, and the score that the policy gives


def numbers(code: str) -> list[int]:
    """Thousandths from two characters each."""
    return [int(code[at : at + 2], 36) for at in range(0, len(code), 2)]


def html_of(page: Page) -> str:
    return render_page(page, {"navigation": [], "made": ""})


def test_texts_are_those_of_the_snapshot_that_counts_and_prompts_stand_once(open_tables: Open) -> None:
    rows = [
        *asked("a", {KENYA: 0.5}, snapshot="base"),
        *asked("a", {KENYA: 0.6}, snapshot="2026-01-02"),
        *asked("b", {KENYA: 0.6}),
    ]
    found = pages_of(read(open_tables(rows, **with_texts(rows))))
    data = found[page_of(found, "Kenya").path.replace(".html", "-texts.js")]
    assert isinstance(data, DataFile)
    assert data.value["prompts"] == ["Be exact.\n\nGroup: country:kenya\n\nq0?"]
    assert [(series, prompt, words, snapshot) for series, prompt, words, _, _, snapshot, _ in data.value["said"]["0"]] == [
        (0, 0, "50, 30, 20 1", "2026-01-02"),
        (1, 0, "50, 30, 20 2", "base"),
    ]


def test_of_many_texts_whole_pairs_are_drawn_and_the_page_says_so(open_tables: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for at in range(3) for model in "ab" for row in everywhere(model, 0.5, f"q{at}")]
    connection = open_tables(rows, **with_texts(rows, "words " * 20))
    monkeypatch.setattr(pairs.sample_pairs, "__defaults__", (1_500,))
    contents = stored(connection)
    sample = pairs.sample_pairs(contents)
    assert 0 < len(sample.places) < 12
    assert len({s for s, _ in sample.places}) == min(len(sample.places), 4)  # spread over the segments
    assert sample == pairs.sample_pairs(contents)
    held = pairs.load_texts(contents, sample.places)
    assert {place: len(said) for place, said in held.items()} == dict.fromkeys(sample.places, 2)
    assert f"responses of {len(sample.places)} of 12 pairs" in html_of(page_of(pages_of(read(connection)), "Kenya"))


def test_a_model_has_its_strengths_and_its_worst_answers_with_prompt_and_response(open_tables: Open) -> None:
    rows = [
        *asked("a", {CHILE: 0.9, KENYA: 0.3, PERU: 0.85, POLAND: 0.8}),
        *everywhere("b", 0.5),
        *asked("a", {CHILE: 0.0}, "q1", status="refused"),
    ]
    view = read(open_tables(rows, **with_texts(rows)))
    strengths, worst = view.build_model_sections("a")
    assert strengths.answer == (
        "It beats the leave-one-out marginal in 0 of 4 segments; its lead is largest in Peru (-0.050) and smallest in Kenya (-0.300)."
    )
    assert worst.answer == "Its lowest score on a readable answer is 0.300."
    html = html_of(Page("models/a.html", "a", "", [worst]))
    assert html.index("0.300: Kenya, Question q0?") < html.index("0.800: Poland") < html.index("0.000: Chile, Question q1?")
    assert "Be exact." in html
    assert "50, 30, 20 1" in html
    assert list(view.build_model_sections("unknown")) == []


def test_items_are_pairs_of_the_first_leaderboard_with_their_pages(open_tables: Open) -> None:
    rows = [*everywhere("a", 0.5), *everywhere("b", 0.7), *everywhere("a", 0.1, context_level="5")]
    view = read(open_tables(rows, **tables()))
    kenya = view.item_scores[view.item_scores["label"] == "Question q0? (Kenya)"]
    assert dict(zip(kenya["model"], kenya["score"], strict=True)) == {"a": 0.5, "b": 0.7}
    assert kenya["page"].iloc[0] == f"{page_of(pages_of(view), 'Kenya').path}#question=S1-q0"
    assert view.item_note == "Pairs of question and segment, without context questions: 4 pairs."


def test_of_many_items_the_same_pairs_are_drawn_of_all_models(open_tables: Open) -> None:
    rows = [row for at in range(3) for model in "ab" for row in everywhere(model, 0.5, f"q{at}")]
    contents = stored(open_tables(rows, **tables()))
    found = read_item_scores(contents, limit=5)
    assert {model: len(own) for model, own in found.groupby("model")} == {"a": 5, "b": 5}
    assert found["item"].nunique() == 5
    assert describe_items(contents, found).endswith(f": a random sample of 5 of 12 pairs (seed {SEED}).")


def test_circular_pairs_are_on_pages_and_in_no_mean(open_tables: Open) -> None:
    rows = [*asked("a", {KENYA: 0.9}, circular=True), *asked("a", {KENYA: 0.5}, "q1")]
    survey = survey_rows(*({"question_id": f"q{at}", "circular": at == 0} for at in range(2)))
    view = read(open_tables(rows, survey_responses=survey))
    found = pages_of(view)
    kenya = page_of(found, "Kenya")
    data = found[kenya.path.replace(".html", ".js")]
    assert isinstance(data, DataFile)
    assert [pair[5] for pair in data.value["pairs"]] == [1, 0]
    assert kenya.answer == "a scores 0.500 on Kenya."
    assert len(view.item_scores) == 1


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "script":
            self.scripts.append(dict(attrs).get("type") or dict(attrs).get("src") or "inline")
        assert not any(name.startswith("on") for name, _ in attrs)


def hostile_parts(view: FamilyContent) -> Iterator[str]:
    for one in view.pages():
        if isinstance(one, Page):
            yield html_of(one)
        else:
            assert json.loads(str(render_script_json(one.value)).replace("\\u003c", "<"))
            assert "</script" not in render_data(one)
    for name in {row.model for board in view.boards for row in board.rows}:
        yield html_of(Page("models/a.html", name, view.verdict, [*view.build_model_sections(name), *view.sections, *view.data]))


def test_hostile_names_and_texts_stay_text(open_tables: Open) -> None:
    rows = [*everywhere(HOSTILE, 0.5), *everywhere(HOSTILE, 0.0, "q1", status="unparseable", reason=HOSTILE)]
    survey = survey_rows(
        *({"segment": one, "value": HOSTILE, "question_text": HOSTILE, "options": [HOSTILE, "b", "c"]} for one in SEGMENTS)
    )
    given = {**with_texts(rows, HOSTILE), "survey_responses": survey}
    for html in hostile_parts(read(open_tables(rows, **given))):
        parsed = Tags()
        parsed.feed(html)
        assert "inline" not in parsed.scripts
        assert "img" not in parsed.tags


@pytest.mark.thorough
def test_equal_tables_give_equal_pages(open_tables: Open) -> None:
    rows = [row for at in range(3) for model in (*"ab", OTHERS) for row in everywhere(model, 0.5 + at / 10, f"q{at}")]

    def rendered(scores: list[dict[str, Any]]) -> list[str]:
        return [
            html_of(one) if isinstance(one, Page) else render_data(one) for one in read(open_tables(scores, **tables())).pages()
        ]

    assert rendered(rows) == rendered(rows[::-1])


def test_two_variants_of_a_name_are_two_models(open_tables: Open) -> None:
    rows = [*everywhere("gpt", 0.5, model_variant="gpt[t=0]"), *everywhere("gpt", 0.7, model_variant="gpt[t=1]")]
    view = read(open_tables(rows, **tables()))
    assert [row.model for row in view.boards[0].rows] == ["gpt[t=1]", "gpt[t=0]"]
    assert view.variants == {"gpt[t=0]": "gpt[t=0]", "gpt[t=1]": "gpt[t=1]"}
    assert len(list(view.build_model_sections("gpt[t=0]"))) == 2


def test_lists_lead_to_the_pages(open_tables: Open) -> None:
    view = read(open_tables([*everywhere("a", 0.5), *asked("a", {KENYA: 0.9}, "q1")], **tables()))
    found = pages_of(view)
    segments, questions = (next(one for one in view.sections if one.id == id) for id in ("segments", "questions"))
    links = [row["link"] for section in (segments, questions) for row in table_of(section).rows]
    assert all(isinstance(one, Link) and one.href in found for one in links)
    assert [row["link"].text for row in table_of(questions).rows] == ["Question q0?", "Question q1?"]
    assert segments.answer.startswith("Of 4 segments, models predict “Kenya” best (0.700)")
