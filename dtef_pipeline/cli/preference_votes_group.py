"""The commands below `dtef preference` about pairs and votes. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import of_family, of_format, writes_a_table
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.text.counted import counted

_MOST_TOLD = 2_000
_A_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
of_reviewer = click.option("--reviewer", required=True, metavar="ID", help="Who votes: an id that says nothing of the person.")
of_admin = click.option(
    "--by", "who", metavar="NAME", help="Who does this, for the record.  [default: the user of this computer]"
)
of_confidence = click.IntRange(1, 5)


@click.command(short_help="Make pairs of stored responses for people to compare.")
@of_family("qa", "Family of evaluations whose responses are paired.")
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Only partitions that fit: SUITE/PART of qa, BLUEPRINT of rubric, ROUND/SEGMENT of survey, "
    "LEAGUE/SCENARIO of games, as in 'mmlu/*'; may be repeated.",
)
@click.option("--model", "models", multiple=True, metavar="NAME", help="Only responses of this model; may be repeated.")
@click.option("--snapshot", default="base", show_default=True, metavar="LABEL", help="Snapshot whose responses are paired.")
@click.option("--most", type=click.IntRange(min=1), help="Most new pairs in all.  [default: all there can be]")
@click.option(
    "--per-item",
    type=click.IntRange(min=1),
    help="Most pairs of one item, with those there are already.  [default: all there can be]",
)
@of_admin
@reports_errors
def pairs(**given: Any) -> None:
    """Make pairs of stored responses: two players' texts on the same item and draw, for reviewers to compare.

    A pair is made once. Players stand in about as many pairs as each other. The same command again adds what is missing.
    """
    from dtef_pipeline.cli import preference_votes

    preference_votes.make_pairs(**given)


@click.command("next", short_help="Show a pair at the terminal and take the vote.")
@of_reviewer
@of_family(None, "Only pairs of this family.  [default: all]")
@click.option(
    "--pairs", "most", type=click.IntRange(min=1), default=1, show_default=True, help="Pairs to show one after another."
)
@reports_errors
def next_pair(reviewer: str, family: str | None, most: int) -> None:
    """Show the next pair that the reviewer has not voted on, without who wrote what, and ask for the vote."""
    from dtef_pipeline.cli import preference_votes

    preference_votes.ask_reviewer(reviewer, family, most)


@click.command(short_help="Store the vote of a reviewer on a pair.")
@click.argument("pair")
@of_reviewer
@click.option("--choice", required=True, type=click.Choice(["A", "B", "tie"]), help="Which text is better, as they were shown.")
@click.option("--confidence", required=True, type=of_confidence, help="How certain that is: 5 is the most.")
@click.option("--justification", default="", metavar="TEXT", help=f"Why, in at most {counted(_MOST_TOLD, 'character')}.")
@reports_errors
def vote(pair: str, reviewer: str, choice: str, confidence: int, justification: str) -> None:
    """Store a vote on PAIR. A reviewer votes on a pair once: another vote is refused, and the first stays.

    The id of a judge (`dtef preference judge`) is none of a reviewer: nobody else votes under it.
    """
    from dtef_pipeline.cli import preference_votes

    preference_votes.take_vote(
        {"pair_id": pair, "reviewer_id": reviewer, "choice": choice, "confidence": confidence, "justification": justification}
    )


@click.command(short_help="Let a vote count no more.")
@click.argument("vote")
@click.option("--reason", required=True, metavar="TEXT", help="Why it counts no more.")
@of_admin
@reports_errors
def void(vote: str, reason: str, who: str | None) -> None:
    """Let VOTE count no more. It stays in the store, and with it who voided it, when and why.

    Its reviewer cannot vote on the pair again: a reviewer votes on a pair once.
    """
    from dtef_pipeline.cli import preference_votes

    preference_votes.void_vote(vote, reason, who)


@click.command(short_help="Note whether exports may show a reviewer's id.")
@click.argument("reviewer")
@click.option("--consent/--no-consent", required=True, help="Whether the reviewer lets exports show the id.")
@of_admin
@reports_errors
def reviewer(reviewer: str, consent: bool, who: str | None) -> None:
    """Note whether exports may show the id of REVIEWER. Without consent they show a pseudonym, another one in each export."""
    from dtef_pipeline.cli import preference_votes

    preference_votes.note_reviewer(reviewer, consent, who)


@click.command(short_help="List the votes.")
@of_family(None, "Only votes on responses of this family.  [default: all]")
@writes_a_table
@reports_errors
def votes(output: str, family: str | None) -> None:
    """List the votes: which pair, what was chosen, how certain the reviewer was, and whether the vote counts."""
    from dtef_pipeline.cli import preference_votes

    preference_votes.list_votes(output, family)


@click.command(short_help="Follow a vote back to requests, code and configuration.")
@click.argument("vote")
@of_format
@reports_errors
def audit(vote: str, output: str) -> None:
    """Follow VOTE back: to its pair, the two responses, the requests behind them, and the code and configuration of the run that asked.

    One row per side and request. Where it does not lead back to a run, its reason says why.
    """
    from dtef_pipeline.cli import preference_votes

    preference_votes.audit_vote(vote, output)


@click.command("export", short_help="Write pairs, responses and votes to a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--justifications/--no-justifications",
    default=True,
    show_default=True,
    help="Whether to write what people gave as reasons: words of theirs may tell who they are.",
)
@of_admin
@reports_errors
def export_file(file: Path, justifications: bool, who: str | None) -> None:
    """Write all pairs, with their responses, votes and the runs that asked, to FILE: JSON lines (.jsonl, .jsonl.gz), sorted.

    Reviewers who gave no consent stand under pseudonyms, and their votes under other ids in each export, with the day alone. What decides
    which text is shown as A stays here.
    """
    from dtef_pipeline.cli import preference_votes

    preference_votes.export_file(file, justifications, who)


@click.command(short_help="List what administrators did.")
@writes_a_table
@reports_errors
def actions(output: str) -> None:
    """List what administrators did, the first first: who, when, what, and what was before and after, as JSON.

    What is done: pairs made (pairs), files imported and exported (import, export), votes voided (void), consent noted (reviewer).
    """
    from dtef_pipeline.cli import preference_votes

    preference_votes.list_actions(output)


@click.command("import", short_help="Add pairs and votes of a file.")
@click.argument("file", type=_A_FILE)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "pairs-csv"]),
    default="jsonl",
    show_default=True,
    help="What FILE is: JSON lines of an export or of a reviewer's page; or a CSV of another tool with left, right, choice.",
)
@click.option("--responses", type=_A_FILE, help="Of a CSV: JSON lines with prompt_id, model and text; also maker and api_id.")
@click.option("--prompts", type=_A_FILE, help="Of a CSV: JSON lines with prompt_id and text.")
@of_admin
@reports_errors
def import_file(file: Path, form: str, responses: Path | None, prompts: Path | None, who: str | None) -> None:
    """Add the pairs, responses and votes of FILE. What is there already is passed over; if a line is faulty, it is named, and nothing
    is added. Ids of reviewers have 1 to 200 printable characters and are not those of judges, times lie between 1970 and now, and no key
    stands twice in a line.

    A CSV has the columns left, right and choice (A is left, B is right, or tie), and may have prompt_id, reviewer_id and confidence. Without
    --responses its votes count, but its pairs cannot be shown.
    """
    from dtef_pipeline.cli import preference_votes

    preference_votes.import_file(file, form, responses, prompts, who)


@click.command(short_help="Write a page with pairs for a reviewer without a server.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write the page into.")
@of_reviewer
@of_family(None, "Only pairs of this family.  [default: all]")
@click.option("--pairs", "most", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Most pairs on the page.")
@reports_errors
def page(out: Path, reviewer: str, family: str | None, most: int) -> None:
    """Write an HTML page with pairs that the reviewer has not voted on. It needs no network, and shows nothing of who wrote what.

    The reviewer opens it in a browser, votes, downloads the votes and sends the file back: `dtef preference import FILE`.
    """
    from dtef_pipeline.cli import preference_votes

    preference_votes.write_page(out, reviewer, family, most)


VOTE_COMMANDS = (pairs, next_pair, vote, votes, void, reviewer, audit, actions, export_file, import_file, page)
"""In the order in which they are used."""
