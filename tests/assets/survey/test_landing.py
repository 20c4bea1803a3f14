"""The `new_round` sensor: when a landed round is started, how a change is reported, what becomes stale, and what happens to broken ones."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.definitions import defs
from assets.stage.dagster_internals import RANGE_END, RANGE_START
from assets.stage.resources import Store
from assets.survey.landing import CHANGED_TAG, new_round
from assets.survey.landing import Landing as Tick
from assets.survey.rounds import register_round, sources_of, survey_files
from dtef_pipeline.survey.adapters import read_survey
from resources.sources import Sources
from tests.assets.conftest import COUNTRIES, Pipeline
from tests.assets.family_state import STAGE_NAMES
from tests.assets.survey.landing_folder import Landing

A1 = [f"A1/country:{country.lower()}" for country in COUNTRIES]


class TestWhenItStarts:
    def test_what_is_still_changing_is_not_started(self, landing: Landing) -> None:
        for questions in (1, 2, 3):
            landing.land("a.csv", ["A1"], questions=questions)
            assert landing.requests() == []
            assert "waiting until it stops changing: a.csv" in str(landing.reason)
        assert landing.pipeline.keys == []

    def test_bytes_that_change_under_the_same_size_and_time_are_still_changing(self, landing: Landing) -> None:
        """A copy into a file of its final size keeps the size, and one that restores times keeps those too."""
        file = landing.land("a.csv", ["A1"])
        landing.look()
        before, text = file.stat(), file.read_text(encoding="utf-8")
        file.write_text(text.replace("Chile", "Ghana"), encoding="utf-8")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert landing.settled()[0].tags[RANGE_START] == "A1/country:ghana"

    def test_a_file_under_the_name_of_an_unfinished_copy_holds_its_folder_back(
        self, landing: Landing, real_surveys: Path
    ) -> None:
        shutil.copytree(real_surveys / "global-dialogues" / "GD1", landing.folder / "GD1")
        part = landing.folder / "GD1" / "more.csv.part"
        part.write_text("", encoding="utf-8")
        assert [landing.requests() for _ in range(3)] == [[], [], []]
        part.unlink()
        assert landing.settled()[0].tags[RANGE_START].startswith("GD1/")

    def test_a_stable_round_registers_its_partitions_sorted_and_asks_for_one_run(self, landing: Landing) -> None:
        landing.land("a.csv", ["A1"])
        (request,) = landing.settled()
        assert landing.pipeline.keys == A1
        assert (request.tags[RANGE_START], request.tags[RANGE_END]) == (A1[0], A1[-1])
        assert request.tags[CHANGED_TAG] == "new"

    def test_no_folder_is_a_reason_to_skip(self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DTEF_SURVEYS", "/nowhere/at/all")
        result = new_round(dg.build_sensor_context(instance=pipeline.instance, definitions=defs), store=Store())
        assert isinstance(result, dg.SkipReason)
        assert "/nowhere/at/all" in str(result.skip_message)


class TestManyAtOnce:
    """A tick that Dagster ends after its 60 s loses its cursor, and used to begin with the same rounds each time."""

    def tick(self, landing: Landing, *, step: float) -> tuple[Tick, list[str]]:
        """One tick by a clock that goes on by `step` seconds whenever it is read."""
        context = dg.build_sensor_context(instance=landing.pipeline.instance, cursor=landing.cursor, definitions=defs)
        tick = Tick(context, sources_of(Store()), landing.folder, itertools.count(100.0, step).__next__)
        keys = [request.tags[RANGE_START] for request in tick.requests()]
        landing.cursor = tick.cursor
        return tick, keys

    def test_a_tick_begins_no_further_round_when_its_time_is_up_and_the_next_goes_on(self, landing: Landing) -> None:
        for name in "abc":
            landing.land(f"{name}.csv", [f"{name.upper()}1"], questions=1)
        landing.look()
        # The first is begun without a look at the clock; b.csv is read after 9 s and its round begun after 18 s.
        first, keys = self.tick(landing, step=9.0)
        assert keys == ["A1/country:chile", "B1/country:chile"]
        assert first.left == ["c.csv"]
        assert (first.now["c.csv"].stable, first.now["c.csv"].done) == (True, False)
        assert {key.split("/")[0] for key in landing.pipeline.keys} == {"A1", "B1"}
        assert self.tick(landing, step=9.0)[1] == ["C1/country:chile"]
        assert self.tick(landing, step=9.0)[1] == []

    def test_each_tick_gets_further_however_slow_it_is_within_one_file_too(self, landing: Landing) -> None:
        landing.land("all.csv", ["A1", "B1", "C1"], questions=1)
        landing.look()
        looks = [self.tick(landing, step=100.0) for _ in range(4)]
        assert [keys for _, keys in looks] == [["A1/country:chile"], ["B1/country:chile"], ["C1/country:chile"], []]
        assert looks[0][0].left == ["B1 from all.csv", "C1 from all.csv"]
        assert [tick.now["all.csv"].done for tick, _ in looks] == [False, False, True, True]


class TestOnceOnly:
    def test_unchanged_bytes_do_nothing_and_are_not_read_again(self, landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
        landing.land("a.csv", ["A1"])
        landing.settled()
        monkeypatch.setattr("assets.survey.landing.content_hash", lambda path: pytest.fail("read again"))
        monkeypatch.setattr("assets.survey.landing.read_surveys", lambda path: pytest.fail("read again"))
        assert [landing.requests() for _ in range(3)] == [[], [], []]

    def test_what_a_killed_daemon_did_not_start_is_asked_for_again_under_the_same_key(self, landing: Landing) -> None:
        """The round was registered, then the daemon died: the sensor used to see a registered round and never start its run."""
        landing.land("a.csv", ["A1"])
        landing.look()
        saved = landing.cursor
        (lost,) = landing.requests()
        landing.cursor = saved
        (again,) = landing.requests()
        assert (again.run_key, again.tags[RANGE_END]) == (lost.run_key, lost.tags[RANGE_END])

    def test_what_was_ingested_by_hand_is_not_run_again_but_its_change_is(self, landing: Landing) -> None:
        landing.pipeline.register(landing.land("a.csv", ["A1"]))
        assert landing.settled() == []
        landing.land("a.csv", ["A1"], questions=1)
        assert len(landing.settled()) == 1

    def test_earlier_bytes_that_come_back_are_run_again(self, landing: Landing) -> None:
        """Dagster starts a run key once; the key of the restored folder used to be that of its first landing."""
        keys = []
        for questions in (3, 5, 3):
            landing.land("a.csv", ["A1"], questions=questions)
            keys += [request.run_key for request in landing.settled()]
        assert len(set(keys)) == 3


class TestBroken:
    def test_it_is_reported_once_and_again_when_it_is_broken_otherwise_and_the_others_go_on(
        self, landing: Landing, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        def errors() -> list[str]:
            landing.look()
            return [line for line in capfd.readouterr().err.splitlines() if "ERROR" in line]

        (landing.folder / "broken.csv").write_text("a,b\n1,2\n", encoding="utf-8")
        landing.land("good.csv", ["A1"])
        (landing.folder / ".partial").write_text("hidden", encoding="utf-8")
        assert errors() == []
        (first,) = errors()
        assert "broken.csv" in first
        assert landing.pipeline.keys == A1
        assert errors() == errors() == []
        assert "cannot be used: broken.csv: " in str(landing.reason)
        (landing.folder / "broken.csv").write_text("a,b\n1,3\n", encoding="utf-8")
        assert errors() == []
        assert len(errors()) == 1
        (landing.folder / "broken.csv").unlink()
        (landing.folder / "hollow").mkdir()
        assert (errors(), len(errors()), errors()) == ([], 1, [])
        assert "an empty directory" in str(landing.reason), "at every tick, not only in the first error"
        (landing.folder / "hollow").rmdir()
        assert errors() == []
        assert "cannot be used" not in str(landing.reason)

    def test_a_fault_of_the_disk_is_tried_again(self, landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
        landing.land("a.csv", ["A1"])
        with monkeypatch.context() as patch:
            patch.setattr(Sources, "register", lambda *a, **k: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            assert landing.settled() == []
            assert "No space left on device" in str(landing.reason)
        assert len(landing.requests()) == 1

    def test_one_unusable_round_of_a_file_leaves_the_others(self, landing: Landing) -> None:
        small, good = landing.land("b.csv", ["B1"], n=3), landing.land("a.csv", ["A1"])
        lines = small.read_text(encoding="utf-8").splitlines()[1:]
        good.write_text(good.read_text(encoding="utf-8") + "\n".join(lines) + "\n", encoding="utf-8")
        small.unlink()
        assert [request.tags[RANGE_START] for request in landing.settled()] == [A1[0]]
        assert landing.requests() == []
        assert "no (segment, question) pair can be used" in str(landing.reason)


def test_of_two_sources_of_a_round_the_first_is_used_and_the_other_takes_over_when_it_goes(landing: Landing) -> None:
    """Each used to count as a change of the other, so that the round was run forever."""
    landing.land("a.csv", ["A1"])
    landing.land("b.csv", ["A1", "B1"], questions=2)
    assert [request.tags[RANGE_START] for request in landing.settled()] == ["A1/country:chile", "B1/country:chile"]
    for _ in range(3):
        assert landing.requests() == []
    assert "b.csv: round A1 is read from a.csv, not from here: remove one of the two" in str(landing.reason)
    (landing.folder / "a.csv").unlink()
    assert "A1/country:chile" in [request.tags[RANGE_START] for request in landing.requests()]
    source = Sources(landing.pipeline.house, read_survey).get("A1")
    assert source is not None
    assert Path(source.path).name == "b.csv"
    assert landing.requests() == []


class TestWhatChanged:
    def test_a_change_is_stated_in_counts_and_names_and_makes_only_what_it_touches_stale(
        self, landing: Landing, capfd: pytest.CaptureFixture[str]
    ) -> None:
        file = landing.land("a.csv", ["A1"])
        text = file.read_text(encoding="utf-8")
        # Kenya was not asked q2: what others answer to it changes no row of Kenya's.
        file.write_text("".join(line for line in text.splitlines(True) if not ("q2" in line and "Kenya" in line)), "utf-8")
        landing.run(*landing.settled())
        changed = file.read_text(encoding="utf-8").splitlines(True)
        of_chile = [i for i, line in enumerate(changed) if "q2" in line and "Chile" in line]
        changed[of_chile[0]], changed[of_chile[1]] = (
            changed[of_chile[place]].replace(f",{old}\n", f",{new}\n").replace(f",{old}\r\n", f",{new}\r\n")
            for place, old, new in ((0, 52, 42), (1, 30, 40))
        )
        file.write_text("".join(changed), encoding="utf-8", newline="")
        capfd.readouterr()
        (request,) = landing.settled()
        assert request.tags[CHANGED_TAG] == "1 distribution changed"
        assert "A1 from a.csv, 3 segments: 1 distribution changed (country:chile q2)" in capfd.readouterr().err
        # India's row of q2 holds what the others answered, and so does change.
        touched = {"A1/country:chile", "A1/country:india"}
        assert landing.pipeline.stale() == {"survey_responses": touched}
        observed = landing.pipeline.instance.fetch_observations(
            dg.AssetRecordsFilter(asset_key=survey_files.key, asset_partitions=["A1/country:chile"]), limit=1
        ).records[0]
        assert observed.asset_observation is not None
        assert observed.asset_observation.metadata["changed"].value == "1 distribution changed (country:chile q2)"
        landing.pipeline.run(STAGE_NAMES[:1])
        assert landing.pipeline.stale() == {"blueprints": touched}
        landing.run(request)
        assert landing.pipeline.stale() == {}

    def test_a_segment_that_is_gone_is_an_error_of_its_round_until_someone_takes_it_so_by_hand(self, landing: Landing) -> None:
        """A file cut by a faulty copy took partitions away; see also what `dtef add` does of it."""
        file = landing.land("a.csv", ["A1"])
        landing.settled()
        landing.pipeline.run(STAGE_NAMES[:1])
        text = file.read_text(encoding="utf-8")
        file.write_text("".join(line for line in text.splitlines(True) if "India" not in line), encoding="utf-8")
        assert landing.settled() == []
        assert "1 segment dropped (country:india)" in str(landing.reason)
        assert A1[1] in landing.pipeline.keys
        by_hand = Sources(landing.pipeline.house, read_survey)
        made = register_round(landing.pipeline.instance, by_hand, read_survey(file), file, min_n=10, replace=True)
        assert made.retired == [A1[1]]
        assert landing.requests() == []
        assert "would lose" not in str(landing.reason)
        assert landing.pipeline.house.values("survey_responses", "segment", round="A1") == ["country:chile", "country:kenya"]


class TestCheck:
    """The check `landings_can_be_read`, which makes a broken landing visible where one looks for what is red."""

    def said(self, result: Any) -> tuple[bool, str, list[str]]:
        (found,) = result.asset_events
        assert (found.asset_key, found.severity) == (survey_files.key, dg.AssetCheckSeverity.WARN)
        return found.passed, found.description, sorted(found.metadata)

    def test_it_is_made_by_the_sensor_when_what_cannot_be_read_changes(self, landing: Landing) -> None:
        landing.land("a.csv", ["A1"], questions=1)
        assert self.said(landing.look()) == (True, "all 1 can be read", [])
        assert not landing.look().asset_events
        (landing.folder / "notes.txt").write_text("call me", encoding="utf-8")
        assert not landing.look().asset_events
        passed, description, files = self.said(landing.look())
        assert (passed, files) == (False, ["notes.txt"])
        assert "1 of 2" in description
        assert not landing.look().asset_events
        (landing.folder / "notes.txt").unlink()
        assert self.said(landing.look())[0]
