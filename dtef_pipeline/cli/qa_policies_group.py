"""`dtef qa replay-policies`: routing policies over stored scores. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.reported import reports_errors


@click.command("replay-policies", short_help="Replay policies that choose a model for each item.")
@click.argument("suite")
@click.option("--metric", help="Measure that is the score of a response.  [default: the only one]")
@click.option(
    "--measured-by", help="What the measure rests on, where there are several, such as two judges.  [default: the only one]"
)
@click.option("--condition", help="Way of asking.  [default: the only one]")
@click.option("--model", "models", multiple=True, help="Only this model, by name; may be repeated.  [default: all]")
@click.option("--policy", "policies", multiple=True, help="Only this policy; may be repeated.  [default: all]")
@click.option("--seeds", type=click.IntRange(min=1), default=100, show_default=True, help="Orders of the items to replay.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the orders and of all draws.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write policies.csv, regret.csv and pareto.svg to.  [default: none]",
)
@writes_a_table
@reports_errors
def replay_policies(output: str, **given: Any) -> None:
    """Replay policies that choose a model for each item, one after the other, over the stored scores, costs and latencies of a suite.

    The policies are epsilon-greedy, ucb1, thompson, random, linucb, contextual-thompson, dueling-bandit, always-best, always-cheapest and
    oracle. Each sees the score of the model that it chose and of no other, but for the last three, which know all of them. The dueling bandit
    has two models asked and sees which was better: its quality is the mean of the two scores, its cost the sum. Only items that every model
    was scored on are replayed. No model is asked.
    """
    from dtef_pipeline.cli import qa_policies

    qa_policies.replay(qa_policies.ReplayOptions(**given), output)
