"""The command that rebuilds a table's file, from stored responses if models were called for it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

Tell = Callable[[Sequence[str]], pa.Table]
"""Returns the values of these columns in the partition's tables."""
_MODEL_OPTIONS = {
    "{models}": ("--model", ("model", "draw")),
    "{personas}": ("--model", ("persona", "model", "draw")),
    "{players}": ("--player", ("persona", "model", "draw", "opponent", "cluster")),
}
"""By placeholder of a command: the option for models or players, and the columns with their names."""


def remake_command(remake: str, levels: Mapping[str, str], tell: Tell) -> str:
    """Return the command of a `TableSpec` for these levels."""
    values = {
        "{options}": _spell_options({f"--{level}": [value] for level, value in levels.items()}),
        "{family}": levels.get("family", ""),
        "{part}": _spell_options(_list_part_options(levels)),
    }
    for place, (option, columns) in _MODEL_OPTIONS.items():
        if place in remake:
            values[place] = _spell_options(_list_asked_options(option, tell(columns).to_pydict()))
    for place, options in values.items():
        remake = remake.replace(place, options)
    return " ".join(remake.split())


def _list_part_options(levels: Mapping[str, str]) -> dict[str, list[str]]:
    """Return options for partition key and snapshot."""
    values = [value for level, value in levels.items() if level != "snapshot"]
    snapshot = {"--snapshot": [levels["snapshot"]]} if "snapshot" in levels else {}
    return {"--part": ["/".join(values)], **snapshot}


def _list_asked_options(option: str, call_row: Mapping[str, Sequence[object]]) -> dict[str, list[str]]:
    if not call_row["draw"]:
        return {}
    names = zip(*(call_row[name] for name in ("persona", "model") if name in call_row), strict=True)
    options = {option: sorted({"@".join(str(part) for part in name if part) for name in names})}
    options["--opponent"] = sorted({str(opponent) for opponent in call_row.get("opponent", ())} - {""})
    options["--seeds"] = _format_spans({int(str(seed)) for seed in call_row.get("cluster", ())})
    return options | {"--draws": [str(1 + max(int(str(draw)) for draw in call_row["draw"]))]}


def _format_spans(seeds: set[int]) -> list[str]:
    """Format the seeds as one value of `--seeds`, such as 1-10,42."""
    first = sorted(seed for seed in seeds if seed - 1 not in seeds)
    last = sorted(seed for seed in seeds if seed + 1 not in seeds)
    spans = [str(a) if a == b else f"{a}-{b}" for a, b in zip(first, last, strict=True)]
    return [",".join(spans)] if spans else []


def _spell_options(options: Mapping[str, Sequence[str]]) -> str:
    return " ".join(f"{option} {shlex.quote(value)}" for option, values in options.items() for value in values)
