"""Scenario packs that lack a part are told of, each part by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games import pack_files, packs
from dtef_pipeline.games.contract import Count, GameResult
from dtef_pipeline.games.episode_items import truth_id
from dtef_pipeline.games.manifest import ScenarioManifest, read_manifest
from dtef_pipeline.games.pack_files import check_packs, check_trial_game
from dtef_pipeline.games.packs import MakeScenario, pack
from tests.conftest import ROOT
from tests.made.made_games import ShowCards, show_pack

NAME = "made/show-cards"
MANIFEST = "data/scenarios/made/show-cards.yaml"
PLAYBOOK = "docs/scenarios/show-cards.md"
TESTED = "tests/deep/test_show_cards.py"


def fails(_: ScenarioManifest) -> ShowCards:
    raise ModuleNotFoundError("No module named 'engine'")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one whole pack."""
    adapt(monkeypatch, lambda _: ShowCards())
    manifest = yaml.safe_dump(show_pack().manifest.model_dump(), sort_keys=False)
    for name, text in {MANIFEST: manifest, PLAYBOOK: "# Show cards\n", TESTED: "def test_it(): ...\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def adapt(monkeypatch: pytest.MonkeyPatch, maker: MakeScenario | None) -> None:
    for module in (packs, pack_files):
        monkeypatch.setattr(module, "adapters", lambda: {NAME: maker} if maker else {})


def faults(checkout: Path) -> list[str]:
    (one,) = check_packs(checkout)
    return one.faults


def change(checkout: Path, old: str, new: str) -> None:
    path = checkout / MANIFEST
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_a_whole_pack_has_no_faults(checkout: Path) -> None:
    assert faults(checkout) == []


def test_a_manifest_may_stand_outside_the_data(checkout: Path) -> None:
    (checkout / "data" / "scenarios").rename(checkout / "scenarios")
    assert faults(checkout) == []


def test_a_pack_without_a_manifest_is_known_by_its_entry_point(checkout: Path) -> None:
    (checkout / MANIFEST).unlink()
    (checkout / "pyproject.toml").write_text(f'[project.entry-points."dtef.scenarios"]\n"{NAME}" = "made:of_manifest"\n')
    (one,) = check_packs(checkout)
    assert (one.name, one.faults) == (NAME, ["the manifest is missing: data/scenarios/made/show-cards.yaml"])


def test_a_pack_without_an_adapter_is_not_whole(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapt(monkeypatch, None)
    assert faults(checkout) == [f"the adapter is missing: an entry point {NAME} in the group dtef.scenarios"]
    (checkout / "pyproject.toml").write_text(f'[project.entry-points."dtef.scenarios"]\n"{NAME}" = "made:of_manifest"\n')
    assert faults(checkout)[0].endswith("pyproject.toml names made:of_manifest: install the package again")


def test_a_copy_of_a_manifest_under_another_id_is_refused_with_what_to_do() -> None:
    copy = show_pack().manifest.model_copy(update={"id": "made/copy"})
    with pytest.raises(ConfigError, match=r"made/copy: no adapter made/copy; .*`adapter` in the manifest"):
        pack(copy.id, {copy.id: copy})


def test_a_manifest_may_name_the_engine_of_another_scenario(checkout: Path) -> None:
    """Regression: a second scenario on an engine needed a Python package of one's own."""
    text = (checkout / MANIFEST).read_text(encoding="utf-8").replace(f"id: {NAME}", f"id: made/late-cards\nadapter: {NAME}")
    own = checkout / "own" / "made" / "late-cards.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(text.replace("adapter: null\n", ""), encoding="utf-8")
    found = {one.name: one.faults for one in check_packs(checkout, checkout / "own")}
    assert found == {NAME: [], "made/late-cards": []}


def test_three_parties_divide_items_in_a_scenario_of_ones_own() -> None:
    allocation = read_manifest(ROOT / "data/scenarios/negotiation/allocation.yaml")
    given = {"id": "negotiation/three-way", "adapter": allocation.id, "seats": ["A", "B", "C"]}
    own = allocation.model_copy(update=given)
    made = pack(own.id, {own.id: own})
    assert (made.name, made.scenario.name, made.scenario.seats) == (own.id, own.id, ("A", "B", "C"))
    assert list(check_trial_game(made)) == []
    assert truth_id(allocation.model_copy(update={"adapter": allocation.id})) == truth_id(allocation)


def test_an_adapter_that_cannot_be_used_is_reported(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapt(monkeypatch, fails)
    assert faults(checkout) == [f"scenario {NAME}: its adapter cannot be used: ModuleNotFoundError: No module named 'engine'"]


def test_an_adapter_that_lacks_names_of_the_contract_is_reported(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: it was whole, and then failed as a fault of this project."""
    less = {name: one for name, one in vars(ShowCards).items() if name not in ("ending", "encode_state", "permute_hidden")}
    adapt(monkeypatch, lambda _: type("LessCards", (), less)())
    assert faults(checkout) == [
        f"scenario {NAME}: its adapter makes a scenario without ending, encode_state, permute_hidden: "
        "see dtef_pipeline/games/contract.py"
    ]


@pytest.mark.parametrize(
    ("name", "does", "told"),
    [
        ("ending", lambda *_: 1 / 0, "its adapter fails when baseline/random plays seed 1, in turn "),
        ("permute_hidden", lambda self, state, seat, rng: self.reset(8), "`permute_hidden` changes what the seat sees"),
        ("measure_seat", lambda *_: {"luck": Count(1)}, "`measure_seat` counts luck"),
        ("encode_state", lambda *_: {"cards": {1, 2}}, "TypeError: Object of type set is not JSON serializable"),
        ("read", lambda *_: None, "NoneType; allowed: a command, or Illegal"),
        ("stop_episode", lambda *_: GameResult((0.0,), ("draw",)), "2 rewards and outcomes"),
        ("result", lambda self, state: None, "an episode is over for `seat_to_move`"),
    ],
)
def test_an_adapter_is_tried_with_a_whole_episode(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, name: str, does: Any, told: str
) -> None:
    adapt(monkeypatch, lambda _: type("OddCards", (ShowCards,), {name: does})())
    (fault,) = faults(checkout)
    assert told in fault


def test_a_pack_without_tests_is_not_whole(checkout: Path) -> None:
    (checkout / TESTED).unlink()
    assert faults(checkout) == [f"tests are missing: tests/**/test_show_cards*.py, or a test file that names {NAME}"]
    (checkout / "tests" / "test_cards.py").write_text(f'NAME = "{NAME}"\n')
    assert faults(checkout) == []


@pytest.mark.parametrize("text", [None, " \n"])
def test_a_pack_without_a_playbook_is_not_whole(checkout: Path, text: str | None) -> None:
    (checkout / PLAYBOOK).unlink()
    if text:
        (checkout / PLAYBOOK).write_text(text)
    assert faults(checkout) == [f"the playbook is missing: {PLAYBOOK}"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("turn_limit: 8", "turn_limits: 8", "turn_limits: unknown key; known: id, version"),
        ("id: made/show-cards", "id: made/hide-cards", "got made/hide-cards; allowed: made/show-cards"),
        ("seats:\n- A\n- B", "seats: [A]", "its adapter has 2 seats, but its manifest has 1; allowed: equal"),
        ("- careful", "- carefull", "its manifest names the opponent carefull; allowed: "),
        ("seats:\n- A\n- B", "seats: [A, A]", "seats: got A, A; allowed: each once"),
        ("opponents:\n- careful", "opponents: []", "for 2 seats; allowed: one or more of random, first-legal"),
        ("algorithmic: {}", "algorithmic: {nope: 1}", "evaluation, algorithmic: nope: not a metric of the scenario"),
        ("algorithmic: {}", "algorithmic: {expected_return: 1}", "expected_return has no bounds (unit: points)"),
        ("algorithmic: {}", "algorithmic: {show_rate: 1}", "show_rate has no better"),
        (
            "severities: {}",
            "severities: {odd: high}",
            "severities: odd: not a flag of the scenario; allowed: forfeit, turn_limit",
        ),
    ],
)
def test_a_manifest_with_a_fault_is_reported(checkout: Path, old: str, new: str, told: str) -> None:
    change(checkout, old, new)
    (fault,) = faults(checkout)
    assert told in fault


def test_a_folder_without_scenarios_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no scenario; allowed: a folder with data/scenarios/<league>/<scenario>.yaml"):
        check_packs(tmp_path)


def test_every_shipped_scenario_is_whole() -> None:
    found = check_packs(ROOT)
    assert len(found) >= 5
    assert {one.name: one.faults for one in found if one.faults} == {}
