"""Where the claim of a study was published."""

from __future__ import annotations

import dataclasses

__all__ = ["Reference"]


@dataclasses.dataclass(frozen=True)
class Reference:
    """Where a claim was published.

    Attributes:
        paper: Authors and title.
        arxiv: arXiv identifier.
        claim: What the study puts to the test, in one sentence.
    """

    paper: str
    arxiv: str
    claim: str

    @classmethod
    def of(cls, work: str, claim: str, *, also: str = "") -> Reference:
        """A claim of a work that is cited as "authors, title (arXiv id)", and what else it is taken from."""
        paper, _, number = work.rstrip(")").partition(" (arXiv ")
        return cls(paper + also, number, claim)
