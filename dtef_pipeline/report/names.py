"""What a family calls the things that boards and drift are about: the shared parts of the report take their words from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.text.counted import plural


@dataclass(frozen=True, slots=True)
class Names:
    """Columns of a family's tables with their headings, and its nouns in the singular (their plural takes an s).

    Columns that count items or cells are called `n_`, the noun and `s`.
    """

    place: Mapping[str, str]
    """Columns that tell where an item stands, the broadest first, with their headings."""
    asked: Mapping[str, str]
    """Columns that tell ways of asking apart, with their headings."""
    usual: Mapping[str, str]
    """Columns of `asked` that are worth showing only where they vary, with the value that goes without saying."""
    part: str
    """The narrowest place."""
    cell: str
    """One item at one place."""
    reference: str
    """The computed model that others are compared with first: its variant, which is its name."""
    subject: Subject
    """What is watched for drift, with the words for it."""

    @property
    def item(self) -> str:
        """What a model is asked."""
        return self.subject.keys.noun

    @property
    def clusters(self) -> str:
        """What intervals and tests go by, in the plural."""
        return plural(self.subject.keys.cluster_noun)
