"""Numeric targets from table columns: quantities, or one-hot encoded class labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from dynascope.tasks.data.column_names import listed
from dynascope.tasks.data.columns import Column, to_numbers
from dynascope.tasks.data.labels import look_like_labels, one_hot
from dynascope.validation import require

__all__ = ["encode_targets"]


def encode_targets(
    targets: Mapping[str, Column], classification: bool | None, *, source: str
) -> tuple[Float[np.ndarray, "n c"], tuple[str, ...], str, bool]:
    """Convert targets to numbers, and decide whether they are class labels.

    A single target of text, booleans or categories is a class label. A single target of integers is a class label if
    `look_like_labels` holds.

    Args:
        targets: Columns without missing values, by name.
        classification: Whether the target is a class label; None applies the rule above.
        source: Name of the table in messages.

    Returns:
        Values, their names, a sentence that states the kind of the targets, and whether they are classes.

    Raises:
        InputError: If a target is neither numeric nor a label, or if `classification` is set for several targets.

    Example:
        >>> encode_targets({"price": Column.of([1.5, 2.0])}, None, source="table")[2:]
        ("The target 'price' is a quantity, not a class label.", False)
    """
    names = tuple(targets)
    column = targets[names[0]]
    if classification is None:
        integers = column.kind == "integer" and look_like_labels(column.values.to_numpy())
        classification = len(names) == 1 and (column.label or column.kind == "truth" or integers)
    require(
        len(names) == 1 or not classification,
        f"{source} has {len(names)} targets, but classification requires exactly one",
        argument="classification",
        value=classification,
        remedy="give one column of labels",
    )
    if not classification or column.kind in ("date", "other"):
        verb = "are quantities" if len(names) > 1 else "is a quantity"
        sentence = f"The target{'s' if len(names) > 1 else ''} {listed(names)} {verb}, not a class label."
        return to_numbers(targets, "target", source), names, sentence, False
    labels = column.values.to_numpy()
    return *one_hot(labels.astype(str) if labels.dtype == object else labels, names[0]), True
