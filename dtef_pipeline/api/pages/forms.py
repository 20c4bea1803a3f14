"""Forms: their fields, typed values and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import parse_qs

from fastapi import Depends, Request

from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import answer_error


async def read_form_lists(request: Request) -> dict[str, list[str]]:
    """Read all values of every field of a form; invalid text is replaced."""
    try:
        return parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True, errors="replace")
    except ValueError:
        return {}


async def read_form_fields(request: Request) -> dict[str, str]:
    """Read the last value of every field of a form."""
    return {name: values[-1] for name, values in (await read_form_lists(request)).items()}


SentForm = Annotated[dict[str, list[str]], Depends(read_form_lists)]
"""All values of every field of a request."""
TypedForm = Mapping[str, Sequence[str]]
"""All values of every field; empty: nothing was sent yet."""
FieldKind = Literal["line", "lines", "choice", "boxes", "box"]


class Choice(NamedTuple):
    """One of several values of a field."""

    value: str
    label: str
    mark: str = ""
    """A word next to it, such as its status."""
    title: str = ""
    """Full meaning of the mark."""


@dataclass(frozen=True)
class FormField:
    """A field of a form with what was typed."""

    name: str
    """Also its name in errors."""
    label: str
    kind: FieldKind = "line"
    values: Sequence[str] = ()
    """Typed or chosen values, or the default."""
    hint: str = ""
    choices: Sequence[Choice] = ()
    is_folded: bool = False

    @property
    def value(self) -> str:
        return self.values[-1] if self.values else ""


class Refusal(NamedTuple):
    """Errors of a refused form."""

    status: int
    faults: Sequence[BodyFault]

    def list_at(self, name: str) -> list[str]:
        """Return the errors of a field, each after the part that it is about, if the field has several."""
        errors = []
        for fault in self.faults:
            if fault.is_of(name):
                part = fault.path.removeprefix(name).strip(".[]")
                errors.append(f"{part}: {fault.message}" if part and not part.isdigit() else fault.message)
        return errors

    def list_outside(self, fields: Collection[FormField]) -> list[BodyFault]:
        """Return the errors outside these fields."""
        return [fault for fault in self.faults if not any(fault.is_of(field.name) for field in fields)]


NOT_REFUSED = Refusal(200, ())


def build_refusal(request: Request, error: Exception, fields: Collection[str]) -> Refusal:
    """Return the errors of fields. Raises a server error again."""
    answer = answer_error(request, error)
    if answer.status_code >= 500:
        raise error
    problem = json.loads(bytes(answer.body))
    if problem.get("errors"):
        return Refusal(answer.status_code, [BodyFault(**fault) for fault in problem["errors"]])
    field, _, message = problem["detail"].partition(": ")
    return Refusal(answer.status_code, [BodyFault(field, message) if field in fields else BodyFault("", problem["detail"])])


def read_field(form: TypedForm, name: str) -> str:
    """Return the last value of a field without outer white space; empty if it was not sent."""
    return form[name][-1].strip() if form.get(name) else ""


def parse_number(typed: str) -> Any:
    """Parse a typed number; any other text stays unchanged, so that the check refuses it."""
    if re.fullmatch(r"\d{1,15}\.\d{1,15}", typed):
        return float(typed)
    return int(typed) if re.fullmatch(r"[0-9]{1,15}", typed) else typed
