"""`dtef preference vote --judge MODEL`: models vote on pairs, with the texts in both orders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import click

from assets.preference.score_assets import vote_settings
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.episodes import play
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Failure, Request
from dtef_pipeline.cli.stage_runs import parse_budgets, print_usage
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.preference.pair_verdicts import PAIR_ORDERS, PairEpisode, judge_reviewer_id, pair_judges, pair_verdict
from dtef_pipeline.preference.votes import Ballot
from dtef_pipeline.text.number_words import format_count
from resources.evaluations.run_manifests import describe_this_run
from resources.gateway import Gateway
from resources.gateway.model_checks import refuse_early
from resources.gateway.progress import RunProgress, display_progress
from resources.model_catalog import load_known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.votes.vote_store import VoteStore, add_judge, list_own_pairs, store_judge_votes

_PAIRS_JUDGED_TOGETHER = 500


def judge(
    models: Sequence[str], family: str | None, most: int | None, max_cost_usd: Sequence[str], max_calls: Sequence[str]
) -> int:
    """Judge pairs. Returns 1 if a pair got no vote."""
    settings = Settings.read_environment()
    no_own_judge = vote_settings(settings).no_own_judge
    catalog = load_known_models(settings, COMPUTED_MODELS)
    judges = pair_judges(models, catalog)
    limits = parse_budgets(max_cost_usd, max_calls)
    budget = Budget(max_cost_usd=limits.get("max_cost_usd"), max_calls=limits.get("max_calls"))
    if limits["budgets"] or limits["role_budgets"]:
        raise ConfigError("--max-cost-usd and --max-calls: allowed here: a number without MODEL= or ROLE=")
    n_unvoted = 0
    with ResponseStore(settings.responses_url, describe_this_run) as responses, VoteStore(settings.responses_url) as store:
        gateway = Gateway(responses, budget=budget, provider_limits=settings.provider_limits)
        refuse_early(judges, "base", gateway.accounts, responses, os.environ)
        for spec in judges:
            waiting = _find_waiting_pairs(spec, store, family, most, catalog.own_servers, no_own_judge)
            n_unvoted += _judge_pairs(spec, gateway, store, waiting)
    print_usage(gateway.usage_by_role)
    return 1 if n_unvoted else 0


def _find_waiting_pairs(
    spec: ModelSpec, store: VoteStore, family: str | None, limit: int | None, own_servers: Collection[str], no_own_judge: bool
) -> list[str]:
    """Return the pairs to judge. Prints how many contain a response of the judge's own maker, or were left out for it."""
    reviewer_id = judge_reviewer_id(spec)
    every = store.waiting(reviewer_id, len(store.pairs(family)), family)
    own_pairs = list_own_pairs(store, reviewer_id, own_servers)
    left_out = sum(pair in own_pairs for pair in every) if no_own_judge else 0
    waiting = [pair for pair in every if not (no_own_judge and pair in own_pairs)][:limit]
    if left_out:
        say(f"{spec.name}: {format_count(left_out, 'pair')} left out: a response is of its own maker")
    elif many := sum(pair in own_pairs for pair in waiting):
        say(
            f"{spec.name}: {format_count(many, 'pair')} of {len(waiting):,} with a response of its own maker: these votes are self-judged; "
            "`no_own_judge: true` in the panel file leaves such pairs out"
        )
    return waiting


def _judge_pairs(spec: ModelSpec, gateway: Gateway, store: VoteStore, waiting: Sequence[str]) -> int:
    """Judge the pairs, and return how many got no vote."""
    reviewer_id = judge_reviewer_id(spec)
    if not waiting:
        click.echo(f"{spec.name}: there is no pair left to judge; `dtef preference pairs` makes pairs of stored responses")
        return 0
    add_judge(store, reviewer_id)
    choices, reasons = Counter[str](), Counter[str]()
    with display_progress(say, "votes") as display:
        gateway.tell, progress = display.say, RunProgress(display, {spec.name: len(PAIR_ORDERS) * len(waiting)})

        def ask(requests: Sequence[Request]) -> Mapping[str, Failure]:
            failures = gateway.answer(requests, on_progress=progress).failures
            progress.window_done()
            return failures

        for start in range(0, len(waiting), _PAIRS_JUDGED_TOGETHER):
            batch = waiting[start : start + _PAIRS_JUDGED_TOGETHER]
            votes, missing = _vote(batch, spec, ask, gateway, store)
            store_judge_votes(store, votes)
            choices.update(vote.choice for vote in votes)
            reasons.update(missing)
    counts = f"{format_count(choices.total(), 'vote')} on {format_count(len(waiting), 'pair')}"
    say(f"{spec.name}: {counts}, {format_count(choices['tie'], 'tie')} among them")
    if reasons:
        texts = ", ".join(f"{reason} {number}" for reason, number in sorted(reasons.items()))
        say(f"{spec.name}: no vote on {format_count(reasons.total(), 'pair')}, because there was no verdict: {texts}")
    return reasons.total()


def _vote(
    pair_ids: Sequence[str], spec: ModelSpec, ask: Ask, gateway: Gateway, store: VoteStore
) -> tuple[list[Ballot], list[str]]:
    """Judge the pairs in both orders. Return the votes, and the reasons why other pairs have none."""
    names = store.hidden_names()
    pairs = [store.reviewer_view(pair_id, names) for pair_id in pair_ids]
    results = play([PairEpisode(pair, spec, order) for pair in pairs for order in PAIR_ORDERS], ask, gateway.store.responses)
    votes, reasons = [], []
    for place, pair in enumerate(pairs):
        verdict = pair_verdict(results[2 * place].outcomes, results[2 * place + 1].outcomes)
        if verdict.choice is None:
            reasons.append(verdict.reason)
        else:
            votes.append(Ballot(pair.pair_id, judge_reviewer_id(spec), verdict.choice, 1, verdict.justification))
    return votes, reasons
