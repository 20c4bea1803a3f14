"""The prompts of a blueprint: messages, ids, system prompts, temperatures, and criteria in each notation, with functions written as texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from dtef_pipeline.judging.prompts import Turn
from dtef_pipeline.rubric.blueprint.blueprint_yaml import YamlFault, format_js_number, format_scalar, read_yaml
from dtef_pipeline.rubric.blueprint.findings import HEADER_PLACE, FindingLog, Spot, shorten_value
from dtef_pipeline.rubric.blueprint.model import (
    FUNCTION_KIND,
    SHOULD,
    SHOULD_NOT,
    TEXT_KIND,
    Criterion,
    PromptItem,
    hash_prompt,
)
from dtef_pipeline.rubric.functions import (
    EXTERNAL_FUNCTIONS,
    POINT_FUNCTIONS,
    REFERENCE_FUNCTION,
    check_argument,
    check_patterns,
    find_canonical_name,
)
from dtef_pipeline.text.number_words import list_first_names

LEAST_WEIGHT, MAX_WEIGHT = 0.1, 10.0
_WEIGHT_KEYS = ("weight", "multiplier")
_TEXT_KEYS = ("text", "point")
_ARGUMENT_KEYS = ("fnArgs", "arg")
_POINT_KEYS = (*_TEXT_KEYS, "fn", *_ARGUMENT_KEYS, *_WEIGHT_KEYS, "citation")
_AFTER_A_FUNCTION = (*_WEIGHT_KEYS, "citation")
_CALL_TEXT = re.compile(r"\$([A-Za-z_]\w*)\s*(?::\s*(.*))?", re.DOTALL)
_QUOTE_MARKS = "\"'"
_MAX_DEFINITIONS_LISTED = 8
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Omission(Exception):
    """An error that leaves a criterion out of the blueprint: its code, and what is wrong and what to write instead."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@dataclass
class PointReader:
    """A reader of blocks of criteria, which logs errors.

    `definitions`: targets of `$ref`. `other_functions`: functions of other packages, whose arguments are not checked.
    """

    log: FindingLog
    definitions: Mapping[str, Any]
    other_functions: Collection[str] = ()
    n_omitted: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._definition_names = list_first_names(list(self.definitions), _MAX_DEFINITIONS_LISTED) or "none"

    def read_block(self, values: Any, block: str, place: str, line: int | None) -> list[Criterion]:
        """Return the criteria of a block, in the order of the file, without those that have an error."""
        if not isinstance(values, list):
            text = f"`{block}` is {shorten_value(values)}; write a list"
            self._log_omission(Omission("rubric-not-a-list", text), Spot(f"{place} {block}", line))
            return []
        criteria: list[Criterion] = []
        paths = 0
        for position, value in enumerate(values):
            spot = self.log.find_member_place(f"{place} {block}[{position}]", values, position)
            if isinstance(value, list):
                path = self._read_path(value, Criterion(block, paths, 0, TEXT_KIND, None), spot)
                paths += bool(path)
                criteria += path
            elif value is not None:
                criteria += self._read_point(value, Criterion(block, None, position, TEXT_KIND, None), spot)
        return criteria

    def _read_path(self, values: list[Any], blank: Criterion, spot: Spot) -> list[Criterion]:
        """Read the criteria of an alternative path; none if it is empty."""
        members = [(position, value) for position, value in enumerate(values) if value is not None and value != []]
        criteria: list[Criterion] = []
        for position, value in members:
            item_spot = self.log.find_member_place(f"{spot.place}[{position}]", values, position)
            criteria += self._read_point(value, replace(blank, position=position), item_spot)
        if len(members) == 1:
            text = "this is the only criterion of an alternative path; write it without the inner list, unless it is an alternative"
            self.log.add("single-element-path", spot, text)
        return criteria

    def _read_point(self, value: Any, blank: Criterion, spot: Spot) -> list[Criterion]:
        """Return the criterion at the place of `blank`; none if it has an error, which is logged."""
        try:
            if isinstance(value, str):
                return [self._read_text(value, blank, spot)]
            if isinstance(value, dict):
                return [self._read_object(value, blank, spot)]
            if isinstance(value, list):
                text = f"a list in a path: {shorten_value(value)}; write its criteria into the path"
                raise Omission("nested-too-deep", text)
            raise Omission("bad-point", f"{shorten_value(value)} is not text; put quotes around it")
        except Omission as error:
            self._log_omission(error, spot)
            return []

    def _log_omission(self, error: Omission, spot: Spot) -> None:
        self.n_omitted += 1
        self.log.add(error.code, spot, error.text)

    def _read_text(self, text: str, blank: Criterion, spot: Spot) -> Criterion:
        if not text.strip():
            raise Omission("bad-point", "the criterion is empty; write what a response should have")
        if not text.startswith("$"):
            return replace(blank, text=text)
        match = _CALL_TEXT.fullmatch(text.strip())
        name = match[1] if match else ""
        if match is None or not self._is_known_function(name):
            return self._report_unknown_function(text, replace(blank, fn=text[1:].strip()), spot)
        if not match[2]:
            return self._read_function(name, None, blank, spot)
        call = f"`{shorten_value(text)}` is a text but is read as the function ${name}; write `${name}: ...`"
        self.log.add("dollar-string", spot, call)
        return self._read_function(name, self._parse_argument(name, match[2].strip()), replace(blank, source=text), spot)

    def _parse_argument(self, name: str, text: str) -> Any:
        """Parse the text after `$name: ` as the argument; a text if it is not YAML."""
        if name == REFERENCE_FUNCTION or POINT_FUNCTIONS[find_canonical_name(name) or "js"].takes_text:
            return _strip_quotes(text)
        try:
            return next(iter(read_yaml(text).values), None)
        except YamlFault:
            return text

    def _is_known_function(self, name: str) -> bool:
        return name == REFERENCE_FUNCTION or name in self.other_functions or find_canonical_name(name) is not None

    def _read_object(self, value: dict[str, Any], blank: Criterion, spot: Spot) -> Criterion:
        call_key = next((key for key in value if key.startswith("$")), None)
        text = next((value[key] for key in _TEXT_KEYS if value.get(key)), None)
        if (call_key or value.get("fn")) and text is not None:
            raise Omission("text-and-function", f"both a text and a function: {shorten_value(value)}; write two criteria")
        if call_key is None and not value.get("fn") and text is None:
            return _read_cited(value, blank)
        weight, citation = read_weight(value, _WEIGHT_KEYS), format_citation(value.get("citation"))
        criterion = replace(blank, weight=weight, citation=citation)
        if call_key is not None:
            self.log.check_unknown_keys(value, (call_key, *_AFTER_A_FUNCTION), spot.place)
            return self._read_function(call_key[1:], value[call_key], criterion, spot, value)
        self.log.check_unknown_keys(value, _POINT_KEYS, spot.place)
        for names in (_TEXT_KEYS, _ARGUMENT_KEYS, _WEIGHT_KEYS):
            self.log.check_second_names(value, names, spot.place)
        if text is not None:
            if not isinstance(text, str) or not text.strip():
                raise Omission("bad-point", f"{shorten_value(text)} is not text; put quotes around it")
            return replace(criterion, text=text)
        if not isinstance(value["fn"], str):
            raise Omission("bad-point", f"fn is {shorten_value(value['fn'])}; write the name of a function")
        args = next((value[key] for key in _ARGUMENT_KEYS if value.get(key) is not None), None)
        return self._read_function(value["fn"], args, criterion, spot, value)

    def _read_function(
        self, name: str, args: Any, blank: Criterion, spot: Spot, siblings: Mapping[str, Any] = _NOTHING
    ) -> Criterion:
        """Read a function. `siblings`: the mapping that contains it."""
        if name == REFERENCE_FUNCTION:
            return self._resolve_reference(args, blank, spot, siblings)
        if name in self.other_functions:
            return replace(blank, kind=FUNCTION_KIND, fn=name, args=args)
        canonical = find_canonical_name(name)
        if canonical is None:
            return self._report_unknown_function(f"${name}", replace(blank, fn=name, args=args), spot)
        criterion = replace(blank, kind=FUNCTION_KIND, fn=canonical, args=args)
        if canonical in EXTERNAL_FUNCTIONS:
            text = f"${canonical} needs an external service, which is not supported; the criterion stays unscored"
            self.log.add("external-call", spot, text)
            return criterion
        code, fault = "bad-arguments", check_argument(canonical, args)
        if fault is None:
            code, fault = "bad-regex", next(iter(check_patterns(canonical, args)), None)
        if fault is not None:
            self.log.add(code, spot, fault)
        return replace(criterion, fault=fault)

    def _report_unknown_function(self, call_text: str, criterion: Criterion, spot: Spot) -> Criterion:
        text = f"`{shorten_value(call_text)}` is not a known function; for a text, write `text: ...`"
        self.log.add("unknown-function", spot, text)
        return replace(criterion, kind=FUNCTION_KIND, fault=f"unknown function {shorten_value(criterion.fn)}")

    def _resolve_reference(self, args: Any, blank: Criterion, spot: Spot, siblings: Mapping[str, Any]) -> Criterion:
        """Read a definition in the header; weight and citation of the reference take precedence."""
        name = args.get("name") if isinstance(args, dict) else args
        definition = self.definitions.get(name) if isinstance(name, str) else None
        if definition is None:
            text = f"$ref: {shorten_value(name)} is not defined; defined: {self._definition_names}"
            raise Omission("unknown-reference", text)
        if isinstance(definition, str):
            return self._read_function("js", definition, replace(blank, ref=name), spot)
        if not isinstance(definition, dict):
            text = f"the definition {name!r} is {shorten_value(definition)}; write a script or a criterion"
            raise Omission("bad-point", text)
        if _is_reference(definition):
            raise Omission("unknown-reference", f"the definition {name!r} refers to another; write it out")
        read = self._read_object(definition, replace(blank, weight=1.0, citation=None), spot)
        has_weight = any(siblings.get(key) is not None for key in _WEIGHT_KEYS)
        weight, citation = (blank if has_weight else read).weight, blank.citation or read.citation
        return replace(read, ref=name, weight=weight, citation=citation)


def _read_cited(value: dict[str, Any], blank: Criterion) -> Criterion:
    """Read `{text: citation}`, the only notation with a criterion's text as a key."""
    (key, citation), *extras = value.items() if value else (("", None),)
    if extras or key in _POINT_KEYS or not key.strip() or not isinstance(citation, str):
        text = f"a mapping without text or function: {shorten_value(value)}; if it is a text, put quotes around it"
        raise Omission("bad-point", text)
    return replace(blank, text=key, citation=citation)


def read_weight(value: Mapping[str, Any], keys: Collection[str]) -> float:
    """Return the first weight under the keys, 1 if there is none. Raises Omission if it is not a number from 0.1 to 10."""
    weight = next((value[key] for key in keys if value.get(key) is not None), 1.0)
    if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not LEAST_WEIGHT <= weight <= MAX_WEIGHT:
        got = f"{shorten_value(weight)}, in quotes" if isinstance(weight, str) else shorten_value(weight)
        raise Omission("weight-out-of-range", f"the weight is {got}; write a number from 0.1 to 10")
    return float(weight)


def format_citation(value: Any) -> str | None:
    """Format a text, `{title, url}`, or a list of these as one line, or None if there is none."""
    if isinstance(value, list):
        return "; ".join(text for item in value if (text := format_citation(item))) or None
    if isinstance(value, dict):
        title = format_citation(value.get("title") or value.get("name"))
        url = format_citation(value.get("url"))
        return f"{title} ({url})" if title and url else title or url
    return None if value is None or value == "" else format_scalar(value)


def _strip_quotes(text: str) -> str:
    """Remove one pair of enclosing quotes, if that quote does not occur inside; nothing is unescaped."""
    mark = text[:1]
    if len(text) > 1 and mark in _QUOTE_MARKS and text.endswith(mark) and mark not in text[1:-1]:
        return text[1:-1]
    return text


def _is_reference(definition: Mapping[str, Any]) -> bool:
    return f"${REFERENCE_FUNCTION}" in definition or definition.get("fn") == REFERENCE_FUNCTION


PROMPT_TEXT_KEYS = ("prompt", "promptText")
IDEAL_KEYS = ("ideal", "idealResponse")
SHOULD_KEYS = (SHOULD, "points", "expect", "expects", "expectations")
IMPORTANCE_KEYS = ("weight", "importance", "multiplier")
CITATION_KEYS = ("citation", "reference", "citations", "references")
_KNOWN_PROMPT_KEYS = (
    *("id", "description", "messages", "system", "temperature", "render_as", "noCache", SHOULD_NOT),
    *(*PROMPT_TEXT_KEYS, *IDEAL_KEYS, *SHOULD_KEYS, *IMPORTANCE_KEYS, *CITATION_KEYS),
)
_MESSAGE_ROLES = {"user": "user", "assistant": "assistant", "ai": "assistant", "system": "system", "tool": "tool"}
_USUAL_TEMPERATURE = 0.0


@dataclass(frozen=True)
class SharedSettings:
    """The settings of the header that apply to every prompt."""

    systems: tuple[str | None, ...] | None
    """System prompts for every prompt; None: each prompt has its own."""
    system: str | None
    """System prompt of prompts without their own."""
    temperatures: tuple[float, ...]


@dataclass
class PromptReader:
    """A reader of prompts, which makes their ids unique."""

    log: FindingLog
    points: PointReader
    settings: SharedSettings
    n_omitted: int = field(default=0, init=False)
    _ids: set[str] = field(default_factory=set, init=False)
    _times: dict[str, int] = field(default_factory=dict, init=False)

    def read_prompt_item(self, value: Any, place: str, spot: Spot) -> PromptItem | None:
        """Read a prompt, or return None if it has an error."""
        if not isinstance(value, dict):
            self.n_omitted += 1
            self.log.add("bad-prompt", spot, f"{shorten_value(value)} is not a prompt; write a mapping with `prompt:`")
            return None
        self.log.check_unknown_keys(value, _KNOWN_PROMPT_KEYS, place)
        for names in (PROMPT_TEXT_KEYS, IDEAL_KEYS, SHOULD_KEYS, IMPORTANCE_KEYS):
            self.log.check_second_names(value, names, place)
        before = len(self.log.findings)
        item = self._read(value, place, spot)
        # An error in a criterion leaves the criterion out, and the prompt in.
        if item is None or any(finding.level == "error" and finding.place == place for finding in self.log.findings[before:]):
            self.n_omitted += 1
            return None
        return self._assign_id(value, item, spot)

    def _read(self, value: dict[str, Any], place: str, spot: Spot) -> PromptItem | None:
        turns = self._read_turns(value, place, spot)
        if turns is None:
            return None
        wrong = self.points.n_omitted
        criteria = self._read_criteria(value, place, spot)
        weight = 1.0
        try:
            weight = read_weight(value, IMPORTANCE_KEYS)
        except Omission as error:
            self.log.add(error.code, spot, error.text)
        ideal = self._read_prompt_text(value, IDEAL_KEYS, place)
        if criteria or wrong == self.points.n_omitted:
            self._check_criteria(criteria, ideal, spot)
        return PromptItem(
            id="",
            turns=turns,
            systems=self._read_systems(value, place),
            temperatures=self._read_temperatures(value, place),
            criteria=tuple(criteria),
            ideal=ideal,
            weight=weight,
            description=self._read_prompt_text(value, ("description",), place),
            citation=format_citation(next((value[key] for key in CITATION_KEYS if value.get(key)), None)),
        )

    def _read_turns(self, value: dict[str, Any], place: str, spot: Spot) -> tuple[Turn, ...] | None:
        messages = value.get("messages")
        if not messages:
            text = self._read_prompt_text(value, PROMPT_TEXT_KEYS, place)
            if not text:
                if not any(_is_given(value.get(key)) for key in PROMPT_TEXT_KEYS):
                    below = "; a list of prompts below the header needs no `prompts:`" if "prompts" in value else ""
                    self.log.add("no-prompt-text", spot, f"the prompt is missing; write `prompt:` or `messages:`{below}")
                return None
            return (Turn("user", text),)
        if any(value.get(key) for key in PROMPT_TEXT_KEYS):
            self.log.add("prompt-and-messages", spot, "both prompt and messages; the messages are sent")
        if not isinstance(messages, list):
            spot = self.log.find_member_place(place, value, "messages")
            self.log.add("bad-message", spot, f"messages is {shorten_value(messages)}; write a list")
            return None
        turns = [self._read_message(message, messages, number, place) for number, message in enumerate(messages)]
        read = tuple(turn for turn in turns if turn is not None)
        return read if len(read) == len(turns) and self._can_be_asked(read, spot) else None

    def _read_message(self, message: Any, messages: list[Any], number: int, place: str) -> Turn | None:
        spot = self.log.find_member_place(f"{place} messages[{number}]", messages, number)
        role, text = _split_message(message)
        if role is None:
            problem = f"{shorten_value(message)} is not a message; write `- user: text` or `- assistant: text`"
            self.log.add("bad-message", spot, problem)
            return None
        text = _format_number(text)
        if not (isinstance(text, str) or (text is None and role == "assistant")):
            self.log.add("bad-message", spot, f"the message of the {role} is {shorten_value(text)}; write a text")
            return None
        if "role" in message:
            self.log.check_unknown_keys(message, ("role", "content"), spot.place)
        return Turn(role, text)

    def _can_be_asked(self, turns: tuple[Turn, ...], spot: Spot) -> bool:
        roles = [turn.role for turn in turns]
        name = next((role for role, after in pairwise(roles) if role == after), None)
        if name is not None:
            self.log.add("consecutive-roles", spot, f"two consecutive messages have the role {name}; they are sent as written")
        if roles[0] == "assistant":
            self.log.add("assistant-first", spot, "the first message is the assistant's; begin with a message of the user")
            return False
        if roles[-1] != "user" and all(turn.text is not None for turn in turns):
            text = f"the last message is the {roles[-1]}'s, so the model has no turn; end with a message of the user"
            self.log.add("nothing-to-generate", spot, text)
            return False
        return True

    def _read_prompt_text(self, value: dict[str, Any], keys: tuple[str, ...], place: str) -> str | None:
        """Return the first text or number under the keys as text; other values are errors."""
        key = next((key for key in keys if _is_given(value.get(key))), "")
        if not key:
            return None
        text = _format_number(value[key])
        if isinstance(text, str):
            return text
        problem = f"`{key}` is {shorten_value(text)}; write a text, with quotes around it"
        self.log.add("bad-prompt", self.log.find_member_place(place, value, key), problem)
        return None

    def _read_criteria(self, value: dict[str, Any], place: str, spot: Spot) -> list[Criterion]:
        keys = [key for key in SHOULD_KEYS if value.get(key)]
        criteria = []
        for block_key, block in ((keys[0] if keys else SHOULD, SHOULD), (SHOULD_NOT, SHOULD_NOT)):
            if value.get(block_key):
                criteria += self.points.read_block(
                    value[block_key], block, place, self.log.lines.find_member_line(value, block_key)
                )
        return criteria

    def _check_criteria(self, criteria: list[Criterion], ideal: str | None, spot: Spot) -> None:
        if not criteria and ideal is None:
            self.log.add("no-criteria", spot, "neither criteria nor an ideal answer: responses get no score; add `should:`")
        elif not criteria:
            self.log.add("ideal-only", spot, "an ideal answer and no criteria: only similarity is scored")
        if {criterion.block for criterion in criteria if criterion.path is not None} == {SHOULD, SHOULD_NOT}:
            self.log.add(
                "paths-in-both-blocks", spot, "`should` and `should_not` both have alternative paths, numbered separately"
            )

    def _read_systems(self, value: dict[str, Any], place: str) -> tuple[str | None, ...]:
        if self.settings.systems is not None:
            if "system" in value:
                text = "`system` is not used: every prompt uses the list of system prompts in the header"
                self.log.add("system-and-systems", self.log.find_member_place(place, value, "system"), text)
            return self.settings.systems
        return (self._read_prompt_text(value, ("system",), place),) if "system" in value else (self.settings.system,)

    def _read_temperatures(self, value: dict[str, Any], place: str) -> tuple[float, ...]:
        if self.settings.temperatures:
            return self.settings.temperatures
        temperature = value.get("temperature")
        if temperature is None:
            return (_USUAL_TEMPERATURE,)
        if not is_temperature(temperature):
            spot = self.log.find_member_place(place, value, "temperature")
            self.log.add("bad-prompt", spot, f"temperature is {shorten_value(temperature)}; write a number from 0")
            return ()
        return (float(temperature),)

    def _assign_id(self, value: dict[str, Any], item: PromptItem, spot: Spot) -> PromptItem:
        """Return the prompt with a unique id."""
        raw_id = value.get("id")
        name = _format_number(raw_id)
        if not isinstance(name, str) or not name.strip():
            name = f"hash-{hash_prompt(item)[:12]}"
            got = "" if raw_id in (None, "") else f": {shorten_value(raw_id)} is not text"
            self.log.add("no-prompt-id", spot, f"no id{got}; it is called {name}, which changes when its contents change")
        if name in self._ids:
            first = name
            while name in self._ids:
                self._times[first] = self._times.get(first, 1) + 1
                name = f"{first}#{self._times[first]}"
            self.log.add(
                "duplicate-prompt-id", spot, f"another prompt has the id {shorten_value(first)}; this prompt is called {name}"
            )
        self._ids.add(name)
        return replace(item, id=name)


def _format_number(value: Any) -> Any:
    """Return a number as JavaScript writes it, and any other value unchanged."""
    return format_js_number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _is_given(value: Any) -> bool:
    """Return whether a value is not null, '' or `false`."""
    return value is not None and value != "" and value is not False


def is_temperature(value: Any) -> bool:
    """Return whether a value is a finite number from 0."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")


def read_shared_settings(header: Mapping[str, Any], log: FindingLog) -> SharedSettings:
    """Read the header's settings of system prompts and temperatures."""
    systems, system = _read_header_systems(header, log)
    return SharedSettings(systems, system, _read_header_temperatures(header, log))


def _read_header_systems(header: Mapping[str, Any], log: FindingLog) -> tuple[tuple[str | None, ...] | None, str | None]:
    """Return the list of system prompts for all, or else the one for prompts without their own."""
    single = next((key for key in ("system", "systemPrompt") if header.get(key)), "system")
    key = "systems" if header.get("systems") else single
    if key == "systems" and header.get(single):
        log.add_in_header("system-and-systems", header, single, f"`{single}` is not used, because `systems` is given")
    values = header.get(key)
    if key != "systems" and not isinstance(values, list):
        return None, _read_system_text(values, log.find_member_place(HEADER_PLACE, header, key), log)
    values = values if isinstance(values, list) else [values]
    read = [
        _read_system_text(value, log.find_member_place(HEADER_PLACE, values, place), log) for place, value in enumerate(values)
    ]
    earlier: set[str | None] = set()
    for place, value in enumerate(read):
        if value in earlier:
            text = f"the system prompt {shorten_value(value)} occurs twice in the list and is used once"
            log.add_in_header("system-twice", values, place, text)
        earlier.add(value)
    return tuple(dict.fromkeys(read)) or None, None


def _read_system_text(value: Any, spot: Spot, log: FindingLog) -> str | None:
    text = _format_number(value)
    if text is not None and not isinstance(text, str):
        log.add("bad-header", spot, f"a system prompt is {shorten_value(value)}; write a text, or null")
        return None
    return text or None


def _read_header_temperatures(header: Mapping[str, Any], log: FindingLog) -> tuple[float, ...]:
    key = "temperatures" if header.get("temperatures") not in (None, []) else "temperature"
    values = header.get(key)
    values = [] if values is None else values if isinstance(values, list) else [values]
    spot = log.find_member_place(HEADER_PLACE, header, key)
    sound = [float(value) for value in values if is_temperature(value)]
    if len(sound) < len(values):
        log.add("bad-header", spot, f"{key} is {shorten_value(values)}; write numbers from 0")
    if len(set(sound)) < len(sound):
        text = f"{key} is {shorten_value(values)}: equal ones are used once; for more responses, draw several"
        log.add("temperature-twice", spot, text)
    return tuple(dict.fromkeys(sound))


def _split_message(message: Any) -> tuple[str | None, Any]:
    """Return role and content of `{role, content}` or `{user: text}`; the role is None for anything else."""
    if not isinstance(message, dict):
        return None, None
    if "role" in message and "content" in message:
        role, content = message["role"], message["content"]
    elif len(message) == 1:
        ((role, content),) = message.items()
    else:
        return None, None
    return (_MESSAGE_ROLES.get(role) if isinstance(role, str) else None), content
