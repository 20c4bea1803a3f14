"""Votes as JSON lines: the same bytes and runs after a journey, and nothing of a file with a fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.asking.request import AskingRun
from dtef_pipeline.errors import BallotError, SourceError, StoreError
from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.vote_records import RunManifest, build_response_record, record_line, request_record
from dtef_pipeline.preference.votes import Ballot, make_paired_response
from resources.responses.store import ResponseStore
from resources.votes.vote_files import add_lines, export_votes, import_votes, read_lines
from resources.votes.vote_store import VoteStore, add_judge, read_player_votes, store_judge_votes
from tests.made.responses import keys, response
from tests.made.votes import responses, vectors

TIME = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VoteStore]:
    with opened(tmp_path, "first") as found:
        rows = responses(4, items=2)
        made = make_new_pairs(rows)
        found.add_pairs(rows, made, RunManifest("qa", "base", "1", "2"))
        found.record_consent("ann", consent=True)
        for place, pair in enumerate(found.pairs()):
            for reviewer in ("ann", "bob", "čeněk")[: place % 4]:
                found.take(Ballot(pair.pair_id, reviewer, ("A", "B", "tie")[place % 3], 1 + place % 5, 'says "x"\u2028\n'))  # type: ignore[arg-type]
        found.void(found.votes()[0][0], "admin", "a test")
        yield found


def opened(folder: Path, name: str) -> VoteStore:
    ticks = iter(range(10_000))
    return VoteStore(folder / f"{name}.sqlite", lambda: TIME + timedelta(seconds=next(ticks)))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_what_is_exported_imported_and_exported_again_is_the_same_bytes(
    store: VoteStore, location: str, tmp_path: Path
) -> None:
    first, again, second, third = (tmp_path / f"{name}.jsonl.gz" for name in ("first", "again", "second", "third"))
    export_votes(store, first)
    export_votes(store, again)
    assert first.read_bytes() == again.read_bytes()
    with VoteStore(location) as other:
        assert import_votes(other, first).known == 0
        export_votes(other, second)
        assert len(read_player_votes(other)) == len(read_player_votes(store)) > 0
        assert import_votes(other, first).added == {}
        export_votes(other, third)
        assert other.salt != store.salt
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()


def test_a_store_that_made_the_same_pairs_itself_takes_the_votes_on_them_under_its_own_ids(
    store: VoteStore, tmp_path: Path
) -> None:
    export_votes(store, tmp_path / "x.jsonl")
    with opened(tmp_path, "second") as other:
        rows = responses(4, items=2)
        other.add_pairs(rows, make_new_pairs(rows))
        own = {pair.pair_id for pair in other.pairs()}
        assert own.isdisjoint(pair.pair_id for pair in store.pairs())
        done = import_votes(other, tmp_path / "x.jsonl")
        assert "pair" not in done.added
        assert done.added["vote"] == len(store.votes())
        assert {pair.pair_id for pair in other.pairs()} == own
        there, here = (
            sorted((one.item_id, one.left, one.preferred_side) for one in read_player_votes(s)) for s in (other, store)
        )
        assert there == here
        assert import_votes(other, tmp_path / "x.jsonl").added == {}


def test_reviewers_without_consent_stand_under_pseudonyms(store: VoteStore, tmp_path: Path) -> None:
    export_votes(store, path := tmp_path / "x.jsonl")
    text = path.read_text(encoding="utf-8")
    assert "bob" not in text
    assert "čeněk" not in text
    assert store.salt not in text
    votes = [line for line in lines_of(path) if line["kind"] == "vote"]
    assert len({line["reviewer_id"] for line in votes}) == 3
    assert "ann" in {line["reviewer_id"] for line in votes}
    store.record_consent("bob", consent=True)
    export_votes(store, later := tmp_path / "y.jsonl")
    others = {line["reviewer_id"] for line in lines_of(later) if line["kind"] == "vote"}
    assert {"ann", "bob"} < others
    # The pseudonym of the third is another one in another export.
    assert len(others & {line["reviewer_id"] for line in votes}) == 1


def test_two_exports_cannot_be_joined_by_ids_or_times_of_votes(store: VoteStore, tmp_path: Path) -> None:
    export_votes(store, first := tmp_path / "x.jsonl")
    pair_id = store.waiting("dan", 1)[0]
    store.take(Ballot(pair_id, "dan", "A", 1))
    export_votes(store, later := tmp_path / "y.jsonl")
    told = [[line for line in lines_of(path) if line["kind"] == "vote"] for path in (first, later)]
    hidden = [[line for line in lines if line.get("reviewer_id") != "ann"] for lines in told]
    ids, others = ({line["vote_id"] for line in lines} for lines in hidden)
    own = {vote_id for vote_id, vote, _ in store.votes() if vote.reviewer_id != "ann"}
    assert ids.isdisjoint(others)
    assert own.isdisjoint(ids | others)
    assert {line["voted_at"] for line in hidden[0]} == {"2026-01-31T00:00:00.000000+00:00"}
    # Who gave consent is told as it is.
    assert own.isdisjoint(line["vote_id"] for line in told[0] if line.get("reviewer_id") == "ann")
    assert len({line["voted_at"] for line in told[0] if line.get("reviewer_id") == "ann"}) > 1
    # An export of any time is known again.
    assert import_votes(store, first).added == import_votes(store, later).added == {}


def test_an_own_export_adds_no_reviewer_who_has_not_voted(store: VoteStore, tmp_path: Path) -> None:
    """A reviewer without consent and votes was added again under a pseudonym."""
    store.record_consent("dan", consent=False)
    export_votes(store, path := tmp_path / "x.jsonl")
    assert import_votes(store, path).added == {}


def test_what_people_wrote_can_be_left_out(store: VoteStore, tmp_path: Path) -> None:
    export_votes(store, path := tmp_path / "x.jsonl", "me", justifications=False)
    assert {line["justification"] for line in lines_of(path) if line["kind"] == "vote"} == {""}
    assert import_votes(store, path).added == {}
    assert [vote.justification for _, vote, _ in store.votes()].count("") == 0
    (done,) = [one for one in store.actions() if one["what"] == "export"]
    assert (done["who"], json.loads(done["after"])["justifications"]) == ("me", False)


def test_of_a_reviewer_of_whom_nothing_was_stated_no_time_is_reported(store: VoteStore, tmp_path: Path) -> None:
    # It was 1970.
    export_votes(store, first := tmp_path / "x.jsonl")
    said = {line["reviewer_id"] == "ann": line["said_at"] for line in lines_of(first) if line["kind"] == "reviewer"}
    assert said[True].startswith("2026-01-31T12:00")
    assert said[False] is None
    with opened(tmp_path, "second") as other:
        import_votes(other, first)
        assert {one["said_at"] for one in other.reviewers().values()} == {TIME + timedelta(seconds=1), None}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: line[:-2], "not JSON"),
        (lambda line: line.replace('"schema":1', '"schema":2'), "schema: got 2; allowed: 1"),
        (lambda line: line.replace('"kind":"vote"', '"kind":"votes"'), "kind: got 'votes'; allowed: manifest, response"),
        (lambda line: line.replace('"confidence":', '"confidence":9'), "allowed: at most 5"),
        (lambda line: line.replace('"choice":"A"', '"choice":"tie"'), None),
        (
            lambda line: re.sub('"voted_at":"....', '"voted_at":"9999', line),
            "has not come yet; allowed: a time until now, 2026-",
        ),
        (
            lambda line: re.sub('"reviewer_id":"[^"]*', r'"reviewer_id":"\\u001b[2J', line),
            "reviewer_id: got '\\x1b[2J'; allowed",
        ),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_imported(store: VoteStore, tmp_path: Path, change: Any, said: str | None) -> None:
    export_votes(store, path := tmp_path / "x.jsonl")
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    place = next(
        at for at, line in enumerate(lines) if all(words in line for words in ('"kind":"vote"', '"choice":"A"', '"ann"'))
    )
    lines[place] = change(lines[place])
    path.write_text("\n".join(lines), encoding="utf-8")
    with opened(tmp_path, "second") as other:
        if said is None:
            import_votes(other, path)
            with pytest.raises(SourceError, match=rf"x\.jsonl:{place + 1}: .* with other content"):
                import_votes(store, path)
            return
        with pytest.raises(SourceError, match=rf"x\.jsonl:{place + 1}: ") as refused:
            import_votes(other, path)
        assert said in str(refused.value)
        assert export_votes(other, tmp_path / "empty.jsonl") == 0


@pytest.mark.parametrize(("given_", "expected"), vectors("jsonl"))
def test_vectors_of_files(given_: dict[str, Any], expected: dict[str, Any], tmp_path: Path) -> None:
    with opened(tmp_path, "first") as store:
        rows = responses(given_["lines"])
        lines = [record_line("response", build_response_record(row, None)) for row in rows]
        lines[given_["bad"] - 1] = "{"
        (tmp_path / "x.jsonl").write_text("\n".join(lines))
        with pytest.raises(SourceError, match=rf"x.jsonl:{expected['message_has']}: "):
            import_votes(store, tmp_path / "x.jsonl")
        assert export_votes(store, tmp_path / "y.jsonl") == expected["imported"]


@pytest.mark.parametrize("kind", ["pair", "response", "manifest", "vote"])
def test_what_refers_to_nothing_is_refused(store: VoteStore, tmp_path: Path, kind: str) -> None:
    export_votes(store, path := tmp_path / "x.jsonl")
    kept = [line for line in path.read_text(encoding="utf-8").split("\n") if f'"kind":"{kind}"' not in line]
    path.write_text("\n".join(kept), encoding="utf-8")
    with opened(tmp_path, "second") as other, pytest.raises(SourceError, match="neither in the store nor in the file"):
        import_votes(other, path)


def test_votes_handed_in_are_taken_once_and_mean_what_this_store_showed(store: VoteStore, tmp_path: Path) -> None:
    pair_id = store.waiting("zoe")[0]
    ballot = {"kind": "ballot", "schema": 1, "pair_id": pair_id, "reviewer_id": "zoe", "choice": "A", "confidence": 4}
    (path := tmp_path / "zoe.jsonl").write_text(json.dumps(ballot))
    assert import_votes(store, path).added == {"vote": 1}
    assert import_votes(store, path) == ({}, 1)
    (vote,) = (vote for _, vote, _ in store.votes() if vote.reviewer_id == "zoe")
    pair = next(pair for pair in store.pairs() if pair.pair_id == pair_id)
    texts = {row.response_id: row.text for row in responses(4, items=2)}
    shown = {"left": texts[pair.left], "right": texts[pair.right]}
    # The players of these responses have no name in their texts.
    assert store.reviewer_view(pair_id).run_a == shown[vote.shown_as_a]
    path.write_text(json.dumps(ballot | {"choice": "B"}))
    with pytest.raises(SourceError, match="with other content"):
        import_votes(store, path)


def test_a_file_that_is_no_archive_is_stated_to_be_unreadable(store: VoteStore, tmp_path: Path) -> None:
    (path := tmp_path / "x.jsonl.gz").write_bytes(b"not gzip")
    with pytest.raises(StoreError, match="cannot be read"):
        import_votes(store, path)
    with pytest.raises(StoreError, match="cannot write"):
        export_votes(store, tmp_path / "nowhere" / "x.jsonl")


NOT_YET_A_JUDGE = "pairs(openai/gpt-4.1-mini[temperature=0])#844a6136"


def filled(path: Path) -> VoteStore:
    store, rows = VoteStore(path), responses(3)
    store.add_pairs(rows, make_new_pairs(rows))
    return store


def ballot(pair_id: str, reviewer_id: str) -> str:
    said = {"pair_id": pair_id, "reviewer_id": reviewer_id, "choice": "A", "confidence": 3, "justification": ""}
    return json.dumps({"kind": "ballot", "schema": 1, **said}) + "\n"


def test_a_person_does_not_vote_under_the_id_of_a_judge(tmp_path: Path) -> None:
    """The vote was stored as a person's, and the judge never saw the pair."""
    with filled(tmp_path / "one.sqlite") as store:
        pair, other, _ = (one.pair_id for one in store.pairs())
        add_judge(store, "registered")
        store_judge_votes(store, [Ballot(other, "voted", "A", 1)])
        for judge in (NOT_YET_A_JUDGE, "registered", "voted"):
            with pytest.raises(BallotError, match=r"reviewer_id: the id '.*' belongs to a judge; allowed: the id of a person"):
                store.take(Ballot(pair, judge, "A", 3))
            (path := tmp_path / "v.jsonl").write_text(ballot(pair, "r1") + ballot(pair, judge))
            with pytest.raises(SourceError, match=r"v\.jsonl:2: reviewer_id: the id '.*' belongs to a judge"):
                import_votes(store, path)
        assert len(store.votes()) == 1
        # That of a judge itself comes in again, from another store too.
        export_votes(store, path := tmp_path / "x.jsonl")
    with VoteStore(tmp_path / "two.sqlite") as again:
        assert import_votes(again, path).added["vote"] == 1


RUN = AskingRun("1.2.3+abc", "c0ffee")
MANIFEST = RunManifest("qa", "base", "9.9.9", "decaf")


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
