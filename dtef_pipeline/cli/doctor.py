"""What `dtef doctor` does: looks at everything that commands need, changes nothing, and says what to do.

What the checks need is imported when their turn comes, so that the first lines do not wait for it.
"""

import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence

import click

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
    checks: Sequence[tuple[str, Callable[[Settings], Iterator[Diagnosis]]]] = (
        ("installation", _installation),
        ("state", _state),
        ("models", _models),
        ("batteries", _batteries),
        ("sandbox", _sandbox),
        ("webhook", _webhook),
        ("look-ups", _look_ups),
        ("API tokens", _tokens),
        ("broker", _broker),
        ("Dagster's home", _home),
    )
    for name, check in checks:
        try:
            yield from check(settings)
        except Exception as error:  # a check that fails must not hide the others
            yield Diagnosis(
                name, "problem", one_line(links(error)), "mend what the message names, then give `dtef doctor` again"
            )


def _installation(settings: Settings) -> Iterator[Diagnosis]:
    from dtef_pipeline.cli.installed import check_installation

    yield from check_installation()


def _state(settings: Settings) -> Iterator[Diagnosis]:
    from dtef_pipeline.cli.kept_state import check_state

    yield from check_state(settings)


def _models(settings: Settings) -> Iterator[Diagnosis]:
    from dtef_pipeline.cli.asked_models import check_models

    yield from check_models(settings)


def _batteries(settings: Settings) -> Iterator[Diagnosis]:
    from dtef_pipeline.cli.corrected_batteries import check_batteries

    yield from check_batteries(settings)


def _sandbox(settings: Settings) -> Iterator[Diagnosis]:
    from resources.sandbox.run import found_level

    found = found_level(settings.sandbox)
    if found.level is not None and not found.is_weak:
        yield Diagnosis("sandbox", "ok", found.words)
        return
    effect = (
        "programs that models wrote are not run, so that HumanEval has no scores"
        if found.level is None
        else "a program that a model wrote could read files of this machine"
    )
    best = found_level("auto").level
    if settings.sandbox != "auto" and best not in (None, found.level):
        remedy = f"{effect}, because DTEF_SANDBOX is {settings.sandbox}; without it the level is {best}: unset DTEF_SANDBOX"
    else:
        remedy = f"{effect}: install bubblewrap, or see docs/sandbox.md"
    yield Diagnosis("sandbox", "warning", found.words, remedy)


def _home(settings: Settings) -> Iterator[Diagnosis]:
    from dtef_pipeline.cli.dagster_home import check_home

    yield from check_home(settings)


def _webhook(settings: Settings) -> Iterator[Diagnosis]:
    if settings.webhook is None:
        yield Diagnosis("webhook", "ok", "none (DTEF_WEBHOOK is not set): no verdict is sent")
        return
    from resources.webhook import Webhook

    if problem := Webhook(settings.webhook).problem:
        yield Diagnosis("webhook", "problem", problem, "mend DTEF_WEBHOOK, or go on without: unset DTEF_WEBHOOK")
    else:
        yield Diagnosis("webhook", "ok", f"{Webhook(settings.webhook).where} (not tried)")


def _look_ups(settings: Settings) -> Iterator[Diagnosis]:
    if settings.socioscope_url is None:
        yield Diagnosis("look-ups", "ok", "no server (DTEF_SOCIOSCOPE_URL is not set): only --retriever remote needs one")
        return
    from assets.qa.lookups import asked_server

    secret = "with" if settings.socioscope_auth_env else "without"
    yield Diagnosis("look-ups", "ok", f"{asked_server(settings).where} {secret} a secret (not tried)")


def _tokens(settings: Settings) -> Iterator[Diagnosis]:
    from dtef_pipeline.cli.kept_tokens import check_tokens

    yield check_tokens(settings)


def _broker(settings: Settings) -> Iterator[Diagnosis]:
    from dtef_pipeline.cli.asked_broker import check_broker

    yield check_broker(settings)


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
