"""Claims about how much sooner upstream networks change their kernel and their activation patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynascope.comparison import Claim, claim_on_mean

__all__ = ["DECIDING", "LEARNED", "movement_claims"]

DECIDING = ("kernel_at_half", "patterns_at_half", "kernel_at_tenth", "patterns_at_tenth")
LEARNED = 0.1  # fraction of its initial loss that the final loss of every network must be below
_LEVELS = {"half": 0.5, "tenth": 0.1}
_WORDS = {"half": "half", "tenth": "a tenth"}


def movement_claims(
    found: Mapping[str, np.ndarray], scales: Sequence[float], fractions: Sequence[float]
) -> list[Claim]:
    """Evaluate the claims. Each value is the mean over seeds of the natural logarithm of a ratio.

    Upstream networks have the largest relative scale. They are compared with networks of the smallest relative scale
    and of the relative scale one, and the value of a seed is the least favourable one over these and all depths.

    Args:
        found: The measures, shape (networks, depths, relative scales, seeds, fractions), with the networks without and
            with normalisation in this order; and `loss` and `initial_loss`, without the last axis.
        scales: Relative scales, in increasing order; one of them is 1.
        fractions: Fractions of the initial loss at which the measures were taken.
    """
    logs = {
        name: np.log(np.maximum(found[name], np.finfo(float).tiny))
        for name in ("kernel_distance", "hamming_distance", "parameter_distance", "test_loss")
    }
    others = [0, list(scales).index(1.0)]
    learned = found["loss"] < LEARNED * found["initial_loss"]

    def ratio(name: str, level: str, network: int) -> np.ndarray:
        """The logarithm of the upstream value over another one; shape (depths, others, seeds)."""
        values = logs[name][network, ..., list(fractions).index(_LEVELS[level])]
        return values[:, -1:] - values[:, others]

    def larger(name: str, network: int, level: str, label: str, words: str) -> Claim:
        statement = (
            f"When the loss has fallen to {_WORDS[level]}, {words} at the largest relative scale is larger than at the "
            "smallest one and at 1, at every depth. The value is the logarithm of the smallest ratio."
        )
        claim = claim_on_mean(label, statement, ratio(name, level, network).min(axis=(0, 1)), least=0.0)
        return claim.if_known(bool(learned[network].all()), "the loss of a network did not fall to a tenth")

    def smaller(name: str, label: str, words: str) -> Claim:
        statement = (
            f"When the loss has fallen to a tenth, {words} at the largest relative scale is smaller than at the "
            "smallest one and at 1, at every depth. The value is the logarithm of the largest ratio."
        )
        claim = claim_on_mean(label, statement, ratio(name, "tenth", 0).max(axis=(0, 1)), most=0.0)
        return claim.if_known(bool(learned[0].all()), "the loss of a network did not fall to a tenth")

    kernel, patterns = "the kernel distance", "the Hamming distance"
    plain, normalised = (ratio("hamming_distance", "tenth", network)[:, 0] for network in (0, 1))
    weaker = claim_on_mean(
        "norm_weakens",
        "With batch norm, the ratio of the Hamming distances at the largest and the smallest relative scale, when the "
        "loss has fallen to a tenth, is smaller than without it, at every depth. The value is the logarithm of the "
        "largest ratio of both ratios.",
        (normalised - plain).max(axis=0),
        most=0.0,
    )
    return [
        larger("kernel_distance", 0, "half", "kernel_at_half", kernel),
        larger("hamming_distance", 0, "half", "patterns_at_half", patterns),
        larger("kernel_distance", 0, "tenth", "kernel_at_tenth", kernel),
        larger("hamming_distance", 0, "tenth", "patterns_at_tenth", patterns),
        smaller(
            "parameter_distance", "parameters_at_tenth", "the distance of the parameters from their initial values"
        ),
        smaller("test_loss", "test_loss_at_tenth", "the test loss"),
        larger("kernel_distance", 1, "tenth", "norm_kernel_at_tenth", f"with batch norm, {kernel}"),
        larger("hamming_distance", 1, "tenth", "norm_patterns_at_tenth", f"with batch norm, {patterns}"),
        weaker.if_known(bool(learned.all()), "the loss of a network did not fall to a tenth"),
    ]
