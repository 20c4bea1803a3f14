"""What `dtef rubric anchors` does; the words are in `dtef_pipeline/cli/rubric_labels_group.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from assets.rubric.panel_part import panel_or_usual
from assets.stage.panel_drift import panel_drift
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.judged_again import anchored_rows, judge_again, print_judge_drift
from dtef_pipeline.cli.opened_warehouse import open_warehouse, reads_tables
from dtef_pipeline.cli.ready import check_home_path
from dtef_pipeline.cli.role_budgets import budgets_given, with_owners
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.judging.classes import USUAL_SCALE
from dtef_pipeline.rubric.anchor_rows import NOTHING_TO_JUDGE_AGAIN
from dtef_pipeline.rubric.judge_requests import chosen_judges
from dtef_pipeline.rubric.model import TEXT_KIND
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_JUDGE_DRIFT
from resources.known_models import known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

_STEP = "rubric_anchors"
_ANCHOR_ITEMS = "rubric_anchor_items"


@dataclass(frozen=True)
class AnchorOptions:
    """Options of `dtef rubric anchors`."""

    snapshot: str = "base"
    n: int = 200
    seed: int = 0
    judges: tuple[str, ...] = ()
    scale: int = USUAL_SCALE
    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()

    def config(self) -> dict[str, dict[str, Any]]:
        """Run configuration by asset name."""
        asked = {"snapshot": self.snapshot, "n": self.n, "seed": self.seed, "judges": list(self.judges), "scale": self.scale}
        return {_STEP: {**asked, **budgets_given(self.max_cost_usd, self.max_calls)}}


def with_scale(**given: Any) -> AnchorOptions:
    """The options of the command line, with the classes that the panel file has judges choose from."""
    return AnchorOptions(**given, scale=panel_or_usual(Settings.from_environment()).scale)


def run(options: AnchorOptions) -> int:
    """The exit code: 1 where it failed."""
    warehouse, settings = open_warehouse(), Settings.from_environment()
    check_home_path(settings)
    config = _checked(options, settings, warehouse).config()
    if not judge_again(warehouse, _STEP, config, options.snapshot, "item", "class"):
        return 1
    say("`dtef rubric anchors --show` says which judges have moved")
    return 0


def _checked(options: AnchorOptions, settings: Settings, warehouse: Warehouse) -> AnchorOptions:
    """The options as they are run. Raises what `dtef rubric anchors` needs to be mended, before anything is started."""
    require_safe(options.snapshot)
    models = known_models(settings, COMPUTED_MODELS)
    kept = warehouse.read_or_empty(_ANCHOR_ITEMS, columns=["blueprint"])["blueprint"].to_pylist()[: options.n]
    scored = warehouse.values("rubric_scores", "blueprint") if len(kept) < options.n else []
    names: set[str] = set()
    refused = None
    for key in dict.fromkeys([*kept, *(one for one in scored if _has_words(warehouse, one))]):
        head = warehouse.read_or_empty("rubric_blueprints", columns=["judges"], blueprint=key)["judges"].to_pylist()
        try:
            judges = chosen_judges(options.judges, head[0] if head else [], models, options.scale)
        except ConfigError as error:
            if key in kept:
                raise
            refused = error  # no anchor of this blueprint may be chosen
        else:
            names.update(judge.model.name for judge in judges)
    if not names:
        raise refused or WarehouseError(NOTHING_TO_JUDGE_AGAIN)
    return with_owners(options, names, models)


def _has_words(warehouse: Warehouse, blueprint: str) -> bool:
    """Whether there is anything in it for a judge."""
    kinds = warehouse.read_or_empty("rubric_criteria", columns=["kind"], blueprint=blueprint)["kind"]
    return bool(pc.any(pc.equal(kinds, TEXT_KIND)).as_py())


@reads_tables
def show(warehouse: Warehouse, output: str) -> None:
    from dtef_pipeline.rubric.anchor_rows import judge_drift_rows

    judged = anchored_rows(warehouse, _STEP, "dtef rubric anchors")
    options = panel_drift(Settings.from_environment(), warehouse).options
    print_judge_drift(judge_drift_rows(judged, options).to_pandas(), RUBRIC_JUDGE_DRIFT, ("judge",), output)
