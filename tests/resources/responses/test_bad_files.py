"""Bad files of responses: named with their line, what arrived and what is allowed, and nothing of them is added."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dtef_pipeline.errors import ConfigError, StoreError
from resources.responses import files as response_files
from resources.responses.files import ImportResult, export_responses, import_responses
from resources.responses.store import RESPONSES, ResponseStore
from tests.made.responses import stored
from tests.resources.responses.file_rows import line, response

BAD_LINES = [
    ("{", r":3: not JSON \(.*\); allowed: one JSON object per line"),
    ("[" * 100_000, r":3: not JSON"),
    ("[1]", r":3: got \[1\]; allowed: an object with the columns request_key, prompt_id, "),
    (line(colour="red"), r":3: unknown column colour; allowed: request_key, prompt_id"),
    (line(text=None), r":3: text: got None; allowed: text$"),
    (line(draw=1.0), r":3: draw: got 1\.0; allowed: a whole number from 0 to 2147483647$"),
    (line(draw=True), r":3: draw: got True; allowed: a whole number"),
    (line(prompt_tokens=2**31), r":3: prompt_tokens: got 2147483648; allowed: .* or null"),
    (line(cost_usd="1"), r":3: cost_usd: got '1'; allowed: a number from 0 to 1e\+15 or null"),
    (line(cost_usd=float("nan")), r":3: cost_usd: got nan"),
    (line(latency_s=10**400), r":3: latency_s: got 10{10}"),
    (line(answered_at="yesterday"), r":3: answered_at: got 'yesterday'; allowed: a time with its zone, such as 2026-"),
    (line(answered_at="2026-01-02T03:04:05"), r":3: answered_at: got '2026-01-02T03:04:05'; allowed: a time with"),
    (line(answered_at="0001-01-01T00:00:00+14:00"), r":3: answered_at: got '0001"),
    (line(prompt_id="p1"), r":3: prompt_id: got 'p1'; allowed: 32 hexadecimal digits"),
    (
        line(snapshot="night"),
        r":3: request_key: got [0-9a-f]{32}; allowed: the hash of \(prompt_id, model_variant, draw,",
    ),
    (line(snapshot="\ud800"), r":3: request_key: got [0-9a-f]{32}; allowed: .* half character"),
]
OPTIONAL = (
    *("finish_reason", "served_model", "fingerprint", "prompt_tokens", "completion_tokens", "cost_usd", "reported_cost_usd"),
    *("cached_tokens", "reasoning_tokens", "unknown_cost_attempts", "unknown_cost_usd_most", "reasoning", "role", "host"),
)


class TestBadFiles:
    """Error cases: where, what arrived, what is allowed; and nothing is added."""

    def refused(self, store: ResponseStore, file: Path, message: str) -> None:
        with pytest.raises(StoreError, match=message):
            import_responses(store, file)
        assert stored(store) == 0

    def test_a_bad_line_is_named_and_nothing_of_the_file_is_added(self, elsewhere: ResponseStore, tmp_path: Path) -> None:
        file = tmp_path / "responses.jsonl"
        for bad, message in BAD_LINES:
            file.write_text(f"{line()}\n\n{bad}\n", encoding="utf-8")
            self.refused(elsewhere, file, rf"responses\.jsonl{message}")

    def test_columns_that_may_be_null_may_be_absent_and_no_others(self, elsewhere: ResponseStore, tmp_path: Path) -> None:
        file = tmp_path / "responses.jsonl"
        needed = [name for name in RESPONSES.names if name not in OPTIONAL]
        for name in needed:
            file.write_text(
                json.dumps({key: value for key, value in json.loads(line()).items() if key != name}), encoding="utf-8"
            )
            self.refused(elsewhere, file, rf"responses\.jsonl:1: {name}: got no such column; allowed: ")
        file.write_text(json.dumps({name: json.loads(line())[name] for name in needed}), encoding="utf-8")
        assert import_responses(elsewhere, file) == ImportResult(1, 0)

    def test_a_bad_row_on_a_later_page_is_found_before_anything_is_added(
        self, elsewhere: ResponseStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(response_files, "PAGE", 4)
        rows = [asdict(response(number)) for number in range(10)]
        rows[8]["request_key"] = rows[7]["request_key"]
        file = tmp_path / "responses.parquet"
        pq.write_table(pa.Table.from_pylist(rows, RESPONSES), file)
        self.refused(elsewhere, file, r"responses\.parquet: row 9: request_key: got ")

    @pytest.mark.parametrize("suffix", [".parquet", ".jsonl.gz"])
    def test_a_damaged_file_is_an_error(self, elsewhere: ResponseStore, tmp_path: Path, suffix: str) -> None:
        file = tmp_path / f"responses{suffix}"
        with ResponseStore(tmp_path / "full.sqlite") as full:
            full.add([response(1)])
            export_responses(full, file)
        for damaged in (file.read_bytes()[:-20], b"nothing of the kind"):
            file.write_bytes(damaged)
            self.refused(elsewhere, file, rf"responses\{suffix}: cannot be read: ")

    def test_a_file_that_is_not_there_is_an_error(self, elsewhere: ResponseStore, tmp_path: Path) -> None:
        self.refused(elsewhere, tmp_path / "responses.jsonl", r"responses\.jsonl: cannot be read: ")

    @pytest.mark.parametrize("use", [export_responses, import_responses])
    def test_another_kind_of_file_is_an_error_that_lists_the_kinds(
        self, elsewhere: ResponseStore, tmp_path: Path, use: Callable[[ResponseStore, Path], object]
    ) -> None:
        with pytest.raises(ConfigError, match=r"responses\.csv: a file of responses ends in \.parquet, \.jsonl, \.jsonl\.gz"):
            use(elsewhere, tmp_path / "responses.csv")
