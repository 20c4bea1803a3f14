"""Files of responses: a store arrives whole, a second time nothing is added, and other programs read and write them."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtef_pipeline.asking.request import ROLES, Response
from dtef_pipeline.errors import ConfigError, StoreError
from dtef_pipeline.identity import request_key
from resources.responses import files as response_files
from resources.responses import store as response_store
from resources.responses.files import SUFFIXES, ImportResult, export_responses, import_responses
from resources.responses.store import RESPONSES, ResponseStore
from tests.made.responses import response as unhashed
from tests.made.responses import stored


def response(number: int, **changed: object) -> Response:
    """A response under the key of what it answers."""
    one = unhashed(number, **changed)
    return replace(one, request_key=request_key(one.prompt_id, one.model_variant, one.draw, one.snapshot))


def contents(store: ResponseStore) -> list[dict[str, Any]]:
    return [row for page in store.pages() for row in page.to_pylist()]


def line(**changed: object) -> str:
    row = asdict(response(1)) | {"answered_at": "2026-01-02T03:04:05.678901+00:00"} | changed
    return json.dumps(row)


every_kind = pytest.mark.parametrize("suffix", SUFFIXES)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
COUNT, AMOUNT = st.integers(0, 2**31 - 1), st.floats(0, 1e15)
ANY_VALUES = st.fixed_dictionaries(
    {
        **dict.fromkeys(("model", "model_variant", "snapshot", "text"), TEXT),
        **dict.fromkeys(("finish_reason", "served_model", "fingerprint", "reasoning"), st.none() | TEXT),
        **dict.fromkeys(("prompt_tokens", "completion_tokens"), st.none() | COUNT),
        "draw": COUNT,
        "attempts": st.integers(0, 100),
        "cost_usd": st.none() | AMOUNT,
        "latency_s": AMOUNT,
        "answered_at": st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    }
)


class TestRoundTrip:
    @every_kind
    def test_a_store_arrives_whole_and_a_second_import_adds_nothing(
        self, store: ResponseStore, elsewhere: ResponseStore, tmp_path: Path, suffix: str
    ) -> None:
        kept = [
            response(number, text=f"{number}\n\u2028ü😀", reasoning=None if number % 2 else "hm", role=ROLES[number % 2])
            for number in range(50)
        ]
        store.add(kept)
        file = tmp_path / f"responses{suffix}"
        assert export_responses(store, file) == 50
        elsewhere.add([replace(kept[7], text="another answer to the same request")])
        assert import_responses(elsewhere, file) == ImportResult(added=49, known=1)
        assert import_responses(elsewhere, file) == ImportResult(added=0, known=50)
        assert elsewhere.responses([kept[7].request_key])["text"].to_pylist() == ["another answer to the same request"]
        assert import_responses(store, file) == ImportResult(added=0, known=50)
        mended = [
            row | {"text": kept[7].text} if row["request_key"] == kept[7].request_key else row for row in contents(elsewhere)
        ]
        assert mended == contents(store) == sorted(map(asdict, kept), key=lambda row: str(row["request_key"]))

    @every_kind
    def test_a_file_of_an_earlier_version_holds_answers_of_candidates(
        self, elsewhere: ResponseStore, tmp_path: Path, suffix: str
    ) -> None:
        """Its rows have no role."""
        row = {name: value for name, value in asdict(response(1)).items() if name != "role"}
        file = tmp_path / f"responses{suffix}"
        if suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist([row], RESPONSES.remove(RESPONSES.get_field_index("role"))), file)
        else:
            text = json.dumps(row | {"answered_at": row["answered_at"].isoformat()}).encode()
            file.write_bytes(gzip.compress(text) if suffix.endswith(".gz") else text)
        assert import_responses(elsewhere, file) == ImportResult(added=1, known=0)
        assert contents(elsewhere) == [asdict(response(1))]

    @every_kind
    def test_pages_neither_lose_nor_repeat_a_row_and_equal_responses_give_equal_bytes(
        self, store: ResponseStore, elsewhere: ResponseStore, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (response_store, response_files):
            monkeypatch.setattr(module, "PAGE", 7)
        for first in (0, 1):
            store.add(response(number) for number in range(first, 21, 2))
        file, again = (tmp_path / f"{name}{suffix}" for name in ("one", "other"))
        assert export_responses(store, file) == 21
        assert [len(page) for page in store.pages()] == [7, 7, 7]
        assert import_responses(elsewhere, file) == ImportResult(21, 0)
        assert contents(elsewhere) == contents(store)
        # Now in another order of arrival.
        export_responses(elsewhere, again)
        assert again.read_bytes() == file.read_bytes()

    def test_models_and_snapshots_choose_what_is_written(
        self, store: ResponseStore, elsewhere: ResponseStore, tmp_path: Path
    ) -> None:
        store.add(
            response(number, model=model, snapshot=snapshot)
            for number, (model, snapshot) in enumerate([("a", "base"), ("a", "night"), ("b", "base"), ("c", "night")])
        )
        file = tmp_path / "responses.jsonl"
        assert export_responses(store, file, models=["a", "c"], snapshots=["night"]) == 2
        import_responses(elsewhere, file)
        assert {(row["model"], row["snapshot"]) for row in contents(elsewhere)} == {("a", "night"), ("c", "night")}

    @settings(max_examples=8)
    @given(changed=ANY_VALUES, suffix=st.sampled_from(SUFFIXES))
    def test_every_value_arrives_as_it_was_kept(self, changed: dict[str, Any], suffix: str) -> None:
        kept = response(1, **changed)
        with (
            TemporaryDirectory() as folder,
            ResponseStore(Path(folder) / "a.sqlite") as one,
            ResponseStore(Path(folder) / "b.sqlite") as other,
        ):
            one.add([kept])
            export_responses(one, Path(folder) / f"responses{suffix}")
            assert import_responses(other, Path(folder) / f"responses{suffix}") == ImportResult(1, 0)
            assert contents(other) == contents(one) == [asdict(kept)]


class TestOtherPrograms:
    def test_a_parquet_file_with_wider_types_is_read(self, elsewhere: ResponseStore, tmp_path: Path) -> None:
        """As pandas and DuckDB write them: 64 bits, nanoseconds, another time zone."""
        wider = {
            pa.int32(): pa.int64(),
            pa.string(): pa.large_string(),
            pa.timestamp("us", "UTC"): pa.timestamp("ns", "Asia/Tokyo"),
        }
        schema = pa.schema([field.with_type(wider.get(field.type, field.type)) for field in RESPONSES])
        file = tmp_path / "responses.parquet"
        pq.write_table(pa.Table.from_pylist([asdict(response(1))], RESPONSES).cast(schema), file)
        assert import_responses(elsewhere, file) == ImportResult(1, 0)
        assert contents(elsewhere) == [asdict(response(1))]

    def test_a_time_of_another_zone_is_kept_in_utc(self, elsewhere: ResponseStore, tmp_path: Path) -> None:
        file = tmp_path / "responses.jsonl"
        file.write_text(line(answered_at="2026-01-02T05:04:05.678901+02:00"), encoding="utf-8")
        import_responses(elsewhere, file)
        (row,) = contents(elsewhere)
        assert row["answered_at"] == datetime(2026, 1, 2, 5, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))
        assert row["answered_at"].utcoffset() == timedelta(0)

    def test_json_lines_are_plain_text_to_other_programs(self, elsewhere: ResponseStore, tmp_path: Path) -> None:
        elsewhere.add([response(1, text="ü\n")])
        file = tmp_path / "responses.jsonl.gz"
        export_responses(elsewhere, file)
        (only,) = gzip.decompress(file.read_bytes()).decode().splitlines()
        assert json.loads(only) == json.loads(line(text="ü\n"))


class TestWriting:
    def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(
        self, elsewhere: ResponseStore, tmp_path: Path
    ) -> None:
        with pytest.raises(StoreError, match=r"cannot write .*absent/responses\.jsonl: No such file or directory"):
            export_responses(elsewhere, tmp_path / "absent" / "responses.jsonl")
        (tmp_path / "responses.jsonl").mkdir()
        with pytest.raises(StoreError, match="cannot write"):
            export_responses(elsewhere, tmp_path / "responses.jsonl")
        assert [path.name for path in tmp_path.glob(".*")] == []

    def test_an_export_that_breaks_off_leaves_the_earlier_file(
        self, elsewhere: ResponseStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        elsewhere.add([response(1)])
        file = tmp_path / "responses.parquet"
        export_responses(elsewhere, file)
        before = file.read_bytes()

        def broken(**_: object) -> Iterator[pa.Table]:
            yield pa.Table.from_pylist([asdict(response(2))], RESPONSES)
            raise KeyboardInterrupt

        monkeypatch.setattr(elsewhere, "pages", broken)
        with pytest.raises(KeyboardInterrupt):
            export_responses(elsewhere, file)
        assert file.read_bytes() == before
        assert [path.name for path in tmp_path.glob(".*")] == []

    def test_a_store_can_be_written_to_while_it_is_exported(
        self, store: ResponseStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(response_store, "PAGE", 50)
        store.add(response(number) for number in range(60))
        pages = store.pages()
        next(pages)
        writer = threading.Thread(target=store.add, args=([response(number) for number in range(60, 70)],))
        writer.start()
        writer.join()
        assert 10 <= sum(len(page) for page in pages) <= 20
        assert stored(store) == 70


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
    (line(cost_usd=float("nan")), r":3: not JSON \(NaN"),
    (line(latency_s=10**400), r":3: latency_s: got 10{10}"),
    (line(answered_at="yesterday"), r":3: answered_at: got 'yesterday'; allowed: a time with its zone, such as 2026-"),
    (line(answered_at="2026-01-02T03:04:05"), r":3: answered_at: got '2026-01-02T03:04:05'; allowed: a time with"),
    (line(answered_at="0001-01-01T00:00:00+14:00"), r":3: answered_at: got '0001"),
    (line(prompt_id="p1"), r":3: prompt_id: got 'p1'; allowed: 32 hexadecimal digits"),
    (line(snapshot="night"), r":3: request_key: got [0-9a-f]{32}; allowed: the hash of \(prompt_id, model_variant, draw,"),
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
    def test_a_damaged_or_absent_file_is_an_error(self, elsewhere: ResponseStore, tmp_path: Path, suffix: str) -> None:
        file = tmp_path / f"responses{suffix}"
        self.refused(elsewhere, file, rf"responses\{suffix}: cannot be read: ")
        with ResponseStore(tmp_path / "full.sqlite") as full:
            full.add([response(1)])
            export_responses(full, file)
        for damaged in (file.read_bytes()[:-20], b"nothing of the kind"):
            file.write_bytes(damaged)
            self.refused(elsewhere, file, rf"responses\{suffix}: cannot be read: ")

    @pytest.mark.parametrize("use", [export_responses, import_responses])
    def test_another_kind_of_file_is_an_error_that_lists_the_kinds(
        self, elsewhere: ResponseStore, tmp_path: Path, use: Callable[[ResponseStore, Path], object]
    ) -> None:
        with pytest.raises(ConfigError, match=r"responses\.csv: a file of responses ends in \.parquet, \.jsonl, \.jsonl\.gz"):
            use(elsewhere, tmp_path / "responses.csv")
