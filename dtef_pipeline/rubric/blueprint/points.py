"""The criteria of a prompt: each notation of a point of a rubric, and the repair of functions written as texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from dtef_pipeline.rubric.blueprint.blueprint_yaml import YamlFault, format_scalar, read_yaml
from dtef_pipeline.rubric.blueprint.findings import FindingLog, Spot, shorten_value
from dtef_pipeline.rubric.blueprint.model import FUNCTION_KIND, TEXT_KIND, Criterion
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
            self._log_omission(
                "rubric-not-a-list", Spot(f"{place} {block}", line), f"`{block}` is {shorten_value(values)}; write a list"
            )
            return []
        criteria: list[Criterion] = []
        paths = 0
        for position, value in enumerate(values):
            spot = self.log.find_member_place(f"{place} {block}[{position}]", values, position)
            if isinstance(value, list):
                path = self._read_path(value, Criterion(block, paths, 0, TEXT_KIND, None), spot)
                paths += bool(path)
                criteria += path
            elif value is not None and (
                read := self._read_point(value, Criterion(block, None, position, TEXT_KIND, None), spot)
            ):
                criteria.append(read)
        return criteria

    def _read_path(self, values: list[Any], blank: Criterion, spot: Spot) -> list[Criterion]:
        """Read the criteria of an alternative path; none if it is empty."""
        members = [(position, value) for position, value in enumerate(values) if value is not None and value != []]
        criteria = []
        for position, value in members:
            item_spot = self.log.find_member_place(f"{spot.place}[{position}]", values, position)
            if isinstance(value, list):
                self._log_omission(
                    "nested-too-deep", item_spot, f"a list in a path: {shorten_value(value)}; write its criteria into the path"
                )
            elif read := self._read_point(value, replace(blank, position=position), item_spot):
                criteria.append(read)
        if len(members) == 1:
            text = "this is the only criterion of an alternative path; write it without the inner list, unless it is an alternative"
            self.log.add("single-element-path", spot, text)
        return criteria

    def _read_point(self, value: Any, blank: Criterion, spot: Spot) -> Criterion | None:
        """Return the criterion at the place of `blank`, or None if it has an error."""
        if isinstance(value, str):
            return self._read_text(value, blank, spot)
        if isinstance(value, dict):
            return self._read_object(value, blank, spot)
        return self._report_bad_point(spot, f"{shorten_value(value)} is not text; put quotes around it")

    def _read_text(self, text: str, blank: Criterion, spot: Spot) -> Criterion | None:
        if not text.strip():
            return self._report_bad_point(spot, "the criterion is empty; write what a response should have")
        if not text.startswith("$"):
            return replace(blank, text=text)
        match = _CALL_TEXT.fullmatch(text.strip())
        name = match[1] if match else ""
        if match is None or not self._is_known_function(name):
            return self._report_unknown_function(text, replace(blank, fn=text[1:].strip()), spot)
        if not match[2]:
            return self._read_function(name, None, blank, spot)
        argument = match[2].strip()
        self.log.add(
            "dollar-string",
            spot,
            f"`{shorten_value(text)}` is a text but is read as the function ${name}; write `${name}: ...`",
        )
        return self._read_function(name, self._parse_argument(name, argument), replace(blank, source=text), spot)

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

    def _read_object(self, value: dict[str, Any], blank: Criterion, spot: Spot) -> Criterion | None:
        call_key = next((key for key in value if key.startswith("$")), None)
        text = next((value[key] for key in _TEXT_KEYS if value.get(key)), None)
        if (call_key or value.get("fn")) and text is not None:
            return self._log_omission(
                "text-and-function", spot, f"both a text and a function: {shorten_value(value)}; write two criteria"
            )
        if call_key is None and not value.get("fn") and text is None:
            return self._read_cited(value, blank, spot)
        criterion = self._add_weight(value, blank, spot)
        if criterion is None:
            return None
        if call_key is not None:
            self.log.check_unknown_keys(value, (call_key, *_AFTER_A_FUNCTION), spot.place)
            return self._read_function(call_key[1:], value[call_key], criterion, spot, value)
        self.log.check_unknown_keys(value, _POINT_KEYS, spot.place)
        for names in (_TEXT_KEYS, _ARGUMENT_KEYS, _WEIGHT_KEYS):
            self.log.check_second_names(value, names, spot.place)
        if text is not None:
            return (
                replace(criterion, text=text)
                if isinstance(text, str) and text.strip()
                else self._report_bad_point(spot, f"{shorten_value(text)} is not text; put quotes around it")
            )
        if not isinstance(value["fn"], str):
            return self._report_bad_point(spot, f"fn is {shorten_value(value['fn'])}; write the name of a function")
        args = next((value[key] for key in _ARGUMENT_KEYS if value.get(key) is not None), None)
        return self._read_function(value["fn"], args, criterion, spot, value)

    def _read_cited(self, value: dict[str, Any], blank: Criterion, spot: Spot) -> Criterion | None:
        """Read `{text: citation}`, the only notation with a criterion's text as a key."""
        (key, citation), *extras = value.items() if value else (("", None),)
        if extras or key in _POINT_KEYS or not key.strip() or not isinstance(citation, str):
            return self._report_bad_point(
                spot, f"a mapping without text or function: {shorten_value(value)}; if it is a text, put quotes around it"
            )
        return replace(blank, text=key, citation=citation)

    def _add_weight(self, value: dict[str, Any], blank: Criterion, spot: Spot) -> Criterion | None:
        """Add weight and citation, or return None for an invalid weight."""
        weight = read_weight(value, _WEIGHT_KEYS)
        if weight is None:
            got = next(value[key] for key in _WEIGHT_KEYS if value.get(key) is not None)
            return self._log_omission(
                "weight-out-of-range", spot, f"the weight is {format_bad_weight(got)}; write a number from 0.1 to 10"
            )
        return replace(blank, weight=weight, citation=format_citation(value.get("citation")))

    def _read_function(
        self, name: str, args: Any, blank: Criterion, spot: Spot, siblings: Mapping[str, Any] = _NOTHING
    ) -> Criterion | None:
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
            self.log.add(
                "external-call",
                spot,
                f"${canonical} needs an external service, which is not supported; the criterion stays unscored",
            )
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

    def _resolve_reference(self, args: Any, blank: Criterion, spot: Spot, siblings: Mapping[str, Any]) -> Criterion | None:
        """Read a definition in the header; weight and citation of the reference take precedence."""
        name = args.get("name") if isinstance(args, dict) else args
        definition = self.definitions.get(name) if isinstance(name, str) else None
        if definition is None:
            text = f"$ref: {shorten_value(name)} is not defined; defined: {self._definition_names}"
            return self._log_omission("unknown-reference", spot, text)
        if not isinstance(definition, (str, dict)):
            return self._report_bad_point(
                spot, f"the definition {name!r} is {shorten_value(definition)}; write a script or a criterion"
            )
        if isinstance(definition, dict) and _is_reference(definition):
            return self._log_omission("unknown-reference", spot, f"the definition {name!r} refers to another; write it out")
        if isinstance(definition, str):
            return self._read_function("js", definition, replace(blank, ref=name), spot)
        read = self._read_object(definition, replace(blank, weight=1.0, citation=None), spot)
        if read is None:
            return None
        has_weight = any(siblings.get(key) is not None for key in _WEIGHT_KEYS)
        weight, citation = (blank if has_weight else read).weight, blank.citation or read.citation
        return replace(read, ref=name, weight=weight, citation=citation)

    def _report_bad_point(self, spot: Spot, text: str) -> Criterion | None:
        return self._log_omission("bad-point", spot, text)

    def _log_omission(self, code: str, spot: Spot, text: str) -> Criterion | None:
        """Log an error and return no criterion."""
        self.n_omitted += 1
        self.log.add(code, spot, text)
        return None


def read_weight(value: Mapping[str, Any], keys: Collection[str]) -> float | None:
    """Return the first weight under the keys, 1 if there is none, or None if it is not a number from 0.1 to 10."""
    weight = next((value[key] for key in keys if value.get(key) is not None), 1.0)
    if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not LEAST_WEIGHT <= weight <= MAX_WEIGHT:
        return None
    return float(weight)


def format_bad_weight(value: object) -> str:
    """Format an invalid weight for a message."""
    return f"{shorten_value(value)}, in quotes" if isinstance(value, str) else shorten_value(value)


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
