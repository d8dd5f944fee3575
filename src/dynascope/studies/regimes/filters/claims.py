"""Claims about the scores of filters at different relative scales."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynascope.comparison import Claim, claim_on_mean
from dynascope.probes.filters import FilterScores

__all__ = ["DECIDING", "filter_claims"]

CHANCE, _MARGIN = 0.25, 0.03  # test accuracy of guessing, and by how much a network that learned exceeds it

_WORDS = {
    "gabor": ("R² of the Gabor fit is larger", 1),
    "concentration": ("spectral concentration is larger", 1),
    "roughness": ("roughness is smaller", -1),
}
DECIDING = tuple(f"{name}_{of}" for of in ("upstream", "above_noise") for name in _WORDS)


def filter_claims(found: Mapping[str, np.ndarray], noise: FilterScores, *, standard: int | None = None) -> list[Claim]:
    """Evaluate the claims. Each value is the mean over seeds of a difference at the end of training.

    Args:
        found: The scores, `test_accuracy` and `movement`, shape (relative scales, seeds), relative scales increasing.
        noise: Average scores of white noise.
        standard: Position of the relative scale closest to one, or None if it is the first or the last one.
    """
    accuracies = found["test_accuracy"].mean(axis=1)[[0, -1]]
    learned = bool((accuracies > CHANCE + _MARGIN).all())
    claims = [
        _claim(
            f"{name}_upstream",
            f"After training, the mean {words} for upstream than for downstream filters.",
            found[name][-1] - found[name][0],
            sign,
        )
        for name, (words, sign) in _WORDS.items()
    ]
    claims += [
        _claim(
            f"{name}_above_noise",
            f"After training, the mean {words} for upstream filters than for white noise.",
            found[name][-1] - getattr(noise, name),
            sign,
        )
        for name, (words, sign) in _WORDS.items()
    ]
    claims += [
        _claim(
            "accuracy_upstream",
            "The test accuracy is larger for upstream than for downstream networks.",
            found["test_accuracy"][-1] - found["test_accuracy"][0],
            1,
        ),
        _claim(
            "movement_upstream",
            "The relative change of the filters is larger for upstream than for downstream networks.",
            found["movement"][-1] - found["movement"][0],
            1,
        ),
    ]
    if standard is not None:
        claims += [
            _claim(
                f"{name}_against_standard",
                f"After training, the mean {words} for upstream filters than at the relative scale closest to one.",
                found[name][-1] - found[name][standard],
                sign,
            )
            for name, (words, sign) in _WORDS.items()
        ]
    reason = "the test accuracy of the upstream or the downstream networks is close to that of guessing"
    return [each.if_known(learned, reason) for each in claims]


def _claim(name: str, statement: str, values: np.ndarray, sign: int) -> Claim:
    bound = {"least": 0.0} if sign > 0 else {"most": 0.0}
    return claim_on_mean(name, f"{statement} The value is the difference.", values, **bound)
