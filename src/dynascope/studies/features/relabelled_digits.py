"""Subsets of the handwritten digits: balanced over the classes, or with true or random labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from dynascope.tasks.data.digits import digits
from dynascope.validation import require_choice

__all__ = ["LABELS", "RelabelledDigits", "balanced_digits", "relabelled_digits"]

_RANDOM = {"true labels": 0.0, "10 % random labels": 0.1, "100 % random labels": 1.0}
LABELS = (*_RANDOM, "scalar regression")


class RelabelledDigits(NamedTuple):
    """Training digits followed by an equal number of held-out digits.

    Attributes:
        inputs: Shape (2n, pixels).
        targets: One-hot labels of the training digits, or numbers with mean zero and variance one, shape (n, c).
        labels: Labels of the training digits, shape (n,).
        held_out: True labels of the held-out digits, shape (n,).
        levels: For a regression, the target value of each digit, shape (10,); otherwise None.
    """

    inputs: Float[np.ndarray, "_ d"]
    targets: Float[np.ndarray, "n c"]
    labels: Int[np.ndarray, " n"]
    held_out: Int[np.ndarray, " n"]
    levels: Float[np.ndarray, " 10"] | None


def relabelled_digits(kind: str, samples: int, seed: int) -> RelabelledDigits:
    """Draw digits with labels of a kind in `LABELS`; all kinds use the same digits.

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
        # Mean zero and variance one if all digits are equally frequent.
        levels = (np.arange(10) - 4.5) / 8.25**0.5
        return RelabelledDigits(task.inputs[rows], levels[labels][:, None], labels, held_out, levels)
    drawn = draw.permutation(samples)[: round(_RANDOM[kind] * samples)]
    labels[drawn] = draw.integers(10, size=len(drawn))
    return RelabelledDigits(task.inputs[rows], np.eye(10)[labels], labels, held_out, None)


def balanced_digits(each: int, draw: np.random.Generator) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n c"]]:
    """Inputs and one-hot targets of class-balanced training digits, followed by an equal number of held-out digits.

    Example:
        >>> balanced_digits(3, np.random.default_rng(0))[1][:30].sum(axis=0).tolist() == [3] * 10
        True
    """
    task = digits()
    labels = np.argmax(task.targets, axis=1)
    rows = np.stack([draw.permutation(np.flatnonzero(labels == label))[: 2 * each] for label in range(10)])
    rows = np.concatenate([rows[:, :each].ravel(), rows[:, each:].ravel()])
    return task.inputs[rows], np.eye(10)[labels[rows]]
