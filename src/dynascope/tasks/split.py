"""Random split of samples into a training and a test part."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import OpenFraction, Seed

__all__ = ["split_rows"]

_FEWEST = 2  # samples that each part needs


@checked
def split_rows(
    samples: int, test_fraction: OpenFraction, seed: Seed
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
    """Draw the row indices of the training and test parts, each in increasing order.

    Args:
        samples: Number of rows.
        test_fraction: Fraction of the rows in the test part, rounded to whole samples.
        seed: Seed of the draw.

    Raises:
        InputError: If either part has fewer than two samples.

    Example:
        >>> train, test = split_rows(5, 0.4, seed=0)
        >>> train.tolist(), test.tolist()
        ([0, 1, 3], [2, 4])
    """
    test = round(samples * test_fraction)
    require(
        _FEWEST <= test <= samples - _FEWEST,
        f"test_fraction is {test_fraction}, so the test part has {test} of {samples} samples",
        argument="test_fraction",
        value=test_fraction,
        remedy="choose a fraction that leaves at least two samples in each part",
    )
    order = np.random.default_rng(seed).permutation(samples)
    return np.sort(order[test:]), np.sort(order[:test])
