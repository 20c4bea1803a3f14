"""The commands below `dtef preference`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.error_reports import reports_errors
from dtef_pipeline.cli.options import (
    Option,
    choice,
    family_option,
    flag,
    lines_as_json,
    refuse_others,
    several,
    whole_number,
    writes_a_table,
)
from dtef_pipeline.cli.store_commands import admin_option


def vote_family_option(help: str) -> Option:
    """Return the option `--family` for votes, some of which are on responses stored by other tools."""
    return family_option(None, help, extras=("elsewhere",))


_PAIRS_ON_A_PAGE = 50


@click.group(short_help="Pair responses, collect votes, and rank by them.")
def preference() -> None:
    """Work with votes: which of two responses a reviewer prefers. `dtef export votes` and `dtef import votes` write and read files of them.

    Pairs and votes are kept in the response store.
    """


@preference.command(short_help="Make pairs of stored responses for people to compare.")
@family_option("qa", "Family of evaluations whose responses are paired.")
@several(
    "--pattern",
    metavar="PATTERN",
    help="Only partitions that fit: SUITE/PART of qa, BLUEPRINT of rubric, ROUND/SEGMENT of survey, LEAGUE/SCENARIO of games, as in 'mmlu/*'",
)
@several("--model", "models", metavar="NAME", help="Only responses of this model")
@click.option("--snapshot", default="base", show_default=True, metavar="SNAPSHOT", help="Snapshot whose responses are paired.")
@flag("--baselines", help="Pair responses of baselines too, which were computed; their numbers are shown with 2 decimals.")
@whole_number("--max-pairs", floor=1, help="Maximum number of new pairs.  [default: all there can be]")
@whole_number(
    "--per-item", floor=1, help="Maximum number of pairs of one item, existing ones included.  [default: all possible pairs]"
)
@admin_option
@reports_errors
@lines_as_json
def pairs(**given: Any) -> None:
    """Make pairs of stored responses: two players' texts on the same item and draw, for reviewers to compare.

    A pair is made once. All players get about the same number of pairs; baselines are paired only with --baselines. The same command again adds
    missing pairs.
    """
    from dtef_pipeline.cli.preference import preference_votes

    preference_votes.make_pairs(**given)


@preference.command(short_help="Write the page of a reviewer, or let a model vote.")
@click.option("--reviewer", metavar="ID", help="Id of the reviewer, which must not identify the person.")
@several(
    "--judge",
    "judges",
    metavar="NAME",
    help="Let this model vote: a model or collection that `dtef models` lists, or a model string of LiteLLM",
)
@vote_family_option("Only pairs of this family.  [default: all]")
@whole_number(
    "--pairs", "most", floor=1, help="Maximum number of pairs on the page or for a judge.  [default: 50; of a judge all]"
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder to write the reviewer's page into.  [default: the current folder]",
)
@click.option("--max-cost-usd", multiple=True, metavar="USD", help="With --judge: most US dollars that the run may cost.")
@click.option("--max-calls", multiple=True, metavar="N", help="With --judge: most calls of the run.")
@reports_errors
def vote(reviewer: str | None, judges: tuple[str, ...], **given: Any) -> None:
    """Write votes.html, a page with the pairs that the reviewer has not voted on, without their authors.

    The page needs no network. The reviewer opens it in a browser, votes, downloads the votes and sends the file back: `dtef import votes FILE`.
    A reviewer votes on a pair once: another vote is refused, and the first stays. The id of a judge is reserved: no reviewer can vote under it.

    With --judge a model votes on the pairs that it has not voted on. It sees what people see: the prompt, and two texts without names. Each pair
    is asked in both orders. If the verdict changes with the order, the vote is a tie; the flip rate is the share of such votes. Replies are
    stored before they are read, so that the same command again requests nothing twice. Votes of models are never mixed with people's. Votes on
    a response of the judge's own maker are marked as self-judged; `no_own_judge: true` in the section `preference` of the panel file leaves
    them out, here and when scores are computed.

    \b
    Exit code: 0 done; 1 some pairs got no vote of a judge; 2 an option or the set-up is wrong.
    """
    if bool(judges) == (reviewer is not None):
        raise click.UsageError("give either --reviewer or --judge.")
    if judges:
        refuse_others(("judges", *_JUDGE_OPTIONS), "--judge")
        from dtef_pipeline.cli.preference import preference_judge

        sys.exit(preference_judge.judge(judges, **{name: given[name] for name in _JUDGE_OPTIONS}))
    refuse_others({"reviewer", *given} - {"max_cost_usd", "max_calls"}, "--reviewer")
    from dtef_pipeline.cli.preference import preference_votes

    preference_votes.write_page(given["out"], str(reviewer), given["family"], given["most"] or _PAIRS_ON_A_PAGE)


_JUDGE_OPTIONS = ("family", "most", "max_cost_usd", "max_calls")


@preference.command(short_help="List the votes, trace a vote to its run, or void it.")
@click.argument("vote", required=False)
@vote_family_option("Only votes on responses of this family.  [default: all]")
@click.option(
    "--void", "reason", metavar="REASON", help="Void VOTE, for this reason: it stays in the store, but no longer counts."
)
@click.option("--consent", metavar="REVIEWER", help="Note that exports may show the id of this reviewer.")
@click.option(
    "--no-consent", metavar="REVIEWER", help="Note that exports show a pseudonym of this reviewer, as they usually do."
)
@click.option("--actions", is_flag=True, help="List the actions of administrators instead: who, when, what, before and after.")
@admin_option
@writes_a_table
@reports_errors
def votes(
    vote: str | None,
    family: str | None,
    reason: str | None,
    consent: str | None,
    no_consent: str | None,
    actions: bool,
    user: str | None,
    output: str,
) -> None:
    """List the votes: which pair, what was chosen, how certain the reviewer was, and whether the vote counts.

    VOTE is traced to its pair, the two responses, their requests, and the code and configuration of the run: one row per side and request. If it
    cannot be traced to a run, a reason says why. --void makes it count no longer; it stays in the store, with who voided it, when and why. Its
    reviewer cannot vote on the pair again.

    --actions lists what administrators did: pairs made (pairs), files imported and exported (import, export), votes voided (void), consent noted
    (reviewer).
    """
    from dtef_pipeline.cli.preference import preference_votes

    options = {"VOTE": vote, "--family": family, "--consent": consent, "--no-consent": no_consent, "--actions": actions}
    names = [name for name, value in options.items() if value]
    if len(names) > 1:
        raise click.UsageError(f"give only one of {' and '.join(names)}.")
    if reason is not None and vote is None:
        raise click.UsageError("--void needs VOTE.")
    if reason is not None and vote is not None:
        preference_votes.cancel_vote(vote, reason, user)
    elif vote is not None:
        preference_votes.show_vote_history(vote, output)
    elif consent or no_consent:
        preference_votes.record_reviewer(consent or no_consent or "", bool(consent), user)
    elif actions:
        preference_votes.list_actions(output)
    else:
        preference_votes.list_votes(output, family)


@preference.command(short_help="Show whose responses reviewers prefer, and compare with metrics.")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@vote_family_option("Only votes on responses of this family.  [default: each separately]")
@click.option(
    "--partition",
    default="all",
    show_default=True,
    metavar="NAME",
    help="Votes on items of this suite, blueprint, league or ROUND; all: on the whole family.",
)
@choice("--reviewer-kind", choices=["person", "judge"], help="Only this kind of reviewers.  [default: each separately]")
@several(
    "--judge",
    "judges",
    metavar="PATTERN",
    help="Only judges whose id or model fits, as in gpt-4.1-mini",
    usual="each separately",
)
@click.option(
    "--metric",
    metavar="PATTERN",
    help="Compare preference with the automated metrics that fit, such as 'expected_return*' or '*'.  [default: no metric]",
)
@click.option("--refresh", is_flag=True, help="First recompute the table preference_scores from all votes that are not voided.")
@writes_a_table
@reports_errors
def board(file: Path | None, refresh: bool, output: str, **given: Any) -> None:
    """Rank players by what reviewers prefer, with 95 % intervals by whole reviewers.

    Scores are those of Bradley and Terry: i is preferred to j with probability exp(beta_i) / (exp(beta_i) + exp(beta_j)). The section
    `preference` of the panel file, which DTEF_PANEL names, says how votes count: ties, prior_l2, weight, control, items, no_own_judge and
    without_leak_risk. People's votes and those of each judge model are ranked separately. Lines after the table say how often the longer text
    was preferred, and for a judge how often its verdict changed when the texts were swapped, and how many votes are on responses of its own
    maker (self-judged). Players that were never compared, directly or through others, are in different components. If some players were never
    beaten or tied by any other, no score of that component is finite.

    With FILE, scores of its votes are shown and not stored. It is a CSV with the columns left, right, choice (A: left, B: right, tie) and,
    where they are known, reviewer_id, confidence (1 to 5) and prompt_id; or JSON: {"votes": [[left, right, choice], ...]} or
    {"wins": [[winner, loser, count], ...]}. Without reviewers and prompts each vote counts as independent.

    With --metric the table has the players with both votes and a metric, and how far the two orders agree. Agreement is Kendall's tau: 1 the
    same order, 0 unrelated, -1 reversed; its 95 % interval is over other such players and needs 8 of them. Metrics for which lower is better are
    reversed first. The scores of judge models count as a metric next to people's votes. The table has the metrics that can be compared; JSON
    and CSV have all rows, with the reason if there is no tau.

    \b
    Exit code: 0 done, also where no score is finite; 1 a roll-up failed; 2 there are no such votes, or an option is wrong.
    """
    if file is not None:
        refuse_others((), "FILE")
        from dtef_pipeline.cli.preference import preference_board

        preference_board.fit(file, output)
        return
    names = ("family", "partition", "reviewer_kind", "refresh")
    refuse_others(
        (*names, "metric") if given["metric"] else (*names, "judges"), "--metric" if given["metric"] else "the stored board"
    )
    from dtef_pipeline.cli.preference import preference_board

    code = preference_board.refresh() if refresh else 0
    filters = {name: given[name] for name in ("family", "partition", "reviewer_kind")}
    if given["metric"] is None:
        preference_board.show(judges=given["judges"], output=output, **filters)
    else:
        preference_board.compare(metric=given["metric"], output=output, **filters)
    sys.exit(code)
