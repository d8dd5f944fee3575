"""The rows of the outputs, features and targets on which probes measure: those that have a target."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dynascope.diagnosis.rows import thinned
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.validation import array_namespace, require

__all__ = ["MeasuredRows", "measured_rows"]

_IGNORED = -100


@dataclasses.dataclass(frozen=True)
class MeasuredRows:
    """The measured rows: all rows with a target, or a random subset of a few thousand of them.

    Attributes:
        outputs: The outputs, shape (n, c).
        targets: Class indices of shape (n,) or values of shape (n, k); None if there are none.
        features: The features of the recorded layers by name.
        places: The index of each row among all rows, shape (n,).
    """

    outputs: Any
    targets: Any
    features: Mapping[str, Any]
    places: Any


def measured_rows(snapshot: Snapshot) -> MeasuredRows:
    """Return the measured rows; the label −100 marks rows without a target, as in PyTorch.

    Raises:
        InputError: If there is not one target for each row of outputs, or if no row has a target.
    """
    outputs, targets, features = snapshot.forward.outputs, snapshot.targets, snapshot.forward.features
    count = len(outputs)
    xp = array_namespace(outputs)
    counted = xp.ones_like(outputs[:, 0], dtype=xp.bool)
    if targets is not None:
        require(
            targets.shape[0] == count,
            f"the targets of the reference batch have length {targets.shape[0]}, but the outputs have {count} rows",
            argument="reference",
            value=count,
            remedy="give one target per example, or per position of a sequence",
        )
        if len(targets.shape) == 1:
            if xp.isdtype(targets.dtype, "integral") and outputs.shape[1] > 1:
                counted = targets != _IGNORED
            else:
                targets = xp.astype(targets, outputs.dtype)[:, None]
    kept = xp.nonzero(counted)[0]
    require(
        len(kept) > 0,
        f"all labels of the reference batch are {_IGNORED}, which marks ignored labels",
        argument="reference",
        value=_IGNORED,
        remedy="give class numbers, starting from 0",
    )
    kept = thinned(kept)
    return MeasuredRows(
        outputs[kept],
        None if targets is None else targets[kept],
        {name: each[kept] if len(each) == count else each for name, each in features.items()},
        kept,
    )
