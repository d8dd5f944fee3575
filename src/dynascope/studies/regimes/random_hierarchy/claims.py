"""Claims about sample complexities and the sensitivity to synonyms."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dynascope.comparison import Claim, claim_on_mean

__all__ = ["DECIDING", "hierarchy_claims"]

DECIDING = ("critical_samples", "depth", "upstream_fewer", "sensitivity_drop")
_FACTOR = 4.0  # allowed factor between a sample complexity and its scale
_BOUNDED = "only a lower bound on the larger number of strings is known"
_UNKNOWN = "a network did not reach the compared value at any sample size, or reached it at the smallest size"


def hierarchy_claims(
    found: Mapping[str, np.ndarray], scales: np.ndarray, critical: float, strings: float
) -> list[Claim]:
    """Evaluate the claims. Each value is the mean over seeds of the binary logarithm of a ratio.

    A lower bound on the sample complexity of the network that is claimed to need more strings can support a claim but
    cannot refute it.

    Args:
        found: `sample_complexity` and its lower bound `least_sample_complexity`, shape (networks, relative scales,
            seeds), with the tree first and then multilayer perceptrons in increasing order of depth; NaN and 0 if
            unknown. `sensitivity_drop`, shape (relative scales, seeds).
        scales: The relative scales α, increasing.
        critical: P_c = n_c m^L.
        strings: P_max.
    """
    needed, least = found["sample_complexity"], found["least_sample_complexity"]
    balanced, upstream = int(np.argmin(np.abs(np.log(scales)))), len(scales) - 1
    tree, shallow, deep = 0, 1, len(needed) - 1
    scale = math.log2(_FACTOR)
    return [
        _claim(
            "critical_samples",
            f"The balanced tree network needs n_c m^L = {critical:.0f} training strings, up to a factor of "
            f"{_FACTOR:g}.",
            needed[tree, balanced] / critical,
            least=-scale,
            most=scale,
        ),
        _claim(
            "depth",
            "The balanced perceptron with the fewest hidden layers needs more training strings than the balanced tree "
            "network.",
            least[shallow, balanced] / needed[tree, balanced],
            least=0.0,
            exact=np.isfinite(needed[shallow, balanced]).all(),
        ),
        _claim(
            "upstream_fewer",
            "The tree network with the largest α (upstream) needs fewer training strings than the balanced one.",
            needed[tree, upstream] / needed[tree, balanced],
            most=0.0,
        ),
        _claim(
            "sensitivity_drop",
            "In the balanced tree network, the sensitivity of the second layer to synonyms of level 1 falls to half "
            f"its initial value at the sample complexity, up to a factor of {_FACTOR:g}.",
            found["sensitivity_drop"][balanced] / needed[tree, balanced],
            least=-scale,
            most=scale,
        ),
        _claim(
            "upstream_below_downstream",
            "The tree network with the largest α (upstream) needs fewer training strings than the one with the "
            "smallest (downstream).",
            needed[tree, upstream] / least[tree, 0],
            most=0.0,
            exact=np.isfinite(needed[tree, 0]).all(),
        ),
        _claim(
            "upstream_fewer_perceptron",
            "The deepest perceptron with the largest α (upstream) needs fewer training strings than the balanced one.",
            needed[deep, upstream] / least[deep, balanced],
            most=0.0,
            exact=np.isfinite(needed[deep, balanced]).all(),
        ),
        _claim(
            "deeper_perceptron",
            "The balanced perceptron with the fewest hidden layers needs more training strings than the one with the "
            "most.",
            least[shallow, balanced] / needed[deep, balanced],
            least=0.0,
            exact=np.isfinite(needed[shallow, balanced]).all(),
        ),
        _claim(
            "deep_perceptron_scale",
            "On a logarithmic scale, the sample complexity of the deepest balanced perceptron is closer "
            "to n_c m^L than to P_max.",
            needed[deep, balanced] / math.sqrt(critical * strings),
            most=0.0,
        ),
    ]


def _claim(
    name: str,
    statement: str,
    ratios: np.ndarray,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    exact: bool | np.bool_ = True,
) -> Claim:
    sentence = f"{statement} The value is the binary logarithm of the ratio."
    if not np.all(np.isfinite(ratios) & (ratios > 0)):
        return Claim(name, sentence, math.nan, least=least, most=most, unknown=_UNKNOWN)
    claim = claim_on_mean(name, sentence, np.log2(ratios), least=least, most=most)
    return claim.if_known(bool(exact) or claim.outcome == "holds", _BOUNDED)
