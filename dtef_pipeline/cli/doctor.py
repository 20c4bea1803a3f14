"""What `dtef doctor` does: looks at everything that commands need, changes nothing, and says what to do."""

import os
import shutil
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import click
import pandas as pd

from assets.survey.panel_file import known_panel
from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.cli.installed import check_installation
from dtef_pipeline.cli.kept_state import check_state
from dtef_pipeline.errors import DtefError
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.text.counted import counted
from resources.failures import links, one_line
from resources.gateway.askable import quick_problem
from resources.known_models import known_models
from resources.settings import Settings
from resources.webhook import Webhook

_WIDEST = 110
_NAME_WIDTH = 18
_COLOUR_OF = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(output: str) -> int:
    """The findings on the terminal or for other programs. 1: there is a problem."""
    findings = list(_findings(Settings.from_environment()))
    if output == "table":
        for finding in findings:
            _show(finding)
        counts = [sum(finding.state == state for finding in findings) for state in ("problem", "warning")]
        spelled = [counted(n, what) for n, what in zip(counts, ("problem", "warning"), strict=True) if n]
        click.echo(f"\n{' and '.join(spelled) or 'all is well'}")
    else:
        click.echo(render(pd.DataFrame(findings, columns=list(Diagnosis._fields)), output))
    return int(any(finding.state == "problem" for finding in findings))


def _findings(settings: Settings) -> Iterator[Diagnosis]:
    checks: Sequence[tuple[str, Callable[[], Iterator[Diagnosis]]]] = (
        ("installation", check_installation),
        ("state", lambda: check_state(settings)),
        ("models", lambda: _models(settings)),
        ("webhook", lambda: _webhook(settings)),
    )
    for name, check in checks:
        try:
            yield from check()
        except Exception as error:  # a check that fails must not hide the others
            yield Diagnosis(name, "problem", one_line(links(error)), "see the message")


def _models(settings: Settings) -> Iterator[Diagnosis]:
    """The models file, the keys, and the panel with what it asks."""
    try:
        models = known_models(settings, BASELINES)
    except DtefError as error:
        yield Diagnosis("models file", "problem", str(error), "mend the file that DTEF_MODELS names")
        return
    own = f"{settings.models} and the shipped one" if settings.models else "the shipped one (DTEF_MODELS is not set)"
    yield Diagnosis(
        "models file", "ok", f"{own}: {counted(len(models.specs), 'model')}, {counted(len(models.collections), 'collection')}"
    )
    asked = [spec for spec in models.specs.values() if not spec.is_computed]
    problems = {spec.name: quick_problem(spec, os.environ) for spec in asked}
    yield from _keys(problems)
    yield _panel(settings, models)


def _keys(problems: dict[str, str | None]) -> Iterator[Diagnosis]:
    """Which models can be asked, and what the others lack. Keys are never shown."""
    able = [name for name, problem in problems.items() if problem is None]
    lacking: dict[str, list[str]] = defaultdict(list)
    for name, problem in problems.items():
        if problem:
            lacking[problem].append(name)
    if able:
        yield Diagnosis("models to ask", "ok", f"{len(able)} of {len(problems)} can be asked now: {', '.join(able)}")
    else:
        remedy = "set the key of a provider, install the local model, or name a server of yours in DTEF_MODELS"
        yield Diagnosis("models to ask", "warning", "no language model can be asked now, only baselines", remedy)
    for problem, names in lacking.items():
        yield Diagnosis("keys", "ok", f"{problem}: needed only for {', '.join(names)}")


def _panel(settings: Settings, models: Models) -> Diagnosis:
    if settings.panel is None:
        return Diagnosis("panel", "ok", "none (DTEF_PANEL is not set): no night is asked")
    try:
        asked: Sequence[ModelSpec] = known_panel(settings).asked(models)
    except DtefError as error:
        return Diagnosis("panel", "problem", str(error), "mend the file that DTEF_PANEL names")
    found = f"{settings.panel}: asks {', '.join(spec.name for spec in asked) or 'no model'}"
    if problems := [f"{spec.name}: {problem}" for spec in asked if (problem := quick_problem(spec, os.environ))]:
        return Diagnosis("panel", "problem", f"{found}; not to be asked now: {'; '.join(problems)}", "set the keys it needs")
    return Diagnosis("panel", "ok", found)


def _webhook(settings: Settings) -> Iterator[Diagnosis]:
    if settings.webhook is None:
        yield Diagnosis("webhook", "ok", "none (DTEF_WEBHOOK is not set): no verdict is sent")
    elif problem := Webhook(settings.webhook).problem:
        yield Diagnosis("webhook", "problem", problem, "mend DTEF_WEBHOOK, or leave it out")
    else:
        yield Diagnosis("webhook", "ok", f"{Webhook(settings.webhook).where} (not tried)")


def _show(finding: Diagnosis) -> None:
    """`ok       Python              3.11.7`, long lines broken under the third column."""
    first = f"{finding.state:<8} {finding.check:<{_NAME_WIDTH}} "
    width = max(60, min(_WIDEST, shutil.get_terminal_size().columns))
    told = [finding.found, *([f"-> {finding.remedy}"] if finding.remedy else [])]
    lines = [
        line
        for text in told
        for line in textwrap.wrap(text, width - len(first), break_long_words=False, break_on_hyphens=False)
    ]
    state = click.style(f"{finding.state:<8}", fg=_COLOUR_OF[finding.state])
    click.echo(f"{state}{first[8:]}{lines[0] if lines else ''}")
    for line in lines[1:]:
        click.echo(" " * len(first) + line)
