"""Checks of scenario packs, and personas and scenarios as lines of JSON, for exchange with other programs and installations.

A pack is complete if manifest, adapter, tests and playbook exist, and one seed is played to its end by the contract.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import ValidationError

from dtef_pipeline.documents import Reason, format_in_one_line
from dtef_pipeline.errors import ConfigError, SourceError
from dtef_pipeline.games.contract import Illegal, find_baseline, list_baselines, make_baseline_rng, require_composite
from dtef_pipeline.games.episode import replay
from dtef_pipeline.games.episode_rows import select_pack_metrics
from dtef_pipeline.games.game_in_play import FORFEIT_FLAG, TURN_LIMIT_FLAG, GameInPlay, decode_trace, encode_trace, hash_trace
from dtef_pipeline.games.manifest import ScenarioManifest, read_manifest
from dtef_pipeline.games.packs import ADAPTERS_GROUP, Pack, adapters, pack
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.text.json_values import parse_json
from dtef_pipeline.text.name_matching import list_nearest

LINE_SCHEMA = 1
LineKind = Literal["persona", "scenario"]
LineDocument = Persona | ScenarioManifest
_MODELS: Mapping[LineKind, type[LineDocument]] = MappingProxyType({"persona": Persona, "scenario": ScenarioManifest})


def write_document_lines(kind: LineKind, documents: Iterable[LineDocument]) -> str:
    """Write one line per version of a document, in the order of ids and versions, as canonical JSON: equal documents give equal text."""
    encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
    lines = sorted(documents, key=lambda document: (document.id, document.version))
    return "".join(f"{encode({'kind': kind, 'schema': LINE_SCHEMA, **line.model_dump(mode='json')})}\n" for line in lines)


def detect_line_kind(data: bytes) -> LineKind:
    """Return the kind of documents that the first line names; `scenario` if it names no known kind."""
    try:
        first = json.loads(next(filter(None, data.decode("utf-8-sig").split("\n")), "{}"))
    except ValueError:
        return "scenario"
    return "persona" if isinstance(first, dict) and first.get("kind") == "persona" else "scenario"


def read_document_lines(kind: LineKind, data: bytes, where: str) -> dict[int, LineDocument]:
    """Read the documents of such lines by line number, from 1, each version once; blank lines are skipped.

    Raises SourceError, with the line, for bytes that are not UTF-8, an invalid line, and a version that occurs twice with different
    content.
    """
    by_line: dict[int, LineDocument] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(_decode_lines(data, where).split("\n"), start=1):
        if not line.strip():
            continue
        document = _parse_document_line(kind, line, where, number)
        name = format_version_name(document)
        earlier = lines.setdefault(name, number)
        if by_line.setdefault(earlier, document) != document:
            allowed = f"each version of a {kind} only once"
            raise SourceError(f"line {earlier} has different content", where=where, line=number, arrived=name, allowed=allowed)
    return by_line


def find_new_documents(
    documents: Mapping[int, LineDocument], catalog: Iterable[LineDocument], where: str, statuses: Sequence[str] = ()
) -> dict[int, LineDocument]:
    """Return the documents, by line, that have no equal one in the catalog.

    Args:
        documents: by line.
        catalog: existing versions.
        where: name of the file in errors.
        statuses: from first to last. A version that is known with an earlier status is new, one that is known with a later status is not.
    Without statuses, a different status counts as different content.

    Raises SourceError, with the line, for a known version with different content.
    """
    versions = {format_version_name(version): version for version in catalog}
    new_documents: dict[int, LineDocument] = {}
    for line, document in documents.items():
        old = versions.get(format_version_name(document))
        fields = [name for name in type(document).model_fields if old and getattr(document, name) != getattr(old, name)]
        is_later = old is not None and fields == ["status"] and statuses
        if fields and not is_later:
            raise SourceError(
                "already exists with different content",
                where=where,
                line=line,
                arrived=format_version_name(document),
                allowed=f"the same {', '.join(fields)}, or another version",
            )
        if old is None or (is_later and statuses.index(document.status) > statuses.index(old.status)):
            new_documents[line] = document
    return new_documents


def format_version_name(document: LineDocument) -> str:
    """Return id and version, as in tables: `cautious:v2`."""
    return f"{document.id}:v{document.version}"


def _decode_lines(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"not UTF-8 (byte 0x{data[error.start]:02x})", where=where, line=line) from error


def _parse_document_line(kind: LineKind, line: str, where: str, number: int) -> LineDocument:
    def make_line_error(problem: str, text: object) -> SourceError:
        allowed = f'an object with "kind": "{kind}", "schema": {LINE_SCHEMA} and the fields of a {kind}'
        return SourceError(problem, where=where, line=number, arrived=text, allowed=allowed)

    try:
        content = parse_json(line)
        line.encode()
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise make_line_error(f"not valid JSON: {error}", line[:80]) from error
    if not isinstance(content, dict):
        raise make_line_error("no JSON object", content if len(line) <= 80 else line[:80])
    for name, value in (("kind", kind), ("schema", LINE_SCHEMA)):
        actual = content.pop(name, None)
        if actual != value or type(actual) is not type(value):
            raise make_line_error(f"{name} is not {value!r}", actual[:80] if isinstance(actual, str) else actual)
    model = _MODELS[kind]
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise SourceError(format_in_one_line(error, model), where=where, line=number) from error


MANIFEST_FOLDERS = ("data/scenarios", "scenarios")
PLAYBOOKS = "docs/scenarios"


@dataclass(slots=True)
class PackFiles:
    """One pack of a checkout, with its faults."""

    name: str
    """League and scenario."""
    manifest: ScenarioManifest | None = None
    place: Path | None = None
    """File of its manifest; None: there is none."""
    faults: list[str] = field(default_factory=list)
    """One sentence per fault: what the pack lacks, or what is wrong in its manifest."""


def check_packs(folder: Path, manifest_folder: Path | None = None) -> list[PackFiles]:
    """Check all packs of a checkout, by name: those with a manifest or an entry point in its pyproject.toml.

    `manifest_folder`: a folder <league>/<scenario>.yaml of manifests outside the checkout. A manifest there replaces one with the same id;
    a scenario that the checkout does not have needs no tests and playbook. Raises ConfigError if there is no scenario.
    """
    packs = _load_pack_manifests([folder / where for where in MANIFEST_FOLDERS])
    outside = {} if manifest_folder is None else _load_pack_manifests([manifest_folder])
    elsewhere = set(outside) - set(packs)
    packs |= outside
    entries = _read_declared_adapters(folder)
    for name in entries:
        packs.setdefault(name, PackFiles(name, faults=[f"the manifest is missing: {MANIFEST_FOLDERS[0]}/{name}.yaml"]))
    if not packs:
        raise ConfigError(f"{folder}: no scenario; allowed: a folder with {MANIFEST_FOLDERS[0]}/<league>/<scenario>.yaml")
    tests = {path: path.read_text(encoding="utf-8", errors="replace") for path in sorted((folder / "tests").rglob("test_*.py"))}
    for files in packs.values():
        files.faults += _check_adapter(files, entries)
        if files.name not in elsewhere:
            files.faults += [*_check_pack_tests(files.name, tests), *_check_playbook(files.name, folder)]
    return [packs[name] for name in sorted(packs)]


def _load_pack_manifests(folders: Iterable[Path]) -> dict[str, PackFiles]:
    packs: dict[str, PackFiles] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*/*.yaml")):
        name = f"{path.parent.name}/{path.stem}"
        try:
            packs[name] = PackFiles(name, read_manifest(path), path)
        except ConfigError as error:
            packs[name] = PackFiles(name, None, path, [f"its manifest is invalid: {error}"])
    return packs


def _read_declared_adapters(folder: Path) -> Mapping[str, str]:
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not readable: {error}") from error
    points: Mapping[str, str] = document.get("project", {}).get("entry-points", {}).get(ADAPTERS_GROUP, {})
    return points


def _check_adapter(files: PackFiles, entries: Mapping[str, str]) -> Iterator[str]:
    name = files.name if files.manifest is None else files.manifest.adapter_name
    if name not in adapters():
        hint = f"; pyproject.toml names {entries[name]}: install the package again" if name in entries else ""
        yield f"the adapter is missing: an entry point {name} in the group {ADAPTERS_GROUP}{hint}"
    elif files.manifest is not None:
        yield from (reason.message for reason in check_manifest_engine(files.manifest))


def _check_pack_tests(name: str, tests: Mapping[Path, str]) -> Iterator[str]:
    scenario = name.rpartition("/")[2].replace("-", "_")
    if not any(path.name.startswith(f"test_{scenario}") or name in text for path, text in tests.items()):
        yield f"tests are missing: tests/**/test_{scenario}*.py, or a test file that names {name}"


def _check_playbook(name: str, folder: Path) -> Iterator[str]:
    path = f"{PLAYBOOKS}/{name.rpartition('/')[2]}.md"
    if not (folder / path).is_file() or not (folder / path).read_text(encoding="utf-8", errors="replace").strip():
        yield f"the playbook is missing: {path}"


def check_manifest_engine(manifest: ScenarioManifest) -> Iterator[Reason]:
    """Check a manifest against its engine, whose baselines play the first seed. Runs code of the engine's package."""
    try:
        new_pack = pack(manifest.id, {manifest.id: manifest})
    except ConfigError as error:
        yield Reason((_find_named_field(str(error), manifest),), str(error))
        return
    yield from _check_opponents(new_pack)
    yield from _check_weighing(new_pack)
    yield from (Reason(("adapter",), fault) for fault in check_trial_game(new_pack))


def _check_opponents(pack: Pack) -> Iterator[Reason]:
    """Yield each unknown opponent, and a scenario with several seats but no opponents."""
    baselines = list_baselines(pack.scenario)
    for name in pack.manifest.opponents:
        if name not in baselines:
            message = f"its manifest names the opponent {name}; allowed: {list_nearest(name, baselines)}"
            yield Reason(("opponents",), message)
    if (n_seats := len(pack.manifest.seats)) > 1 and not pack.manifest.opponents:
        message = f"its manifest names no opponents for {n_seats} seats; allowed: one or more of {', '.join(baselines)}"
        yield Reason(("opponents",), message)


def _check_weighing(pack: Pack) -> Iterator[Reason]:
    """Yield the first metric of the composite score, and each flag with a severity, that the scenario does not have."""
    try:
        require_composite("evaluation, algorithmic", pack.manifest.evaluation.algorithmic, select_pack_metrics(pack))
    except ConfigError as error:
        yield Reason(("evaluation", "algorithmic"), str(error))
    flags = dict.fromkeys((FORFEIT_FLAG, TURN_LIMIT_FLAG, *getattr(pack.scenario, "flags", ())))
    for name in pack.manifest.severities:
        if name not in flags:
            message = f"severities: {name}: not a flag of the scenario; allowed: {', '.join(flags)}"
            yield Reason(("severities",), message)


def check_metric_weights(packs: Iterable[Pack]) -> None:
    """Raise ConfigError for the first invalid weight in manifests, before episodes that could not be scored are played and paid for."""
    for entry in packs:
        for fault in _check_weighing(entry):
            raise ConfigError(f"{entry.name}: {fault.message}")


_FIELDS_OF_ENGINES = ("settings", "seats", "turn_limit", "adapter")
"""Manifest fields that an engine may refuse, in the order in which its error message is searched for them."""


def _find_named_field(fault_text: str, manifest: ScenarioManifest) -> str:
    named = [name for name in _FIELDS_OF_ENGINES if name.partition("_")[0] in fault_text and getattr(manifest, name)]
    return named[0] if named else "adapter"


_TURNS_TESTED = 8
"""Number of turns in which hidden information and an invalid text are tested, because `permute_hidden` may be slow."""
_NO_MOVE = "\0 no command"


class _ContractFault(Exception):
    """The scenario violates the contract."""


def check_trial_game(pack: Pack) -> Iterator[str]:
    """Return a sentence for the first error when baselines play the first seed of the manifest, and then its own baselines one by one.

    The turn limit ends endless episodes. Anything that the scenario raises is a fault.
    """
    baselines = [name for name in pack.scenario.baselines if name not in getattr(pack.scenario, "oracles", ())]
    for name in dict.fromkeys(("random", *baselines)):
        turn = 0
        try:
            for turn in _play_baseline(pack, name):  # noqa: B007 - reported below
                pass
        except _ContractFault as error:
            yield f"its adapter violates the contract: {error}"
            return
        except Exception as error:  # an engine may fail in any way
            yield (
                f"its adapter fails when baseline/{name} plays seed {pack.manifest.seeds.first}, in turn {turn + 1}: "
                f"{type(error).__name__}: {error}"
            )
            return


def _play_baseline(pack: Pack, name: str) -> Iterator[int]:
    """Yield the turn numbers while a baseline plays all seats."""
    scenario, seed = pack.scenario, pack.manifest.seeds.first
    chooses = find_baseline(scenario, name)
    rngs = [make_baseline_rng(seed, seat) for seat in range(len(scenario.seats))]
    game = GameInPlay(pack, seed)
    while (seat := game.seat) is not None:
        yield game.turn
        if game.turn < _TURNS_TESTED and name == "random":
            _check_state(pack, game.state, seat)
        game.play_command(chooses(game.state, seat, rngs[seat]))
    _check_ended_game(pack, game, seed)


def _check_state(pack: Pack, state: Any, seat: int) -> None:
    scenario, n_seats = pack.scenario, len(pack.manifest.seats)
    if not scenario.legal(state, seat):
        raise _ContractFault("`legal` returns no command for the seat to move")
    scenario.step(state, seat, scenario.default(state, seat))
    hidden = scenario.permute_hidden(state, seat, random.Random(0))  # noqa: S311 - a game's cards, no secret
    if scenario.observation(hidden, seat) != scenario.observation(state, seat):
        raise _ContractFault("`permute_hidden` changes what the seat sees")
    if not isinstance(reading := scenario.read(_NO_MOVE, state, seat), str | Illegal):
        raise _ContractFault(f"`read` returns {type(reading).__name__}; allowed: a command, or Illegal")
    if (
        len(scenario.stop_episode(state, seat).rewards) != n_seats
        or len(scenario.stop_episode(state, None).outcomes) != n_seats
    ):
        raise _ContractFault(f"`stop_episode` does not return {n_seats} rewards and outcomes, one per seat")
    json.dumps(scenario.encode_state(state))


def _check_ended_game(pack: Pack, game: GameInPlay, seed: int) -> None:
    result, ending, n_seats = game.result, game.ending, len(pack.manifest.seats)
    if result is None or ending is None:
        raise _ContractFault("an episode is over for `seat_to_move` but has no `result` or `ending`")
    if not len(result.rewards) == len(result.outcomes) == n_seats:
        raise _ContractFault(
            f"`result` has {len(result.rewards)} rewards and {len(result.outcomes)} outcomes; allowed: {n_seats} of each"
        )
    if pack.scenario.zero_sum and abs(sum(result.rewards)) > 1e-9:
        raise _ContractFault(f"`zero_sum` is true, but the rewards are {', '.join(map(str, result.rewards))}")
    for text in (*ending.public_facts, *ending.private_facts):
        if not isinstance(text, str):
            raise _ContractFault(f"`ending` contains {type(text).__name__}; allowed: strings")
    json.dumps(pack.scenario.encode_state(game.state))
    trace, names = game.trace(), {metric.name for metric in pack.scenario.metrics}
    if unknown := sorted({name for counts in trace.metric_counts for name in counts} - names):
        raise _ContractFault(f"`measure_seat` counts {', '.join(unknown)}, which is not in `metrics`")
    if hash_trace(replay(decode_trace(encode_trace(trace)), pack, seed)) != hash_trace(trace):
        raise _ContractFault("replaying the commands of an episode does not give the same trace")
