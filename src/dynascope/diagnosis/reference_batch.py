"""The reference batch, on which a recorder measures a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynascope.diagnosis.measurements.kernel import as_numpy
from dynascope.diagnosis.rows import as_rows
from dynascope.probes.kernel.examples import count_rows, require_examples
from dynascope.validation import array_namespace, require

__all__ = ["count_examples", "flipped_rows", "split_reference", "target_rows"]


def split_reference(reference: Any) -> tuple[Any, Any]:
    """Return the inputs and the targets of a reference batch.

    The batch is a pair of inputs and targets, a dictionary in which `labels` are the targets, or inputs alone.

    Example:
        >>> split_reference((1, 2)), split_reference({"x": 1, "labels": 2}), split_reference(1)
        ((1, 2), ({'x': 1}, 2), (1, None))
    """
    if isinstance(reference, list | tuple) and len(reference) == 2:
        return reference[0], reference[1]
    if isinstance(reference, Mapping):
        inputs = {name: each for name, each in reference.items() if name != "labels"}
        return inputs, reference.get("labels")
    return reference, None


def count_examples(inputs: Any, *, kind: str) -> int:
    """Return the number of examples of a reference batch, whose arrays are called `kind` in messages.

    Raises:
        InputError: If the arrays have different lengths, or if there is only one example.
    """
    require_examples("reference", inputs, kind=kind)
    count = count_rows(inputs)
    require(
        count > 1,
        "the reference batch has only one example",
        argument="reference",
        value=1,
        remedy="give at least two examples, ideally 100 to 1000",
    )
    return count


def target_rows(targets: Any) -> Any:
    """Return targets with one row for each example, or for each position of a sequence.

    Example:
        >>> import numpy as np
        >>> target_rows(np.ones((8, 4), int)).shape, target_rows(np.ones((8, 4))).shape
        ((32,), (8, 4))
    """
    if targets.ndim <= 1:
        return targets
    xp = array_namespace(targets)
    return as_rows(targets) if xp.isdtype(targets.dtype, "real floating") else xp.reshape(targets, (-1,))


def flipped_rows(flipped: Any, targets: Any, examples: int) -> np.ndarray | None:
    """Return whether each row of the targets belongs to an example whose label is known to be wrong.

    Args:
        flipped: A boolean mask of shape (examples,), or the indices of the examples with a wrong label; None if
            unknown.
        targets: The rows of the targets, one or more for each example; None if there are none.
        examples: Number of examples.

    Raises:
        InputError: If there are no targets, a mask has another shape, or an index is out of range.

    Example:
        >>> flipped_rows([2], np.zeros(3), 3), flipped_rows(np.array([True, False]), np.zeros(4), 2)
        (array([False, False,  True]), array([ True,  True, False, False]))
    """
    if flipped is None:
        return None
    require(
        targets is not None,
        "flipped is given, but the reference batch has no targets",
        argument="flipped",
        remedy="give a reference batch of inputs and labels",
    )
    given = as_numpy(flipped)
    if given.dtype == bool:
        valid, mask = given.shape == (examples,), given
    else:
        places = given if given.size else given.astype(int)
        require(
            examples <= 2 or given.shape != (examples,) or bool(np.any((given != 0) & (given != 1))),
            "flipped is a mask of zeros and ones, which would be read as indices",
            argument="flipped",
            value=given.shape,
            remedy="give booleans",
        )
        valid = places.ndim == 1 and places.dtype.kind in "iu" and bool(np.all((places >= 0) & (places < examples)))
        mask = np.isin(np.arange(examples), places)
    require(
        valid,
        f"flipped has shape {given.shape} and type {given.dtype}, but the reference batch has {examples} examples",
        argument="flipped",
        value=given.shape,
        remedy=f"give a boolean mask of shape ({examples},), or indices from 0 to {examples - 1}",
    )
    return np.repeat(mask, targets.shape[0] // examples)
