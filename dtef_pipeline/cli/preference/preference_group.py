"""The commands below `dtef preference`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.error_reports import reports_errors
from dtef_pipeline.cli.options import (
    Option,
    choice,
    existing_path,
    family_option,
    flag,
    lines_as_json,
    refuse_others,
    several,
    whole_number,
    writes_a_table,
)
from dtef_pipeline.cli.store_commands import of_admin
from dtef_pipeline.text.quantity_words import format_count


def vote_family_option(help: str) -> Option:
    """`--family` of a command about votes: of which some are on responses that other tools stored."""
    return family_option(None, help, others=("elsewhere",))


_MOST_TOLD = 2_000
_PAIRS_ON_A_PAGE = 50


@click.group(short_help="Pair responses, take votes, and rank by them.")
def preference() -> None:
    """Work with votes: which of two responses a reviewer prefers.

    \b
        dtef preference pairs                     make pairs of stored responses
        dtef preference vote --reviewer ID        show a pair without who wrote what, and take the vote
        dtef preference vote --reviewer ID --out DIR   the same as a page for reviewers without a server
        dtef preference vote --judge MODEL        let a model vote, in both orders of the texts
        dtef preference votes                     list the votes, follow one back, let one count no more
        dtef preference board --refresh           make the board of all votes, and show it
        dtef preference board --now [FILE]        scores of players from the votes as they are, or from a file of votes
        dtef export votes FILE                    write pairs and votes, to keep or to move them
        dtef import votes FILE                    add them, and those of other tools

    Pairs and votes are kept in the response store.
    """


@preference.command(short_help="Make pairs of stored responses for people to compare.")
@family_option("qa", "Family of evaluations whose responses are paired.")
@several(
    "--only",
    metavar="PATTERN",
    help="Only partitions that fit: SUITE/PART of qa, BLUEPRINT of rubric, ROUND/SEGMENT of survey, LEAGUE/SCENARIO of games, as in 'mmlu/*'",
)
@several("--model", "models", metavar="NAME", help="Only responses of this model")
@click.option("--snapshot", default="base", show_default=True, metavar="LABEL", help="Snapshot whose responses are paired.")
@flag("--baselines", help="Pair responses of baselines too, which were computed; their numbers are shown with 2 decimals.")
@whole_number("--most", least=1, help="Most new pairs in all.  [default: all there can be]")
@whole_number("--per-item", least=1, help="Most pairs of one item, with those there are already.  [default: all there can be]")
@of_admin
@reports_errors
@lines_as_json
def pairs(**given: Any) -> None:
    """Make pairs of stored responses: two players' texts on the same item and draw, for reviewers to compare.

    A pair is made once. Players stand in about as many pairs as each other; baselines stand in none, unless they are let in. The same command
    again adds what is missing.
    """
    from dtef_pipeline.cli.preference import preference_votes

    preference_votes.make_pairs(**given)


@preference.command(short_help="Take the votes of a reviewer, or of a model that judges.")
@click.option("--reviewer", metavar="ID", help="Who votes: an id that says nothing of the person.")
@several(
    "--judge",
    "judges",
    metavar="NAME",
    help="Let this model vote: a model or collection that `dtef models` lists, or a litellm string",
)
@vote_family_option("Only pairs of this family.  [default: all]")
@whole_number(
    "--pairs",
    "most",
    least=1,
    help="Pairs to show one after another, or most pairs on a page or for a judge.  [default: 1; 50 on a page; of a judge all]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write an HTML page into, for a reviewer without this computer.",
)
@click.option("--pair", metavar="PAIR", help="Store a vote on this pair, with --choice and --confidence, and ask nothing.")
@choice("--choice", among=["A", "B", "tie"], help="With --pair: which text is better, as they were shown.")
@click.option("--confidence", type=click.IntRange(1, 5), help="With --pair: how certain that is; 5 is the most.")
@click.option(
    "--justification", default="", metavar="TEXT", help=f"With --pair: why, in at most {format_count(_MOST_TOLD, 'character')}."
)
@click.option("--max-cost-usd", multiple=True, metavar="USD", help="With --judge: US dollars that the run may cost at most.")
@click.option("--max-calls", multiple=True, metavar="N", help="With --judge: calls that the run may make at most.")
@reports_errors
def vote(reviewer: str | None, judges: tuple[str, ...], **given: Any) -> None:
    """Show the next pair that the reviewer has not voted on, without who wrote what, and ask for the vote.

    With --out the pairs are written to an HTML page, which needs no network. The reviewer opens it in a browser, votes, downloads the votes and
    sends the file back: `dtef import votes FILE`. A reviewer votes on a pair once: another vote is refused, and the first stays. The id of a
    judge is none of a reviewer: nobody else votes under it.

    With --judge a model votes on the pairs that it has not voted on. It sees what people see: the prompt, and two texts without names. Each pair
    is asked in both orders. A verdict that does not survive the swap is a tie; how often that happens is the flip rate. Replies are stored
    before they are read, so that the same command again buys nothing twice. Votes of models never count with people's. Votes on a response of
    the judge's own maker are self-judged: they are counted as such, and left out with `no_own_judge: true` in the section `preference` of the
    panel file, here and where scores are made.

    \b
    Exit code: 0 done; 1 some pairs got no vote of a judge; 2 the options or the set-up need mending.
    """
    if bool(judges) == (reviewer is not None):
        raise click.UsageError("--reviewer and --judge: allowed: one of them.")
    if judges:
        refuse_others(("judges", *_JUDGE_OPTIONS), "--judge")
        from dtef_pipeline.cli.preference import preference_judge

        sys.exit(preference_judge.judge(judges, **{name: given[name] for name in _JUDGE_OPTIONS}))
    refuse_others({"reviewer", *given} - {"max_cost_usd", "max_calls"}, "--reviewer")
    _take_votes(str(reviewer), given)


_JUDGE_OPTIONS = ("family", "most", "max_cost_usd", "max_calls")


def _take_votes(reviewer: str, given: Mapping[str, Any]) -> None:
    """Of a person: one vote that was given whole, those on a page, or those that the person is asked for."""
    from dtef_pipeline.cli.preference import preference_votes

    family, most, out = given["family"], given["most"], given["out"]
    ballot = {"pair_id": given["pair"], "choice": given["choice"], "confidence": given["confidence"]}
    if len({value is None for value in ballot.values()}) > 1 or (given["justification"] and given["pair"] is None):
        raise click.UsageError("--pair, --choice and --confidence: allowed: all three, and --justification with them, or none.")
    if given["pair"] is not None and (out or most or family):
        raise click.UsageError("--pair: allowed without --out, --pairs and --family.")
    if given["pair"] is not None:
        preference_votes.take_vote({**ballot, "reviewer_id": reviewer, "justification": given["justification"]})
    elif out is not None:
        preference_votes.write_page(out, reviewer, family, most or _PAIRS_ON_A_PAGE)
    else:
        preference_votes.ask_reviewer(reviewer, family, most or 1)


@preference.command(short_help="List the votes, follow one back, or let one count no more.")
@click.argument("vote", required=False)
@vote_family_option("Only votes on responses of this family.  [default: all]")
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
    from dtef_pipeline.cli.preference import preference_votes

    given = {"VOTE": vote, "--family": family, "--consent": consent, "--no-consent": no_consent, "--actions": actions}
    chosen = [name for name, value in given.items() if value]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)}: allowed: one of them.")
    if reason is not None and vote is None:
        raise click.UsageError("--void: allowed with VOTE.")
    if reason is not None and vote is not None:
        preference_votes.cancel_vote(vote, reason, who)
    elif vote is not None:
        preference_votes.show_vote_history(vote, output)
    elif consent or no_consent:
        preference_votes.record_reviewer(consent or no_consent or "", bool(consent), who)
    elif actions:
        preference_votes.list_actions(output)
    else:
        preference_votes.list_votes(output, family)


@preference.command(short_help="Show whose responses reviewers prefer, also beside metrics.")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@vote_family_option("Only votes on responses of this family.  [default: each by itself; with --now all together]")
@click.option(
    "--partition",
    default="all",
    show_default=True,
    metavar="NAME",
    help="Votes on items of this suite, blueprint, league or ROUND; all: those on the whole family.",
)
@choice("--reviewer-kind", among=["person", "judge"], help="Only this kind of reviewers.  [default: each by itself]")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="PATTERN",
    help="Only judges whose id, model or name in the models file fits, as in gpt-4.1-mini; may be repeated. With --now it is needed where "
    "several judges voted; '*' takes all for reviewers of one fit, a model at two temperatures for one.  [default: each by itself; with --now "
    "people]",
)
@click.option(
    "--metric",
    metavar="PATTERN",
    help="Show preference beside the automated metrics that fit, such as 'expected_return*' or '*'.  [default: no metric]",
)
@click.option("--refresh", is_flag=True, help="First make the table preference_scores anew of all votes that are not voided.")
@click.option("--now", is_flag=True, help="Fit scores to the votes of the store as they are now, or to those of FILE.")
@several("--item", "items", metavar="PATTERN", help="With --now: only votes on items that fit, as in 'mmlu/*'")
@several("--reviewer", "reviewers", metavar="PATTERN", help="With --now: only votes of reviewers whose id fits")
@existing_path(
    "--responses",
    kind="file",
    help="JSON lines with prompt_id, model and text: how long the responses of FILE are. Shows what length did, also without `control`.",
)
@writes_a_table
@reports_errors
def board(file: Path | None, now: bool, refresh: bool, output: str, **given: Any) -> None:
    """Rank players by what reviewers prefer, with 95 % intervals by whole reviewers.

    Scores are those of Bradley and Terry: i is preferred to j with probability exp(beta_i) / (exp(beta_i) + exp(beta_j)). The section
    `preference` of the panel file, which DTEF_PANEL names, says how votes count: ties, prior_l2, weight, control, items, no_own_judge and
    without_leak_risk. People's votes and those of each model that judges are ranked apart. Beneath stand how often the longer text was
    preferred, and of a judge how often a verdict did not survive the swap of the texts, and how many votes are on responses of its own maker
    (self-judged). Players that were never compared, directly or through others, stand in components of their own. Where nobody else ever beat
    or tied some players, no score of that component is finite.

    FILE, which implies --now, is a CSV with the columns left, right, choice (A: left, B: right, tie) and, where they are known, reviewer_id,
    confidence (1 to 5) and prompt_id; or JSON: {"votes": [[left, right, choice], ...]} or {"wins": [[winner, loser, count], ...]}. Without
    reviewers and prompts each vote counts as independent.

    With --metric the table has the players with both votes and a metric, and how far the two orders agree. Agreement is Kendall's tau: 1 the
    same order, 0 nothing to do with each other, -1 reversed; its 95 % interval speaks of other players like these and needs 8 of them. Metrics
    of which less is better are reversed first. The scores of models that judge count as a metric beside people's votes. The table has the
    metrics that can be compared; JSON and CSV have the rows of all, with the reason where there is no tau.

    \b
    Exit code: 0 done, also where no score is finite; 1 a roll-up failed; 2 there are no such votes, or the options need mending.
    """
    if now or file is not None or given["items"] or given["reviewers"]:
        refuse_others(("now", *_FIT_OPTIONS), "--now")
        from dtef_pipeline.cli.preference import preference_fit

        preference_fit.fit(file, output, **{name: given[name] for name in _FIT_OPTIONS})
        return
    taken = ("family", "partition", "reviewer_kind", "refresh")
    refuse_others(
        (*taken, "metric") if given["metric"] else (*taken, "judges"), "--metric" if given["metric"] else "the stored board"
    )
    from dtef_pipeline.cli.preference import preference_board

    code = preference_board.refresh() if refresh else 0
    chosen = {name: given[name] for name in ("family", "partition", "reviewer_kind")}
    if given["metric"] is None:
        preference_board.show(judges=given["judges"], output=output, **chosen)
    else:
        preference_board.compare(metric=given["metric"], output=output, **chosen)
    sys.exit(code)


_FIT_OPTIONS = ("family", "items", "reviewers", "judges", "responses")
