"""The command `dtef tokens`."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import pandas as pd
import yaml
from filelock import FileLock

from dtef_pipeline.api.tokens import TokenHolder, new_token, read_tokens, token_hash
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.report.terminal import render
from resources.settings import Settings

_OTHER_USERS = stat.S_IROTH | stat.S_IWOTH | stat.S_IXOTH
_TOKEN_FILE_HEAD = "# Who may use the HTTP API: written by `dtef tokens`. A token is not kept, only its hash.\n"  # noqa: S105 - a comment


def add(name: str, role: str) -> None:
    """Store the hash of a new token and print the token. Raises ConfigError for a taken or invalid name, or a faulty file."""
    token = new_token()
    with _lock_token_file() as path:
        holders = read_tokens(path) if path.exists() else []
        if any(holder.name == name for holder in holders):
            raise ConfigError(f"{path}: {name!r} has a token already; use another name, or first: dtef tokens {name} --remove")
        _write(path, [*holders, _make_holder(name, role, token)])
    click.echo(f"the token of {name}, {role}; it is shown only now, and {path} keeps its hash:", err=True)
    click.echo(token)


def show(output: str) -> None:
    """Print the names with tokens. Raises ConfigError without a readable file."""
    holders = read_tokens(_require_token_file())
    rows = [(holder.name, holder.role) for holder in holders]
    click.echo(render(pd.DataFrame(rows, columns=["name", "role"]), output))


def remove(name: str) -> None:
    """Remove a token. Raises ConfigError if the name has none."""
    with _lock_token_file() as path:
        holders = read_tokens(path)
        remainder = [holder for holder in holders if holder.name != name]
        if len(remainder) == len(holders):
            names = ", ".join(holder.name for holder in holders) or "nobody"
            raise ConfigError(f"{path}: {name[:80]!r} has no token; names with a token: {names}")
        _write(path, remainder)
    click.echo(f"the token of {name} is no longer valid")


def _require_token_file() -> Path:
    path = Settings.read_environment().api_tokens
    if path is None:
        raise ConfigError(
            "DTEF_API_TOKENS is not set: name the file that keeps the tokens, as in: export DTEF_API_TOKENS=$HOME/tokens.yaml"
        )
    return path


def _make_holder(name: str, role: str, token: str) -> TokenHolder:
    try:
        return TokenHolder.model_validate({"name": name, "role": role, "sha256": token_hash(token)})
    except ValueError:
        rule = "1 to 100 letters, digits and . _ @ -, of which the first is a letter or a digit"
        raise ConfigError(f"the name of a token: got {name[:80]!r}; allowed: {rule}") from None


@contextmanager
def _lock_token_file() -> Iterator[Path]:
    """Yield the file's path, locked against other commands."""
    path = Path(os.path.realpath(_require_token_file()))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{path.name}.lock"), mode=0o600)
        with lock:
            yield path
    except OSError as error:
        raise ConfigError(f"cannot write the file of tokens {path}: {error.strerror or error}") from error


def _write(path: Path, holders: Sequence[TokenHolder]) -> None:
    """Replace the file atomically, keeping its owner and permissions except those of others. A new file is readable by its owner only."""
    text = _TOKEN_FILE_HEAD + yaml.safe_dump({"tokens": [item.model_dump() for item in holders]}, sort_keys=False, width=200)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    before = path.stat() if path.exists() else None
    try:
        with open(part, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            if before is not None:
                with suppress(PermissionError):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode) & ~_OTHER_USERS)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink()
