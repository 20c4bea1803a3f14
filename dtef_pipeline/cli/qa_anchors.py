"""What `dtef qa anchors` does; the words are in `dtef_pipeline/cli/qa_anchors_group.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets.qa.panel_part import qa_panel
from assets.stage.panel_drift import panel_drift
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.judged_again import anchored_rows, judge_again, print_judge_drift
from dtef_pipeline.cli.opened_warehouse import open_warehouse, reads_tables
from dtef_pipeline.cli.role_budgets import budgets_given, with_owners
from dtef_pipeline.cli.started_runs import check_home_path
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.qa.anchor_tables import QA_JUDGE_DRIFT
from dtef_pipeline.qa.arbiter import NOBODY
from resources.known_models import known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

_ANCHORS_STAGE = "qa_anchors"


@dataclass(frozen=True)
class QaAnchorOptions:
    """Options of `dtef qa anchors`."""

    snapshot: str = "base"
    n: int = 50
    seed: int = 0
    judges_file: Path | None = None
    judge: str | None = None
    daily_budget: float | None = None
    allow_unpriced: Sequence[str] = ()
    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()

    def config(self) -> dict[str, dict[str, Any]]:
        """Run configuration by asset name."""
        judges = {
            "judges_file": self.judges_file and str(self.judges_file),
            "judge": self.judge,
            "daily_budget": self.daily_budget,
            "allow_unpriced": list(self.allow_unpriced) or None,
        }
        given = {name: value for name, value in judges.items() if value is not None}
        asked = {"snapshot": self.snapshot, "n": self.n, "seed": self.seed}
        return {_ANCHORS_STAGE: {**asked, **given, **budgets_given(self.max_cost_usd, self.max_calls)}}


def with_switches(**given: Any) -> QaAnchorOptions:
    """The options of the command line, with what the panel file says of the judge's budget and price."""
    panel = qa_panel(Settings.from_environment())
    switches = panel.switches if panel else {}
    return QaAnchorOptions(**given, **{name: switches[name] for name in ("daily_budget", "allow_unpriced") if name in switches})


def run(options: QaAnchorOptions) -> int:
    """The exit code: 1 where it failed."""
    warehouse, settings = open_warehouse(), Settings.from_environment()
    check_home_path(settings)
    require_safe(options.snapshot)
    if options.judge == NOBODY:
        raise ConfigError("--judge none: allowed: a model, since anchors are there to be judged")
    if not warehouse.values("qa_judgements", "suite") and not len(warehouse.read_or_empty("qa_anchor_items")):
        raise WarehouseError("nothing to judge again: no judged answer; `dtef qa run` with a judge makes some")
    models = known_models(settings, COMPUTED_MODELS)
    if options.judge:
        models.resolve([options.judge])
    config = with_owners(options, set(models.specs), models).config()
    if not judge_again(warehouse, _ANCHORS_STAGE, config, options.snapshot, "anchor", "score"):
        return 1
    say("`dtef qa anchors --show` says whether the judge has moved")
    return 0


@reads_tables
def show(warehouse: Warehouse, output: str) -> None:
    """One line per judge and evaluator."""
    from dtef_pipeline.qa.anchored_answers import qa_judge_drift_rows

    judged = anchored_rows(warehouse, _ANCHORS_STAGE, "dtef qa anchors")
    options = panel_drift(Settings.from_environment(), warehouse).options
    print_judge_drift(qa_judge_drift_rows(judged, options).to_pandas(), QA_JUDGE_DRIFT, ("judge_model", "evaluator"), output)
