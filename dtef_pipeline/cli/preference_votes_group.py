"""The commands below `dtef preference` about pairs and votes. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import of_family, writes_a_table
from dtef_pipeline.cli.preference_fit_group import of_voted_family
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.text.counted import counted

_MOST_TOLD = 2_000
_PAIRS_ON_A_PAGE = 50
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
@click.option(
    "--baselines",
    is_flag=True,
    help="Pair responses of baselines too, which were computed; their numbers are shown with 2 decimals.",
)
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

    A pair is made once. Players stand in about as many pairs as each other; baselines stand in none, unless they are let in. The same command
    again adds what is missing.
    """
    from dtef_pipeline.cli import preference_votes

    preference_votes.make_pairs(**given)


@click.command("next", short_help="Take the votes of a reviewer on pairs, one after another or on a page.")
@of_reviewer
@of_voted_family("Only pairs of this family.  [default: all]")
@click.option(
    "--pairs",
    "most",
    type=click.IntRange(1, 1_000),
    help="Pairs to show one after another, or most pairs on a page.  [default: 1; 50 on a page]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write an HTML page into, for a reviewer without this computer.",
)
@click.option("--pair", metavar="PAIR", help="Store a vote on this pair, with --choice and --confidence, and ask nothing.")
@click.option("--choice", type=click.Choice(["A", "B", "tie"]), help="With --pair: which text is better, as they were shown.")
@click.option("--confidence", type=of_confidence, help="With --pair: how certain that is; 5 is the most.")
@click.option(
    "--justification", default="", metavar="TEXT", help=f"With --pair: why, in at most {counted(_MOST_TOLD, 'character')}."
)
@reports_errors
def next_pair(
    reviewer: str,
    family: str | None,
    most: int | None,
    out: Path | None,
    pair: str | None,
    choice: str | None,
    confidence: int | None,
    justification: str,
) -> None:
    """Show the next pair that the reviewer has not voted on, without who wrote what, and ask for the vote.

    With --out the pairs are written to an HTML page, which needs no network. The reviewer opens it in a browser, votes, downloads the votes and
    sends the file back: `dtef preference import FILE`.

    A reviewer votes on a pair once: another vote is refused, and the first stays. The id of a judge (`dtef preference judge`) is none of a
    reviewer: nobody else votes under it.
    """
    from dtef_pipeline.cli import preference_votes

    if (pair is None) != (choice is None) or (pair is None) != (confidence is None) or (justification and pair is None):
        raise click.UsageError("--pair, --choice and --confidence: allowed: all three, and --justification with them, or none.")
    if pair is not None and (out or most or family):
        raise click.UsageError("--pair: allowed without --out, --pairs and --family.")
    if pair is not None:
        preference_votes.take_vote(
            {
                "pair_id": pair,
                "reviewer_id": reviewer,
                "choice": choice,
                "confidence": confidence,
                "justification": justification,
            }
        )
    elif out is not None:
        preference_votes.write_page(out, reviewer, family, most or _PAIRS_ON_A_PAGE)
    else:
        preference_votes.ask_reviewer(reviewer, family, most or 1)


@click.command(short_help="List the votes, follow one back, or let one count no more.")
@click.argument("vote", required=False)
@of_voted_family("Only votes on responses of this family.  [default: all]")
@click.option("--void", "reason", metavar="REASON", help="Let VOTE count no more, for this reason.")
@click.option("--consent", metavar="REVIEWER", help="Note that exports may show the id of this reviewer.")
@click.option(
    "--no-consent", metavar="REVIEWER", help="Note that exports show a pseudonym of this reviewer, as they usually do."
)
@click.option("--actions", is_flag=True, help="List what administrators did instead: who, when, what, before and after.")
@of_admin
@writes_a_table
@reports_errors
def votes(
    vote: str | None,
    family: str | None,
    reason: str | None,
    consent: str | None,
    no_consent: str | None,
    actions: bool,
    who: str | None,
    output: str,
) -> None:
    """List the votes: which pair, what was chosen, how certain the reviewer was, and whether the vote counts.

    VOTE is followed back to its pair, the two responses, the requests behind them, and the code and configuration of the run that asked: one row
    per side and request. Where it does not lead back to a run, its reason says why. With --void it counts no more. It stays in the store,
    and with it who voided it, when and why. Its reviewer cannot vote on the pair again: a reviewer votes on a pair once.

    What administrators do: pairs made (pairs), files imported and exported (import, export), votes voided (void), consent noted (reviewer).
    """
    from dtef_pipeline.cli import preference_votes

    given = {"VOTE": vote, "--family": family, "--consent": consent, "--no-consent": no_consent, "--actions": actions}
    chosen = [name for name, value in given.items() if value]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)}: allowed: one of them.")
    if reason is not None and vote is None:
        raise click.UsageError("--void: allowed with VOTE.")
    if reason is not None and vote is not None:
        preference_votes.void_vote(vote, reason, who)
    elif vote is not None:
        preference_votes.audit_vote(vote, output)
    elif consent or no_consent:
        preference_votes.note_reviewer(consent or no_consent or "", bool(consent), who)
    elif actions:
        preference_votes.list_actions(output)
    else:
        preference_votes.list_votes(output, family)


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


VOTE_COMMANDS = (pairs, next_pair, votes, export_file, import_file)
"""In the order in which they are used."""
