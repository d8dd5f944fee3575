"""Claims about the growth of the width required for training, based on a search by doubling."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from dynascope.comparison import Claim
from dynascope.networks.exact_composition import ARCHITECTURES

__all__ = ["WidthSearch", "growth_claims"]

# For each architecture, the statement and the bounds on the growth of the width as a function of the further elements.
_CLAIMS = (
    (
        "In a two-layer network, the width required for training at least doubles with each further element.",
        lambda further: {"least": 2.0**further},
    ),
    (
        "In a recurrent network, the longest sequences require at most twice the width that the shortest require.",
        lambda _: {"most": 2.0},
    ),
    (
        "In a tree, the longest sequences require at most twice the width that the shortest require.",
        lambda _: {"most": 2.0},
    ),
)


@dataclasses.dataclass(frozen=True)
class WidthSearch:
    """A search for the smallest sufficient width by repeated doubling.

    Attributes:
        smallest_width: The first width.
        largest_width: Upper bound on the widths.
    """

    smallest_width: int
    largest_width: int

    @property
    def last(self) -> float:
        """The largest width of the search."""
        return self.smallest_width * 2.0 ** math.floor(math.log2(self.largest_width / self.smallest_width))

    def interval(self, found: float, sufficient: int) -> tuple[float, float, float]:
        """Lower bound, found value and upper bound of the smallest width at which training succeeds.

        Args:
            found: The width found, or 0 if no width was sufficient.
            sufficient: A width that is sufficient by construction.
        """
        if found == 0:
            # If the search included a sufficient width, training failed, and the needed width is unknown.
            return (1.0 if sufficient <= self.last else self.last), np.inf, np.inf
        # The search does not cover widths below the first.
        return (found / 2 if found > self.smallest_width else 1.0), found, found


def growth_claims(search: WidthSearch, widths: np.ndarray, sufficient: np.ndarray) -> list[Claim]:
    """Claims about the growth of the width from the shortest to the longest sequences.

    Args:
        search: The search that found the widths.
        widths: Widths found, or 0 if no width was sufficient, shape (lengths, architectures).
        sufficient: Widths that are sufficient by construction, of the same shape.
    """
    claims = []
    for place, (name, (statement, bounds)) in enumerate(zip(ARCHITECTURES, _CLAIMS, strict=True)):
        (low, first, high), (least, last, most) = (
            search.interval(widths[end, place], int(sufficient[end, place])) for end in (0, -1)
        )
        limits: dict[str, Any] = bounds(len(widths) - 1)
        claim = Claim(name, statement, last / first, least / high, most / low, **limits)
        # Even if a search failed, the interval may decide the claim.
        failed = f"training reached the target loss at no width up to {search.last:g}"
        known = claim.outcome != "undecided" or bool(np.isfinite([first, last]).all())
        claims.append(claim.if_known(known, failed))
    return claims
