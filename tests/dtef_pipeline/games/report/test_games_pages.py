"""The pages of the games family: whole, without network, and with everything from data as text."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dtef_pipeline.games.exact.strategy_values import StrategyOptions, strategy_rows
from dtef_pipeline.games.manifest import read_manifests
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.report.episode_page import TextParts, text_parts
from dtef_pipeline.games.report.pages import games_pages
from dtef_pipeline.games.tables import DECISION_ANSWERS
from dtef_pipeline.report.page_files import INDEX_PAGE
from dtef_pipeline.tables import in_schema
from tests.made.game_pages import CALM, SCENARIOS, connected_games, games_pages_of, played_league
from tests.made.read_page import ReadPage, check_pages

KUHN, ALLOCATION = "poker__kuhn.html", "negotiation__allocation.html"
ELEMENTS = set(
    re.findall(
        r"\w+",
        "a bdi body button caption code dd details div dl dt h1 h2 h3 head header html li main mark meta nav ol p script section span strong"
        " style summary table tbody td th thead title tr ul wbr svg g rect line circle",
    )
)


@pytest.fixture(scope="module")
def league() -> dict[str, pa.Table]:
    return played_league(["poker/kuhn", "solitaire/thirteen", "negotiation/allocation"])


@pytest.fixture(scope="module")
def pages(league: dict[str, pa.Table]) -> dict[str, str]:
    return games_pages_of(league)


def section_of(page: str, anchor: str) -> str:
    """The text of a section."""
    found = re.search(rf'<section id="{anchor}".*?</section>', page, re.DOTALL)
    assert found
    return ReadPage(found[0]).text


def episodes_of(pages: dict[str, str], page: str) -> list[str]:
    return [name for name in pages if name.startswith(page.removesuffix("html") + "episode-")]


def test_personas_that_nobody_approved_are_marked_on_boards(league: dict[str, pa.Table], pages: dict[str, str]) -> None:
    kuhn = {name: rows.filter(pc.equal(rows["scenario"], "kuhn")) for name, rows in league.items()}
    connection, manifests = connected_games(kuhn), read_manifests(SCENARIOS)
    for status in ("retired", "approved"):
        persona = CALM.model_copy(update={"status": status})
        page = dict(games_pages(connection, manifests, {CALM.name: persona}))[KUHN]
        assert ("retired persona" in ReadPage(page).text, "approved persona" in page) == (status == "retired", False)
    assert "draft persona" not in pages[KUHN], "nothing is said of a persona that is not known"


def test_the_table_is_drawn_for_a_scenario_that_plays_anothers_engine(league: dict[str, pa.Table]) -> None:
    tables, kuhn = dict[str, pa.Table](), read_manifests(SCENARIOS)["poker/kuhn"]
    for name, rows in league.items():
        own = rows.filter(pc.equal(rows["scenario"], "kuhn"))
        renamed = pa.array(["kuhn2"] * len(own)).cast(own.schema.field("scenario").type)
        tables[name] = own.set_column(own.column_names.index("scenario"), own.schema.field("scenario"), renamed)
    manifest = kuhn.model_copy(update={"id": "poker/kuhn2", "adapter": "poker/kuhn"})
    pages = dict(games_pages(connected_games(tables), {manifest.id: manifest}, {}))
    assert '<span class="card' in pages[episodes_of(pages, "poker__kuhn2.html")[0]]


def test_each_scenario_has_a_page_and_some_episodes_and_no_link_leads_nowhere(pages: dict[str, str]) -> None:
    assert next(iter(pages)) == INDEX_PAGE
    assert {KUHN, ALLOCATION, "solitaire__thirteen.html"} <= set(pages)
    assert len(episodes_of(pages, KUHN)) >= 3
    check_pages(pages, ELEMENTS)


def test_what_models_wrote_is_text_on_every_page(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        assert "window.hacked" not in "".join(ReadPage(page).scripts), name
    shown = [name for name in episodes_of(pages, KUHN) if "window.hacked = 1" in ReadPage(pages[name]).text]
    assert shown


def test_boards_have_players_best_first_with_baselines_and_rates_beside(
    pages: dict[str, str], league: dict[str, pa.Table]
) -> None:
    text = section_of(pages[INDEX_PAGE], "boards")
    rows = [row for row in league["persona_results"].to_pylist() if row["scenario"] == "kuhn" and row["opponent"] == "all"]
    means = {f"{row['persona']}@{row['model']}".strip("@"): row["mean"] for row in rows if row["metric"] == "expected_return"}
    board = text[text.index("poker/kuhn: expected return (chips, higher is better)") :]
    best_first = sorted(means, key=lambda name: -means[name])
    places = [board.index(best_first[at].removeprefix("baseline/")) for at in (0, -1)]
    assert places == sorted(places)
    for heading in ("Episodes", "Seeds", "Illegal", "Unparsed", "Refused", "Forfeited"):
        assert heading in board
    assert "baseline" in board
    assert "success rate" in text


def test_a_scenario_page_has_rules_metrics_matchups_personas_and_spread(pages: dict[str, str]) -> None:
    page = pages[KUHN]
    assert "This is Kuhn poker" in section_of(page, "rules")
    metrics = section_of(page, "metrics")
    for family in ("expected value", "efficacy", "risk", "safety", "form"):
        assert family in metrics
    assert "against nash" in section_of(page, "matchups")
    personas = section_of(page, "personas")
    assert "as itself" in personas
    assert "calm:v2" in personas
    assert "Lowest" in section_of(page, "spread")
    assert "Nobody meets an opponent here" in section_of(pages["solitaire__thirteen.html"], "matchups")


def test_an_episode_shows_each_move_with_its_table_and_why_a_text_was_none(pages: dict[str, str]) -> None:
    name = next(one for one in episodes_of(pages, KUHN) if "Shown as: texts that were no legal moves." in pages[one])
    page = pages[name]
    moves = section_of(page, "moves")
    assert "no command found" in moves
    assert "What the seat was told" in moves
    assert "The whole text, with its thinking" in moves
    assert re.search(r'<mark class="action">ACTION: (check|bet|fold|call)</mark>', page)
    assert page.count('class="card') >= 2 * page.count('id="move-')
    assert "The end" in moves
    talk = [pages[one] for one in episodes_of(pages, ALLOCATION)]
    assert any('<ol class="talk">' in page for page in talk)
    assert all("What each item is worth to each party" in page for page in talk)
    assert '<div class="spot pile">' in pages["solitaire__thirteen.episode-1.html"]


def test_what_was_not_played_or_has_no_value_is_said_with_its_reason(pages: dict[str, str]) -> None:
    text = section_of(pages[INDEX_PAGE], "unscored")
    assert "skipped_budget" in text
    assert "the budget of <i>steady</i> has ended" in text
    assert "tokensbaseline" not in text


def test_episodes_of_another_version_are_shown_without_tables(league: dict[str, pa.Table]) -> None:
    newer = {}
    for name, rows in league.items():
        own = rows.filter(pc.equal(rows["scenario"], "kuhn"))
        newer[name] = own.set_column(own.schema.get_field_index("version"), "version", pa.array([7] * len(own), pa.int32()))
    pages = games_pages_of(newer)
    (first, *_) = episodes_of(pages, KUHN)
    assert "these moves are of another version than the one installed" in section_of(pages[first], "moves")
    assert 'class="card' not in pages[first]
    assert "these results are of version 7" in section_of(pages[KUHN], "rules")


def test_where_nothing_was_played_the_page_says_what_to_do(league: dict[str, pa.Table]) -> None:
    (page,) = games_pages_of({}).values()
    assert "No boards yet" in section_of(page, "boards")
    assert "not played yet" in section_of(page, "scenarios")
    unrolled = games_pages_of({"episodes": league["episodes"]})
    assert "No boards yet" in section_of(unrolled[INDEX_PAGE], "boards")
    assert "No board yet" in section_of(unrolled[KUHN], "board")
    assert episodes_of(unrolled, KUHN)


def test_strategies_of_a_small_game_are_told_least_exploitable_first(league: dict[str, pa.Table]) -> None:
    manifests = read_manifests(SCENARIOS)
    rows = strategy_rows(pack("poker/kuhn", manifests), DECISION_ANSWERS.empty_table(), "base", StrategyOptions())
    text = section_of(games_pages_of({"strategy_values": rows})[KUHN], "strategies")
    places = [text.index(f"{name}baseline") for name in ("nash", "always-bet", "random", "always-pass")]
    assert places == sorted(places)
    assert "0.458" in text
    assert "100.0%" in text
    assert "Strategies" not in games_pages_of({"episodes": league["episodes"]})[KUHN]


@pytest.mark.thorough
def test_equal_tables_give_equal_pages(league: dict[str, pa.Table]) -> None:
    turned = {name: rows.take(pa.array(range(len(rows) - 1, -1, -1))) for name, rows in league.items()}
    kuhn = {
        name: in_schema(rows.filter(pc.equal(rows["scenario"], "kuhn")).to_pandas(), rows.schema)
        for name, rows in turned.items()
    }
    straight = {name: rows.filter(pc.equal(rows["scenario"], "kuhn")) for name, rows in league.items()}
    assert games_pages_of(kuhn) == games_pages_of(straight)


@pytest.mark.parametrize(
    ("text", "played", "parts"),
    [
        ("I wait.\nACTION: call", True, TextParts("I wait.", "ACTION: call", "", has_thinking=False)),
        (
            "<think>ACTION: fold</think>\naction: call\nGood luck",
            True,
            TextParts("", "action: call", "Good luck", has_thinking=True),
        ),
        ("I say\ncall", True, TextParts("I say", "call", "", has_thinking=False)),
        ("I say\ncall", False, TextParts("I say\ncall", "", "", has_thinking=False)),
        ("", False, TextParts("", "", "", has_thinking=False)),
    ],
)
def test_a_text_is_parted_where_its_action_stands(text: str, played: bool, parts: TextParts) -> None:
    assert text_parts(text, played=played) == parts


def test_a_long_reason_stands_once_beneath_the_board_and_its_first_words_in_the_cells(pages: dict[str, str]) -> None:
    # Reasons of eight lines stood in every row of a board.
    board = re.search(r'<section id="board".*?</section>', pages[KUHN], re.DOTALL)
    assert board
    cells = re.findall(r'<span class="ci wrapped"[^>]*>(.*?)</span>', board[0])
    assert cells
    assert max(len(ReadPage(one).text) for one in cells) < 40
    assert 'title="no interval: each seed has the same value' in board[0]
    assert (
        "* no interval: each seed has the same value, which says nothing of how far others scatter (" in ReadPage(board[0]).text
    )


def test_the_last_step_has_what_all_learned_and_marks_what_the_players_were_not_shown(pages: dict[str, str]) -> None:
    ends = [section_of(pages[name], "moves").rpartition("The end")[2] for name in episodes_of(pages, KUHN)]
    shown = [end for end in ends if "Showdown: A has the " in end]
    assert shown
    assert not any("not shown to the players" in end for end in shown)
    assert "chips from" in "".join(ends)
    assert not re.search(r"(win|loss|lost|of),? -?1 chips", "".join(pages.values()))
    talks = [section_of(pages[name], "moves").rpartition("The end")[2] for name in episodes_of(pages, ALLOCATION)]
    assert all(re.search(r"Worth to A: boat .*\)\.\s*not shown to the players", end) for end in talks)
    assert any("Jain's index" in end for end in talks)
    assert "Cards on the foundation: " in section_of(pages["solitaire__thirteen.episode-1.html"], "moves")
    assert "1 where it is solved, else 0" in section_of(pages["solitaire__thirteen.html"], "rules")
