"""Games on the site: numbers as by hand, everything from data as text, and whatever was played shown with what is missing said."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dtef_pipeline.games.game_in_play import TextParts, decode_trace, encode_trace, split_text_parts
from dtef_pipeline.games.manifest import read_manifests
from dtef_pipeline.games.site import league_rows
from dtef_pipeline.games.site.game_labels import GameDocuments
from dtef_pipeline.site.content import DataFile, Page, Section, Table, TemplateBlock
from dtef_pipeline.site.family_content import FamilyContent
from dtef_pipeline.site.rendering import render_page
from dtef_pipeline.tables import convert_to_schema
from tests.made.made_games import CALM, HOSTILE, SCENARIOS, games_files, games_view, played_league
from tests.made.read_page import ReadPage

KUHN, ALLOCATION = "games/scenarios/poker.kuhn.html", "games/scenarios/negotiation.allocation.html"
Tables = dict[str, pa.Table]


@pytest.fixture(scope="module")
def league() -> Tables:
    return played_league(["poker/kuhn", "solitaire/thirteen", "negotiation/allocation"])


@pytest.fixture(scope="module")
def kuhn(league: Tables) -> Tables:
    return {name: rows.filter(pc.equal(rows["scenario"], "kuhn")) for name, rows in league.items()}


@pytest.fixture(scope="module")
def view(league: Tables) -> FamilyContent:
    return games_view(league)


@pytest.fixture(scope="module")
def kuhn_view(kuhn: Tables) -> FamilyContent:
    return games_view(kuhn)


@pytest.fixture(scope="module")
def files(league: Tables) -> dict[str, str]:
    return games_files(league)


BUILT: dict[int, tuple[FamilyContent, list[Page | DataFile]]] = {}


def pages_of(view: FamilyContent) -> list[Page | DataFile]:
    """The pages of a view, made once for all tests."""
    if id(view) not in BUILT:
        BUILT[id(view)] = view, list(view.pages())
    return BUILT[id(view)][1]


def page_of(view: FamilyContent, path: str = KUHN) -> Page:
    return next(one for one in pages_of(view) if isinstance(one, Page) and one.path == path)


def section_of(sections: Iterable[Section], name: str) -> Section:
    return next(one for one in sections if one.id == name)


def table_of(section: Section) -> Table:
    block = section.blocks[0]
    table = block.values["table"] if isinstance(block, TemplateBlock) else block
    assert isinstance(table, Table)
    return table


def data_of(script: str) -> Any:
    """What a data file gives to the page that loads it."""
    found = re.search(r'dtef\.receive\("[^"]+","([A-Za-z0-9+/=]+)"\)', script)
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def transcripts(files: Mapping[str, str], page: str = KUHN) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for path, text in files.items():
        if path.startswith(page.removesuffix(".html") + "/"):
            held |= data_of(text)
    return held


def episodes_of(view: FamilyContent) -> list[Any]:
    """The transcripts of a view, before they are written into files."""
    return [episode for one in pages_of(view) if isinstance(one, DataFile) for episode in one.value.values()]


def rewards_by_hand(tables: Tables, model: str, persona: str = "") -> dict[str, float]:
    rows = tables["episodes"].to_pylist()
    return {
        row["item_id"]: row["reward"]
        for row in rows
        if row["status"] == "played" and (row["model"], row["persona"], row["scenario"]) == (model, persona, "kuhn")
    }


def test_a_board_ranks_models_that_have_the_same_games_with_baselines_as_references(
    view: FamilyContent, league: Tables
) -> None:
    board = next(one for one in view.boards if one.title == "Kuhn (poker)")
    rows = {row.model: row for row in board.rows}
    hostile = rewards_by_hand(league, HOSTILE.name)
    assert rows[HOSTILE.name].score.value == pytest.approx(np.mean(list(hostile.values())))
    assert rows[HOSTILE.name].rank == 1
    assert rows["steady"].rank is None, "a budget ended one of its games"
    assert rows["steady"].note == "47 of 48 episodes were played: a budget ended 1"
    assert rows["nash (baseline)"].is_reference
    assert not any("@" in name for name in rows), "personas stand beside their models on the page of the scenario"
    assert "higher is better" in board.measure


def test_models_are_ranked_on_their_games_where_baselines_have_more(kuhn: Tables) -> None:
    is_baseline = pc.starts_with(kuhn["episodes"]["model"].cast(pa.string()), "baseline/")
    is_first = pc.equal(kuhn["episodes"]["cluster"], kuhn["episodes"]["cluster"][0])
    few = {**kuhn, "episodes": kuhn["episodes"].filter(pc.or_(is_baseline, is_first))}
    view = games_view(few)
    games = {row.model: row.more["n_games"] for row in view.boards[0].rows}
    of_models, of_baselines = min(games.values()), max(games.values())
    assert of_models < of_baselines
    assert {row.rank is None for row in view.boards[0].rows if not row.is_reference} == {False}
    assert f"Ranked models played the same {of_models} games, baselines up to {of_baselines}" in view.boards[0].measure
    assert f" over {of_baselines} games" in view.verdict


def test_a_persona_has_a_board_only_where_its_model_does_not_play_as_itself(kuhn: Tables, kuhn_view: FamilyContent) -> None:
    assert [one.title for one in kuhn_view.boards] == ["Kuhn (poker)"]
    as_calm = {
        name: rows.filter(
            pc.or_(pc.equal(rows["persona"], CALM.name), pc.starts_with(rows["model"].cast(pa.string()), "baseline/"))
        )
        for name, rows in kuhn.items()
    }
    known = GameDocuments(read_manifests(SCENARIOS), {CALM.name: CALM})
    assert [one.title for one in games_view(as_calm, known).boards] == ["Kuhn (poker) as Calm v2"]


def test_the_verdict_names_the_best_model_and_how_it_stands_to_baselines(kuhn: Tables, kuhn_view: FamilyContent) -> None:
    verdict = kuhn_view.verdict
    assert re.match(r"Kuhn \(poker\): <b>hostile</b> scores -0\.375 \(.* to .*\) chips; no other model is ranked\. ", verdict)
    assert (
        "On the same games <b>hostile</b> beats 0 of 3 baselines; the best baseline, always-bet, makes 0.417 chips over 48"
        in verdict
    )
    assert verdict.endswith("because games of the other models are missing: steady.")
    models = {name: rows.filter(pc.starts_with(rows["model"].cast(pa.string()), "baseline/")) for name, rows in kuhn.items()}
    without = games_view(models)
    assert without.verdict == "No model has played yet; there are results of baselines in 1 scenario."
    assert not without.boards
    assert page_of(without).answer.startswith("No model has played yet; results are those of 3 baselines")


def test_a_model_beside_a_baseline_is_compared_on_the_same_games_by_seeds(view: FamilyContent, league: Tables) -> None:
    rows = table_of(section_of(view.build_model_sections("steady"), "baselines")).rows
    row = next(
        one
        for one in rows
        if (one["scenario"].text, one["rival"]) == ("Kuhn (poker)", "always-pass (baseline)") and not one["as_persona"]
    )
    own, other = (rewards_by_hand(league, name) for name in ("steady", "baseline/always-pass"))
    assert row["difference"].value == pytest.approx(np.mean([own[game] - other[game] for game in own.keys() & other.keys()]))
    assert row["difference"].low < row["difference"].value < row["difference"].high
    assert row["verdict"] == (
        "better" if row["difference"].low > 0 else "no clear difference" if row["difference"].high > 0 else "worse"
    )


def test_what_a_persona_changes_is_the_difference_on_the_same_games(kuhn: Tables, kuhn_view: FamilyContent) -> None:
    rows = table_of(section_of(kuhn_view.build_model_sections(HOSTILE.name), "baselines")).rows
    (row,) = (one for one in rows if one["rival"] == "itself")
    calm, itself = (rewards_by_hand(kuhn, HOSTILE.name, persona) for persona in (CALM.name, ""))
    assert row["difference"].value == pytest.approx(np.mean([calm[game] - itself[game] for game in calm]))
    assert row["as_persona"] == "calm:v2", "as tables have it, where nothing is known of it"


def test_personas_that_nobody_approved_are_marked(kuhn: Tables) -> None:
    persona = CALM.model_copy(update={"status": "retired"})
    page = page_of(games_view(kuhn, GameDocuments(read_manifests(SCENARIOS), {CALM.name: persona})))
    notes = {row["model"]: row["note"] for row in table_of(section_of(page.sections, "players")).rows}
    assert (notes["<b>hostile</b> as Calm v2"], notes["<b>hostile</b>"]) == ("a retired persona", "")
    folds = section_of(page.sections, "rules").blocks[1:]
    assert [one.title for one in folds] == ["The rules that every player gets", "Calm v2, retired"]  # type: ignore[union-attr]


def test_personas_of_the_same_title_are_different_players(kuhn: Tables) -> None:
    """Their rewards were averaged."""
    twin = CALM.model_copy(update={"id": "twin"})
    view = games_view(kuhn, GameDocuments(read_manifests(SCENARIOS), {CALM.name: CALM, twin.name: twin}))
    names = {row["model"] for row in table_of(section_of(page_of(view).sections, "players")).rows}
    assert "<b>hostile</b> as calm:v2" in names


def test_strengths_are_ranks_among_all_players(view: FamilyContent) -> None:
    section = section_of(view.build_model_sections("steady"), "standing")
    rows = table_of(section).rows
    shares = [row["share"] for row in rows]
    assert shares == sorted(shares)
    assert {"Mean reward", "Won"} <= {row["title"] for row in rows}
    assert section.answer.startswith("Strongest: ")
    assert {row["metric"] for row in rows if row["metric_family"] == "form"} == {"illegal_rate", "forfeit_rate"}


def test_worst_episodes_are_those_furthest_below_the_mean_of_their_game_and_can_be_opened(
    view: FamilyContent, league: Tables, files: Mapping[str, str]
) -> None:
    rows = table_of(section_of(view.build_model_sections(HOSTILE.name), "worst")).rows
    ids = {one["episode_id"][:12]: one for one in league["episodes"].to_pylist()}
    for row in rows:
        page, _, episode = row["episode"].href.partition("#episode=")
        found = ids[episode]
        assert found["model"] == HOSTILE.name
        same = [one["reward"] for one in ids.values() if one["status"] == "played" and _game(one) == _game(found)]
        assert row["above"] == pytest.approx(found["reward"] - np.mean(same))
        assert episode in transcripts(files, page)
    assert rows[0]["above"] < 0


def _game(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["scenario"], row["item_id"]


def test_scores_of_games_are_there_for_every_two_models(view: FamilyContent, league: Tables) -> None:
    scores = view.item_scores
    own = scores[
        (scores["model"] == HOSTILE.name) & scores["item"].str.startswith("poker/kuhn/") & scores["item"].str.endswith("/")
    ]
    assert dict(zip(own["item"], own["score"], strict=True)) == {
        f"poker/kuhn/{item}/": reward for item, reward in rewards_by_hand(league, HOSTILE.name).items()
    }
    assert own["page"].str.startswith(f"{KUHN}#game=").all()
    assert "Kuhn (poker), seed 1, seat A, against nash, reward in chips" in set(own["label"])


def test_a_scenario_page_has_opponents_metrics_form_and_rules(view: FamilyContent, league: Tables) -> None:
    page = page_of(view)
    matrix = table_of(section_of(page.sections, "opponents"))
    assert "nash (baseline)" in [one.title for one in matrix.columns]
    rows = {row["player"]: row for row in matrix.rows}
    assert rows.keys() >= {"steady", "<b>hostile</b>", "always-bet (baseline)"}
    against_nash = [reward for item, reward in rewards_by_hand(league, HOSTILE.name).items() if item.endswith("/baseline/nash")]
    assert rows["<b>hostile</b>"]["baseline/nash"].value == pytest.approx(np.mean(against_nash))
    metrics = [one.title for one in table_of(section_of(page.sections, "metrics")).columns]
    assert {"Won ↑", "Spread of rewards ↓", "Red flags ↓", "Illegal texts ↓"} <= set(metrics)
    assert section_of(page.sections, "rules").blocks
    assert section_of(page_of(view, "games/scenarios/solitaire.thirteen.html").sections, "opponents").is_empty


def test_an_episode_shows_each_move_with_its_table_and_why_a_text_was_none(files: Mapping[str, str]) -> None:
    episodes = transcripts(files).values()
    wrong = next(move for one in episodes for move in one["moves"] if move["kind"] == "no command found")
    assert wrong["why"].startswith("no command was found")
    assert wrong["whole"].startswith("<think>secret</think>")
    assert "secret" not in wrong["text"][0]
    assert wrong["state"]["cards"]
    assert "to_move" not in wrong["state"]
    legal = next(move for one in episodes for move in one["moves"] if move["kind"] == "legal")
    assert re.fullmatch(r"ACTION: (check|bet|fold|call)", legal["text"][1])
    assert "Your card: " in legal["seen"]
    assert {move["kind"] for one in episodes for move in one["moves"]} >= {"baseline", "made for the player"}
    assert any("Showdown: A has the " in line for one in episodes for line in one["shown"])
    talk = transcripts(files, ALLOCATION).values()
    assert all(any(line.startswith("Worth to A: boat ") for line in one["hidden"]) for one in talk)


def test_after_a_text_that_was_no_move_the_player_is_reported(files: Mapping[str, str]) -> None:
    again = [
        move["seen"]
        for one in transcripts(files).values()
        for before, move in zip(one["moves"], one["moves"][1:], strict=False)
        if "why" in before and "text" in move
    ]
    assert again
    assert all(text.startswith("Nothing was played: ") for text in again)


def test_what_models_wrote_is_text_on_every_page(files: Mapping[str, str]) -> None:
    pages = {name: ReadPage(text) for name, text in files.items() if name.endswith(".html")}
    for name, page in pages.items():
        assert not [tag for tag, _ in page.elements if tag in ("img", "b", "iframe")], name
        assert not [key for _, given in page.elements for key in given if key.startswith("on")], name
        assert "window.hacked" not in "".join(page.scripts), name
    assert "<b>hostile</b>" in pages[KUHN].text
    assert "A text without a legal move: 2 more texts in the same turn, then a move is made for it." in pages[KUHN].text
    assert "window.hacked = 1" in json.dumps(transcripts(files))
    assert "</script><script>window" not in "".join(files.values())


def test_links_and_ids_of_pages_are_sound(files: Mapping[str, str]) -> None:
    for name, text in files.items():
        if not name.endswith(".html"):
            continue
        page = ReadPage(text)
        ids = [given for _, attributes in page.elements if (given := attributes.get("id"))]
        assert len(ids) == len(set(ids)), name
        root = "../" * name.count("/")
        for link in page.links:
            target = link.partition("#")[0].removeprefix(root)
            assert not target or target in files, f"{name} leads to {link}"


def test_of_many_episodes_the_extremes_of_each_player_and_the_games_on_which_models_differ_are_listed(
    kuhn: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(league_rows, "MAX_EPISODES", 60)
    view = games_view(kuhn)
    section = section_of(page_of(view).sections, "episodes")
    rows = table_of(section).rows
    assert len(rows) == 60
    played = pc.sum(pc.equal(kuhn["episodes"]["status"], "played")).as_py()
    assert section.answer.startswith(f"{played} episodes were played to the end; the list shows 60: ")
    for model in ("steady", HOSTILE.name, "baseline/nash"):
        label = model.replace("baseline/nash", "nash (baseline)")
        listed = [row["reward"] for row in rows if row["player"] == label]
        every = rewards_by_hand(kuhn, model).values()
        assert max(listed) == max(every), model
    own, other = (rewards_by_hand(kuhn, name) for name in ("steady", HOSTILE.name))
    differences = {game: abs(own[game] - other[game]) for game in own.keys() & other.keys()}
    games = [{row["player"] for row in rows if row["item_id"] == game} for game, size in differences.items() if size == 3]
    assert any({"steady", HOSTILE.name} <= players for players in games)


def test_of_many_episodes_a_forfeited_one_is_listed(kuhn: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a player whose rewards are the same with and without it, it was left out."""
    rows = kuhn["episodes"].to_pylist()
    own = sorted((row for row in rows if row["model"] == "baseline/nash"), key=lambda row: (row["reward"], row["episode_id"]))
    one = own[len(own) // 2]["episode_id"]
    episodes = pa.Table.from_pylist(
        [{**row, "forfeits": int(row["episode_id"] == one)} for row in rows], kuhn["episodes"].schema
    )
    n_extremes = 4 * len({(row["model"], row["persona"]) for row in rows})
    monkeypatch.setattr(league_rows, "MAX_EPISODES", n_extremes + 1)
    section = section_of(page_of(games_view(Tables({**kuhn, "episodes": episodes}))).sections, "episodes")
    assert one in {row["episode_id"] for row in table_of(section).rows}


def test_of_many_episodes_of_baselines_alone_a_sample_is_listed(kuhn: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(league_rows, "MAX_EPISODES", 60)
    alone = {name: rows.filter(pc.starts_with(rows["model"].cast(pa.string()), "baseline/")) for name, rows in kuhn.items()}
    section = section_of(page_of(games_view(alone)).sections, "episodes")
    assert section.answer.endswith("the list shows 60: the best and worst of each player, and a sample of the others.")
    items = sorted(set(alone["episodes"]["item_id"].to_pylist()))
    listed = {row["item_id"] for row in table_of(section).rows}
    assert listed & set(items[: len(items) // 2])
    assert listed & set(items[len(items) // 2 :])


def test_the_list_has_the_file_of_each_episode(files: Mapping[str, str]) -> None:
    """The page's script finds an episode by its place in the list."""
    for page in (KUHN, "games/scenarios/solitaire.thirteen.html"):
        (holder,) = [json.loads(one) for one in ReadPage(files[page]).scripts if one.startswith('{"files"')]
        ids, size = list(holder["games"]), holder["in_file"]
        for at, path in enumerate(holder["files"]):
            assert list(data_of(files[path])) == ids[at * size : (at + 1) * size]
        assert re.findall(r"#episode=([0-9a-f]+)", files[page]) == ids


def test_the_table_is_shown_for_a_scenario_that_plays_anothers_engine(kuhn: Tables) -> None:
    tables, manifest = Tables(), read_manifests(SCENARIOS)["poker/kuhn"]
    for name, rows in kuhn.items():
        renamed = pa.array(["kuhn2"] * len(rows)).cast(rows.schema.field("scenario").type)
        tables[name] = rows.set_column(rows.column_names.index("scenario"), rows.schema.field("scenario"), renamed)
    manifest = manifest.model_copy(update={"id": "poker/kuhn2", "adapter": "poker/kuhn"})
    assert all(
        one["moves"][0]["state"]["cards"] for one in episodes_of(games_view(tables, GameDocuments({manifest.id: manifest})))
    )


def test_episodes_of_another_version_or_of_no_known_scenario_are_shown_without_tables(kuhn: Tables) -> None:
    newer = {
        name: rows.set_column(rows.schema.get_field_index("version"), "version", pa.array([7] * len(rows), pa.int32()))
        for name, rows in kuhn.items()
    }
    for tables, known in ((newer, None), (kuhn, GameDocuments())):
        for one in episodes_of(games_view(tables, known)):
            assert one["unknown"] == "The table is not shown, because another version of the scenario is installed."
            assert not any("state" in move for move in one["moves"])
    rules = render_page(page_of(games_view(newer)), {"navigation": [], "made": ""})
    assert "is installed; these results are of version 7" in rules


def test_what_was_not_played_is_stated_with_its_reason(view: FamilyContent) -> None:
    (unplayed,) = view.data
    assert unplayed.answer == "3 episodes were not played to the end."
    assert {row["reason"] for row in table_of(unplayed).rows} == {"the budget of <i>steady</i> has ended"}


def test_a_model_of_two_variants_is_called_by_its_variant(kuhn: Tables) -> None:
    tables = Tables()
    for name, rows in kuhn.items():
        place = rows.schema.get_field_index("model")
        is_model = pc.is_in(rows["model"].cast(pa.string()), pa.array(["steady", HOSTILE.name]))
        one_name = pc.if_else(is_model, "same", rows["model"].cast(pa.string())).cast(rows.schema.field("model").type)
        tables[name] = rows.set_column(place, "model", one_name)
    view = games_view(tables)
    variants = set(pc.unique(kuhn["episodes"]["model_variant"]).to_pylist())
    names = {row.model for row in view.boards[0].rows if not row.is_reference}
    assert len(names) == 2
    assert names <= variants
    assert all(view.variants[name] == name for name in names)


def test_results_alone_and_other_odd_tables_make_pages(kuhn: Tables) -> None:
    alone = games_files({"persona_results": kuhn["persona_results"]})
    page = ReadPage(alone[KUHN]).text
    assert "Against each opponent" in page
    assert "0 episodes were played to the end" in page
    assert not games_files({"persona_results": kuhn["persona_results"].slice(0, 0)}).get(KUHN)


@pytest.mark.thorough
def test_equal_tables_give_equal_pages(kuhn: Tables) -> None:
    turned = {name: rows.take(pa.array(range(len(rows) - 1, -1, -1))) for name, rows in kuhn.items()}
    assert games_files(
        {name: convert_to_schema(rows.to_pandas(), rows.schema) for name, rows in turned.items()}
    ) == games_files(kuhn)


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
    assert split_text_parts(text, is_move=played) == parts


def test_names_in_tables_lead_no_page_out_of_its_folder_and_no_item_out_of_its_address(
    kuhn: Tables, kuhn_view: FamilyContent
) -> None:
    results = kuhn["persona_results"]
    place = results.schema.get_field_index("league")
    outside = pa.array(["../../x\"'><b>"] * len(results)).cast(results.schema.field("league").type)
    paths = list(games_files({"persona_results": results.set_column(place, "league", outside)}))
    assert all(re.fullmatch(r"[\w./-]+", path) and ".." not in path for path in paths)
    pages = kuhn_view.item_scores["page"]
    assert pages.str.fullmatch(r"games/scenarios/poker\.kuhn\.html#game=[\w%.-]+(&as=[\w%.-]+)?").all()


def test_a_seat_that_has_a_result_has_a_name_where_only_the_other_one_moved(kuhn: Tables) -> None:
    """The site stopped at the page of a scenario that is not installed any more."""
    rows = kuhn["episodes"]
    played = [decode_trace(text) for text in rows["trace"].to_pylist()]
    of_one = [encode_trace(replace(one, moves=tuple(move for move in one.moves if move.seat == 0))) for one in played]
    column = rows.schema.get_field_index("trace")
    turned = rows.set_column(column, rows.schema.field(column), pa.array(of_one, rows.schema.field(column).type))
    page = page_of(games_view({**kuhn, "episodes": turned}, GameDocuments()))
    assert "seat 1 (" in render_page(page, {"navigation": [], "made": ""})
