"""The commands about pairs and votes."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from dtef_pipeline.api.review.feedback_routes import PairRequest
from dtef_pipeline.api.review.paired_responses import pair_stored
from dtef_pipeline.cli.terminal import compute_terminal_fit, whole_frame
from dtef_pipeline.cli.warehouse_access import open_warehouse
from dtef_pipeline.documents import format_value
from dtef_pipeline.errors import BallotError, ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.preference.pairing import read_pairs_csv
from dtef_pipeline.preference.vote_records import build_response_record, pair_record
from dtef_pipeline.preference.votes import ID_IN_WORDS, is_id
from dtef_pipeline.report.terminal import render
from dtef_pipeline.site.vote_page import vote_page
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.printable import escape_terminal
from resources.model_catalog import load_known_models
from resources.settings import Settings
from resources.votes.vote_files import Line, VoteImportResult, add_lines, export_votes, import_votes
from resources.votes.vote_queries import JUDGE_KIND, refuse_judge
from resources.votes.vote_store import VoteStore, list_own_pairs
from resources.votes.vote_tables import decode_time

_EXPORT_ENDINGS = (".jsonl", ".jsonl.gz")


def make_pairs(user: str | None, **fields: Any) -> None:
    """`fields`: the fields of `PairRequest`."""
    settings, request = Settings.read_environment(), PairRequest.model_construct(**fields)
    with _store() as store:
        result = pair_stored(store, open_warehouse(), settings, request, user or get_user_name())
        if not result.responses:
            also = "; there are baselines, which are paired with --baselines" if result.computed else ""
            raise ConfigError(
                f"no stored response of {request.family} fits{also}; `dtef responses --family {request.family}` lists what there is"
            )
        click.echo(f"{store.name}: {format_count(result.new, 'new pair')} of {format_count(result.responses, 'response')}")
    if not result.pair_ids:
        click.echo(
            "Nothing is left to pair: each pair needs two players with different texts (ignoring names) on the same item and draw."
        )


def cancel_vote(vote_id: str, reason: str, user: str | None) -> None:
    with _store() as store:
        store.void(vote_id, user or get_user_name(), reason)
    click.echo(f"vote {vote_id} is void; its reviewer cannot vote on the pair again")


def record_reviewer(reviewer: str, consent: bool, user: str | None) -> None:
    with _store() as store:
        _require_person(store, reviewer)
        if store.reviewer(reviewer) is None and all(vote.reviewer_id != reviewer for _, vote, _ in store.votes(None)):
            raise ConfigError(f"reviewer {reviewer!r} has no votes; `dtef preference votes` lists the reviewers")
        store.record_consent(reviewer, consent=consent, user=user or get_user_name())
    click.echo(f"exports show {'the id' if consent else 'a pseudonym'} of {reviewer}")


def list_votes(output: str, family: str | None) -> None:
    with _store() as store:
        votes = store.votes(family)
        judges = {vote.reviewer_id for _, vote, _ in votes if vote.reviewer_kind == JUDGE_KIND}
        servers = load_known_models(Settings.read_environment(), COMPUTED_MODELS).own_servers if judges else ()
        own_pairs = {judge: list_own_pairs(store, judge, servers) for judge in judges}
    rows = [
        {
            "vote": vote_id,
            "pair": vote.pair_id,
            "reviewer": vote.reviewer_id,
            "kind": vote.reviewer_kind,
            "choice": vote.choice,
            "confidence": vote.confidence,
            "voted_at": vote.voted_at,
            "voided": is_voided,
            "self_judged": vote.pair_id in own_pairs[vote.reviewer_id] if vote.reviewer_kind == JUDGE_KIND else None,
            "justification": vote.justification,
        }
        for vote_id, vote, is_voided in votes
    ]
    _print_table(rows, output, ["vote", "choice"])


def show_vote_history(vote_id: str, output: str) -> None:
    with _store() as store:
        rows = store.audit(vote_id)
    if output != "table":
        _print_table(rows, output, [])
        return
    # A row has too many columns for a terminal, so each gets a line.
    width = 2 + max(map(len, rows[0]))
    for row in rows:
        for name, value in row.items():
            click.echo(f"{name:<{width}}{escape_terminal(str('-' if value is None else value))}")
        click.echo()


def export_file(path: Path, justifications: bool, user: str | None) -> None:
    if not path.name.lower().endswith(_EXPORT_ENDINGS):
        raise ConfigError(
            f"{path}: an export is JSON lines; allowed endings: {', '.join(_EXPORT_ENDINGS)}. For a table: dtef preference votes --csv"
        )
    with _store() as store:
        n_lines = export_votes(store, path, user or get_user_name(), justifications=justifications)
        click.echo(f"{path}: {format_count(n_lines, 'line')} of {store.name}")


def list_actions(output: str) -> None:
    with _store() as store:
        rows = [action | {"done_at": decode_time(action["done_at"])} for action in store.actions()]
    columns = ("done_at", "who", "what", "before", "after")
    _print_table(
        [{name: action[name] for name in columns} for action in rows], output, ["what"], none="There are no actions yet."
    )


def import_file(path: Path, responses: Path | None, prompts: Path | None, user: str | None) -> None:
    is_csv = path.suffix.lower() == ".csv"
    if not is_csv and (responses or prompts):
        raise ConfigError("--responses and --prompts: allowed only with a CSV file; JSON lines contain the responses")
    with _store() as store:
        user = user or get_user_name()
        result = _import_csv(store, path, responses, prompts, user) if is_csv else import_votes(store, path, user)
        summary = ", ".join(format_count(count, kind) for kind, count in result.added.items()) or "nothing"
        click.echo(f"{store.name}: {summary} added from {path}, {result.known:,} stored before")


def write_page(folder: Path, reviewer: str, family: str | None, limit: int) -> None:
    with _store() as store:
        _require_person(store, reviewer)
        names = store.hidden_names()
        pairs = [store.reviewer_view(key, names) for key in store.waiting(reviewer, limit, family)]
    if not pairs:
        raise ConfigError("no pair is left for this reviewer; `dtef preference pairs` makes pairs of stored responses")
    path = folder / "votes.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(vote_page(pairs, reviewer), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
    click.echo(
        f"{path}: {format_count(len(pairs), 'pair')}; `dtef import votes FILE` adds the votes that the reviewer downloads"
    )


def _import_csv(store: VoteStore, path: Path, responses: Path | None, prompts: Path | None, user: str) -> VoteImportResult:
    ratings = read_pairs_csv(path, responses, prompts)
    every = {side.response_id: side for rating in ratings for side in (rating.left, rating.right)}
    pairs = {rating.pair.pair_id: store.make_keyed(rating.pair) for rating in ratings}
    replacements = store.count_names(list(every.values()), list(pairs.values()))
    lines = [Line(str(path), None, "response", build_response_record(response, None)) for response in every.values()]
    lines += [Line(str(path), None, "pair", pair_record(pair, replacements[pair.pair_id], None)) for pair in pairs.values()]
    for rating in ratings:
        record = store.build_imported_vote(
            pairs[rating.pair.pair_id].pair_id, rating.reviewer_id, rating.choice, rating.shown_as_a, rating.confidence
        )
        lines.append(Line(str(path), rating.line, "vote", record, is_of_another_tool=True))
    return add_lines(store, lines, user, str(path))


def _print_table(
    rows: Sequence[Mapping[str, Any]], output: str, columns: Sequence[str], none: str = "There are no votes."
) -> None:
    if not rows and output == "table":
        click.echo(none)
        return
    click.echo(render(whole_frame(pa.Table.from_pylist(list(rows))), output, fit=compute_terminal_fit(list(columns))))


def _require_person(store: VoteStore, reviewer: str) -> None:
    """Raise ConfigError if it is not the id of a person."""
    if not is_id(reviewer):
        raise ConfigError(f"--reviewer: {format_value(reviewer)} is not an id; write {ID_IN_WORDS}")
    try:
        refuse_judge(store.database, reviewer, "--reviewer")
    except BallotError as error:
        raise ConfigError(str(error)) from None


def get_user_name() -> str:
    """Return the name of this computer's user, for the record of actions."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _store() -> VoteStore:
    return VoteStore(Settings.read_environment().responses_url)
