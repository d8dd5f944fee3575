"""Claims about norm and test accuracy over the scale of the initial weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynascope.comparison import Claim, claim_on_mean

__all__ = ["DECIDING", "norm_claims"]

DECIDING = ("norm", "accuracy")
_CHANCE = 0.1  # ten classes


def norm_claims(found: Mapping[str, np.ndarray]) -> list[Claim]:
    """Evaluate the claims. Each value is a mean over seeds.

    Args:
        found: `norm`, and `accuracy` on training digits, `test_accuracy` and `centred_accuracy` (test accuracy without
            the initial output), shape (scales, seeds), with increasing scales.
    """
    fitted = bool((found["accuracy"] == 1).all())
    # A network with large initial weights may classify as badly as chance; one with small initial weights must learn.
    learned = bool((found["test_accuracy"][0] > 2 * _CHANCE).all())
    growth, steps = np.diff(np.log(found["norm"]), axis=0), np.diff(found["test_accuracy"], axis=0)
    claims = [
        claim_on_mean(
            "norm",
            "The norm after training increases from each scale to the next. The value is the smallest increase in the "
            "logarithm of the norm.",
            growth.min(axis=0),
            least=0.0,
        ),
        claim_on_mean(
            "accuracy",
            "The test accuracy at the largest scale is lower than at the smallest scale. The value is the change in "
            "the test accuracy.",
            found["test_accuracy"][-1] - found["test_accuracy"][0],
            most=0.0,
        ),
        claim_on_mean(
            "every step",
            "The test accuracy decreases from each scale to the next. The value is the largest of the changes in the "
            "test accuracy.",
            steps.max(axis=0),
            most=0.0,
        ),
        claim_on_mean(
            "centred",
            "The test accuracy without the initial output is lower at the largest scale than at the smallest scale. "
            "The value is the change in this accuracy.",
            found["centred_accuracy"][-1] - found["centred_accuracy"][0],
            most=0.0,
        ),
    ]
    reason = (
        "a network did not fit all training digits" if not fitted else "a network is close to chance on test digits"
    )
    known = [each.if_known(fitted and learned, reason) for each in claims]
    return [each.if_known((each.value, each.low) != (0, 0), "the values are equal in all runs") for each in known]
