"""The run behind a vote's responses: it moves with an export, so that an audit ends at it in every store."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dtef_pipeline.asking.asking_run import AskingRun
from dtef_pipeline.errors import BallotError, SourceError
from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.vote_records import RunManifest, record_line, request_record
from dtef_pipeline.preference.votes import Ballot, make_paired_response
from resources.responses.store import ResponseStore
from resources.votes.vote_files import add_lines, export_votes, import_votes, read_lines
from resources.votes.vote_store import VoteStore
from tests.made.responses import keys, response
from tests.made.voted import responses

RUN = AskingRun("1.2.3+abc", "c0ffee")
MANIFEST = RunManifest("qa", "base", "9.9.9", "decaf")
TIME = datetime(2026, 1, 31, 12, tzinfo=UTC)


def voted(location: str | Path) -> VoteStore:
    """A store with a vote on two responses; of the second one the first of two requests was made before runs were noted."""
    with ResponseStore(location) as earlier, ResponseStore(location, lambda: RUN) as stored:
        earlier.add([response(2)])
        stored.add(response(number) for number in (1, 2, 3))
    one, two, three = keys(1, 2, 3)
    rows = [
        make_paired_response("qa", "1", player, f"{player} says", prompt="?", snapshot="base", request_keys=asked)
        for player, asked in (("x", (one,)), ("y", (two, three)))
    ]
    store = VoteStore(location, lambda: TIME)
    store.add_pairs(rows, make_new_pairs(rows), MANIFEST)
    store.take(Ballot(store.pairs()[0].pair_id, "r1", "A", 2))
    return store


def audited(store: VoteStore) -> list[tuple[object, ...]]:
    """By request: the run, its code and configuration, and whether a reason says why there is none."""
    ((vote_id, *_),) = store.votes()
    chain = store.audit(vote_id)
    wanted = ("player", "request_key", "run_id", "code_version", "config_hash")
    return sorted((*(str(row[name]) for name in wanted), row["reason"] is None) for row in chain)


def test_an_audit_ends_at_the_same_run_in_a_store_that_only_imported_the_vote(location: str, tmp_path: Path) -> None:
    """It ended with a reason: runs stayed in the store that asked."""
    with voted(location) as store, VoteStore(tmp_path / "other.sqlite") as other:
        export_votes(store, path := tmp_path / "x.jsonl")
        added = {"manifest": 1, "response": 2, "run": 1, "request": 2, "pair": 1, "reviewer": 1, "vote": 1}
        assert import_votes(other, path).added == added
        assert audited(other) == audited(store)
        assert [row[2:] for row in audited(store)].count((RUN.run_id, *RUN, True)) == 2
        assert [row[2:] for row in audited(store)].count(("None", "None", "None", False)) == 1
        ((vote_id, *_),) = store.votes()
        for row in store.audit(vote_id):
            assert (row["paired_manifest_id"], row["paired_code_version"]) == (MANIFEST.manifest_id, MANIFEST.code_version)
            assert (row["voted_at"], row["model"], row["side"] in ("left", "right")) == (TIME, "mini", True)
        with pytest.raises(BallotError, match="there is no vote"):
            store.audit("nothing")
        export_votes(other, again := tmp_path / "y.jsonl")
        assert again.read_bytes() == path.read_bytes()
        assert import_votes(store, again).added == {}


def test_of_a_computed_response_an_audit_says_that_no_model_was_asked(tmp_path: Path) -> None:
    """It said that the response was in another store."""
    rows = [
        make_paired_response("survey", "1", player, f"{player} says", prompt="?", snapshot="base", request_keys=("key",))
        for player in ("baseline/uniform", "baseline/other")
    ]
    with VoteStore(tmp_path / "one.sqlite") as store:
        store.add_pairs(rows, make_new_pairs(rows), MANIFEST)
        vote_id = store.take(Ballot(store.pairs()[0].pair_id, "r1", "A", 2))
        assert {row["reason"] for row in store.audit(vote_id)} == {
            "the response was computed from the data: no model was asked"
        }


def test_a_store_that_asked_the_same_itself_keeps_the_run_of_the_response_that_was_voted_on(tmp_path: Path) -> None:
    with voted(tmp_path / "one.sqlite") as store:
        export_votes(store, path := tmp_path / "x.jsonl")
    with ResponseStore(tmp_path / "other.sqlite", lambda: AskingRun("later", "tea")) as stored:
        stored.add([response(1, text="[1]"), response(2), response(3)])
    with VoteStore(tmp_path / "other.sqlite") as other:
        import_votes(other, path)
        assert {row[3] for row in audited(other)} == {RUN.code_version, "None"}


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("request", {"request_key": "other", "request_id": "fc7d"}, "request_id: got"),
        ("request", {"run_id": "0" * 32}, "neither in the store nor in the file"),
        ("request", {"response_id": "0" * 32}, "request_id: got"),
        ("run", {"code_version": "4"}, "run_id: got"),
    ],
)
def test_a_line_about_another_run_or_request_is_refused(tmp_path: Path, kind: str, change: dict[str, str], said: str) -> None:
    with voted(tmp_path / "one.sqlite") as store:
        export_votes(store, path := tmp_path / "x.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    next(line for line in lines if line["kind"] == kind).update(change)
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with VoteStore(tmp_path / "other.sqlite") as other:
        with pytest.raises(SourceError, match=said):
            import_votes(other, path)
        assert not other.pairs()


def test_a_request_that_no_response_of_the_pair_has_is_refused(tmp_path: Path) -> None:
    with voted(tmp_path / "one.sqlite") as store:
        (pair,) = store.pairs()
        export_votes(store, path := tmp_path / "x.jsonl")
        line = record_line("request", request_record(pair.left, "other", RUN.run_id))
        path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")
        with pytest.raises(SourceError, match=r"request_key: no request of the response has it; allowed: [0-9a-f]{32}"):
            import_votes(store, path)


def test_a_vote_under_another_id_is_the_same_vote_or_contradicts_it(location: str, tmp_path: Path) -> None:
    rows = responses(3)
    with VoteStore(location) as store:
        store.add_pairs(rows, make_new_pairs(rows))
        cast = [Ballot(pair.pair_id, who, "A", 3) for pair in store.pairs() for who in ("ann", "annotator", "čeněk")]
        for ballot in cast:
            store.take(ballot)
            store.record_consent(ballot.reviewer_id, consent=True)
        export_votes(store, tmp_path / "votes.jsonl")
        lines = list(read_lines(tmp_path / "votes.jsonl"))
        assert add_lines(store, lines, "me", "again").added == {}
        vote = next(line for line in lines if line.kind == "vote")
        other = vote.replace_values(vote_id="0" * 32)
        assert add_lines(store, [other], "me", "another id").added == {}
        with pytest.raises(SourceError, match="exists already with other content"):
            add_lines(store, [other.replace_values(choice="B")], "me", "another choice")
        assert len(store.votes()) == len(cast)
        # A new reviewer on a pair that has votes is no repeat.
        fresh = replace(cast[0], reviewer_id="ben")
        assert store.take(fresh)
