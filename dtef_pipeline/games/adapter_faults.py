"""Whose fault it is where the engine of somebody else's package fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from types import TracebackType

from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.games.packs import ADAPTERS_GROUP, adapter_words

_OWN_PACKAGE = "dtef_pipeline"


@contextmanager
def adapters_named() -> Iterator[None]:
    """What the engine of another package raises within is raised as ConfigError, with the adapter and its package; all else as it is."""
    try:
        yield
    except DtefError:
        raise
    except Exception as error:
        if (whose := adapter_at_fault(error)) is None:
            raise
        raise ConfigError(f"{whose} fails: {type(error).__name__}: {error}") from error


def adapter_at_fault(error: BaseException) -> str | None:
    """The adapter of another package whose code an error comes from, in words; None: it comes from elsewhere.

    That is where any call on the way to the error was code of the adapter's package, or where an attribute is lacking of an object of it.
    """
    packages = set(_packages_on_the_way(error.__traceback__))
    if isinstance(error, AttributeError) and error.obj is not None:
        packages.add(_package(type(error.obj).__module__))
    foreign = (one for one in entry_points(group=ADAPTERS_GROUP) if _package(one.module) != _OWN_PACKAGE)
    return next((_named(one) for one in foreign if _package(one.module) in packages), None)


def _packages_on_the_way(at: TracebackType | None) -> Iterator[str]:
    while at is not None:
        yield _package(str(at.tb_frame.f_globals.get("__name__", "")))
        at = at.tb_next


def _package(module: str) -> str:
    return module.partition(".")[0]


def _named(one: EntryPoint) -> str:
    return f"scenario {one.name}: {adapter_words(one)}"
