"""Claims about sample complexities and the sensitivity to synonyms."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dynascope.comparison import Claim, claim_on_mean

__all__ = ["DECIDING", "hierarchy_claims"]

DECIDING = ("critical_samples", "depth", "upstream_fewer", "sensitivity_drop")
_FACTOR = 4.0  # allowed factor between a sample complexity and its scale
_UNKNOWN = "a network that was compared did not reach the test error at any sample size, or reached it at the smallest"
_BOUNDED = "only a lower bound on the larger number of strings is known"
_VALUE = "The value is the binary logarithm of the ratio."


def hierarchy_claims(
    found: Mapping[str, np.ndarray], scales: np.ndarray, critical: float, strings: float
) -> list[Claim]:
    """Evaluate the claims. Each value is the mean over seeds of the binary logarithm of a ratio.

    A lower bound on the sample complexity of the network that is claimed to need more strings can support a claim but
    cannot refute it.

    Args:
        found: `sample_complexity`, shape (networks, relative scales, seeds), with the tree first and then perceptrons
            in increasing order of depth; `reached` and `bounded`, of the same shape, for values that were measured and
            for lower bounds; `sensitivity_drop` and `dropped`, shape (relative scales, seeds).
        scales: The relative scales α, increasing.
        critical: P_c = n_c m^L.
        strings: P_max.
    """
    needed, reached = found["sample_complexity"], found["reached"].astype(bool)
    at_least = reached | found["bounded"].astype(bool)
    balanced, upstream = int(np.argmin(np.abs(np.log(scales)))), len(scales) - 1
    tree, shallow, deep = 0, 1, len(needed) - 1

    def within(name: str, statement: str, ratios: np.ndarray, known: np.ndarray, least: float, most: float) -> Claim:
        claim = claim_on_mean(name, f"{statement} {_VALUE}", np.log2(ratios), least=least, most=most)
        return claim.if_known(bool(known.all()), _UNKNOWN)

    def more(name: str, statement: str, larger: tuple[int, int], smaller: tuple[int, int]) -> Claim:
        claim = claim_on_mean(name, f"{statement} {_VALUE}", np.log2(needed[larger] / needed[smaller]), least=0.0)
        known = bool(reached[smaller].all() and at_least[larger].all())
        decided = bool(reached[larger].all()) or claim.outcome == "holds"
        return claim.if_known(known, _UNKNOWN).if_known(decided, _BOUNDED)

    scale = math.log2(_FACTOR)
    return [
        within(
            "critical_samples",
            f"The balanced tree network needs n_c m^L = {critical:.0f} training strings, up to a factor of "
            f"{_FACTOR:g}.",
            needed[tree, balanced] / critical,
            reached[tree, balanced],
            -scale,
            scale,
        ),
        more(
            "depth",
            "The balanced perceptron with the fewest hidden layers needs more training strings than the balanced tree "
            "network.",
            (shallow, balanced),
            (tree, balanced),
        ),
        more(
            "upstream_fewer",
            "The balanced tree network needs more training strings than the one with the largest α (upstream).",
            (tree, balanced),
            (tree, upstream),
        ),
        within(
            "sensitivity_drop",
            "In the balanced tree network, the sensitivity of the second layer to synonyms of level 1 falls to half "
            f"its initial value at the sample complexity, up to a factor of {_FACTOR:g}.",
            found["sensitivity_drop"][balanced] / needed[tree, balanced],
            reached[tree, balanced] & found["dropped"][balanced].astype(bool),
            -scale,
            scale,
        ),
        more(
            "upstream_below_downstream",
            "The tree network with the smallest α (downstream) needs more training strings than the one with the "
            "largest (upstream).",
            (tree, 0),
            (tree, upstream),
        ),
        more(
            "upstream_fewer_perceptron",
            "The deepest balanced perceptron needs more training strings than the one with the largest α (upstream).",
            (deep, balanced),
            (deep, upstream),
        ),
        more(
            "deeper_perceptron",
            "The balanced perceptron with the fewest hidden layers needs more training strings than the one with the "
            "most.",
            (shallow, balanced),
            (deep, balanced),
        ),
        within(
            "deep_perceptron_scale",
            "On a logarithmic scale, the sample complexity of the deepest balanced perceptron is closer to n_c m^L "
            "than to P_max.",
            needed[deep, balanced] / math.sqrt(critical * strings),
            reached[deep, balanced],
            -math.inf,
            0.0,
        ),
    ]
