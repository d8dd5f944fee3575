"""Claims that compare SynFlow with the other methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynascope.comparison import Claim, claim_on_mean
from dynascope.studies.interventions.synflow.experiment import METHODS, Measured

__all__ = ["deciding_claims", "pruning_claims"]

_SYNFLOW, _NEED_DATA = METHODS.index("synflow"), [METHODS.index("snip"), METHODS.index("grasp")]


def pruning_claims(networks: Sequence[str], found: Measured) -> list[Claim]:
    """The claims about every architecture.

    Args:
        networks: Names of the architectures.
        found: The measurements.
    """
    claims = []
    others = [place for place in range(len(METHODS)) if place != _SYNFLOW]
    for place, name in enumerate(networks):
        gap = np.log10(found.critical[place, _SYNFLOW] / found.critical[place, others].max(axis=0))
        claims.append(
            claim_on_mean(
                f"beyond, {name}",
                f"SynFlow has a higher critical compression than every other method ({name}; difference in log₁₀ ρ_cr "
                "from the best other method).",
                gap,
                least=0,
            )
        )
        gain = found.accuracy[place, _SYNFLOW] - found.accuracy[place, others]
        lost = ~found.paths[place, others] & found.paths[place, _SYNFLOW]
        counts = lost.sum(axis=(0, 1))
        seeds = counts > 0
        enough = int(seeds.sum()) > 1
        means = (gain * lost).sum(axis=(0, 1))[seeds] / counts[seeds] if enough else np.zeros(2)
        statement = (
            "If another method leaves no path from inputs to outputs, SynFlow has a higher accuracy on test "
            f"images ({name}; difference in accuracy)."
        )
        claim = claim_on_mean(f"accuracy, {name}", statement, means, least=0)
        claims.append(claim.if_known(enough, "the other methods rarely lost all paths at these compressions"))
        with_data = found.accuracy[place, _SYNFLOW] - found.accuracy[place, _NEED_DATA].max(axis=0)
        claims.append(
            claim_on_mean(
                f"no data, {name}",
                "Averaged over compressions, SynFlow without data has a higher accuracy than the better of SNIP and "
                f"GraSP with data ({name}; difference in accuracy).",
                with_data.mean(axis=0),
                least=0,
            )
        )
    return claims


def deciding_claims(networks: Sequence[str]) -> tuple[str, ...]:
    """Names of the claims that decide the verdict."""
    return tuple(f"{claim}, {name}" for name in networks for claim in ("beyond", "accuracy", "no data"))
