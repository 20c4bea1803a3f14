"""The store of votes: one per reviewer and pair, nothing changed or taken away, every vote can be followed back; and the queue of pairs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from dtef_pipeline.errors import BallotError, DuplicateVote, StoreError, UnknownPair
from dtef_pipeline.judging.hidden_names import build_blinding
from dtef_pipeline.preference.pairing import make_new_pairs, read_text
from dtef_pipeline.preference.vote_records import RunManifest
from dtef_pipeline.preference.votes import Ballot, PairedResponse, make_keyed_pair, make_paired_response
from resources.votes import vote_tables
from resources.votes.pair_queue import WaitingPairs
from resources.votes.vote_store import VoteStore, find_equal_text_votes, read_player_votes, store_judge_votes
from tests.conftest import ROOT
from tests.made.votes import responses
from tests.resources.broken_commits import break_after_commit

MANIFEST = RunManifest("qa", "base", "1.2.3", "c0ffee")
TIME = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def store(sqlite_location: str) -> Iterator[VoteStore]:
    with VoteStore(sqlite_location, lambda: TIME) as opened:
        yield opened


def filled(store: VoteStore, players: int = 4) -> list[str]:
    """The ids of the pairs."""
    rows = responses(players)
    made = make_new_pairs(rows)
    assert store.add_pairs(rows, made, MANIFEST, "me") == len(made)
    return [pair.pair_id for pair in store.pairs()]


def test_a_second_vote_of_a_reviewer_on_a_pair_is_refused_and_the_first_stays(store: VoteStore) -> None:
    pair_id = filled(store)[0]
    vote_id = store.take(Ballot(pair_id, "r1", "A", 3, "well said"))
    with pytest.raises(DuplicateVote, match="the first vote stays"):
        store.take(Ballot(pair_id, "r1", "B", 3))
    ((found, vote, voided),) = store.votes()
    assert (found, vote.choice, vote.justification, vote.voted_at, voided) == (vote_id, "A", "well said", TIME, False)
    store.take(Ballot(pair_id, "r2", "B", 3))
    assert len(store.votes()) == 2


def test_what_was_committed_and_not_confirmed_is_stored_once_and_no_repeat(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work was done again, found what it had stored itself, and told the reviewer of a vote that was there already."""
    with VoteStore(location, lambda: TIME) as store:
        break_after_commit(store.database, monkeypatch)
        pair_id = filled(store)[0]
        break_after_commit(store.database, monkeypatch)
        vote_id = store.take(Ballot(pair_id, "r1", "A", 3, "well said"))
        break_after_commit(store.database, monkeypatch)
        store.void(vote_id, "admin", "was a test")
        assert [(found, voided) for found, _, voided in store.votes()] == [(vote_id, True)]
        assert [one["what"] for one in store.actions()] == ["pairs", "void"]
        break_after_commit(store.database, monkeypatch)
        with pytest.raises(DuplicateVote):
            store.take(Ballot(pair_id, "r1", "B", 3))


def test_of_many_votes_at_once_exactly_one_is_stored(location: str) -> None:
    # At the same moment and with the same content, too.
    stores = [VoteStore(location, lambda: TIME) for _ in range(6)]
    pair_id = filled(stores[0])[0]

    def vote(store: VoteStore) -> bool:
        try:
            store.take(Ballot(pair_id, "r1", "A", 3))
        except DuplicateVote:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(vote, stores)) == 1
    assert len(stores[0].votes()) == 1
    for store in stores:
        store.close()


def test_processes_that_open_a_new_store_at_once_agree_on_its_salt(location: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: VoteStore(location), range(4)))
    assert len({store.salt for store in opened}) == 1
    assert len(opened[0].salt) == 64
    for store in opened:
        store.close()


def test_who_knows_the_responses_but_not_the_salt_cannot_tell_which_pair_is_whose(store: VoteStore) -> None:
    # Ids were hashes of the ids of responses, which the tables give to anybody who computes them.
    filled(store)
    made = make_new_pairs(responses(4))
    stored = {pair.pair_id for pair in store.pairs()}
    assert stored.isdisjoint(pair.pair_id for pair in made)
    assert stored == {make_keyed_pair(pair, store.salt).pair_id for pair in made}
    assert stored.isdisjoint(make_keyed_pair(pair, "another").pair_id for pair in made)


def test_a_vote_on_a_pair_that_is_not_there_is_refused(store: VoteStore) -> None:
    with pytest.raises(UnknownPair, match="there is no pair"):
        store.take(Ballot("0" * 32, "r1", "A", 3))


def test_reviewers_are_served_what_they_have_not_voted_on_until_nothing_is_left(store: VoteStore) -> None:
    pairs = filled(store)
    seen = []
    while ids := store.waiting("r1"):
        pair = store.reviewer_view(ids[0])
        assert "player" not in "".join(pair)
        store.take(Ballot(pair.pair_id, "r1", "tie", 1))
        seen.append(pair.pair_id)
    assert sorted(seen) == sorted(pairs)
    store.take(Ballot(seen[0], "r2", "A", 5))
    assert store.waiting("r3", limit=len(seen))[-1] == seen[0]


def test_a_voided_vote_stays_and_counts_no_more(store: VoteStore) -> None:
    vote_id = store.take(Ballot(filled(store)[0], "r1", "A", 3))
    assert len(read_player_votes(store)) == 1
    store.void(vote_id, "admin", "was a test")
    assert read_player_votes(store) == []
    assert [(one, voided) for one, _, voided in store.votes()] == [(vote_id, True)]
    with pytest.raises(BallotError, match="voided already"):
        store.void(vote_id, "admin", "again")
    with pytest.raises(BallotError, match="give one"):
        store.void(vote_id, "admin", " ")
    with pytest.raises(BallotError, match="there is no vote"):
        store.void("0" * 32, "admin", "none")
    made, voided_ = store.actions()
    assert (made["who"], made["what"]) == ("me", "pairs")
    assert (voided_["who"], voided_["what"], voided_["done_at"]) == ("admin", "void", vote_tables.microseconds(TIME))
    assert vote_id in voided_["before"]
    assert "was a test" in voided_["after"]


def test_votes_are_of_players_whatever_was_shown_as_a(store: VoteStore) -> None:
    filled(store, 8)
    better = {f"player-{place}": place for place in range(8)}
    for pair_id in store.waiting("r1", limit=100):
        pair = store.reviewer_view(pair_id)
        # The player's number begins each text.
        store.take(Ballot(pair_id, "r1", "A" if pair.run_a > pair.run_b else "B", 5))
    found = read_player_votes(store)
    assert len(found) == 28
    assert all((better[vote.left] > better[vote.right]) == (vote.preferred_side == "left") for vote in found)
    assert {vote.preferred_side for vote in found} == {"left", "right"}
    assert all(vote.left_length == len("0 says 0 for the 0.") for vote in found)
    assert read_player_votes(store, reviewer_kind="judge") == read_player_votes(store, family="rubric") == []


def test_pairs_in_which_a_name_stood_are_left_out_on_demand(store: VoteStore) -> None:
    rows = [
        make_paired_response("qa", "1", player, text, prompt="?", names=(player,))
        for player, text in (("gpt", "I am gpt"), ("claude", "I am not GPT."), ("x9", "hello"), ("y9", "bye"))
    ]
    made = make_new_pairs(rows)
    store.add_pairs(rows, made)
    for pair in store.pairs():
        store.take(Ballot(pair.pair_id, "r1", "tie", 1))
    assert sum(vote.leak_risk for vote in read_player_votes(store)) == 5
    assert [{vote.left, vote.right} for vote in read_player_votes(store) if not vote.leak_risk] == [{"x9", "y9"}]


def test_an_audit_that_ends_before_a_run_says_why(store: VoteStore) -> None:
    # After an import all of it was null, without a word.
    vote_id = store.take(Ballot(filled(store)[0], "r1", "A", 3))
    assert all("another tool" in row["reason"] and row["run_id"] is None for row in store.audit(vote_id))


def test_the_requests_behind_a_judges_vote_are_in_its_audit(store: VoteStore) -> None:
    said = f"[shown A by {'a' * 32}] [swapped B by {'b' * 32}] It is clear."
    store_judge_votes(store, [Ballot(filled(store)[0], "a judge", "A", 1, said)])
    ((vote_id, *_),) = store.votes()
    assert {row["judge_request_keys"] for row in store.audit(vote_id)} == {f"{'a' * 32} {'b' * 32}"}


def test_no_code_changes_or_takes_away_what_is_stored() -> None:
    changing = {"delete", "update", "drop", "drop_all", "on_conflict_do_update", "exec_driver_sql"}
    files = [*(ROOT / "resources" / "votes").glob("*vote*.py")]
    assert len(files) == 4
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                assert node.attr not in changing, f"{path}:{node.lineno}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.upper().startswith(("UPDATE ", "DELETE ", "DROP ", "ALTER ", "REPLACE ")), path


def test_the_database_itself_allows_one_vote_per_pair_and_reviewer(store: VoteStore) -> None:
    store.take(Ballot(filled(store)[0], "r1", "A", 3))
    row = dict(vote_tables.encode_row(vote_tables.record_of("vote", store.rows(sa.select(vote_tables.votes))[0])))
    with pytest.raises(StoreError):
        store.database.write(lambda one: one.execute(sa.insert(vote_tables.votes).values(**row | {"vote_id": "f" * 32})))


@pytest.mark.parametrize(("version", "said"), [(99, "newer dtef-pipeline"), (3, "earlier dtef-pipeline")])
def test_votes_of_another_version_are_left_alone(tmp_path: Path, version: int, said: str) -> None:
    with VoteStore(tmp_path / "r.sqlite") as store:
        store.database.write(lambda one: one.execute(sa.update(vote_tables.vote_versions).values(schema_version=version)))
    with pytest.raises(StoreError, match=said):
        VoteStore(tmp_path / "r.sqlite")


def said(texts: Sequence[tuple[str, str]]) -> list[PairedResponse]:
    return [make_paired_response("qa", "made/all/1", player, text, prompt="?", names=(player,)) for player, text in texts]


SAME = said([("glimmer-one", "I am Glimmer-One."), ("sparkle-two", "i am  Sparkle Two."), ("third-one", "No.")])


def test_pairs_that_read_alike_without_names_are_not_made() -> None:
    """They were made, served and scored: the texts were compared with the names in them."""
    assert len(make_new_pairs(SAME)) == 3
    names = build_blinding(name for one in SAME for name in one.names)
    by_id = {one.response_id: one.player for one in SAME}
    made = make_new_pairs(SAME, names=names)
    assert len(made) == 2
    assert all("third-one" in (by_id[pair.left], by_id[pair.right]) for pair in made)


def test_pairs_of_elsewhere_that_read_alike_are_not_served_and_their_votes_stay_and_are_reported(tmp_path: Path) -> None:
    with VoteStore(tmp_path / "one.sqlite") as store:
        store.add_pairs(SAME, make_new_pairs(SAME))
        waiting = store.waiting("r1", 9)
        assert len(waiting) == 2
        (alike,) = {pair.pair_id for pair in store.pairs()} - set(waiting)
        other = store.take(Ballot(waiting[0], "r1", "A", 3))
        vote = store.take(Ballot(alike, "r1", "A", 3))
        assert {one for one, _, _ in store.votes()} == {vote, other}
        assert find_equal_text_votes(store) == (2, [vote])


def test_numbers_that_were_computed_are_read_with_two_decimals_and_what_a_model_wrote_as_it_is() -> None:
    text, names = "[13.861358859921921, 86, 1.25e-14, 9.5, 2.123456e-7]", build_blinding([])
    assert read_text(text, "baseline/uniform", names) == "[13.86, 86, 0.00, 9.5, 0.00]"
    assert read_text(text, "openai/x", names) == text


def vote(store: VoteStore, waiting: WaitingPairs, reviewer: str) -> str:
    """The next pair of the reviewer, with a vote on it."""
    pair = waiting.choose_next(reviewer)
    assert pair is not None
    store.take(Ballot(pair.pair_id, reviewer, "A", 3))
    return pair.pair_id


def test_reviewers_who_come_at_once_get_different_pairs_and_keep_them(store: VoteStore) -> None:
    every = filled(store)
    waiting = WaitingPairs(store)
    first = {f"r{place}": waiting.choose_next(f"r{place}") for place in range(80)}
    assert {pair.pair_id for pair in first.values() if pair} == set(every)
    assert {who: waiting.choose_next(who) for who in first} == first


def test_pairs_with_the_fewest_votes_come_first(store: VoteStore) -> None:
    every = filled(store)
    waiting = WaitingPairs(store)
    for turn in range(3):
        for place in range(6):
            vote(store, waiting, f"r{turn}-{place}")
    assert Counter(one.pair_id for _, one, _ in store.votes()) == dict.fromkeys(every, 3)
    assert sorted(vote(store, waiting, "all") for _ in every) == every
    assert waiting.choose_next("all") is None


def test_votes_and_pairs_of_other_processes_count(location: str) -> None:
    with VoteStore(location) as store:
        every = filled(store)
        waiting = WaitingPairs(store)
        assert waiting.choose_next("r1")
        for pair_id in every[:5]:
            store.take(Ballot(pair_id, "elsewhere", "A", 3))
        found = waiting.choose_next("r2")
        assert found
        assert found.pair_id == every[5]
        for pair_id in every:
            store.take(Ballot(pair_id, "r3", "A", 3))
        assert waiting.choose_next("r3") is None
        rows = responses(2, items=2)
        store.add_pairs(rows, make_new_pairs(rows, store.pairs()))
        assert waiting.choose_next("r3")


def test_pairs_for_later_come_last_in_their_order(store: VoteStore) -> None:
    every = filled(store)
    waiting = WaitingPairs(store)
    later = (every[2], "0" * 32, every[0])
    seen = []
    while (pair := waiting.choose_next("r1", later=later)) is not None:
        seen.append(pair.pair_id)
        store.take(Ballot(pair.pair_id, "r1", "A", 3))
    assert sorted(seen[:4]) == [one for one in every if one not in later]
    assert seen[4:] == [every[2], every[0]]
    first = waiting.choose_next("r2")
    assert first
    other = waiting.choose_next("r2", later=(first.pair_id,))
    assert other
    assert other.pair_id != first.pair_id
    assert waiting.pair(first.pair_id) == first
    with pytest.raises(UnknownPair, match="there is no pair"):
        waiting.pair("0" * 32)


def test_how_far_a_reviewer_is(store: VoteStore) -> None:
    filled(store)
    waiting = WaitingPairs(store)
    assert waiting.progress("r1") == (0, 6, True)
    vote(store, waiting, "r1")
    vote(store, waiting, "r2")
    assert waiting.progress("r1") == (1, 5, True)
    rows = responses(8, 2)
    store.add_pairs(rows, make_new_pairs(rows, store.pairs()))
    assert waiting.progress("r1") == (1, 2 * 28 - 1, False)
