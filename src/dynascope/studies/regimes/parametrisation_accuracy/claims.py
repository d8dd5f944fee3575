"""Claims about the order of the test accuracies of the parametrisations at the largest width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynascope.comparison import Claim, claim_on_mean

__all__ = ["DECIDING", "PAIRS", "accuracy_claims"]

# Each parametrisation that learns features in the limit of infinite width, with its counterpart in the kernel phase.
PAIRS = {"mean field": "NTK", "Kaiming+": "Kaiming−", "Xavier+": "Xavier−"}
DECIDING = tuple(f"{rich}, accuracy" for rich in PAIRS)
_CHANCE = 0.1  # ten classes


def accuracy_claims(found: Mapping[str, np.ndarray], names: Sequence[str]) -> list[Claim]:
    """Evaluate the claims. Each value is a difference between two parametrisations, averaged over seeds.

    Args:
        found: `accuracy` on the training digits, `test_accuracy`, `centred_accuracy` (test accuracy without the initial
            output) and `feature_change` at the largest width, shape (parametrisations, seeds).
        names: Names of the parametrisations.
    """
    row = {name: position for position, name in enumerate(names)}
    fitted = bool((found["accuracy"] == 1).all())
    learned = bool((found["test_accuracy"] > 2 * _CHANCE).all())
    reason = (
        "a network did not fit all training digits" if not fitted else "a network is close to chance on test digits"
    )
    claims = [
        claim_on_mean(
            f"{rich}, {kind}",
            f"At the largest width, {words} with {rich} than with {lazy}.",
            found[quantity][row[rich]] - found[quantity][row[lazy]],
            least=0.0,
        )
        for kind, quantity, words in (
            ("accuracy", "test_accuracy", "the test accuracy is higher"),
            ("features", "feature_change", "the change in the features during training is larger"),
            ("centred", "centred_accuracy", "the test accuracy without the initial output is higher"),
        )
        for rich, lazy in PAIRS.items()
    ]
    known = [each.if_known(fitted and learned, reason) for each in claims]
    return [each.if_known((each.value, each.low) != (0, 0), "the values are equal in all runs") for each in known]
