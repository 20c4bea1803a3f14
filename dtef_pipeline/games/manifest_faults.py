"""What of a manifest cannot be played, by the field to blame: for a manifest that stands in no file."""

from __future__ import annotations

from collections.abc import Iterator

from dtef_pipeline.documents import Reason
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_faults import opponent_faults, weighing_faults
from dtef_pipeline.games.packs import adapters, pack
from dtef_pipeline.games.trial_play import trial_faults
from dtef_pipeline.text.nearest import nearest

_FIELDS_OF_ENGINES = ("settings", "seats", "turn_limit", "adapter")
"""What an engine may refuse, in the order in which it is looked for in its words."""


def manifest_faults(manifest: ScenarioManifest) -> Iterator[Reason]:
    """What is wrong with it for its engine, which is made and has its baselines play the first seed. Runs code of the engine's package."""
    if manifest.adapter_name not in adapters():
        known = nearest(manifest.adapter_name, adapters())
        yield Reason(("adapter",), f"no engine is called {manifest.adapter_name}; allowed: {known}")
        return
    try:
        made = pack(manifest.id, {manifest.id: manifest})
    except ConfigError as error:
        yield Reason((_field_in(str(error), manifest),), str(error))
        return
    yield from (Reason(("opponents",), fault) for fault in opponent_faults(made))
    yield from (
        Reason(("severities",) if fault.startswith("severities") else ("evaluation", "algorithmic"), fault)
        for fault in weighing_faults(made)
    )
    yield from (Reason(("adapter",), fault) for fault in trial_faults(made))


def _field_in(told: str, manifest: ScenarioManifest) -> str:
    """The field that an engine names in its words, and that says something."""
    named = [name for name in _FIELDS_OF_ENGINES if name.partition("_")[0] in told and getattr(manifest, name)]
    return named[0] if named else "adapter"
