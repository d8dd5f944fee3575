"""Handwritten digits with labels that mean more or less: true ones, random ones, or numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from dynascope.arguments import require_choice
from dynascope.tasks.data.handwritten import digits

__all__ = ["LABELS", "RelabelledDigits", "relabelled_digits"]

_RANDOM = {"true labels": 0.0, "10 % random labels": 0.1, "100 % random labels": 1.0}
LABELS = (*_RANDOM, "scalar regression")


class RelabelledDigits(NamedTuple):
    """Digits for training, then as many that are held out.

    Attributes:
        inputs: Shape (2n, pixels).
        targets: One-hot labels of the training digits, or numbers of mean zero and variance one, shape (n, c).
        labels: Their labels, shape (n,).
        held_out: True labels of the held-out digits, shape (n,).
        levels: Of a regression the number that stands for each digit, shape (10,), or None.
    """

    inputs: Float[np.ndarray, "2n d"]
    targets: Float[np.ndarray, "n c"]
    labels: Int[np.ndarray, " n"]
    held_out: Int[np.ndarray, " n"]
    levels: Float[np.ndarray, " 10"] | None


def relabelled_digits(kind: str, samples: int, seed: int) -> RelabelledDigits:
    """Digits at random, labelled as one of `LABELS`; all kinds have the same digits.

    Example:
        >>> relabelled_digits("scalar regression", 50, seed=0).targets.shape
        (50, 1)
    """
    require_choice("kind", kind, LABELS)
    task, draw = digits(), np.random.default_rng([seed, 2])
    rows = draw.permutation(task.samples)[: 2 * samples]
    true = np.argmax(task.targets[rows], axis=1)
    labels, held_out = true[:samples].copy(), true[samples:]
    if kind not in _RANDOM:
        # Of mean zero and variance one, if the digits are equally frequent.
        levels = (np.arange(10) - 4.5) / 8.25**0.5
        return RelabelledDigits(task.inputs[rows], levels[labels][:, None], labels, held_out, levels)
    drawn = draw.permutation(samples)[: round(_RANDOM[kind] * samples)]
    labels[drawn] = draw.integers(10, size=len(drawn))
    return RelabelledDigits(task.inputs[rows], np.eye(10)[labels], labels, held_out, None)
