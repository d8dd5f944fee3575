"""The claims that the features of each class collapse in trained networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynascope.comparison import Claim, claim_on_mean
from dynascope.studies.features.relabelled_digits import LABELS

__all__ = ["collapse_claims", "deciding_claims"]

_LEARNED = 0.99  # training accuracy required before the collapse of a network is judged
_CLASSES = LABELS[:3]  # kinds of labels that are classes


def collapse_claims(
    networks: Sequence[str],
    labels: Sequence[str],
    nc1: Float[np.ndarray, "networks labels starts steps"],
    accuracy: Float[np.ndarray, "networks labels starts steps"],
) -> list[Claim]:
    """One claim for each network and kind of labels, undecided if the labels were not learned.

    Args:
        networks: Names of the networks.
        labels: Names of the kinds of labels.
        nc1: Ratio of within-class to between-class variability.
        accuracy: Accuracy on the training labels.
    """
    change, learned, claims = np.log10(nc1[..., -1] / nc1[..., 0]), accuracy[..., -1] >= _LEARNED, []
    for i, network in enumerate(networks):
        for j, kind in enumerate(labels):
            statement = (
                f"Classes collapse: NC1, the ratio of within-class to between-class variability, falls at least "
                f"tenfold ({network}, {kind}; change in log₁₀ NC1)."
            )
            claim = claim_on_mean(f"{network}, {kind}", statement, change[i, j], most=-1.0)
            reached = learned[i, j]
            few = f"{reached.sum()} of {reached.size} networks learned {100 * _LEARNED:.0f} % of the labels"
            claims.append(claim.if_known(bool(reached.all()), few))
    return claims


def deciding_claims(networks: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    """Names of the claims about class labels, which decide the verdict."""
    return tuple(f"{network}, {kind}" for network in networks for kind in labels if kind in _CLASSES)
