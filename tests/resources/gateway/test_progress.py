"""What a person sees of a run: bars on a terminal, sparse lines elsewhere, counts of the whole run over its windows."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
from dataclasses import replace

import pytest

from resources.gateway.progress import (
    ModelProgress,
    ModelsProgress,
    PartsProgress,
    RunProgress,
    display_progress,
    keep_terminal,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_logged_progress_is_sparse_and_says_when_a_model_is_finished() -> None:
    lines: list[str] = []
    now = iter(range(0, 1000, 4))
    progress = ModelsProgress(lines.append, every=10, clock=lambda: next(now))
    for done in range(11):
        progress((ModelProgress("m", total=12, replayed=1, done=done, failed=1 if done == 10 else 0),))
    assert 3 <= len(lines) <= 6
    assert lines[-1] == "m 12/12, 1 cached, 1 failed"


def test_a_progress_line_says_stage_count_rate_cost_and_time_left() -> None:
    lines: list[str] = []
    busy = ModelProgress("m", 900, 40, 110, 2, rate=3.46, rate_limited=12, cost_usd=0.4211, seconds_left=13_000)
    ModelsProgress(lines.append, "predictions", every=0)((busy,))
    ModelsProgress(lines.append, every=0)((replace(busy, cost_usd=None, seconds_left=40),))
    for rate in (0.2, 0.02, 0.0001):
        ModelsProgress(lines.append, every=0)((replace(busy, rate=rate, rate_limited=0, cost_usd=0.0, seconds_left=None),))
    assert [line.rpartition(", ")[2] for line in lines[2:]] == ["12/min", "1.2/min", "0.006/min"], "0.0/s says nothing"
    assert lines[:2] == [
        "predictions: m 152/900, 40 cached, 2 failed, 208/min, 12 rate limits, $0.42, 3 h 37 min left",
        "m 152/900, 40 cached, 2 failed, 208/min, 12 rate limits, cost unknown, 40 s left",
    ]


def test_a_stage_says_now_and_then_how_many_partitions_are_done() -> None:
    """Baselines of many rounds took minutes without a word."""
    log, now = list[str](), [0.0]
    progress = PartsProgress("predictions: partitions", 2_000, log.append, every=30, clock=lambda: now[0])
    for now[0], done in ((10, 250), (31, 500), (45, 900), (62, 1_000)):
        progress(done)
    progress.close()
    assert log == ["predictions: partitions 500/2,000, 31 s", "predictions: partitions 1,000/2,000, 62 s"]


def test_without_a_terminal_a_command_says_which_stage_and_roll_up_it_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a log a run of baselines said nothing for 105 seconds."""
    errors, log = io.StringIO(), list[str]()
    monkeypatch.setattr("resources.gateway.progress._errors", errors)
    PartsProgress("predict (stage 3 of 6): partitions", 52, log.append).announce("predict (stage 3 of 6): 52 partitions")
    now = [0.0]
    roll_ups = PartsProgress("roll-ups:", 9, log.append, clock=lambda: now[0])
    for number, (now[0], part) in enumerate(((1.0, "leaderboard"), (40.0, "breakdowns"), (41.0, "gaps")), 1):
        roll_ups(number, part)
    assert log == ["roll-ups: 2/9, breakdowns, 40 s"]
    assert errors.getvalue().splitlines() == ["predict (stage 3 of 6): 52 partitions", *log]
    shown = Terminal()
    monkeypatch.setattr("resources.gateway.progress._errors", shown)
    PartsProgress("predictions: partitions", 52, log.append).announce("stage 3 of 6")
    assert shown.getvalue() == "", "the bar says it"


def lines_of(terminal: Terminal) -> list[str]:
    """What is written to a terminal, without colours and moves."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).replace("\r", "\n").split("\n")


def test_a_bar_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, now = Terminal(), [0.0]
    monkeypatch.setattr("resources.gateway.progress._errors", shown)
    monkeypatch.setenv("COLUMNS", "60")
    progress = PartsProgress("segment_results (stage 5 of 6): partitions", 152, print, clock=lambda: now[0])
    now[0] += 10
    progress(76)
    progress.close()
    assert max(map(len, lines_of(shown))) <= 60
    assert any("segment_results (stage 5 of 6): partitions 76" in line for line in lines_of(shown))


def test_the_bars_of_a_stage_and_of_models_are_shown_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar stood at 186/186 while the tables were written."""
    shown, now = Terminal(), [0.0]
    monkeypatch.setattr("resources.gateway.progress._errors", shown)
    progress = PartsProgress("predictions: partitions", 4, lambda line: None, clock=lambda: now[0])
    now[0] = 8.0
    progress(1)
    with display_progress(lambda line: None) as models:
        models((ModelProgress("mini [/b]", 9, 0, 9, 0),))
        models.say("mini is given up")
        now[0] = 10.0
        progress(3)
        assert progress._bars
        progress._bars.refresh()
    progress.close()
    lines = lines_of(shown)
    assert any("predictions: partitions 1/4, 8 s" in line for line in lines)
    assert any("predictions: partitions 3/4, 10 s" in line for line in lines)
    assert any("mini is given up" in line for line in lines)
    *_, last = (line for line in lines if line.strip())
    assert "mini [/b] 9/9, 0 cached, 0 failed" in last, "the bar of the model is there at the end"
    assert shown.getvalue().rstrip().endswith("\x1b[?25h"), "the cursor is there again"


def test_a_command_that_is_interrupted_leaves_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, terminal = pty.openpty()
    with os.fdopen(leader, "rb"), os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with keep_terminal():
            progress = PartsProgress("predictions: partitions", 4, lambda line: None)
            progress(1)
            assert progress._bars
            assert progress._bars.live.is_started
    assert not progress._bars.live.is_started


def test_stderr_of_a_command_is_kept_for_the_length_of_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    log: list[str] = []
    with keep_terminal(), display_progress(log.append, every=0) as progress:
        progress((ModelProgress("mini", 9, 0, 1, 0),))
        progress.say("mini is given up")
    assert log == ["mini 1/9, 0 cached, 0 failed", "mini is given up"]
    assert capfd.readouterr().err.splitlines() == log
    with display_progress(lambda line: None) as progress:
        progress.say("nobody's command")
    assert capfd.readouterr().err == ""


def test_windows_of_a_run_add_up_to_what_the_run_expects() -> None:
    seen: list[tuple[ModelProgress, ...]] = []
    progress = RunProgress(seen.append, {"m": 10})
    progress((ModelProgress("m", total=4, replayed=1, done=2, failed=0, rate=2.0),))
    progress((ModelProgress("m", total=4, replayed=1, done=3, failed=0, rate=2.0),))
    progress.window_done()
    progress((ModelProgress("m", total=6, replayed=0, done=1, failed=1), ModelProgress("n", 3, 0, 1, 0)))
    first, _, last = (counts[0] for counts in seen)
    assert (first.total, first.settled, first.seconds_left) == (10, 3, pytest.approx(3.5))
    assert (last.total, last.replayed, last.done, last.failed, last.seconds_left) == (10, 1, 4, 1, None)
    assert (seen[-1][1].model, seen[-1][1].total) == ("n", 3)


def test_a_model_that_was_finished_is_reported_of_again_when_more_follows() -> None:
    """A league said `20 of 20` after the first turn, and nothing more for an hour."""
    lines: list[str] = []
    progress = RunProgress(ModelsProgress(lines.append, every=0), {"m": 2})
    progress.is_open = True
    for total, done in ((2, 2), (2, 2), (4, 3)):
        progress((ModelProgress("m", total=total, replayed=0, done=done, failed=0, rate=1.0),))
    assert lines == ["m 2/2, 0 cached, 0 failed, 60/min", "m 3/4, 0 cached, 0 failed, 60/min"]
