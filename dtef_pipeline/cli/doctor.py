"""What `dtef doctor` does: shows each finding as soon as it is known, with what to do."""

import re
import shutil
import textwrap
from collections.abc import Iterator

import click

from dtef_pipeline.cli.doctor_checks import DOCTOR_CHECKS
from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.text.counted import counted
from resources.failures import links, one_line
from resources.settings import Settings

_WIDEST = 110
_NAME_WIDTH = 18
_BEFORE_A_COMMAND = re.compile(r"(?:^|: |; )(?=(?:dtef|export|unset|mv|cp|aws) )")
_COLOUR_OF = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(output: str) -> int:
    """The findings on the terminal, each as soon as it is known, or all for other programs. 1: there is a problem."""
    findings = []
    for finding in _findings(Settings.from_environment()):
        findings.append(finding)
        if output == "table":
            _show(finding)
    if output == "table":
        counts = [sum(finding.state == state for finding in findings) for state in ("problem", "warning")]
        spelled = [counted(n, what) for n, what in zip(counts, ("problem", "warning"), strict=True) if n]
        click.echo(f"\n{' and '.join(spelled) or 'all is well'}")
    else:
        import pandas as pd

        from dtef_pipeline.report.terminal import render

        click.echo(render(pd.DataFrame(findings, columns=list(Diagnosis._fields)), output))
    return int(any(finding.state == "problem" for finding in findings))


def _findings(settings: Settings) -> Iterator[Diagnosis]:
    for name, check in DOCTOR_CHECKS.items():
        try:
            yield check(settings)
        except Exception as error:  # a check that fails must not hide the others
            yield Diagnosis(
                name, "problem", one_line(links(error)), "mend what the message names, then give `dtef doctor` again"
            )


def _show(finding: Diagnosis) -> None:
    """`ok       Python              3.11.7`, long lines broken under the third column; a command stands whole on a line of its own."""
    first = f"{finding.state:<8} {finding.check:<{_NAME_WIDTH}} "
    width = max(60, min(_WIDEST, shutil.get_terminal_size().columns)) - len(first)
    words, *commands = _BEFORE_A_COMMAND.split(finding.remedy)
    told = [finding.found, *([f"-> {words}{':' if commands else ''}"] if words else [])]
    lines = [
        line for text in told for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    ] + commands
    state = click.style(f"{finding.state:<8}", fg=_COLOUR_OF[finding.state])
    click.echo(f"{state}{first[8:]}{lines[0] if lines else ''}")
    for line in lines[1:]:
        click.echo(" " * len(first) + line)
