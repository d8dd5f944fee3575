"""References to published claims."""

from __future__ import annotations

import dataclasses

__all__ = ["Reference"]


@dataclasses.dataclass(frozen=True)
class Reference:
    """A published claim and its paper.

    Attributes:
        paper: Authors and title of the paper.
        arxiv: arXiv identifier.
        claim: The claim that the study tests.
        also: A sentence about other sources.
    """

    paper: str
    arxiv: str
    claim: str
    also: str = ""

    @classmethod
    def of(cls, work: str, claim: str, *, also: str = "") -> Reference:
        """Create a reference from a citation "authors, title (arXiv id)"."""
        paper, _, number = work.rstrip(")").partition(" (arXiv ")
        return cls(paper, number, claim, also)
