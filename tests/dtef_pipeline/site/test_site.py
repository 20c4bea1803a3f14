"""The pages that all families share, made of a small family: what they say, where links lead, and that hostile names stay text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import duckdb
import pytest

from dtef_pipeline.site.content import Column, Estimate, Link, Section, Table
from dtef_pipeline.site.contents import SiteContents
from dtef_pipeline.site.drift_page import drift_page
from dtef_pipeline.site.family_content import BoardRow, FamilyContent, RankedBoard
from dtef_pipeline.text.printable import make_visible
from tests.dtef_pipeline.site.made_site import HOSTILE, connected, files_of, made_site, view


class Read(HTMLParser):
    """The links, ids, script elements and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.links += [str(found["href"])] if tag == "a" else []
        self.ids += [str(found["id"])] if "id" in found else []
        self.scripts += [found] if tag == "script" else []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return files_of(connected())


@pytest.fixture(scope="module")
def hostile_path(files: dict[str, str]) -> str:
    return next(path for path in files if path.startswith("models/") and "script" in path)


def test_the_front_page_has_verdict_ranks_change_drift_and_cost(files: dict[str, str]) -> None:
    text = Read(files["index.html"]).text
    assert "ada is best." in text
    assert "The largest change is -0.200: bob in Made up." in text
    assert "Drift in 1 of 1 series" in text
    assert "$0.25 for 7 requests. Another such run would cost as much." in text
    assert "0.850 to 0.950" in text
    assert "Made today." in text


def test_the_front_page_says_what_the_last_snapshot_would_cost_again() -> None:
    connection = connected()
    connection.execute("INSERT INTO costs SELECT * REPLACE ('2026-01-01' AS snapshot, 0.5 AS cost_usd) FROM costs")
    text = Read(files_of(connection)["index.html"]).text
    assert "$0.75 for 14 requests. To run the last snapshot again: $0.25 for 7 requests." in text


def test_a_leaderboard_ranks_models_and_keeps_references_apart(files: dict[str, str]) -> None:
    page = files["made/index.html"]
    assert len(re.findall(r'<tr class="reference"', page)) == 1
    assert len(re.findall(r'<tr class="model"', page)) == 3
    assert page.count("few items") == 1
    assert '"label":"a perfect model"' in page


def test_every_model_has_a_page_and_every_link_leads_somewhere(files: dict[str, str]) -> None:
    pages = {path: Read(text) for path, text in files.items() if path.endswith(".html")}
    assert {"models/ada.html", "models/bob.html"} < set(pages)
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            folder = path.rpartition("/")[0]
            parts: list[str] = []
            for part in [*folder.split("/"), *target.split("/")] if target else path.split("/"):
                parts = parts[:-1] if part == ".." else [*parts, part] if part else parts
            assert "/".join(parts) in files, f"{path}: {link}"
            if anchor and "=" not in anchor:
                assert anchor in pages["/".join(parts)].ids, f"{path}: {link}"


def test_ids_stand_once_on_a_page(files: dict[str, str]) -> None:
    for path, text in files.items():
        if path.endswith(".html"):
            ids = Read(text).ids
            assert len(ids) == len(set(ids)), path


def test_a_model_is_seen_from_its_own_side(files: dict[str, str]) -> None:
    ada, bob = (Read(files[f"models/{name}.html"]).text for name in ("ada", "bob"))
    assert "Made up: rank 1 of 3, 0.900 (0.850 to 0.950)." in ada
    assert "better +0.300 +0.200 to +0.400" in ada
    assert "worse -0.300 -0.400 to -0.200" in bob
    assert "-0.200 -0.300 to -0.100" in bob, "its drift"
    assert "$0.25 for 7 requests." in bob
    assert "Seconds per response" in bob
    assert "$41.67 0 2" in bob, "the median of the three that were timed"


def test_comparisons_of_whole_models_stand_on_the_page_of_a_model_with_a_variant() -> None:
    """The pages of rubric models had none: their comparisons have no variant."""
    connection = connected()
    connection.execute("UPDATE comparisons SET model_variant = NULL, other_variant = NULL")
    named = replace(made_site(), read=lambda connection: replace(view(connection), variants={"ada": "ada[temperature=0]"}))
    page = files_of(connection, named)["models/ada.html"]
    assert "better +0.300 +0.200 to +0.400" in Read(page).text
    assert "compare.html#a=ada&amp;b=bob" in page


def test_drift_names_what_moved(files: dict[str, str]) -> None:
    text = Read(files["drift.html"]).text
    assert "1 of 1 watched series drifted: bob in Made up, asked." in text
    assert '"at":"2026-01-03","value":0.4' in files["drift.html"].replace("0.39999999999999997", "0.4")


def test_a_model_page_has_drift_and_costs_of_every_variant_of_a_model_that_is_ranked_as_one() -> None:
    connection = connected()
    connection.execute(
        "INSERT INTO costs BY NAME SELECT * REPLACE ('bob[temperature=1]' AS model_variant) FROM costs WHERE model = 'bob'"
    )
    connection.execute(
        "INSERT INTO drift BY NAME SELECT * REPLACE ('bob[temperature=1]' AS model_variant, -0.4 AS shift) FROM drift"
    )
    named = replace(made_site(), read=lambda connection: replace(view(connection), variants={"bob": "bob"}))
    text = Read(files_of(connection, named)["models/bob.html"]).text
    assert "-0.200 -0.300 to -0.100" in text
    assert "-0.400 -0.300 to -0.100" in text
    assert "$0.50 for 14 requests." in text


@pytest.mark.parametrize(("n", "hrefs"), [(2, ["made/0.html", "made/1.html"]), (9, ["made/index.html#items"])])
def test_details_are_two_clicks_from_the_front_page(n: int, hrefs: list[str]) -> None:
    """Links to few pages have their names; many pages are found in their table, which has a filter."""
    rows = [{"item": Link(f"item {at}", f"made/{at}.html")} for at in range(n)]
    items = Section("items", "Items", [Table("Items", [Column("item", "Item")], rows)])
    with_details = replace(made_site(), read=lambda _: FamilyContent("ada is best.", [], [items]))
    links = Read(files_of(connected(), with_details)["index.html"]).links
    assert [link for link in links if link.startswith("made/") and link != "made/index.html"] == hrefs


def test_families_without_an_alarm_are_folded_behind_those_with_one() -> None:
    """Four chapters of equal weight hid the one alarm."""
    connection = connected()
    connection.execute("INSERT INTO drift BY NAME SELECT * REPLACE ('calm' AS family, 'none' AS verdict) FROM drift")
    calm = replace(made_site(), family="calm", title="Calm")
    page = drift_page(SiteContents(connection, [calm, made_site()]))
    assert [(one.id, one.is_folded) for one in page.sections] == [("made", False), ("calm", True)]
    text = Read(files_of(connection, calm, made_site())["drift.html"]).text
    assert text.index("Drift in 1 of 1 series") < text.index("No drift") < text.index("Table and chart")


def test_models_stand_in_the_order_of_their_numbers() -> None:
    rows = [BoardRow(f"m{n}", Estimate(0.5)) for n in (10, 1, 2)]
    view = FamilyContent("None is ranked.", [RankedBoard("", "Letters", "Mean score", rows)])
    contents = SiteContents(connected(), [replace(made_site(), read=lambda _: view)])
    assert list(contents.model_paths) == ["m1", "m2", "m10"]
    files = files_of(connected(), replace(made_site(), read=lambda _: view))
    assert "Made up · Letters" in files["index.html"]
    assert "Made up · Letters: 0.500, not ranked." in files["models/m1.html"]


def test_of_many_leaderboards_the_first_are_in_sight_and_the_others_state_their_answer() -> None:
    """A family with twenty leaderboards had a page of 24,000 pixels."""
    rows = [BoardRow(name, Estimate(score), rank) for rank, (name, score) in enumerate((("a", 0.9), ("b", 0.8)), 1)]
    boards = [RankedBoard(str(at), f"Board {at}", "Mean score", rows) for at in range(5)]
    named = replace(made_site(), read=lambda _: FamilyContent("a is best.", boards))
    page = files_of(connected(), named)["made/index.html"]
    assert page.count('<details class="folded">') == 2
    assert page.count("Best of 2 models: a scores 0.900; next is b, 0.800") == 4


def test_data_and_preference_call_parts_by_their_names() -> None:
    connection = connected()
    connection.execute("UPDATE costs SET first_level = 'letters'")
    named = replace(made_site(), partition_words=lambda part: f"Short {part}")
    assert "Short letters" in Read(files_of(connection, named)["data.html"]).text
    titled = replace(named, read_partition_titles=lambda _: {"letters": "Letters of two sentences"})
    assert "Letters of two sentences" in Read(files_of(connection, titled)["data.html"]).text


def test_hostile_names_are_text_and_scripts_are_the_sites_own(files: dict[str, str], hostile_path: str) -> None:
    assert make_visible(HOSTILE) in Read(files[hostile_path]).text
    for path, text in files.items():
        if path.endswith(".html"):
            sources = [one.get("src") for one in Read(text).scripts if one.get("type") != "application/json"]
            assert all(source and re.fullmatch(r"(\.\./)*static/[a-z]+\.js", source) for source in sources), path
            assert "<script>alert" not in text, path


def test_pages_need_no_network_but_their_own_folder(files: dict[str, str]) -> None:
    for path, text in files.items():
        if path.endswith(".html"):
            assert not re.search(r"""(?:src|href)="(?:https?:)?//""", text), path
            assert "default-src 'none'" in text, path


def test_an_empty_warehouse_makes_a_site_that_says_how_to_begin() -> None:
    files = files_of(duckdb.connect())
    assert "dtef run" in files["index.html"]
    assert {"index.html", "compare.html", "drift.html", "data.html", "method.html"} < set(files)
