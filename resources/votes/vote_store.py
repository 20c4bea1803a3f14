"""The store of preference votes, in the database of responses: append-only, shared by threads, processes and machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dtef_pipeline.asking.request import AskingRun
from dtef_pipeline.errors import BallotError, DuplicateVote, UnknownPair, UnknownVote, VoidedAlready
from dtef_pipeline.identity import digest
from dtef_pipeline.judging.hidden_names import Blinding, build_blinding
from dtef_pipeline.preference.pair_verdicts import is_own_pair
from dtef_pipeline.preference.pairing import (
    BlindedPair,
    build_blinded_pair,
    choose_shown_as_a,
    count_replaced_names,
    normalize_for_comparison,
)
from dtef_pipeline.preference.vote_records import (
    Record,
    RunManifest,
    build_response,
    build_response_record,
    pair_of,
    pair_record,
    request_record,
    run_record,
    void_id,
    vote_of,
)
from dtef_pipeline.preference.votes import (
    Ballot,
    Choice,
    PairedResponse,
    PlayersVote,
    Side,
    Vote,
    VotePair,
    find_preferred_side,
    make_keyed_pair,
)
from dtef_pipeline.text.well_formed import replace_surrogates
from resources.responses.database import DatabaseStore, ResponseDatabase, asking_runs, get_utc_now, responses
from resources.votes import vote_tables as tables
from resources.votes.vote_queries import (
    JUDGE_KIND,
    build_audit_query,
    build_players_query,
    build_texts_query,
    build_waiting_query,
    find_incomplete_reason,
    refuse_judge,
)
from resources.votes.vote_tables import LEFT_SIDE, RIGHT_SIDE, SIDE_TEXTS, join_sides

_ID_BATCH = 500
"""Number of pairs whose texts are compared together."""

_VOTED_TEXTS = join_sides(
    sa.select(tables.votes.c.vote_id, tables.pairs.c.pair_id, *SIDE_TEXTS)
    .select_from(tables.votes)
    .join(tables.pairs, tables.pairs.c.pair_id == tables.votes.c.pair_id)
    .join(tables.voids, tables.voids.c.vote_id == tables.votes.c.vote_id, isouter=True)
    .where(tables.voids.c.void_id.is_(None))
    .order_by(tables.votes.c.vote_id)
)


class VoteStore(DatabaseStore):
    """The votes of a project. Safe to use from several threads and processes at once."""

    def __init__(self, location: str | Path | ResponseDatabase, clock: Callable[[], datetime] = get_utc_now) -> None:
        """Open the votes in a response store and create missing tables. Arguments and errors as for `DatabaseStore`."""
        super().__init__(location, clock)
        self.name = self.database.name
        self.salt = tables.make_vote_tables(self.database)
        """Determines which response is shown as A; it is never served or exported."""

    def add_pairs(
        self,
        responses: Iterable[PairedResponse],
        pairs: Sequence[VotePair],
        manifest: RunManifest | None = None,
        user: str = "",
    ) -> int:
        """Store pairs with their responses, under ids of this store; return how many are new. `user`: who made them."""
        by_id = {response.response_id: response for response in responses}
        pairs = [self.make_keyed(pair) for pair in pairs]
        members = [by_id[key] for key in dict.fromkeys(side for pair in pairs for side in (pair.left, pair.right))]
        manifest_id = manifest.manifest_id if manifest else None
        name_counts = self.count_names([*by_id.values()], pairs)
        now = self.clock()
        records: dict[str, list[Record]] = {
            "manifest": [{"manifest_id": manifest_id, **manifest._asdict()}] if manifest else [],
            "response": [build_response_record(response, manifest_id) for response in members],
            "pair": [pair_record(pair, name_counts[pair.pair_id], now) for pair in pairs],
        }

        def work(connection: sa.Connection) -> int:
            every = records | _collect_runs(connection, self.database, records["response"])
            counts = {
                kind: tables.add_rows(connection, self.database, kind, every[kind])
                for kind in tables.TABLE_OF_KIND
                if kind in every
            }
            tables.record_action(connection, user, now, "pairs", {}, {"new": counts["pair"], "manifest_id": manifest_id})
            return counts["pair"]

        def find_committed(connection: sa.Connection) -> int | None:
            action = tables.find_noted_action(connection, user, now, "pairs")
            return action["new"] if action else None

        return self.database.write(work, find_committed=find_committed) if pairs else 0

    def make_keyed(self, pair: VotePair) -> VotePair:
        """Return the pair under its id here."""
        return make_keyed_pair(pair, self.salt)

    def pairs(self, family: str | None = None) -> list[VotePair]:
        """Return the pairs, of one family only if given."""
        statement = sa.select(tables.pairs).order_by(tables.pairs.c.pair_id)
        if family is not None:
            statement = statement.where(tables.pairs.c.family == family)
        return [pair_of(row) for row in self.rows(statement)]

    def reviewer_view(self, pair_id: str, names: Blinding | None = None) -> BlindedPair:
        """Return the pair as a reviewer gets it. `names`: from `hidden_names`, to serve many pairs. Raises UnknownPair."""
        row = self._pair_row(pair_id)
        pair = pair_of(row)
        statement = sa.select(tables.paired_responses).where(tables.paired_responses.c.response_id.in_([pair.left, pair.right]))
        sides = {row["response_id"]: build_response(tables.record_of("response", row)) for row in self.rows(statement)}
        names = names or self.hidden_names()
        return build_blinded_pair(pair, sides[pair.left], sides[pair.right], names, self.salt)

    def waiting(self, reviewer_id: str, limit: int = 1, family: str | None = None) -> list[str]:
        """Return pairs without the reviewer's vote, fewest votes first.

        Leaves out pairs whose texts are not stored, or, as reviewers read them, differ only in case and white space. The latter come from
        other tools, or differed only in names unknown when the pairs were made.
        """
        ids = [row["pair_id"] for row in self.rows(build_waiting_query(reviewer_id, family))]
        result, names = list[str](), self.hidden_names()
        for start in range(0, len(ids), _ID_BATCH):
            if len(result) >= limit:
                break
            chunk = ids[start : start + _ID_BATCH]
            texts = {row["pair_id"]: row for row in self.rows(build_texts_query(chunk))}
            result += islice((pair_id for pair_id in chunk if not read_alike(texts[pair_id], names)), limit - len(result))
        return result

    def take(self, ballot: Ballot) -> str:
        """Store a person's vote with the current time; return its id. Of two simultaneous votes for one pair and reviewer one is stored.

        Raises UnknownPair, BallotError for a person's vote under a judge's id, and DuplicateVote if the reviewer has voted on the pair
        before: the first vote stays, even if voided.
        """
        self._pair_row(ballot.pair_id)
        refuse_judge(self.database, ballot.reviewer_id)
        record = self.vote_record(ballot, self.clock())

        def find_committed(connection: sa.Connection) -> int | None:
            statement = sa.select(tables.votes).where(tables.votes.c.vote_id == record["vote_id"])
            row = connection.execute(statement).mappings().one_or_none()
            return 1 if row and tables.record_of("vote", row) == record else None

        def work(connection: sa.Connection) -> int:
            return tables.add_rows(connection, self.database, "vote", [record])

        if not self.database.write(work, find_committed=find_committed):
            raise DuplicateVote(self._explain_duplicate(ballot))
        return str(record["vote_id"])

    def _explain_duplicate(self, ballot: Ballot) -> str:
        vote, voids = tables.votes, tables.voids
        statement = (
            sa.select(voids.c.void_id)
            .join(vote)
            .where(vote.c.pair_id == ballot.pair_id, vote.c.reviewer_id == ballot.reviewer_id)
        )
        message = f"reviewer {ballot.reviewer_id} has voted on the pair {ballot.pair_id} already"
        if self.rows(statement):
            return f"{message}, and that vote is void and cannot be replaced; other pairs are open to the reviewer"
        return f"{message}; the first vote stays, and an administrator can void it"

    def vote_record(self, ballot: Ballot, voted_at: datetime | None, reviewer_kind: str = "person") -> Record:
        """Return this store's vote for a ballot."""
        return {
            "vote_id": digest("vote", ballot.pair_id, ballot.reviewer_id, self.salt),
            "pair_id": ballot.pair_id,
            "reviewer_id": ballot.reviewer_id,
            "reviewer_kind": reviewer_kind,
            "choice": ballot.choice,
            "shown_as_a": choose_shown_as_a(ballot.pair_id, self.salt),
            "confidence": ballot.confidence,
            "justification": ballot.justification,
            "voted_at": voted_at,
        }

    def build_imported_vote(self, pair_id: str, reviewer_id: str, choice: Choice, side: Side, confidence: int | None) -> Record:
        """Return a vote from another tool, which showed `side` as A and reports no time."""
        record = self.vote_record(Ballot(pair_id, reviewer_id, choice, confidence or 1), None)
        return record | {"shown_as_a": side, "confidence": confidence}

    def count_names(self, responses: Sequence[PairedResponse], pairs: Sequence[VotePair]) -> dict[str, int]:
        """Return by pair how many names its texts contain, of these responses and of all stored ones."""
        names = self.hidden_names(responses)
        by_id = {response.response_id: response for response in responses}
        return count_replaced_names(names, [(pair.pair_id, by_id[pair.left], by_id[pair.right]) for pair in pairs])

    def void(self, vote_id: str, admin: str, reason: str) -> None:
        """Void a vote, so that it no longer counts; the vote itself stays stored.

        Raises UnknownVote, VoidedAlready, or BallotError for a blank reason.
        """
        if (vote := self._vote(vote_id)) is None:
            raise UnknownVote(f"there is no vote {vote_id[:80]!r}; `dtef preference votes` lists those there are")
        if not reason.strip():
            raise BallotError("a vote is voided for a reason; give one")
        now = self.clock()
        record = {
            "void_id": void_id(vote_id),
            "vote_id": vote_id,
            "admin": replace_surrogates(admin),
            "reason": replace_surrogates(reason),
            "voided_at": now,
        }

        def work(connection: sa.Connection) -> int:
            n_added = tables.add_rows(connection, self.database, "void", [record])
            if n_added:
                tables.record_action(connection, admin, now, "void", vote, record)
            return n_added

        def find_committed(connection: sa.Connection) -> int | None:
            return 1 if tables.find_noted_action(connection, admin, now, "void") else None

        if not self.database.write(work, find_committed=find_committed):
            raise VoidedAlready(f"the vote {vote_id} is voided already")

    def record_consent(self, reviewer_id: str, *, consent: bool, reviewer_kind: str = "person", user: str = "") -> None:
        """Record whether a reviewer lets exports show the id. Earlier records stay but no longer hold."""
        now = self.clock()
        before = self.reviewers().get(reviewer_id)
        record = {
            "reviewer_id": reviewer_id,
            "reviewer_kind": reviewer_kind,
            "consent": consent,
            "pseudonymous": bool(before and before["pseudonymous"]),
            "said_at": now,
        }

        def work(connection: sa.Connection) -> None:
            tables.add_rows(connection, self.database, "reviewer", [record])
            tables.record_action(connection, user or reviewer_id, now, "reviewer", before or {}, record)

        self.database.write(work)

    def reviewers(self) -> dict[str, Record]:
        """Return the current record of each reviewer who has one."""
        return tables.choose_latest_reviewers(
            tables.record_of("reviewer", row) for row in self.rows(sa.select(tables.reviewers))
        )

    def reviewer(self, reviewer_id: str) -> Record | None:
        """Return the current record of one reviewer, or None."""
        query = sa.select(tables.reviewers).where(tables.reviewers.c.reviewer_id == reviewer_id)
        return tables.choose_latest_reviewers(tables.record_of("reviewer", row) for row in self.rows(query)).get(reviewer_id)

    def votes(self, family: str | None = None) -> list[tuple[str, Vote, bool]]:
        """Return (vote id, vote, whether voided) of all votes, by id."""
        statement = (
            sa.select(tables.votes, tables.voids.c.void_id).join(tables.voids, isouter=True).order_by(tables.votes.c.vote_id)
        )
        if family is not None:
            statement = statement.join(tables.pairs, tables.pairs.c.pair_id == tables.votes.c.pair_id).where(
                tables.pairs.c.family == family
            )
        return [
            (row["vote_id"], vote_of(tables.record_of("vote", row)), row["void_id"] is not None) for row in self.rows(statement)
        ]

    def audit(self, vote_id: str) -> list[dict[str, Any]]:
        """Return the origin of a vote: one row per side of its pair and request behind it, from one SQL join.

        The vote, the pair, the response, its request key, the stored response, and the code version and config hash of the run that
        requested it; `paired_...`: of the run that made the pair. `judge_request_keys`: a judge's own. `reason`: why a row does not lead
        back to a run.

        Raises BallotError for an unknown vote.
        """
        rows = [dict(row) for row in self.rows(build_audit_query(vote_id))]
        for row in rows:
            row |= {name: tables.decode_time(row[name]) for name in ("voted_at", "answered_at")} | {
                "reason": find_incomplete_reason(row)
            }
        if not rows:
            raise BallotError(f"there is no vote {vote_id[:80]!r}; `dtef preference votes` lists those there are")
        return rows

    def note(self, user: str, action: str) -> None:
        """Log an action that changes nothing else, such as a login."""
        self.database.write(lambda connection: tables.record_action(connection, user, self.clock(), action, {}, {}))

    def actions(self, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Return administrators' actions, oldest first: who, done_at (microseconds since 1970 UTC), what, before, after (JSON).

        `after`: only those above this `place`. `limit`: None for all.
        """
        place = tables.actions.c.place
        statement = sa.select(tables.actions).where(place > after).order_by(place).limit(limit)
        return [dict(row) for row in self.rows(statement)]

    def _pair_row(self, pair_id: str) -> Mapping[str, Any]:
        rows = self.rows(sa.select(tables.pairs).where(tables.pairs.c.pair_id == pair_id))
        if not rows:
            raise UnknownPair(f"there is no pair {pair_id[:80]!r}; `dtef preference vote` serves those there are")
        return dict(rows[0])

    def _vote(self, vote_id: str) -> Record | None:
        rows = self.rows(sa.select(tables.votes).where(tables.votes.c.vote_id == vote_id))
        return tables.record_of("vote", rows[0]) if rows else None

    def hidden_names(self, extra: Iterable[PairedResponse] = ()) -> Blinding:
        """Return the blinding of all names in the store: a text may name another model than its author."""
        rows = self.rows(sa.select(tables.paired_responses.c.names).distinct())
        stored_names = {name for row in rows for name in json.loads(row["names"])}
        return build_blinding(stored_names.union(*(response.names for response in extra)))


def read_alike(row: Mapping[str, Any], names: Blinding) -> bool:
    """Return whether the texts of a row of `build_texts_query`, as reviewers read them, differ only in case and white space."""
    blinding = names.add_pair_names([*json.loads(row["left_names"]), *json.loads(row["right_names"])])
    left, right = (normalize_for_comparison(row[f"{side}_text"], row[f"{side}_player"], blinding) for side in ("left", "right"))
    return left == right


def read_player_votes(store: VoteStore, *, family: str | None = None, reviewer_kind: str = "person") -> list[PlayersVote]:
    """Return the valid votes for fits, by vote id: not voided, of one kind of reviewer.

    Args:
        family: only votes on responses of this family.
        reviewer_kind: person or judge; the two are never mixed.
    """
    rows = store.rows(build_players_query(family, reviewer_kind))
    return [_build_players_vote(row) for row in rows]


def _build_players_vote(row: Mapping[str, Any]) -> PlayersVote:
    values = {name: row[name] for name in PlayersVote.__slots__ if name in row}
    side = find_preferred_side(row["choice"], row["shown_as_a"])
    return PlayersVote(**{**values, "preferred_side": side, "leak_risk": row["replaced"] > 0})


def find_equal_text_votes(store: VoteStore) -> tuple[int, list[str]]:
    """Return how many votes count, and the ids of those on two texts that differ, as reviewers read them, only in case and white space;
    missing texts count as different.
    """
    rows = store.rows(_VOTED_TEXTS)
    names = store.hidden_names()
    alike = {pair: read_alike(row, names) for pair, row in {row["pair_id"]: row for row in rows}.items()}
    return len(rows), [row["vote_id"] for row in rows if row["left_text"] and alike[row["pair_id"]]]


def _collect_runs(connection: sa.Connection, database: ResponseDatabase, paired: Sequence[Record]) -> dict[str, list[Record]]:
    """Return records of the runs behind paired responses, and of their requests; none for requests of unknown runs."""
    keys = {key for record in paired for key in record["request_keys"]}
    run = asking_runs.c
    statement = (
        sa.select(responses.c.request_key, run.code_version, run.config_hash)
        .join(asking_runs, run.run_id == responses.c.run_id)
        .where(responses.c.request_key.in_(database.key_query))
    )
    runs = {
        row["request_key"]: AskingRun(row["code_version"], row["config_hash"])
        for row in tables.query_listed_rows(connection, database, statement, keys)
    }
    requests = [
        request_record(record["response_id"], key, runs[key].run_id)
        for record in paired
        for key in dict.fromkeys(record["request_keys"])
        if key in runs
    ]
    return {"run": [run_record(asking_run) for asking_run in sorted(set(runs.values()))], "request": requests}


def add_judge(store: VoteStore, reviewer_id: str) -> None:
    """Register the judge as one whose id every export may show. Idempotent."""
    if reviewer_id not in store.reviewers():
        store.record_consent(reviewer_id, consent=True, reviewer_kind=JUDGE_KIND)


def list_own_pairs(store: VoteStore, reviewer_id: str, own_servers: Collection[str] = ()) -> frozenset[str]:
    """Return ids of the pairs with a response of the judge's own maker; `own_servers`: see `is_self_judged`."""
    statement = join_sides(sa.select(tables.pairs.c.pair_id, LEFT_SIDE.c.player, RIGHT_SIDE.c.player))
    rows = store.database.read(lambda connection: connection.execute(statement).all())
    return frozenset(pair_id for pair_id, first, second in rows if is_own_pair(reviewer_id, first, second, own_servers))


def store_judge_votes(store: VoteStore, ballots: Sequence[Ballot]) -> int:
    """Store a judge's votes with the current time, in one transaction; return how many are new. The first vote on each pair stays.

    Judges give no confidence.
    """
    now = store.clock()
    records = [store.vote_record(ballot, now, JUDGE_KIND) | {"confidence": None} for ballot in ballots]

    def work(connection: sa.Connection) -> int:
        return tables.add_rows(connection, store.database, "vote", records)

    return store.database.write(work) if records else 0
